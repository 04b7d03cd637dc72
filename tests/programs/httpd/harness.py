"""The common part of the tests of httpd: the server, its files and certificates, and clients.

No wait is a sleep: tests wait for a line of output, or for data. PATIENCE bounds every wait, so that a failing test
terminates.
"""

import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import programs  # noqa: E402 (in the parent directory)
from programs import PATIENCE, Failure, Lines, check, equal, held, read_all, tests_of  # noqa: E402,F401


def compresses():
    """Was httpd built with zlib?"""
    with open(Httpd.program, "rb") as file:
        return b"deflateInit2" in file.read()


def missing(*programs):
    """The reason to skip a test that needs these programs; None if all are installed."""
    lacking = [program for program in programs if not shutil.which(program)]
    return " and ".join(lacking) + " not installed" if lacking else None


class Httpd:
    """The server, with a directory of its own: `files` maps names to contents."""

    program = None
    certificates = None  # a directory shared by all tests

    def __init__(self, files=None, options=(), prefix=(), tls=False):
        self.directory = tempfile.mkdtemp(prefix="httpd-test-")
        self.root = os.path.join(self.directory, "www")
        self.log_path = os.path.join(self.directory, "log")
        os.mkdir(self.root)
        for name, data in (files or {}).items():
            self.write(name, data)
        if tls:
            options = ["--tls-cert", certificate("good"), *options]
        self.scheme = "https" if tls else "http"
        self.process = subprocess.Popen(
            [*prefix, Httpd.program, *options, self.root], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.out = Lines(self.process.stdout)
        self.err = Lines(self.process.stderr)
        self.port = int(self.out.expect(r"^listening \(\w+\) on port (\d+)$").group(1))
        self.url = f"{self.scheme}://localhost:{self.port}"

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)

    def client(self):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def curl(self, *arguments, status=0):
        """The output of curl, as bytes."""
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--max-time", str(PATIENCE), "--cacert", certificate("authority"),
             *[argument.replace("URL", self.url) for argument in arguments]],
            stdin=subprocess.DEVNULL, capture_output=True, check=False)
        equal(done.returncode, status, "curl", arguments, done.stderr)
        return done.stdout

    def signal(self, number):
        self.process.send_signal(number)

    def reload(self):
        self.signal(signal.SIGHUP)
        self.out.expect("^reloaded worker=0$")

    def statistics(self):
        self.signal(signal.SIGUSR1)
        line = self.out.expect("^statistics .*").group(0)
        return {key: int(value) for key, value in (word.split("=", 1) for word in line.split()[1:])}

    def idle(self):
        """Waits until no connection is left; returns the statistics."""
        while (statistics := self.statistics())["live"] != 0:
            pass
        return statistics

    def descriptors(self):
        """The number of its descriptors, without those that threads use to wake each other, which are opened on demand."""
        directory, count = f"/proc/{self.process.pid}/fd", 0
        for name in os.listdir(directory):
            try:
                count += os.readlink(f"{directory}/{name}") != "anon_inode:[eventfd]"
            except FileNotFoundError:
                pass  # closed meanwhile
        return count

    def wait(self):
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure("the server does not end") from None

    def stop(self):
        self.signal(signal.SIGTERM)
        status = self.wait()
        errors = self.err.rest()
        equal(status, 0, "it ends with its status,", errors)
        return self.out.rest(), errors

    def log_lines(self):
        """The whole log, after the server has exited."""
        with open(self.log_path, encoding="ascii") as file:
            return file.read().splitlines()

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
            shutil.rmtree(self.directory)


# ---- Certificates ----


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], cwd=Httpd.certificates, check=True, stdin=subprocess.DEVNULL,
                   capture_output=True)


def certificate(name):
    """The path of a certificate with its key, in PEM: "good", "other" (another serial), "wrong-name", "expired", "authority"."""
    path = os.path.join(Httpd.certificates, name + ".pem")
    if os.path.exists(path):
        return path
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key"]
    if name == "authority":
        openssl("req", "-x509", *key, "-out", path, "-days", "30", "-subj", "/CN=The authority of the test")
        return path
    authority = certificate("authority")
    host = "elsewhere.example" if name == "wrong-name" else "localhost"
    openssl("req", "-new", *key, "-out", name + ".csr", "-subj", "/CN=" + name)
    with open(os.path.join(Httpd.certificates, name + ".ext"), "w", encoding="ascii") as file:
        file.write(f"subjectAltName=DNS:{host}\n")
    # (a certificate that ends before it begins has expired)
    openssl("x509", "-req", "-in", name + ".csr", "-CA", authority, "-CAkey", "authority.key", "-CAcreateserial", "-extfile",
            name + ".ext", "-days", "-1" if name == "expired" else "30", "-out", name + ".crt")
    with open(path, "wb") as file:
        for part in (name + ".crt", name + ".key"):
            with open(os.path.join(Httpd.certificates, part), "rb") as piece:
                file.write(piece.read())
    return path


# ---- Clients ----


def speaks_http2():
    """Whether curl has HTTP/2, and httpd was built with it: then it is negotiated over TLS."""
    version = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
    if "HTTP2" not in version.split():
        return False
    context = ssl.create_default_context(cafile=certificate("authority"))
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        with Httpd(tls=True) as httpd, context.wrap_socket(httpd.client(), server_hostname="localhost") as client:
            return client.selected_alpn_protocol() == "h2"
    except Failure:  # it was built without TLS
        return False


class Response:
    """Read from a connection."""

    def __init__(self, connection, has_body=True):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = connection.recv(1)
            if not byte:
                raise EOFError(head)
            head += byte
        self.line, *lines = head.decode("latin-1").split("\r\n")[:-2]
        self.status = int(self.line.split()[1])
        self.fields = {key.lower(): value for key, value in (line.split(": ", 1) for line in lines)}
        self.length = int(self.fields.get("content-length", 0))
        self.body = read_exactly(connection, self.length) if has_body else b""


def ask(client, target="/", method="GET", *fields):
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *fields]
    client.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")


def read_exactly(connection, size):
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 16))
        if not piece:
            raise Failure(f"the end after {len(data)} of {size} bytes")
        data += piece
    return bytes(data)


def wait_until_closed(port):
    """Waits until the port is closed. Between two attempts the server is left alone until it closes the connection, or for
    a moment: a server that is kept busy never blocks, and under ThreadSanitizer it may then never handle the signal to
    stop."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as idle:
                select.select([idle], [], [], 0.1)
        except (ConnectionRefusedError, ConnectionResetError):
            return


# ---- Tests ----


def if_not_missing(test):
    def run_it():
        return missing("openssl", "curl") or test()
    run_it.__name__ = test.__name__
    return run_it


def run(tests, arguments):
    """Runs the tests named in the arguments, or all; prints TAP."""
    Httpd.program = arguments[0]
    with tempfile.TemporaryDirectory(prefix="httpd-test-") as Httpd.certificates:
        status = programs.run([if_not_missing(test) for test in tests], arguments[1:])
    sys.exit(status)
