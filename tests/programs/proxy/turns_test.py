#!/usr/bin/env python3
"""Tests many requests of one connection of HTTP/2, with few descriptors: turns_test.py PROGRAM [TEST...]."""

import re
import select
import socket
import sys

from harness import PATIENCE, Proxy, Server, check, equal, is_reset, run, tests_of
from http2 import MAX_CONCURRENT_STREAMS, PROTOCOL_ERROR, Http2, without_http2
from http2_test import MANY, accept_of, switch
from http_messages import Message, configuration, respond, web


def requests_beyond_the_budget_take_turns():
    """With few descriptors: each is answered, and another client is not held up."""
    if why := without_http2():
        return why
    with Server(web(lambda message, connection: respond(connection, body=b"good"))) as server:
        text = configuration(server.name, listen="max-connections 500")
        with Proxy(text, prefix=("prlimit", "--nofile=64")) as proxy:
            proxy.err.expect(r"only (\d+) connections")
            clients = [proxy.client() for _ in range(4)]
            talks = [Http2(client) for client in clients]
            asked = [(talk, talk.ask(f"/{number}")) for number in range(MANY) for talk in talks]
            for talk, number in asked:
                stream = talk.response(number)
                equal((stream.status, stream.body, stream.error), (200, b"good", None))
            check(proxy.descriptors() <= 64)
            for client in clients:
                client.close()
            proxy.idle(accepted=4)
            equal(proxy.statistics()["failed"], "0")
    return None


def a_request_waits_for_its_turn_no_longer_than_for_a_server():
    """Descriptors are taken by WebSockets, which do not end."""
    if why := without_http2():
        return why
    with Server() as server:
        text = configuration(server.name, listen="max-connections 500", backend="connect-timeout 3s")
        with Proxy(text, prefix=("prlimit", "--nofile=64")) as proxy, proxy.client() as client:
            proxy.err.expect(r"only (\d+) connections")
            http2 = Http2(client)
            opened = []
            while True:
                number = http2.ask("/chat", "CONNECT", ("sec-websocket-version", "13"), ends=False, protocol="websocket")
                server.socket.settimeout(0.01)
                other = None
                while other is None and not http2.streams[number].has_ended:
                    try:
                        other = server.accept()
                    except socket.timeout:
                        if select.select([client], [], [], 0)[0]:
                            http2.read_frame()
                if other is None:
                    break
                request = Message(other)
                switch(other, accept_of(request.get("Sec-WebSocket-Key")))
                opened.append((number, other))
                check(len(opened) < 64)
            check(opened)
            equal((http2.streams[number].status, http2.streams[number].body), (0, b"504 Gateway Timeout\n"))
            opened[0][1].close()
            http2.response(opened[0][0])
            server.socket.settimeout(PATIENCE)
            number = http2.ask("/again")
            with server.accept() as other:
                Message(other)
                respond(other, body=b"good")
                equal(http2.response(number).body, b"good")
            for _, other in opened:
                other.close()
    return None


def a_spare_descriptor_goes_to_a_request_that_waits():
    """The request that has the turn does not end."""
    if why := without_http2():
        return why
    with Server() as server:
        text = configuration(server.name, listen="max-connections 500", backend=f"keep 0\nconnect-timeout {PATIENCE}s")
        with Proxy(text, prefix=("prlimit", "--nofile=64")) as proxy, proxy.client() as client:
            http2 = Http2(client)
            for number in range(MANY):
                http2.ask(f"/{number}")
            while (statistics := proxy.statistics())["requests"] != str(MANY):
                pass
            live = int(re.search(r"live:(\d+)", statistics[f"web/{server.name}"]).group(1))
            check(1 < live < MANY, statistics)
            others = [server.accept() for _ in range(live)]
            spare = next(other for other in others if Message(other).line != "GET /0 HTTP/1.1")
            respond(spare, body=b"good")
            others.append(server.accept())
            Message(others[-1])
            for other in others:
                other.close()
    return None


def a_spare_descriptor_goes_to_another_client_that_waits():
    """The other client's request that has the turn does not end, and the one that gives its descriptor has no other waiting."""
    if why := without_http2():
        return why
    with Server() as server:
        text = configuration(server.name, listen="max-connections 500", backend=f"keep 0\nconnect-timeout {PATIENCE}s")
        with Proxy(text, prefix=("prlimit", "--nofile=64")) as proxy, proxy.client() as first, proxy.client() as second:
            one, two = Http2(first), Http2(second)
            asked = 0

            def live_after(talk, path):
                nonlocal asked
                number, asked = talk.ask(path), asked + 1
                while (statistics := proxy.statistics())["requests"] != str(asked):
                    pass
                return number, int(re.search(r"live:(\d+)", statistics[f"web/{server.name}"]).group(1))

            live, spare = 0, []
            while live == len(spare):
                number, live = live_after(one, f"/one/{len(spare)}")
                spare.append(number)
            check(2 < live < MANY, live)
            one.reset(spare.pop())
            proxy.out.expect("the client has left")
            others = {}

            def accept_one():
                other = server.accept()
                others[Message(other).line.split()[1]] = other

            for _ in range(live):
                accept_one()
            equal(live_after(two, "/two/turn")[1], live + 1)
            accept_one()
            waiting, now = live_after(two, "/two/waits")
            equal(now, live + 1)
            respond(others["/one/1"], body=b"good")
            accept_one()
            respond(others["/two/waits"], body=b"good")
            equal(two.response(waiting).body, b"good")
            for other in others.values():
                other.close()
    return None


def a_connection_has_as_many_requests_as_the_settings_say():
    """When one ends, the next may come. One too many ends the connection, and so its requests; no other connection."""
    if why := without_http2():
        return why
    with Server() as server, Proxy(configuration(server.name, backend="keep 0")) as proxy, proxy.client() as beside:
        with proxy.client() as client:
            http2 = Http2(client)
            http2.until(lambda: http2.settings)
            limit = http2.settings[MAX_CONCURRENT_STREAMS]
            equal(limit, 100)
            others = {}

            def accept(count):
                for _ in range(count):
                    other = server.accept()
                    others[Message(other).line.split()[1]] = other

            asked = [http2.ask(f"/{number}") for number in range(limit)]
            accept(limit)
            for path in ("/0", "/50", "/99"):
                respond(others.pop(path), body=path.encode())
                stream = http2.response(asked[int(path[1:])])
                equal((stream.status, stream.body, stream.error), (200, path.encode(), None))
                http2.ask(f"/more{path}")
                accept(1)
            equal(len(others), limit)
            http2.ask("/too-many")
            http2.until(lambda: http2.goaway)
            equal(http2.goaway[1], PROTOCOL_ERROR)
            is_reset(client)
        for other in others.values():
            is_reset(other)
            other.close()
        equal(proxy.statistics()["requests"], str(limit + 3))
        http2 = Http2(beside)
        number = http2.ask("/beside")
        with server.accept() as other:
            equal(Message(other).line, "GET /beside HTTP/1.1")
            respond(other, body=b"good")
            equal(http2.response(number).body, b"good")
    return None


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
