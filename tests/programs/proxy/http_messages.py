"""HTTP for the tests of the proxy: configurations, messages, servers and requests."""

from harness import check, equal, read_exactly


def configuration(*servers, listen="", backend="", head=""):
    lines = "".join(f"server {server}\n" for server in servers)
    return f"{head}\nlisten 127.0.0.1:0\nmode http\nto web\n{listen}\nbackend web\n{backend}\n{lines}"


class Message:
    """A request or a response, read from a connection."""

    def __init__(self, connection, has_body=True):
        self.rest = b""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = connection.recv(1)
            if not byte:
                raise EOFError(head)
            head += byte
        self.line, *lines = head.decode("latin-1").split("\r\n")[:-2]
        self.fields = [tuple(line.split(": ", 1)) for line in lines]
        self.connection = connection
        self.body = self.read_body() if has_body else b""

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        check(len(values) <= 1, name, "is there more than once:", values)
        return values[0] if values else None

    def read_line(self):
        line = b""
        while not line.endswith(b"\r\n"):
            line += read_exactly(self.connection, 1)
        return line[:-2]

    def read_body(self):
        if self.get("Transfer-Encoding") == "chunked":
            body = bytearray()
            while (size := int(self.read_line().split(b";")[0], 16)) != 0:
                body += read_exactly(self.connection, size)
                equal(read_exactly(self.connection, 2), b"\r\n")
            while self.read_line():
                pass
            return bytes(body)
        length = self.get("Content-Length")
        return read_exactly(self.connection, int(length)) if length else b""


def respond(connection, status="200 OK", body=b"", *fields):
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}"]
    connection.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)


def web(answer):
    """Serves requests in sequence: answer(message, connection) sends the response."""

    def serve(connection):
        while True:
            try:
                message = Message(connection)
            except EOFError:
                return
            if answer(message, connection) is False:
                return

    return serve


def named(name):
    return web(lambda message, connection: respond(connection, body=name.encode()))


def ask(client, target="/", method="GET", *fields, body=None, host="example.org", version="1.1"):
    lines = [f"{method} {target} HTTP/{version}"] + ([f"Host: {host}"] if host else []) + list(fields)
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    client.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""))


def get(client, *arguments, **more):
    ask(client, *arguments, **more)
    return Message(client, has_body=not (len(arguments) > 1 and arguments[1] == "HEAD"))


def status_of(message):
    return int(message.line.split()[1])
