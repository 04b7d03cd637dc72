#!/usr/bin/env python3
"""Servers are confined once they listen: confine_test.py NAME=PROGRAM...

For each of them, on both back ends: every thread has the filter of system calls and can get no more privileges; as
another user nothing is left of root; inside of another root it serves; and it answers all the while. Prints TAP.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from programs import PATIENCE, Lines, check, equal, read_all, run  # noqa: E402

NOBODY = 65534
BACK_ENDS = ["uring", "epoll"]
servers = dict(argument.split("=", 1) for argument in sys.argv[1:])


class Refused(Exception):
    pass


class Server:
    def __init__(self, name, options, back_end, prefix=()):
        self.name = name
        self.process = subprocess.Popen([*prefix, servers[name], *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=dict(os.environ, BIDE_IO=back_end))
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)
        line = self.out.next()
        if line is None:
            self.process.wait(PATIENCE)
            raise Refused("; ".join(self.err.rest()))
        self.port = int(line.split()[-1])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            equal(self.process.wait(PATIENCE), 0, "its status")
            if kind is None and self.name != "proxy":
                equal(self.err.rest(), [])
        finally:
            self.process.kill()
            self.process.wait()

    def ask(self, text):
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as client:
            client.sendall(text)
            client.shutdown(socket.SHUT_WR)
            return read_all(client)

    def get(self, path):
        """The status of a response, and its body."""
        head, _, body = self.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()).partition(b"\r\n\r\n")
        return int(head.split()[1]), body

    def threads(self):
        """What the kernel says about each thread of the program; workers of a ring have no user code."""
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                with open(f"/proc/{self.process.pid}/task/{thread}/status", encoding="utf-8") as file:
                    status = dict(line.rstrip("\n").split(":", 1) for line in file)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            if not status["Name"].strip().startswith("iou-"):
                yield {key: value.split() for key, value in status.items()}


def lacks():
    """The reason why this kernel confines nothing."""
    name, program = next(iter(servers.items()))
    options = {"httpd": ["/"], "proxy": ["--server", "127.0.0.1:1"]}.get(name, [])
    try:
        with Server(name, ["--confine", "on", *options], "epoll"):
            return None
    except Refused as refused:
        if "Landlock: " in str(refused) or "seccomp: " in str(refused):
            return str(refused)
        raise


def unless(*reasons):
    """The first reason to skip."""
    return next((reason for reason in reasons if reason), None)


def can(text):
    """Whether Python can run this, in a process of its own."""
    return subprocess.run([sys.executable, "-c", "import os;" + text], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def no_user():
    """The reason why a server cannot become another user, or finds no file then."""
    become = f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); os.stat({tempfile.gettempdir() + '/.'!r})"
    return None if os.geteuid() == 0 and can(become) else "the test cannot become another user"


def no_root():
    return None if os.geteuid() == 0 and can("os.chroot('/')") else "the test cannot change its root"


def absent(*names):
    return next((name + " was not built" for name in names if name not in servers), None)


def check_confined(server, user=None):
    threads = list(server.threads())
    check(threads, "no threads")
    for status in threads:
        equal((status["Seccomp"], status["NoNewPrivs"]), (["2"], ["1"]), status["Name"])
        if user is not None:
            equal(status["Uid"] + status["Gid"], [str(user)] * 8, status["Name"])
            equal(status["Groups"], [], status["Name"])
            for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                equal(int(status[kind][0], 16), 0, status["Name"], kind)


def serves(name, options, request, answer, limits, user=None):
    for back_end in BACK_ENDS:
        with Server(name, [*limits, *options], back_end) as server:
            check_confined(server, user)
            check(answer in server.ask(request), name, back_end)
            check_confined(server, user)


REQUEST = b"GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def with_directory(test):
    """Runs the test in a directory that everybody can enter."""
    def run_it():
        with tempfile.TemporaryDirectory(prefix="confine-test-") as directory:
            os.chmod(directory, 0o777)
            with open(os.path.join(directory, "page"), "w", encoding="ascii") as file:
                file.write("a page")
            return test(directory)
    run_it.__name__ = test.__name__
    return run_it


# ---- Tests ----


@with_directory
def httpd_is_confined(directory):
    if reason := unless(absent("httpd"), lacks()):
        return reason
    for log in (directory + "/log", "/proc/self/fd/1"):  # a file, and a pipe
        serves("httpd", ["--threads", "2", "--log", log, directory], REQUEST, b"a page", ["--confine", "on"])


@with_directory
def kv_is_confined(directory):
    if reason := unless(absent("kv"), lacks()):
        return reason
    for files in ([], ["--append-only", directory + "/log", "--fsync", "always"], ["--snapshot", directory + "/snapshot"]):
        serves("kv", files, b"SET a 1\r\nGET a\r\nBGSAVE\r\nBGREWRITEAOF\r\n", b"+OK\r\n$1\r\n1\r\n", ["--confine", "on"])


def chat_is_confined():
    if reason := unless(absent("chat"), lacks()):
        return reason
    serves("chat", [], b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"<html", ["--confine", "on"])


@with_directory
def proxy_is_confined(directory):
    if reason := unless(absent("proxy"), absent("httpd"), lacks()):
        return reason
    with Server("httpd", ["--confine", "on", directory], "epoll") as behind:
        options = ["--confine", "on", "--log", "stderr", "--server", f"localhost:{behind.port}"]
        for back_end in BACK_ENDS:
            with Server("proxy", options, back_end) as proxy:
                proxy.err.expect("localhost.* is resolved$")
                check(b"a page" in proxy.ask(REQUEST), back_end)
                check_confined(proxy)


@with_directory
def a_file_of_root_is_not_served_as_another_user(directory):
    if reason := unless(absent("httpd"), no_user()):
        return reason
    with open(os.path.join(directory, "secret"), "w", encoding="ascii") as file:
        os.chmod(file.fileno(), 0o600)
        file.write("secret")
    for back_end in BACK_ENDS:
        with Server("httpd", [directory], back_end) as server:
            equal(server.get("/secret"), (200, b"secret"))
        with Server("httpd", ["--user", f"{NOBODY}:{NOBODY}", directory], back_end) as server:
            status, body = server.get("/secret")
            check(status in (403, 404) and b"secret" not in body, status, body)
            equal(server.get("/page"), (200, b"a page"))
    return None


@with_directory
def nothing_is_left_of_root(directory):
    if reason := unless(no_user(), lacks()):
        return reason
    limits = ["--confine", "on", "--user", f"{NOBODY}:{NOBODY}"]
    if "httpd" in servers:
        serves("httpd", ["--threads", "2", directory], REQUEST, b"a page", limits, NOBODY)
    if "kv" in servers:
        serves("kv", ["--append-only", directory + "/log"], b"SET a 1\r\nBGREWRITEAOF\r\n", b"+OK", limits, NOBODY)
        equal(os.stat(directory + "/log").st_uid, NOBODY)
    if "chat" in servers:
        serves("chat", [], REQUEST, b" 404 ", limits, NOBODY)
    if "proxy" in servers and "httpd" in servers:
        with Server("httpd", [directory], "epoll") as behind:
            serves("proxy", ["--server", f"127.0.0.1:{behind.port}"], REQUEST, b"a page", limits, NOBODY)
    return None


@with_directory
def files_are_looked_up_in_the_new_root(directory):
    if reason := unless(no_root(), lacks()):
        return reason
    limits = ["--confine", "on", "--chroot", directory]
    if "httpd" in servers:
        serves("httpd", ["--log", "/log", "/"], REQUEST, b"a page", limits)
        check(os.path.getsize(directory + "/log") > 0)
    if "kv" in servers:
        serves("kv", ["--append-only", "changes"], b"SET a 1\r\nBGREWRITEAOF\r\n", b"+OK", limits)
        check(os.path.getsize(directory + "/changes") > 0)
    if "proxy" in servers and "httpd" in servers:
        with Server("httpd", [directory], "epoll") as behind:
            with open(directory + "/conf", "w", encoding="ascii") as file:
                file.write(f"log /proxy.log\nlisten 127.0.0.1:0\nto a\nbackend a\nserver 127.0.0.1:{behind.port}\n")
            serves("proxy", ["/conf"], REQUEST, b"a page", limits)
            check(os.path.exists(directory + "/proxy.log"))
    return None


@with_directory
def a_reload_is_confined(directory):
    """The proxy reads its file again, and other files beside it; elsewhere it is refused, and goes on."""
    if reason := unless(absent("proxy", "httpd"), lacks()):
        return reason
    path, elsewhere = directory + "/conf", tempfile.mkdtemp(prefix="confine-test-")
    with Server("httpd", [directory], "epoll") as behind:
        def configure(log):
            with open(path, "w", encoding="ascii") as file:
                file.write(f"log {log}\nlisten 127.0.0.1:0\nto a\nbackend a\nserver 127.0.0.1:{behind.port}\n")

        def talks(proxy):
            check(b"a page" in proxy.ask(REQUEST))
        try:
            configure(directory + "/one")
            for back_end in BACK_ENDS:
                with Server("proxy", ["--confine", "on", path], back_end) as proxy:
                    configure(directory + "/two")
                    proxy.process.send_signal(signal.SIGHUP)
                    while not os.path.exists(directory + "/two"):
                        talks(proxy)
                    configure(elsewhere + "/three")
                    proxy.process.send_signal(signal.SIGHUP)
                    proxy.err.expect("/three: Permission denied")
                    talks(proxy)
                    os.unlink(directory + "/two")
                    configure(directory + "/one")
        finally:
            shutil.rmtree(elsewhere)


def other_etc(directory):
    """A directory to be mounted at /etc, whose files of names are links to another directory."""
    etc, elsewhere = directory + "/etc", directory + "/elsewhere"
    os.mkdir(etc)
    os.mkdir(elsewhere)
    for name in ("nsswitch.conf", "ld.so.cache", "passwd", "group"):
        if os.path.exists("/etc/" + name):
            shutil.copy("/etc/" + name, etc)
    for name, text in (("hosts", "127.0.0.1 elsewhere.test\n"), ("resolv.conf", "nameserver 127.0.0.1\n")):
        with open(f"{elsewhere}/{name}", "w", encoding="ascii") as file:
            file.write(text)
        os.symlink(f"{elsewhere}/{name}", f"{etc}/{name}")
    return etc


@with_directory
def names_are_found_where_links_of_etc_lead(directory):
    if reason := unless(absent("proxy", "httpd"), lacks()):
        return reason
    mount = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', other_etc(directory)]
    try:
        done = subprocess.run([*mount, "cat", "/etc/hosts"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
    except FileNotFoundError:
        return "unshare is not installed"
    if "elsewhere.test" not in done.stdout:
        return "the test cannot mount at /etc"
    with Server("httpd", ["--confine", "on", directory], "epoll") as behind:
        options = ["--confine", "on", "--log", "stderr", "--server", f"elsewhere.test:{behind.port}"]
        for back_end in BACK_ENDS:
            with Server("proxy", options, back_end, mount) as proxy:
                proxy.err.expect("elsewhere.test.* is resolved$")
                check(b"a page" in proxy.ask(REQUEST), back_end)
                check_confined(proxy)
    return None


def wrong_options_are_refused():
    for name, program in servers.items():
        rest = {"httpd": ["/"], "proxy": ["--server", "127.0.0.1:1"]}.get(name, [])
        for options, status in ((["--confine", "yes"], 2), (["--user", "there-is-no-such-user"], 1),
                                (["--chroot", "/there/is/no/such/directory"], 1)):
            done = subprocess.run([program, *options, *rest], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
            equal(done.returncode, status, name, options, done.stderr)
            check(done.stderr, name, options)


sys.exit(run([httpd_is_confined, kv_is_confined, chat_is_confined, proxy_is_confined,
              a_file_of_root_is_not_served_as_another_user, nothing_is_left_of_root, files_are_looked_up_in_the_new_root,
              a_reload_is_confined, names_are_found_where_links_of_etc_lead, wrong_options_are_refused], []))
