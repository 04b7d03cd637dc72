#!/usr/bin/env python3
"""Tests TLS between the proxy, its clients and its servers: tls_test.py PROGRAM [TEST...]."""

import os
import resource
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile

from harness import Proxy, Server, check, equal, is_reset, read_exactly, run, tests_of
from http_messages import configuration, respond, web, named, get, status_of


class Authority:
    """Certificates in a temporary directory."""

    def __init__(self, parent=None):
        self.parent = parent

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="proxy-test-", dir=self.parent)
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.directory, check=True, capture_output=True)

    def path(self, name):
        return f"{self.directory}/{name}"

    def issue(self, file, names):
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={file}",
                     "-keyout", f"{file}.key", "-out", f"{file}.csr")
        with open(self.path("extensions"), "w", encoding="ascii") as extensions:
            extensions.write(f"subjectAltName={names}\n")
        self.openssl("x509", "-req", "-in", f"{file}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days",
                     "2", "-extfile", "extensions", "-out", f"{file}.pem")
        return self.path(f"{file}.pem"), self.path(f"{file}.key")

    def client(self, proxy, name):
        context = ssl.create_default_context(cafile=self.path("ca.pem"))
        return context.wrap_socket(proxy.client(), server_hostname=name)


def without_tls():
    if not shutil.which("openssl"):
        return "openssl is not installed"
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("listen 127.0.0.1:0\nto web\nbackend web\ntls verify off\nserver 127.0.0.1:1\n")
        file.flush()
        done = subprocess.run([Proxy.program, "--check", file.name], capture_output=True, text=True, check=False)
    return "the proxy was built without TLS" if "without TLS" in done.stderr else None


def clients_have_tls():
    if why := without_tls():
        return why
    seen = []

    def answer(message, connection):
        seen.append(message.get("X-Forwarded-Proto"))
        respond(connection, body=b"x" * 100000)

    with Authority() as authority, Server(web(answer)) as server:
        one, two = authority.issue("one", "DNS:one.test"), authority.issue("two", "DNS:two.test,DNS:*.two.test")
        listen = f"certificate {one[0]} {one[1]}\ncertificate {two[0]} {two[1]}"
        with Proxy(configuration(server.name, listen=listen)) as proxy:
            for name in ("one.test", "two.test", "www.two.test"):
                with authority.client(proxy, name) as client:
                    for _ in range(3):
                        equal(len(get(client, host=name).body), 100000)
            equal(set(seen), {"https"})
            with proxy.client() as client:  # no TLS
                client.sendall(b"GET / HTTP/1.1\r\n\r\n")
                is_reset(client)
            proxy.out.expect("rejected .* TLS: ")
            # the certificate changes
            three = authority.issue("three", "DNS:three.test")
            with authority.client(proxy, "one.test") as old:
                proxy.configure(configuration(server.name, listen=f"certificate {three[0]} {three[1]}"))
                proxy.signal(signal.SIGHUP)
                while True:
                    try:
                        with authority.client(proxy, "three.test") as client:
                            equal(len(get(client, host="x").body), 100000)
                            break
                    except ssl.SSLCertVerificationError:
                        pass
                equal(len(get(old, host="x").body), 100000)
    return None


