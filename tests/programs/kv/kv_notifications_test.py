"""Tests notifications of events of keys, also beside redis-server: kv_notifications_test.py PROGRAM [NAME...]."""
from client import Error, Push, Server, encoded, expect, held, rounds_of, run, run_rejected, until
from redis import Redis, has_redis

TURN = 8192  # steps
CLASSES = "notify-keyspace-events"

REQUESTS = """
SET a 1|SET a 2|SET a 1 EX 100|SET a 1 PX 100000 NX|SET a 1 XX KEEPTTL|SET b 1 NX GET|SET none 1 XX|SET none 1 XX GET|SET a 3 GET|SET a 1 EXAT 9999999999|SET a 1 EX x|SETNX a 1|SETNX c 1
SETEX a 100 1|PSETEX d 100000 1|GETSET a 2|GETSET e 1|GETDEL e|GETDEL e|GETEX a|GETEX a EX 100|GETEX a PERSIST|GETEX a PERSIST|GETEX a PXAT 1|GETEX a EX 100
MSET a 1 b 2 a 3|MSETNX a 1 n1 2|MSETNX n1 1 n2 2|MGET a none b none2 none|APPEND a x|APPEND n3 x|SETRANGE a 2 y|SETRANGE n4 2 y|SETRANGE n5 0|STRLEN a|STRLEN none|GETRANGE none 0 1|GET a|GET none
DEL a b|SET a 1|INCR a|INCRBY a 2|DECR a|DECRBY b 2|INCRBYFLOAT a 1.5|INCRBYFLOAT n6 1.5|INCR n4|SETBIT bits 3 1|SETBIT bits 3 1|SETBIT bits 30 0|SETBIT bits 3 0|SETBIT n7 0 0|GETBIT bits 1|GETBIT none 1
BITCOUNT none|BITCOUNT bits|BITPOS none 1|BITPOS bits 1|BITOP OR to bits none a|BITOP NOT to bits|BITOP AND to none none|BITOP AND to none none2|BITFIELD bits SET u8 0 1 INCRBY u8 0 2 GET u8 0|BITFIELD none GET u8 0
BITFIELD bits SET u8 0 3|BITFIELD n8 SET u8 0 0|BITFIELD bits OVERFLOW FAIL INCRBY u2 0 5|BITFIELD_RO none GET u8 0|BITFIELD_RO bits GET u8 0|LCS a none|LCS none none2 LEN|SUBSTR none 0 1
DEL a b c|DEL a none|UNLINK n1 none|EXISTS n2 none none2|TOUCH n2 none|TYPE none|TYPE n2|TTL none|PTTL none|TTL n2|EXPIRETIME none|PEXPIRETIME none|OBJECT ENCODING none|OBJECT ENCODING n2|OBJECT IDLETIME none
EXPIRE n2 100|EXPIRE none 100|EXPIRE n2 200 NX|EXPIRE n2 200 XX|PEXPIRE n2 100000 GT|EXPIREAT n2 9999999999|PEXPIREAT n2 9999999999000|PERSIST n2|PERSIST n2|PERSIST none|EXPIRE n2 0|SET n2 1|PEXPIREAT n2 1|EXPIRE n2 -1
SET a 1|RENAME a b|RENAME none b|RENAME b b|SET a 2|RENAME a b|SET a 1 EX 100|RENAMENX a b|RENAMENX a c|RENAMENX none c|COPY c d|COPY c d2|COPY c d REPLACE|COPY none d|COPY none d REPLACE|COPY c c|RANDOMKEY|DBSIZE|KEYS nothing
LPUSH l a b c|LPUSH l d|RPUSH l e f|LPUSHX l g|RPUSHX l h|LPUSHX none a|LLEN l|LLEN none|LINDEX none 0|LRANGE none 0 1|LRANGE l 0 1|LPOS none a|LSET l 0 z|LSET none 0 z|LSET l 100 z|LINSERT l BEFORE a x|LINSERT l AFTER none x
LINSERT none BEFORE a x|LREM l 0 x|LREM l 0 none|LREM none 0 x|LPOP l|RPOP l|LPOP l 2|LPOP l 0|LPOP none|RPOP none 2|LTRIM l 0 -1|LTRIM l 0 1|LTRIM l 1 0|LTRIM none 0 1|RPUSH l a b|LMOVE l l LEFT RIGHT|LMOVE l l LEFT LEFT|LMOVE l m LEFT RIGHT
LMOVE l m RIGHT LEFT|LMOVE none m LEFT LEFT|RPOPLPUSH m m|RPOPLPUSH m l|RPOPLPUSH m l|RPOPLPUSH l l|LMPOP 2 none l LEFT|LMPOP 2 none l RIGHT COUNT 5|LMPOP 1 none LEFT|RPUSH l a|BLPOP none l 0|RPUSH l a|BRPOP l 0|RPUSH l a
BLMOVE l m LEFT LEFT 0|BRPOPLPUSH m l 0|BLMPOP 0 1 l LEFT|RPUSH l a a|LREM l 0 a|RPUSH l a|LREM l 1 a|BLPOP none 0.001|LPUSH n3 a
HSET h a 1|HSET h a 1|HSET h a 1 b 2|HMSET h c 1|HSETNX h c 1|HSETNX h d 1|HSETNX h2 d 1|HINCRBY h a 2|HINCRBY h n 2|HINCRBY h4 n 2|HINCRBYFLOAT h a 1.5|HINCRBYFLOAT h5 a 1.5|HINCRBY h a x|HINCRBY h a 1|HDEL h a none|HDEL h none|HDEL none a
HDEL h a b c d n|HDEL h2 d|HGET h a|HGET none a|HMGET none a b|HLEN none|HSTRLEN none a|HEXISTS none a|HGETALL none|HKEYS none|HVALS none|HRANDFIELD none|HRANDFIELD none 2|HSCAN none 0|HGET h4 n|HGET h4 none|HSET n3 a b
SADD s a b c|SADD s a|SADD s d a|SREM s a none|SREM s none|SREM none a|SCARD s|SCARD none|SISMEMBER none a|SMISMEMBER none a b|SMEMBERS none|SMEMBERS s|SRANDMEMBER none|SRANDMEMBER none 2|SSCAN none 0|SMOVE s t b|SMOVE s t none|SMOVE none t a
SADD t c|SMOVE s t c|SMOVE t t b|SMOVE s t d|SMOVE t u b|SMOVE s n3 a|SADD s a b c d e|SPOP s|SPOP s 2|SPOP s 0|SPOP s 9|SPOP none|SPOP none 2|SADD s a|SPOP s|SADD s a b c|SADD t c d|SINTER s t|SINTER s none t|SUNION none s|SDIFF s none t
SINTERSTORE to s t|SINTERSTORE to s none|SINTERSTORE to s none|SUNIONSTORE to s t none|SUNIONSTORE to s|SDIFFSTORE to s t|SDIFFSTORE to s s|SDIFFSTORE to none s|SUNIONSTORE none none2|SINTERCARD 2 s none|SUNIONSTORE n3 s|SINTERSTORE s s t|SREM s c
ZADD z 1 a 2 b|ZADD z 1 a|ZADD z 3 a|ZADD z NX 4 a|ZADD z XX 4 none|ZADD z GT 1 a|ZADD z INCR 1 a|ZADD z NX INCR 1 a|ZINCRBY z 1 a|ZINCRBY z 0 a|ZINCRBY y 1 a|ZADD none XX 1 a|ZADD z x a|ZREM z a none|ZREM z none|ZREM none a|ZREM z b
ZADD z 1 a 2 b 3 c 4 d 5 e 6 f|ZREMRANGEBYRANK z 0 0|ZREMRANGEBYSCORE z 2 2|ZREMRANGEBYLEX z [c [c|ZREMRANGEBYRANK z 9 9|ZREMRANGEBYSCORE none 0 1|ZREMRANGEBYLEX z - +|ZADD z 1 a 2 b 3 c 4 d|ZPOPMIN z|ZPOPMAX z|ZPOPMIN z 9|ZPOPMAX none|ZPOPMIN z 2
ZADD z 1 a 2 b|ZMPOP 2 none z MIN|ZMPOP 1 z MAX COUNT 3|ZMPOP 1 z MAX|ZADD z 1 a 2 b|BZPOPMIN none z 0|BZPOPMAX z 0|ZADD z 1 a 2 b|BZMPOP 0 1 z MAX COUNT 1|ZCARD none|ZSCORE none a|ZMSCORE none a|ZRANK none a|ZREVRANK none a|ZRANGE none 0 1
ZRANGEBYSCORE none 0 1|ZREVRANGE none 0 1|ZREVRANGEBYSCORE none 1 0|ZRANGEBYLEX none - +|ZREVRANGEBYLEX none + -|ZCOUNT none 0 1|ZLEXCOUNT none - +|ZRANDMEMBER none|ZSCAN none 0|ZRANGESTORE to z 0 -1|ZRANGESTORE to none 0 -1|ZRANGESTORE to none 0 -1
ZUNION 2 z none|ZINTER 2 none z|ZDIFF 2 z none|ZINTERCARD 2 z none|ZUNIONSTORE to 2 z none|ZINTERSTORE to 2 z z|ZDIFFSTORE to 2 z none|ZDIFFSTORE to 2 z z|ZDIFFSTORE to 2 z z|ZINTERSTORE to 2 none z|ZREMRANGEBYRANK y 0 -1
RPUSH l 3 1 2|SORT l|SORT l STORE to|SORT none STORE to|SORT none STORE to|SORT none|SORT_RO none|SORT l BY none_* GET a_* STORE to|SORT l BY none_*->f GET # GET a_*->g|SORT l BY nothing GET none_*|SORT l LIMIT 9 1 STORE to|SORT l STORE l
FLUSHALL|SET a 1|FLUSHDB|GET a|SET a b|INCR a|LPUSH a x|HGET a x|SINTERSTORE to a|RENAME a b|DEL b|SCAN 0|PING|PUBLISH channel message
MULTI|SET a 1|DEL a none|PUBLISH channel message|LPUSH l a|EXEC|MULTI|SET a 1|DISCARD|WATCH a|MULTI|GET a|EXEC|WATCH l|LPUSH l b|MULTI|SET a 1|EXEC
MULTI|INCR a|INCR l|RPOP l|RPOP l|GET l|EXEC|MULTI|BLPOP l 0|BLMOVE l m LEFT LEFT 0|EXEC|FLUSHALL
"""


