#!/usr/bin/env python3
"""Tests the proxy's rules for header fields, and its redirections: rules_test.py PROGRAM [TEST...]."""

import sys

from harness import Proxy, Server, equal, run, tests_of
from http_messages import Message, ask, configuration, get, respond, status_of, web


def rules_change_fields_in_their_order():
    """Each row: rules of the listener, rules of the backend, values that come, values that arrive."""
    seen = []

    def answer(message, connection):
        seen.append(message)
        respond(connection, "200 OK", b"", *(f"X-A: {value}" for value in message.all("X-Reply")))

    rows = (
        ([], [], ["a", "b"], ["a", "b"]),
        (["set X-A c"], [], ["a", "b"], ["c"]),
        (["set x-a c"], [], [], ["c"]),
        (["add X-A c"], [], ["a"], ["a", "c"]),
        (["add X-A c", "add X-A d"], [], ["a"], ["a", "c", "d"]),
        (["remove X-A"], [], ["a", "b"], []),
        (["set X-A c", "set X-A d"], [], ["a"], ["d"]),
        (["add X-A c", "remove X-A", "add X-A d"], [], ["a"], ["d"]),
        (["add X-A c"], ["add X-A d"], ["a"], ["a", "c", "d"]),
        (["add X-A c"], ["set X-A d"], ["a"], ["d"]),
        (["set X-A c"], ["remove X-A"], ["a"], []),
        (["remove X-A"], ["add X-A d"], ["a"], ["d"]),
        (['set X-A "c; d=\'e\'"'], [], ["a"], ["c; d='e'"]),
        (["remove X-B"], ["set X-C c"], ["a"], ["a"]),
    )
    with Server(web(answer)) as server:
        for listen, backend, came, wanted in rows:
            for kind in ("request", "response"):
                lines = [[f"{kind}-header {rule}\n" for rule in rules] for rules in (listen, backend)]
                text = configuration(server.name, listen="".join(lines[0]), backend="".join(lines[1]))
                with Proxy(text) as proxy, proxy.client() as client:
                    name = "X-A" if kind == "request" else "X-Reply"
                    for _ in range(2):
                        message = get(client, "/", "GET", *(f"{name}: {value}" for value in came))
                        equal(status_of(message), 200)
                        equal((seen[-1] if kind == "request" else message).all("X-A"), wanted, listen, backend, kind)


def rules_leave_the_framing_and_the_proxy_s_own_alone():
    with Server(web(lambda message, connection: respond(connection, body=message.body))) as server:
        listen = "request-header set X-A b\nresponse-header set Server c\nforwarded x-forwarded"
        with Proxy(configuration(server.name, listen=listen)) as proxy, proxy.client() as client:
            ask(client, "/", "POST", body=b"body")
            message = Message(client)
            equal((message.body, message.get("Server")), (b"body", "c"))


def fields_that_the_proxy_does_not_write_can_be_removed():
    """What clients claim about themselves: each row has a kind of `forwarded`, and the names that are for the rules."""
    seen = []

    def answer(message, connection):
        seen.append(message)
        respond(connection, "200 OK", b"", "X-Forwarded-For: server", "Forwarded: server")

    others = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto")
    with Server(web(answer)) as server:
        for kind, names in (("off", (*others, "Forwarded")), ("standard", others), ("x-forwarded", ("Forwarded",))):
            for section in ("listen", "backend"):
                rules = "".join(f"request-header remove {name}\n" for name in names)
                rules += "response-header remove X-Forwarded-For\nresponse-header set Forwarded proxy\n"
                lines = {"listen": f"forwarded {kind}\n", "backend": ""}
                lines[section] += rules
                with Proxy(configuration(server.name, **lines)) as proxy, proxy.client() as client:
                    message = get(client, "/", "GET", *(f"{name}: claimed" for name in (*others, "Forwarded")))
                    equal((status_of(message), message.all("X-Forwarded-For"), message.all("Forwarded")), (200, [], ["proxy"]), kind)
                    for name in names:
                        equal(seen[-1].all(name), [], kind, section, name)
        with Proxy(configuration(server.name, listen="forwarded off\nrequest-header set Forwarded by=proxy")) as proxy:
            with proxy.client() as client:
                get(client, "/", "GET", "Forwarded: claimed", "X-Forwarded-For: claimed")
                equal((seen[-1].all("Forwarded"), seen[-1].all("X-Forwarded-For")), (["by=proxy"], ["claimed"]))


def redirections_say_where():
    with Server(web(lambda message, connection: respond(connection, body=b"served"))) as server:
        listen = ("redirect /old 301 /new\nredirect /moved 308 https://b.test:8443$target\n"
                  "redirect up.test 307 https://$host$target\nredirect up.test/x 302 https://c.test/?from=$target&host=$host\n")
        with Proxy(configuration(server.name, listen=listen)) as proxy, proxy.client() as client:
            for host, target, status, location in (
                    ("a.test", "/old", 301, "/new"), ("a.test", "/old/x?y", 301, "/new"), ("a.test", "/%6fld", 301, "/new"),
                    ("a.test", "/moved/x?y=z", 308, "https://b.test:8443/moved/x?y=z"),
                    ("a.test", "//moved//x", 308, "https://b.test:8443//moved//x"),
                    ("up.test:80", "/", 307, "https://up.test/"), ("UP.test", "/a?b", 307, "https://UP.test/a?b"),
                    ("up.test", "//evil.test/", 307, "https://up.test//evil.test/"),
                    ("up.test", "/x/y", 302, "https://c.test/?from=/x/y&host=up.test"),
                    ("a.test", "http://up.test/a?b", 307, "https://up.test/a?b"),
                    ("up.test", "http://up.test?b", 307, "https://up.test/")):
                for method in ("GET", "HEAD", "DELETE"):
                    message = get(client, target, method, host=host)
                    equal((status_of(message), message.get("Location")), (status, location), host, target, method)
            ask(client, "/old", "POST", host="a.test", body=b"x" * 1000)
            equal(status_of(Message(client)), 301)
            ask(client, "*", "OPTIONS", host="up.test")
            equal(Message(client).get("Location"), "https://up.test/")
            equal(get(client, "/older", host="a.test").body, b"served")
            equal(status_of(get(client, "/old%2f", host="a.test")), 400)
            proxy.out.expect('http .* -/- "GET /old" 301 ')
        with Proxy(configuration(server.name, listen="redirect /x 301 https://$host$target")) as proxy:
            with proxy.client() as client:
                equal(status_of(get(client, "/x", host="", version="1.0")), 400)


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
