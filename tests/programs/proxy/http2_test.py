#!/usr/bin/env python3
"""Tests HTTP/2 in front of the proxy: http2_test.py PROGRAM [TEST...]."""

import base64
import hashlib
import os
import signal
import ssl
import sys
import threading

from harness import PATIENCE, Proxy, Server, check, equal, read_all, read_exactly, run, tests_of
from http2 import CANCEL, NO_ERROR, WINDOW, Http2, curl, without_curl, without_http2
from http_messages import Message, configuration, get, named, respond, status_of, web
from tls_test import Authority, without_tls

MANY = 40


def a_message_comes_as_with_http_1():
    """What the directives say holds for requests of HTTP/2, and servers receive HTTP/1.1."""
    if why := without_http2() or without_curl():
        return why
    seen = []

    def answer(message, connection):
        seen.append(message)
        respond(connection, "404 Not Found", b"nothing", "X-Of: server", "X-Secret: yes", "Connection: X-Hop", "X-Hop: 1")

    listen = ("request-header set X-A listener\nrequest-header remove User-Agent\nresponse-header remove X-Secret\n"
              "redirect /old 308 https://b.test$target")
    with Server(web(answer)) as server, Proxy(configuration(server.name, listen=listen, backend="sticky cookie S")) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        head, body = curl("--http2-prior-knowledge", "-H", "Cookie: a=1; b=2", "-d", "abc", "-H", "Host: site.test", f"{url}/a?b=%20c")
        lines = head.strip().split("\n")
        equal((lines[0].strip(), body), ("HTTP/2 404", b"nothing"))
        check("x-of: server" in lines and not [line for line in lines if line.startswith(("x-secret", "x-hop", "connection"))], lines)
        check([line for line in lines if line.startswith("set-cookie: S=")], lines)
        request = seen.pop()
        equal((request.line, request.body), ("POST /a?b=%20c HTTP/1.1", b"abc"))
        equal((request.get("Host"), request.get("Cookie"), request.get("X-A"), request.get("User-Agent")),
              ("site.test", "a=1; b=2", "listener", None))
        equal((request.get("X-Forwarded-For"), request.get("X-Forwarded-Proto"), request.get("X-Forwarded-Host")),
              ("127.0.0.1", "http", "site.test"))
        equal(request.get("Content-Length"), "3")
        proxy.out.expect(r'http 127.0.0.1:\d+ .* "POST /a\?b=%20c" 404 in=3 out=7 ')
        head, _ = curl("--http2-prior-knowledge", f"{url}/old?x")
        check("location: https://b.test/old?x\n" in head, head)
        equal(seen, [])
    return None


def protocols_are_negotiated():
    """Over TLS by ALPN, in clear by the preface; and neither with `http2 off`. HTTP/1.1 remains."""
    if why := without_http2() or without_tls():
        return why
    with Authority() as authority, Server(named("good")) as server:
        chain, key = authority.issue("one", "DNS:localhost")
        certificate = f"certificate {chain} {key}\n"

        def negotiated(proxy, *offered):
            context = ssl.create_default_context(cafile=authority.path("ca.pem"))
            if offered:
                context.set_alpn_protocols(list(offered))
            with context.wrap_socket(proxy.client(), server_hostname="localhost") as client:
                chosen = client.selected_alpn_protocol()
                if chosen == "h2":
                    stream = Http2(client).get()
                    equal((stream.status, stream.body), (200, b"good"))
                else:
                    equal(get(client).body, b"good")
                return chosen

        with Proxy(configuration(server.name, listen=certificate)) as proxy:
            equal([negotiated(proxy, "h2", "http/1.1"), negotiated(proxy, "http/1.1"), negotiated(proxy, "h2"), negotiated(proxy)],
                  ["h2", "http/1.1", "h2", None])
        with Proxy(configuration(server.name, listen=certificate + "http2 off")) as proxy:
            equal(negotiated(proxy, "h2", "http/1.1"), "http/1.1")
        with Proxy(configuration(server.name)) as proxy:
            for _ in range(2):
                with proxy.client() as client:
                    equal(Http2(client).get().status, 200)
                with proxy.client() as client:
                    equal(get(client).body, b"good")
        with Proxy(configuration(server.name, listen="http2 off")) as proxy, proxy.client() as client:
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            check(client.recv(12) in (b"HTTP/1.1 400", b"HTTP/1.1 501", b"HTTP/1.1 505"))
    return None


