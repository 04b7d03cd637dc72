#!/usr/bin/env python3
"""Tests a restart of the proxy together with its other options: handover_with_test.py PROGRAM [TEST...]."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

from handover_test import ends, start, succeed
from harness import PATIENCE, Proxy, Server, check, equal, free_port, run, tests_of
from http2 import NO_ERROR, Http2, without_http2
from http_messages import Message, ask, configuration, get, named, respond
from status_test import metrics, request, status_of
from tls_test import Authority, without_tls

NOBODY = 65534


def without_user(user=NOBODY):
    """The reason why a proxy cannot become this user, or finds no file then."""
    become = f"import os; os.setgroups([]); os.setgid({user}); os.setuid({user}); os.stat({tempfile.gettempdir() + '/.'!r})"
    done = subprocess.run([sys.executable, "-c", become], capture_output=True, check=False)
    return None if os.geteuid() == 0 and done.returncode == 0 else "the test cannot become another user"


def take_over(old, directory, text, listeners=1):
    """Another proxy takes over; waits until new connections are its own. (An accept of the old one may be under way.)"""
    new = succeed(old, directory, text, listeners)
    while new.statistics()["connections"] == "0":
        new.client().close()
    return new


def serves(proxy, body):
    with proxy.client() as client:
        equal(get(client).body, body)


def user_of(proxy):
    with open(f"/proc/{proxy.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"^Uid:\t(\d+)\t\1\t\1\t\1$", file.read(), re.M).group(1))


def tls_connections_go_on():
    """New connections are the new one's, with its certificate."""
    if why := without_tls():
        return why
    with tempfile.TemporaryDirectory() as directory, Authority() as authority, Server() as server, Server(named("new")) as other:
        certificates = [" ".join(authority.issue(name, f"DNS:{name}.test")) for name in ("old", "new")]
        text = [configuration(name, listen=f"certificate {certificate}", head="log off")
                for name, certificate in zip((server.name, other.name), certificates)]
        old = start(directory, text[0])
        with authority.client(old, "old.test") as client:
            ask(client)
            with server.accept() as connection:
                Message(connection)
                new = take_over(old, directory, text[1])
                equal(new.port, old.port)
                with authority.client(new, "new.test") as beside:
                    equal(get(beside).body, b"new")
                for close in (None, "close"):
                    respond(connection, body=b"old")
                    answer = Message(client)
                    equal((answer.body, answer.get("Connection")), (b"old", close))
                    if not close:
                        ask(client)
                        Message(connection)
            ends(old)
        new.__exit__(None, None, None)
    return None


def streams_of_http_2_go_on():
    """A client's connection announces its end, and its requests are answered."""
    if why := without_http2():
        return why
    with tempfile.TemporaryDirectory() as directory, Server() as server, Server(named("new")) as other:
        old = start(directory, configuration(server.name, head="log off"))
        with old.client() as client:
            http2 = Http2(client)
            first, second = http2.ask("/first"), http2.ask("/second")
            others = {}
            for _ in range(2):
                connection = server.accept()
                others[Message(connection).line.split()[1]] = connection
            new = take_over(old, directory, configuration(other.name, head="log off"))
            serves(new, b"new")
            respond(others["/first"], body=b"first")
            equal(http2.response(first).body, b"first")
            last = http2.ask("/last")
            Message(others["/first"])
            respond(others["/first"], body=b"last")
            respond(others["/second"], body=b"second")
            equal((http2.response(second).body, http2.response(last).body), (b"second", b"last"))
            http2.until(lambda: http2.goaway)
            equal(http2.goaway[1], NO_ERROR)
        for connection in others.values():
            connection.close()
        ends(old)
        new.__exit__(None, None, None)
    return None


def the_status_page_is_the_new_one_s():
    """It stays at its address, and its counts begin anew."""
    def text(name):
        return f"log off\nstatus 127.0.0.3:0\nlisten 127.0.0.1:0\nmode http\nto web\nbackend web\nserver {name}\n"

    with tempfile.TemporaryDirectory() as directory, Server(named("good")) as server:
        old = start(directory, text(server.name))
        page = status_of(old)
        serves(old, b"good")
        count = next(name for name in metrics(page) if name.endswith("requests_total"))
        while metrics(page)[count] != 1:
            pass
        new = start(directory, text(server.name))
        equal(status_of(new), page)
        old.out.expect("^handed over$")
        ends(old)
        equal(metrics(page)[count], 0)
        check(server.name in request(page)[2])
        serves(new, b"good")
        while metrics(page)[count] != 1:
            pass
        new.__exit__(None, None, None)
        equal(os.listdir(directory), [])


