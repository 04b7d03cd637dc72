#!/usr/bin/env python3
"""Tests that clients keep their server, by a cookie or by their address: sticky_test.py PROGRAM [TEST...]."""

import collections
import contextlib
import signal
import sys
import threading

from harness import PATIENCE, Proxy, Server, check, equal, greeter, read_all, run, tests_of
from harness import tcp_configuration
from http_messages import Message, ask, configuration, get, named, respond, status_of, web
from tls_test import Authority, without_tls

COUNT = 3
COOKIE = "sticky cookie S"


class Servers(contextlib.ExitStack):
    """Servers, each with a name."""

    def __init__(self, serve):
        super().__init__()
        self.all = [self.enter_context(Server(serve(f"server {number}"))) for number in range(COUNT)]

    def __enter__(self):
        super().__enter__()
        return self.all


def names_of(servers):
    return [server.name for server in servers]


def ask_with(proxy, *cookies):
    """A connection of its own. Returns the server's body, and the cookie that is set."""
    with proxy.client() as client:
        message = get(client, "/", "GET", *(f"Cookie: {cookie}" for cookie in cookies))
        equal(status_of(message), 200)
        return message.body, message.get("Set-Cookie")


def first_cookies(proxy, count=COUNT):
    """The cookie of each server: clients without one are balanced."""
    found = {}
    for _ in range(count):
        body, cookie = ask_with(proxy)
        value, *attributes = cookie.split("; ")
        equal((value[:2], attributes), ("S=", ["Path=/", "HttpOnly", "SameSite=Lax"]))
        found[body] = value
    equal(len(set(found.values())), count, found)
    return found


def a_cookie_keeps_its_server():
    with Servers(named) as servers:
        text = configuration(*names_of(servers), backend=COOKIE)
        with Proxy(text) as proxy:
            cookies = first_cookies(proxy)
            for body, cookie in cookies.items():
                for line in ((cookie,), (f"a=b; {cookie}; c=d",), ("a=b", cookie), (f"S=x;{cookie}",)):
                    equal(ask_with(proxy, *line), (body, None), line)
            for other in ("S=x", "S=", "XS=" + cookie[2:], "s" + cookie[1:], cookie + "0", cookie[:-1], "; ;=;" + "S"):
                check(ask_with(proxy, other)[1], "no cookie was set for", other)
            proxy.configure(text)
            proxy.signal(signal.SIGHUP)
            proxy.out.expect("the configuration was reloaded")
            for body, cookie in cookies.items():
                equal(ask_with(proxy, cookie), (body, None))
        with Proxy(configuration(*reversed(names_of(servers)), backend=COOKIE)) as proxy:
            for body, cookie in cookies.items():
                equal(ask_with(proxy, cookie), (body, None), "after a restart")


def a_cookie_of_a_server_that_is_gone_is_replaced():
    with Servers(named) as servers:
        with Proxy(configuration(*names_of(servers), backend=COOKIE + "\nretries 3")) as proxy:
            cookies = first_cookies(proxy)
            servers[0].close()
            with proxy.client() as client: # (a new connection to the server fails; a kept one still serves)
                get(client)
            gone = cookies[b"server 0"]
            while (found := ask_with(proxy, gone))[1] is None:
                equal(found[0], b"server 0")
                proxy.configure(configuration(*names_of(servers), backend=COOKIE + "\nretries 3\nkeep 0"))
                proxy.signal(signal.SIGHUP)
                proxy.out.expect("the configuration was reloaded")
            body, cookie = found
            equal(cookie.split(";")[0], cookies[body])
            equal(ask_with(proxy, cookie.split(";")[0]), (body, None))


class Slow:
    """Servers of one connection each, where requests for /slow wait until they may go on."""

    def __init__(self):
        self.arrived, self.go_on = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, name):
        def answer(message, connection):
            if message.line.startswith("GET /slow"):
                self.arrived.release()
                check(self.go_on.acquire(timeout=PATIENCE))
            respond(connection, body=name.encode())
        return web(answer)

    def ask(self, client, cookie):
        ask(client, "/slow", "GET", f"Cookie: {cookie}")
        check(self.arrived.acquire(timeout=PATIENCE))


def full_configuration(servers, backend):
    return configuration(*(f"{name} max 1" for name in names_of(servers)), backend=f"{COOKIE}\n{backend}")


def requests_wait_for_their_own_server():
    """The others are free: it has one connection at a time, and a request in progress."""
    slow = Slow()
    with Servers(slow) as servers, Proxy(full_configuration(servers, "connect-timeout 60s")) as proxy:
        cookie = first_cookies(proxy)[b"server 1"]
        with proxy.client() as one, proxy.client() as other:
            slow.ask(one, cookie)
            ask(other, "/", "GET", f"Cookie: {cookie}")
            while not proxy.statistics()[f"web/{servers[1].name}"].startswith("up,live:2"):
                pass
            slow.go_on.release()
            for client in (one, other):
                message = Message(client)
                equal((message.body, message.get("Set-Cookie")), (b"server 1", None))


