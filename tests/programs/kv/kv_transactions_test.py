"""Tests transactions of the key-value server: kv_transactions_test.py PROGRAM [NAME...]. MULTI, EXEC, DISCARD, WATCH."""
import os
import random
import resource
import shutil
import signal
import tempfile
import threading

from client import Error, Server, encoded, expect, held, rounds_of, run, until

ABORTED = Error("EXECABORT Transaction discarded because of previous errors.")


def transaction(client, *requests):
    """Runs the requests in a transaction; returns the reply of EXEC."""
    assert client.call("MULTI") == "OK"
    for words in requests:
        assert client.call(*words.split()) == "QUEUED", words
    return client.call("EXEC")


def test_requests_are_queued_and_run_together():
    with Server() as server:
        client, other = server.client(), server.client()
        expect(
            client,
            ("EXEC", Error("ERR EXEC without MULTI")),
            ("DISCARD", Error("ERR DISCARD without MULTI")),
            ("MULTI", "OK"),
            ("MULTI", Error("ERR MULTI calls can not be nested")),
            ("WATCH a", Error("ERR WATCH inside MULTI is not allowed")),
            ("SET a 1", "QUEUED"),
            ("INCR a", "QUEUED"),
            ("INCR b x", Error("ERR wrong number of arguments for 'INCR' command")),
            ("EXEC", ABORTED),
            ("EXISTS a", 0),
            ("MULTI", "OK"),
            ("WHAT", Error("ERR unknown command 'WHAT'")),
            ("SET a 1", "QUEUED"),
            ("EXEC", ABORTED),
            ("MULTI", "OK"),
            ("SUBSCRIBE c", Error("ERR Command not allowed inside a transaction")),
            ("EXEC", ABORTED),
            ("MULTI", "OK"),
            ("EXEC", []),
            ("MULTI", "OK"),
            ("SET a 1", "QUEUED"),
            ("DISCARD", "OK"),
            ("EXISTS a", 0),
            ("DISCARD", Error("ERR DISCARD without MULTI")),
        )
        wrong = Error("ERR value is not an integer or out of range")
        assert transaction(client, "SET a x", "INCR a", "MGET a b", "PING", "UNWATCH", "MSET b 1 c 2 d 3 e 4 f 5 g 6", "GET g") == [
            "OK", wrong, [b"x", None], "PONG", "OK", "OK", b"6"]
        assert other.call("GET", "c") == b"2"
        # inline requests are queued by their words
        client.send(b"MULTI\r\nset 'a b' \"c\\x00 d\"\r\nGET 'a b'\r\nEXEC\r\n")
        assert [client.read() for _ in range(4)] == ["OK", "QUEUED", "QUEUED", ["OK", b"c\0 d"]]
        client.send(encoded("MULTI") + encoded("SET", "x", "1") + encoded("QUIT"))
        assert [client.read() for _ in range(3)] == ["OK", "QUEUED", "OK"]
        assert client.is_at_end() and other.call("EXISTS", "x") == 0


