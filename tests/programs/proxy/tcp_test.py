#!/usr/bin/env python3
"""Tests the proxy in mode tcp with servers and clients of its own: tcp_test.py PROGRAM [TEST...]."""

import os
import resource
import socket
import sys
import tempfile

from harness import (PATIENCE, Beside, Proxy, Server, baseline_of, check, echo, equal, free_port, greeter, is_reset,
                     read_all, read_exactly, receive_digest, reset, run, send_random, tests_of)
from harness import tcp_configuration as configuration


# ---- Bytes ----


def half_of_a_connection_stays_open():
    with Server() as server, Proxy(configuration(server.name)) as proxy:
        for client_ends_first in (True, False):
            with proxy.client() as client, server.accept() as other:
                one, two = (client, other) if client_ends_first else (other, client)
                one.sendall(b"question")
                one.shutdown(socket.SHUT_WR)
                equal(read_all(two), b"question")
                two.sendall(b"answer")
                equal(read_exactly(one, 6), b"answer")
                two.sendall(b", and more")
                two.shutdown(socket.SHUT_WR)
                equal(read_all(one), b", and more")
                proxy.out.expect(r'^\S+ tcp 127\.0\.0\.1:\d+ 127\.0\.0\.1:0 web/\S+ in=\d+ out=\d+ .* retries=0 end="done"$')


def big_transfers_come_whole_both_ways():
    size = 48 << 20
    for splice in ("on", "off"):
        with Server() as server, Proxy(configuration(server.name, head=f"splice {splice}")) as proxy:
            baseline = baseline_of(proxy, server)
            with proxy.client() as client, server.accept() as other:
                senders = [Beside(send_random, client, size, "up"), Beside(send_random, other, size, "down")]
                receivers = [Beside(receive_digest, other), Beside(receive_digest, client)]
                for sender, receiver in zip(senders, receivers):
                    equal(receiver.result(), (size, sender.result()))
            proxy.out.expect(f"in={size} out={size} .*done")
            equal(proxy.idle(), baseline, "descriptors")


def small_pieces_are_not_held_back():
    with Server(echo) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        for number in range(500):
            text = f"{number};".encode()
            client.sendall(text)
            equal(read_exactly(client, len(text)), text)


def big_and_small_pieces_take_turns():
    """A direction switches to a pipe, and back."""
    with Server(echo) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
        block = os.urandom(3 << 20)
        for _ in range(4):
            sender = Beside(client.sendall, block)
            equal(read_exactly(client, len(block)) == block, True, "the block")
            sender.result()
            for number in range(20):
                client.sendall(bytes([number]))
                equal(read_exactly(client, 1), bytes([number]))


def a_slow_reader_holds_the_sender_back():
    with Server() as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client, server.accept() as other:
            other.settimeout(0.5)
            sent, block = 0, bytes(1 << 16)
            try:
                while sent < 1 << 30:
                    sent += other.send(block)
            except TimeoutError:
                pass
            check(sent < 64 << 20, sent, "bytes were taken that nobody reads")
            other.settimeout(PATIENCE)
            other.shutdown(socket.SHUT_WR)
            equal(receive_digest(client)[0], sent)


def a_reset_is_passed_on():
    with Server() as server, Proxy(configuration(server.name)) as proxy:
        for client_resets in (True, False):
            with proxy.client() as client, server.accept() as other:
                for one, two in ((client, other), (other, client)):
                    one.sendall(b"x")
                    equal(read_exactly(two, 1), b"x")
                reset(client if client_resets else other)
                check(is_reset(other if client_resets else client), "the end looks like a good one")
            proxy.out.expect('end="(client|server): Connection reset by peer"')


# ---- Servers that fail ----


def another_server_is_tried_when_one_rejects():
    with Server(greeter("good")) as server:
        closed = f"127.0.0.1:{free_port()}"
        with Proxy(configuration(closed, server.name, backend="fail 3 1h")) as proxy:
            for _ in range(8):
                with proxy.client() as client:
                    equal(read_all(client), b"good")
            proxy.out.expect(f"server web/{closed} has failed 3 times and is suspended: Connection refused")
            statistics = proxy.statistics()
            equal(statistics["retries"], "3")
            equal(statistics["failed"], "0")
            check(statistics[f"web/{closed}"].startswith("suspended,live:0,total:3,failed:3"), statistics)


