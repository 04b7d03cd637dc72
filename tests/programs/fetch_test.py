#!/usr/bin/env python3
"""Tests the program fetch with a server of its own, and with httpd: fetch_test.py PROGRAM tls|plain|calls [HTTPD]."""

import base64
import fcntl
import hashlib
import http.server
import os
import pty
import random
import re
import resource
import shutil
import signal
import ssl
import struct
import subprocess
import sys
import tempfile
import termios
import threading

PROGRAM = sys.argv[1]
HAS_TLS = sys.argv[2] == "tls"  # and sums
ONLY_CALLS = sys.argv[2] == "calls"  # of the program that is linked with faults
HTTPD = sys.argv[3] if len(sys.argv) > 3 else None  # built with HTTP/2
SUMS = ["--sha256"] if HAS_TLS else []
PATIENCE = 60
CONTENT = random.Random(17).randbytes(700_000)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def cut(self, body, at, **fields):
        """A response that ends early."""
        self.send_response(200)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:at])
        self.close_connection = True

    def give(self, body, tag):
        """The whole content, or the requested range."""
        asked = self.headers.get("Range")
        if asked and self.headers.get("If-Range") == tag:
            first = int(asked.removeprefix("bytes=").removesuffix("-"))
            if first >= len(body):
                self.answer(416, b"", Content_Range=f"bytes */{len(body)}")
            else:
                self.answer(206, body[first:], ETag=tag,
                            Content_Range=f"bytes {first}-{len(body) - 1}/{len(body)}")
        else:
            self.answer(200, body, ETag=tag)

    def handle(self):
        if self.server.requires_http1:
            self.connection.do_handshake()
            if self.connection.selected_alpn_protocol() == "h2":
                self.require_http1()
                return
        super().handle()

    def require_http1(self):
        """HTTP/2: each request is reset with HTTP_1_1_REQUIRED."""
        self.rfile.read(24)
        self.wfile.write(b"\0\0\0\4\0\0\0\0\0")
        while len(head := self.rfile.read(9)) == 9:
            self.rfile.read(int.from_bytes(head[:3], "big"))
            if head[3] == 1:
                with self.server.lock:
                    self.server.required += 1
                self.wfile.write(b"\0\0\4\3\0" + head[5:] + b"\0\0\0\x0d")

    def do_GET(self):
        server, path = self.server, self.path
        with server.lock:
            server.seen.append((path, self.headers.get("Range"), self.headers.get("If-Range")))
            turn = sum(1 for seen in server.seen if seen[0] == path)
        server.behaviour(self, path, turn)


class Skip(Exception):
    pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, behaviour, certificate=None, requires_http1=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            if requires_http1:
                context.set_alpn_protocols(["h2", "http/1.1"])
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.requires_http1, self.required = requires_http1, 0
        self.behaviour, self.seen, self.lock = behaviour, [], threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, path):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}{path}"

    def ranges(self, path):
        return [seen[1:] for seen in self.seen if seen[0] == path]

    def handle_error(self, request, client_address):
        pass  # a client that does not trust the certificate ends the handshake

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def fetch(directory, *arguments, status=0, said="", **options):
    done = subprocess.run([PROGRAM, "--retry-delay", "0", "-O", directory, *arguments], timeout=PATIENCE,
                          capture_output=True, text=True, **options)
    assert done.returncode == status and said in done.stderr, (done.returncode, said, done.stderr)
    return done


def content(directory, name):
    with open(os.path.join(directory, name), "rb") as file:
        return file.read()


for variable in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[variable]


def holds(directory, *names):
    assert sorted(os.listdir(directory)) == sorted(names), os.listdir(directory)


def body_of(path):
    number = int(path.rsplit("/", 1)[1])
    return random.Random(number).randbytes(number * 997 % 50_000)


def test_many_at_once(directory):
    with Server(lambda self, path, turn: self.give(body_of(path), '"1"')) as server:
        fetch(directory, "-j", "16", *(server.url(f"/files/{i}") for i in range(200)))
    holds(directory, *map(str, range(200)))
    for i in range(200):
        assert content(directory, str(i)) == body_of(f"/files/{i}")