def a_status_is_stapled_and_secrets_are_logged():
    if why := without_tls():
        return why
    request = b"GET / HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n"
    with Authority() as authority, Server(web(lambda _, connection: respond(connection, body=b"whole"))) as server:
        chain, key = authority.issue("one", "DNS:one.test")
        serial = subprocess.run(["openssl", "x509", "-in", chain, "-noout", "-serial"], capture_output=True, text=True,
                                check=True).stdout.strip().split("=")[1]
        with open(authority.path("index"), "w", encoding="ascii") as file:
            file.write(f"V\t491231235959Z\t\t{serial}\tunknown\t/CN=one\n")
        authority.openssl("ocsp", "-index", "index", "-CA", "ca.pem", "-rsigner", "ca.pem", "-rkey", "ca.key", "-issuer", "ca.pem",
                          "-cert", chain, "-respout", "status.der", "-ndays", "1", "-noverify")
        listen = f"certificate {chain} {key}\nocsp {authority.path('status.der')}\nkey-log {authority.path('secrets')}"
        with Proxy(configuration(server.name, listen=listen)) as proxy:
            done = subprocess.run(
                ["openssl", "s_client", "-connect", f"127.0.0.1:{proxy.port}", "-servername", "one.test", "-CAfile",
                 authority.path("ca.pem"), "-tls1_3", "-status", "-ign_eof"], input=request, capture_output=True, check=True)
            check(b"whole" in done.stdout and b"Cert Status: good" in done.stdout, done.stdout)
        with open(authority.path("secrets"), encoding="ascii") as file:
            check("CLIENT_TRAFFIC_SECRET_0 " in file.read())
    return None


def sessions_are_resumed_after_a_reload():
    if why := without_tls():
        return why
    request = b"GET / HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n"
    with Authority() as authority, Server(web(lambda _, connection: respond(connection, body=b"whole"))) as server:
        chain, key = authority.issue("one", "DNS:one.test")
        text = configuration(server.name, listen=f"certificate {chain} {key}")

        def speak(proxy, version, *session):
            done = subprocess.run(
                ["openssl", "s_client", "-connect", f"127.0.0.1:{proxy.port}", "-servername", "one.test", "-CAfile",
                 authority.path("ca.pem"), version, "-ign_eof", *session], input=request, capture_output=True, check=True)
            check(b"whole" in done.stdout, done.stdout)
            return b"Reused, TLS" in done.stdout

        for version in ("-tls1_3", "-tls1_2"):
            with Proxy(text) as proxy:
                equal(speak(proxy, version, "-sess_out", authority.path("session")), False)
                for _ in range(2):
                    proxy.signal(signal.SIGHUP)
                    proxy.out.expect("the configuration was reloaded")
                    equal(speak(proxy, version, "-sess_in", authority.path("session"), "-sess_out",
                                authority.path("session")), True)
            with Proxy(text) as proxy:  # another process has other ticket keys
                equal(speak(proxy, version, "-sess_in", authority.path("session")), False)
    return None


