"""Tests the limit of memory and the policies of eviction: kv_eviction_test.py PROGRAM [NAME...]."""
import os
import random
import shutil
import signal
import tempfile

from client import Error, Server, encoded, expect, held, run, until
from redis import Redis, has_redis

TURN = 8192  # steps
OOM = Error("OOM command not allowed when used memory > 'maxmemory'.")
ABORTED = Error("EXECABORT Transaction discarded because of: " + OOM)
EARLIER = Error("EXECABORT Transaction discarded because of previous errors.")
VOLATILE = ("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl")


def with_file(body):
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    try:
        body(os.path.join(directory, "kv.aof"))
    finally:
        shutil.rmtree(directory)


def kill(server):
    server.end(signal.SIGKILL)
    server.process.returncode = 0


def number_of(server, client, name):
    return int(server.info(client)[name])


def call_all(client, requests):
    client.send(b"".join(encoded(*words) for words in requests))
    return [client.read() for _ in requests]


def fill(client, name="fill"):
    """Adds keys without an expiry until the memory is full."""
    for i in range(100000):
        reply = client.call("SET", f"{name}:{i}", "x" * 10000)
        if reply != "OK":
            assert reply == OOM, reply
            return i
    raise AssertionError("no limit")


def test_keys_are_evicted_for_new_ones():
    """With each policy. The append-only file has the same keys."""
    limit, count = 2000000, 20000

    def body(policy, path):
        with Server("--append-only", path, "--max-memory", limit, "--eviction", policy) as server:
            client = server.client()
            is_volatile = policy in VOLATILE
            stay = [f"stay:{i}" for i in range(100)]
            if is_volatile:
                assert client.call("MSET", *[word for name in stay for word in (name, "x" * 100)]) == "OK"
            for at in range(0, count, 1000):
                requests = [["SET", i, "x" * 100, *(["EX", 100000 + i] if is_volatile else [])] for i in range(at, at + 1000)]
                assert call_all(client, requests) == ["OK"] * 1000
                # (a larger array of buckets may come with the last key)
                assert number_of(server, client, "used_memory") <= limit + 150000, server.info(client)
            info = server.info(client)
            keys = set(client.call("KEYS", "*"))
            assert int(info["evicted_keys"]) == count + is_volatile * len(stay) - len(keys) > 0
            assert len(keys) > 5000 and info["maxmemory"] == str(limit) and info["maxmemory_policy"] == policy
            if is_volatile:
                assert {name.encode() for name in stay} <= keys
            if policy == "volatile-ttl":  # (the later ones expire later)
                left = sorted(int(key) for key in keys if not key.startswith(b"stay"))
                assert left == list(range(count - len(left), count))
            assert client.call("CONFIG", "RESETSTAT") == "OK" and number_of(server, client, "evicted_keys") == 0
            assert client.call("SET", "last", 1) == "OK"
            keys = sorted(client.call("KEYS", "*"))
            kill(server)
        with Server("--append-only", path) as server:
            assert sorted(server.client().call("KEYS", "*")) == keys
        with Server("--append-only", path, "--max-memory", limit // 2, "--eviction", policy) as server:
            client = server.client()
            assert sorted(client.call("KEYS", "*")) == keys  # (they are evicted for the next change)
            assert client.call("SET", "more", "x") == "OK" and number_of(server, client, "used_memory") < limit // 2 + 1000

    for policy in (*VOLATILE, "allkeys-lru", "allkeys-lfu", "allkeys-random"):
        with_file(lambda path: body(policy, path))


def test_keys_that_are_used_often_stay():
    """With allkeys-lfu. New keys begin with a small frequency."""
    with Server("--max-memory", 2000000, "--eviction", "allkeys-lfu", "--lfu-log-factor", 1) as server:
        client = server.client()
        often = [f"often:{i}" for i in range(100)]
        assert client.call("MSET", *[word for name in often for word in (name, "x" * 100)]) == "OK"
        call_all(client, [["GET", name] for name in often] * 200)
        for at in range(0, 20000, 1000):
            assert call_all(client, [["SET", i, "x" * 100] for i in range(at, at + 1000)]) == ["OK"] * 1000
        assert number_of(server, client, "evicted_keys") > 5000
        assert client.call("EXISTS", *often) == len(often)


USES = """
SET a 1|SET a 2|GET a|GET a|INCR a|APPEND a 1|SETRANGE a 1 1|STRLEN a|SET a 1 EX 100|SET a 1 XX|GETEX a PERSIST|TTL a|TYPE a|EXISTS a|TOUCH a|OBJECT ENCODING a|MGET a none|MSET a 1|EXPIRE a 100|PERSIST a
SETNX a 1|GETRANGE a 0 1|INCRBYFLOAT a 1|SETBIT a 1 1|GETBIT a 1|BITCOUNT a|BITFIELD a GET u8 0|RENAME a b|RENAME b a|COPY a b|GET b|COPY a b REPLACE|RENAMENX a b|RENAMENX a c|RENAME c a|SET big 1|APPEND big xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
LPUSH l 1 2 3|LPUSH l 1|LRANGE l 0 -1|LLEN l|LINDEX l 0|LSET l 0 x|LREM l 0 x|RPOP l|LPUSHX l 9|LINSERT l BEFORE 9 8|LTRIM l 0 5|LPOS l 9|SORT l|SADD s a b|SADD s c|SISMEMBER s a|SMEMBERS s|SCARD s|SREM s c|SUNION s|SINTER s|HSET h a 1|HSET h b 1|HGET h a|HGETALL h
HINCRBY h a 1|HDEL h b|HMGET h a b|HLEN h|ZADD z 1 a 2 b|ZADD z 3 c|ZSCORE z a|ZINCRBY z 1 a|ZRANGE z 0 -1|ZCARD z|ZREM z c|ZRANK z a|ZPOPMIN z|DBSIZE|SCAN 0|MULTI|GET a|GET a|INCR big|EXEC|WATCH a|UNWATCH|DEL a|SET a 1|GET a
"""


def uses_by(server):
    """The frequencies of all keys after each request, when each use counts. (A request that looks at a key twice counts twice in redis.)"""
    client, shown = server.client(), []
    assert client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu", "lfu-log-factor", 0, "lfu-decay-time", 0, "maxmemory", 1 << 30) == "OK" # (without it, redis shares small numbers)
    for text in USES.replace("\n", "|").strip("|").split("|"):
        client.call(*text.split())
        if client.call("PING") == "PONG": # (not in a transaction)
            shown.append((text, [client.call("OBJECT", "FREQ", key) for key in "a b c big l s h z none".split()]))
    return shown


def test_frequencies_are_those_of_redis():
    if not has_redis():
        return
    with Server() as server, Redis() as redis:
        for own, wanted in zip(uses_by(server), uses_by(redis)):
            assert own == wanted, (own, wanted)


def test_a_policy_has_frequencies_or_times():
    adjust = "not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
    times, frequencies = (Error(f"ERR An LFU maxmemory policy is {what} {adjust}") for what in ("not selected, access frequency", "selected, idle time"))
    with Server("--eviction", "volatile-lfu") as server:
        client = server.client()
        expect(client, ("SET a 1", "OK"), ("OBJECT FREQ a", 5), ("OBJECT FREQ none", None), ("OBJECT IDLETIME a", frequencies), ("OBJECT IDLETIME none", None),
               ("CONFIG SET maxmemory-policy allkeys-lru", "OK"), ("GET a", b"1"), ("OBJECT IDLETIME a", 0), ("OBJECT FREQ a", times), ("OBJECT FREQ none", None))


def test_memory_is_counted():
    """Everything that was added and removed is gone again."""
    with Server() as server:
        client = server.client()
        assert server.info(client)["used_memory"] == "0"
        for _ in range(2):
            for words, size in ((["SET", "a", "x" * 100000], 100000), (["APPEND", "a", "x" * 100000], 100000), (["RPUSH", "l", *["x" * 1000] * 100], 100000),
                                (["SADD", "s", *range(10000)], 300000), (["HSET", "h", *range(20000)], 300000),
                                (["ZADD", "z", *[word for i in range(10000) for word in (i, i)]], 900000), (["COPY", "z", "y"], 900000),
                                (["ZUNIONSTORE", "x", 2, "z", "y"], 900000), (["SORT", "s", "STORE", "t"], 200000),
                                (["MSET", *[word for i in range(2000) for word in (i, "x" * 50)]], 150000),
                                (["EXPIRE", "z", 1000], 0), (["LTRIM", "l", 0, 10], -80000), (["SET", "a", "x"], -100000), (["SREM", "s", *range(9999)], -200000),
                                (["DEL", "h", "y", "x"], -2000000)):
                before = number_of(server, client, "used_memory")
                client.call(*words)
                until(lambda: server.info(client)["lazyfree_pending_objects"] == "0")
                change = number_of(server, client, "used_memory") - before
                assert size <= change <= 4 * size + 20000 if size >= 0 else change <= size, (words[:2], size, change)
            assert client.call("FLUSHALL") == "OK"
            until(lambda: server.info(client)["used_memory"] == "0")


def test_memory_of_expiries_is_given_back():
    """Whatever removes them: eviction, deletion or PERSIST. Otherwise no key fits below a smaller limit."""
    count = 100000

    def fill_with_expiries():
        for at in range(0, count, 10000):
            assert call_all(client, [["SET", i, "x", "EX", 100000 + i] for i in range(at, at + 10000)]) == ["OK"] * 10000

    with Server("--eviction", "volatile-ttl") as server:
        client = server.client()
        fill_with_expiries()
        expect(client, ("CONFIG SET maxmemory 1000000", "OK"), ("SET a x EX 1", "OK"))
        assert number_of(server, client, "used_memory") <= 1001000
        assert 1000 < client.call("DBSIZE") < count
        expect(client, ("CONFIG SET maxmemory 0", "OK"), ("FLUSHALL", "OK"))
        fill_with_expiries()
        before = number_of(server, client, "used_memory")
        assert call_all(client, [["PERSIST", i] for i in range(count)]) == [1] * count
        assert before - number_of(server, client, "used_memory") >= count * 16
        assert client.call("PEXPIRE", 0, 100000) == 1 and client.call("PERSIST", 0) == 1
        fill_with_expiries()
        assert client.call("DEL", *range(count - 1)) == count - 1
        until(lambda: server.info(client)["lazyfree_pending_objects"] == "0")
        assert number_of(server, client, "used_memory") < 100000
        assert client.call("TTL", count - 1) > 0


GROW = ("APPEND s x", "BITFIELD s GET u8 0", "BITOP NOT t s", "BLMOVE l l LEFT LEFT 1", "BRPOPLPUSH l l 1", "COPY s t", "DECR n", "DECRBY n 1", "GETSET s x",
        "HINCRBY h a 1", "HINCRBYFLOAT h a 1", "HMSET h a b", "HSET h a b", "HSETNX h a b", "INCR n", "INCRBY n 1", "INCRBYFLOAT n 1",
        "LINSERT l BEFORE a b", "LMOVE l l LEFT LEFT", "LPUSH l a", "LPUSHX l a", "LSET l 0 a", "MSET s t", "MSETNX s t", "PSETEX s 10 x", "RPOPLPUSH l l",
        "RPUSH l a", "RPUSHX l a", "SADD m a", "SDIFFSTORE m m", "SET s x", "SETBIT s 0 1", "SETEX s 10 x", "SETNX s x", "SETRANGE s 0 x",
        "SINTERSTORE m m", "SORT l ALPHA", "SUNIONSTORE m m", "ZADD z 1 a", "ZDIFFSTORE z 1 z", "ZINCRBY z 1 a", "ZINTERSTORE z 1 z", "ZRANGESTORE y z 0 1",
        "ZUNIONSTORE z 1 z")
OTHERS = ("GET s", "STRLEN s", "LRANGE l 0 -1", "SORT_RO l ALPHA", "EXISTS s", "TTL s", "EXPIRE s 1000", "PERSIST s", "RENAME s t", "RENAME t s", "GETEX s EX 100", "LPOP l",
          "SPOP m", "HDEL h a", "ZREM z a", "PUBLISH c x", "PING", "WATCH a", "UNWATCH", "GETDEL s")


def test_without_eviction_what_needs_memory_is_refused():
    """The same commands as in redis, with its text."""
    with Server("--max-memory", 1000000) as server:
        client = server.client()
        expect(client, ("SET s x", "OK"), ("RPUSH l a b", 2), ("SADD m a b", 2), ("HSET h a 1", 1), ("ZADD z 1 a", 1))
        assert 90 <= fill(client) <= 100
        assert number_of(server, client, "used_memory") > 1000000 and number_of(server, client, "evicted_keys") == 0
        expect(client, *((words, OOM) for words in GROW))
        for words in OTHERS:
            assert not isinstance(client.call(*words.split()), Error), words
        assert client.call("DEL", "fill:0", "fill:1") == 2 and client.call("SET", "s", "x") == "OK"
        expect(client, ("CONFIG SET maxmemory 1", "OK"), ("SET s y", OOM), ("CONFIG SET maxmemory 2mb", "OK"), ("SET s y", "OK"),
               ("CONFIG SET maxmemory 1 maxmemory-policy ALLKEYS-random", "OK"), ("CONFIG GET maxmemory*", [b"maxmemory", b"1", b"maxmemory-policy", b"allkeys-random"]),
               ("SET s z", OOM), ("DBSIZE", 0), ("CONFIG SET maxmemory 0", "OK"), ("SET s z", "OK"))


def test_a_result_that_is_stored_in_slices_may_exceed_the_limit():
    """Memory is made before a command, not between its slices, so its sources stay."""
    count = 5 * TURN
    for policy in ("noeviction", "allkeys-lru", "allkeys-random"):
        with Server("--eviction", policy) as server:
            client = server.client()
            for at in range(0, count, TURN):
                numbers = range(at, at + TURN)
                client.call("SADD", f"s:{at}", *numbers)
                client.call("ZADD", f"z:{at}", *[word for i in numbers for word in (i, i)])
            for store, name in (("SUNIONSTORE", "s"), ("ZUNIONSTORE", "z")):
                sources = [f"{name}:{at}" for at in range(0, count, TURN)]
                keys = [len(sources), *sources] if name == "z" else sources
                assert client.call("CONFIG", "SET", "maxmemory", number_of(server, client, "used_memory") + 1000) == "OK"
                turns = number_of(server, client, "turns_ended")
                assert client.call(store, "to", *keys) == count, (policy, store)
                assert number_of(server, client, "turns_ended") - turns >= count // TURN - 1
                assert client.call("EXISTS", *sources) == len(sources)
                assert number_of(server, client, "used_memory") > int(server.info(client)["maxmemory"])
                if policy == "noeviction":
                    expect(client, ("SET a x", OOM))
                expect(client, ("CONFIG SET maxmemory 0", "OK"), ("DEL to", 1))
                until(lambda: server.info(client)["lazyfree_pending_objects"] == "0")
                assert number_of(server, client, "evicted_keys") == 0


def test_transactions_without_memory():
    """As in redis: nothing is queued without memory, and EXEC is refused if a queued request needs some."""
    with Server("--max-memory", 1000000) as server:
        client, other = server.client(), server.client()
        expect(client, ("SET a x", "OK"), ("MULTI", "OK"), ("GET a", "QUEUED"), ("SET b x", "QUEUED"))
        fill(other)
        expect(client, ("EXEC", ABORTED), ("GET b", None), ("GET a", b"x"), ("MULTI", "OK"), ("GET a", OOM), ("EXEC", EARLIER), ("MULTI", "OK"),
               ("DISCARD", "OK"), ("MULTI", "OK"), ("EXEC", []), ("MULTI", "OK"), ("SET b x", OOM), ("RESET", "RESET"), ("EXEC", Error("ERR EXEC without MULTI")))
        other.call("DEL", "fill:0", "fill:1")
        expect(client, ("MULTI", "OK"), ("GET a", "QUEUED"))
        fill(other, "more")
        expect(client, ("EXEC", [b"x"]))


def test_an_evicted_key_has_changed():
    """For those that watch it, and for those that wait for another value of it."""
    with Server("--max-memory", 1000000, "--eviction", "volatile-ttl") as server:
        client, waiting, other = server.client(), server.client(), server.client()
        waiting.send(encoded("BLPOP", "b", 0))
        until(lambda: server.info(client)["blocked_clients"] == "1")
        expect(client, ("SET a x EX 1000", "OK"), ("SET b x EX 2000", "OK"), ("WATCH a", "OK"), ("MULTI", "OK"), ("GET a", "QUEUED"))
        fill(other)
        assert number_of(server, other, "evicted_keys") == 2
        expect(client, ("EXEC", None), ("EXISTS a b", 0))
        assert other.call("DEL", "fill:0", "fill:1") == 2
        expect(client, ("RPUSH b y", 1))
        assert waiting.read() == [b"b", b"y"]


def test_large_values_are_evicted_in_turns():
    """The client that needs the memory waits for it, and others have their turn."""
    count = 100000
    with Server("--eviction", "allkeys-lru") as server:
        for first in (1, -1):
            client, other = server.client(), server.client()
            for at in range(0, count, 10000):
                client.call("RPUSH", "list", *range(at, at + 10000))
            expect(other, ("CONFIG SET maxmemory 1000", "OK"))
            before, turns = number_of(server, other, "total_work"), number_of(server, other, "turns_ended")
            with held(server.process):
                for one, data in ((client, encoded("SET", "a", "x")), (other, encoded("INFO")))[::first]:
                    one.send(data)
            info = other.read().decode()
            assert int(info.split("total_work:")[1].split()[0]) - before <= 2 * TURN, info
            assert client.read() == "OK"
            # (a coroutine frees a part of it)
            assert number_of(server, other, "turns_ended") - turns >= count // TURN // 2
            expect(other, ("EXISTS list", 0), ("CONFIG SET maxmemory 0", "OK"))


def test_policies_beside_each_other_at_random():
    """Changes of all types, evictions and limits that change; the append-only file has the same afterwards."""
    def body(path):
        with Server("--append-only", path, "--max-memory", 300000, "--eviction", "allkeys-lru") as server:
            client = server.client()
            policies = (*VOLATILE, "allkeys-lru", "allkeys-lfu", "allkeys-random")
            for _ in range(60):
                assert client.call("CONFIG", "SET", "maxmemory-policy", random.choice(policies), "maxmemory", random.randrange(50000, 400000)) == "OK"
                requests = []
                for _ in range(200):
                    key, number = random.randrange(300), random.randrange(1000)
                    requests.append(random.choice([["SET", f"s{key}", "x" * number], ["SET", f"s{key}", "x" * number, "EX", 1000 + number],
                                                   ["RPUSH", f"l{key}", *range(1 + number // 50)], ["SADD", f"m{key}", number], ["HSET", f"h{key}", number, number],
                                                   ["ZADD", f"z{key}", number, number], ["EXPIRE", f"l{key}", 1000], ["LMOVE", f"l{key}", f"l{number}", "LEFT", "LEFT"],
                                                   ["ZUNIONSTORE", f"z{key}", 2, f"z{number}", f"m{key}"], ["DEL", f"s{key}"]]))
                for reply in call_all(client, requests):
                    assert not isinstance(reply, Error) or reply == OOM, reply
            assert number_of(server, client, "evicted_keys") > 0
            keys = sorted(client.call("KEYS", "*"))
            values = [client.call("SORT_RO", key, "ALPHA") if key[:1] in b"lmz" else client.call("OBJECT", "ENCODING", key) for key in keys]
            kill(server)
        with Server("--append-only", path) as server:
            client = server.client()
            assert sorted(client.call("KEYS", "*")) == keys
            assert values == [client.call("SORT_RO", key, "ALPHA") if key[:1] in b"lmz" else client.call("OBJECT", "ENCODING", key) for key in keys]

    with_file(body)


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