def test_redirect(directory):
    def behave(self, path, turn):
        if path == "/old/name":
            self.answer(302, b"there", Location="../new?x")
        else:
            self.give(CONTENT, '"1"')
    with Server(behave) as server:
        fetch(directory, server.url("/old/name"))
        assert [seen[0] for seen in server.seen] == ["/old/name", "/new?x"]
    holds(directory, "name")
    assert content(directory, "name") == CONTENT


def test_redirects_without_an_end(directory):
    with Server(lambda self, path, turn: self.answer(301, b"", Location="/x")) as server:
        assert "too many redirects" in fetch(directory, server.url("/x"), status=1).stderr
        assert len(server.seen) == 11
    holds(directory)


def test_cut_goes_on(directory):
    def behave(self, path, turn):
        self.cut(CONTENT, 300_000, ETag='"1"') if turn == 1 else self.give(CONTENT, '"1"')
    with Server(behave) as server:
        fetch(directory, server.url("/a"), *SUMS)
        assert server.ranges("/a") == [(None, None), ("bytes=300000-", '"1"')]
    holds(directory, "a")
    assert content(directory, "a") == CONTENT


def test_changed_begins_anew(directory):
    def behave(self, path, turn):
        self.cut(CONTENT, 300_000, ETag='"1"') if turn == 1 else self.give(CONTENT[::-1][:400_000], '"2"')
    with Server(behave) as server:
        fetch(directory, server.url("/a"))
        assert server.ranges("/a")[1] == ("bytes=300000-", '"1"')
    holds(directory, "a")
    assert content(directory, "a") == CONTENT[::-1][:400_000]


def test_another_part_begins_anew(directory):
    def behave(self, path, turn):
        if turn == 1:
            self.cut(CONTENT, 300_000, ETag='"1"')
        elif turn == 2:
            self.answer(206, CONTENT[:10], ETag='"1"', Content_Range=f"bytes 0-9/{len(CONTENT)}")
        else:
            self.give(CONTENT, '"1"')
    with Server(behave) as server:
        fetch(directory, server.url("/a"))
        assert [seen[0] for seen in server.ranges("/a")] == [None, "bytes=300000-", None]
    assert content(directory, "a") == CONTENT


def test_no_version_begins_anew(directory):
    def behave(self, path, turn):
        self.cut(CONTENT, 300_000) if turn == 1 else self.answer(200, CONTENT)
    with Server(behave) as server:
        fetch(directory, server.url("/a"))
        assert server.ranges("/a") == [(None, None)] * 2
    assert content(directory, "a") == CONTENT


def test_busy_is_tried_again(directory):
    def behave(self, path, turn):
        self.answer(503, b"busy", Retry_After="0") if turn < 3 else self.give(CONTENT, '"1"')
    with Server(behave) as server:
        fetch(directory, server.url("/a"), "--tries", "3")
        fetch(directory, server.url("/b"), "--tries", "2", status=1, said="503 Service Unavailable")
        assert len(server.ranges("/b")) == 2
    holds(directory, "a")


def test_not_found(directory):
    def behave(self, path, turn):
        self.answer(404, b"no") if path == "/no" else self.give(CONTENT, '"1"')
    with Server(behave) as server:
        done = fetch(directory, server.url("/no"), server.url("/yes"), status=1)
        assert "404" in done.stderr and len(server.ranges("/no")) == 1
    holds(directory, "yes")


def test_sums(directory):
    if not HAS_TLS:
        raise Skip("built without SHA-256")
    right, wrong = hashlib.sha256(CONTENT).hexdigest(), "0" * 64
    with Server(lambda self, path, turn: self.give(CONTENT, '"1"')) as server:
        lines = f"{server.url('/a')} right {right}\n# a remark\n\n{server.url('/b')} wrong {wrong}\n"
        done = fetch(directory, "--sha256", "--input", "-", input=lines, status=1)
    assert done.stdout == f"{right}  right\n" and right in done.stderr
    holds(directory, "right")
    assert content(directory, "right") == CONTENT


