"""The common part of the tests of the proxy: the proxy, servers behind it, and clients.

No wait is a sleep: tests wait for a line of output, or for data. PATIENCE bounds every wait, so that a failing test
terminates.
"""

import hashlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import programs  # noqa: E402 (in the parent directory)
from programs import PATIENCE, Beside, Failure, Lines, check, equal, read_all, tests_of  # noqa: E402,F401


class NotBegun(Failure):
    """The proxy exited before it listened, with this status, after these lines."""

    def __init__(self, status, errors):
        super().__init__(f"it did not begin: {status}, {errors}")
        self.status, self.errors = status, errors


class Proxy:
    program = None

    def __init__(self, configuration=None, options=(), prefix=(), environment=None, listeners=1):
        self.path = None
        arguments = list(options)
        if configuration is not None:
            handle, self.path = tempfile.mkstemp(prefix="proxy-test-")
            os.close(handle)
            self.configure(configuration)
            arguments.append(self.path)
        self.process = subprocess.Popen(
            [*prefix, Proxy.program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        self.out = Lines(self.process.stdout)
        self.err = Lines(self.process.stderr)
        if listeners:
            self.begin(listeners)

    def begin(self, listeners=1):
        """Waits until it listens. The constructor does this, unless it is told of no listeners."""
        try:
            self.ports = [int(self.out.expect(r"^listening .* port (\d+)$").group(1)) for _ in range(listeners)]
        except Failure:
            self.give_up()
        self.port = self.ports[0]

    def give_up(self):
        try:
            self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if self.path:
            os.unlink(self.path)
        raise NotBegun(self.process.wait(), self.err.rest()) from None

    def configure(self, configuration):
        with open(self.path, "w", encoding="ascii") as file:
            file.write(configuration)

    def client(self, port=None):
        client = socket.create_connection(("127.0.0.1", port or self.port), timeout=PATIENCE)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def signal(self, number):
        self.process.send_signal(number)

    def statistics(self):
        self.signal(signal.SIGUSR1)
        line = self.out.expect("^statistics .*").group(0)
        return dict(word.split("=", 1) for word in line.split()[1:])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def idle(self, accepted=0):
        """Waits until this many connections have been accepted and all are closed; returns the proxy's descriptors."""
        while (statistics := self.statistics())["live"] != "0" or int(statistics["connections"]) < accepted:
            pass
        return self.descriptors()

    def wait(self):
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure("the proxy does not end") from None

    def kill(self):
        self.process.kill()
        self.wait()
        self.__exit__(None, None, None)

    def stop(self):
        self.signal(signal.SIGTERM)
        status = self.wait()
        errors = self.err.rest()
        equal(status, 0, "it ends with its status,", errors)
        return self.out.rest(), errors

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if self.process.poll() is None and kind is None:
                self.stop()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            if kind is not None:
                sys.stderr.write(f"out: {self.out.seen}\nerr: {self.err.rest()}\n")
            if self.path:
                os.unlink(self.path)


class Server:
    """A server behind the proxy: it listens, and hands its connections over one by one, or serves each in a thread."""

    def __init__(self, serve=None, port=0, backlog=128):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", port))
        self.socket.listen(backlog)
        self.socket.settimeout(PATIENCE)
        self.port = self.socket.getsockname()[1]
        self.name = f"127.0.0.1:{self.port}"
        self.served = 0
        self.error = None
        if serve:
            self.socket.settimeout(None)
            self.thread = threading.Thread(target=self.run, args=(serve,), daemon=True)
            self.thread.start()

    def accept(self):
        connection, _ = self.socket.accept()
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def fill(self):
        """Connects until the server's queue is full, so that new connections wait; returns the sockets in the queue."""
        filler = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        check(select.select([self.socket], [], [], PATIENCE)[0], "the queue is not full")
        return filler

    def run(self, serve):
        while True:
            try:
                connection = self.accept()
            except OSError:
                return
            self.served += 1
            threading.Thread(target=self.serve_one, args=(serve, connection), daemon=True).start()

    def serve_one(self, serve, connection):
        with connection:
            try:
                serve(connection)
            except OSError as error:
                self.error = error

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


ports_kept = []


def free_port():
    """A port without a listener, except a Server of this test: it is reserved, so that no other process gets it."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    ports_kept.append(one)
    return one.getsockname()[1]


def read_exactly(connection, size):
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise Failure(f"the end after {len(data)} of {size} bytes: {bytes(data)!r}")
        data += piece
    return bytes(data)


def is_reset(connection):
    """Reads until the end; returns True if that was a reset."""
    try:
        read_all(connection)
    except (ConnectionResetError, BrokenPipeError):
        return True
    return False


def reset(connection):
    """Closes the socket with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def echo(connection):
    while piece := connection.recv(65536):
        connection.sendall(piece)


def greeter(name):
    """Sends each connection the server's name, and closes it."""

    def serve(connection):
        connection.sendall(name.encode())

    return serve


def send_random(connection, size, seed):
    """Sends that many bytes, ends its output, and returns their checksum."""
    block = hashlib.sha256(str(seed).encode()).digest() * 2048
    digest = hashlib.sha256()
    for begin in range(0, size, len(block)):
        piece = begin.to_bytes(8, "big") + block[8:]
        piece = piece[: size - begin]
        digest.update(piece)
        connection.sendall(piece)
    connection.shutdown(socket.SHUT_WR)
    return digest.hexdigest()


def receive_digest(connection):
    digest, size = hashlib.sha256(), 0
    while piece := connection.recv(1 << 18):
        digest.update(piece)
        size += len(piece)
    return size, digest.hexdigest()


def tcp_configuration(*servers, listen="", backend="", head=""):
    lines = "".join(f"server {server}\n" for server in servers)
    return f"{head}\nlisten 127.0.0.1:0\nto web\n{listen}\nbackend web\n{backend}\n{lines}"


def wait_until_closed(port, host="127.0.0.1"):
    """Waits until the port is closed."""
    while True:
        try:
            socket.create_connection((host, port), timeout=PATIENCE).close()
        except (ConnectionRefusedError, ConnectionResetError):
            return


def baseline_of(proxy, server=None):
    """The number of descriptors after the first served client."""
    with proxy.client():
        if server:
            server.accept().close()
    return proxy.idle(accepted=1)


class FirstOnly:
    """Echoes on the first connection, and closes the others."""

    def __init__(self):
        self.taken = False

    def __call__(self, connection):
        if not self.taken:
            self.taken = True
            echo(connection)


def run(tests, arguments):
    """Runs the tests named in the arguments, or all; prints TAP."""
    Proxy.program = arguments[0]
    status = programs.run(tests, arguments[1:])
    # (Python may crash if threads of servers, which may still wait, run while it frees what they use.)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