def a_server_that_is_full_for_too_long_has_not_failed():
    """The request gets a 504, and no other server: its session is kept, and its server used again."""
    slow = Slow()
    with Servers(slow) as servers, Proxy(full_configuration(servers, "connect-timeout 1s\nfail 1 1h")) as proxy:
        cookie = first_cookies(proxy)[b"server 1"]
        with proxy.client() as one, proxy.client() as other:
            slow.ask(one, cookie)
            message = get(other, "/", "GET", f"Cookie: {cookie}")
            equal((status_of(message), message.get("Set-Cookie")), (504, None))
            statistics = proxy.statistics()
            check("failed:0" in statistics[f"web/{servers[1].name}"].split(","), statistics)
            equal(statistics["retries"], "0")
            slow.go_on.release()
            equal(Message(one).body, b"server 1")
        equal(ask_with(proxy, cookie), (b"server 1", None))


def address_of(number):
    return f"10.{number // 200}.{number % 200}.7"


def server_of_address(proxy, mode, address):
    with proxy.client() as client:
        client.sendall(f"PROXY TCP4 {address} 127.0.0.1 {1000 + len(address)} 80\r\n".encode())
        return read_all(client) if mode == "tcp" else get(client).body


def an_address_keeps_its_server():
    """Each address has one server, in proportion to the weights; if a server goes, its clients alone change."""
    for mode, serve, text_of in (("tcp", greeter, tcp_configuration), ("http", named, configuration)):
        with Servers(serve) as servers:
            names = names_of(servers)
            lines = {"listen": "accept-proxy", "backend": "sticky address"}
            with Proxy(text_of(names[0], names[1], f"{names[2]} weight 6", **lines)) as proxy:
                before = {address_of(n): server_of_address(proxy, mode, address_of(n)) for n in range(120)}
                counts = collections.Counter(before.values())
                check(counts[b"server 2"] > counts[b"server 0"] + counts[b"server 1"], counts)
                check(len(counts) == 3, counts)
                for address in list(before)[:20]:
                    equal(server_of_address(proxy, mode, address), before[address], address)
                proxy.configure(text_of(names[1], f"{names[2]} weight 6", **lines))
                proxy.signal(signal.SIGHUP)
                proxy.out.expect("the configuration was reloaded")
                for address, body in before.items():
                    found = server_of_address(proxy, mode, address)
                    check(found == body or body == b"server 0", address, body, found)
                    check(found != b"server 0")


def clients_return_to_a_server_that_is_up_again():
    """A check takes it away, and others serve its clients meanwhile."""
    check_often = "check tcp every 20ms timeout 10s rise 1 fall 1"
    with Servers(named) as servers:
        names, port = names_of(servers), servers[0].port
        addresses = [address_of(n) for n in range(30)]
        with Proxy(configuration(*names, listen="accept-proxy", backend=f"sticky address\nkeep 0\n{check_often}")) as proxy:
            before = [server_of_address(proxy, "http", address) for address in addresses]
            servers[0].close()
            proxy.out.expect(f"server web/{names[0]} is down")
            for address, body in zip(addresses, before):
                found = server_of_address(proxy, "http", address)
                check(found != b"server 0" and (found == body or body == b"server 0"), address, body, found)
            with Server(named("server 0"), port=port):
                proxy.out.expect(f"server web/{names[0]} is up")
                equal([server_of_address(proxy, "http", address) for address in addresses], before)


def the_cookie_is_secure_with_tls():
    if why := without_tls():
        return why
    with Authority() as authority, Server(named("one")) as server:
        chain, key = authority.issue("one", "DNS:one.test")
        with Proxy(configuration(server.name, listen=f"certificate {chain} {key}", backend=COOKIE)) as proxy:
            with authority.client(proxy, "one.test") as client:
                equal(get(client).get("Set-Cookie").split("; ")[1:], ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"])
    return None


def of_ipv6_the_first_half_counts():
    with Servers(greeter) as servers:
        text = tcp_configuration(*names_of(servers), listen="accept-proxy", backend="sticky address")
        with Proxy(text) as proxy:
            found = set()
            for host in range(1, 13):
                with proxy.client() as client:
                    client.sendall(f"PROXY TCP6 2001:db8:0:1::{host:x} ::1 1000 80\r\n".encode())
                    found.add(read_all(client))
            equal(len(found), 1, found)


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
