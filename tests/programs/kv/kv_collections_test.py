"""Tests hashes and lists of the key-value server: kv_collections_test.py PROGRAM [NAME...]."""
import os
import random
import shutil
import signal
import tempfile

from client import Error, Left, Server, encoded, expect, held, rounds_of, run, until

WRONGTYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")


def test_hashes():
    with Server() as server:
        client = server.client()
        expect(
            client,
            ("HSET h a 1 b 2", 2),
            ("HSET h a 3 c 4", 1),
            ("HSET h a", Error("ERR wrong number of arguments for 'HSET' command")),
            ("HSET h a 1 b", Error("ERR wrong number of arguments for 'hset' command")),
            ("HMSET h a 1", "OK"),
            ("HSETNX h a 2", 0),
            ("HSETNX h d 5", 1),
            ("HSETNX g d 5", 1),
            ("HGET h a", b"1"),
            ("HGET h none", None),
            ("HGET none a", None),
            ("HMGET h a none d", [b"1", None, b"5"]),
            ("HMGET none a b", [None, None]),
            ("HLEN h", 4),
            ("HLEN none", 0),
            ("HEXISTS h a", 1),
            ("HEXISTS h none", 0),
            ("HSTRLEN h a", 1),
            ("HSTRLEN h none", 0),
            ("HGETALL none", []),
            ("HKEYS none", []),
            ("HINCRBY h n 5", 5),
            ("HINCRBY h n -7", -2),
            ("HINCRBY h n x", Error("ERR value is not an integer or out of range")),
            ("HSET h n 9223372036854775807", 0),
            ("HINCRBY h n 1", Error("ERR increment or decrement would overflow")),
            ("HSET h n x", 0),
            ("HINCRBY h n 1", Error("ERR hash value is not an integer")),
            ("HINCRBYFLOAT h n 1", Error("ERR hash value is not a float")),
            ("HINCRBYFLOAT h f 1.5", b"1.5"),
            ("HINCRBYFLOAT h f -1.5", b"0"),
            ("HINCRBYFLOAT h f inf", Error("ERR value is NaN or Infinity")),
            ("HINCRBYFLOAT h f x", Error("ERR value is not a valid float")),
            ("HDEL h n f none", 2),
            ("HDEL none a", 0),
            ("TYPE h", "hash"),
            ("OBJECT ENCODING h", b"listpack"),
            ("EXPIRE h 500", 1),
            ("HSET h a 1", 0),
            ("TTL h", Left(500)),
            ("COPY h i", 1),
            ("HSET i a other", 0),
            ("HGET h a", b"1"),
            ("RENAME i h", "OK"),
            ("HGET h a", b"other"),
            ("TTL h", Left(500)),
            ("HDEL h a b c d", 4),
            ("EXISTS h", 0),
            ("HSET h a 1", 1),
            ("SET h x", "OK"),
            ("GET h", b"x"),
        )
        client.call("HSET", "large", *[word for i in range(3000) for word in (i, "x" * i)])
        got = client.call("HGETALL", "large")
        assert dict(zip(got[::2], got[1::2])) == {b"%d" % i: b"x" * i for i in range(3000)}
        assert sorted(client.call("HKEYS", "large"), key=int) == [b"%d" % i for i in range(3000)]
        assert sorted(client.call("HVALS", "large"), key=len) == [b"x" * i for i in range(3000)]
        assert client.call("OBJECT", "ENCODING", "large") == b"hashtable"
        cursor, found = b"0", {}
        while True:
            cursor, part = client.call("HSCAN", "large", cursor, "COUNT", 50)
            found.update(zip(part[::2], part[1::2]))
            if cursor == b"0":
                break
        assert len(found) == 3000 and found[b"7"] == b"x" * 7
        assert client.call("HSCAN", "large", 0, "MATCH", "299?", "COUNT", 100000)[0] == b"0"
        assert client.call("HSCAN", "none", 0) == [b"0", []]
        assert client.call("HSCAN", "large", "x") == Error("ERR invalid cursor")
        assert client.call("HSCAN", "large", 0, "TYPE", "hash") == Error("ERR syntax error")
        other = server.client()
        other.call("HELLO", "3")
        assert other.call("HGETALL", "g") == {b"d": b"5"} and other.call("HGETALL", "none") == {}


