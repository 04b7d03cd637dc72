"""Tests how clients get in, and RESP3: kv_access_test.py PROGRAM [NAME...]. Passwords, protected mode, HELLO."""
import os
import shutil
import signal
import socket
import stat
import tempfile

from client import PATIENCE, Client, Error, Push, Server, encoded, expect, run, run_rejected, until

NOAUTH = Error("NOAUTH Authentication required.")
WRONGPASS = Error("WRONGPASS invalid username-password pair or user is disabled.")


def with_password(body, text=b"secret word\nnot this\n"):
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    path = os.path.join(directory, "password")
    try:
        with open(path, "wb") as file:
            file.write(text)
        return body(path)
    finally:
        shutil.rmtree(directory)


def test_a_password_is_asked_for():
    def body(path):
        with Server("--password-file", path) as server:
            client = server.client()
            for words in (("GET", "a"), ("PING",), ("MULTI",), ("INFO",), ("SHUTDOWN",), ("SUBSCRIBE", "c"), ("AUTHS",)):
                assert client.call(*words) in (NOAUTH, Error("ERR unknown command 'AUTHS'")), words
            for wrong in ("", "secret", "secret word ", "secret words", "Secret word", "secret word\n", "x" * 10000):
                assert client.call("AUTH", wrong) == WRONGPASS, wrong
                assert client.call("GET", "a") == NOAUTH
            assert client.call("AUTH", "other", "secret word") == WRONGPASS
            assert client.call("HELLO", "3").startswith("NOAUTH HELLO must be called")
            assert client.call("HELLO", "3", "AUTH", "default", "wrong") == WRONGPASS
            assert client.call("HELLO", "3", "AUTH", "default", "secret word", "X").startswith("ERR Syntax error in HELLO")
            assert client.call("GET", "a") == NOAUTH # nothing of it counts
            assert client.call("AUTH", "a", "b", "c") == Error("ERR wrong number of arguments for 'AUTH' command")
            assert client.call("PING") == NOAUTH
            assert client.call("AUTH", "secret word") == "OK"
            assert client.call("SET", "a", "1") == "OK"
            assert client.call("AUTH", "wrong") == WRONGPASS and client.call("GET", "a") == b"1" # as with redis
            assert client.call("RESET") == "RESET" and client.call("GET", "a") == NOAUTH
            assert client.call("AUTH", "default", "secret word") == "OK" and client.call("GET", "a") == b"1"
            other = server.client()
            assert other.call("HELLO", "3", "AUTH", "default", "secret word", "SETNAME", "me")[b"proto"] == 3
            assert other.call("CLIENT", "GETNAME") == b"me"
            assert server.client().call("QUIT") == "OK"

    with_password(body)


def test_a_client_without_the_password_cannot_send_much():
    def body(path):
        with Server("--password-file", path) as server:
            for data in (encoded("SET", "a", b"x" * 16385), encoded(*["PING"] * 11), b"*1000000\r\n", b"*1\r\n$100000000\r\n",
                         encoded(*[b"x" * 16384] * 5)):
                client = server.client()
                client.send(data)
                got = client.read()
                assert isinstance(got, Error) and got.startswith("ERR Protocol error: "), (data[:20], got)
                assert client.is_at_end()
            client = server.client()
            assert client.call("AUTH", "x" * 16384) == WRONGPASS and client.call("AUTH", "secret word") == "OK"
            assert client.call("MSET", *[b"x" * 20000] * 20) == "OK"

    with_password(body)


