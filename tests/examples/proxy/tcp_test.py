#!/usr/bin/env python3
"""The proxy in mode tcp, with servers and clients of this test: tcp_test.py PROGRAM [TEST...]."""

import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile

from harness import (PATIENCE, Beside, Proxy, Server, check, echo, equal, free_port, greeter, is_reset,
                     read_all, read_exactly, receive_digest, reset, run, send_random,
                     tests_of)


def configuration(*servers, listen="", backend="", head=""):
    lines = "".join(f"server {server}\n" for server in servers)
    return f"{head}\nlisten 127.0.0.1:0\nto web\n{listen}\nbackend web\n{backend}\n{lines}"


def wait_until_refused(port, host="127.0.0.1"):
    """Nobody listens any more."""
    while True:
        try:
            socket.create_connection((host, port), timeout=PATIENCE).close()
        except (ConnectionRefusedError, ConnectionResetError):
            return


def baseline_of(proxy, server=None):
    """How many descriptors it has once it has served somebody."""
    with proxy.client():
        if server:
            server.accept().close()
    return proxy.idle(accepted=1)


class FirstOnly:
    """Echoes on the first connection, and closes the others."""

    def __init__(self):
        self.taken = False

    def __call__(self, connection):
        if not self.taken:
            self.taken = True
            echo(connection)


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
    """A direction goes over to a pipe, and back."""
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


def another_server_is_tried_when_one_refuses():
    with Server(greeter("good")) as server:
        closed = f"127.0.0.1:{free_port()}"
        with Proxy(configuration(closed, server.name, backend="fail 3 1h")) as proxy:
            for _ in range(8):
                with proxy.client() as client:
                    equal(read_all(client), b"good")
            proxy.out.expect(f"server web/{closed} has failed 3 times, and is left alone: Connection refused")
            figures = proxy.figures()
            equal(figures["retries"], "3")
            equal(figures["failed"], "0")
            check(figures[f"web/{closed}"].startswith("away,live:0,total:3,failed:3"), figures)


def another_server_is_tried_when_one_dies_at_once():
    """It accepts, and resets before a byte was exchanged; the client says nothing meanwhile."""
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
        equal(proxy.figures()["failed"], "1")


def a_server_that_does_not_answer_is_given_up():
    with Server(backlog=0) as slow, Server(greeter("good")) as good, slow.fill():
        with Proxy(configuration(slow.name, good.name, backend="connect-timeout 100ms\nfail 0")) as proxy:
            with proxy.client() as client:
                equal(read_all(client), b"good")
            proxy.out.expect('retries=1 end="done"')


def a_server_that_has_come_back_is_used():
    port = free_port()
    with Server(greeter("other")) as other:
        with Proxy(configuration(f"127.0.0.1:{port}", other.name, backend="fail 1 50ms")) as proxy:
            with proxy.client() as client:
                equal(read_all(client), b"other")
            proxy.out.expect("has failed 1 times, and is left alone")
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
            while not proxy.figures()[f"web/{one.name}"].startswith("up,live:0"):
                pass
            with proxy.client() as client:
                equal(read_exactly(client, 1), b"a")
            for client in clients:
                client.close()


def a_server_gets_no_more_than_its_most():
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
            proxy.out.expect("server web/localhost:.* is found")
            with proxy.client() as client:
                equal(read_all(client), b"name")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
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
            equal(proxy.figures()["retries"], "0")


def health_is_what_a_page_says():
    status = [b"HTTP/1.1 200 OK"]

    def page(connection):
        request = connection.recv(4096)
        check(request.startswith(b"GET /health HTTP/1.1\r\nHost: here\r\n"), request)
        for byte in status[0] + b"\r\n\r\n":
            connection.sendall(bytes([byte]))

    with Server(page) as server:
        line = "check http /health host here every 20ms timeout 10s rise 1 fall 1"
        with Proxy(configuration(server.name, backend=line)) as proxy:
            for bad in (b"HTTP/1.1 503 no", b"HTTP/1.1 2", b"SSH-2.0-OpenSSH_9.2p1"):
                status[0] = bad
                proxy.out.expect("is down: its answer is no good")
                status[0] = b"HTTP/1.0 204 fine"
                proxy.out.expect("is up")


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