def test_lists():
    with Server() as server:
        client = server.client()
        expect(
            client,
            ("RPUSH l b c", 2),
            ("LPUSH l a 0", 4),
            ("LRANGE l 0 -1", [b"0", b"a", b"b", b"c"]),
            ("LRANGE l -3 -2", [b"a", b"b"]),
            ("LRANGE l 2 1", []),
            ("LRANGE l -100 100", [b"0", b"a", b"b", b"c"]),
            ("LRANGE none 0 -1", []),
            ("LPUSHX none a", 0),
            ("RPUSHX none a", 0),
            ("RPUSHX l d", 5),
            ("LPUSHX l z", 6),
            ("LLEN l", 6),
            ("LLEN none", 0),
            ("LINDEX l 0", b"z"),
            ("LINDEX l -1", b"d"),
            ("LINDEX l 6", None),
            ("LINDEX l -7", None),
            ("LPOP l", b"z"),
            ("RPOP l", b"d"),
            ("LPOP l 0", []),
            ("LPOP l 2", [b"0", b"a"]),
            ("RPOP l 5", [b"c", b"b"]),
            ("EXISTS l", 0),
            ("LPOP l", None),
            ("LPOP l 1", None),
            ("LPOP l -1", Error("ERR value is out of range, must be positive")),
            ("RPUSH l a b a c a", 5),
            ("LREM l 2 a", 2),
            ("LRANGE l 0 -1", [b"b", b"c", b"a"]),
            ("RPUSH l b b", 5),
            ("LREM l -2 b", 2),
            ("LRANGE l 0 -1", [b"b", b"c", b"a"]),
            ("LREM l 0 none", 0),
            ("LREM none 0 a", 0),
            ("LREM l -9223372036854775808 a", Error("ERR value is out of range")),
            ("RPUSH p a b a c a", 5),
            ("LPOS p a", 0),
            ("LPOS p a RANK 2", 2),
            ("LPOS p a RANK -1", 4),
            ("LPOS p a COUNT 2", [0, 2]),
            ("LPOS p a RANK -2 COUNT 0", [2, 0]),
            ("LPOS p a COUNT 0 MAXLEN 3", [0, 2]),
            ("LPOS p a RANK -1 COUNT 0 MAXLEN 2", [4]),
            ("LPOS p none", None),
            ("LPOS p none COUNT 1", []),
            ("LPOS none a", None),
            ("LPOS none a COUNT 0", []),
            ("LPOS p a RANK 0", Error("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")),
            ("LPOS p a COUNT -1", Error("ERR COUNT can't be negative")),
            ("LPOS p a MAXLEN -1", Error("ERR MAXLEN can't be negative")),
            ("LPOS p a WHAT", Error("ERR syntax error")),
            ("LSET l 1 x", "OK"),
            ("LSET l -1 y", "OK"),
            ("LSET l 3 y", Error("ERR index out of range")),
            ("LSET none 0 y", Error("ERR no such key")),
            ("LINSERT l BEFORE x w", 4),
            ("LINSERT l AFTER y z", 5),
            ("LINSERT l AFTER none z", -1),
            ("LINSERT none AFTER a z", 0),
            ("LINSERT l NEXT a z", Error("ERR syntax error")),
            ("LRANGE l 0 -1", [b"b", b"w", b"x", b"y", b"z"]),
            ("LTRIM l 1 -2", "OK"),
            ("LRANGE l 0 -1", [b"w", b"x", b"y"]),
            ("LMOVE l m LEFT RIGHT", b"w"),
            ("LMOVE l m RIGHT LEFT", b"y"),
            ("LRANGE m 0 -1", [b"y", b"w"]),
            ("LMOVE m m LEFT RIGHT", b"y"),
            ("LMOVE m m LEFT LEFT", b"w"),
            ("RPOPLPUSH l m", b"x"),
            ("EXISTS l", 0),
            ("RPOPLPUSH l m", None),
            ("LMOVE m m UP DOWN", Error("ERR syntax error")),
            ("LRANGE m 0 -1", [b"x", b"w", b"y"]),
            ("TYPE m", "list"),
            ("LTRIM m 5 9", "OK"),
            ("EXISTS m", 0),
            ("LTRIM none 0 1", "OK"),
            ("RPUSH one a", 1),
            ("RPOPLPUSH one one", b"a"),
            ("LRANGE one 0 -1", [b"a"]),
        )