def test_resumed_by_another_run(directory):
    def behave(self, path, turn):
        self.cut(CONTENT, 300_000, ETag='"1"') if turn == 1 else self.give(CONTENT, '"1"')
    with Server(behave) as server:
        fetch(directory, server.url("/a"), "--tries", "1", status=1, said="the connection was closed early")
        holds(directory, "a.part", "a.part.from")
        done = fetch(directory, server.url("/a"), "--resume", *SUMS)
        assert server.ranges("/a") == [(None, None), ("bytes=300000-", '"1"')]
        assert not SUMS or done.stdout.split()[0] == hashlib.sha256(CONTENT).hexdigest()
    holds(directory, "a")
    assert content(directory, "a") == CONTENT


def test_a_part_of_another_user_is_not_used(directory):
    """That user could change it while it is downloaded."""
    part = os.path.join(directory, "a.part")
    with open(part, "wb") as file:
        file.write(b"foreign")
    try:
        os.chown(part, 65534, 65534)
    except OSError as error:
        raise Skip(f"chown: {error.strerror}") from None
    with Server(lambda self, path, turn: self.give(CONTENT, '"1"')) as server:
        done = fetch(directory, server.url("/a"), "--tries", "1", status=1)
    assert "a.part: not a file of its own" in done.stderr, done.stderr
    with open(part, "rb") as file:
        assert file.read() == b"foreign"
    holds(directory, "a.part")
    os.unlink(part)


def test_nothing_is_written_through_a_link(directory):
    """Another user of the directory puts links where files are created."""
    with tempfile.TemporaryDirectory() as elsewhere:
        precious = os.path.join(elsewhere, "precious")
        with open(precious, "wb") as file:
            file.write(b"precious")
        for link in (os.symlink, os.link):
            def behave(self, path, turn):
                self.cut(CONTENT, 300_000, ETag='"1"')
            with Server(behave) as server:
                origin = os.path.join(directory, "a.part.from")
                link(precious, origin)
                fetch(directory, server.url("/a"), "--tries", "1", status=1, said="the connection was closed early")
                holds(directory, "a.part", "a.part.from")
                assert not os.path.islink(origin) and os.stat(origin).st_mode & 0o7777 == 0o600
                with open(origin, encoding="ascii") as file:
                    assert file.read() == server.url("/a") + '\n"1"\n'
            for name in ("a.part", "a.part.from"):
                os.unlink(os.path.join(directory, name))
            with Server(behave) as server:
                link(precious, os.path.join(directory, "a.part"))
                done = fetch(directory, server.url("/a"), "--tries", "1", status=1)
                why = "Too many levels of symbolic links" if link is os.symlink else "not a file of its own"
                assert "a.part: " + why in done.stderr, done.stderr
                holds(directory, "a.part")
            os.unlink(os.path.join(directory, "a.part"))
        with open(precious, "rb") as file:
            assert file.read() == b"precious"


def test_resumed_when_whole(directory):
    with Server(lambda self, path, turn: self.give(CONTENT, '"1"')) as server:
        with open(os.path.join(directory, "a.part"), "wb") as part:
            part.write(CONTENT)
        with open(os.path.join(directory, "a.part.from"), "w") as origin:
            origin.write(f'{server.url("/a")}\n"1"\n')
        fetch(directory, server.url("/a"), "--resume")
        assert server.ranges("/a") == [(f"bytes={len(CONTENT)}-", '"1"')]
    holds(directory, "a")
    assert content(directory, "a") == CONTENT


def test_interrupted_and_resumed(directory):
    sent, ended = threading.Event(), threading.Event()

    def behave(self, path, turn):
        if turn > 1:
            self.give(CONTENT, '"1"')
            return
        self.cut(CONTENT, 300_000, ETag='"1"')
        self.wfile.flush()
        sent.set()
        ended.wait(PATIENCE)
    with Server(behave) as server:
        child = subprocess.Popen([PROGRAM, "-O", directory, server.url("/a")], stderr=subprocess.PIPE)
        assert sent.wait(PATIENCE)
        part = os.path.join(directory, "a.part")
        while not os.path.exists(part) or os.path.getsize(part) < 300_000:
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=PATIENCE)
        ended.set()
        assert child.returncode == 130
        holds(directory, "a.part", "a.part.from")
        fetch(directory, server.url("/a"), "--resume")
        assert server.ranges("/a")[1] == ("bytes=300000-", '"1"')
    holds(directory, "a")
    assert content(directory, "a") == CONTENT