def servers_have_tls_and_are_verified():
    if why := without_tls():
        return why
    with Authority() as authority:
        chain, key = authority.issue("inside", "DNS:inside.test,IP:127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)

        def secure(connection):
            with context.wrap_socket(connection, server_side=True) as inner:
                named("inside")(inner)

        with Server(secure) as server:
            trusted = f"authorities {authority.path('ca.pem')}"
            for line, wanted in ((f"tls {trusted} name inside.test", 200), (f"tls {trusted}", 200), ("tls verify off", 200),
                                 (f"tls {trusted} name other.test", 502), ("tls", 502)):
                with Proxy(configuration(server.name, backend=line)) as proxy, proxy.client() as client:
                    before = server.served
                    for _ in range(3):
                        equal(status_of(get(client)), wanted, line)
                    if wanted == 200:
                        equal(server.served - before, 1, "connections")
    return None


def authorities_may_be_links_to_elsewhere():
    """A confined proxy looks them up when a server's certificate is verified; its files are elsewhere than it was told."""
    if why := without_tls():
        return why
    away = "/var/tmp"  # (the configuration's directory, with all below, is allowed)
    if not os.access(away, os.W_OK) or os.path.realpath(tempfile.gettempdir()) in ("/", "/var", os.path.realpath(away)):
        return "there is no other directory for temporary files"
    with Authority(away) as authority, Authority(away) as other, tempfile.TemporaryDirectory(prefix="proxy-test-") as links:
        chain, key = authority.issue("server", "DNS:localhost,IP:127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)

        def secure(connection):
            with context.wrap_socket(connection, server_side=True) as stream:
                named("inside")(stream)

        number = subprocess.run(["openssl", "x509", "-in", authority.path("ca.pem"), "-noout", "-hash"], capture_output=True,
                                text=True, check=True).stdout.strip()
        with Server(secure) as server:
            text = configuration(f"localhost:{server.port}", backend="tls")
            for target, variable, status in ((authority, "SSL_CERT_DIR", 200), (authority, "SSL_CERT_FILE", 200),
                                             (other, "SSL_CERT_DIR", 502)):
                link = f"{links}/{number}.0"
                os.symlink(target.path("ca.pem"), link)
                environment = {"SSL_CERT_DIR": "/nowhere", "SSL_CERT_FILE": "/nowhere"}
                environment[variable] = links if variable == "SSL_CERT_DIR" else link
                with Proxy(text, environment=environment) as proxy:
                    proxy.out.expect("is resolved")
                    with proxy.client() as client:
                        equal(status_of(get(client)), status, variable)
                    proxy.configure(text + "# changed\n")
                    proxy.signal(signal.SIGHUP)
                    proxy.out.expect("the configuration was reloaded")
                    with proxy.client() as client:
                        equal(status_of(get(client)), status, variable)
                os.unlink(link)
    return None


def tcp_has_tls_on_both_sides():
    if why := without_tls():
        return why
    with Authority() as authority:
        chain, key = authority.issue("both", "DNS:both.test")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)

        def secure(connection):
            with context.wrap_socket(connection, server_side=True) as inner:
                while piece := inner.recv(65536):
                    inner.sendall(piece)
                inner.unwrap()

        with Server(secure) as server:
            text = (f"listen 127.0.0.1:0\nto web\ncertificate {chain} {key}\nbackend web\n"
                    f"tls authorities {authority.path('ca.pem')} name both.test\nserver {server.name}\n")
            with Proxy(text) as proxy, authority.client(proxy, "both.test") as client:
                for _ in range(64):  # (one thread at a time may use a connection of Python's)
                    block = os.urandom(1 << 16)
                    client.sendall(block)
                    equal(read_exactly(client, len(block)) == block, True)
                client.unwrap().close()
    return None


def bad_certificates_are_reported_with_their_line():
    if why := without_tls():
        return why
    with Authority() as authority, tempfile.NamedTemporaryFile("w") as file:
        chain, _ = authority.issue("one", "DNS:one.test")
        _, key = authority.issue("two", "DNS:two.test")
        for pair in ("/nowhere/at/all", f"{chain} {key}", f"{chain} /dev/null", "/dev/null"):
            file.seek(0)
            file.truncate()
            file.write(f"listen 127.0.0.1:0\nto web\ncertificate {pair}\nbackend web\nserver 127.0.0.1:1\n")
            file.flush()
            done = subprocess.run([Proxy.program, "--check", file.name], capture_output=True, text=True, check=False)
            check(done.returncode == 1 and done.stderr.startswith(f"proxy: {file.name}:3: "), done.stderr)
    return None


def curl_is_served():
    if not shutil.which("curl"):
        return "curl is not installed"
    block = os.urandom(3 << 20)

    def answer(message, connection):
        respond(connection, body=message.body or block)

    with Server(web(answer)) as server, Proxy(configuration(server.name)) as proxy, \
            tempfile.NamedTemporaryFile() as file:
        file.write(block)
        file.flush()
        url = f"http://127.0.0.1:{proxy.port}/"
        for arguments in ((), ("--data-binary", f"@{file.name}"), ("-T", file.name), ("-T", file.name, "-H", "Expect:"),
                          ("-T", file.name, "-H", "Transfer-Encoding: chunked")):
            done = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments, url], capture_output=True, check=False)
            equal((done.returncode, done.stderr), (0, b""))
            check(done.stdout == block, len(done.stdout))
    return None


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    run(tests_of(globals()), sys.argv[1:])