def bad_proxy_headers_are_refused():
    bad = [b"GET / HTTP/1.1\r\n\r\n", b"PROXY TCP4 192.0.2.1 192.0.2.2 4660\r\n", b"PROXY TCP4" + b" " * 200,
           b"PROXY TCP6 192.0.2.1 192.0.2.2 4660 443\r\n", b"PROXY TCP4 192.0.2.1 192.0.2.2 4660 65536\r\n",
           version_2(V4, command=0x31), version_2(V4, command=0x22), version_2(V4[:8]), version_2(bytes(60000))]
    with Server(echo) as server, Proxy(configuration(server.name, listen="accept-proxy")) as proxy:
        for header in bad:
            with proxy.client() as client:
                client.sendall(header)
                try:
                    equal(read_all(client), b"", header)
                except ConnectionResetError:
                    pass
            proxy.out.expect("refused .* a bad PROXY header")
        with proxy.client() as client:
            client.sendall(b"PROXY TCP4 192")
            client.shutdown(socket.SHUT_WR)
            equal(read_all(client), b"")
        proxy.out.expect("refused .* no PROXY header")
        equal(server.served, 0)


def others_may_not_speak_for_clients():
    with Server(echo) as server, Proxy(configuration(server.name, listen="accept-proxy 10.0.0.0/8 ::1")) as proxy:
        with proxy.client() as client:
            equal(read_all(client), b"")
        proxy.out.expect("refused .* not trusted with the PROXY protocol")


def servers_are_told_who_the_client_is():
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


def clients_beyond_the_most_wait():
    with Server(echo) as server, Proxy(configuration(server.name, listen="max-connections 2")) as proxy:
        first, second, third = proxy.client(), proxy.client(), proxy.client()
        for client in (first, second):
            client.sendall(b"x")
            equal(client.recv(1), b"x")
        third.sendall(b"y")
        equal(proxy.figures()["live"], "2")
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
        proxy.out.expect("refused .* too many a second")


def descriptors_run_out_and_come_back():
    with Server(echo) as server:
        with Proxy(configuration(server.name), prefix=("prlimit", "--nofile=64")) as proxy:
            baseline = baseline_of(proxy)
            clients = []
            for _ in range(120):
                clients.append(proxy.client())
            alive = 0
            for client in clients:
                client.settimeout(PATIENCE)
                try:
                    client.sendall(b"x")
                except OSError:
                    continue
            for client in clients[:20]:
                try:
                    alive += client.recv(1) == b"x"
                except OSError:
                    pass
            check(alive > 0, "nobody was served")
            for client in clients:
                client.close()
            proxy.idle()
            for _ in range(10):
                with proxy.client() as client:
                    client.sendall(b"y")
                    equal(client.recv(1), b"y")
            check(proxy.idle() <= baseline, proxy.descriptors(), "descriptors, and it was", baseline)


def an_idle_connection_is_closed():
    with Server() as server, Proxy(configuration(server.name, listen="idle-timeout 50ms")) as proxy:
        with proxy.client() as client, server.accept() as other:
            equal(read_all(client), b"")
            equal(read_all(other), b"")
        proxy.out.expect('end="idle: Connection timed out"')


def a_busy_connection_is_not_idle():
    """It talks for longer than it may be idle, and is never silent for as long as that; only one direction talks."""
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


# ---- Configuration ----