def test_kept_connection_that_has_ended(directory):
    """A connection that the server closed while idle does not count as a try."""
    def behave(self, path, turn):
        self.give(b"small", '"1"')
        self.close_connection = True  # without announcing it
    with Server(behave) as server:
        fetch(directory, "-j", "1", "--tries", "1", *(server.url(f"/{i}") for i in range(20)))
    holds(directory, *map(str, range(20)))


def test_a_part_that_is_replaced_begins_anew(directory):
    """Between the request for the rest and its response, another process puts another file there, or removes it."""
    part = os.path.join(directory, "a.part")
    for replaces in True, False:
        def behave(self, path, turn):
            if turn == 1:
                self.cut(CONTENT, 300_000, ETag='"1"')
                return
            if turn == 2:
                os.unlink(part)
                if replaces:
                    with open(part, "wb") as file:
                        file.write(b"x" * 300_000)
            self.give(CONTENT, '"1"')
        with Server(behave) as server:
            fetch(directory, server.url("/a"), "--tries", "1", status=1, said="the connection was closed early")
            done = fetch(directory, server.url("/a"), "--resume", "--tries", "2", *SUMS)
            assert server.ranges("/a") == [(None, None), ("bytes=300000-", '"1"'), (None, None)], server.ranges("/a")
            assert not SUMS or done.stdout.split()[0] == hashlib.sha256(CONTENT).hexdigest()
        holds(directory, "a")
        assert content(directory, "a") == CONTENT
        os.unlink(os.path.join(directory, "a"))


def test_a_part_that_another_process_has_changed_is_not_removed(directory):
    """Another process goes on with the part between two requests, and has let go of it: that is its progress."""
    part = os.path.join(directory, "a.part")
    def behave(self, path, turn):
        if turn == 1:
            self.cut(CONTENT, 300_000, ETag='"1"')
            return
        with open(part, "ab") as file:
            file.write(CONTENT[300_000:350_000])
        self.give(CONTENT, '"1"')
    with Server(behave) as server:
        fetch(directory, server.url("/a"), "--tries", "1", status=1, said="the connection was closed early")
        fetch(directory, server.url("/a"), "--resume", "--tries", "1", status=1, said="another process has changed the partial file")
    holds(directory, "a.part", "a.part.from")
    assert content(directory, "a.part") == CONTENT[:350_000]


def test_a_part_with_its_old_time_begins_anew(directory):
    """The file, its size and the time of its last change are as before, but not its content."""
    part = os.path.join(directory, "a.part")
    def behave(self, path, turn):
        if turn == 1:
            self.cut(CONTENT, 300_000, ETag='"1"')
            return
        if turn == 2:
            before = os.stat(part)
            with open(part, "r+b") as file:
                file.write(b"x" * 300_000)
            os.utime(part, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.give(CONTENT, '"1"')
    with Server(behave) as server:
        fetch(directory, server.url("/a"), "--tries", "1", status=1, said="the connection was closed early")
        fetch(directory, server.url("/a"), "--resume", "--tries", "2")
    holds(directory, "a")
    assert content(directory, "a") == CONTENT


def test_part_of_another_process(directory):
    with Server(lambda self, path, turn: self.give(CONTENT, '"1"')) as server:
        with open(os.path.join(directory, "a.part"), "wb") as part:
            part.write(b"theirs")
            part.flush()
            fcntl.flock(part, fcntl.LOCK_EX)
            assert "another process" in fetch(directory, server.url("/a"), status=1).stderr
            assert content(directory, "a.part") == b"theirs"
    holds(directory, "a.part")


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))


def test_no_room(directory):
    with Server(lambda self, path, turn: self.give(CONTENT, None)) as server:
        done = fetch(directory, server.url("/a"), status=1, preexec_fn=limit_files)
    assert "a.part: File too large" in done.stderr, done.stderr
    holds(directory)