def requests_of_a_connection_run_together():
    if why := without_http2():
        return why
    together = threading.Barrier(MANY)

    def answer(message, connection):
        together.wait(PATIENCE)
        respond(connection, body=message.line.split()[1].encode())

    with Server(web(answer)) as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            http2 = Http2(client)
            asked = {http2.ask(f"/{number}"): f"/{number}".encode() for number in range(MANY)}
            for number, path in asked.items():
                equal((http2.response(number).status, http2.response(number).body), (200, path))
        equal(server.served, MANY)
        proxy.idle(accepted=1)
        statistics = proxy.statistics()
        equal((statistics["requests"], statistics["connections"]), (str(MANY), "1"))
    return None


def bodies_go_both_ways_at_the_pace_of_the_slower():
    """A response that is not read holds back its server and no other request."""
    if why := without_http2():
        return why
    size = 8 << 20
    block = os.urandom(1 << 16)
    sent = threading.Event()

    def serve(connection):
        message = Message(connection)
        if message.line.startswith("GET /large"):
            connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
            for _ in range(size // len(block)):
                connection.sendall(block)
            sent.set()
        else:
            respond(connection, body=hashlib.sha256(message.body).hexdigest().encode(), *())

    with Server(serve) as server, Proxy(configuration(server.name, backend="keep 0")) as proxy, proxy.client() as client:
        http2 = Http2(client, opens_windows=False)
        large = http2.ask("/large")
        http2.until(lambda: len(http2.streams[large].body) == WINDOW)
        http2.open_window(0, 1 << 30)
        other = http2.ask("/other", "POST", ends=False)
        body = os.urandom(3 << 20)
        http2.send(other, body, ends=True)
        equal(http2.response(other).body, hashlib.sha256(body).hexdigest().encode())
        equal((len(http2.streams[large].body), sent.is_set()), (WINDOW, False))
        http2.open_window(large, size)
        equal(http2.response(large).body == block * (size // len(block)), True)
    return None


def a_cancelled_stream_cancels_the_request():
    """At the server, too; and the connection goes on. Also while the request's body comes."""
    if why := without_http2():
        return why
    with Server() as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        http2 = Http2(client)
        for method, ends in (("GET", True), ("POST", False)):
            cancelled = http2.ask("/cancelled", method, ends=ends)
            if not ends:
                http2.send(cancelled, b"part")
            with server.accept() as other:
                equal(Message(other, has_body=False).line, f"{method} /cancelled HTTP/1.1")
                http2.reset(cancelled)
                try:
                    read_all(other)  # to the end
                except ConnectionResetError:
                    pass
            proxy.out.expect(f'"{method} /cancelled" .* the client has left')
        last = http2.ask("/last")
        with server.accept() as other:
            equal(Message(other).line, "GET /last HTTP/1.1")
            respond(other, body=b"good")
        equal(http2.response(last).body, b"good")
    return None


def a_stream_that_is_reset_at_once_is_nothing():
    """Its head and its end come in one piece, before its handler begins."""
    if why := without_http2():
        return why
    with Server(named("good")) as server, Proxy(configuration(server.name, head="log stderr")) as proxy, proxy.client() as client:
        http2 = Http2(client)
        data = b""
        for _ in range(MANY):
            number, head = http2.head("/reset")
            data += head + b"\0\0\4\3\0" + number.to_bytes(4, "big") + CANCEL.to_bytes(4, "big")
        number, head = http2.head("/good")
        client.sendall(data + head)
        equal(http2.response(number).body, b"good")
    return None


def a_broken_response_resets_its_stream():
    if why := without_http2():
        return why

    def serve(connection):
        if "broken" in Message(connection).line:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        else:
            respond(connection, body=b"whole")

    with Server(serve) as server, Proxy(configuration(server.name, backend="keep 0")) as proxy, proxy.client() as client:
        http2 = Http2(client)
        broken = http2.get("/broken")
        check(broken.error is not None, broken.body)
        whole = http2.get("/whole")
        equal((whole.body, whole.error), (b"whole", None))
    return None


def trailers_are_passed_on():
    """Both ways, but for those that belong into heads, and those that a rule removes."""
    if why := without_http2() or without_curl():
        return why
    seen = []

    def serve(connection):
        message = Message(connection, has_body=False)
        if message.get("Transfer-Encoding") == "chunked":
            body = b""
            while not body.endswith(b"\r\n\r\n"):
                body += connection.recv(1)
            seen.append(body.lstrip(b"0"))
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\n"
                           b"X-Sum: 1234\r\nX-Secret: no\r\nSet-Cookie: bad=1\r\nContent-Length: 7\r\n\r\n")

    listen = "response-header remove X-Secret\nrequest-header remove X-Private"
    with Server(serve) as server, Proxy(configuration(server.name, backend="keep 0", listen=listen)) as proxy:
        with proxy.client() as client:
            http2 = Http2(client)
            number = http2.ask("/", "POST", ends=False)
            http2.send(number, b"abc")
            http2.send_trailers(number, ("x-check", "yes"), ("x-private", "1"), ("x-forwarded-for", "10.0.0.1"))
            stream = http2.response(number)
            equal((stream.status, stream.body, stream.error), (200, b"body", None))
        equal(seen, [b"3\r\nabc\r\n0\r\nx-check: yes\r\n\r\n"])
        head, body = curl("--http2-prior-knowledge", f"http://127.0.0.1:{proxy.port}/")
        equal(body, b"body")
        check("x-sum: 1234\n" in head, head)
        check("secret" not in head and "cookie" not in head and "content-length" not in head, head)
        # HTTP/1.1: for whom asks for them
        for wants in (True, False):
            with proxy.client() as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close, TE\r\n" + (b"TE: trailers\r\n" if wants else b"") + b"\r\n")
                text = read_all(client)
                check(text.endswith(b"\r\n0\r\nX-Sum: 1234\r\n\r\n" if wants else b"\r\n0\r\n\r\n"), text)
    return None


def trailers_fit_behind_any_body():
    """Also if the buffer is almost full."""
    if why := without_http2():
        return why
    fields = [(f"x-{number}", "y" * 100) for number in range(15)]
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields).encode()
    seen = []

    def serve(connection):
        while True:
            try:
                message = Message(connection, has_body=False)
            except EOFError:
                return
            if message.get("Transfer-Encoding") == "chunked":
                body = b""
                while not body.endswith(b"\r\n\r\n"):
                    body += connection.recv(1 << 16)
                seen.append(body)
            size = int(message.line.split()[1][1:])
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"%x\r\n" % size + b"z" * size +
                               b"\r\n0\r\n" + lines + b"\r\n")

    with Server(serve) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        http2 = Http2(client)
        for size in range(14000, 17000, 150):
            number = http2.ask(f"/{size}", "POST", ends=False)
            http2.send(number, b"a" * size)
            http2.send_trailers(number, *fields)
            stream = http2.response(number)
            equal((stream.status, stream.body, stream.error), (200, b"z" * size, None))
            check(seen.pop().endswith(b"\r\n0\r\n" + lines + b"\r\n"))
            with proxy.client() as other:
                other.sendall(b"GET /%d HTTP/1.1\r\nHost: a\r\nConnection: close, TE\r\nTE: trailers\r\n\r\n" % size)
                check(read_all(other).endswith(b"\r\n0\r\n" + lines + b"\r\n"))
    return None