def test_watched_keys():
    """EXEC runs nothing if a watched key has changed, by any client and in any way."""
    with Server() as server:
        client, other = server.client(), server.client()

        def outcome(changes, before=(), by=None):
            other.call("FLUSHALL")
            other.call("MSET", "a", "1", "b", "1")
            for words in before:
                client.call(*words.split())
            assert client.call("WATCH", "a", "none") == "OK"
            for words in changes:
                (by or other).call(*words.split())
            done = transaction(client, "PING")
            assert done in (None, ["PONG"]), (changes, done)
            return done is not None

        for change in ("SET a 1", "DEL a", "APPEND a x", "INCR a", "EXPIRE a 100", "EXPIRE a -1", "FLUSHALL", "SET none 1", "MSET b 1 a 1",
                       "GETDEL a", "GETSET a 1"):
            assert not outcome([change]) and not outcome([change], by=client), change
        for change in ("SET b 1", "GET a", "DEL other", "DEL none", "TTL a", "SET a 2 NX", "PERSIST a", "EXPIRE none 100"):
            assert outcome([change]), change
        assert not outcome(["DEL a", "SET a 1"]) and outcome(["SET a 1", "UNWATCH"], by=client)
        assert outcome(["SET a 1", "MULTI", "DISCARD"], by=client)
        assert outcome([], before=["WATCH b", "UNWATCH"]) and not outcome(["SET b 1"], before=["WATCH b", "WATCH b"])
        assert transaction(client, "PING") == ["PONG"] # EXEC has ended the watches
        # a flush does not change a key that is not there
        other.call("FLUSHALL")
        client.call("WATCH", "none")
        other.call("SET", "other", "1")
        other.call("FLUSHALL")
        assert transaction(client, "PING") == ["PONG"]
        # time passes
        assert not outcome(["PEXPIRE a 1"])
        time = 30
        while True:
            other.call("SET", "a", "1", "PX", time)
            client.call("WATCH", "a")
            if other.call("EXISTS", "a"): # so it was there when it was watched
                break
            client.call("UNWATCH")
            time *= 2
        while other.call("EXISTS", "a"):
            pass
        assert transaction(client, "PING") is None
        client.call("SET", "a", "1", "PX", 1)
        until(lambda: client.call("PTTL", "a") == -2)
        client.call("WATCH", "a") # it is not there any more
        assert transaction(client, "PING") == ["PONG"]
        # its own transaction's changes are none
        client.call("WATCH", "a")
        assert transaction(client, "SET a 1", "SET a 2") == ["OK", "OK"]


def test_watches_are_bounded_and_end_with_their_clients():
    with Server() as server:
        client, other = server.client(), server.client()
        assert client.call("WATCH", *range(1000), *range(500)) == "OK"
        assert other.call("WATCH", *range(1500)) == "OK"
        assert server.info(other)["total_watched_keys"] == "1500"
        too_many = Error("ERR too many watched keys")
        replies = [client.call("WATCH", *range(1000)) for _ in range(100)]
        assert too_many in replies and set(replies) == {"OK", too_many}
        assert client.call("WATCH", "x" * 2000000) == too_many
        client.vanish()
        until(lambda: server.info(other)["connected_clients"] == "1")
        assert server.info(other)["total_watched_keys"] == "1500"
        assert other.call("MULTI") == "OK" and other.call("EXEC") == []
        assert server.info(other)["total_watched_keys"] == "0"


def test_no_other_client_sees_a_part():
    with Server() as server:
        clients = [server.client() for _ in range(8)]
        clients[0].call("MSET", *[word for i in range(10) for word in (i, 100)])
        requests = []
        for i, client in enumerate(clients):
            if i % 2:
                data = encoded("MGET", *range(10)) * 300
            else:
                data = b"".join(
                    encoded("MULTI") + encoded("DECRBY", a, 7) + encoded("INCRBY", b, 7) + encoded("EXEC")
                    for a, b in ((random.randrange(10), random.randrange(10)) for _ in range(300)))
            requests.append(data)
        with held(server.process):
            for client, data in zip(clients, requests):
                client.send(data)
        for i, client in enumerate(clients):
            for _ in range(300):
                if i % 2:
                    assert sum(map(int, client.read())) == 1000
                else:
                    assert [client.read() for _ in range(3)] == ["OK", "QUEUED", "QUEUED"] and len(client.read()) == 2


def test_a_transaction_is_bounded():
    """The queue, the replies and the work; changes are made all the same."""
    large = Error("ERR the transaction does too much")
    with Server("--reply", 100000, "--request", 200000) as server:
        client = server.client()
        client.call("SET", "large", "x" * 90000)
        got = transaction(client, *["GET large"] * 50, "SET a 1", *["GETSET large x"] * 2, "PING")
        assert got[0] == b"x" * 90000 and got[49] == large and got[50:] == ["OK", large, b"x", "PONG"]
        assert sum(isinstance(reply, bytes) for reply in got) < 20
        assert client.call("GET", "a") == b"1" and client.call("GET", "large") == b"x"
        assert client.call("MULTI") == "OK"
        replies = [client.call("SET", "a", "x" * 50000) for _ in range(5)]
        assert replies == ["QUEUED"] * 3 + [Error("ERR the transaction is too large")] + ["QUEUED"]
        assert client.call("EXEC") == ABORTED
        sender = threading.Thread(target=client.send, args=(encoded("MULTI") + encoded("GET", "a") * 70000 + encoded("EXEC"),))
        sender.start()
        replies = [client.read() for _ in range(70002)]
        sender.join()
        assert replies[-1] == ABORTED and client.call("GET", "a") == b"1"
    with Server() as server:
        client = server.client()
        client.call("MSET", *[word for i in range(20000) for word in (f"key{i}", "x")])
        got = transaction(client, *["KEYS none*"] * 60, "SET a 1")
        assert got[:50] == [[]] * 50 and got[55:] == [large] * 5 + ["OK"], got


