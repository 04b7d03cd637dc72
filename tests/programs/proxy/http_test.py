#!/usr/bin/env python3
"""Tests the proxy in mode http with servers and clients of its own: http_test.py PROGRAM [TEST...]."""

import base64
import hashlib
import os
import resource
import signal
import socket
import sys

from harness import Beside, Proxy, Server, check, equal, free_port, read_all, read_exactly, reset, run, tests_of
from http_messages import configuration, Message, respond, web, named, ask, get, status_of


# ---- Messages ----


def more_of(connection, size=1):
    """The next bytes. The other side does not close before them."""
    data = connection.recv(size)
    check(data != b"", "the connection was closed")
    return data


def requests_and_responses_come_as_they_are():
    seen = []

    def answer(message, connection):
        seen.append(message)
        respond(connection, "201 Made", b"body", "X-Answer: yes", "Set-Cookie: a=1", "Set-Cookie: b=2", "Server: test")

    with Server(web(answer)) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        response = get(client, "/path/%2F?query=1", "POST", "X-Question: why", "Accept: */*", body=b"question")
        equal(response.line, "HTTP/1.1 201 Created")
        equal(response.body, b"body")
        equal(response.get("X-Answer"), "yes")
        equal(response.all("Set-Cookie"), ["a=1", "b=2"])
        equal(response.get("Server"), "test")
        request = seen[0]
        equal(request.line, "POST /path/%2F?query=1 HTTP/1.1")
        equal((request.body, request.get("Host")), (b"question", "example.org"))
        equal((request.get("X-Question"), request.get("Accept")), ("why", "*/*"))
        equal(request.get("X-Forwarded-For"), "127.0.0.1")
        equal((request.get("X-Forwarded-Proto"), request.get("X-Forwarded-Host")), ("http", "example.org"))
        proxy.out.expect(rf'http 127\.0\.0\.1:\d+ 127\.0\.0\.1:0 web/{server.name} "POST /path/%2F\?query=1" 201 in=8 out=4 '
                         r'total=\d+\.\dms retries=0$')


def fields_of_one_hop_stay_behind():
    seen = []

    def answer(message, connection):
        seen.append(message)
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: X-Private, keep-alive\r\nX-Private: 1\r\nKeep-Alive: 5\r\n"
                           b"Proxy-Authenticate: Basic\r\nX-Public: 2\r\nContent-Length: 0\r\n\r\n")

    with Server(web(answer)) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        response = get(client, "/", "GET", "Connection: x-secret , Keep-Alive", "X-Secret: 1", "Keep-Alive: 5", "TE: trailers",
                       "Proxy-Connection: keep-alive", "Proxy-Authorization: x", "X-Forwarded-For: 192.0.2.7",
                       "X-Forwarded-For: 192.0.2.8", "X-Forwarded-Proto: gopher", "Upgrade: h2c")
        equal([response.all(name) for name in ("X-Private", "Keep-Alive", "Proxy-Authenticate", "Connection")], [[]] * 4)
        equal(response.get("X-Public"), "2")
        request = seen[0]
        for name in ("X-Secret", "Keep-Alive", "TE", "Proxy-Connection", "Proxy-Authorization", "Connection", "Upgrade"):
            equal(request.all(name), [], name)
        equal(request.get("X-Forwarded-For"), "192.0.2.7, 192.0.2.8, 127.0.0.1")
        equal(request.get("X-Forwarded-Proto"), "http")


def forwarded_has_other_forms():
    seen = []

    def answer(message, connection):
        seen.append(message)
        respond(connection)

    for listen, wanted in (("forwarded standard", ['for=192.0.2.1, for=127.0.0.1;host="example.org";proto=http']),
                           ("forwarded off", ["for=192.0.2.1"])):
        with Server(web(answer)) as server:
            with Proxy(configuration(server.name, listen=listen, backend="set-host inside:8080")) as proxy:
                with proxy.client() as client:
                    get(client, "/", "GET", "Forwarded: for=192.0.2.1")
        equal(seen[-1].all("Forwarded"), wanted)
        equal(seen[-1].all("X-Forwarded-For"), [])
        equal(seen[-1].get("Host"), "inside:8080")