def trailers_that_do_not_fit_are_left_out():
    """Of an HTTP/1.1 client and of a server: the message is whole without them."""
    lines = b"X-Long: " + b"z" * 5000 + b"\r\nX-Short: 1\r\n"
    seen = []

    def serve(connection):
        message = Message(connection, has_body=False)
        body = b""
        if message.get("Transfer-Encoding") == "chunked":
            while not body.endswith(b"\r\n\r\n"):
                body += connection.recv(1)
        seen.append(body)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n" + lines + b"\r\n")

    with Server(serve) as server, Proxy(configuration(server.name, backend="keep 0")) as proxy:
        with proxy.client() as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close, TE\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n"
                           b"3\r\nabc\r\n0\r\n" + lines + b"\r\n")
            text = read_all(client)
            check(text.startswith(b"HTTP/1.1 200 ") and text.endswith(b"4\r\nbody\r\n0\r\nX-Short: 1\r\n\r\n"), text)
        equal([body.lstrip(b"0") for body in seen], [b"3\r\nabc\r\n0\r\nX-Short: 1\r\n\r\n"])
        if not without_http2():
            with proxy.client() as client:
                stream = Http2(client).get()
                equal((stream.status, stream.body, stream.error), (200, b"body", None))


def accept_of(key):
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    return base64.b64encode(digest).decode()


def open_websocket(http2, server):
    number = http2.ask("/chat", "CONNECT", ("sec-websocket-version", "13"), ends=False, protocol="websocket")
    other = server.accept()
    request = Message(other)
    equal(request.line, "GET /chat HTTP/1.1")
    equal((request.get("Upgrade"), request.get("Connection"), request.get("Sec-WebSocket-Version"), request.get("Host")),
          ("websocket", "Upgrade", "13", "a.test"))
    equal(len(base64.b64decode(request.get("Sec-WebSocket-Key"))), 16)
    return number, other, request.get("Sec-WebSocket-Key")