def another_server_is_tried_when_one_dies_at_once():
    """The server accepts, and resets before a byte was exchanged; the client is silent meanwhile."""
    with Server(reset) as bad, Server(greeter("good")) as good:
        with Proxy(configuration(bad.name, good.name, backend="fail 0")) as proxy:
            for _ in range(6):
                with proxy.client() as client:
                    equal(read_all(client), b"good")
            check(bad.served >= 3, bad.served)


def no_other_server_is_tried_after_the_first_byte():
    def dies(connection):
        connection.sendall(b"some")
        connection.recv(1)
        reset(connection)

    with Server(dies) as bad, Server(greeter("good")) as good:
        with Proxy(configuration(bad.name, f"{good.name}")) as proxy:
            with proxy.client() as client:
                equal(read_exactly(client, 4), b"some")
                client.sendall(b"x")
                check(is_reset(client), "it was not reset")
            proxy.out.expect('in=1 out=4 .* retries=0 end="server: Connection reset')
            equal(good.served, 0)


def a_client_is_let_go_when_no_server_is_up():
    closed = f"127.0.0.1:{free_port()}"
    with Proxy(configuration(closed)) as proxy:
        with proxy.client() as client:
            equal(read_all(client), b"")
        proxy.out.expect(f'web/{closed} in=0 out=0 .* end="Connection refused"')
        equal(proxy.statistics()["failed"], "1")


def a_server_that_does_not_answer_is_given_up():
    with Server(backlog=0) as slow, Server(greeter("good")) as good, slow.fill():
        with Proxy(configuration(slow.name, good.name, backend="connect-timeout 2s\nfail 0")) as proxy:
            with proxy.client() as client:
                equal(read_all(client), b"good")
            proxy.out.expect('retries=1 end="done"')


def a_server_that_has_come_back_is_used():
    port = free_port()
    with Server(greeter("other")) as other:
        with Proxy(configuration(f"127.0.0.1:{port}", other.name, backend="fail 1 50ms")) as proxy:
            with proxy.client() as client:
                equal(read_all(client), b"other")
            proxy.out.expect("has failed 1 times and is suspended")
            with Server(greeter("back"), port=port):
                answer = None
                while answer != b"back":
                    with proxy.client() as client:
                        answer = read_all(client)
            proxy.out.expect(f"server web/127.0.0.1:{port} is used again")


# ---- Balance ----


def weights_say_who_is_next():
    with Server(greeter("a")) as one, Server(greeter("b")) as two, Server(greeter("c")) as three:
        names = f"{one.name} weight 5", f"{two.name} weight 2", f"{three.name} weight 1"
        with Proxy(configuration(*names)) as proxy:
            order = b""
            for _ in range(24):
                with proxy.client() as client:
                    order += read_all(client)
            equal((order.count(b"a"), order.count(b"b"), order.count(b"c")), (15, 6, 3), order)
            equal(order[:8], order[8:16])
            check(b"aaaa" not in order, order, "is not smooth")


def the_least_connected_server_is_chosen():
    def stay(name):
        def serve(connection):
            connection.sendall(name)
            connection.recv(1)

        return serve

    with Server(stay(b"a")) as one, Server(stay(b"b")) as two:
        with Proxy(configuration(f"{one.name} weight 2", two.name, backend="balance least-connections")) as proxy:
            clients = [proxy.client() for _ in range(6)]
            names = [read_exactly(client, 1) for client in clients]
            equal(names.count(b"a"), 4, names)
            for client, name in zip(clients, names):
                if name == b"a":
                    client.close()
            while not proxy.statistics()[f"web/{one.name}"].startswith("up,live:0"):
                pass
            with proxy.client() as client:
                equal(read_exactly(client, 1), b"a")
            for client in clients:
                client.close()