def test_other_types_are_refused():
    with Server() as server:
        client = server.client()
        client.call("SET", "s", "1")
        client.call("HSET", "h", "a", "1")
        client.call("RPUSH", "l", "a")
        strings = ("GET {}", "SET {} x GET", "GETSET {} x", "GETDEL {}", "GETEX {}", "APPEND {} x", "STRLEN {}", "INCR {}", "DECRBY {} 2",
                   "INCRBYFLOAT {} 1", "GETRANGE {} 0 1", "SETRANGE {} 0 x")
        hashes = ("HSET {} a 1", "HMSET {} a 1", "HSETNX {} a 1", "HGET {} a", "HMGET {} a", "HGETALL {}", "HKEYS {}", "HVALS {}", "HLEN {}",
                  "HEXISTS {} a", "HSTRLEN {} a", "HINCRBY {} a 1", "HINCRBYFLOAT {} a 1", "HDEL {} a", "HSCAN {} 0")
        lists = ("LPUSH {} a", "RPUSH {} a", "LPUSHX {} a", "RPUSHX {} a", "LPOP {}", "RPOP {} 1", "LLEN {}", "LINDEX {} 0", "LRANGE {} 0 1",
                 "LSET {} 0 a", "LPOS {} a", "LINSERT {} BEFORE a b", "LREM {} 0 a", "LTRIM {} 0 1", "LMOVE {} other LEFT LEFT", "RPOPLPUSH {} other",
                 "RPOPLPUSH l {}")
        for commands, own in ((strings, "s"), (hashes, "h"), (lists, "l")):
            for key in "shl".replace(own, ""):
                for words in commands:
                    assert client.call(*words.format(key).split()) == WRONGTYPE, words.format(key)
        assert client.call("MGET", "s", "h", "l") == [b"1", None, None]
        assert [client.call("TYPE", key) for key in "shlx"] == ["string", "hash", "list", "none"]
        for name, key in (("string", b"s"), ("HASH", b"h"), ("list", b"l")):
            assert client.call("SCAN", 0, "TYPE", name) == [b"0", [key]]
        assert client.call("SCAN", 0, "TYPE", "zset") == [b"0", []]
        assert client.call("SETNX", "h", "x") == 0 and client.call("GETEX", "h", "EX", 1) == WRONGTYPE and client.call("TTL", "h") == -1
        assert client.call("SET", "l", "now a string") == "OK" and client.call("GET", "l") == b"now a string"


# ---- Against a model ----


class Model:
    """Random commands on a few keys, and what they must reply."""

    def __init__(self):
        self.keys = {}

    def step(self):
        key = b"k%d" % random.randrange(6)
        value = self.keys.get(key)
        item, other = b"%d" % random.randrange(12), random.randbytes(random.randrange(60))
        if value is None:
            if random.randrange(2):
                self.keys[key] = {item: other}
                return ("HSET", key, item, other), 1
            self.keys[key] = [other, item]
            return ("RPUSH", key, other, item), 2
        if random.randrange(60) == 0:
            del self.keys[key]
            return ("DEL", key), 1
        if random.randrange(30) == 0:
            new = b"k%d" % random.randrange(6)
            self.keys[new] = self.keys.pop(key)
            return ("RENAME", key, new), "OK"
        words, reply = (self.change_hash if isinstance(value, dict) else self.change_list)(key, value, item, other)
        if not value:
            del self.keys[key]
        return words, reply

    def change_hash(self, key, value, item, other):
        if random.randrange(3) == 0:
            return ("HDEL", key, item, b"0"), sum(value.pop(name, None) is not None for name in dict.fromkeys((item, b"0")))
        is_new = item not in value
        value[item] = other
        return ("HSET", key, item, other), int(is_new)

    def change_list(self, key, value, item, other):
        kind, at = random.randrange(9), random.randrange(len(value))
        item = b"%d" % random.randrange(3) # (many are equal)
        if kind == 0:
            value[:0] = [other, item]
            return ("LPUSH", key, item, other), len(value)
        if kind == 1:
            value += [item, other]
            return ("RPUSH", key, item, other), len(value)
        if kind == 2:
            count = random.randrange(1, 4)
            popped = value[:count]
            del value[:count]
            return ("LPOP", key, count), popped
        if kind == 3:
            return ("RPOP", key), value.pop()
        if kind == 4:
            value[at] = other
            return ("LSET", key, at, other), "OK"
        if kind in (5, 8):
            count, places = random.randrange(-2, 3), [i for i, each in enumerate(value) if each == item]
            places = places[count:] if count < 0 else places[: count or None]
            value[:] = [each for i, each in enumerate(value) if i not in places]
            return ("LREM", key, count, item), len(places)
        if kind == 6:
            pivot = value[at]
            value.insert(value.index(pivot), other)
            return ("LINSERT", key, "BEFORE", pivot, other), len(value)
        value.append(value.pop(0))
        return ("LMOVE", key, key, "LEFT", "RIGHT"), value[-1]

    def check(self, client):
        assert sorted(client.call("KEYS", "*")) == sorted(self.keys)
        for key, value in self.keys.items():
            if isinstance(value, dict):
                got = client.call("HGETALL", key)
                assert dict(zip(got[::2], got[1::2])) == value
            else:
                assert client.call("LRANGE", key, 0, -1) == value


