#!/usr/bin/env python3
"""Tests httpd over TLS with independent clients: tls_test.py PROGRAM [TEST...]."""

import os
import shutil
import signal
import ssl
import shutil
import subprocess
import sys
import tempfile

from harness import (PATIENCE, Httpd, Response, ask, certificate, check, equal, missing, openssl, read_all, read_exactly, run,
                     tests_of, wait_until_closed)

TEXT = b"0123456789"
LARGE = os.urandom(1 << 20) * 3


def talk(program, *arguments, text, until):
    """Sends text, reads until an expected text, and ends the input; returns everything read."""
    with subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        process.stdin.write(text)
        process.stdin.flush()
        said = b""
        while until not in said:
            piece = process.stdout.read1(65536)
            check(piece, program, "has ended:", said)
            said += piece
        process.stdin.close()
        said += process.stdout.read()
        process.wait(PATIENCE)
    return said


def connect(httpd, name="authority"):
    context = ssl.create_default_context(cafile=certificate(name))
    context.set_alpn_protocols(["http/1.1"])
    return context.wrap_socket(httpd.client(), server_hostname="localhost")


def number_of(client):
    """The serial number of the server's certificate."""
    return client.getpeercert()["serialNumber"]


# ---- Clients ----


def curl_gets_files_over_tls():
    with Httpd({"a.txt": TEXT, "large": LARGE}, ["--log", "-"], tls=True) as httpd:
        equal(httpd.curl("URL/a.txt"), TEXT)
        equal(httpd.curl("URL/large"), LARGE)
        equal(httpd.curl("-r", "1000000-1999999", "URL/large"), LARGE[1000000:2000000])
        equal(httpd.curl("--tls-max", "1.2", "--http1.1", "URL/a.txt"), TEXT)
        equal(httpd.curl("--http1.1", "-I", "-o", "/dev/null", "-w", "%{http_code} %{http_version}", "URL/nothing"),
              b"404 1.1")
        httpd.out.expect(r'^127\.0\.0\.1 .* "GET /a.txt HTTP/\S+" 200 10 ')


def http2_by_alpn():
    with Httpd({"1k": b"x" * 1024, "large": LARGE}, ["--log", "-"], tls=True) as httpd:
        context = ssl.create_default_context(cafile=certificate("authority"))
        context.set_alpn_protocols(["h2"])
        try:
            with context.wrap_socket(httpd.client(), server_hostname="localhost") as client:
                equal(client.selected_alpn_protocol(), "h2")
        except ssl.SSLError:
            return "httpd was built without HTTP/2"
        equal(httpd.curl("--http2", "-o", "/dev/null", "-w", "%{http_code} %{http_version}", "URL/1k"), b"200 2")
        equal(httpd.curl("--http2", "URL/large"), LARGE)
        equal(httpd.curl("--http2", "-r", "5-9", "URL/large"), LARGE[5:10])
        httpd.out.expect(r'^127\.0\.0\.1 .* "GET /1k HTTP/2\S*" 200 1024 ')
        if shutil.which("h2load"):
            done = subprocess.run(["h2load", "-n500", "-c5", "-m10", httpd.url + "/1k"], capture_output=True, text=True,
                                  check=True)
            check("500 succeeded, 0 failed, 0 errored, 0 timeout" in done.stdout, done.stdout)
    return missing("h2load")


def names_and_dates_are_verified_by_curl():
    for name, what in (("wrong-name", "matches target host name"), ("expired", "expired")):
        with Httpd({"a": TEXT}, ["--tls-cert", certificate(name)]) as httpd:
            done = subprocess.run(["curl", "-sS", "--cacert", certificate("authority"), f"https://localhost:{httpd.port}/a"],
                                  capture_output=True, text=True, check=False)
            check(done.returncode == 60 and what in done.stderr, name, done)
            equal(httpd.idle()["requests"], 0)
    with Httpd({"a": TEXT}, tls=True) as httpd:  # an authority unknown to curl
        done = subprocess.run(["curl", "-sS", f"https://localhost:{httpd.port}/a"], capture_output=True, check=False)
        equal(done.returncode, 60)


def names_choose_the_certificate():
    with Httpd({"a": TEXT}, ["--tls-cert", certificate("wrong-name"), "--tls-cert", certificate("good")]) as httpd:
        httpd.url = f"https://localhost:{httpd.port}"
        equal(httpd.curl("URL/a"), TEXT)
        equal(httpd.curl("--resolve", f"elsewhere.example:{httpd.port}:127.0.0.1",
                         f"https://elsewhere.example:{httpd.port}/a"), TEXT)