def messages_until(subscriber, end):
    """What a subscriber has had before the message `end` to the channel "marker"."""
    got = []
    while True:
        message = subscriber.read()
        if message[-2:] == [b"marker", end]:
            return got
        got.append(message[-2:])


class Watched:
    """A server, a client that has its notifications, and one that marks where they end."""

    def __init__(self, server, classes):
        self.server, self.subscriber, self.marker = server, server.client(), server.client()
        self.client, self.shown, self.marks = server.client(), {}, 0
        assert self.marker.call("CONFIG", "SET", CLASSES, classes) == "OK"
        self.subscriber.call("PSUBSCRIBE", "*")

    def messages(self):
        self.marks += 1
        self.marker.call("PUBLISH", "marker", self.marks)
        return messages_until(self.subscriber, b"%d" % self.marks)

    def note(self, name):
        self.shown[f"{len(self.shown)}: {name}"] = self.messages()

    def has_message(self, message):
        got = []
        while message not in got:
            got.append(self.subscriber.read()[-2:])
        return got


def run_blocked(watched):
    """Clients that wait for elements have them when these are added."""
    for wait, add in (("BLPOP q 0", "RPUSH q a"), ("BLPOP q 0", "RPUSH q a b"), ("BRPOP q 0", "LPUSH q a b"), ("BLMOVE q r LEFT RIGHT 0", "LPUSH q a"),
                      ("BRPOPLPUSH q q 0", "LPUSH q a"), ("BLMPOP 0 2 q p LEFT COUNT 2", "RPUSH p a"), ("BZPOPMIN w 0", "ZADD w 1 a"), ("BZMPOP 0 1 w MAX", "ZADD w 1 a 2 b"),
                      ("BLPOP q 0", "LMOVE r q LEFT LEFT"), ("BZPOPMAX w 0", "ZUNIONSTORE w 1 w2"), ("BLPOP q 0", "SORT p STORE q")):
        blocked = watched.server.client()
        watched.client.call("DEL", "q", "w", "p")
        watched.client.call("ZADD", "w2", 1, "a")
        watched.client.call("RPUSH", "p", 1) if add.startswith("SORT") else None
        blocked.send(encoded(*wait.split()))
        until(lambda: b"blocked_clients:1\r" in watched.marker.call("INFO", "clients"))
        watched.client.call(*add.split())
        blocked.read()
        watched.note(f"{wait}; {add}")
        blocked.close()


