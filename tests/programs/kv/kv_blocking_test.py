"""Clients that wait for elements of lists, over sockets. kv_blocking_test.py PROGRAM [NAME...]"""
import os
import shutil
import signal
import tempfile

from client import Error, Server, encoded, expect, held, run, until


def wait_for(server, count):
    """Until so many clients wait."""
    client = server.client()
    until(lambda: int(server.info(client)["blocked_clients"]) == count)
    client.close()


def test_elements_that_are_there_are_taken_at_once():
    with Server() as server:
        client = server.client()
        expect(client,
               ("RPUSH l a b c d e f g", 7), ("BLPOP none l 0", [b"l", b"a"]), ("BRPOP l none 0", [b"l", b"g"]),
               ("BLMOVE l m LEFT RIGHT 0", b"b"), ("BRPOPLPUSH l m 0", b"f"), ("LRANGE m 0 -1", [b"f", b"b"]),
               ("LMPOP 2 none l RIGHT COUNT 2", [b"l", [b"e", b"d"]]), ("BLMPOP 0 2 none l LEFT COUNT 9", [b"l", [b"c"]]),
               ("EXISTS l", 0), ("LMPOP 1 l LEFT", None), ("SET s x", "OK"))
        wrong = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
        expect(client,
               ("BLPOP s 0", wrong), ("BLPOP none s 0", wrong), ("BRPOPLPUSH s m 0", wrong), ("BLMOVE m s LEFT LEFT 0", wrong),
               ("LMPOP 2 none s LEFT", wrong), ("BLMPOP 0 1 s LEFT", wrong), ("LRANGE m 0 -1", [b"f", b"b"]))
        negative, no_number = Error("ERR timeout is negative"), Error("ERR timeout is not a float or out of range")
        syntax, keys = Error("ERR syntax error"), Error("ERR numkeys should be greater than 0")
        count = Error("ERR count should be greater than 0")
        expect(client,
               ("BLPOP m -1", negative), ("BRPOP m x", no_number), ("BLPOP m nan", no_number), ("BLPOP m 1e30", Error("ERR timeout is out of range")),
               ("BLPOP m inf", Error("ERR timeout is out of range")), ("BLMOVE m n LEFT LEFT x", no_number), ("BLMOVE m n UP LEFT 0", syntax),
               ("BRPOPLPUSH m n -0.5", negative), ("LMPOP 0 m LEFT", keys), ("LMPOP x m LEFT", keys), ("LMPOP 2 m LEFT", syntax),
               ("LMPOP 1 m UP", syntax), ("LMPOP 1 m LEFT COUNT", syntax), ("LMPOP 1 m LEFT COUNT 0", count), ("LMPOP 1 m LEFT COUNT -1", count),
               ("LMPOP 1 m LEFT COUNT 1 COUNT 1", syntax), ("LMPOP 9223372036854775807 m LEFT", syntax), ("BLMPOP x 1 m LEFT", no_number),
               ("BLMPOP 0 0 m LEFT", keys), ("LRANGE m 0 -1", [b"f", b"b"]), ("CLIENT UNBLOCK x", Error("ERR value is not an integer or out of range")),
               ("CLIENT UNBLOCK 0", 0), ("CLIENT UNBLOCK 1 x", Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")))
        assert client.call("BLPOP", *["none"] * 16385, 0) == Error("ERR too many keys to wait for")


def test_the_longest_waiting_client_is_served():
    with Server() as server:
        client, waiting = server.client(), [server.client() for _ in range(8)]
        for number, each in enumerate(waiting):
            each.send(encoded("BLPOP", "other", "l", "l", 0))
            wait_for(server, number + 1)
        assert client.call("RPUSH", "l", *range(5)) == 5
        for number in range(5):
            assert waiting[number].read() == [b"l", b"%d" % number]
        expect(client, ("EXISTS l", 0), ("RPUSH other x", 1))
        assert waiting[5].read() == [b"other", b"x"]
        wait_for(server, 2)
        # (a transaction is complete before anyone is served, in the order of its keys)
        client.send(encoded("MULTI") + encoded("RPUSH", "l", "l1") + encoded("RPUSH", "other", "o1") + encoded("LPUSH", "l", "l0") +
                    encoded("EXEC") + encoded("LRANGE", "l", 0, -1))
        assert [client.read() for _ in range(6)] == ["OK", "QUEUED", "QUEUED", "QUEUED", [1, 1, 2], []]
        assert [waiting[6].read(), waiting[7].read()] == [[b"l", b"l0"], [b"l", b"l1"]]
        expect(client, ("LRANGE other 0 -1", [b"o1"]))


def test_each_command_waits():
    with Server() as server:
        client, waiting = server.client(), server.client()
        for words, reply in (("BLPOP l 0", [b"l", b"a"]), ("BRPOP l 0", [b"l", b"c"]), ("BLMOVE l m LEFT RIGHT 0", b"a"),
                             ("BLMOVE l m RIGHT LEFT 0", b"c"), ("BRPOPLPUSH l m 0", b"c"), ("BLMPOP 0 1 l RIGHT", [b"l", [b"c"]]),
                             ("BLMPOP 0 2 other l LEFT COUNT 2", [b"l", [b"a", b"b"]]), ("BRPOPLPUSH l l 0", b"c")):
            for change in ("RPUSH l a b c", "RENAME source l", "COPY source l", "RPOPLPUSH one l"):
                client.call("DEL", "l", "m", "source", "one")
                client.call("RPUSH", "source", "a", "b", "c")
                waiting.send(encoded(*words.split()))
                wait_for(server, 1)
                if "one" in change:
                    client.call("RPUSH", "one", "x")
                    wanted = b"x" if isinstance(reply, bytes) else [b"l", [b"x"] if isinstance(reply[1], list) else b"x"]
                else:
                    wanted = reply
                assert not isinstance(client.call(*change.split()), Error), change
                got = waiting.read()
                assert got == wanted, (words, change, got, wanted)
                wait_for(server, 0)
        # (one served client gives the next its element; and back)
        other = server.client()
        client.call("DEL", "l", "m")
        waiting.send(encoded("BLMOVE", "l", "m", "LEFT", "LEFT", 0))
        wait_for(server, 1)
        other.send(encoded("BLMOVE", "m", "l", "LEFT", "LEFT", 0))
        wait_for(server, 2)
        expect(client, ("RPUSH l x", 1), ("LRANGE l 0 -1", [b"x"]), ("EXISTS m", 0))
        assert waiting.read() == b"x" and other.read() == b"x"


def test_a_target_of_another_type_keeps_the_element():
    with Server() as server:
        client, waiting, next_one = server.client(), server.client(), server.client()
        client.call("SET", "s", "x")
        waiting.send(encoded("BRPOPLPUSH", "l", "s", 0))
        wait_for(server, 1)
        next_one.send(encoded("BLPOP", "l", 0))
        wait_for(server, 2)
        client.call("RPUSH", "l", "a")
        assert waiting.read() == Error("WRONGTYPE Operation against a key holding the wrong kind of value")
        assert next_one.read() == [b"l", b"a"]
        # (nor does another type serve)
        waiting.send(encoded("BLPOP", "l", 0))
        wait_for(server, 1)
        expect(client, ("SET l x", "OK"), ("DEL l", 1), ("HSET l a b", 1), ("DEL l", 1), ("RPUSH l x", 1))
        assert waiting.read() == [b"l", b"x"]


def test_waits_that_end():
    with Server() as server:
        client, waiting = server.client(), server.client()
        assert waiting.call("BLPOP", "l", "0.001") is None and waiting.call("BLMOVE", "l", "m", "LEFT", "LEFT", "0.001") is None
        number = waiting.call("CLIENT", "ID")
        for reason, wanted in (((), None), (("TIMEOUT",), None), (("ERROR",), Error("UNBLOCKED client unblocked via CLIENT UNBLOCK"))):
            waiting.send(encoded("BLMPOP", 1000, 1, "l", "LEFT"))
            wait_for(server, 1)
            assert client.call("CLIENT", "UNBLOCK", number, *reason) == 1
            assert waiting.read() == wanted
            assert client.call("CLIENT", "UNBLOCK", number) == 0
        expect(client, ("RPUSH l x", 1), ("LLEN l", 1), ("DEL l", 1))
        assert waiting.call("HELLO", 3)[b"proto"] == 3
        waiting.send(encoded("BLPOP", "l", "0.001"))
        assert waiting.read() is None


def test_serving_many_clients_gives_others_their_turn():
    """Counted in clients that still wait when another client's request is run."""
    with Server() as server:
        client, other, waiting = server.client(), server.client(), [server.client() for _ in range(32)]
        keys = [f"k{i}" for i in range(1536)]
        for number, each in enumerate(waiting):
            each.send(encoded("BLPOP", *keys, "l", "l", 0))
            wait_for(server, number + 1)
        with held(server.process): # so that both have arrived
            client.send(encoded("RPUSH", "l", *range(32)))
            other.send(encoded("INFO"))
        info = other.read().decode()
        left = int(info.split("blocked_clients:")[1].split()[0])
        # (one request after the other, in either order)
        assert left > 0, left
        assert client.read() == 32
        for number in range(32):
            assert waiting[number].read() == [b"l", b"%d" % number], number
        wait_for(server, 0)
        expect(client, ("EXISTS l", 0))


def test_other_clients_neither_serve_nor_pay():
    """Counted in clients that are served between two requests of one turn of another client: none."""
    with Server() as server:
        client, other, waiting = server.client(), server.client(), [server.client() for _ in range(32)]
        keys = [f"k{i}" for i in range(1536)]
        for number, each in enumerate(waiting):
            each.send(encoded("BLPOP", *keys, "l", 0))
            wait_for(server, number + 1)
        with held(server.process): # so that all have arrived
            client.send(encoded("RPUSH", "l", *range(32)))
            other.send(encoded("INFO") + encoded("PING") * 100 + encoded("INFO"))
        replies = [other.read() for _ in range(102)]
        before, after = (int(text.decode().split("blocked_clients:")[1].split()[0]) for text in (replies[0], replies[-1]))
        assert replies[1:-1] == ["PONG"] * 100 and before == after and before > 0, (before, after)
        assert client.read() == 32
        for number in range(32):
            assert waiting[number].read() == [b"l", b"%d" % number], number
        wait_for(server, 0)
        expect(client, ("EXISTS l", 0))


def test_no_request_overtakes_clients_that_wait():
    """Serving takes several turns. Neither the same client nor another one gets an element meanwhile."""
    with Server() as server:
        client, other, waiting, last = server.client(), server.client(), [server.client() for _ in range(32)], server.client()
        keys = [f"k{i}" for i in range(1536)]
        for change in (("LPOP", "l"), ("LMPOP", 1, "l", "LEFT"), ("RPOPLPUSH", "l", "l")):
            for number, each in enumerate(waiting):
                each.send(encoded("BLPOP", *keys, "l", 0))
                wait_for(server, number + 1)
            last.send(encoded("BLPOP", "m", "l", 0))
            wait_for(server, 33)
            with held(server.process):  # so that all have arrived
                client.send(encoded("RPUSH", "l", *range(32)) + encoded(*change) + encoded("RPUSH", "m", "x") + encoded("LPOP", "m"))
                other.send(encoded(*change) + encoded("MULTI") + encoded("LPOP", "l") + encoded("EXEC"))
            got, got_of_other = [client.read() for _ in range(4)], [other.read() for _ in range(4)]
            assert got == [32, None, 1, None], got
            assert got_of_other == [None, "OK", "QUEUED", [None]], got_of_other
            assert last.read() == [b"m", b"x"]
            for number in range(32):
                assert waiting[number].read() == [b"l", b"%d" % number], number
            wait_for(server, 0)


def make_waiters(server, names, many):
    """One client for each name, which waits for its key; to serve it takes half of a turn."""
    waiting = []
    for number, name in enumerate(names):
        waiting.append(server.client())
        waiting[-1].send(encoded("BLPOP", *many, name, 0))
        wait_for(server, number + 1)
    return waiting


MANY = [f"k{i}" for i in range(4096)]


def test_steady_pushes_do_not_hold_a_transaction():
    """Counted in elements that are left when it runs: it waits for the keys before it, and not for all behind it."""
    with Server() as server:
        client, other = server.client(), server.client()
        names = [f"m{i}" for i in range(12)]
        waiting = make_waiters(server, ["l"] * 20 + names * 2, MANY)
        with held(server.process):  # so that both have arrived
            other.send(encoded("RPUSH", "l", *range(20)) + encoded("MULTI") + b"".join(encoded("LLEN", name) for name in names) +
                       encoded("SET", "t", 1) + encoded("EXEC"))
            for name in names:  # (one in each turn)
                client.send(encoded("RPUSH", name, 1, 2) + encoded("EXISTS", *MANY, *MANY))
        replies = [other.read() for _ in range(len(names) + 4)]
        assert replies[0] == 20 and replies[-1][-1] == "OK", replies
        left = sum(replies[-1][:-1])
        assert left > 0, replies[-1]
        for name in names:
            assert client.read() == 2 and client.read() == 0
        for number in range(20):
            assert waiting[number].read() == [b"l", b"%d" % number]
        for number, name in enumerate(names * 2):
            assert waiting[20 + number].read() == [name.encode(), b"1" if number < len(names) else b"2"]
        wait_for(server, 0)


def test_lmpop_waits_for_its_own_keys_alone():
    with Server() as server:
        client = server.client()
        waiting = make_waiters(server, ["l"] * 16, MANY)
        for words, reply in ((("LMPOP", 2, "q", "r", "LEFT"), None), (("BLMPOP", 0, 1, "f", "LEFT"), [b"f", [b"1"]])):
            client.call("RPUSH", "f", 1)
            with held(server.process):
                client.send(encoded("RPUSH", "l", *range(8)) + encoded(*words) + encoded("INFO"))
            assert client.read() == 8 and client.read() == reply
            left = int(client.read().decode().split("blocked_clients:")[1].split()[0])
            assert left % 8 > 0, left
            wait_for(server, 8 if reply is None else 0)
        for number, each in enumerate(waiting):
            assert each.read() == [b"l", b"%d" % (number % 8)]


def test_a_request_with_many_keys_looks_them_up_once():
    """Also if it waits for the last one during many turns. Counted in the server's unit of work."""
    for keys in 10, 1000, 20_000:
        with Server() as server:
            client, other = server.client(), server.client()
            waiting = make_waiters(server, ["l"] * 20, MANY)
            before = int(server.info(other)["total_work"])
            with held(server.process):
                client.send(encoded("RPUSH", "l", *range(20)) + encoded("DEL", *(f"d{i}" for i in range(keys)), "l"))
            assert client.read() == 20 and client.read() == 0
            work = int(server.info(other)["total_work"]) - before
            assert work < 20 * 5000 + 5 * keys, (keys, work)
            for number, each in enumerate(waiting):
                assert each.read() == [b"l", b"%d" % number]


def test_a_key_that_has_expired_serves_later():
    """Its end, a change that no request makes, is no reason to forget the next one."""
    with Server() as server:
        client, waiting = server.client(), server.client()
        waiting.send(encoded("BLPOP", "l", 0))
        wait_for(server, 1)
        for number in range(1, 4):
            assert client.call("SET", "l", "x", "PX", 1) == "OK"
            until(lambda: server.info(client)["expired_keys"] == str(number))
            assert client.call("RPUSH", "l", number) == 1
            assert waiting.read() == [b"l", b"%d" % number]
            waiting.send(encoded("BLPOP", "l", 0))
            wait_for(server, 1)


def test_a_client_that_leaves_takes_nothing():
    with Server() as server:
        client = server.client()
        for leave in ("close", "vanish"):
            waiting, other = server.client(), server.client()
            waiting.send(encoded("BLPOP", "l", "m", "n", 0) + encoded("SET", "never", 1))
            wait_for(server, 1)
            other.send(encoded("BLPOP", "l", 0))
            wait_for(server, 2)
            getattr(waiting, leave)()
            wait_for(server, 1)
            expect(client, ("RPUSH l a b", 2))
            assert other.read() == [b"l", b"a"]
            expect(client, ("RPUSH m x", 1), ("LRANGE l 0 -1", [b"b"]), ("LRANGE m 0 -1", [b"x"]), ("DEL l m", 2), ("EXISTS never", 0))


def test_requests_before_and_behind():
    """They are pipelined, and replies before a wait are sent before it."""
    with Server() as server:
        client, waiting = server.client(), server.client()
        waiting.send(encoded("PING") + encoded("SET", "k", "v") + encoded("BLPOP", "l", 0) + encoded("GET", "k") +
                     b"BLPOP l 0\r\nGET k\r\n" + encoded("LPUSH", "l", "mine") + encoded("BLPOP", "l", 0))
        assert [waiting.read(), waiting.read()] == ["PONG", "OK"]
        wait_for(server, 1)
        client.call("SET", "k", "w")
        client.call("RPUSH", "l", "a")
        assert [waiting.read(), waiting.read()] == [[b"l", b"a"], b"w"]
        wait_for(server, 1)
        client.call("RPUSH", "l", "b")
        assert [waiting.read() for _ in range(4)] == [[b"l", b"b"], b"w", 1, [b"l", b"mine"]]


def test_a_transaction_does_not_wait():
    with Server() as server:
        client = server.client()
        client.send(encoded("MULTI") + encoded("BLPOP", "l", 0) + encoded("BLMOVE", "l", "m", "LEFT", "LEFT", 0) + encoded("BLMPOP", 0, 1, "l", "LEFT") +
                    encoded("RPUSH", "l", "x") + encoded("BRPOP", "l", 0) + encoded("BRPOPLPUSH", "l", "m", 0) + encoded("EXEC"))
        assert [client.read() for _ in range(8)][-1] == [None, None, None, 1, [b"l", b"x"], None]
        # (an element that does not outlive a transaction serves nobody)
        waiting = server.client()
        waiting.send(encoded("BLPOP", "l", 0))
        wait_for(server, 1)
        client.send(encoded("MULTI") + encoded("RPUSH", "l", "x") + encoded("DEL", "l") + encoded("EXEC") + encoded("RPUSH", "l", "y"))
        assert [client.read() for _ in range(5)][-2:] == [[1, 1], 1]
        assert waiting.read() == [b"l", b"y"]


def test_watched_keys():
    """A client that is served changes them."""
    with Server() as server:
        client, waiting, watcher = server.client(), server.client(), server.client()
        for kind, wanted in (("BRPOPLPUSH l m 0", None), ("BLPOP l 0", [])):
            client.call("DEL", "m")
            waiting.send(encoded(*kind.split()))
            wait_for(server, 1)
            watcher.call("WATCH", "m")
            client.call("RPUSH", "l", "x")
            assert not isinstance(waiting.read(), Error)
            watcher.call("MULTI")
            assert watcher.call("EXEC") == wanted


def test_subscribers_wait():
    with Server() as server:
        client, waiting = server.client(), server.client()
        waiting.call("HELLO", 3)
        waiting.call("SUBSCRIBE", "c")
        waiting.send(encoded("PING") + encoded("BLPOP", "l", 0))
        assert waiting.read() == "PONG"
        wait_for(server, 1)
        assert client.call("PUBLISH", "c", "text") == 1
        assert waiting.read() == [b"message", b"c", b"text"]
        client.call("RPUSH", "l", "x")
        assert waiting.read() == [b"l", b"x"]


def test_a_subscription_is_confirmed_before_a_wait():
    """Also one that was requested together with the wait."""
    with Server() as server:
        client = server.client()
        for before, wanted in (((("HELLO", 3), ("SUBSCRIBE", "c")), [[b"subscribe", b"c", 1]]),
                               ((("SUBSCRIBE", "c"), ("UNSUBSCRIBE", "c")), [[b"subscribe", b"c", 1], [b"unsubscribe", b"c", 0]])):
            waiting = server.client()
            waiting.send(b"".join(encoded(*words) for words in before) + encoded("BLPOP", "l", 0) + encoded("PING"))
            if before[0][0] == "HELLO":
                assert waiting.read()[b"proto"] == 3
            assert [waiting.read() for _ in wanted] == wanted
            wait_for(server, 1)
            client.call("RPUSH", "l", "x")
            assert [waiting.read(), waiting.read()] == [[b"l", b"x"], "PONG"]


def test_the_server_stops():
    with Server() as server:
        waiting = [server.client() for _ in range(3)]
        for each in waiting:
            each.send(encoded("BLPOP", "l", "m", 0))
        wait_for(server, 3)
        assert server.end() == 0
        assert all(each.is_at_end() for each in waiting)


def test_what_was_served_is_in_the_file():
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    path = os.path.join(directory, "file")
    try:
        for fsync in ("always", "everysec"):
            with Server("--append-only", path, "--fsync", fsync) as server:
                client, waiting, mover = server.client(), server.client(), server.client()
                client.call("FLUSHALL")
                waiting.send(encoded("BLMPOP", 0, 1, "l", "RIGHT", "COUNT", 2))
                wait_for(server, 1)
                mover.send(encoded("BLMOVE", "l", "m", "LEFT", "LEFT", 0))
                wait_for(server, 2)
                client.call("RPUSH", "l", "a", "b", "c", "d")
                assert waiting.read() == [b"l", [b"d", b"c"]] and mover.read() == b"a"
                server.end(signal.SIGKILL)
                server.process.returncode = 0
            with Server("--append-only", path) as server:
                expect(server.client(), ("LRANGE l 0 -1", [b"b"]), ("LRANGE m 0 -1", [b"a"]), ("DBSIZE", 2))
    finally:
        shutil.rmtree(directory)


def test_a_reply_that_is_too_large_takes_nothing():
    with Server("--reply", 1024) as server:
        client, waiting = server.client(), server.client()
        waiting.send(encoded("BLMPOP", 0, 1, "l", "LEFT", "COUNT", 100000))
        wait_for(server, 1)
        assert client.call("RPUSH", "l", *["x" * 1000] * 2000) == 2000
        assert waiting.read() == Error("ERR the reply would be larger than 1024 bytes")
        expect(client, ("LLEN l", 2000))


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
