"""Tests clients that vanish, shortage of descriptors, shutdown and options of the key-value server:
kv_clients_test.py PROGRAM [NAME...]."""
import random

from client import Error, Server, encoded, run_rejected, run, until


def test_clients_that_vanish():
    with Server() as server:
        stays = server.client()
        stays.call("SET", "large", b"x" * 1000000)
        for i in range(60):
            client = server.client()
            if i % 6 == 0:
                client.send(encoded("SET", "a", "b")[: random.randrange(1, 25)])
            elif i % 6 == 1:
                client.send(encoded("GET", "large") * 30)
            elif i % 6 == 2:
                client.call("SUBSCRIBE", "c")
            elif i % 6 == 3:
                client.call("PSUBSCRIBE", "*")
                client.send(encoded("PSUBSCRIBE", *range(100)))
            elif i % 6 == 4:
                client.send(b"*1000\r\n" + b"$1\r\nx\r\n" * 500)
            if i % 2:
                client.vanish()
            else:
                client.close()
            stays.call("PUBLISH", "c", "x" * 1000)
        until(lambda: server.info(stays)["connected_clients"] == "1")
        until(lambda: stays.call("PUBSUB", "NUMPAT") == 0)
        assert stays.call("GET", "large") == b"x" * 1000000


def has_room_again(server):
    """True if a new client is served. Until the server has seen that the other clients are gone, it rejects new ones."""
    try:
        client = server.client()
        served = b"connected_clients:1\r" in client.call("INFO", "clients")
        client.close()
        return served
    except (OSError, EOFError):
        return False


def test_no_descriptors_left():
    with Server(before=["prlimit", "--nofile=64"]) as server:
        clients = []
        for _ in range(200):
            try:
                clients.append(server.client())
                clients[-1].send(encoded("PING"))
            except OSError:
                pass
        answered = 0
        for client in clients[:30]:
            assert client.read() == "PONG"
            answered += 1
        assert answered == 30
        for client in clients:
            client.close()
        while not has_room_again(server):
            pass
        for _ in range(100):
            client = server.client()
            assert client.call("PING") == "PONG"
            client.close()


def test_sigterm_answers_what_has_come():
    with Server() as server:
        clients = [server.client() for _ in range(10)]
        for client in clients:
            client.send(b"".join(encoded("INCR", "n") for _ in range(3000)))
        idle, subscriber = server.client(), server.client()
        assert idle.call("PING") == "PONG"
        subscriber.call("SUBSCRIBE", "c")
        assert server.end() == 0
        assert idle.is_at_end() and subscriber.is_at_end()
        got = sorted(client.read() for client in clients for _ in range(3000))
        assert got == list(range(1, 30001))
        assert all(client.is_at_end() for client in clients)


def test_shutdown_by_a_client():
    with Server() as server:
        client = server.client()
        assert isinstance(client.call("SHUTDOWN", "WHAT"), Error)
        client.send(encoded("SHUTDOWN"))
        assert client.is_at_end()
        assert server.wait() == 0


def test_what_it_says_of_its_options():
    for arguments, status, text in (
        (["--what", 1], 2, "unknown option --what"),
        (["--port"], 2, "unknown option, or one without a value: --port"),
        (["--port", "x"], 2, "--port takes a number from 0 to 65535, not 'x'"),
        (["--fsync", "often"], 2, "--fsync takes always, everysec or no, not often"),
        (["file"], 2, "unexpected argument file"),
        (["--bind", "nowhere"], 1, "nowhere port 0: Invalid argument"),
        (["--append-only", "/nowhere/file"], 1, "/nowhere/file: No such file or directory"),
    ):
        got = run_rejected(*arguments)
        assert got[0] == status and text in got[1], got
    with Server() as server:
        got = run_rejected("--port", server.port)
        assert got == (1, f"kv: 127.0.0.1 port {server.port}: Address already in use\n"), got


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