def shown_by(server, classes):
    watched = Watched(server, classes)
    for text in REQUESTS.replace("\n", "|").strip("|").split("|"):
        watched.client.call(*text.split())
        watched.note(text)
    run_blocked(watched)
    return watched.shown


def test_the_messages_are_those_of_redis():
    """Of each request, with all classes and with each alone."""
    if not has_redis():
        return
    every = ("KEAmn", "K$m", "Eg", "Kln", "Es", "Kh", "Ez", "AE", "g", "KEn", "Em", "KE", "")
    # (the back ends do not differ in this)
    for classes in every if rounds_of(16) > 1 and Server.io == "epoll" else every[:1]:
        with Server() as server, Redis() as redis:
            own, wanted = shown_by(server, classes), shown_by(redis, classes)
            has_any = any(channel.startswith(b"__key") for messages in wanted.values() for channel, _ in messages)
            assert has_any == (len(classes) > 1 and classes != "KE"), classes
            for name in wanted:
                assert own[name] == wanted[name], (classes, name, own[name], wanted[name])


def ends_by_itself(server):
    """The messages of keys that expire and that are evicted."""
    watched = Watched(server, "KEA")
    watched.client.call("SET", "a", "1", "PX", "1")
    got = watched.has_message([b"__keyevent@0__:expired", b"a"])
    watched.client.call("SET", "a", "1", "PX", "1")
    until(lambda: watched.client.call("GET", "a") is None)
    got += watched.messages()
    watched.client.call("SET", "a", "1")
    watched.client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "1")
    until(lambda: isinstance(watched.client.call("SET", "b", "1"), Error))
    return got + watched.has_message([b"__keyevent@0__:evicted", b"a"])