def with_directory(body):
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    try:
        body(os.path.join(directory, "file"))
    finally:
        shutil.rmtree(directory)


def test_elements_are_in_the_files():
    """As a model has them, after rewrites, kills and snapshots."""

    def body(path):
        model = Model()
        for turn in range(rounds_of(4)):
            with Server("--append-only", path, "--snapshot", path + ".snapshot") as server:
                client = server.client()
                model.check(client)
                for number in range(1500):
                    words, wanted = model.step()
                    got = client.call(*words)
                    assert got == wanted, (words, got, wanted)
                    if number == 700:
                        client.call("BGREWRITEAOF" if turn % 2 == 0 else "BGSAVE")
                model.check(client)
                if turn % 2:
                    server.end(signal.SIGKILL)
                    server.process.returncode = 0
                else:
                    assert client.call("SAVE") == "OK"
                    with Server("--snapshot", path + ".snapshot") as other:
                        model.check(other.client())
                        other.end(signal.SIGKILL) # (it would write the snapshot)
                        other.process.returncode = 0

    with_directory(body)


def test_each_kind_of_record_is_replayed():
    def body(path):
        def state(client):
            return {key: client.call("LRANGE", key, 0, -1) if client.call("TYPE", key) == "list" else
                    dict(zip(*[iter(client.call("HGETALL", key))] * 2)) for key in client.call("KEYS", "*")}

        for snapshot in (False, True):
            with Server("--append-only", path) as server:
                client = server.client()
                client.call("FLUSHALL")
                for words in (
                    "RPUSH a x y x z x", "LREM a -1 x", "RPUSH b x y x z x", "LREM b 1 x", "RPUSH c x y x z x", "LREM c 0 x",
                    "RPUSH d 1 2 3 4 5 6 7 8", "LPOP d", "LPOP d 2", "RPOP d", "LPUSH d a b c", "LSET d 1 set", "LSET d -1 last",
                    "LINSERT d BEFORE set before", "LINSERT d AFTER last end", "RPUSH e 1 2 3 4 5 6 7", "LTRIM e 2 -3", "LPUSHX e x",
                    "RPUSHX e y", "LPUSHX none x", "RPUSH f 1 2 3", "LMOVE f g LEFT RIGHT", "LMOVE f f LEFT RIGHT", "RPOPLPUSH f g",
                    "RPUSH h 1", "LPOP h", "RPUSH i 1", "LTRIM i 5 6", "RPUSH j 1", "RENAME j k", "COPY k l", "RPUSH l 2",
                    "HSET m a 1 b 2 c 3", "HDEL m a none", "HSETNX m d 4", "HSETNX m d 5", "HINCRBY m b 40", "HINCRBYFLOAT m e 0.5",
                    "HMSET m f 6", "HSET n a 1", "HDEL n a", "COPY m o", "HDEL o b", "SET p text", "DEL p", "HSET p a 1", "EXPIRE p 1000",
                    "RPUSH q 1", "EXPIRE q 1000", "PERSIST q"):
                    assert not isinstance(client.call(*words.split()), Error), words
                before = state(client)
                assert before[b"a"] == [b"x", b"y", b"x", b"z"] and before[b"b"] == [b"y", b"x", b"z", b"x"]
                if snapshot:
                    client.call("BGREWRITEAOF")
                    until(lambda: server.info(client)["aof_rewrite_in_progress"] == "0")
                server.end(signal.SIGKILL)
                server.process.returncode = 0
            with Server("--append-only", path) as server:
                client = server.client()
                assert state(client) == before
                assert client.call("TTL", "p") > 0 and client.call("TTL", "q") == -1

    with_directory(body)