def test_calls_that_fail(directory):
    """Whichever file call fails: no incomplete file has its final name, and the reason is reported."""
    if os.environ.get("BIDE_IO") != "epoll":
        raise Skip("an io_uring's operations are no calls")
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"]).returncode != 0:
        raise Skip("strace is missing, or may not trace here")
    # (leaks are not looked for in a process that is traced)
    environment = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    calls = "ftruncate,pwrite64,fsync,rename,renameat,renameat2,unlink,unlinkat"
    with Server(lambda self, path, turn: self.give(CONTENT[:50_000], '"1"')) as server:
        for error, why in (("EIO", "Input/output error"), ("ENOSPC", "No space left on device")):
            for n in range(1, 60):
                done = subprocess.run(
                    ["strace", "-f", "--seccomp-bpf", "-qq", "-o", os.path.join(directory, "log"), "-e", f"trace={calls}",
                     "-e", f"inject={calls}:error={error}:when={n}", PROGRAM, "-O", directory, server.url("/a")],
                    timeout=PATIENCE, capture_output=True, text=True, env=environment)
                with open(os.path.join(directory, "log")) as log:
                    was_hit = "INJECTED" in log.read()
                names = os.listdir(directory)
                if "a" in names:
                    assert content(directory, "a") == CONTENT[:50_000], n
                if done.returncode == 0:
                    assert "a" in names, n
                else:
                    assert done.returncode == 1 and why in done.stderr, (n, done.returncode, done.stderr)
                for name in names:
                    os.remove(os.path.join(directory, name))
                if not was_hit:
                    break
            # (strace counts each thread's calls separately)
            assert 1 < n < 59 and done.returncode == 0, (n, done.stderr)


def test_calls_and_allocations_that_fail(directory):
    """The same for all other calls, one at a time; for the program linked with faults."""
    if not PROGRAM.endswith("_faults"):
        raise Skip("for the program that is linked with faults")
    report = os.path.join(directory, "report")
    with Server(lambda self, path, turn: self.give(CONTENT, '"1"')) as server:
        for name, error in (("malloc", 12), ("calloc", 12), ("realloc", 12), ("aligned_alloc", 12), ("mmap", 12),
                            ("pthread_create", 11), ("epoll_create1", 24), ("eventfd", 24), ("socket", 24), ("connect", 111),
                            ("epoll_ctl", 12), ("recv", 104), ("send", 104)):
            for n in range(1, 300):
                done = subprocess.run(
                    [PROGRAM, "--retry-delay", "0", "--tries", "2", "-O", directory, server.url("/a"), server.url("/b")],
                    timeout=PATIENCE, capture_output=True, text=True,
                    env=dict(os.environ, FAULTS=f"{name}:{n}:{error}", FAULTS_REPORT=report))
                with open(report) as file:
                    hits = int(file.read())
                os.remove(report)
                names = os.listdir(directory)
                for file in "a", "b":
                    assert file not in names or content(directory, file) == CONTENT, (name, n, file)
                if done.returncode == 0:
                    assert {"a", "b"} <= set(names), (name, n, names)
                else:
                    assert done.returncode == 1 and done.stderr, (name, n, done.returncode, done.stderr)
                for file in names:
                    os.remove(os.path.join(directory, file))
                if hits == 0:
                    break
            assert hits == 0 and done.returncode == 0, (name, n, done.stderr)


def test_names(directory):
    with Server(lambda self, path, turn: self.give(b"small", '"1"')) as server:
        fetch(directory, server.url("/x/a%20b"), server.url("/y/?q"))
        fetch(directory, "-o", "mine", server.url("/z"))
        seen = len(server.seen)
        for path in ["/%2e%2e", "/..%2fx", "/a%0ab", "/%00", "/..", "/."]:
            fetch(directory, server.url(path), status=2, said="a file name is needed")
        fetch(directory, server.url("/x/same"), server.url("/y/same"), status=2, said="two URLs have the same file: same")
        fetch(directory, server.url("/x/same"), server.url("/y/same.part"), status=2, said="two URLs need the file same.part")
        fetch(directory, status=2, said="expected a URL")
        fetch(directory, "--input", "-", input=f"{server.url('/a')} ../up\n", status=2, said="invalid file name: ../up")
        assert len(server.seen) == seen
    holds(directory, "a b", "index.html", "mine")