def a_reload_goes_with_it():
    """Of a process that has taken over, and of one that waits for its successor. Listeners that came by it are passed on."""
    with tempfile.TemporaryDirectory() as directory, Server(named("one")) as one, Server(named("two")) as two:
        more = "listen 127.0.0.2:0\nmode http\nto web\n"
        old = start(directory, configuration(one.name))
        new = succeed(old, directory, configuration(one.name))
        ends(old)
        new.configure(configuration(two.name) + more)
        new.signal(signal.SIGHUP)
        port = int(new.out.expect(r"^listening .* port (\d+)$").group(1))
        new.out.expect("the configuration was reloaded")
        serves(new, b"two")
        with socket.socket(socket.AF_UNIX) as stranger:  # it becomes never ready
            stranger.settimeout(PATIENCE)
            stranger.connect(f"{directory}/handover")
            for _ in range(4):
                for descriptor in socket.recv_fds(stranger, 128, 1)[1]:
                    os.close(descriptor)
            new.configure(configuration(one.name) + more)
            new.signal(signal.SIGHUP)
            new.out.expect("the configuration was reloaded")
            serves(new, b"one")
        third = succeed(new, directory, configuration(two.name) + more, listeners=2)
        equal(third.ports, [new.port, port])
        ends(new)
        serves(third, b"two")
        with socket.create_connection(("127.0.0.2", port), timeout=PATIENCE) as client:
            equal(get(client).body, b"two")
        third.__exit__(None, None, None)


def servers_are_up_until_a_check_fails():
    """The new one checks them itself."""
    with tempfile.TemporaryDirectory() as directory, Server(named("good")) as server:
        text = configuration(f"127.0.0.1:{free_port()}", server.name, backend="check tcp every 20ms")
        old = start(directory, text)
        old.out.expect("is down")
        new = succeed(old, directory, text)
        new.out.expect("is down")
        ends(old)
        for _ in range(4):
            serves(new, b"good")
        equal(new.statistics()["retries"], "0")
        new.__exit__(None, None, None)


def it_is_another_user_s_after_the_start():
    """Each begins as root, and so takes over from one that is another user by then. The files are removed at the end."""
    if why := without_user():
        return why
    with tempfile.TemporaryDirectory() as directory, Server(named("good")) as server:
        os.chmod(directory, 0o777)
        path = f"{directory}/web"
        text = f"{configuration(server.name, head='log off')}listen unix:{path}\nmode http\nto web\n"
        options = ("--handover", f"{directory}/handover", "--user", f"{NOBODY}:{NOBODY}")
        proxy = Proxy(text, options=options)
        for _ in range(2):
            new = Proxy(text, options=options)
            proxy.out.expect("^handed over$")
            ends(proxy)
            equal((user_of(new), new.port), (NOBODY, proxy.port))
            serves(new, b"good")
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(PATIENCE)
                client.connect(path)
                equal(get(client).body, b"good")
            proxy = new
        proxy.__exit__(None, None, None)
        equal(os.listdir(directory), [])
    return None


def the_path_is_inside_of_another_root():
    if why := without_user():
        return why
    with tempfile.TemporaryDirectory() as directory, Server(named("good")) as server:
        os.chmod(directory, 0o777)
        options = ("--listen", "127.0.0.1:0", "--server", server.name, "--http", "--log", "off", "--handover", "/handover",
                   "--chroot", directory, "--user", f"{NOBODY}:{NOBODY}")
        environment = {"LSAN_OPTIONS": "detect_leaks=0"}  # (LeakSanitizer reads /proc)
        old = Proxy(options=options, environment=environment)
        equal(os.listdir(directory), ["handover"])
        new = Proxy(options=options, environment=environment)
        old.out.expect("^handed over$")
        ends(old)
        equal((os.readlink(f"/proc/{new.process.pid}/root"), user_of(new), new.port), (directory, NOBODY, old.port))
        serves(new, b"good")
        new.__exit__(None, None, None)
        equal(os.listdir(directory), [])
    return None


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
