#!/usr/bin/env python3
"""Tests the proxy with few descriptors and many clients: budget_test.py PROGRAM [TEST...].

Clients beyond the budget wait, and each is served in its turn. Checks of servers, the log, statistics and reloads go on.
"""

import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time

from harness import PATIENCE, NotBegun, Proxy, Server, baseline_of, check, echo, equal, free_port, greeter, read_exactly, run, tests_of
from harness import tcp_configuration
from http_messages import configuration as http_configuration
from http_messages import get, named

CLIENTS = 100

# What a reload may need beside all connections: it is free at other times, so that no descriptor runs out.
RESERVE = 8


def configuration(*servers, listen="max-connections 500", **more):
    return tcp_configuration(*servers, listen=listen, **more)


def limited(number):
    return ("prlimit", f"--nofile={number}")


def served(clients):
    """Those of the clients for whom something has come, when there is one."""
    ready = select.select(clients, [], [], PATIENCE)[0]
    check(ready, "no client is served")
    return ready


def open_clients(proxy, count):
    """Clients that each send a byte."""
    clients = []
    for _ in range(count):
        clients.append(proxy.client())
        clients[-1].sendall(b"x")
    return clients


def are_all_served(clients):
    """Each gets its byte back, once others have ended."""
    waiting = list(clients)
    while waiting:
        for client in served(waiting):
            equal(client.recv(1), b"x", "of", len(waiting))
            client.close()
            waiting.remove(client)


def keeps_its_reserve(proxy, limit):
    """(The kernel keeps the limit itself.)"""
    descriptors = proxy.descriptors()
    check(descriptors <= limit - RESERVE, descriptors, "of", limit)


def fill(proxy, count=CLIENTS):
    """Opens clients until the proxy has as many as it takes, which it has reported. Returns them all, and that number."""
    limit = int(proxy.err.expect(r"only (\d+) connections").group(1))
    check(1 < limit < count, limit)
    clients = open_clients(proxy, count)
    while proxy.statistics()["live"] != str(limit):
        pass
    return clients, limit


def clients_beyond_the_budget_wait_and_are_served():
    with Server(echo) as server, Proxy(configuration(server.name), prefix=limited(64)) as proxy:
        baseline = baseline_of(proxy)
        clients, _ = fill(proxy)
        keeps_its_reserve(proxy, 64)
        are_all_served(clients)
        check(proxy.idle(accepted=CLIENTS + 1) <= baseline, proxy.descriptors(), "descriptors, and it was", baseline)
        statistics = proxy.statistics()
        equal((statistics["connections"], statistics["failed"], statistics["rejected"]), (str(CLIENTS + 1), "0", "0"))


def checks_and_reloads_go_on_meanwhile():
    """A server comes up and goes down, the log is opened again, and a configuration with another listener takes effect."""
    port = free_port()
    with tempfile.TemporaryDirectory() as directory, Server(echo) as server:
        log = os.path.join(directory, "log")

        def text(more=""):
            return configuration(server.name, f"127.0.0.1:{port}", head=f"log {log}",
                                 backend="fail 0\ncheck tcp every 20ms timeout 10s rise 1 fall 1") + more

        def wait_for(line):
            while True:
                try:
                    with open(log, encoding="ascii") as file:
                        if line in file.read():
                            return
                except FileNotFoundError:
                    pass
                proxy.statistics()

        with Proxy(text(), prefix=limited(72)) as proxy:
            wait_for(f"server web/127.0.0.1:{port} is down: Connection refused")
            clients, _ = fill(proxy)
            with Server(greeter("up"), port=port):
                wait_for(f"server web/127.0.0.1:{port} is up")
                os.rename(log, log + ".old")
                proxy.configure(text(f"listen 127.0.0.2:0\nto other\nbackend other\nserver {server.name}\n"))
                proxy.signal(signal.SIGHUP)
                second = int(proxy.out.expect(r"^listening .* 127.0.0.2:\d+, port (\d+)$").group(1))
                wait_for("the configuration was reloaded")
            wait_for(f"server web/127.0.0.1:{port} is down: Connection refused")
            keeps_its_reserve(proxy, 72)
            are_all_served(clients)
            with proxy_at(second) as client:
                client.sendall(b"z")
                equal(client.recv(1), b"z")


def proxy_at(port, host="127.0.0.2"):
    return socket.create_connection((host, port), timeout=PATIENCE)


def a_listener_that_is_gone_keeps_its_connections():
    """The clients of one address are connected when a reload puts another one in its place: the latter has what is left."""
    with Server(echo) as server:
        with Proxy(configuration(server.name), prefix=limited(64)) as proxy:
            clients, limit = fill(proxy)
            proxy.configure(configuration(server.name).replace("listen 127.0.0.1:0", "listen 127.0.0.2:0"))
            proxy.signal(signal.SIGHUP)
            port = int(proxy.out.expect(r"^listening .* 127.0.0.2:\d+, port (\d+)$").group(1))
            others = [proxy_at(port) for _ in range(CLIENTS)]
            for other in others:
                other.sendall(b"x")
            served(others)
            check(int(proxy.statistics()["live"]) <= limit + 1, "more than", limit)
            keeps_its_reserve(proxy, 64)
            for client in clients:
                client.close()
            are_all_served(others)


def a_limit_that_is_too_low_is_an_error():
    with Server(echo) as server:
        try:
            with Proxy(configuration(server.name), prefix=limited(24)):
                check(False, "it began")
        except NotBegun as why:
            equal(why.status, 1)
            check("the limit of descriptors leaves " in why.errors[0], why.errors)
        with Proxy(configuration(server.name), prefix=limited(64)) as proxy:
            listens = "".join(f"listen 127.0.0.2:{port}\nto web\n" for port in range(10001, 10009))
            proxy.configure(configuration(server.name) + listens)
            proxy.signal(signal.SIGHUP)
            proxy.err.expect("the limit of descriptors leaves .*, and the configuration needs ")
            with proxy.client() as client:
                client.sendall(b"x")
                equal(client.recv(1), b"x")