def test_keys_that_expire_or_are_evicted():
    wanted = []
    for event, where in (("set", "a"), ("expire", "a"), ("expired", "a")) * 2 + (("set", "a"), ("evicted", "a")):
        wanted += [[b"__keyspace@0__:" + where.encode(), event.encode()], [b"__keyevent@0__:" + event.encode(), where.encode()]]
    with Server() as server:
        got = ends_by_itself(server)
        assert got == wanted, got
    if has_redis():
        with Redis() as redis:
            assert ends_by_itself(redis) == wanted


def test_config_has_the_classes_as_redis_has_them():
    texts = ("", "A", "K", "E", "KEA", "AKE", "g$lshzxetd", "g$lshzxetdn", "An", "KEAmn", "Amn", "m", "n", "nK", "xE", "dt", "gg", "g$lshzxet", "q", "KEAx", "kea", "Kx ", "AA", "EKmn$")
    answers = []
    with Server("--notify", "Kx") as server:
        expect(server.client(), ("CONFIG GET " + CLASSES, [CLASSES.encode(), b"xK"]))
    for make in (Server,) + ((Redis,) if has_redis() else ()):
        with make() as server:
            client = server.client()
            expect(client, ("CONFIG GET " + CLASSES, [CLASSES.encode(), b""]))
            answers.append([(client.call("CONFIG", "SET", CLASSES, text), client.call("CONFIG", "GET", CLASSES)) for text in texts])
    assert all(answer == answers[0] for answer in answers), answers
    assert answers[0][texts.index("KEAmn")] == ("OK", [CLASSES.encode(), b"AKEm"])


def test_an_unknown_class_is_rejected():
    assert run_rejected("--notify", "Kq") == (2, "kv: --notify takes letters of Ag$lshzxeKEtmdn, not Kq\nTry 'kv --help'.\n"), run_rejected("--notify", "Kq")