def switch(other, accept):
    other.sendall((f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                   f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode() + b"\x81\x02hi")


def a_websocket_is_a_stream():
    """Whichever side ends it; beside other requests."""
    if why := without_http2():
        return why
    block = os.urandom(300000)
    with Server() as server, Proxy(configuration(server.name)) as proxy:
        for client_ends in (True, False):
            with proxy.client() as client:
                http2 = Http2(client)
                number, other, key = open_websocket(http2, server)
                stream = http2.streams[number]
                with other:
                    switch(other, accept_of(key))
                    http2.until(lambda: stream.body == b"\x81\x02hi")
                    equal((stream.status, stream.has_ended), (200, False))
                    thread = threading.Thread(target=http2.send, args=(number, block))
                    thread.start()  # (it reads frames meanwhile)
                    equal(read_exactly(other, len(block)) == block, True)
                    thread.join()
                    other.sendall(block)
                    http2.until(lambda: len(stream.body) == 4 + len(block))
                    equal(stream.body[4:] == block, True)
                    beside = http2.ask("/beside")
                    with server.accept() as second:
                        Message(second)
                        respond(second, body=b"good")
                        equal(http2.response(beside).body, b"good")
                    if client_ends:
                        http2.send(number, b"", ends=True)
                        equal(read_all(other), b"")
                stream = http2.response(number)
                check(stream.error in (None, NO_ERROR), stream.error)
            proxy.out.expect(r'"GET /chat" 200 in=300000 out=300004 ')
    return None


def a_websocket_that_is_no_longer_wanted_ends():
    if why := without_http2():
        return why
    with Server() as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        http2 = Http2(client)
        number, other, key = open_websocket(http2, server)
        with other:
            switch(other, accept_of(key))
            http2.until(lambda: http2.streams[number].body)
            http2.reset(number)
            try:
                equal(read_all(other), b"")
            except ConnectionResetError:
                pass
    return None


def other_tunnels_are_refused():
    """Another protocol, CONNECT, a server that does not want, and one whose answer is wrong. The connection goes on."""
    if why := without_http2():
        return why
    with Server() as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        http2 = Http2(client)
        for arguments in ({"protocol": "webtransport"}, {}):
            stream = http2.get("/", "CONNECT", ends=False, **arguments)
            equal((stream.status, stream.body), (0, b"501 Not Implemented\n"))
        number, other, _ = open_websocket(http2, server)
        with other:
            respond(other, "404 Not Found", b"no chat")
            equal((http2.response(number).status, http2.response(number).body), (404, b"no chat"))
        number, other, _ = open_websocket(http2, server)
        with other:
            switch(other, accept_of("wrong"))
            stream = http2.response(number)
            equal((stream.status, stream.body), (0, b"502 Bad Gateway\n"))
        equal(http2.goaway, None)
    return None


def a_reload_ends_no_request():
    """A connection of before says after its next response that it takes no more."""
    if why := without_http2():
        return why
    with Server() as server, Server(named("new")) as other, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            http2 = Http2(client)
            number = http2.ask("/old")
            with server.accept() as old:
                Message(old)
                proxy.configure(configuration(other.name))
                proxy.signal(signal.SIGHUP)
                while "web/" + other.name not in proxy.statistics():
                    pass
                respond(old, body=b"old")
                equal(http2.response(number).body, b"old")
            number = http2.ask("/next")
            with server.accept() as old:
                Message(old)
                respond(old, body=b"next")
                equal(http2.response(number).body, b"next")
            http2.until(lambda: http2.goaway is not None)
            equal(http2.goaway[1], NO_ERROR)
            equal(read_all(client), b"")
        with proxy.client() as client:
            equal(Http2(client).get().body, b"new")
    return None


def it_ends_after_the_responses_that_are_under_way():
    if why := without_http2():
        return why
    with Server() as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client, proxy.client() as idle:
        http2 = Http2(client)
        Http2(idle)
        number = http2.ask("/last")
        with server.accept() as other:
            Message(other)
            proxy.signal(signal.SIGTERM)
            http2.until(lambda: http2.goaway is not None)
            respond(other, body=b"good")
            equal(http2.response(number).body, b"good")
        equal(proxy.wait(), 0)
    return None


def clients_have_a_rate():
    if why := without_http2():
        return why
    with Server(named("good")) as server, Proxy(configuration(server.name, listen="client-rate 1 3")) as proxy:
        with proxy.client() as client:
            http2 = Http2(client)
            numbers = [http2.ask() for _ in range(MANY)]
            bodies = [http2.response(number).body for number in numbers]
        check(bodies.count(b"good") >= 3 and b"429 Too Many Requests\n" in bodies, bodies)
    return None


def nothing_is_left_of_many_requests():
    if why := without_http2():
        return why
    with Server(named("good")) as server, Proxy(configuration(server.name, backend="keep 0")) as proxy:
        before = None
        for _ in range(3):
            with proxy.client() as client:
                http2 = Http2(client)
                for number in [http2.ask() for _ in range(MANY)]:
                    equal(http2.response(number).body, b"good")
                cut = [http2.ask() for _ in range(MANY)]
                check(cut)
            now = proxy.idle()
            check(before is None or now <= before, now, before)
            before = now
    return None


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