def test_proxy(directory):
    """The environment's proxy gets the requests, and what they ask for stays the same."""
    def behave(self, path, turn):
        if path.endswith("/old"):
            self.answer(302, b"there", Location="/new")
        elif path.endswith("/cut") and turn == 1:
            self.cut(CONTENT, 300_000, ETag='"1"')
        else:
            self.give(CONTENT, '"1"')
    with Server(behave) as proxy, Server(behave) as direct:
        environment = dict(os.environ, http_proxy=proxy.url(""), no_proxy="127.0.0.1")
        fetch(directory, "http://elsewhere.test/old", "http://elsewhere.test/cut", direct.url("/direct"), env=environment)
        assert sorted(seen[0] for seen in proxy.seen) == [
            "http://elsewhere.test" + path for path in ["/cut", "/cut", "/new", "/old"]]
        assert proxy.ranges("http://elsewhere.test/cut")[1] == ("bytes=300000-", '"1"')
        assert [seen[0] for seen in direct.seen] == ["/direct"]
    holds(directory, "old", "cut", "direct")
    for name in "old", "cut", "direct":
        assert content(directory, name) == CONTENT


def test_a_proxy_that_is_none(directory):
    """A variable that names no proxy concerns only the URLs that would use it."""
    with Server(lambda self, path, turn: self.give(CONTENT, '"1"')) as server:
        environment = dict(os.environ, http_proxy="socks5://proxy:1", https_proxy="http://a b", no_proxy="127.0.0.1")
        done = fetch(directory, server.url("/direct"), "http://elsewhere.test/a", env=environment, status=1)
        assert "the environment variable http_proxy is not the URL of a proxy" in done.stderr, done.stderr
        assert "https_proxy" not in done.stderr and done.stderr.count("is not the URL") == 1, done.stderr
    holds(directory, "direct")
    assert content(directory, "direct") == CONTENT


def test_urls_that_are_refused(directory):
    with Server(lambda self, path, turn: self.answer(302, b"", Location="ftp://127.0.0.1/")) as server:
        assert "user name" in fetch(directory, server.url("/").replace("//", "//user:password@"), status=2).stderr
        assert server.seen == []
        assert "something other than http" in fetch(directory, server.url("/x"), status=1).stderr
        assert len(server.seen) == 1, server.seen
        fetch(directory, "-o", "x", server.url("/".ljust(4096, "x")), status=2, said="not an http or https URL")
        longest = server.url("/")
        assert "something other than http" in fetch(directory, "-o", "x", longest.ljust(4095, "x"), "--tries", "1",
                                                     status=1).stderr
    holds(directory)


def test_a_server_that_is_silent_times_out(directory):
    ended = threading.Event()

    def behave(self, path, turn):
        if path == "/body":
            self.cut(CONTENT, 300_000, ETag='"1"')
            self.wfile.flush()
        ended.wait(PATIENCE)
    with Server(behave) as server:
        done = fetch(directory, server.url("/head"), server.url("/body"), "--tries", "1", "--timeout", "5", status=1)
        ended.set()
        assert done.stderr.count("timed out") == 2, done.stderr
    holds(directory, "body.part", "body.part.from")