def test_subscribers_of_one_channel():
    with Server("--notify", "KEA") as server:
        client, key, event = server.client(), server.client(), server.client()
        key.call("SUBSCRIBE", "__keyspace@0__:a")
        event.call("SUBSCRIBE", "__keyevent@0__:del")
        expect(client, ("MSET a 1 b 2", "OK"), ("DEL b a", 2))
        assert [key.read() for _ in range(2)] == [[b"message", b"__keyspace@0__:a", name] for name in (b"set", b"del")]
        assert [event.read() for _ in range(2)] == [[b"message", b"__keyevent@0__:del", name] for name in (b"b", b"a")]


def test_own_messages_follow_the_replies():
    """Of a client that has subscribed, with RESP3; also in a transaction, of slices, and if it has no replies."""
    with Server("--notify", "KAmn") as server:
        client, other = server.client(), server.client()

        def pushed(key, event):
            return Push([b"pmessage", b"*", b"__keyspace@0__:" + key, event])

        client.call("HELLO", 3)
        assert client.call("PSUBSCRIBE", "*") == Push([b"psubscribe", b"*", 1])
        client.send(b"".join(encoded(*words.split()) for words in (
            "MSET a 1 b 2", "MGET a none b", "DEL a b", "MULTI", "RPUSH l x", "PUBLISH c m", "LPOP l", "EXEC", "CLIENT REPLY SKIP", "SET a 1", "GET a",
            "CLIENT REPLY OFF", "MULTI", "DEL a", "EXEC", "CLIENT REPLY ON")))
        wanted = ["OK", *[pushed(key, event) for key in (b"a", b"b") for event in (b"new", b"set")], [b"1", None, b"2"], pushed(b"none", b"keymiss"), 2, pushed(b"a", b"del"), pushed(b"b", b"del"),
                  "OK", "QUEUED", "QUEUED", "QUEUED", [1, 1, b"x"], pushed(b"l", b"new"), pushed(b"l", b"rpush"), Push([b"pmessage", b"*", b"c", b"m"]), pushed(b"l", b"lpop"), pushed(b"l", b"del"),
                  pushed(b"a", b"new"), pushed(b"a", b"set"), b"1", pushed(b"a", b"del"), "OK"]
        got = [client.read() for _ in wanted]
        assert got == wanted, got
        assert [type(one) for one in got] == [type(one) for one in wanted]
        client.send(encoded("BLPOP", "l", 0))
        until(lambda: server.info(other)["blocked_clients"] == "1")
        assert other.call("RPUSH", "l", "y") == 1
        wanted = [pushed(b"l", b"new"), pushed(b"l", b"rpush"), [b"l", b"y"], pushed(b"l", b"lpop"), pushed(b"l", b"del")]
        assert [client.read() for _ in wanted] == wanted


def test_long_keys_have_no_channel():
    """Of their own: no pattern is compared with it. Events have the key."""
    longest = "k" * (4096 - len("__keyspace@0__:"))
    with Server("--notify", "KEA") as server:
        client, subscriber = server.client(), server.client()
        subscriber.call("PSUBSCRIBE", "*")
        for key in (longest, longest + "k", "k" * 100000):
            client.call("SET", key, "1")
        client.call("PUBLISH", "marker", "end")
        got = messages_until(subscriber, b"end")
        assert got == [[("__keyspace@0__:" + longest).encode(), b"set"]] + [[b"__keyevent@0__:set", key.encode()] for key in (longest, longest + "k", "k" * 100000)]


def test_a_slow_subscriber_is_disconnected():
    with Server("--notify", "KEA", "--backlog", 1 << 20) as server:
        client, subscriber = server.client(), server.client()
        subscriber.call("PSUBSCRIBE", "*")
        before = int(server.info(client)["subscribers_cut_off"])
        while int(server.info(client)["subscribers_cut_off"]) == before:
            assert client.call("SET", "k" * 400000, "1") == "OK"
        while subscriber.file.read(1 << 16):
            pass


