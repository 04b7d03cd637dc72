#!/usr/bin/env python3
"""Tests how the proxy chooses the route of a request: routes_test.py PROGRAM [TEST...]."""

import subprocess
import sys
import tempfile

from harness import Proxy, Server, equal, run, tests_of
from http_messages import get, named, respond, status_of, web


def routes_go_by_host_and_path():
    with Server(named("a")) as a, Server(named("b")) as b, Server(named("c")) as c, Server(named("d")) as d:
        text = (f"listen 127.0.0.1:0\nmode http\nroute /api a\nroute /api/v2 b\nroute example.org c\n"
                f"route example.org/api d\nbackend a\nserver {a.name}\nbackend b\nserver {b.name}\nbackend c\n"
                f"server {c.name}\nbackend d\nserver {d.name}\n")
        with Proxy(text) as proxy, proxy.client() as client:
            for host, target, wanted in (
                    ("other", "/api", b"a"), ("other", "/api/v1", b"a"), ("other", "/api/v2/x", b"b"),
                    ("other", "/api/v22", b"a"), ("EXAMPLE.org:80", "/", b"c"), ("example.org", "/apis", b"c"),
                    ("example.org", "/api/v2", b"d"), ("example.org", "/api?x", b"d")):
                equal(get(client, target, host=host).body, wanted, host, target)
            equal(status_of(get(client, "/other", host="other")), 404)
            for host in ("example.org.", "Example.ORG.:80"):
                equal(get(client, "/", host=host).body, b"c", host)
            equal(status_of(get(client, "/apis", host="other")), 404)


def a_dot_at_the_end_makes_no_other_host():
    """In a request as in a route; two dots are another name, and so is a dot alone."""
    with Server(named("inside")) as inside, Server(named("rest")) as rest:
        for name in ("admin.test", "admin.test."):
            text = (f"listen 127.0.0.1:0\nmode http\nroute {name} inside\nto rest\n"
                    f"backend inside\nserver {inside.name}\nbackend rest\nserver {rest.name}\n")
            with Proxy(text) as proxy, proxy.client() as client:
                for host, wanted in (("admin.test", b"inside"), ("admin.test.", b"inside"), ("ADMIN.test.:8080", b"inside"),
                                     ("admin.test.:", b"inside"), ("x.admin.test.", b"rest"), (".", b"rest"), ("test.", b"rest")):
                    equal(get(client, "/", host=host).body, wanted, name, host)
                equal(get(client, "http://admin.test./x").body, b"inside", name)


def target_of(message, connection):
    respond(connection, body=message.line.encode("latin-1"))


def paths_are_matched_in_their_normal_form():
    """What a route sees, and what the server receives: the target as it came."""
    with Server(web(target_of)) as admin, Server(named("rest")) as rest:
        text = (f"listen 127.0.0.1:0\nmode http\nroute /admin admin\nroute / rest\n"
                f"backend admin\nserver {admin.name}\nbackend rest\nserver {rest.name}\n")
        with Proxy(text) as proxy, proxy.client() as client:
            for target in ("/admin", "/admin/", "/%61dmin", "/%61%64min/x", "//admin", "/./admin", "/x/../admin", "/../admin/y",
                           "/x/y/../../admin", "/admin?q=/../x%2f%", "http://b/admin/%20",
                           "//admin//x", "/admin/%2e%2e%2e"):
                equal(get(client, target).body.decode(), f"GET {target.removeprefix('http://b')} HTTP/1.1", target)
            for target in ("/x;y", "/x;/admin", "/x/;y", "/admin%3b", "/x/admin;y"):
                equal(get(client, target).body, b"rest", target)
            equal(get(client, "/admin/x;y=1;z/;").body, b"GET /admin/x;y=1;z/; HTTP/1.1")
            for target in ("/", "/x", "/administrator", "/admin/..", "/admin/../x", "/Admin", "/x?/admin", "/x/admin", "/admin%20"):
                equal(get(client, target).body, b"rest", target)
            for target in ("/admin%2fx", "/x%2F..%2Fadmin", "/%2e%2e/admin", "/x/%2e./admin", "/admin\\x", "/x%5cy", "/admin%00",
                           "/admin%0a", "/%zz", "/admin%", "/x//../admin", "/x/..;/admin", "/x/..%3bx/admin", "/admin;", "/admin;x/y",
                           "/;/admin", "/;x;y/admin/", "/x/;/../admin"):
                message = get(client, target)
                equal((status_of(message), message.body), (400, b"400 Bad Request\n"), target)
            equal(get(client, "/" + "a/../" * 1000 + "admin").body[:10], b"GET /a/../")
            equal(status_of(get(client, "/" + "a/../" * 1000 + "%2f")), 400)
            proxy.out.expect('"GET /admin%2fx" 400 .*Invalid argument')


def paths_that_decide_nothing_are_not_judged():
    """A route for all paths of a host takes ambiguous ones, too."""
    with Server(web(target_of)) as a, Server(named("b")) as b:
        backends = f"backend a\nserver {a.name}\nbackend b\nserver {b.name}\n"
        hosts = "route other.test/x b\n"
        for routes in ("to a\n", "route / a\n", "to a\n" + hosts, "route example.org a\nroute /x b\n",
                       "route example.org/ a\nto b\nroute /x b\n"):
            with Proxy(f"listen 127.0.0.1:0\nmode http\n{routes}{backends}") as proxy, proxy.client() as client:
                for target in ("/x%2fy", "/%zz", "/x/..;/y", "/a//../b", "/a\\b"):
                    equal(get(client, target).body.decode(), f"GET {target} HTTP/1.1", routes)
        for routes in ("route /x b\n", "to a\nroute example.org/x b\n", "to a\nroute /x b\n", "route example.org a\n"
                       "route example.org/x b\n"):
            with Proxy(f"listen 127.0.0.1:0\nmode http\n{routes}{backends}") as proxy, proxy.client() as client:
                equal(status_of(get(client, "/x%2fy")), 400, routes)


def prefixes_have_a_normal_form():
    with Server(named("a")) as server:
        text = f"listen 127.0.0.1:0\nmode http\nroute /x/%61/./b/..// a\nbackend a\nserver {server.name}\n"
        with Proxy(text) as proxy, proxy.client() as client:
            for target, status in (("/x/a/", 200), ("/x/a/c", 200), ("/x//a/", 200), ("/x/a", 404), ("/x/b/", 404)):
                equal(status_of(get(client, target)), status, target)
        for prefix in ("/a%2fb", "/%2e%2e", "/a%", "/a\\b"):
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(text.replace("/x/%61/./b/..//", prefix))
                file.flush()
                done = subprocess.run([Proxy.program, "--check", file.name], capture_output=True, text=True, check=False)
            equal((done.returncode, done.stderr),
                  (1, f"proxy: {file.name}:3: servers may read '{prefix}' in different ways\n"))


if __name__ == "__main__":
    run(tests_of(globals()), sys.argv[1:])