def a_server_gets_no_more_than_its_maximum():
    with Server() as one, Server() as two:
        with Proxy(configuration(f"{one.name} max 1 weight 9", f"{two.name} max 2")) as proxy:
            clients = [proxy.client() for _ in range(3)]
            others = [one.accept(), two.accept(), two.accept()]
            with proxy.client() as client:
                equal(read_all(client), b"")
            proxy.out.expect('web/- .*end="no server is up"')
            for connection in clients + others:
                connection.close()


def a_server_may_have_a_name_or_a_path():
    with Server(greeter("name")) as server:
        with Proxy(configuration(f"localhost:{server.port}")) as proxy:
            proxy.out.expect("server web/localhost:.* is resolved")
            with proxy.client() as client:
                equal(read_all(client), b"name")
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/socket"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            with Proxy(configuration(f"unix:{path}")) as proxy, proxy.client() as client:
                other, _ = listener.accept()
                with other:
                    client.sendall(b"x")
                    equal(other.recv(1), b"x")


# ---- Health ----


def health_goes_down_and_comes_up():
    port = free_port()
    check_line = "check tcp every 20ms timeout 5s rise 2 fall 2"
    with Server(greeter("other")) as other:
        with Proxy(configuration(f"127.0.0.1:{port}", other.name, backend=check_line)) as proxy:
            proxy.out.expect(f"server web/127.0.0.1:{port} is down: Connection refused")
            for _ in range(4):
                with proxy.client() as client:
                    equal(read_all(client), b"other")
            with Server(greeter("up"), port=port) as server:
                proxy.out.expect(f"server web/127.0.0.1:{port} is up")
                answers = set()
                for _ in range(4):
                    with proxy.client() as client:
                        answers.add(read_all(client))
                equal(answers, {b"other", b"up"})
                server.close()
                proxy.out.expect(f"server web/127.0.0.1:{port} is down")
            equal(proxy.statistics()["retries"], "0")


# ---- The PROXY protocol ----

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def version_2(addresses, family=0x11, command=0x21, additions=b""):
    body = addresses + additions
    return SIGNATURE + bytes([command, family]) + len(body).to_bytes(2, "big") + body


V4 = socket.inet_aton("192.0.2.1") + socket.inet_aton("192.0.2.2") + (4660).to_bytes(2, "big") + (443).to_bytes(2, "big")


def the_proxy_protocol_is_taken_in_any_pieces():
    headers = [
        b"PROXY TCP4 192.0.2.1 192.0.2.2 4660 443\r\n",
        version_2(V4),
        version_2(V4, additions=b"\x04\x00\x05noise" + bytes(600)),
    ]
    with Server(echo) as server, Proxy(configuration(server.name, listen="accept-proxy 127.0.0.0/8")) as proxy:
        for header in headers:
            for cut in range(min(len(header), 64) + 1):
                with proxy.client() as client:
                    client.sendall(header[:cut])
                    client.sendall(header[cut:] + b"own bytes")
                    equal(read_exactly(client, 9), b"own bytes")
                    client.shutdown(socket.SHUT_WR)
                    equal(read_all(client), b"")
                proxy.out.expect(r"tcp 192\.0\.2\.1:4660 .* in=9 out=9")


def bad_proxy_headers_are_rejected():
    bad = [b"GET / HTTP/1.1\r\n\r\n", b"PROXY TCP4 192.0.2.1 192.0.2.2 4660\r\n", b"PROXY TCP4" + b" " * 200,
           b"PROXY TCP6 192.0.2.1 192.0.2.2 4660 443\r\n", b"PROXY TCP6 fe80::1%1 fe80::2%1 4660 443\r\n",
           version_2(V4, family=0x41), version_2(V4, family=0x13), b"PROXY TCP4 192.0.2.1 192.0.2.2 4660 65536\r\n",
           version_2(V4, command=0x31), version_2(V4, command=0x22), version_2(V4[:8]), version_2(bytes(60000))]
    with Server(echo) as server, Proxy(configuration(server.name, listen="accept-proxy")) as proxy:
        for header in bad:
            with proxy.client() as client:
                try:
                    client.sendall(header)
                    equal(read_all(client), b"", header)
                except (ConnectionResetError, BrokenPipeError):
                    pass
            proxy.out.expect("rejected .* bad PROXY header")
        with proxy.client() as client:
            client.sendall(b"PROXY TCP4 192")
            client.shutdown(socket.SHUT_WR)
            equal(read_all(client), b"")
        proxy.out.expect("rejected .* no PROXY header")
        equal(server.served, 0)


