#!/usr/bin/env python3
"""All pairs of the proxy's directives: pairs_test.py PROGRAM [TEST...].

Each configuration has a value for each directive, and together they have each pair of values of any two directives. Each is
accepted, and serves: as it is, and after a reload from the configuration before it. Prints TAP and the seed (BIDE_SEED).
"""

import itertools
import os
import random
import signal
import socket
import ssl
import sys

from harness import PATIENCE, Proxy, Server, check, equal, run, tests_of
from http2 import Http2, without_http2
from http_messages import Message, named, status_of
from tls_test import Authority, without_tls

# The values of each directive: lines of a section; "" leaves it out.
GLOBAL = {"log": ["", "log off", "log stderr"], "max-connections": ["", "max-connections 50"],
          "shutdown-timeout": ["", "shutdown-timeout 2s"], "splice": ["", "splice off"],
          "status": ["", "status 127.0.0.3:0"]}
LISTEN = {"mode": ["", "mode tcp", "mode http"], "route": ["to web", "route / web"], "accept-proxy": ["", "accept-proxy",
          "accept-proxy 127.0.0.0/8"], "of the listener": ["", "max-connections 20"], "idle-timeout": ["", "idle-timeout 50s"],
          "header-timeout": ["", "header-timeout 40s"], "rate": ["", "rate 1000", "rate 500 700"],
          "client-rate": ["", "client-rate 1000", "client-rate 500 700"],
          "redirect": ["", "redirect /old 308 https://b.test$target"],
          "request-header": ["", "request-header set X-A b", "request-header remove Accept"],
          "response-header": ["", "response-header add X-B \"c d\""],
          "forwarded": ["", "forwarded standard", "forwarded off"], "http2": ["", "http2 off"], "max-body": ["", "max-body 1000"],
          "certificate": ["", "certificate {chain} {key}"]}
BACKEND = {"balance": ["", "balance least-connections"], "sticky": ["", "sticky address", "sticky cookie S"], "server": ["server {plain}", "server {plain} weight 3 max 9"],
           "connect-timeout": ["", "connect-timeout 30s"], "response-timeout": ["", "response-timeout 35s"],
           "retries": ["", "retries 0"], "send-proxy": ["", "send-proxy v1", "send-proxy v2"], "fail": ["", "fail 0", "fail 5 1s"],
           "keep": ["", "keep 0", "keep 5 10s"], "check": ["", "check tcp every 10s", "check http /health every 10s host a"],
           "tls": ["", "tls authorities {authorities} name localhost", "tls verify off"],
           "of the backend's requests": ["", "request-header add X-A c"],
           "of the backend's responses": ["", "response-header remove X-B"], "set-host": ["", "set-host inside.test"]}
SECTIONS = (GLOBAL, LISTEN, BACKEND)
CLIENT = {"version": ["1.1", "2"]}  # of HTTP, in no section
VALUES = {name: values for section in (*SECTIONS, CLIENT) for name, values in section.items()}


def is_valid(row):
    """A TCP listener takes only `to`, and has no cookies. HTTP/2 needs a listener that speaks it."""
    if row["version"] == "2" and (row["mode"] != "mode http" or row["http2"]):
        return False
    return row["mode"] == "mode http" or not (row["route"].startswith("route") or row["redirect"] or "cookie" in row["sticky"])


def rows_of(draw):
    """Rows with a value for each directive, until all pairs that are valid are in one of them."""
    names = list(VALUES)
    missing = {((one, first), (other, second)) for one, other in itertools.combinations(names, 2)
               for first in VALUES[one] for second in VALUES[other]
               if is_valid({"mode": "mode http", "route": "", "redirect": "", "sticky": "", "version": "1.1", "http2": "",
                            one: first, other: second})}
    while missing:
        best, covered = None, set()
        for _ in range(20):
            (one, first), (other, second) = draw.choice(sorted(missing))
            row = {name: draw.choice(VALUES[name]) for name in names}
            row[one], row[other] = first, second
            if not is_valid(row):
                if "mode" in (one, other) and row["mode"] != "mode http":
                    row["route"], row["redirect"], row["sticky"], row["version"] = "to web", "", "", "1.1"
                else:
                    row["mode"] = "mode http"
                if row["version"] == "2" and "version" in (one, other):
                    row["http2"] = ""
                elif row["http2"]:
                    row["version"] = "1.1"
            pairs = set(itertools.combinations([(name, row[name]) for name in names], 2)) & missing
            if best is None or len(pairs) > len(covered):
                best, covered = row, pairs
        missing -= covered
        if covered:
            yield best


