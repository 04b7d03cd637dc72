#!/usr/bin/env python3
"""Tests the proxy's status page and metrics: status_test.py PROGRAM [TEST...]. Prints TAP."""

import os
import re
import signal
import socket
import sys
import tempfile
import time

from harness import PATIENCE, Proxy, Server, check, equal, free_port, greeter, read_all, run, tests_of, wait_until_closed

SERVER = "bide_proxy_server_"


def page_server(status="200 OK", body="a page"):
    """Answers each connection once."""

    def serve(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return
            data += piece
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())

    return serve


def configuration(*servers, mode="http", backend="", name="web", status="status 127.0.0.3:0"):
    lines = "".join(f"server {server}\n" for server in servers)
    return f'{status}\nlisten 127.0.0.1:0\nmode {mode}\nto "{name}"\nbackend "{name}"\n{backend}\n{lines}'


def request(address, path="/", method="GET"):
    """The status of a response, its head, and its body."""
    if not isinstance(address, str):  # an address, or a port
        client = socket.create_connection(address if isinstance(address, tuple) else ("127.0.0.1", address), timeout=PATIENCE)
    else:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect(address)
    with client:
        client.sendall(f"{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body.decode()


def status_of(proxy):
    """The address of the page."""
    found = proxy.out.expect(r"^status .* on ([\d.]+):\d+, port (\d+)$")
    return found.group(1), int(found.group(2))


def metrics(address):
    """All samples; each belongs to a described metric, and is there once."""
    status, head, text = request(address, "/metrics")
    equal(status, 200)
    check("text/plain; version=0.0.4" in head, head)
    check(text.endswith("\n"), text)
    samples, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            check(name not in types, "described twice:", name)
            types[name] = kind
            continue
        if line.startswith("# HELP "):
            continue
        found = re.fullmatch(r'([a-z_]+)(\{(?:[a-z]+="(?:[^"\\]|\\["\\n])*",?)+\})? ([0-9.]+)', line)
        check(found, "no sample:", line)
        name = found.group(1)
        if name not in types:
            name = re.sub("_(bucket|sum|count)$", "", name)
            equal(types.get(name), "histogram", line)
        check(found.group(1) + (found.group(2) or "") not in samples, "twice:", line)
        samples[found.group(1) + (found.group(2) or "")] = float(found.group(3))
    return samples


def until(address, condition):
    """Metrics that fulfil it: a request is counted after its response was sent."""
    end = time.monotonic() + PATIENCE
    while not condition(found := metrics(address)):
        check(time.monotonic() < end, "it does not become true:", found)
    return found


def of(server, name, more="", backend="web"):
    return f'{SERVER}{name}{{backend="{backend}",server="{server}"{more}}}'


# ---- Tests ----


def requests_are_counted_by_server():
    closed = f"127.0.0.1:{free_port()}"
    with Server(page_server()) as good, Server(page_server("404 Not Found", "none")) as other:
        with Proxy(configuration(good.name, other.name, closed, backend="fail 0")) as proxy:
            page = status_of(proxy)
            found = metrics(page)
            equal(found["bide_proxy_requests_total"], 0)
            equal(found["bide_proxy_connections_total"], 0, "the page's own connections do not count")
            codes = [request(proxy.port)[0] for _ in range(12)]
            equal(sorted(set(codes)), [200, 404])
            found = until(page, lambda all: sum(all[of(s.name, "response_seconds_count")] for s in (good, other)) == 12)
            equal(found["bide_proxy_requests_total"], 12)
            equal(found["bide_proxy_connections_total"], 12)
            equal(found[of(good.name, "responses_total", ',code="2xx"')], codes.count(200))
            equal(found[of(other.name, "responses_total", ',code="4xx"')], codes.count(404))
            equal(found[of(good.name, "bytes_out_total")], 6 * codes.count(200))
            refused = found[of(closed, "errors_total", ',kind="refused"')]
            check(refused >= 1, found)
            equal(found["bide_proxy_retries_total"], refused)
            equal(found[of(closed, "errors_total", ',kind="timeout"')], 0)
            for server in (good, other):
                buckets = [value for name, value in found.items()
                           if name.startswith(of(server.name, "response_seconds_bucket", ',le="')[:-1])]
                equal(len(buckets), 15)
                equal(buckets, sorted(buckets), "buckets are cumulative")
                equal(buckets[-1], found[of(server.name, "response_seconds_count")])
                equal(found[of(server.name, "up")], 1)
                equal(found[of(server.name, "connections")], 0)


def other_paths_and_methods_are_refused():
    with Server(page_server()) as server, Proxy(configuration(server.name)) as proxy:
        page = status_of(proxy)
        status, head, text = request(page)
        equal(status, 200)
        check("text/html" in head and "Content-Security-Policy: default-src 'none'" in head, head)
        check(f"<td>{server.name}<td class=up>up" in text, text)
        status, head, text = request(page, "/", "HEAD")
        equal((status, text), (200, ""))
        status, head, _ = request(page, "/metrics", "POST")
        equal(status, 405)
        check("Allow: GET, HEAD" in head, head)
        equal(request(page, "/other")[0], 404)
        equal(request(page, "/metrics/")[0], 404)


def a_reload_keeps_the_counts():
    with Server(page_server()) as server, Proxy(configuration(server.name)) as proxy:
        page = status_of(proxy)
        equal(request(proxy.port)[0], 200)
        name = of(server.name, "responses_total", ',code="2xx"')
        until(page, lambda all: all[name] == 1)
        proxy.configure(configuration(server.name, backend="retries 1"))
        proxy.signal(signal.SIGHUP)
        proxy.out.expect("the configuration was reloaded")
        equal(request(proxy.port)[0], 200)
        found = until(page, lambda all: all[name] == 2)
        equal(found[of(server.name, "response_seconds_count")], 2)
        # the page moves to another address, and away
        proxy.configure(configuration(server.name, status="status 127.0.0.2:0"))
        proxy.signal(signal.SIGHUP)
        moved = status_of(proxy)
        wait_until_closed(page[1], page[0])
        equal(metrics(moved)[name], 2)
        proxy.configure(configuration(server.name, status=""))
        proxy.signal(signal.SIGHUP)
        wait_until_closed(moved[1], moved[0])
        equal(request(proxy.port)[0], 200)


def the_page_is_at_a_unix_socket():
    with tempfile.TemporaryDirectory() as directory, Server(page_server()) as server:
        path = os.path.join(directory, "status")
        with Proxy(configuration(server.name, status=f'status "unix:{path}"')) as proxy:
            equal(metrics(path)[of(server.name, "up")], 1)
            equal(request(proxy.port)[0], 200)


def a_bad_reload_keeps_the_page():
    with Server(page_server()) as server, Proxy(configuration(server.name)) as proxy:
        page = status_of(proxy)
        proxy.configure(configuration(server.name, status="status nowhere"))
        proxy.signal(signal.SIGHUP)
        proxy.err.expect("'nowhere' is not an address")
        equal(request(page)[0], 200)
        proxy.configure(configuration(server.name, status=f"status {server.name}"))
        proxy.signal(signal.SIGHUP)
        proxy.err.expect("Address already in use")
        equal(request(page)[0], 200)


def a_page_that_becomes_a_listener_has_its_limit():
    """And a listener whose limit changes has the new one; what it serves continues."""

    def held(connection):
        connection.sendall(b"x")
        connection.recv(1)

    with Server(held) as server:
        port = free_port()
        text = configuration(server.name, mode="tcp", status=f"status 127.0.0.1:{port}")
        more = text.split("listen", 1)[1]
        with Proxy(text) as proxy:
            equal(request(port)[0], 200)
            clients = []

            def served(count):
                """So many are served at the same time, besides those before."""
                for _ in range(count):
                    clients.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
                    equal(clients[-1].recv(1), b"x")

            for limit, count in (("", 70), ("max-connections 200", 80), ("max-connections 153", 3)):
                proxy.configure(f'listen 127.0.0.1:{port}\nmode tcp\nto web\n{limit}\nlisten {more}')
                proxy.signal(signal.SIGHUP)
                proxy.out.expect("the configuration was reloaded")
                served(count)
            # one more is accepted only when one of them has ended; a later one at the other listener before it
            waiting = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            clients.append(waiting)
            clients.append(proxy.client())
            equal(clients[-1].recv(1), b"x")
            equal(int(proxy.statistics()["connections"]), 70 + 80 + 3 + 1)
            clients[-3].close()
            equal(waiting.recv(1), b"x")
            equal(int(proxy.statistics()["connections"]), 70 + 80 + 3 + 2)
            for client in clients:
                client.close()
            # (and back)
            proxy.configure(text)
            proxy.signal(signal.SIGHUP)
            proxy.out.expect("the configuration was reloaded")
            equal(request(port)[0], 200)


def responses_of_the_proxy_count_apart():
    def silent(connection):
        connection.recv(65536)

    with Server(silent) as server, Server(page_server("502 Bad Gateway", "its own")) as failing:
        with Proxy(configuration(server.name, backend="retries 0\nfail 0")) as proxy:
            page = status_of(proxy)
            equal(request(proxy.port)[0], 502)
            found = until(page, lambda all: all[of(server.name, "own_responses_total", ',code="5xx"')] == 1)
            equal(found[of(server.name, "responses_total", ',code="5xx"')], 0, "it is not the server's")
            equal(found[of(server.name, "response_seconds_count")], 0)
            proxy.configure(configuration(failing.name))
            proxy.signal(signal.SIGHUP)
            proxy.out.expect("the configuration was reloaded")
            equal(request(proxy.port)[0], 502)
            found = until(page, lambda all: all[of(failing.name, "responses_total", ',code="5xx"')] == 1)
            equal(found[of(failing.name, "own_responses_total", ',code="5xx"')], 0)


def servers_that_are_down_are_shown():
    closed = f"127.0.0.1:{free_port()}"
    with Server(page_server()) as server:
        with Proxy(configuration(closed, server.name, backend="check tcp every 20ms fall 1 rise 1")) as proxy:
            page = status_of(proxy)
            proxy.out.expect("is down")
            found = metrics(page)
            equal((found[of(closed, "up")], found[of(server.name, "up")]), (0, 1))
            check(f"<td>{closed}<td class=down>down" in request(page)[2])


def names_are_escaped():
    with Server(page_server()) as server, Proxy(configuration(server.name, name="a\\b<c>&")) as proxy:
        page = status_of(proxy)
        equal(metrics(page)[of(server.name, "up", backend="a\\\\b<c>&")], 1)
        text = request(page)[2]
        check("<td>a\\b&lt;c>&amp;<td>" in text, text)


def connections_are_counted_in_mode_tcp():
    with Server(greeter("good")) as server, Proxy(configuration(server.name, mode="tcp")) as proxy:
        page = status_of(proxy)
        for _ in range(3):
            with proxy.client() as client:
                equal(read_all(client), b"good")
        found = until(page, lambda all: all[of(server.name, "bytes_out_total")] == 12)
        equal(found[of(server.name, "connections_total")], 3)
        equal(found[of(server.name, "response_seconds_count")], 0)


# ---- Rates of clients ----


def proxied(source, family="TCP4"):
    """A header of the PROXY protocol, with the client's address."""
    return f"PROXY {family} {source} {'127.0.0.1' if family == 'TCP4' else '::1'} 1000 80\r\n".encode()


def responses(proxy, count, header=b""):
    """The statuses of as many pipelined requests, and all that was received."""
    with proxy.client() as client:
        client.sendall(header + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * (count - 1) +
                       b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        text = read_all(client).decode()
    return [int(status) for status in re.findall(r"HTTP/1\.1 (\d+) ", text)], text


def a_client_beyond_its_rate_gets_a_429():
    many = 40  # (more than one each second, on any machine)
    with Server(page_server()) as server:
        with Proxy(text_of(server, "client-rate 1 3")) as proxy:
            page = status_of(proxy)
            statuses, text = responses(proxy, many, proxied("10.0.0.1"))
            equal(len(statuses), many)
            equal(statuses[:3], [200, 200, 200])
            check(429 in statuses and set(statuses) == {200, 429}, statuses)
            waits = re.findall(r"Retry-After: (\d+)\r\n", text)
            equal(len(waits), statuses.count(429))
            equal(set(waits), {"1"})
            found = until(page, lambda all: all["bide_proxy_limited_total"] == len(waits))
            equal(found[of(server.name, "responses_total", ',code="4xx"')], 0, "they are not the server's")
            equal(responses(proxy, 3, proxied("10.0.0.2"))[0], [200, 200, 200], "another client has tokens")
            # a reload keeps the buckets
            proxy.configure(text_of(server, "client-rate 1 2"))
            proxy.signal(signal.SIGHUP)
            proxy.out.expect("the configuration was reloaded")
            check(429 in responses(proxy, many, proxied("10.0.0.1"))[0])
            proxy.configure(text_of(server, ""))
            proxy.signal(signal.SIGHUP)
            proxy.out.expect("the configuration was reloaded")
            equal(responses(proxy, many, proxied("10.0.0.1"))[0], [200] * many, "there is no limit any more")


def a_new_limit_of_connections_keeps_the_buckets():
    many = 100  # (a bucket takes as many seconds to be full again)
    with Server(page_server()) as server, Proxy(text_of(server, f"client-rate 1 {many}")) as proxy:
        equal(responses(proxy, many, proxied("10.0.0.1"))[0], [200] * many)
        proxy.configure(text_of(server, f"client-rate 1 {many}\nmax-connections 7"))
        proxy.signal(signal.SIGHUP)
        proxy.out.expect("the configuration was reloaded")
        check(429 in responses(proxy, many, proxied("10.0.0.1"))[0], "the bucket is full again")
        equal(responses(proxy, many, proxied("10.0.0.2"))[0], [200] * many)


def text_of(server, limit):
    return configuration(server.name).replace("mode http", f"mode http\n{limit}\naccept-proxy")


def connections_beyond_the_rate_are_closed_in_mode_tcp():
    many = 40
    with Server(greeter("good")) as server:
        text = configuration(server.name, mode="tcp").replace("mode tcp", "mode tcp\nclient-rate 1 2\naccept-proxy")
        with Proxy(text) as proxy:
            page = status_of(proxy)

            def connect(header):
                with proxy.client() as client:
                    client.sendall(header)
                    try:
                        return read_all(client)
                    except ConnectionResetError:
                        return b""

            for header in (proxied("10.0.0.1"), proxied("2001:db8::1", "TCP6")):
                equal([connect(header), connect(header)], [b"good"] * 2)
            # of IPv6, the first 64 bits count
            got = [connect(proxied(f"2001:db8::{i + 2:x}", "TCP6")) for i in range(many)]
            check(b"" in got and set(got) <= {b"", b"good"}, got)
            equal(connect(proxied("2001:db8:0:1::1", "TCP6")), b"good")
            found = until(page, lambda all: all["bide_proxy_limited_total"] == got.count(b""))
            equal(found["bide_proxy_rejected_total"], got.count(b""))


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