def test_notifications_give_others_their_turn():
    """A step for each subscriber. Others wait for a turn, counted in steps; all subscribers have the messages in the same order."""
    count, keys = 100, 200
    with Server() as server:
        greedy, other = server.client(), server.client()
        subscribers = [server.client() for _ in range(count)]
        for subscriber in subscribers:
            subscriber.call("PSUBSCRIBE", "__key*")
        names = [f"k{i}" for i in range(keys)]
        greedy.call("MSET", *[word for name in names for word in (name, "1")])
        expect(other, (f"CONFIG SET {CLASSES} KEA", "OK"))
        before = server.info(other)
        with held(server.process):
            greedy.send(encoded("DEL", *names) + encoded("MULTI") + encoded("MSET", *[word for name in names for word in (name, "1")]) + encoded("EXEC"))
            other.send(encoded("INFO"))
        info = other.read().decode()
        steps = int(info.split("total_work:")[1].split()[0]) - int(before["total_work"])
        assert steps <= 3 * TURN + 4 * count + 4 * keys, steps
        assert [greedy.read() for _ in range(4)] == [keys, "OK", "QUEUED", ["OK"]]
        assert greedy.call("PUBLISH", "__key_end", "end") == count
        after = server.info(other)
        work, turns = (int(after[name]) - int(before[name]) for name in ("total_work", "turns_ended"))
        messages = 2 * 2 * keys
        assert messages * count <= work <= 2 * messages * count, (work, messages * count)
        assert turns >= messages * count // (2 * TURN) - 2, turns
        wanted = []
        for event in ("del", "set"):
            for name in names:
                wanted += [[b"__keyspace@0__:" + name.encode(), event.encode()], [b"__keyevent@0__:" + event.encode(), name.encode()]]
        for subscriber in subscribers:
            got = [subscriber.read()[-2:] for _ in range(len(wanted) + 1)]
            assert got[:-1] == wanted and got[-1] == [b"__key_end", b"end"], got


def test_many_keys_expire_with_notifications():
    """They are delivered in slices, and all of them arrive."""
    count, keys = 40, 1000
    with Server("--notify", "Ex") as server:
        client = server.client()
        subscribers = [server.client() for _ in range(count)]
        for subscriber in subscribers:
            subscriber.call("PSUBSCRIBE", "*")
        client.send(b"".join(encoded("SET", f"k{i}", "1", "PX", 1) for i in range(keys)))
        for _ in range(keys):
            assert client.read() == "OK"
        for subscriber in subscribers:
            got = {subscriber.read()[-1] for _ in range(keys)}
            assert got == {b"k%d" % i for i in range(keys)}
        assert client.call("DBSIZE") == 0


def test_a_request_with_very_many_notifications():
    """Queued ones are limited: beyond that the request delivers some itself."""
    keys = 75000
    with Server("--notify", "E$", "--backlog", 1 << 30) as server:
        client = server.client()
        subscriber = server.client()
        subscriber.call("PSUBSCRIBE", "*")
        client.send(encoded("MSET", *[word for i in range(keys) for word in (i, 1)]) + encoded("PING"))
        assert client.read() == "OK" and client.read() == "PONG"
        for i in range(keys):
            assert subscriber.read()[-1] == b"%d" % i


def test_a_client_leaves_before_its_notifications_are_delivered():
    count, keys = 40, 300
    with Server("--notify", "K$") as server:
        client, other = server.client(), server.client()
        subscribers = [server.client() for _ in range(count)]
        for subscriber in subscribers:
            subscriber.call("PSUBSCRIBE", "*")
        with held(server.process):
            client.send(encoded("MSET", *[word for i in range(keys) for word in (i, 1)]))
            client.vanish()
        until(lambda: other.call("EXISTS", keys - 1) == 1 or int(server.info(other)["connected_clients"]) == count + 1)
        other.call("MSET", *[word for i in range(keys) for word in (i, 1)])
        assert other.call("PUBLISH", "marker", "end") == count
        for subscriber in subscribers:
            got = messages_until(subscriber, b"end")
            assert got[-keys:] == [[b"__keyspace@0__:%d" % i, b"set"] for i in range(keys)]
            assert len(got) in (keys, 2 * keys)


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
