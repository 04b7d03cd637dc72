"""The server under test, and a client of its own, for kv_test.py and kv_files_test.py."""
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from programs import held, without_notes  # noqa: E402,F401 (in the parent directory)

PATIENCE = 60  # seconds


class Error(str):
    """A reply that is an error."""


class Push(list):
    """A message that is no reply."""


def encoded(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        if isinstance(word, int):
            word = str(word)
        if isinstance(word, str):
            word = word.encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Client:
    def __init__(self, port, address="127.0.0.1", path=None, context=None):
        """With `context`, an ssl.SSLContext, a client over TLS."""
        if path is not None:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE)
            self.socket.connect(path)
        else:
            self.socket = socket.create_connection((address, port), timeout=PATIENCE)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost", suppress_ragged_eofs=False)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def read(self):
        line = self.file.readline()
        if not line:
            raise EOFError
        kind, rest = line[:1], line[1:-2]
        assert line[-2:] == b"\r\n", line
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind in b"$=":
            size = int(rest)
            if size < 0:
                return None
            data = self.file.read(size + 2)
            if len(data) < size + 2:
                raise EOFError
            return data[:-2] if kind == b"$" else data[4:-2]
        if kind == b"_":
            return None
        if kind == b"%":
            return {key: self.read() for key in (self.read() for _ in range(int(rest)))}
        if kind == b">":
            return Push(self.read() for _ in range(int(rest)))
        assert kind in b"*~", line
        return [self.read() for _ in range(int(rest))] if int(rest) >= 0 else None

    def call(self, *words):
        self.send(encoded(*words))
        return self.read()

    def is_at_end(self):
        """Waits for input; returns True at end of file."""
        try:
            return self.file.read(1) == b""
        except ConnectionError:
            return True

    def vanish(self):
        """Resets the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()


def rounds_of(usual):
    """BIDE_ROUNDS times as many, a number or a share (tests/testing.h); at least one."""
    times, _, share = os.environ.get("BIDE_ROUNDS", "1").partition("/")
    return max(1, usual * int(times) // int(share or 1))


class Left(int):
    """The rest of this many seconds when it is read a moment later."""


def expect(client, *table):
    for words, wanted in table:
        got = client.call(*words.split())
        if isinstance(wanted, Left):
            assert wanted - 90 <= got <= wanted, (words, got)
        else:
            assert got == wanted and isinstance(got, Error) == isinstance(wanted, Error), (words, got)


class Server:
    """Starts the server; `io` is the back end. On leaving `with`, SIGTERM stops it, and its stderr must be empty."""

    program = None
    io = None

    def __init__(self, *options, before=(), first=None, says=False, environment=None):
        self.says = says
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*before, self.program, "--port", "0", *map(str, options)], stdout=subprocess.PIPE,
            stderr=self.errors, env=dict(os.environ, BIDE_IO=self.io, **(environment or {})), preexec_fn=first)
        line = self.process.stdout.readline().decode()
        self.port = int(line.split()[-1]) if line else None
        self.back_end = line.split()[1].strip("(,)") if line else None

    def client(self):
        return Client(self.port)

    def info(self, client=None):
        text = (client or self.client()).call("INFO").decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def said(self):
        self.errors.seek(0)
        return without_notes(self.errors.read().decode())

    def wait(self):
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return status

    def end(self, how=signal.SIGTERM):
        """Returns its exit status."""
        self.process.send_signal(how)
        return self.wait()

    def __enter__(self):
        assert self.port is not None, self.said()
        return self

    def __exit__(self, kind, value, trace):
        status = self.end() if self.process.returncode is None else self.process.returncode
        if kind is None:
            assert status == 0, (status, self.said())
            assert self.says or self.said() == "", self.said()
        elif self.said():
            print(self.said())


def run_rejected(*arguments):
    """Runs the program until it exits; returns its status and its stderr."""
    done = subprocess.run([Server.program, *map(str, arguments)], capture_output=True, timeout=PATIENCE)
    return done.returncode, without_notes(done.stderr.decode())


def until(condition):
    """Fails if the condition does not hold within four times the usual patience."""
    deadline = time.monotonic() + 4 * PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not hold within {4 * PATIENCE} seconds"


def run(tests):
    """kv_test.py PROGRAM [NAME...]: runs the tests over both back ends; the last line counts them."""
    Server.program = sys.argv[1]
    seed = int(os.environ.get("BIDE_SEED", random.randrange(1 << 32)))
    print("seed", seed)
    # (a server would inherit its limits)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    failed = count = 0
    # (on the first alone where rounds are few, which is under the sanitizers of make check)
    for Server.io in ("epoll", "uring") if rounds_of(16) > 1 else ("epoll",):
        for test in tests:
            if sys.argv[2:] and test.__name__ not in sys.argv[2:]:
                continue
            random.seed(seed)
            count += 1
            try:
                test()
                print("ok", Server.io, test.__name__, flush=True)
            except Exception:  # each is reported, and the other tests continue
                traceback.print_exc(file=sys.stdout)
                print("FAILED", Server.io, test.__name__, flush=True)
                failed += 1
    print(f"{count} tests, {failed} failed")
    sys.exit(failed > 0)