def text_of(row, **names):
    def lines(section):
        return "".join(row[name] + "\n" for name in section if row[name])
    return f"{lines(GLOBAL)}listen 127.0.0.1:0\n{lines(LISTEN)}backend web\n{lines(BACKEND)}".format(**names)


class Behind:
    """A server that takes requests with and without TLS and headers of the PROXY protocol, as a row says."""

    def __init__(self, context):
        self.context = context
        self.row = None
        self.server = Server(self.serve)

    def serve(self, connection):
        row = self.row
        if row["send-proxy"] == "send-proxy v1":
            while not self.read(connection, 1).endswith(b"\n"):
                pass
        elif row["send-proxy"]:
            self.read(connection, int.from_bytes(self.read(connection, 16)[14:], "big"))
        if row["tls"]:
            with self.context.wrap_socket(connection, server_side=True) as inner:
                named("good")(inner)
        else:
            named("good")(connection)

    @staticmethod
    def read(connection, size):
        data = b""
        while len(data) < size:
            piece = connection.recv(size - len(data))
            if not piece:
                raise OSError("the end")
            data += piece
        return data


def serves(proxy, row, authority):
    client = socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE)
    with client:
        if row["accept-proxy"]:
            client.sendall(b"PROXY TCP4 10.0.0.1 10.0.0.2 1000 80\r\n")
        context = authority.http2_context if row["version"] == "2" else authority.context
        stream = context.wrap_socket(client, server_hostname="localhost") if row["certificate"] else client
        if row["version"] == "2":
            http2 = Http2(stream)
            number = http2.ask("/page", "POST", ends=False)
            http2.send(number, b"body", ends=True)
            answer = http2.response(number)
            equal((answer.status, answer.body), (200, b"good"))
            return
        stream.sendall(b"POST /page HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody")
        answer = Message(stream)
    equal((status_of(answer), answer.body), (200, b"good"))


def wait_for_server(proxy, name):
    """Until the proxy has the configuration with this server. (It may print statistics before a reload asked for earlier.)"""
    while not any(key.endswith("/" + name) for key in proxy.statistics()):
        pass


def has_each_pair():
    seed = int(os.environ.get("BIDE_SEED", "0") or 0) or random.SystemRandom().randrange(1, 1 << 31)
    print(f"# BIDE_SEED={seed}", flush=True)
    if why := without_tls():
        return why
    if without_http2():
        VALUES["version"].remove("2")
    rows = list(rows_of(random.Random(seed)))
    with Authority() as authority:
        chain, key = authority.issue("server", "DNS:localhost,IP:127.0.0.1")
        authority.context = ssl.create_default_context(cafile=authority.path("ca.pem"))
        authority.http2_context = ssl.create_default_context(cafile=authority.path("ca.pem"))
        authority.http2_context.set_alpn_protocols(["h2"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        behind, next_behind = Behind(context), Behind(context)
        names = {"chain": chain, "key": key, "authorities": authority.path("ca.pem")}
        with behind.server, next_behind.server:
            for number, row in enumerate(rows):
                behind.row, next_behind.row = row, rows[number - 1]
                text = text_of(row, plain=behind.server.name, **names)
                try:
                    with Proxy(text) as proxy:
                        serves(proxy, row, authority)
                        row = rows[number - 1]
                        text = text_of(row, plain=next_behind.server.name, **names)
                        proxy.configure(text)
                        proxy.signal(signal.SIGHUP)
                        wait_for_server(proxy, next_behind.server.name)
                        serves(proxy, row, authority)
                        check(not [line for line in proxy.err.seen if "certificate" in line], proxy.err.seen)
                except BaseException:
                    sys.stderr.write(f"row {number}:\n{text}\n")
                    raise
    return None


def every_directive_has_its_values():
    """What the man page describes is in the table above."""
    page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../programs/proxy/bide-proxy.1")
    with open(page, encoding="utf-8") as file:
        text = file.read().replace("\\-", "-")
    text = text[text.index(".SH CONFIGURATION"):text.index(".SH SIGNALS")]
    described = {line.split()[1].strip('"') for line in text.splitlines() if line.startswith((".BI ", ".BR ")) and
                 line.split()[1].strip('"') not in ("rise", "fall", "max", "host", "name")}
    # (those that need an external file or a reader: http and tls tests have them)
    equal(sorted(described - set(VALUES) - {"to", "ocsp", "key-log"}), [])


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