def make_status(letter):
    """The status of the certificate "good": V, it is valid, or R, it was revoked. Returns the path."""
    here = os.path.dirname(certificate("good"))
    serial = subprocess.run(["openssl", "x509", "-in", certificate("good"), "-noout", "-serial"], capture_output=True, text=True,
                            check=True).stdout.strip().split("=")[1]
    with open(os.path.join(here, "index"), "w", encoding="ascii") as file:
        file.write(f"{letter}\t491231235959Z\t{'240101000000Z' if letter == 'R' else ''}\t{serial}\tunknown\t/CN=good\n")
    authority = ["-CA", certificate("authority"), "-rsigner", certificate("authority"), "-rkey", "authority.key"]
    openssl("ocsp", "-index", "index", *authority, "-issuer", certificate("authority"), "-cert", certificate("good"), "-respout",
            "status.der", "-ndays", "1", "-noverify")
    return os.path.join(here, "status.der")


def a_status_is_stapled_and_reloaded():
    with Httpd({"a": TEXT}, ["--tls-cert", certificate("good"), "--tls-ocsp", make_status("V")]) as httpd:
        httpd.url = f"https://localhost:{httpd.port}"
        said = talk("openssl", "s_client", "-connect", f"localhost:{httpd.port}", "-servername", "localhost", "-CAfile",
                    certificate("authority"), "-status", text=b"GET /a HTTP/1.0\r\n\r\n", until=TEXT)
        check(b"OCSP Response Status: successful" in said and b"Cert Status: good" in said, said)
        make_status("R")
        httpd.signal(signal.SIGHUP)
        while b"Cert Status: revoked" not in said:
            said = talk("openssl", "s_client", "-connect", f"localhost:{httpd.port}", "-servername", "localhost", "-CAfile",
                        certificate("authority"), "-status", text=b"GET /a HTTP/1.0\r\n\r\n", until=TEXT)


def secrets_are_logged_if_asked():
    log = os.path.join(os.path.dirname(certificate("good")), "secrets")
    with Httpd({"a": TEXT}, ["--tls-key-log", log], tls=True) as httpd:
        equal(httpd.curl("--tlsv1.3", "URL/a"), TEXT)
        with open(log, encoding="ascii") as file:
            check("CLIENT_TRAFFIC_SECRET_0 " in file.read())
        equal(os.stat(log).st_mode & 0o777, 0o600)


def the_status_and_the_secrets_may_be_elsewhere():
    """In directories of their own. A reload reads the status, and begins a new file of secrets."""
    with tempfile.TemporaryDirectory(prefix="httpd-test-") as elsewhere:
        log, status = os.path.join(elsewhere, "log", "secrets"), os.path.join(elsewhere, "status", "der")
        os.mkdir(os.path.dirname(log))
        os.mkdir(os.path.dirname(status))
        shutil.copy(make_status("V"), status)
        with Httpd({"a": TEXT}, ["--tls-ocsp", status, "--tls-key-log", log], tls=True) as httpd:
            equal(httpd.curl("--tlsv1.3", "URL/a"), TEXT)
            os.rename(log, log + ".1")
            httpd.reload()
            equal(httpd.curl("--tlsv1.3", "URL/a"), TEXT)
            for path in (log, log + ".1"):
                with open(path, encoding="ascii") as file:
                    check("CLIENT_TRAFFIC_SECRET_0 " in file.read(), path)


def openssl_and_gnutls_talk_to_it():
    request = b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with Httpd({"a.txt": TEXT}, tls=True) as httpd:
        said = talk("openssl", "s_client", "-connect", f"localhost:{httpd.port}", "-servername", "localhost", "-CAfile",
                    certificate("authority"), "-verify_return_error", "-alpn", "h3,http/1.1", text=request, until=TEXT)
        check(b"Verify return code: 0 (ok)" in said and b"ALPN protocol: http/1.1" in said, said)
        if not shutil.which("gnutls-cli"):
            return None
        said = talk("gnutls-cli", "--x509cafile", certificate("authority"), "--alpn", "http/1.1", "--port", str(httpd.port),
                    "localhost", text=request, until=TEXT)
        check(b"The certificate is trusted" in said and b"Application protocol: http/1.1" in said, said)
    return None