def connections_are_kept_on_both_sides():
    with Server(named("x")) as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            for _ in range(50):
                equal(get(client).body, b"x")
        for _ in range(5):
            with proxy.client() as client:
                equal(get(client).body, b"x")
        equal(server.served, 1)
        equal(proxy.statistics()["requests"], "55")


def requests_that_come_together_are_answered_in_order():
    def answer(message, connection):
        respond(connection, body=message.line.split()[1].encode())

    with Server(web(answer)) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        client.sendall(b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(40)))
        for number in range(40):
            equal(Message(client).body, b"/%d" % number)


def no_more_than_so_many_are_kept():
    with Server(named("x")) as server, Proxy(configuration(server.name, backend="keep 0")) as proxy:
        with proxy.client() as client:
            for _ in range(5):
                equal(get(client).body, b"x")
        equal(server.served, 5)


def bodies_go_both_ways_at_the_pace_of_the_slower():
    size = 20 << 20
    block = os.urandom(1 << 16)

    def answer(message, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for begin in range(0, len(message.body), 100000):
            piece = message.body[begin:begin + 100000]
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\nX-Trailer: 1\r\n\r\n")

    with Server(web(answer)) as server, Proxy(configuration(server.name)) as proxy:
        for chunked in (False, True):
            with proxy.client() as client:
                body = block * (size // len(block))

                def send():
                    if not chunked:
                        ask(client, "/", "PUT", body=body)
                        return
                    client.sendall(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                    for begin in range(0, size, 99999):
                        piece = body[begin:begin + 99999]
                        client.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                    client.sendall(b"0\r\n\r\n")

                sender = Beside(send)
                response = Message(client)
                sender.result()
                equal(hashlib.sha256(response.body).digest(), hashlib.sha256(body).digest())
                equal(response.get("Transfer-Encoding"), "chunked")
            proxy.out.expect(f"200 in={size} out={size}")


def pieces_are_not_held_back():
    """Each piece is received before the next is sent."""
    with Server() as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.sendall(b"1\r\na\r\n")
        with server.accept() as other:
            head = Message(other, has_body=False)
            got = b""
            while b"a" not in got:
                got += more_of(other)
            for letter in b"bcd":
                client.sendall(b"1\r\n%c\r\n" % letter)
                while bytes([letter]) not in got:
                    got += more_of(other)
            client.sendall(b"0\r\n\r\n")
            while not got.endswith(b"0\r\n\r\n"):
                got += more_of(other)
            other.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nA\r\n")
            answer = b""
            for letter in b"ABCD":
                while bytes([letter]) not in answer.split(b"\r\n\r\n", 1)[-1]:
                    answer += more_of(client)
                if letter != b"D"[0]:
                    other.sendall(b"1\r\n%c\r\n" % (letter + 1))
            other.sendall(b"0\r\n\r\n")
            while not answer.endswith(b"0\r\n\r\n"):
                answer += more_of(client)
            check(head.line.startswith("POST"))


def pieces_are_not_held_back_by_half_a_line():
    """Only a part of a chunk's framing has arrived."""
    with Server() as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r")
        with server.accept() as other:
            got = more_of(other)
            while not got.endswith(b"1\r\na\r\n"):
                got += more_of(other)
            client.sendall(b"\n3\r\nbcd\r\n2")
            while not got.endswith(b"3\r\nbcd\r\n"):
                got += more_of(other)
            client.sendall(b"\r\nef\r\n0\r\n\r\n")
            while not got.endswith(b"2\r\nef\r\n0\r\n\r\n"):
                got += more_of(other)
            other.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nA\r")
            answer = more_of(client)
            while not answer.endswith(b"1\r\nA\r\n"):
                answer += more_of(client)
            other.sendall(b"\n2\r\nBC\r\n0")
            while not answer.endswith(b"2\r\nBC\r\n"):
                answer += more_of(client)
            other.sendall(b"\r\n\r\n")
            while not answer.endswith(b"0\r\n\r\n"):
                answer += more_of(client)


def a_head_is_not_held_back():
    """An informational response may be the only one for a long time."""
    for head in (b"Content-Length: 3\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n3\r"):
        with Server() as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
            ask(client)
            with server.accept() as other:
                Message(other)
                other.sendall(b"HTTP/1.1 200 OK\r\n" + head)
                equal(status_of(Message(client, has_body=False)), 200)
                rest = {b"3\r\n\r\n": b"abc", b"d\r\n\r\n": b"3\r\nabc\r\n0\r\n\r\n"}
                other.sendall(rest.get(head[-5:], b"\nabc\r\n0\r\n\r\n"))
                answer = more_of(client)
                while b"abc" not in answer:
                    answer += more_of(client)


def responses_without_a_length_are_passed_on():
    def answer(_, connection):
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
        return False

    with Server(web(answer)) as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            for _ in range(2):
                response = get(client)
                equal((response.get("Transfer-Encoding"), response.body), ("chunked", b"until the end"))
        with proxy.client() as client:
            ask(client, version="1.0", host=None)
            check(read_all(client).endswith(b"\r\n\r\nuntil the end"))


def responses_without_a_body_have_none():
    def answer(message, connection):
        if message.line.startswith("HEAD"):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        elif "304" in message.line:
            connection.sendall(b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n")
        else:
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with Server(web(answer)) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        for _ in range(2):
            equal(get(client, "/", "HEAD").get("Content-Length"), "1000")
            equal(status_of(get(client, "/304")), 304)
            equal(status_of(get(client, "/")), 204)
        equal(server.served, 1)


def the_server_says_whether_to_continue():
    with Server() as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        ask(client, "/", "PUT", "Expect: 100-continue", "Content-Length: 4")
        with server.accept() as other:
            equal(Message(other, has_body=False).get("Expect"), "100-continue")
            other.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            equal(Message(client, has_body=False).line, "HTTP/1.1 100 Continue")
            client.sendall(b"body")
            equal(read_exactly(other, 4), b"body")
            respond(other, body=b"good")
            equal(Message(client).body, b"good")
            # rejected by the server
            ask(client, "/", "PUT", "Expect: 100-continue", "Content-Length: 4")
            equal(Message(other, has_body=False).get("Expect"), "100-continue")
            respond(other, "403 Forbidden", b"no")
            equal(status_of(Message(client)), 403)


def other_protocols_are_passed_through():
    for early in (False, True):
        with Server() as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
            key = base64.b64encode(os.urandom(16)).decode()
            ask(client, "/chat", "GET", "Connection: keep-alive, Upgrade", "Upgrade: websocket", f"Sec-WebSocket-Key: {key}",
                "Sec-WebSocket-Version: 13")
            with server.accept() as other:
                request = Message(other)
                equal((request.get("Upgrade"), request.get("Sec-WebSocket-Key")), ("websocket", key))
                equal(request.get("Connection"), "Upgrade")
                digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
                accept = base64.b64encode(digest).decode()
                other.sendall((f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                               f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode() + (b"\x81\x02hi" if early else b""))
                response = Message(client)
                equal((status_of(response), response.get("Sec-WebSocket-Accept")), (101, accept))
                equal(response.get("Upgrade"), "websocket")
                if early:
                    equal(read_exactly(client, 4), b"\x81\x02hi")
                block = os.urandom(1 << 20)
                for one, two in ((client, other), (other, client)):
                    sender = Beside(one.sendall, block)
                    equal(read_exactly(two, len(block)) == block, True)
                    sender.result()
                client.shutdown(socket.SHUT_WR)
                equal(read_all(other), b"")
            equal(read_all(client), b"")
            proxy.out.expect(r'"GET /chat" 101 in=1048576 out=10485')


def a_rejected_upgrade_is_a_response():
    with Server(named("no")) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        response = get(client, "/", "GET", "Connection: Upgrade", "Upgrade: websocket")
        equal((status_of(response), response.body), (200, b"no"))
        equal(get(client).body, b"no")


# ---- Failures ----


def pages_say_what_is_wrong():
    closed = f"127.0.0.1:{free_port()}"

    def silent(connection):
        connection.recv(65536)
        read_all(connection)

    def garbage(connection):
        connection.recv(65536)
        connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")

    def twice(connection):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx")

    with Proxy(configuration(closed, backend="fail 1 1h")) as proxy, proxy.client() as client:
        equal(status_of(get(client)), 502)
        equal(status_of(get(client)), 503)
        proxy.out.expect(f'web/{closed} "GET /" 502 .* Connection refused')
        proxy.out.expect('web/- "GET /" 503 .* no server is up')
    for serve, wanted, limit in ((silent, 504, "50ms"), (garbage, 502, "1h"), (twice, 502, "1h"), (reset, 502, "1h")):
        with Server(serve) as server:
            with Proxy(configuration(server.name, backend=f"response-timeout {limit}")) as proxy, proxy.client() as client:
                response = get(client)
                equal(status_of(response), wanted, serve)
                check(response.body.startswith(str(wanted).encode()), response.body)


def ambiguous_requests_are_rejected():
    with Server(named("x")) as server, Proxy(configuration(server.name)) as proxy:
        for request in (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                        b"GET / HTTP/1.1\nHost: a\n\n", b"GET / HTTP/1.1\r\nHost: a\r\n folded: x\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
                        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n"):
            with proxy.client() as client:
                client.sendall(request)
                check(read_all(client).startswith(b"HTTP/1.1 400 "), request)
            proxy.out.expect(r'http 127\.0\.0\.1:\d+ \S+ -/- "(GET|POST) / HTTP/1\.1" 400 refused$')
        equal(server.served, 0)


def a_body_may_be_no_longer():
    with Server(named("x")) as server, Proxy(configuration(server.name, listen="max-body 10")) as proxy:
        with proxy.client() as client:
            equal(status_of(get(client, "/", "POST", body=b"0123456789")), 200)
            equal(status_of(get(client, "/", "POST", body=b"0123456789a")), 413)


def idempotent_requests_are_tried_again():
    def dies(connection):
        connection.recv(65536)
        reset(connection)

    with Server(dies) as bad, Server(named("good")) as good:
        with Proxy(configuration(bad.name, good.name, backend="fail 0")) as proxy, proxy.client() as client:
            for method in ("GET", "HEAD", "DELETE", "OPTIONS"):
                for _ in range(2):
                    equal(status_of(get(client, "/", method)), 200, method)
            statuses = sorted(status_of(get(client, "/", "POST", body=b"x")) for _ in range(4))
            equal(statuses, [200, 200, 502, 502])
            statuses = sorted(status_of(get(client, "/", "PUT", body=b"x")) for _ in range(4))
            equal(statuses, [200, 200, 502, 502], "a body that is gone cannot be sent again")


def anything_is_tried_again_before_it_was_sent():
    closed = f"127.0.0.1:{free_port()}"
    with Server(named("good")) as server:
        with Proxy(configuration(closed, server.name, backend="fail 0")) as proxy, proxy.client() as client:
            for _ in range(4):
                equal(status_of(get(client, "/", "POST", body=b"x")), 200)


def nothing_is_tried_again_after_an_answer_has_begun():
    def dies(connection):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 O")
        reset(connection)

    with Server(dies) as bad, Server(named("good")) as good:
        with Proxy(configuration(bad.name, good.name, backend="fail 0")) as proxy, proxy.client() as client:
            statuses = sorted(status_of(get(client)) for _ in range(4))
            equal(statuses, [200, 200, 502, 502])


def a_response_that_is_cut_off_looks_so():
    def dies(connection):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + bytes(100000))

    with Server(dies) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        ask(client)
        data = b""
        try:
            while piece := client.recv(65536):
                data += piece
        except ConnectionResetError:
            pass
        check(b"Content-Length: 200000" in data and len(data) < 200000, len(data))


def a_connection_that_was_closed_while_idle_is_no_failure():
    closes = []

    def serve(connection):
        Message(connection)
        respond(connection, body=b"once")
        closes.append(connection)  # without announcing it
        connection.shutdown(socket.SHUT_RDWR)

    with Server(serve) as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            for _ in range(30):
                equal(get(client).body, b"once")
        statistics = proxy.statistics()
        equal(statistics["retries"], "0")
        check("failed:0" in statistics[f"web/{server.name}"], statistics)


def a_request_waits_for_a_full_server():
    with Server() as server, Proxy(configuration(f"{server.name} max 1")) as proxy:
        with proxy.client() as first, proxy.client() as second:
            ask(first, "/1")
            with server.accept() as other:
                equal(Message(other).line, "GET /1 HTTP/1.1")
                ask(second, "/2")
                while not proxy.statistics()[f"web/{server.name}"].startswith("up,live:2"):
                    pass
                respond(other, body=b"one")
                equal(Message(first).body, b"one")
                equal(Message(other).line, "GET /2 HTTP/1.1")
                respond(other, body=b"two")
                equal(Message(second).body, b"two")


def a_request_whose_client_has_left_is_not_sent():
    with Server() as server, Proxy(configuration(f"{server.name} max 1")) as proxy:
        with proxy.client() as first, proxy.client() as last:
            ask(first, "/first")
            with server.accept() as other:
                equal(Message(other).line, "GET /first HTTP/1.1")
                for number in range(6):
                    with proxy.client() as gone:
                        ask(gone, f"/gone{number}")
                        if number % 2:
                            reset(gone)
                for _ in range(6):
                    proxy.out.expect(r'"GET /gone\d" 499 in=0 out=0 .* the client has left$')
                ask(last, "/last")
                respond(other, body=b"one")
                equal(Message(first).body, b"one")
                equal(Message(other).line, "GET /last HTTP/1.1")
                respond(other, body=b"two")
                equal(Message(last).body, b"two")


def a_client_that_has_ended_its_output_gets_its_response():
    with Server() as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            ask(client, "/")
            with server.accept() as other:
                equal(Message(other).line, "GET / HTTP/1.1")
                client.shutdown(socket.SHUT_WR)
                respond(other, body=b"one")
                equal(Message(client).body, b"one")


def a_request_is_given_up_when_its_client_resets_the_connection():
    with Server() as server, Proxy(configuration(server.name)) as proxy:
        client = proxy.client()
        ask(client, "/")
        with server.accept() as other:
            equal(Message(other).line, "GET / HTTP/1.1")
            reset(client)
            equal(read_all(other), b"")
        proxy.out.expect(r'"GET /" 499 .* the client has left$')


# ---- Shutdown and reloads ----


def a_reload_ends_no_request():
    with Server() as old, Server(named("new")) as new, Proxy(configuration(old.name)) as proxy:
        with proxy.client() as client:
            ask(client)
            with old.accept() as other:
                Message(other)
                proxy.configure(configuration(new.name))
                proxy.signal(signal.SIGHUP)
                proxy.out.expect("the configuration was reloaded")
                with proxy.client() as another:
                    equal(get(another).body, b"new")
                respond(other, body=b"old")
            equal(Message(client).body, b"old")
            # its next request is the last of the old configuration
            old.close()
            response = get(client)
            equal((status_of(response), response.get("Connection")), (502, "close"))
            equal(read_all(client), b"")


def a_new_limit_ends_no_connection_without_a_response():
    """Neither one that was kept, nor one that has sent nothing yet; and both end with the proxy."""
    with Server(named("old")) as old, Server(named("new")) as new, Proxy(configuration(old.name)) as proxy:
        clients = [proxy.client() for _ in range(4)]
        kept, fresh, kept_to_the_end, fresh_to_the_end = clients
        for client in (kept, kept_to_the_end):
            equal(get(client).body, b"old")
        while int(proxy.statistics()["connections"]) < len(clients):
            pass
        proxy.configure(configuration(new.name, listen="max-connections 7"))
        proxy.signal(signal.SIGHUP)
        proxy.out.expect("the configuration was reloaded")
        with proxy.client() as another:
            equal(get(another).body, b"new")
        for client in (kept, fresh):
            response = get(client)
            equal((response.body, response.get("Connection")), (b"old", "close"))
            equal(read_all(client), b"")
        proxy.signal(signal.SIGTERM)
        for client in (kept_to_the_end, fresh_to_the_end):
            equal(read_all(client), b"")
        equal(proxy.wait(), 0)
        for client in clients:
            client.close()


def connections_of_older_configurations_end_with_their_listener():
    """It ends with the proxy, or by a reload. Before that, reloads leave it as it is."""

    def reload(proxy, text):
        proxy.configure(text)
        proxy.signal(signal.SIGHUP)
        proxy.out.expect("the configuration was reloaded")

    for is_removed in (False, True):
        with Server() as old, Server(named("newer")) as newer, Server(named("newest")) as newest, \
                Proxy(configuration(old.name)) as proxy, proxy.client() as busy, proxy.client() as idle:
            ask(busy)
            with old.accept() as other:
                Message(other)
                other.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
                head = b""
                while not head.endswith(b"first"):
                    head += more_of(busy, 1000)
                ask(idle)
                with old.accept() as another:
                    Message(another)
                    respond(another, body=b"old")
                    equal(Message(idle).body, b"old")
                reload(proxy, configuration(newer.name))
                with proxy.client() as later:
                    equal(get(later).body, b"newer")
                    reload(proxy, configuration(newest.name))
                    with proxy.client() as latest:
                        equal(get(latest).body, b"newest")
                        if is_removed:
                            reload(proxy, configuration(newest.name).replace("127.0.0.1:0", "127.0.0.2:0"))
                        else:
                            proxy.signal(signal.SIGTERM)
                        for client in (latest, later, idle):
                            equal(read_all(client), b"")
                other.sendall(b" last")
                equal(read_all(busy), b" last")
            if not is_removed:
                equal(proxy.wait(), 0)


def it_ends_after_the_response_that_is_under_way():
    with Server() as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client, proxy.client() as idle:
            ask(client)
            with server.accept() as other:
                Message(other)
                ask(idle)
                with server.accept() as another:
                    Message(another)
                    respond(another, body=b"1")
                    equal(Message(idle).body, b"1")
                    proxy.signal(signal.SIGTERM)
                    equal(read_all(idle), b"")
                    respond(other, body=b"last")
                    response = Message(client)
                    equal((response.body, response.get("Connection")), (b"last", "close"))
                    equal(read_all(client), b"")
        equal(proxy.wait(), 0)


def nothing_is_left_of_many_requests():
    def answer(message, connection):
        if "cut" in message.line:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            return False
        respond(connection, body=b"x" * 3000)
        return True

    with Server(web(answer)) as server, Proxy(configuration(server.name, backend="keep 4 50ms")) as proxy:
        with proxy.client() as client:
            get(client)
        baseline = proxy.idle()
        for _ in range(3):
            clients = [proxy.client() for _ in range(40)]
            for number, client in enumerate(clients):
                ask(client, "/cut" if number % 4 == 0 else "/")
            for number, client in enumerate(clients):
                if number % 4 == 1:
                    reset(client)
                elif number % 4 == 2:
                    Message(client)
                client.close()
        while proxy.idle(accepted=1 + 3 * 40) > baseline:
            pass
        statistics = proxy.statistics()
        equal(statistics["buffers"], "0")
        check(statistics[f"web/{server.name}"].startswith("up,live:0"), statistics)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    run(tests_of(globals()), sys.argv[1:])
