#!/usr/bin/env python3
"""Tests restarts of the proxy without a gap: handover_test.py PROGRAM [TEST...]."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading

from harness import PATIENCE, NotBegun, Proxy, Server, check, echo, equal, read_all, read_exactly, run, tests_of
from harness import tcp_configuration
from http_messages import Message, ask, configuration, get, named, respond, status_of

RESTARTS = 20


def start(directory, text, listeners=1):
    return Proxy(text, options=("--handover", f"{directory}/handover"), listeners=listeners)


def succeed(old, directory, text, listeners=1):
    """Another proxy takes over; returns it."""
    new = start(directory, text, listeners)
    old.out.expect("^handed over$")
    return new


def ends(proxy):
    equal((proxy.wait(), proxy.err.rest()), (0, []))
    proxy.__exit__(None, None, None)


def a_successor_takes_over():
    """It listens at the same port. A connection of before goes on, and the old process ends with it."""
    with tempfile.TemporaryDirectory() as directory, Server(echo) as server:
        text = tcp_configuration(server.name)
        old = start(directory, text)
        with old.client() as client:
            client.sendall(b"old")
            equal(read_exactly(client, 3), b"old")
            with succeed(old, directory, text) as new:
                equal(new.port, old.port)
                # (an accept of the old one may be under way, which still takes a client)
                while new.statistics()["connections"] == "0":
                    with new.client() as other:
                        other.sendall(b"new")
                        equal(read_exactly(other, 3), b"new")
                client.sendall(b"more")
                equal(read_exactly(client, 4), b"more")
                client.shutdown(socket.SHUT_WR)
                equal(read_all(client), b"")
                ends(old)
        equal(os.listdir(directory), [])  # the last one has removed the socket


def no_request_is_lost():
    """Clients that connect for each request, and others that keep their connections, during many restarts."""
    with tempfile.TemporaryDirectory() as directory, Server(named("good")) as server:
        text = configuration(server.name, head="log off\nshutdown-timeout 50s")
        proxy = start(directory, text)
        port, done, counts, errors = proxy.port, threading.Event(), [0] * 6, []

        def request(client):
            answer = get(client)
            equal((status_of(answer), answer.body), (200, b"good"))
            return answer.get("Connection") == "close"

        def load(index):
            client = None
            try:
                while not done.is_set():
                    if client is None:
                        client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
                    if request(client) or index % 2:
                        client.close()
                        client = None
                    counts[index] += 1
            except BaseException as error:  # reported below
                errors.append(repr(error))
            finally:
                if client:
                    client.close()

        threads = [threading.Thread(target=load, args=(index,)) for index in range(len(counts))]
        for thread in threads:
            thread.start()
        try:
            for _ in range(RESTARTS):
                before = list(counts)
                new = succeed(proxy, directory, text)
                equal(new.port, port)
                # (each client has its next requests, so that kept connections of the old one end)
                while not errors and any(now < then + 3 for now, then in zip(counts, before)):
                    new.statistics()
                equal(errors, [])
                ends(proxy)
                proxy = new
        finally:
            done.set()
            for thread in threads:
                thread.join()
        equal(errors, [])
        check(min(counts) > 3 * RESTARTS, counts)
        proxy.__exit__(None, None, None)


def one_that_cannot_start_changes_nothing():
    """Its configuration has an error; it cannot listen elsewhere; it is killed before it is ready; it is none at all."""
    with tempfile.TemporaryDirectory() as directory, Server(named("good")) as server, Server() as other:
        text = configuration(server.name)
        proxy = start(directory, text)

        def works():
            with proxy.client() as client:
                equal(get(client).body, b"good")
        for bad, why in (("listen nowhere\n", "nowhere"), (text + f"listen 127.0.0.1:{other.port}\nto web\n", "Address already in use")):
            try:
                start(directory, bad).give_up()
            except NotBegun as failure:
                equal((failure.status, any(why in line for line in failure.errors)), (1, True), failure.errors)
            works()
        for data in (b"", b"x"):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(f"{directory}/handover")
                message, descriptors, _, _ = socket.recv_fds(stranger, 128, 4)
                equal((message[:1], len(descriptors)), (b"p", 1))
                os.close(descriptors[0])
                stranger.sendall(data)
            works()
        check(not [line for line in proxy.out.seen if line == "handed over"])
        new = succeed(proxy, directory, text)
        ends(proxy)
        with new.client() as client:
            equal(get(client).body, b"good")
        new.__exit__(None, None, None)


def listeners_may_change():
    """Those in both stay, one comes and one goes."""
    with tempfile.TemporaryDirectory() as directory, Server(named("one")) as server, Server(named("two")) as second:
        def text(*addresses, name=server.name):
            return "".join(f"listen {address}\nmode http\nto web\n" for address in addresses) + f"backend web\nserver {name}\n"
        old = start(directory, text("127.0.0.1:0", "127.0.0.2:0"), listeners=2)
        with succeed(old, directory, text("127.0.0.2:0", "127.0.0.3:0", name=second.name), listeners=2) as new:
            equal(new.ports[0], old.ports[1])
            ends(old)
            for host, port in (("127.0.0.2", new.ports[0]), ("127.0.0.3", new.ports[1])):
                with socket.create_connection((host, port), timeout=PATIENCE) as client:
                    equal(get(client).body, b"two")
            try:
                socket.create_connection(("127.0.0.1", old.ports[0]), timeout=PATIENCE).close()
                check(False, "it is still listened there")
            except ConnectionRefusedError:
                pass


def files_of_unix_sockets_are_passed_on():
    """They are the same files, and the last process removes them."""
    with tempfile.TemporaryDirectory() as directory, Server(named("good")) as server:
        path = f"{directory}/web"
        text = f"listen 127.0.0.1:0\nto web\nlisten unix:{path}\nmode http\nto web\nbackend web\nserver {server.name}\n"
        proxy = start(directory, text)
        first = os.stat(path).st_ino
        equal(stat.S_IMODE(os.stat(f"{directory}/handover").st_mode), 0o600)
        for _ in range(3):
            new = succeed(proxy, directory, text)
            ends(proxy)
            equal(os.stat(path).st_ino, first)
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(PATIENCE)
                client.connect(path)
                equal(get(client).body, b"good")
            proxy = new
        proxy.__exit__(None, None, None)
        equal(os.listdir(directory), [])


def the_place_of_a_killed_one_is_taken():
    with tempfile.TemporaryDirectory() as directory, Server(named("good")) as server:
        text = configuration(server.name)
        killed = start(directory, text)
        killed.kill()
        equal(os.listdir(directory), ["handover"])
        with start(directory, text) as proxy, proxy.client() as client:
            equal(get(client).body, b"good")


def the_place_of_a_killed_successor_is_taken():
    """While the old one, which has handed over, still waits for its last connection."""
    with tempfile.TemporaryDirectory() as directory, Server(echo) as server:
        text = tcp_configuration(server.name)
        old = start(directory, text)
        with old.client() as client:
            client.sendall(b"old")
            equal(read_exactly(client, 3), b"old")
            killed = succeed(old, directory, text)
            killed.kill()
            with start(directory, text) as proxy, proxy.client() as other:
                other.sendall(b"new")
                equal(read_exactly(other, 3), b"new")
            client.sendall(b"more")
            equal(read_exactly(client, 4), b"more")
        ends(old)


def a_second_signal_ends_the_old_one():
    """It waits for a request as after SIGTERM; a signal then ends it at once."""
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        text = configuration(server.name)
        old = start(directory, text)
        with old.client() as client:
            ask(client)
            with server.accept() as other:
                Message(other)
                with succeed(old, directory, text):
                    old.signal(signal.SIGTERM)
                    ends(old)


def what_listens_there_must_be_a_proxy():
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(f"{directory}/handover")
        stranger.listen(1)

        def close_each():
            try:
                while True:
                    stranger.accept()[0].close()
            except OSError:
                pass

        thread = threading.Thread(target=close_each)
        thread.start()
        try:
            start(directory, tcp_configuration("127.0.0.1:1")).give_up()
        except NotBegun as failure:
            equal((failure.status, any("passes no sockets on" in line for line in failure.errors)), (1, True), failure.errors)
        stranger.shutdown(socket.SHUT_RDWR)
        thread.join()
        with open(f"{directory}/file", "w", encoding="ascii"):
            pass
        done = subprocess.run([Proxy.program, "--server", "127.0.0.1:1", "--handover", f"{directory}/file"], capture_output=True,
                              text=True, check=False, timeout=PATIENCE)
        equal((done.returncode, "File exists" in done.stderr), (1, True), done.stderr)


def refused_because(directory, why):
    try:
        start(directory, tcp_configuration("127.0.0.1:1")).give_up()
    except NotBegun as failure:
        equal((failure.status, any(why in line for line in failure.errors)), (1, True), failure.errors)


def one_that_does_not_answer_is_reported():
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(f"{directory}/handover")
        stranger.listen(1)
        refused_because(directory, "does not answer")


def another_user_s_process_is_reported():
    if os.geteuid() != 0:
        return "only root can be another user"
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(f"{directory}/handover")
        os.seteuid(65534)
        try:
            stranger.listen(1)
        finally:
            os.seteuid(0)
        refused_because(directory, "another user's")
    return None


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