def test_a_password_is_the_first_line_of_a_file():
    for text in (b"", b"\n", b"a\0b\n"):
        status, said = with_password(lambda path: run_rejected("--password-file", path), text)
        assert status == 1 and "its first line is no password" in said, said
    status, said = run_rejected("--password-file", "/nowhere/file")
    assert (status, said) == (1, "kv: /nowhere/file: No such file or directory\n")
    status, said = run_rejected("--protected-mode", "maybe")
    assert status == 2 and "--protected-mode takes yes or no, not maybe" in said

    def body(path):
        with Server("--password-file", path) as server:
            assert server.client().call("AUTH", "no newline") == "OK"

    with_password(body, b"no newline")
    with Server() as server:
        expect(
            server.client(),
            ("AUTH x", Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")),
            ("AUTH default x", "OK"),
            ("AUTH someone x", WRONGPASS),
        )


def own_address():
    """An address of this machine other than 127.0.0.1, or None. (Nothing is sent.)"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
            address = one.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith(("127.", "0.")) else address


def test_without_a_password_only_this_machine_is_served():
    address = own_address()
    if address is None:
        print("# there is no address but the loopback's")
        return

    def connect(server):
        client = Client(server.port, address)
        client.send(encoded("PING"))
        return client

    with Server("--bind", "0.0.0.0") as server:
        client = connect(server)
        assert client.read().startswith("DENIED ") and client.is_at_end()
        assert server.client().call("PING") == "PONG"
    with Server("--bind", "0.0.0.0", "--protected-mode", "no") as server:
        assert connect(server).read() == "PONG"

    def body(path):
        with Server("--bind", "0.0.0.0", "--password-file", path) as server:
            assert connect(server).read() == NOAUTH

    with_password(body)


def test_the_loopback_of_version_6_is_served():
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        print("# there is no IPv6")
        return
    with Server("--bind", "::") as server:
        assert Client(server.port, "::1").call("PING") == "PONG"
        assert Client(server.port, "127.0.0.1").call("PING") == "PONG"


# ---- RESP3 ----


def raw(client, *words):
    """The reply's bytes, up to that of a following PING."""
    client.send(encoded(*words) + encoded("ECHO", "the-end"))
    data = b""
    while not data.endswith(b"$7\r\nthe-end\r\n"):
        data += client.file.read(1)
    return data[: -len(b"$7\r\nthe-end\r\n")]


def in_directory(body):
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    try:
        return body(directory)
    finally:
        shutil.rmtree(directory)


def test_clients_of_a_unix_socket():
    def body(directory):
        path = directory + "/socket"
        with Server("--unix-socket", path) as server:
            assert stat.S_ISSOCK(os.lstat(path).st_mode) and os.lstat(path).st_mode & 0o777 == 0o600
            client, other = Client(None, path=path), server.client()
            assert client.call("SET", "a", "1") == "OK" and other.call("GET", "a") == b"1"
            assert f"addr={path}:0 laddr={path}:0 " in client.call("CLIENT", "INFO").decode()
            assert server.info(other)["connected_clients"] == "2"
            expect(client, ("CONFIG GET unixsocket*", [b"unixsocket", path.encode(), b"unixsocketperm", b"600"]),
                   ("CONFIG SET unixsocket x", Error("ERR CONFIG SET failed (possibly related to argument 'unixsocket') - can't set immutable config")))
            # (a waiting client of one is served by a client of the other)
            client.send(encoded("BLPOP", "l", 0))
            until(lambda: server.info(other)["blocked_clients"] == "1")
            assert other.call("RPUSH", "l", "x") == 1 and client.read() == [b"l", b"x"]
            assert other.call("CLIENT", "KILL", f"{path}:0") == "OK" and client.is_at_end()
            client = Client(None, path=path)
            assert client.call("PING") == "PONG"
            assert server.end() == 0
            assert client.is_at_end() and not os.path.lexists(path)
        # (the file's mode; protected mode serves these clients on any address; a password is asked for)
        with Server("--unix-socket", path, "--unix-socket-mode", "0777", "--bind", "0.0.0.0"):
            assert os.lstat(path).st_mode & 0o777 == 0o777 and Client(None, path=path).call("PING") == "PONG"

        def asks(password):
            with Server("--unix-socket", path, "--password-file", password):
                assert Client(None, path=path).call("PING") == NOAUTH

        with_password(asks)

    in_directory(body)


def test_only_a_leftover_is_replaced_by_the_unix_socket():
    def body(directory):
        path = directory + "/socket"

        def is_refused(reason):
            before = os.lstat(path)
            status, said = run_rejected("--unix-socket", path)
            after = os.lstat(path)
            assert (status, said) == (1, f"kv: {path}: {reason}\n"), (status, said)
            assert (before.st_ino, before.st_mode, before.st_mtime_ns) == (after.st_ino, after.st_mode, after.st_mtime_ns)

        # a killed server's
        server = Server("--unix-socket", path)
        server.end(signal.SIGKILL)
        assert os.path.lexists(path)
        with Server("--unix-socket", path) as server:
            assert Client(None, path=path).call("PING") == "PONG"
            is_refused("Address already in use")
            assert Client(None, path=path).call("PING") == "PONG"
            # what has replaced it stays when the server ends
            os.unlink(path)
            with open(path, "w") as file:
                file.write("text")
        with open(path) as file:
            assert file.read() == "text"
        is_refused("File exists")
        os.unlink(path)
        os.mkdir(path)
        is_refused("File exists")
        os.rmdir(path)
        os.symlink(directory + "/other", path)
        is_refused("File exists")
        assert not os.path.lexists(directory + "/other")
        os.unlink(path)
        for wrong, reason in ((directory + "/none/socket", "No such file or directory"), (directory + "/" + "x" * 108, "File name too long")):
            status, said = run_rejected("--unix-socket", wrong, "--confine", "off")
            assert (status, said) == (1, f"kv: {wrong}: {reason}\n"), (status, said)
        for wrong in ("", "8", "1000", "-1", "0x1", "6 "):
            status, said = run_rejected("--unix-socket", path, "--unix-socket-mode", wrong)
            assert status == 2 and said.startswith(f"kv: --unix-socket-mode takes octal digits up to 777, not {wrong}".rstrip()), said
        assert os.listdir(directory) == []

    in_directory(body)


def test_types_of_version_3():
    with Server() as server:
        client = server.client()
        assert raw(client, "HELLO", "3").startswith(b"%7\r\n$6\r\nserver\r\n$2\r\nkv\r\n")
        for words, wanted in (
            (("GET", "none"), b"_\r\n"), (("MGET", "none", "none"), b"*2\r\n_\r\n_\r\n"), (("GETDEL", "none"), b"_\r\n"),
            (("CONFIG", "GET", "save"), b"%1\r\n$4\r\nsave\r\n$0\r\n\r\n"), (("CONFIG", "GET", "none"), b"%0\r\n"),
            (("SET", "a", "1"), b"+OK\r\n"), (("GET", "a"), b"$1\r\n1\r\n"), (("INCR", "a"), b":2\r\n"),
            (("COMMAND", "DOCS"), b"%0\r\n"), (("CLIENT", "GETNAME"), b"_\r\n"), (("KEYS", "*"), b"*1\r\n$1\r\na\r\n"),
            (("HELLO", "4"), b"-NOPROTO unsupported protocol version\r\n"),
        ):
            assert raw(client, *words) == wanted, words
        text = raw(client, "INFO")
        size = int(text[1:].split(b"\r\n")[0])
        assert text.startswith(b"=") and text.split(b"\r\n", 1)[1].startswith(b"txt:# Server") and text.endswith(b"\r\n")
        assert len(text.split(b"\r\n", 1)[1]) == size + 2
        client.call("WATCH", "a")
        client.call("SET", "a", "1")
        client.call("MULTI")
        assert raw(client, "EXEC") == b"_\r\n"
        assert client.call("HELLO")[b"proto"] == 3
        assert client.call("HELLO", "2")[:6] == [b"server", b"kv", b"version", client.call("HELLO")[3], b"proto", 2]
        assert raw(client, "GET", "none") == b"$-1\r\n"


def test_messages_are_pushed_between_replies():
    with Server() as server:
        client, other = server.client(), server.client()
        client.call("HELLO", "3")
        got = client.call("SUBSCRIBE", "c", "d")
        assert isinstance(got, Push) and got == [b"subscribe", b"c", 1] and client.read() == [b"subscribe", b"d", 2]
        assert client.call("SET", "a", "1") == "OK" and client.call("GET", "a") == b"1" and client.call("PING") == "PONG"
        assert other.call("PUBLISH", "c", "x") == 1
        got = client.read()
        assert isinstance(got, Push) and got == [b"message", b"c", b"x"]
        got = client.call("PSUBSCRIBE", "?")
        assert isinstance(got, Push) and got == [b"psubscribe", b"?", 3]
        # its own transaction's messages do not come into the middle of its replies
        client.send(encoded("MULTI") + encoded("PUBLISH", "d", "1") + encoded("INCR", "a") + encoded("EXEC") + encoded("PING"))
        assert [client.read() for _ in range(4)] == ["OK", "QUEUED", "QUEUED", [2, 2]]
        assert [client.read() for _ in range(3)] == [[b"message", b"d", b"1"], [b"pmessage", b"?", b"d", b"1"], "PONG"]
        assert client.call("UNSUBSCRIBE", "c") == [b"unsubscribe", b"c", 2]
        assert client.call("HELLO", "2")[5] == 2 and isinstance(client.call("GET", "a"), Error)
        assert client.call("RESET") == "RESET" and client.call("GET", "a") == b"2"
        assert other.call("PUBLISH", "d", "x") == 0


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