def mistakes_are_told_with_their_line():
    good = "listen 127.0.0.1:0\nto web\nbackend web\nserver 127.0.0.1:1\n"
    mistakes = [
        ("", 0, "there is nothing to listen on"),
        ("listen nonsense:x:y\n", 1, "is not an address"),
        ("listen 127.0.0.1:0\n", 1, "says nothing of where to go"),
        ("listen 127.0.0.1:0\nto web\n", 2, "there is no backend 'web'"),
        ("to web\n", 1, "'to' does not stand before the first section"),
        ("\n# x\nlog\n", 3, "the form is: log off, stdout, stderr or PATH"),
        ("frobnicate 1\n", 1, "'frobnicate' is not known"),
        (good + "server 10.0.0.1:99999\n", 5, "is not a number from 1 to 65535"),
        (good + "server nowhere\n", 5, "is not an address"),
        (good + "server 127.0.0.1:1 weight 0\n", 5, "is not a number from 1 to 1000"),
        (good + "server 127.0.0.1:1 heavy 1\n", 5, "after the address come"),
        (good + "balance best\n", 5, "is neither"),
        (good + "connect-timeout soon\n", 5, "is not a time"),
        (good + "check tcp every\n", 5, "has no value"),
        (good + "check http page\n", 5, "has a path"),
        (good + "send-proxy v3\n", 5, "is neither v1 nor v2"),
        (good + "backend web\n", 5, "there is a backend 'web' already, on line 3"),
        (good + "backend other\n", 5, "backend 'other' has no server"),
        (good + "listen 127.0.0.1:0\n", 5, "is listened on already, by line 1"),
        ("listen 127.0.0.1:0\naccept-proxy 10.0.0.0/33\n", 2, "is not a number from 0 to 32"),
        ("listen 127.0.0.1:0\nroute /a web\nto web\nbackend web\nserver 127.0.0.1:1\n", 2, "mode tcp has one"),
        ('log "x\n', 1, "the second '\"' is missing"),
        ("log " + "x" * 5000 + "\n", 1, "the line is longer than"),
        ("log" + " x" * 40 + "\n", 1, "there are more than"),
    ]
    with tempfile.NamedTemporaryFile("w") as file:
        for text, line, message in mistakes:
            file.seek(0)
            file.truncate()
            file.write(text)
            file.flush()
            done = subprocess.run([Proxy.program, "--check", file.name], capture_output=True, text=True, check=False)
            equal(done.returncode, 1, text)
            check(done.stderr.startswith(f"proxy: {file.name}:{line}: ") and message in done.stderr, text, done.stderr)
        file.seek(0)
        file.truncate()
        file.write(good + "# the end")
        file.flush()
        done = subprocess.run([Proxy.program, "--check", file.name], capture_output=True, text=True, check=False)
        equal((done.returncode, done.stdout, done.stderr), (0, "", ""))
    for arguments in ((), ("--nonsense",), ("--check", "/nowhere/at/all"), ("a", "b"), ("--http", "a")):
        done = subprocess.run([Proxy.program, *arguments], capture_output=True, text=True, check=False)
        check(done.returncode != 0 and done.stderr, arguments)
    done = subprocess.run([Proxy.program, "--help"], capture_output=True, text=True, check=False)
    check(done.returncode == 0 and done.stdout.startswith("usage: proxy"))


def options_do_in_place_of_a_file():
    with Server(greeter("good")) as server:
        with Proxy(options=("--server", f"{server.name} weight 3", "--log", "stderr", "--least-connections")) as proxy:
            with proxy.client() as client:
                equal(read_all(client), b"good")
            proxy.err.expect(f"tcp 127.0.0.1:.* servers/{server.name} in=0 out=4")


def a_reload_lets_old_connections_go_on():
    with Server() as one, Server() as two:
        with Proxy(configuration(one.name)) as proxy:
            with proxy.client() as old, one.accept() as other:
                old.sendall(b"1")
                equal(other.recv(1), b"1")
                proxy.configure(configuration(two.name) + "listen 127.0.0.2:0\nto web\n")
                proxy.signal(signal.SIGHUP)
                port = int(proxy.out.expect(r"listening .* on 127\.0\.0\.2:\d+, port (\d+)").group(1))
                for address in (("127.0.0.1", proxy.port), ("127.0.0.2", port)):
                    with socket.create_connection(address, timeout=PATIENCE) as client, two.accept() as new:
                        new.sendall(b"new")
                        equal(read_exactly(client, 3), b"new")
                other.sendall(b"2")
                equal(old.recv(1), b"2")
                # the second listener leaves; a connection of it goes on
                with socket.create_connection(("127.0.0.2", port), timeout=PATIENCE) as client, two.accept() as new:
                    proxy.configure(configuration(two.name))
                    proxy.signal(signal.SIGHUP)
                    wait_until_refused(port, "127.0.0.2")
                    new.sendall(b"still")
                    equal(read_exactly(client, 5), b"still")
                    two.close()


