#!/usr/bin/env python3
"""Tests the proxy while peers vanish or its own calls fail: failures_test.py PROGRAM [TEST...].

No other connection loses data, and no descriptor leaks. The tests of calls are for the program linked with
tests/programs/faults.c, and are skipped for the other.
"""

import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time

from harness import (PATIENCE, Failure, NotBegun, Proxy, Server, check, echo, equal, read_all, read_exactly,
                     reset, run, tests_of)

LENGTH = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789"
CHUNKS = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"
RESPONSES = (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789",
             b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n")
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
WAYS = (socket.socket.close, reset)


def configuration(*servers, mode="http", listen="", backend=""):
    lines = "".join(f"server {server}\n" for server in servers)
    return f"listen 127.0.0.1:0\nmode {mode}\nto web\n{listen}\nbackend web\nkeep 0\nfail 0\n{backend}\n{lines}"


def ends_of(message):
    """The positions to cut a message at: within each line, and at the end of each."""
    ends = {0, 1, len(message)}
    at = -1
    while (at := message.find(b"\r\n", at + 1)) >= 0:
        ends |= {at - 1, at, at + 1, at + 2}
    return sorted(end for end in ends if 0 <= end <= len(message))


def read_head(connection):
    """Reads a request or a response; returns it and the data behind it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(4096)
        if not piece:
            raise EOFError(data)
        data += piece
    return data


def answer_each(connection):
    """The response of a healthy server to requests without bodies."""
    while True:
        try:
            read_head(connection)
        except EOFError:
            return
        connection.sendall(RESPONSES[0])


def is_well(proxy):
    """Checks that a request of another client is answered."""
    with proxy.client() as client:
        client.sendall(GET)
        data = b""
        while not data.endswith(b"0123456789"):
            piece = client.recv(4096)
            check(piece, "the end came after", data)
            data += piece
        return data.startswith(b"HTTP/1.1 200 ")


def rest_of(connection):
    """Everything received until the end or a reset."""
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def comes_back(proxy, baseline, accepted=0):
    """Checks that after this many connections have been accepted and closed, no descriptor has leaked."""
    patience = time.monotonic() + PATIENCE
    while (descriptors := proxy.idle(accepted)) > baseline:
        check(time.monotonic() < patience, descriptors, "descriptors, and it was", baseline)


# ---- Peers that vanish ----


def clients_vanish_while_they_send():
    with Server(answer_each) as server, Proxy(configuration(server.name)) as proxy:
        check(is_well(proxy))
        baseline, count = proxy.idle(accepted=1), 1
        for message in (LENGTH, CHUNKS):
            for end in ends_of(message)[:-1]:
                for vanish in WAYS:
                    client = proxy.client()
                    client.sendall(message[:end])
                    vanish(client)
                    count += 1
            check(is_well(proxy))
            count += 1
        comes_back(proxy, baseline, count)


def clients_vanish_while_they_wait():
    with Server() as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client():
            pass
        baseline, count = proxy.idle(accepted=1), 1
        for response in RESPONSES:
            for end in ends_of(response):
                for vanish in WAYS:
                    client = proxy.client()
                    count += 1
                    client.sendall(GET)
                    with server.accept() as other:
                        read_head(other)
                        other.sendall(response[:end])
                        head = response.index(b"\r\n\r\n") + 4
                        if end > head: # (received parts of a body are not held back)
                            read_head(client)
                        vanish(client)
                        other.sendall(response[end:])
        comes_back(proxy, baseline, count)


def servers_vanish_while_they_are_asked():
    """A server that vanishes before its response leads to a 502."""
    with Server() as server, Proxy(configuration(server.name, backend="retries 0")) as proxy:
        with proxy.client():
            pass
        baseline, count = proxy.idle(accepted=1), 1
        for message in (LENGTH, CHUNKS):
            for end in ends_of(message):
                if end <= message.index(b"0123"): # (nothing is sent before a part of the body has arrived)
                    continue
                for vanish in WAYS:
                    with proxy.client() as client:
                        count += 1
                        client.sendall(message[:end])
                        other = server.accept()
                        read_head(other)
                        vanish(other)
                        try:
                            client.sendall(message[end:])
                        except OSError:
                            pass # answered and closed
                        data = rest_of_response(client)
                        check(data.startswith(b"HTTP/1.1 502 "), end, vanish, data)
        comes_back(proxy, baseline, count)


def rest_of_response(client):
    """Reads a short body with a length, or less if the input ends first."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            piece = client.recv(4096)
            if not piece:
                return data
            data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length: "):
                size = int(line.split()[1])
                while len(body) < size:
                    piece = client.recv(4096)
                    if not piece:
                        break
                    body += piece
                return head + b"\r\n\r\n" + body
        return data + rest_of(client)
    except ConnectionResetError:
        return data


def servers_vanish_while_they_respond():
    """Before the head is complete, that is a 502; afterwards the client gets less than announced, and the end."""
    with Server() as server, Proxy(configuration(server.name, backend="retries 0")) as proxy:
        with proxy.client():
            pass
        baseline, count = proxy.idle(accepted=1), 1
        for response in RESPONSES:
            head = response.index(b"\r\n\r\n") + 4
            for end in ends_of(response)[:-1]:
                for vanish in WAYS:
                    with proxy.client() as client:
                        count += 1
                        client.sendall(GET)
                        other = server.accept()
                        read_head(other)
                        other.sendall(response[:end])
                        vanish(other)
                        data = rest_of_response(client)
                        if data.startswith(b"HTTP/1.1 200 "):
                            check(end >= head, end, data)
                            body = data.split(b"\r\n\r\n", 1)[1]
                            check(body != b"0123456789" and not body.endswith(b"0\r\n\r\n"), end, data)
                        elif end < head:
                            check(data.startswith(b"HTTP/1.1 502 "), end, vanish, data)
                        else: # nothing of the response had been sent
                            check(data == b"" or data.startswith(b"HTTP/1.1 502 "), end, vanish, data)
        comes_back(proxy, baseline, count)


def peers_of_tcp_vanish():
    """Each side closes or resets after each of a few exchanges; the other side sees it."""
    with Server() as server, Proxy(configuration(server.name, mode="tcp", backend="retries 0")) as proxy:
        with proxy.client():
            server.accept().close()
        baseline, count = proxy.idle(accepted=1), 1
        for exchanges in range(4):
            for client_goes in (True, False):
                for half in (False, True):
                    for vanish in WAYS:
                        client, other = proxy.client(), server.accept()
                        count += 1
                        for turn in range(exchanges):
                            one, two = (client, other) if turn % 2 == 0 else (other, client)
                            one.sendall(b"x" * 40000)
                            equal(read_exactly(two, 40000), b"x" * 40000)
                        one, two = (client, other) if client_goes else (other, client)
                        if half: # the other side has closed its half before
                            two.shutdown(socket.SHUT_WR)
                            equal(one.recv(1), b"")
                        vanish(one)
                        equal(rest_of(two), b"")
                        two.close()
        comes_back(proxy, baseline, count)


def peers_of_tcp_vanish_under_way():
    """While bulk data is on its way in both directions, and neither side reads."""
    with Server() as server, Proxy(configuration(server.name, mode="tcp", backend="retries 0")) as proxy:
        with proxy.client():
            server.accept().close()
        baseline, count = proxy.idle(accepted=1), 1
        for client_goes in (True, False):
            for vanish in WAYS:
                client, other = proxy.client(), server.accept()
                count += 1
                for end in (client, other):
                    end.setblocking(False)
                    try:
                        while end.send(b"y" * 65536):
                            pass
                    except BlockingIOError:
                        pass
                    end.settimeout(PATIENCE)
                one, two = (client, other) if client_goes else (other, client)
                vanish(one)
                rest_of(two)
                two.close()
        comes_back(proxy, baseline, count)
        equal(proxy.statistics()["buffers"], "0")


def first_of_handshake(name):
    """The first message of a TLS client to a server of that name."""
    sent = ssl.MemoryBIO()
    try:
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


def clients_vanish_in_a_handshake():
    with tempfile.TemporaryDirectory() as directory:
        certificate = os.path.join(directory, "pem")
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                               "-days", "2", "-subj", "/CN=localhost", "-keyout", certificate + ".key", "-out", certificate],
                              capture_output=True, check=False)
        if made.returncode != 0:
            return "openssl is missing"
        hello = first_of_handshake("localhost")
        listen = f"certificate {certificate} {certificate}.key"
        with Server(answer_each) as server:
            try:
                proxy = Proxy(configuration(server.name, listen=listen))
            except NotBegun as why:
                check("TLS" in str(why), why)
                return "built without TLS"
            with proxy:
                with proxy.client():
                    pass
                baseline, count = proxy.idle(accepted=1), 1
                for end in range(0, len(hello) + 1, max(1, len(hello) // 20)):
                    for vanish in WAYS:
                        client = proxy.client()
                        client.sendall(hello[:end])
                        if end == len(hello): # it was answered
                            check(client.recv(1))
                        vanish(client)
                        count += 1
                comes_back(proxy, baseline, count)
                context = ssl._create_unverified_context()
                with context.wrap_socket(proxy.client()) as client:
                    client.sendall(GET)
                    check(rest_of_response(client).endswith(b"0123456789"))


# ---- CONNECT ----


def no_tunnel_is_made():
    """Data behind CONNECT may be meant for the tunnel: it is not a request, and the connection is closed."""
    def never(connection):
        raise Failure("it was connected to")

    for target in ("example.org:443", "127.0.0.1:1", "[::1]:80"):
        with Server(never) as server, Proxy(configuration(server.name)) as proxy, proxy.client() as client:
            client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode() + GET)
            data = rest_of(client)
            check(data.startswith(b"HTTP/1.1 501 Not Implemented\r\n"), data)
            check(b"\r\nConnection: close\r\n" in data, data)
            equal(data.count(b"HTTP/1.1 "), 1)
            proxy.out.expect(f'"CONNECT {target.replace("[", ".").replace("]", ".")}" 501 ')
            equal(server.served, 0)
            with proxy.client() as second:
                second.sendall(b"CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n")
                check(rest_of(second).startswith(b"HTTP/1.1 400 "))


# ---- Health, and queues ----


def what_is_under_way_outlives_a_check_that_fails():
    """Checks fail and a server goes down while it responds: that response is complete, and others fail meanwhile."""
    health = [b"HTTP/1.1 200 OK\r\n\r\n"]

    held = []

    def serve(connection):
        head = read_head(connection)
        if head.startswith(b"GET /health"):
            connection.sendall(health[0])
        elif head.startswith(b"GET /slow"):
            connection.sendall(RESPONSES[0][:-5])
            held.append(connection.dup())
        else:
            connection.sendall(RESPONSES[0])

    with Server(serve) as server:
        line = "check http /health every 20ms timeout 10s rise 1 fall 2"
        with Proxy(configuration(server.name, backend=line)) as proxy, proxy.client() as client:
            check(is_well(proxy))
            client.sendall(GET.replace(b"/ ", b"/slow ", 1))
            data = b""
            while not data.endswith(b"01234"):
                data += client.recv(4096)
            health[0] = b"HTTP/1.1 500 ill\r\n\r\n"
            proxy.out.expect("is down: bad response to the check")
            with proxy.client() as second:
                second.sendall(GET)
                check(rest_of_response(second).startswith(b"HTTP/1.1 503 "))
            held[0].sendall(b"56789")
            while not data.endswith(b"0123456789"):
                data += client.recv(4096)
            held[0].close()
            health[0] = b"HTTP/1.1 200 OK\r\n\r\n"
            proxy.out.expect(r"server web/\S+ is up$")
            check(is_well(proxy))


def a_full_queue_is_given_up():
    """A server that does not accept is skipped after the timeout, and reported if it is the only one."""
    with Server(backlog=0) as listener, listener.fill(), Server(answer_each) as other:
        with Proxy(configuration(listener.name, other.name, backend="connect-timeout 1s")) as proxy:
            for _ in range(4):
                check(is_well(proxy))
            check(int(proxy.statistics()["retries"]) > 0)
        with Proxy(configuration(listener.name, backend="connect-timeout 50ms")) as proxy, proxy.client() as client:
            client.sendall(GET)
            check(rest_of_response(client).startswith(b"HTTP/1.1 504 "))
        with Proxy(configuration(listener.name, mode="tcp", backend="connect-timeout 50ms")) as proxy, proxy.client() as client:
            equal(rest_of(client), b"")


def a_queue_of_clients_is_served_in_turn():
    """More requests than the server's limit: they wait in its queue, and some clients vanish there."""
    with Server(answer_each) as server, Proxy(configuration(server.name, listen="max-connections 2")) as proxy:
        check(is_well(proxy))
        baseline = proxy.idle(accepted=1)
        clients = [proxy.client() for _ in range(60)]
        for client in clients:
            client.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        for client in clients[::3]:
            reset(client)
        for number, client in enumerate(clients):
            if number % 3 != 0:
                check(read_all(client).endswith(b"0123456789"), number)
                client.close()
        check(is_well(proxy))
        comes_back(proxy, baseline)


# ---- Calls that fail ----

# The failing call, its errno, and the minimum number of calls (a call that is never made tests nothing).
CALLS = {
    "malloc": (12, 3), "calloc": (12, 1), "realloc": (12, 0), "aligned_alloc": (12, 0), "mmap": (12, 1), "pthread_create": (11, 0),
    "epoll_create1": (24, 0), "eventfd": (24, 0), "socket": (24, 2), "accept4": (24, 0), "pipe2": (24, 0), "fcntl": (9, 0),
    "epoll_ctl": (12, 0), "connect": (110, 0), "recv": (104, 0), "send": (104, 0), "splice": (5, 0),
}


def one_request(proxy, mode):
    """True if the answer is correct."""
    try:
        with proxy.client() as client:
            if mode == "tcp":
                client.sendall(b"x" * 300000)
                return read_exactly(client, 300000) == b"x" * 300000
            client.sendall(GET)
            return rest_of_response(client).endswith(b"0123456789")
    except (OSError, Failure):
        return False


def life(server, mode, faults, report):
    """Runs a proxy with a fault, or none. Returns the number of failed calls, and its back end with its final descriptors;
    None if it did not start."""
    environment = {"FAULTS": faults, "FAULTS_REPORT": report} if faults else {}
    if os.path.exists(report):
        os.unlink(report)
    try:
        # (the report is written by the program itself, when it ends)
        proxy = Proxy(configuration(server.name, mode=mode, backend="retries 0"), ["--confine", "off"], environment=environment)
    except NotBegun as why:
        check(why.status == 1 and why.errors, faults, why)
        return None
    with proxy:
        in_a_row = 0
        for _ in range(12):
            in_a_row = in_a_row + 1 if one_request(proxy, mode) else 0
            if in_a_row == 3:
                break
        equal(in_a_row, 3, faults, "it does not recover,")
        descriptors = proxy.idle(accepted=3)
        back_end = proxy.out.seen[0].split()[1]
        proxy.stop()
    if not faults:
        return 0, back_end, descriptors
    with open(report, encoding="ascii") as file:
        return int(file.read()), back_end, descriptors


def calls_fail(mode):
    if not Proxy.program.endswith("_faults"):
        return "for the program that is linked with faults"
    met = {}
    with tempfile.TemporaryDirectory() as directory, Server(echo if mode == "tcp" else answer_each) as server:
        report = os.path.join(directory, "report")
        _, usual, baseline = life(server, mode, None, report)
        for name, (error, least) in CALLS.items():
            n = 1
            while True:
                faults = f"{name}:{n}:{error}"
                found = life(server, mode, faults, report)
                if found is not None:
                    hits, back_end, descriptors = found
                    # (if no io_uring can be created, epoll is used)
                    check(descriptors <= baseline or back_end != usual, faults, descriptors, "descriptors, it was", baseline)
                    if hits == 0:
                        break
                n += 1
                check(n < 500, name)
            met[name] = n - 1
            check(met[name] >= least, name, met[name])
    print("#", mode, *(f"{name}:{count}" for name, count in met.items()))
    return None


def calls_fail_in_mode_tcp():
    return calls_fail("tcp")


def calls_fail_in_mode_http():
    return calls_fail("http")


def a_redirection_without_memory_is_no_fault_of_the_client():
    """Each malloc fails in turn: the response is the redirection or a 503, or the connection is closed."""
    if not Proxy.program.endswith("_faults"):
        return "for the program that is linked with faults"
    heads = set()
    text = configuration("127.0.0.1:1", listen="redirect / 308 https://$host$target")
    with tempfile.TemporaryDirectory() as directory:
        report = os.path.join(directory, "report")
        for n in range(1, 500):
            environment = {"FAULTS": f"malloc:{n}:12", "FAULTS_REPORT": report}
            try:
                proxy = Proxy(text, ["--confine", "off"], environment=environment)
            except NotBegun:
                continue
            with proxy:
                with proxy.client() as client:
                    client.sendall(b"GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
                    heads.add(rest_of(client).split(b"\r\n")[0])
                proxy.stop()
            with open(report, encoding="ascii") as file:
                if file.read() == "0\n":
                    break
        check(n < 499, "there is no end of calls")
    check(heads - {b""} == {b"HTTP/1.1 308 Permanent Redirect", b"HTTP/1.1 503 Service Unavailable"}, heads)
    return None


run(tests_of(globals()), sys.argv[1:])
