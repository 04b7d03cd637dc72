#!/usr/bin/env python3
"""Tests the proxy's checks of its servers, over each transport that a backend may have: health_test.py PROGRAM [TEST...]."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

from harness import PATIENCE, Proxy, Server, check, equal, read_exactly, run, tests_of
from harness import tcp_configuration
from http_messages import Message, configuration, get, respond, status_of
from tls_test import Authority, without_tls

OFTEN = "every 20ms timeout 10s rise 1 fall 1"


class LocalServer(Server):
    """The same at a Unix socket."""

    def __init__(self, serve, path):  # pylint: disable=super-init-not-called
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        self.name = f"unix:{path}"
        self.served = 0
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(serve,), daemon=True)
        self.thread.start()

    def accept(self):
        connection, _ = self.socket.accept()
        connection.settimeout(PATIENCE)
        return connection


class Checked:
    """Serves requests over one transport. While it is not well, its checks get a 503."""

    def __init__(self, context=None, header=None):
        self.context, self.header = context, header
        self.is_well = False
        self.hosts = set()
        self.headers = set()

    def __call__(self, connection):
        if self.header == "v1":
            line = b""
            while not line.endswith(b"\r\n"):
                line += read_exactly(connection, 1)
            self.headers.add(line)
        elif self.header == "v2":
            head = read_exactly(connection, 16)
            self.headers.add(head[12:14])
            read_exactly(connection, int.from_bytes(head[14:], "big"))
        if self.context:
            with self.context.wrap_socket(connection, server_side=True) as inner:
                self.serve(inner)
        else:
            self.serve(connection)

    def serve(self, connection):
        while True:
            try:
                message = Message(connection)
            except EOFError:
                return
            if message.line.startswith("GET /health "):
                self.hosts.add((message.get("Host"), message.get("Connection")))
                respond(connection, "200 OK" if self.is_well else "503 ill")
            else:
                respond(connection, body=message.get("Host").encode())


def goes_down_and_comes_up(server, serve, backend):
    """A check that fails, one that passes, and then a request over the same transport."""
    lines = f"{backend}\ncheck http /health host here.test {OFTEN}"
    with Proxy(configuration(server.name, backend=lines)) as proxy:
        proxy.out.expect("is down: bad response to the check")
        serve.is_well = True
        proxy.out.expect("is up")
        with proxy.client() as client:
            equal(status_of(get(client)), 200, backend)
    equal(serve.hosts, {("here.test", "close")}, backend)


def checks_use_headers_of_the_proxy_protocol():
    for version, unknown in (("v1", b"PROXY UNKNOWN\r\n"), ("v2", b"\x20\x00")):
        serve = Checked(header=version)
        with Server(serve) as server:
            goes_down_and_comes_up(server, serve, f"send-proxy {version}")
        check(unknown in serve.headers, serve.headers)
        check(version == "v1" or b"\x21\x11" in serve.headers, "no request of a client:", serve.headers)


def checks_use_unix_sockets():
    serve = Checked()
    with tempfile.TemporaryDirectory() as directory, LocalServer(serve, os.path.join(directory, "server")) as server:
        goes_down_and_comes_up(server, serve, "")


def a_unix_socket_has_a_host_in_checks_and_requests():
    serve = Checked()
    serve.is_well = True
    with tempfile.TemporaryDirectory() as directory, LocalServer(serve, os.path.join(directory, "server")) as server:
        with Proxy(configuration(server.name, backend=f"check http /health {OFTEN}")) as proxy:
            while not serve.hosts:
                check(server.error is None, server.error)
                proxy.statistics()
            with proxy.client() as client:
                equal(get(client, host="", version="1.0").body, b"localhost")
    equal(serve.hosts, {("localhost", "close")})


class Server6(Server):
    """The same at an address of IPv6."""

    def __init__(self, serve):  # pylint: disable=super-init-not-called
        self.socket = socket.socket(socket.AF_INET6)
        self.socket.bind(("::1", 0))
        self.socket.listen()
        self.port = self.socket.getsockname()[1]
        self.served = 0
        self.error = None
        threading.Thread(target=self.run, args=(serve,), daemon=True).start()


def a_zone_is_no_part_of_a_host():
    """The zone of an address means something on this machine only (RFC 6874, 1)."""
    serve = Checked()
    serve.is_well = True
    try:
        server = Server6(serve)
    except OSError as why:
        return f"no IPv6: {why}"
    with server:
        name = f"[::1%{socket.if_indextoname(1)}]:{server.port}"
        with Proxy(configuration(name, backend=f"check http /health {OFTEN}")) as proxy:
            while not serve.hosts:
                check(server.error is None, server.error)
                proxy.statistics()
            with proxy.client() as client:
                equal(get(client, host="", version="1.0").body, f"[::1]:{server.port}".encode())
    equal(serve.hosts, {(f"[::1]:{server.port}", "close")})
    return None


class Silent:
    """Reads what comes, and answers nothing. `arrived` is set once a connection has sent `size` bytes, and `ended` at its end."""

    def __init__(self, size):
        self.size = size
        self.arrived, self.ended = threading.Event(), threading.Event()

    def __call__(self, connection):
        count = 0
        while piece := connection.recv(4096):
            count += len(piece)
            if count >= self.size:
                self.arrived.set()
        self.ended.set()


def a_check_in_progress_is_cancelled():
    """Behind its connect: as it waits for an answer, or in its handshake. By a reload, and by the end of the proxy."""
    kinds = [("check http /health every 1h timeout 1h", 16), ("send-proxy v2\ncheck http / every 1h timeout 1h", 32)]
    if not without_tls():
        kinds += [(f"tls verify off\ncheck {kind} every 1h timeout 1h", 50) for kind in ("tcp", "http /health")]
    for lines, size in kinds:
        for ends in (False, True):
            serve = Silent(size)
            with Server(serve) as server, Server() as other:
                with Proxy(tcp_configuration(server.name, backend=lines)) as proxy:
                    check(serve.arrived.wait(PATIENCE), "no check has come", lines)
                    if ends:
                        proxy.signal(signal.SIGTERM)
                        equal(proxy.wait(), 0)
                    else:
                        proxy.configure(tcp_configuration(other.name))
                        proxy.signal(signal.SIGHUP)
                        proxy.out.expect("the configuration was reloaded")
                    check(serve.ended.wait(PATIENCE), "the connection of the check is still open", lines)
                    equal([line for line in proxy.out.seen if "is down" in line], [], lines)
                equal(server.error, None)


def checks_use_tls():
    if why := without_tls():
        return why
    with Authority() as authority:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("inside", "DNS:inside.test"))
        trusted = f"tls authorities {authority.path('ca.pem')}"
        for backend in (f"{trusted} name inside.test", "tls verify off", f"{trusted} name inside.test\nsend-proxy v2"):
            serve = Checked(context, "v2" if "v2" in backend else None)
            with Server(serve) as server:
                goes_down_and_comes_up(server, serve, backend)
        serve = Checked(context)
        with tempfile.TemporaryDirectory() as directory, LocalServer(serve, os.path.join(directory, "server")) as server:
            goes_down_and_comes_up(server, serve, f"{trusted} name inside.test")
    return None


def a_server_without_the_certificate_is_down():
    """Both kinds of check verify the name; and a server that speaks no TLS is down."""
    if why := without_tls():
        return why
    with Authority() as authority:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("inside", "DNS:inside.test"))
        trusted = f"tls authorities {authority.path('ca.pem')}"
        for kind in ("tcp", "http /health"):
            serve = Checked(context)
            serve.is_well = True
            with Server(serve) as server:
                text = f"{trusted} name other.test\ncheck {kind} {OFTEN}"
                with Proxy(configuration(server.name, backend=text)) as proxy:
                    proxy.out.expect(f"server web/{server.name} is down: TLS: .*mismatch")
                    proxy.configure(configuration(server.name, backend=text.replace("other.test", "inside.test")))
                    proxy.signal(signal.SIGHUP)
                    proxy.out.expect(f"server web/{server.name} is up")
            with Server(lambda connection: connection.sendall(b"220 mail.test ESMTP\r\n")) as server:
                with Proxy(configuration(server.name, backend=f"tls verify off\ncheck {kind} {OFTEN}")) as proxy:
                    proxy.out.expect(f"server web/{server.name} is down: TLS: ")
    return None


def health_is_what_a_page_says():
    """In mode tcp: the servers are checked by HTTP all the same."""
    response = [b"HTTP/1.1 200 OK\r\n\r\n"]

    def page(connection):
        request = connection.recv(4096)
        check(request.startswith(b"GET /health HTTP/1.1\r\nHost: here\r\n"), request)
        for begin in range(0, len(response[0]), max(1, len(response[0]) // 40)):
            connection.sendall(response[0][begin:begin + max(1, len(response[0]) // 40)])

    with Server(page) as server:
        line = f"check http /health host here {OFTEN}"
        with Proxy(tcp_configuration(server.name, backend=line)) as proxy:
            for bad, good in ((b"HTTP/1.1 503 no\r\n\r\n", b"HTTP/1.0 204 fine\r\n\r\n"),
                              (b"HTTP/1.1 2\r\n\r\n", b"HTTP/1.1 399 x\r\nLocation: /\r\n\r\n"),
                              (b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n", b"HTTP/1.1 100 x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
                              (b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 90 + b"\r\n"),
                              (b"", b"HTTP/1.1 200 OK\r\nA: " + b"x" * 10000 + b"\r\n\r\n"),
                              (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 101 + b"\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
                              (b"HTTP/1.1 101 x\r\nUpgrade: y\r\nConnection: upgrade\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n")):
                response[0] = bad
                proxy.out.expect("is down: bad response to the check")
                response[0] = good
                proxy.out.expect("is up")


def a_check_that_cannot_be_requested_is_an_error():
    for line in ('check http "/a b"', "check http /a host a/b"):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(f"listen 127.0.0.1:0\nto web\nbackend web\nserver 127.0.0.1:1\n{line}\n")
            file.flush()
            done = subprocess.run([Proxy.program, "--check", file.name], capture_output=True, text=True, check=False)
        equal((done.returncode, done.stderr), (1, f"proxy: {file.name}:3: check http: the path or the host is not valid\n"))


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