def with_directory(body):
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    try:
        body(os.path.join(directory, "file"))
    finally:
        shutil.rmtree(directory)


def kill(server):
    server.end(signal.SIGKILL)
    server.process.returncode = 0


def test_after_a_kill_all_or_none_of_it_is_there():
    def body(path):
        with Server("--append-only", path) as server:
            client = server.client()
            last = 0

            def write():
                nonlocal last
                try:
                    for number in range(1, 100000):
                        client.send(encoded("MULTI") + encoded("SET", "a", number) + encoded("INCR", "b") + encoded("EXEC"))
                        if [client.read() for _ in range(4)][3] == ["OK", number]:
                            last = number
                except (EOFError, OSError):
                    pass

            writer = threading.Thread(target=write)
            writer.start()
            until(lambda: last > 50)
            kill(server)
            writer.join()
        with Server("--append-only", path, says=True) as server:
            a, b = map(int, server.client().call("MGET", "a", "b"))
            assert a == b and last <= a <= last + 1, (a, b, last)

    with_directory(body)


def test_a_torn_transaction_is_not_applied():
    def body(path):
        with Server("--append-only", path) as server:
            client = server.client()
            client.call("MSET", "a", "1", "b", "1")
        whole = os.path.getsize(path)
        with Server("--append-only", path, "--fsync", "no") as server: # (no mark follows the transaction)
            assert transaction(server.client(), "SET a 2", "APPEND c 2", "DEL b") == ["OK", 1, 1]
            kill(server)
        with open(path, "rb") as file:
            data = file.read().rstrip(b"\0")
        cuts = range(whole, len(data))
        for cut in random.sample(cuts, min(rounds_of(40), len(cuts))):
            with open(path, "wb") as file:
                file.write(data[:cut])
            with Server("--append-only", path, says=True) as server:
                assert server.client().call("MGET", "a", "b", "c") == [b"1", b"1", None], cut

    with_directory(body)


def test_a_transaction_without_room_is_refused_as_a_whole():
    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    refused = Error("MISCONF Errors writing to the AOF file: File too large")

    def body(path):
        with Server("--append-only", path, says=True, first=limit_files) as server:
            client, waiting = server.client(), server.client()
            waiting.send(encoded("BLPOP", "l", 0))
            until(lambda: server.info(client)["blocked_clients"] == "1")
            client.call("SET", "l", "a string", "PX", 300)
            client.call("SET", "room", "x" * 95000)
            with held(server.process):
                client.send(encoded("MULTI") + encoded("GET", "b") + encoded("SET", "b", "y" * 6000) + encoded("EXEC") + encoded("PING"))
            assert [client.read() for _ in range(5)] == ["OK", "QUEUED", "QUEUED", refused, "PONG"]
            until(lambda: client.call("EXISTS", "l") == 0)  # the waiting client's key has changed, and nobody is served yet
            assert transaction(client, "SET a 1") == refused
            assert transaction(client, "STRLEN room", "SORT nothing", "BITFIELD c GET u8 0") == [95000, [], [0]]
            assert client.call("SET", "a", "1") == refused
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
            until(lambda: transaction(client, "SET a 2") == ["OK"])
            assert client.call("RPUSH", "l", "x") == 1 and waiting.read() == [b"l", b"x"]

    with_directory(body)


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
