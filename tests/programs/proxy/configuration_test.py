#!/usr/bin/env python3
"""Tests the proxy's configuration, its options, reloads and shutdown, in mode tcp: configuration_test.py PROGRAM [TEST...]."""

import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile

from harness import (PATIENCE, FirstOnly, NotBegun, Proxy, Server, baseline_of, check, echo, equal, free_port, greeter,
                     read_all, read_exactly, reset, run, tests_of, wait_until_closed)
from harness import tcp_configuration as configuration
from programs import held


# ---- Configuration ----


def errors_are_reported_with_their_line():
    good = "listen 127.0.0.1:0\nto web\nbackend web\nserver 127.0.0.1:1\n"
    mistakes = [
        ("", 0, "no 'listen' section"),
        ("listen nonsense:x:y\n", 1, "is not an address"),
        ("listen 127.0.0.1:0\n", 1, "has no 'to' or 'route'"),
        ("listen 127.0.0.1:0\nto web\n", 2, "unknown backend 'web'"),
        ("to web\n", 1, "'to' is not allowed before the first section"),
        ("\n# x\nlog\n", 3, "usage: log off, stdout, stderr or PATH"),
        ("frobnicate 1\n", 1, "unknown directive 'frobnicate'"),
        (good + "server 10.0.0.1:99999\n", 5, "is not a number from 1 to 65535"),
        (good + "server nowhere\n", 5, "is not an address"),
        (good + "server 127.0.0.1:1 weight 0\n", 5, "is not a number from 1 to 1000"),
        (good + "server 127.0.0.1:1 heavy 1\n", 5, "may follow the address"),
        (good + "balance best\n", 5, "is neither"),
        (good + "connect-timeout soon\n", 5, "is not a time"),
        (good + "check tcp every\n", 5, "has no value"),
        (good + "check http page\n", 5, "needs a path"),
        (good + "send-proxy v3\n", 5, "is neither v1 nor v2"),
        (good + "backend web\n", 5, "backend 'web' already exists, on line 3"),
        (good + "backend other\n", 5, "backend 'other' has no server"),
        (good + "listen 127.0.0.1:0\n", 5, "is already in use, on line 1"),
        ("listen 127.0.0.1:0\nclient-rate 0\nto web\n", 2, "is not a number from 1 to 1000000"),
        ("listen 127.0.0.1:0\nclient-rate 1 0\nto web\n", 2, "is not a number from 1 to 1000000"),
        ("listen 127.0.0.1:0\nclient-rate 1 2 3\nto web\n", 2, "usage: client-rate REQUESTS-A-SECOND [AT-ONCE]"),
        (good + "client-rate 1\n", 5, "'client-rate' is not allowed in a backend section"),
        ("status nowhere\n" + good, 1, "'nowhere' is not an address"),
        ("status\n" + good, 1, "usage: status ADDRESS"),
        ("status 127.0.0.1:1\nstatus 127.0.0.1:2\n" + good, 2, "'status' is already set, on line 1"),
        ("status 127.0.0.1:0\n" + good, 2, "'127.0.0.1:0' is already in use, on line 1"),
        ("status 127.0.0.1:1\n", 1, "no 'listen' section"),
        (good + "status 127.0.0.1:1\n", 5, "'status' is not allowed in a backend section"),
        ("listen 127.0.0.1:0\naccept-proxy 10.0.0.0/33\n", 2, "is not a number from 0 to 32"),
        ("listen 127.0.0.1:0\nroute /a web\nto web\nbackend web\nserver 127.0.0.1:1\n", 2, "mode tcp takes one"),
        (good + "request-header set Host x\n", 5, "the proxy writes 'Host' itself"),
        ("listen 127.0.0.1:0\nmode http\nrequest-header remove x-forwarded-for\n" + good.split("\n", 1)[1], 3,
         "the proxy writes 'x-forwarded-for' itself"),
        ("listen 127.0.0.1:0\nmode http\nforwarded standard\nrequest-header add Forwarded x\n" + good.split("\n", 1)[1], 4,
         "the proxy writes 'Forwarded' itself"),
        (good + "request-header set X-Forwarded-Host x\nlisten 127.0.0.2:0\nmode http\nforwarded off\nto web\n"
         "listen 127.0.0.3:0\nmode http\nroute /x web\n", 5, "the proxy writes 'X-Forwarded-Host' itself"),
        (good + "server unix:/tmp/x\ntls authorities /nowhere\n", 3, "tls needs 'name' for the server 'unix:/tmp/x'"),
        (good + "sticky\n", 5, "usage: sticky address, or cookie NAME"),
        (good + "sticky name\n", 5, "'name' is neither address nor cookie"),
        (good + "sticky cookie\n", 5, "usage: sticky address, or sticky cookie NAME"),
        (good + "sticky address x\n", 5, "usage: sticky address, or sticky cookie NAME"),
        (good + "sticky cookie a=b\n", 5, "'a=b' is not the name of a cookie"),
        (good + "sticky cookie S\n", 2, "mode tcp has no 'sticky cookie'"),
        (good + "request-header set X\n", 5, "usage: request-header set NAME VALUE"),
        (good + "request-header remove X y\n", 5, "usage: request-header remove NAME"),
        (good + "response-header put X y\n", 5, "'put' is none of set, add, remove"),
        (good + "response-header set X: y\n", 5, "'X:' is not the name of a field"),
        (good + 'response-header set X "y\x01"\n', 5, "the value of 'X' is not valid"),
        ("listen 127.0.0.1:0\nredirect / 300 /x\n", 2, "'300' is none of 301, 302, 303, 307, 308"),
        ("listen 127.0.0.1:0\nredirect / 301 x\n", 2, "'x' is not a location"),
        ("listen 127.0.0.1:0\nredirect / 301 /$target\n", 2, "'/$target' is not a location"),
        ("listen 127.0.0.1:0\nredirect / 301 https://$target\n", 2, "'https://$target' is not a location"),
        ("listen 127.0.0.1:0\nredirect / 301 https://a/$path\n", 2, "'https://a/$path' is not a location"),
        ("listen 127.0.0.1:0\nredirect / 301 https://\n", 2, "'https://' is not a location"),
        ("listen 127.0.0.1:0\nredirect / 301 /x\n", 2, "mode tcp has no 'redirect'"),
        ('log "x\n', 1, "missing closing '\"'"),
        ("log " + "x" * 5000 + "\n", 1, "the line is longer than"),
        ("log" + " x" * 40 + "\n", 1, "more than"),
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
    for arguments, status, message in (
            ((), 2, "expected a FILE or a --server"), (("--nonsense",), 2, "nonsense"),
            (("--check", "/nowhere/at/all"), 1, "/nowhere/at/all: No such file or directory"),
            (("a", "b"), 2, "expected one FILE"), (("--http", "a"), 2, "expected one FILE")):
        done = subprocess.run([Proxy.program, *arguments], capture_output=True, text=True, check=False)
        equal(done.returncode, status, arguments, done.stderr)
        check(message in done.stderr, arguments, done.stderr)
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
                # the second listener is removed; its connection continues
                with socket.create_connection(("127.0.0.2", port), timeout=PATIENCE) as client, two.accept() as new:
                    proxy.configure(configuration(two.name))
                    proxy.signal(signal.SIGHUP)
                    wait_until_closed(port, "127.0.0.2")
                    new.sendall(b"still")
                    equal(read_exactly(client, 5), b"still")
                    two.close()


def a_reload_and_statistics_asked_for_together_are_both_done():
    """The system may hand two signals to a process in either order."""
    with Server() as one, Server() as two, Proxy(configuration(one.name)) as proxy:
        for name in (two.name, one.name) * 10:
            proxy.configure(configuration(name))
            with held(proxy.process):
                proxy.signal(signal.SIGHUP)
                proxy.signal(signal.SIGUSR1)
            line = proxy.out.expect("^statistics .*").group(0)
            while name not in line:
                proxy.signal(signal.SIGUSR1)
                line = proxy.out.expect("^statistics .*").group(0)


def a_bad_reload_changes_nothing():
    with Server(greeter("good")) as server, Proxy(configuration(server.name)) as proxy:
        baseline = baseline_of(proxy)
        for text, message in ((configuration("nowhere"), r":\d+: 'nowhere' is not an address"),
                              (configuration(server.name) + "listen 127.0.0.1:0\n", "is already in use"),
                              (f"listen 127.0.0.3:0\nto web\nlisten 127.0.0.1:{server.port}\nto web\n"
                               f"backend web\nserver {server.name}\n", "Address already in use")):
            proxy.configure(text)
            proxy.signal(signal.SIGHUP)
            proxy.err.expect(message)
            with proxy.client() as client:
                equal(read_all(client), b"good")
        equal(proxy.idle(), baseline, "descriptors")


def get_at(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(path)
        return read_all(client)


def a_socket_at_a_path_takes_the_place_of_a_killed_one_and_is_removed():
    with tempfile.TemporaryDirectory() as directory, Server(greeter("good")) as server:
        path, other = f"{directory}/socket", f"{directory}/other"
        without = configuration(server.name)

        def at(*paths):
            return "".join(f"listen unix:{one}\nto web\n" for one in paths) + without

        with socket.socket(socket.AF_UNIX) as leftover:
            leftover.bind(path)
        with Proxy(at(path)) as proxy:
            equal(get_at(path), b"good")
            # another proxy does not take it, and leaves it
            try:
                with Proxy(at(path)):
                    check(False, "two proxies listen at one path")
            except NotBegun as error:
                equal((error.status, error.errors[0]), (1, f"proxy: unix:{path}: Address already in use"))
            equal(get_at(path), b"good")
            proxy.process.kill()
            proxy.wait()
        check(os.path.exists(path), "a killed proxy leaves its socket")
        with Proxy(at(path)) as proxy:
            equal(get_at(path), b"good")
            proxy.configure(at(other))
            proxy.signal(signal.SIGHUP)
            proxy.out.expect(f"listening .* on unix:{other}$")
            equal(get_at(other), b"good")
            while os.path.exists(path):
                pass
            proxy.configure(at(path, other))
            proxy.signal(signal.SIGHUP)
            proxy.out.expect(f"listening .* on unix:{path}$")
            equal((get_at(path), get_at(other)), (b"good", b"good"))
            baseline = baseline_of(proxy)
            # what is no socket stays, and the reload changes nothing
            with open(f"{directory}/file", "w", encoding="ascii") as file:
                file.write("text")
            proxy.configure(at(path, other, f"{directory}/file"))
            proxy.signal(signal.SIGHUP)
            proxy.err.expect(f"^proxy: unix:{directory}/file: File exists$")
            equal(get_at(other), b"good")
            check(proxy.idle() <= baseline, proxy.descriptors(), "descriptors, and it was", baseline)
            proxy.stop()
        equal(os.listdir(directory), ["file"])


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
            equal(proxy.statistics()["retries"], "0")


def the_log_is_opened_anew():
    with tempfile.TemporaryDirectory() as directory, Server(greeter("good")) as server:
        path = f"{directory}/log"
        with Proxy(configuration(server.name, head=f'log "{path}"')) as proxy:
            with proxy.client() as client:
                equal(read_all(client), b"good")
            proxy.idle()
            if os.path.exists(path):  # (it is written to a temporary file)
                os.rename(path, f"{path}.1")
            proxy.signal(signal.SIGHUP)
            proxy.statistics()
            with proxy.client() as client:
                equal(read_all(client), b"good")
        lines = ""
        for name in sorted(os.listdir(directory)):
            with open(f"{directory}/{name}", encoding="ascii") as file:
                lines += file.read()
        equal(lines.count(" tcp "), 2, lines)
        check(os.path.exists(path), os.listdir(directory))


# ---- Shutdown ----


def it_ends_when_its_connections_have():
    with Server(FirstOnly()) as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            client.sendall(b"x")
            equal(client.recv(1), b"x")
            proxy.signal(signal.SIGTERM)
            wait_until_closed(proxy.port)
            client.sendall(b"still here")
            equal(read_exactly(client, 10), b"still here")
        equal(proxy.wait(), 0)


def it_ends_at_once_when_it_is_asked_twice():
    with Server(FirstOnly()) as server, Proxy(configuration(server.name)) as proxy:
        with proxy.client() as client:
            client.sendall(b"x")
            equal(client.recv(1), b"x")
            proxy.signal(signal.SIGTERM)
            wait_until_closed(proxy.port)
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
            while proxy.statistics()[f"web/{slow.name}"].split(",")[1] != "live:1":
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
        statistics = proxy.statistics()
        equal((statistics["buffers"], statistics["connections"]), ("0", "301"))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    run(tests_of(globals()), sys.argv[1:])