def max_of(proxy):
    return int(proxy.err.expect(r"only (\d+) connections").group(1))


def idle_connections_of_before_a_reload_take_nothing():
    """A reload closes connections that were kept for servers: the listener has the clients that it has after a start."""
    answer = named("kept")
    with Server(answer) as server:
        new = configuration(server.name)
        with Proxy(new, prefix=limited(128)) as proxy:
            wanted = max_of(proxy)
        servers = [Server(answer) for _ in range(40)]
        old = http_configuration(*(one.name for one in servers), listen="max-connections 2")
        for has_client in (False, True):
            with Proxy(old, prefix=limited(128)) as proxy:
                with proxy.client() as client:
                    for _ in servers:
                        equal(get(client).body, b"kept")
                    if not has_client:
                        client.close()
                        proxy.idle(accepted=1)
                    proxy.configure(new)
                    proxy.signal(signal.SIGHUP)
                    found = max_of(proxy)
                    check(found == wanted or (has_client and found < wanted), found, "clients, and after a start", wanted)
                # The last client of the old configuration has gone: nothing else has to end for the rest.
                proxy.idle(accepted=1)
                clients = [proxy.client() for _ in range(CLIENTS)]
                patience = time.monotonic() + PATIENCE
                while (live := int(proxy.statistics()["live"])) < wanted:
                    check(time.monotonic() < patience, live, "of", wanted, "clients are served")
                for client in clients:
                    client.close()
        for one in servers:
            one.close()


def a_reload_that_the_connections_leave_no_room_for_changes_nothing():
    """More listeners, for which there is room without the clients; once these have gone, they are opened."""
    with Server(echo) as server, Proxy(configuration(server.name), prefix=limited(110)) as proxy:
        clients, _ = fill(proxy)
        more = "".join(f"listen 127.0.0.{2 + number}:0\nto web\n" for number in range(4))
        proxy.configure(configuration(server.name) + more)
        proxy.signal(signal.SIGHUP)
        proxy.err.expect("the limit of descriptors leaves .*, and a reload beside the open connections needs ")
        keeps_its_reserve(proxy, 110)
        are_all_served(clients)
        proxy.idle(accepted=CLIENTS)
        proxy.signal(signal.SIGHUP)
        for number in range(4):
            host = f"127.0.0.{2 + number}"
            port = int(proxy.out.expect(rf"^listening .* {host}:\d+, port (\d+)$").group(1))
            with proxy_at(port, host) as client:
                client.sendall(b"z")
                equal(client.recv(1), b"z")


def wait_for_listener(proxy, port):
    patience = time.monotonic() + PATIENCE
    while True:
        try:
            return proxy.client(port).close()
        except ConnectionRefusedError:
            check(time.monotonic() < patience, "no listener at", port)


def a_reload_that_fails_takes_no_share():
    """Connections end while its second listener waits for an address: what the first one has of theirs is given back."""
    port = free_port()
    with Server(echo) as server, Server() as other, Proxy(configuration(server.name), prefix=limited(128)) as proxy:
        clients, limit = fill(proxy)
        moved = configuration(server.name).replace("listen 127.0.0.1:0", "listen 127.0.0.2:0")
        proxy.configure(moved)
        proxy.signal(signal.SIGHUP)
        second = int(proxy.out.expect(r"^listening .* 127.0.0.2:\d+, port (\d+)$").group(1))
        proxy.out.expect("the configuration was reloaded")
        proxy.configure(moved + f"listen 127.0.0.1:{port}\nto web\nlisten {other.name}\nto web\n")
        proxy.signal(signal.SIGHUP)
        wait_for_listener(proxy, port)
        for client in clients:
            client.close()
        proxy.err.expect(f"{other.name}: Address already in use")
        clients = [proxy_at(second) for _ in range(CLIENTS)]
        patience = time.monotonic() + PATIENCE
        while (live := int(proxy.statistics()["live"])) < limit:
            check(time.monotonic() < patience, live, "of", limit, "clients are served")
        for client in clients:
            client.close()


def a_limit_that_is_written_and_not_kept_is_reported():
    with Server(echo) as server:
        with Proxy(configuration(server.name, listen="max-connections 500"), prefix=limited(64)) as proxy:
            proxy.err.expect(r"proxy: 127.0.0.1:0: only \d+ connections: the limit of descriptors allows no more")
        with Proxy(configuration(server.name, listen="max-connections 3"), prefix=limited(64)) as proxy:
            _, errors = proxy.stop()
            equal([line for line in errors if "connections" in line], [])


def without_spare_descriptors_bulk_data_comes_whole():
    """Pipes of all relays would need more than there are: some relay through memory."""
    size = 4 << 20
    with Server(echo) as server, Proxy(configuration(server.name), prefix=limited(64)) as proxy:
        clients, _ = fill(proxy, 40)
        for client in clients[:3]:
            equal(read_exactly(client, 1), b"x")
        for client in clients[3:]:
            client.close()
        senders = [threading.Thread(target=lambda client=client: client.sendall(b"y" * size)) for client in clients[:3]]
        for sender in senders:
            sender.start()
        for client in clients[:3]:
            equal(read_exactly(client, size), b"y" * size)
        for sender in senders:
            sender.join()
        keeps_its_reserve(proxy, 64)
        for client in clients[:3]:
            client.close()


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