def a_bad_reload_changes_nothing():
    with Server(greeter("good")) as server, Proxy(configuration(server.name)) as proxy:
        baseline = baseline_of(proxy)
        for text, message in ((configuration("nowhere"), r":\d+: 'nowhere' is not an address"),
                              (configuration(server.name) + "listen 127.0.0.1:0\n", "is listened on already"),
                              (f"listen 127.0.0.3:0\nto web\nlisten 127.0.0.1:{server.port}\nto web\n"
                               f"backend web\nserver {server.name}\n", "Address already in use")):
            proxy.configure(text)
            proxy.signal(signal.SIGHUP)
            proxy.err.expect(message)
            with proxy.client() as client:
                equal(read_all(client), b"good")
        equal(proxy.idle(), baseline, "descriptors")


def a_reload_keeps_what_is_known_of_servers():
    closed = f"127.0.0.1:{free_port()}"
    with Server(greeter("good")) as server:
        text = configuration(closed, server.name, backend="check tcp every 20ms fall 1 rise 1")
        with Proxy(text) as proxy:
            proxy.out.expect("is down")
            proxy.configure(text + "# changed\n")
            proxy.signal(signal.SIGHUP)
            for _ in range(6):
                with proxy.client() as client:
                    equal(read_all(client), b"good")
            equal(proxy.figures()["retries"], "0")


def the_log_is_opened_anew():
    with tempfile.TemporaryDirectory() as folder, Server(greeter("good")) as server:
        path = f"{folder}/log"
        with Proxy(configuration(server.name, head=f'log "{path}"')) as proxy:
            with proxy.client() as client:
                equal(read_all(client), b"good")
            proxy.idle()
            if os.path.exists(path):  # (it is written beside)
                os.rename(path, f"{path}.1")
            proxy.signal(signal.SIGHUP)
            proxy.figures()
            with proxy.client() as client:
                equal(read_all(client), b"good")
        lines = ""
        for name in sorted(os.listdir(folder)):
            with open(f"{folder}/{name}", encoding="ascii") as file:
                lines += file.read()
        equal(lines.count(" tcp "), 2, lines)
        check(os.path.exists(path), os.listdir(folder))


# ---- Its end ----


def it_ends_when_its_connections_have():
    with Server(FirstOnly()) as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            client.sendall(b"x")
            equal(client.recv(1), b"x")
            proxy.signal(signal.SIGTERM)
            wait_until_refused(proxy.port)
            client.sendall(b"still here")
            equal(read_exactly(client, 10), b"still here")
        equal(proxy.wait(), 0)


def it_ends_at_once_when_it_is_asked_twice():
    with Server(FirstOnly()) as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            client.sendall(b"x")
            equal(client.recv(1), b"x")
            proxy.signal(signal.SIGTERM)
            wait_until_refused(proxy.port)
            proxy.signal(signal.SIGINT)
            equal(proxy.wait(), 0)
            proxy.out.expect('end="stopped"')


def it_ends_when_the_time_is_over():
    with Server() as server, Proxy(configuration(server.name, head="shutdown-timeout 50ms")) as proxy:
        with proxy.client() as client, server.accept() as other:
            client.sendall(b"x")
            equal(other.recv(1), b"x")
            proxy.signal(signal.SIGTERM)
            equal(proxy.wait(), 0)


def it_ends_while_it_connects():
    with Server(backlog=0) as slow, slow.fill():
        text = configuration(slow.name, head="shutdown-timeout 10ms", backend="connect-timeout 1h\ncheck tcp timeout 1h")
        with Proxy(text) as proxy, proxy.client():
            while proxy.figures()[f"web/{slow.name}"].split(",")[1] != "live:1":
                pass
            proxy.signal(signal.SIGTERM)
            equal(proxy.wait(), 0)


def nothing_is_left_of_many_connections():
    with Server(echo) as server, Proxy(configuration(server.name)) as proxy:
        baseline = baseline_of(proxy)
        for _ in range(5):
            clients = [proxy.client() for _ in range(60)]
            for number, client in enumerate(clients):
                client.sendall(b"x" * (number + 1))
            for number, client in enumerate(clients):
                if number % 3 == 0:
                    reset(client)
                else:
                    read_exactly(client, number + 1)
                    client.close()
        equal(proxy.idle(), baseline, "descriptors")
        figures = proxy.figures()
        equal((figures["buffers"], figures["connections"]), ("0", "301"))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    run(tests_of(globals()), sys.argv[1:])
