#!/usr/bin/env python3
"""httpd with few descriptors: clients that hold as many as they can leave those of the others.

budgets_test.py HTTPD [TEST...]
"""

import os
import ssl
import struct
import sys

from harness import Httpd, Response, ask, certificate, check, equal, missing, read_exactly, run, speaks_http2, tests_of

HUGE = 100_000_000
REFUSED_STREAM = 7

HEADERS, RST_STREAM, SETTINGS = 1, 3, 4


class NoHttp2(Exception):
    pass


class Http2:
    """A client of HTTP/2 that never opens a window, so that each response, and its file, stays."""

    def __init__(self, connection):
        self.connection = connection
        self.streams = 0
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(SETTINGS, 0, 0, struct.pack("!HI", 4, 0)))

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload

    def ask(self, paths):
        """Requests them at once. Returns the statuses: those of responses, and -7 if the stream was refused."""
        first = 2 * self.streams + 1
        wanted = {first + 2 * number: path.encode() for number, path in enumerate(paths)}
        self.streams += len(wanted)
        self.connection.sendall(b"".join(  # (:method GET, :scheme http, :authority a, :path)
            self.frame(HEADERS, 0x5, stream, b"\x82\x86\x01\x01a\x04" + bytes([len(path)]) + path)
            for stream, path in wanted.items()))
        seen = {}
        while len(seen) < len(wanted):
            head = read_exactly(self.connection, 9)
            if head == b"HTTP/1.1 ":
                raise NoHttp2
            payload = read_exactly(self.connection, int.from_bytes(head[:3], "big"))
            kind, stream = head[3], int.from_bytes(head[5:], "big")
            if kind == HEADERS:
                seen[stream] = 200 if payload[0] == 0x88 else 404 if payload[0] == 0x8d else 500 if payload[0] == 0x8e else 503
            elif kind == RST_STREAM:
                seen[stream] = -int.from_bytes(payload, "big")
            elif kind == SETTINGS and head[4] == 0:
                self.connection.sendall(self.frame(SETTINGS, 1, 0, b""))
        return list(seen.values())


def holds(httpd):
    """Of all kinds, and of the process."""
    return len(os.listdir(f"/proc/{httpd.process.pid}/fd"))


def sparse(httpd, count):
    """Files none of whose bytes are in memory."""
    for number in range(count):
        httpd.write(f"{number}", b"")
        os.truncate(httpd.path(f"{number}"), HUGE)


def crowd(httpd, limit, connect):
    """12 clients with 100 requests each, and then as many clients as are admitted. Each one of them is served."""
    most = int(httpd.err.expect(r"only (\d+) connections").group(1))
    sparse(httpd, most)
    greedy = [Http2(connect("h2")) for _ in range(12)]
    statuses = [client.ask([f"/{number}" for number in range(100)]) for client in greedy]
    check(all(200 in some for some in statuses), "a connection has no request:", statuses)
    check(all(set(some) <= {200, -REFUSED_STREAM} for some in statuses), statuses)
    streams = sum(some.count(200) for some in statuses)
    check(most // 4 + 1 <= streams <= most // 4 + 12, "streams:", streams, most)
    check(holds(httpd) <= limit, holds(httpd))
    equal(greedy[0].ask(["/0"]), [-REFUSED_STREAM])
    others = []
    for number in range(12, most):
        client = connect("h2" if number % 3 == 0 else "http/1.1")
        if number % 3 == 0:
            others.append(Http2(client))
            equal(others[-1].ask([f"/{number}"]), [200], "HTTP/2, client", number)
        else:
            others.append(client)
            ask(client, f"/{number}")
            equal(Response(client, has_body=False).status, 200, "client", number)
            read_exactly(client, 1000)
    statistics = httpd.statistics()
    equal((statistics["live"], statistics["pauses"], statistics["errors"]), (most, 0, 0))
    check(holds(httpd) <= limit, holds(httpd))
    for client in others + greedy:
        getattr(client, "connection", client).close()
    httpd.idle()


def few_descriptors(limit, *options, **more):
    return Httpd({"a": b"a"}, ["--connections", "100000", "--idle-timeout", "1000", *options],
                 prefix=["prlimit", f"--nofile={limit}:{limit}"], **more)


def streams_of_some_clients_leave_descriptors_to_the_others():
    lacking = missing("prlimit")
    if lacking:
        return lacking
    with few_descriptors(512) as httpd:
        try:
            crowd(httpd, 512, lambda _: httpd.client())
        except NoHttp2:
            return "httpd was built without HTTP/2"
        equal(httpd.curl("URL/a"), b"a")
    return None


def streams_over_tls_leave_descriptors_to_the_others():
    lacking = missing("prlimit", "openssl")
    if lacking:
        return lacking
    if not speaks_http2():
        return "curl or httpd was built without HTTP/2 or TLS"
    with few_descriptors(300, tls=True) as httpd:
        def connect(protocol):
            context = ssl.create_default_context(cafile=certificate("authority"))
            context.set_alpn_protocols([protocol])
            return context.wrap_socket(httpd.client(), server_hostname="localhost")

        crowd(httpd, 300, connect)
        equal(httpd.curl("URL/a"), b"a")
    return None


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