def others_may_not_speak_for_clients():
    with Server(echo) as server, Proxy(configuration(server.name, listen="accept-proxy 10.0.0.0/8 ::1")) as proxy:
        with proxy.client() as client:
            equal(read_all(client), b"")
        proxy.out.expect("rejected .* not trusted with the PROXY protocol")


def servers_receive_the_client_address():
    with Server() as server:
        for version in ("v1", "v2"):
            with Proxy(configuration(server.name, backend=f"send-proxy {version}")) as proxy:
                with proxy.client() as client, server.accept() as other:
                    client.sendall(b"own")
                    client.shutdown(socket.SHUT_WR)
                    port = client.getsockname()[1]
                    local = socket.inet_aton("127.0.0.1")
                    wanted = (f"PROXY TCP4 127.0.0.1 127.0.0.1 {port} {proxy.port}\r\n".encode() if version == "v1" else
                              version_2(local + local + port.to_bytes(2, "big") + proxy.port.to_bytes(2, "big")))
                    equal(read_all(other), wanted + b"own")


def headers_are_passed_on_from_proxy_to_proxy():
    with Server() as server, Proxy(configuration(server.name, listen="accept-proxy", backend="send-proxy v1")) as proxy:
        with proxy.client() as client:
            client.sendall(b"PROXY TCP6 2001:db8::1 2001:db8::2 4660 443\r\n")
            with server.accept() as other:
                client.shutdown(socket.SHUT_WR)
                equal(read_all(other), b"PROXY TCP6 2001:db8::1 2001:db8::2 4660 443\r\n")
        with proxy.client() as client:
            client.sendall(version_2(b"", command=0x20, family=0))
            with server.accept() as other:
                client.shutdown(socket.SHUT_WR)
                check(read_all(other).startswith(b"PROXY TCP4 127.0.0.1 127.0.0.1 "))


# ---- Limits ----


def clients_beyond_the_maximum_wait():
    with Server(echo) as server, Proxy(configuration(server.name, listen="max-connections 2")) as proxy:
        first, second, third = proxy.client(), proxy.client(), proxy.client()
        for client in (first, second):
            client.sendall(b"x")
            equal(client.recv(1), b"x")
        third.sendall(b"y")
        equal(proxy.statistics()["live"], "2")
        first.close()
        equal(third.recv(1), b"y")
        second.close()
        third.close()


def a_rate_is_kept():
    with Server(greeter("in")) as server, Proxy(configuration(server.name, listen="rate 1 2")) as proxy:
        answers = []
        for _ in range(20):
            with proxy.client() as client:
                answers.append(read_all(client))
        check(b"" in answers, answers)
        equal(answers[:2], [b"in", b"in"])
        proxy.out.expect("rejected .* rate exceeded")


def an_idle_connection_is_closed():
    with Server() as server, Proxy(configuration(server.name, listen="idle-timeout 50ms")) as proxy:
        with proxy.client() as client, server.accept() as other:
            equal(read_all(client), b"")
            equal(read_all(other), b"")
        proxy.out.expect('end="idle: Connection timed out"')


def a_busy_connection_is_not_idle():
    """A connection with data in only one direction stays open longer than the idle timeout."""
    with Server() as server, Proxy(configuration(server.name, listen="idle-timeout 3s")) as proxy:
        with proxy.client() as client, server.accept() as other:
            client.settimeout(0.04)
            came = 0
            for _ in range(100):
                other.sendall(b".")
                try:
                    while client.recv(1):
                        came += 1
                except TimeoutError:
                    pass
            client.settimeout(PATIENCE)
            other.close()
            equal(came + len(read_all(client)), 100)
        proxy.out.expect('out=100 .*end="done"')


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    run(tests_of(globals()), sys.argv[1:])
