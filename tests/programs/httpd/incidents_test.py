#!/usr/bin/env python3
"""The error log of httpd: refused requests, failures of TLS, and errors of the server, and nothing else.

incidents_test.py HTTPD [TEST...]
"""

import os
import socket
import ssl
import sys
import tempfile

from harness import Httpd, Response, ask, certificate, check, equal, missing, read_all, run, tests_of

TEXT = b"0123456789"
TIME = r"^\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "


def say(httpd, data):
    """Sends the bytes, and waits for the end of the connection."""
    with httpd.client() as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        return read_all(client)


def refused_requests_are_logged_on_standard_error():
    with Httpd({"a": TEXT}) as httpd:
        equal(httpd.curl("URL/a"), TEXT)
        check(say(httpd, b"GET /a HTTP/9.1\r\nHost: a\r\n\r\n").startswith(b"HTTP/1.1 505 "))
        httpd.err.expect(TIME + r'127\.0\.0\.1 505 "GET /a HTTP/9.1" the version is unknown$')
        check(say(httpd, b"\x16\x03\x01\x02\x00\x01\n").startswith(b"HTTP/1.1 400 "))
        httpd.err.expect(TIME + r'127\.0\.0\.1 400 "\\x16\\x03\\x01\\x02\\x00\\x01" the request is invalid$')
        check(say(httpd, b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n").startswith(b"HTTP/1.1 404 "))
        statistics = httpd.idle()
        equal((statistics["incidents"], statistics["suppressed-incidents"]), (2, 0))
        equal(httpd.stop()[1], [])


def an_error_of_the_server_is_logged_with_its_number():
    """A file becomes shorter while it is sent."""
    size = 50_000_000
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "errors")
        with Httpd({"huge": b""}, ["--error-log", path]) as httpd, httpd.client() as client:
            os.truncate(httpd.path("huge"), size)
            ask(client, "/huge")
            equal(Response(client, has_body=False).length, size)
            os.truncate(httpd.path("huge"), 1)
            check(len(read_all(client)) < size)
            equal(httpd.stop()[1], [])
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        equal(len(lines), 1, lines)
        check(lines[0].endswith(' 127.0.0.1 200 "GET /huge HTTP/1.1" error 61: No data available'), lines)


def failures_of_tls_are_logged():
    lacking = missing("openssl")
    if lacking:
        return lacking
    with Httpd({"a": TEXT}, tls=True) as httpd:
        say(httpd, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        httpd.err.expect(TIME + r'127\.0\.0\.1 - "-" TLS handshake: .*http request.*: error 71: Protocol error$')
        context = ssl.create_default_context()  # which does not trust the authority of the test
        try:
            with context.wrap_socket(httpd.client(), server_hostname="localhost"):
                check(False, "the certificate is trusted")
        except ssl.SSLCertVerificationError:
            pass
        httpd.err.expect(TIME + r'127\.0\.0\.1 - "-" TLS handshake: .*unknown ca.*: error 121: Remote I/O error$')
        context = ssl.create_default_context(cafile=certificate("authority"))
        with context.wrap_socket(httpd.client(), server_hostname="localhost") as client:
            client.sendall(b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n")
            equal(Response(client).status, 501)
        httpd.err.expect(TIME + r'127\.0\.0\.1 501 "BREW / HTTP/1.1" the method or coding is unknown$')
    with Httpd({"a": TEXT}, ["--header-timeout", "0.1"], tls=True) as httpd, httpd.client() as client:
        equal(read_all(client), b"")
        httpd.err.expect(TIME + r'127\.0\.0\.1 - "-" TLS handshake: too slow: error 110: Connection timed out$')
    return None


def a_client_cannot_fill_the_disk():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "errors")
        with Httpd({"a": TEXT}, ["--error-log", path]) as httpd:
            for _ in range(400):
                say(httpd, b"GET /" + b"\x01" * 3000 + b"\r\n\r\n")
            statistics = httpd.idle()
            equal(statistics["bad-requests"], 400)
            check(statistics["suppressed-incidents"] > 0, statistics)
            httpd.stop()
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        equal(len(lines), statistics["incidents"])
        check(all(len(line) < 1024 for line in lines))
        further = sum(" further incidents before this one: " in line for line in lines)
        equal(len(lines) - further + statistics["suppressed-incidents"], 400)


def the_error_log_is_opened_anew():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "errors")
        with Httpd({"a": TEXT}, ["--error-log", path, "--log", os.path.join(directory, "log")]) as httpd:
            say(httpd, b"BREW /1 HTTP/1.1\r\n\r\n")
            httpd.idle()
            httpd.reload()  # (threads for files may have been started by that, with a descriptor)
            descriptors = httpd.descriptors()
            os.rename(path, path + ".1")
            httpd.reload()
            check(os.path.exists(path), "it was not opened anew")
            equal(httpd.descriptors(), descriptors, "the old log is open, descriptors:")
            say(httpd, b"BREW /2 HTTP/1.1\r\n\r\n")
            equal(httpd.stop()[1], [])
        lines = []
        for name in (path + ".1", path):
            with open(name, encoding="ascii") as file:
                lines += file.read().splitlines()
        check([line.split('"')[1] for line in lines] == ["BREW /1 HTTP/1.1", "BREW /2 HTTP/1.1"], lines)


def a_dash_is_standard_output():
    with Httpd({"a": TEXT}, ["--error-log", "-", "--log", "-"]) as httpd:
        say(httpd, b"GET /a HTTP/9.1\r\nHost: a\r\n\r\n")
        httpd.out.expect(TIME + r'127\.0\.0\.1 505 "GET /a HTTP/9.1" the version is unknown$')
        httpd.reload()
        say(httpd, b"BREW /b HTTP/1.1\r\n\r\n")
        httpd.out.expect(TIME + r'127\.0\.0\.1 501 "BREW /b HTTP/1.1" ')
        equal(httpd.stop()[1], [])
    check(not os.path.exists("-"), "it is a file")


def an_error_log_that_cannot_be_opened_is_reported():
    with tempfile.TemporaryDirectory() as directory:
        logs = os.path.join(directory, "logs")
        os.mkdir(logs)
        with Httpd({"a": TEXT}, ["--error-log", os.path.join(logs, "errors")]) as httpd:
            os.rename(logs, logs + ".1")
            httpd.reload()
            httpd.err.expect("^httpd: .*errors: No such file or directory$")
            equal(httpd.curl("URL/a"), TEXT)


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