def load_generators_are_served():
    absent = missing("wrk", "h2load")
    with Httpd({"1k": b"x" * 1024}, tls=True) as httpd:
        if shutil.which("wrk"):
            done = subprocess.run(["wrk", "-t1", "-c20", "-d1s", f"--timeout={PATIENCE}s", httpd.url + "/1k"], capture_output=True, text=True, check=True)
            check("Requests/sec" in done.stdout and "Non-2xx" not in done.stdout and "Socket errors" not in done.stdout,
                  done.stdout)
        if shutil.which("h2load"):
            done = subprocess.run(["h2load", "--h1", "-n500", "-c10", httpd.url + "/1k"], capture_output=True, text=True,
                                  check=True)
            check("500 succeeded, 0 failed, 0 errored, 0 timeout" in done.stdout, done.stdout)
    return absent


def plain_text_is_rejected():
    with Httpd({"a": TEXT}, ["--log", "-"], tls=True) as httpd:
        with httpd.client() as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            said = read_all(client)
            check(said == b"" or said[:1] == b"\x15", "it answers neither with nothing nor with an alert:", said)
        httpd.out.expect(r'^127\.0\.0\.1 - - \[[^]]+\] "-" 400 0 ')
        equal(httpd.idle()["requests"], 0)
        equal(httpd.curl("URL/a"), TEXT)


def a_handshake_has_its_time():
    with Httpd({"a": TEXT}, ["--header-timeout", "0.2"], tls=True) as httpd:
        with httpd.client() as silent:
            equal(read_all(silent), b"")
        equal(httpd.idle()["requests"], 0)


# ---- Reload and shutdown ----


def certificates_are_read_again_while_a_connection_stays():
    path = os.path.join(Httpd.certificates, "site.pem")
    shutil.copy(certificate("good"), path)
    with Httpd({"a": TEXT}, ["--tls-cert", path]) as httpd:
        with connect(httpd) as before:
            first = number_of(before)
            shutil.copy(certificate("other"), path)
            httpd.reload()
            ask(before, "/a")
            equal(Response(before).body, TEXT)
            with connect(httpd) as after:
                check(number_of(after) != first, "the certificate is still the old one")
                ask(after, "/a")
                equal(Response(after).body, TEXT)
                last = number_of(after)
            # a bad certificate changes nothing
            with open(path, "w", encoding="ascii") as file:
                file.write("nothing\n")
            httpd.reload()
            httpd.err.expect("^httpd: .*site.pem: ")
            with connect(httpd) as again:
                equal(number_of(again), last)
            ask(before, "/a")
            equal(Response(before).body, TEXT)


def sessions_outlive_a_reload():
    with Httpd({"a": TEXT}, tls=True) as httpd:
        context = ssl.create_default_context(cafile=certificate("authority"))
        with context.wrap_socket(httpd.client(), server_hostname="localhost") as client:
            ask(client, "/a")
            equal(Response(client).body, TEXT)
            session = client.session
        httpd.reload()
        with context.wrap_socket(httpd.client(), server_hostname="localhost", session=session) as client:
            ask(client, "/a")
            equal(Response(client).body, TEXT)
            check(client.session_reused, "it was not resumed")


def a_download_is_finished_when_it_is_stopped():
    with Httpd({"large": LARGE * 8}, tls=True) as httpd, connect(httpd) as client, connect(httpd) as idle:
        ask(client, "/large")
        response = Response(client, has_body=False)
        read_exactly(client, 100000)
        ask(idle, "/nothing")
        equal(Response(idle).status, 404)
        httpd.signal(signal.SIGTERM)
        wait_until_closed(httpd.port)
        equal(read_all(idle), b"", "an idle connection ends at once, by close_notify,")
        check(httpd.process.poll() is None, "it has not waited")
        read_exactly(client, response.length - 100000)
        equal(read_all(client), b"")
        equal(httpd.wait(), 0)


def a_shrunken_file_is_distinguished_from_a_whole_one():
    with Httpd({"large": LARGE * 8}, tls=True) as httpd, connect(httpd) as client:
        ask(client, "/large")
        response = Response(client, has_body=False)
        read_exactly(client, 100000)
        os.truncate(httpd.path("large"), 4096)
        try:
            size = len(read_all(client))
        except (ssl.SSLError, ConnectionError):
            size = 0
        check(size < response.length - 100000, "it has sent more than there is")
        equal(httpd.curl("-r", "0-9", "URL/large"), LARGE[:10])


run(tests_of(dict(globals())), sys.argv[1:])