def make_certificate(keys):
    """A certificate of 127.0.0.1, and the same with its key."""
    pem = os.path.join(keys, "pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", pem + ".key", "-out", pem, "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    with open(pem + ".both", "w") as both:
        for part in pem, pem + ".key":
            with open(part) as file:
                both.write(file.read())
    return pem


def test_http2(directory):
    """Over TLS, with a server that chooses HTTP/2: files of all sizes at once."""
    if not HTTPD or not shutil.which("openssl"):
        raise Skip("built without HTTP/2, or openssl is missing")
    with tempfile.TemporaryDirectory() as place:
        pem = make_certificate(place)
        files = os.path.join(place, "files")
        os.mkdir(files)
        sizes = [0, 1, 16384, 65535, 65536, 700_000, 3_000_000]
        for size in sizes:
            with open(os.path.join(files, str(size)), "wb") as file:
                file.write(random.Random(size).randbytes(size))
        httpd = subprocess.Popen([HTTPD, "--log", "-", "--tls-cert", pem + ".both", files], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, text=True)
        try:
            first = httpd.stdout.readline()
            assert first.startswith("listening "), first
            port = int(first.split()[-1])
            url = f"https://127.0.0.1:{port}/"
            fetch(directory, "--cacert", pem, "--http2", "-j", "16", *(url + str(size) for size in sizes))
            for size in sizes:
                assert content(directory, str(size)) == random.Random(size).randbytes(size), size
        finally:
            httpd.terminate()
            lines = httpd.stdout.read()
            httpd.wait()
    assert lines.count("HTTP/2") == len(sizes), lines


def test_http1_required(directory):
    """A server chooses HTTP/2 and resets each request: all files come by HTTP/1.1."""
    if not HTTPD or not shutil.which("openssl"):
        raise Skip("built without HTTP/2, or openssl is missing")
    with tempfile.TemporaryDirectory() as keys:
        pem = make_certificate(keys)
        with Server(lambda self, path, turn: self.give(body_of(path), '"1"'), pem + ".both", True) as server:
            urls = [server.url(f"/files/{i}") for i in range(40)]
            fetch(directory, "--cacert", pem, "--http2", "-j", "8", *urls)
            assert 1 <= server.required <= 8, server.required
            assert len(server.seen) == 40, server.seen
    holds(directory, *map(str, range(40)))
    for i in range(40):
        assert content(directory, str(i)) == body_of(f"/files/{i}")


def test_tls(directory):
    if not HAS_TLS or not shutil.which("openssl"):
        raise Skip("built without TLS, or openssl is missing")
    with tempfile.TemporaryDirectory() as keys:
        pem = make_certificate(keys)

        def behave(self, path, turn):
            if path == "/down":
                self.answer(302, b"", Location=plain.url("/a"))
            elif turn == 1 and path == "/cut":
                self.cut(CONTENT, 300_000, ETag='"1"')
            else:
                self.give(CONTENT, '"1"')
        with Server(behave) as plain, Server(behave, pem + ".both") as server:
            untrusted = fetch(directory, server.url("/untrusted"), status=1)
            assert "certificate" in untrusted.stderr, untrusted.stderr  # why, in words
            assert server.seen == []
            assert "https to http" in fetch(directory, "--cacert", pem, server.url("/down"), status=1).stderr
            assert plain.seen == []
            fetch(directory, "--cacert", pem, server.url("/a"), server.url("/cut"))
            assert server.ranges("/cut")[1] == ("bytes=300000-", '"1"')
            fetch(directory, "--insecure", server.url("/b"))
    holds(directory, "a", "b", "cut")
    for name in "a", "b", "cut":
        assert content(directory, name) == CONTENT


def test_headers_and_credentials(directory):
    """They are sent to the URL's server. After a redirect to another one, credentials are not."""
    seen = []

    def behave(handler, path, _turn):
        seen.append((path, handler.headers.get("Authorization"), handler.headers.get("X-Two"), handler.headers.get("User-Agent")))
        if path == "/away":
            handler.answer(302, b"", Location=other.url("/there"))
        else:
            handler.answer(200, b"x")

    basic = "Basic " + base64.b64encode(b"me:s:cret").decode()
    secret = os.path.join(directory, "secret")
    with open(secret, "w", encoding="ascii") as file:
        file.write("me:s:cret\nmore\n")
    with Server(behave) as server, Server(behave) as other:
        for option in (("--user", "me:s:cret"), ("--user-file", secret), ("--header", "authorization: " + basic)):
            fetch(directory, *option, "--header", "X-Two:  2 ", "--header", "User-Agent: mine", server.url("/away"), server.url("/here"))
            equal = sorted(seen)
            assert equal == [("/away", basic, "2", "mine"), ("/here", basic, "2", "mine"), ("/there", None, "2", "mine")], equal
            seen.clear()
        for number in range(1, 8):  # each length of base64
            fetch(directory, "--user", "a:" + "b" * number, server.url("/here"))
            assert seen.pop()[1] == "Basic " + base64.b64encode(b"a:" + b"b" * number).decode()
    for arguments, why in ((("--header", "no colon"), "not a header field"), (("--header", "A b: c"), "not a header field"),
                           (("--header", "A: b\nC: d"), "not a header field"), (("--header", "Range: bytes=0-"), "itself"),
                           (("--header", "host: a"), "itself"), (("--user", "nobody"), "NAME:PASSWORD"),
                           (("--user", "a:b", "--user-file", secret), "twice"), (("--user-file", "/nowhere"), "No such file")):
        done = fetch(directory, *arguments, "http://127.0.0.1:1/", status=2, said=why)
        assert "nobody" not in done.stderr


def test_credentials_are_hidden(directory):
    release = threading.Event()
    asked = threading.Event()

    def behave(handler, _path, _turn):
        asked.set()
        release.wait(PATIENCE)
        handler.answer(200, b"x")

    with Server(behave) as server:
        with subprocess.Popen([PROGRAM, "-O", directory, "--user", "me:secret", server.url("/a")], stderr=subprocess.DEVNULL) as process:
            assert asked.wait(PATIENCE)
            with open(f"/proc/{process.pid}/cmdline", "rb") as file:
                line = file.read()
            release.set()
            assert process.wait(PATIENCE) == 0
    assert b"secret" not in line and b"--user" in line, line


def test_finished_files_are_skipped(directory):
    def behave(handler, _path, _turn):
        handler.answer(200, b"new")

    with open(os.path.join(directory, "a"), "wb") as file:
        file.write(b"old")
    with Server(behave) as server:
        done = fetch(directory, "--skip-finished", *SUMS, server.url("/a"), server.url("/b"), said="a: there already")
        assert [path for path, *_ in server.seen] == ["/b"], server.seen
        assert (content(directory, "a"), content(directory, "b")) == (b"old", b"new")
        if SUMS:
            assert hashlib.sha256(b"old").hexdigest() + "  a" in done.stdout.splitlines(), done.stdout
            for wanted, requests in ((b"old", 1), (b"new", 2)):  # one that has another sum is not finished
                with open(os.path.join(directory, "list"), "w", encoding="ascii") as file:
                    file.write(f"{server.url('/a')} a {hashlib.sha256(wanted).hexdigest()}\n")
                fetch(directory, "--skip-finished", "--input", os.path.join(directory, "list"))
                assert (content(directory, "a"), len(server.seen)) == (wanted, requests)
            os.unlink(os.path.join(directory, "list"))
        fetch(directory, server.url("/a"))  # without the option
        assert content(directory, "a") == b"new"
    holds(directory, "a", "b")


def test_progress_fits_the_terminal(directory):
    """No line that is redrawn is wrapped: of a download with a size, of one without, and of one that waits."""
    for columns in (36, 16, 50, 80, 200):
        release = threading.Event()

        def behave(handler, path, _turn):
            if path.startswith("/known"):
                handler.cut(CONTENT, 300_000)
                handler.wfile.flush()
                release.wait(PATIENCE)
                handler.wfile.write(CONTENT[300_000:])
            else:
                if path.startswith("/waits"):
                    release.wait(PATIENCE)
                handler.answer(200, b"x")

        main_side, other_side = pty.openpty()
        fcntl.ioctl(other_side, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        with Server(behave) as server:
            names = "/known-and-a-name-that-is-longer-than-the-line", "/waits-and-a-name-that-is-longer-than-the-line"
            with subprocess.Popen([PROGRAM, "-O", directory, *map(server.url, names)], stderr=other_side) as process:
                os.close(other_side)
                text = b""
                while not (b"43%" in text and b"conn" in text and b"0 of 2" in text):
                    text += os.read(main_side, 4096)
                release.set()
                try:
                    while piece := os.read(main_side, 4096):
                        text += piece
                except OSError:  # the other side is closed
                    pass
                assert process.wait(PATIENCE) == 0
        os.close(main_side)
        drawn = [re.sub(rb"\x1b\[[0-9]*[A-Z]|\r", b"", line) for line in text.split(b"\n") if b"\x1b[K" in line]
        assert len(drawn) >= 3 and max(map(len, drawn)) < columns, (columns, drawn)
        assert (b"B/s" in b"".join(drawn)) == (columns >= 50), drawn


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_calls_and" if ONLY_CALLS else "test_")]
    print(f"1..{len(tests)}")
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as directory:
            try:
                test(directory)
                print(f"ok {number} - {name}", flush=True)
            except Skip as reason:
                print(f"ok {number} - {name} # SKIP {reason}", flush=True)
            except Exception as error:  # the other tests still run
                failed += 1
                print(f"not ok {number} - {name}: {type(error).__name__}: {str(error)[:400]!r}", flush=True)
    sys.exit(failed != 0)


main()