def test_a_snapshot_has_collections_as_they_were():
    """Each moment has as many items in the list as fields in the hash."""

    def body(path):
        with Server("--snapshot", path) as server:
            client, saver = server.client(), server.client()
            client.call("MSET", *[word for i in range(20000) for word in (f"key{i}", "x" * 50)])
            saver.send(encoded("SAVE"))
            for i in range(3000):
                client.send(encoded("MULTI") + encoded("RPUSH", "l", i) + encoded("HSET", "h", i, i) + encoded("EXEC"))
                for _ in range(4):
                    client.read()
            assert saver.read() == "OK"
            until(lambda: server.info(client)["rdb_bgsave_in_progress"] == "0")
            server.end(signal.SIGKILL)
            server.process.returncode = 0
        with Server("--snapshot", path) as server:
            client = server.client()
            assert client.call("LLEN", "l") == client.call("HLEN", "h")

    with_directory(body)


def test_large_collections_are_bounded():
    """Replies have a limit, others have their turn, and memory is given back a part at a time."""
    with Server("--reply", 100000) as server:
        client, other = server.client(), server.client()
        too_large = Error("ERR the reply would be larger than 100000 bytes")
        client.call("HSET", "h", *[word for i in range(20000) for word in (f"{i:0100}", "x" * 10)])
        client.call("RPUSH", "l", *["x" * 100] * 20000)
        client.call("HSET", "large", "f", "x" * 200000)
        for words in (("HGETALL", "h"), ("HKEYS", "h"), ("LRANGE", "l", 0, -1), ("LPOP", "l", 20000),
                      ("HMGET", "large", *["f"] * 1000)):
            client.send(encoded("PING") + encoded(*words) + encoded("PING"))
            assert [client.read() for _ in range(3)] == ["PONG", too_large, "PONG"], words
        assert client.call("LLEN", "l") == 20000
        cursor, fields = client.call("HSCAN", "h", 0, "COUNT", 100000) # (which is a hint)
        assert int(cursor) != 0 and 0 < len(fields) <= 2 * 8300, len(fields)
        assert client.call("HGET", "large", "f") == b"x" * 200000
        assert client.call("LRANGE", "l", 0, 9) == [b"x" * 100] * 10
        for words in (("HKEYS", "h"), ("LRANGE", "l", 0, -1), ("LREM", "l", 0, "none"), ("LINSERT", "l", "BEFORE", "none", "x")):
            other.call("CONFIG", "RESETSTAT")
            with held(server.process):
                client.send(encoded(*words) * 100)
                other.send(encoded("INFO"))
            info = other.read().decode()
            before = int(info.split("total_commands_processed:")[1].split()[0])
            assert before <= 30, (words[0], before)
            for _ in range(100):
                client.read()
        assert client.call("DEL", "h", "l") == 2 and client.call("PING") == "PONG"
        client.call("RPUSH", "l", *["x"] * 1000)
        assert client.call("FLUSHALL") == "OK" and client.call("RPUSH", "l", "x") == 1


def test_watched_collections():
    with Server() as server:
        client, other = server.client(), server.client()
        for first, change in (("HSET k a 1", "HSET k a 1"), ("HSET k a 1", "HDEL k a"), ("HSET k a 1", "HINCRBY k a 1"),
                              ("RPUSH k a", "LPUSH k b"), ("RPUSH k a", "LPOP k"), ("RPUSH k a", "LSET k 0 b"), ("RPUSH k a", "LREM k 0 a"),
                              ("RPUSH k a b", "LTRIM k 0 0"), ("RPUSH k a", "RPOPLPUSH k m"), ("RPUSH m a", "RPOPLPUSH m k"),
                              ("RPUSH k a", "LINSERT k BEFORE a b"), ("RPUSH k a", "RENAME k m")):
            for same in (change, "PING"):
                other.call("DEL", "k", "m")
                other.call(*first.split())
                client.call("WATCH", "k")
                assert not isinstance(other.call(*same.split()), Error), same
                client.call("MULTI")
                assert client.call("EXEC") == (None if same == change else []), same


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
