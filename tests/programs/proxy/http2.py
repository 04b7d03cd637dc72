"""A client of HTTP/2 for the tests of the proxy, of raw frames: without Huffman codes, so it reads the commonest statuses alone."""

import shutil
import struct
import subprocess
import tempfile

from harness import PATIENCE, Proxy, equal, read_exactly
from http_messages import configuration

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
NO_ERROR, PROTOCOL_ERROR, CANCEL = 0, 1, 8
MAX_CONCURRENT_STREAMS = 3

STATUSES = {0x88: 200, 0x89: 204, 0x8a: 206, 0x8b: 304, 0x8c: 400, 0x8d: 404, 0x8e: 500}
WINDOW = 65535


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def literal(name, value):
    """A field that is in no table."""
    name, value = name.encode(), value.encode()
    assert len(name) < 127 and len(value) < 127
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


class Stream:
    def __init__(self):
        self.status = None  # of the response; 0: another than those above
        self.body = b""
        self.has_ended = False
        self.error = None  # of a RST_STREAM


class Http2:
    """Over a socket, which it leaves open. `opens_windows`: what was received makes room for more."""

    def __init__(self, socket, opens_windows=True):
        self.socket = socket
        self.opens_windows = opens_windows
        self.streams = {}
        self.settings = {}  # of the other side
        self.goaway = None  # the last stream, and the error
        self.window = {0: WINDOW}  # for bodies of requests
        socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack("!HI", 1, 0)))

    def head(self, path="/", method="GET", *fields, ends=True, protocol=None):
        """The frame of a new stream's head, and the stream's number."""
        number = 2 * len(self.streams) + 1
        self.streams[number] = Stream()
        self.window[number] = WINDOW
        named = [(":method", method), (":scheme", "http"), (":authority", "a.test"), (":path", path)]
        if protocol:
            named.append((":protocol", protocol))
        elif method == "CONNECT":
            named = [(":method", method), (":authority", "a.test:443")]
        text = b"".join(literal(name, value) for name, value in named + list(fields))
        return number, frame(HEADERS, END_HEADERS | (END_STREAM if ends else 0), number, text)

    def ask(self, *arguments, **more):
        number, text = self.head(*arguments, **more)
        self.socket.sendall(text)
        return number

    def send(self, number, data=b"", ends=False):
        """A part of a body: as much at a time as the windows let through."""
        while True:
            size = min(len(data), self.window[0], self.window[number], 16384)
            if size == len(data) or size > 0:
                self.window[0] -= size
                self.window[number] -= size
                last = size == len(data)
                self.socket.sendall(frame(DATA, END_STREAM if ends and last else 0, number, data[:size]))
                if last:
                    return
                data = data[size:]
            else:
                self.read_frame()

    def send_trailers(self, number, *fields):
        self.socket.sendall(frame(HEADERS, END_HEADERS | END_STREAM, number, b"".join(literal(*field) for field in fields)))

    def reset(self, number, error=CANCEL):
        self.socket.sendall(frame(RST_STREAM, 0, number, struct.pack("!I", error)))

    def open_window(self, number, size):
        self.socket.sendall(frame(WINDOW_UPDATE, 0, number, struct.pack("!I", size)))

    def read_frame(self):
        head = read_exactly(self.socket, 9)
        payload = read_exactly(self.socket, int.from_bytes(head[:3], "big"))
        kind, flags, number = head[3], head[4], int.from_bytes(head[5:], "big")
        stream = self.streams.get(number)
        if kind == SETTINGS and not flags & 1:
            self.settings.update(struct.iter_unpack("!HI", payload))
            self.socket.sendall(frame(SETTINGS, 1, 0))
        elif kind == GOAWAY:
            self.goaway = struct.unpack("!II", payload[:8])
        elif kind == WINDOW_UPDATE:
            self.window[number] = self.window.get(number, 0) + int.from_bytes(payload, "big")
        elif kind == HEADERS and stream.status is None:
            text = payload[1:] if 0x20 <= payload[0] < 0x40 else payload  # (behind a change of the table's size)
            stream.status = STATUSES.get(text[0], 0)
        elif kind == DATA:
            stream.body += payload
            if self.opens_windows and payload:
                self.open_window(0, len(payload))
                self.open_window(number, len(payload))
        elif kind == RST_STREAM:
            stream.error = int.from_bytes(payload, "big")
            stream.has_ended = True
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            stream.has_ended = True
        return kind

    def until(self, condition):
        """Reads until it holds. (The socket has a limit of time.)"""
        while not condition():
            self.read_frame()

    def response(self, number):
        stream = self.streams[number]
        self.until(lambda: stream.has_ended)
        return stream

    def get(self, *arguments, **more):
        return self.response(self.ask(*arguments, **more))


def without_http2():
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(configuration("127.0.0.1:1", listen="http2 on"))
        file.flush()
        done = subprocess.run([Proxy.program, "--check", file.name], capture_output=True, text=True, check=False)
    if "without HTTP/2" in done.stderr:
        return "the proxy was built without HTTP/2"
    equal((done.returncode, done.stderr), (0, ""))
    return None


def curl(*arguments):
    """The head and the body of each response."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(["curl", "-sS", "--max-time", str(PATIENCE), "-D", f"{directory}/head", "-o", f"{directory}/body", *arguments],
                              capture_output=True, text=True, check=False)
        equal(done.returncode, 0, done.stderr)
        with open(f"{directory}/head", encoding="latin-1") as head, open(f"{directory}/body", "rb") as body:
            return head.read().replace("\r", ""), body.read()


def without_curl():
    if not shutil.which("curl"):
        return "curl is not installed"
    version = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
    return None if "HTTP2" in version.split() else "curl has no HTTP/2"
