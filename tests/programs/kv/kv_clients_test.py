"""Tests clients that vanish, shortage of descriptors, shutdown and options of the key-value server:
kv_clients_test.py PROGRAM [NAME...]."""
import random
import signal
import socket

from client import PATIENCE, Client, Error, Server, encoded, expect, held, run_rejected, run, until


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


def test_a_client_that_does_not_receive_is_not_read_from():
    """Whether or not it has ever subscribed, no more than some replies wait for it."""
    for first in ([], [("SUBSCRIBE", "c"), ("UNSUBSCRIBE", "c")]):
        with Server() as server:
            client, other = server.client(), server.client()
            value = b"x" * 1000000
            client.call("SET", "large", value)
            client.call("CLIENT", "SETNAME", "lazy")
            for words in first:
                client.call(*words)
            client.send(encoded("GET", "large") * 100)

            def waiting():
                """Bytes of requests, and of replies, that wait."""
                line = [line for line in other.call("CLIENT", "LIST").split(b"\n") if b"name=lazy" in line][0]
                fields = dict(field.split(b"=") for field in line.split())
                return int(fields[b"qbuf"]), int(fields[b"obl"])

            until(lambda: waiting()[1] > 0)
            requests, replies = waiting()
            assert requests > 0 and replies <= 5000000, (requests, replies)
            for _ in range(100):
                assert client.read() == value
            assert client.call("PING") == "PONG"


def test_a_pipeline_gives_others_their_turn():
    """Counted in commands that are run before another client's: not in time."""
    with Server() as server:
        greedy, other = server.client(), server.client()
        other.call("MSET", *[word for i in range(5000) for word in (f"key{i}", "x")])
        assert greedy.call("PING") == "PONG"
        for words in (("KEYS", "none*"), ("EXISTS", *["none"] * 5000), ("DEL", *["none"] * 5000)):
            other.call("CONFIG", "RESETSTAT")
            count = 100 if words[0] == "KEYS" else 1
            with held(server.process): # so that both have arrived
                greedy.send(encoded(*words) * count)
                other.send(encoded("INFO"))
            info = other.read().decode()
            before = int(info.split("total_commands_processed:")[1].split()[0])
            assert before <= 30, (words[0], before)
            for _ in range(count):
                assert greedy.read() in ([], 0)


def set_keys(client, names):
    for at in range(0, len(names), 4000):
        assert client.call("MSET", *[word for name in names[at:at + 4000] for word in (name, "x")]) == "OK"


def turns_of(server, client, *words):
    """Runs a request on a new client, and returns its reply and how many turns have ended meanwhile since their work was done."""
    before = int(server.info(client)["turns_ended"])
    other = server.client()
    reply = other.call(*words)
    other.close()
    return reply, int(server.info(client)["turns_ended"]) - before


def test_keys_gives_others_their_turn():
    """A turn has 8192 keys and buckets. There are at most four buckets for each key, and at most half as many keys as buckets."""
    for count in (10, 1000, 100000):
        with Server() as server:
            client, names = server.client(), [b"key:%d" % i for i in range(count)]
            set_keys(client, names)
            for words, wanted in ((("KEYS", "*"), names), (("KEYS", "key:*"), names), (("KEYS", "none*"), []),
                                  (("KEYS", "*:?[02468]"), [name for name in names if len(name) == 6 and name[-1] in b"02468"])):
                reply, turns = turns_of(server, client, *words)
                assert sorted(reply) == sorted(wanted), (count, words, len(reply))
                assert count // 8192 <= turns <= 5 * count // 8192, (count, words, turns)
            # in a transaction it is one step
            other = server.client()
            other.send(encoded("MULTI") + encoded("KEYS", "*") + encoded("DBSIZE") + encoded("EXEC"))
            reply = [other.read() for _ in range(4)][-1]
            assert sorted(reply[0]) == sorted(names) and reply[1] == count
            # its reply is left out, it is counted once, and requests wait behind it
            client.call("CONFIG", "RESETSTAT")
            other.send(encoded("PING") + encoded("CLIENT", "REPLY", "SKIP") + encoded("KEYS", "*") + encoded("KEYS", "key:1") + encoded("DBSIZE"))
            assert [other.read() for _ in range(3)] == ["PONG", [b"key:1"], count]
            assert server.info(client)["total_commands_processed"] == "6" # (and INFO)
            # (a slow pattern counts more)
            turns = turns_of(server, client, "KEYS", "[" + "x" * 8190 + "]")[1]
            assert turns >= count * 256 * 3 // 4 // 8192, (count, turns)


def test_keys_that_stay_are_listed_once_while_others_come_and_go():
    """The table grows and shrinks meanwhile."""
    for comes, goes in ((0, 100000), (100000, 0), (30000, 60000)):
        with Server() as server:
            listing, other = server.client(), server.client()
            stay = [b"stay:%d" % i for i in range(2000 if goes else 20000)]
            leave, come = ([b"%s:%d" % (name, i) for i in range(count)] for name, count in ((b"leave", goes), (b"come", comes)))
            set_keys(other, stay + leave)
            changes = [encoded("DEL", *leave[at:at + 5000]) for at in range(0, goes, 5000)]
            changes += [encoded("MSET", *[word for name in come[at:at + 5000] for word in (name, "x")]) for at in range(0, comes, 5000)]
            before = int(server.info(other)["turns_ended"])
            listing.send(encoded("KEYS", "*") + encoded("PING"))
            other.send(b"".join(changes))
            names = listing.read()
            assert listing.read() == "PONG"
            for _ in changes:
                assert other.read() in (5000, "OK")
            assert len(names) == len(set(names)), (comes, goes, len(names) - len(set(names)))
            assert set(stay) <= set(names) <= set(stay + leave + come), (comes, goes)
            assert int(server.info(other)["turns_ended"]) > before
            assert sorted(other.call("KEYS", "*")) == sorted(stay + come)


LISTINGS = (("SMEMBERS", "s"), ("HGETALL", "h"), ("HKEYS", "h"), ("HVALS", "h"))


def set_members(client, count):
    """A set and a hash of so many, with numbers as members, fields and values."""
    for at in range(0, count, 4000):
        members = range(at, min(at + 4000, count))
        assert client.call("SADD", "s", *members) == len(members)
        assert client.call("HSET", "h", *[word for member in members for word in (member, member)]) == len(members)


def members_of(words, reply):
    """The numbers, each once."""
    if words[0] == "HGETALL":
        assert reply[::2] == reply[1::2]
        reply = reply[::2]
    assert len(set(reply)) == len(reply), words
    return sorted(map(int, reply))


def test_large_collections_give_others_their_turn():
    """As test_keys_gives_others_their_turn."""
    for count in (10, 4000, 20000):
        with Server() as server:
            client, other = server.client(), server.client()
            set_members(client, count)
            for words in LISTINGS:
                reply, turns = turns_of(server, client, *words)
                assert members_of(words, reply) == list(range(count)), words
                assert (count // 8192 if count > 4096 else 0) <= turns <= 5 * count // 8192, (count, words, turns)
                other.send(encoded("MULTI") + encoded(*words) + encoded("EXEC"))
                reply = [other.read() for _ in range(3)][-1]
                assert members_of(words, reply[0]) == list(range(count)), words
                other.send(encoded("PING") + encoded("CLIENT", "REPLY", "SKIP") + encoded(*words) + encoded(*words) + encoded("PING"))
                assert other.read() == "PONG" and members_of(words, other.read()) == list(range(count)) and other.read() == "PONG"
            other.send(encoded("HELLO", 3) + encoded("HGETALL", "h") + encoded("SMEMBERS", "s"))
            assert other.read()[b"proto"] == 3
            assert other.read() == {b"%d" % i: b"%d" % i for i in range(count)} and len(other.read()) == count


def set_ranges(client, count):
    """A list, and sorted sets and sets that differ at their ends."""
    for at in range(0, count, 4000):
        members = range(at, min(at + 4000, count))
        client.call("RPUSH", "l", *members)
        for key, first in (("z", 0), ("y", 10), ("x", 20)):
            client.call("ZADD", key, *[word for member in members for word in (member, first + member)])
            client.call("SADD", "set:" + key, *[first + member for member in members])


RANGES = ("LRANGE l 0 -1", "LRANGE l 1 -2", "ZRANGE z 0 -1", "ZRANGE z 0 -1 WITHSCORES", "ZREVRANGE z 3 -5 WITHSCORES", "ZRANGEBYSCORE z 7 +inf",
          "ZREVRANGEBYSCORE z +inf 1", "ZRANGE z 2 inf BYSCORE LIMIT 5 1000000")
COMBINATIONS = ("ZUNION 2 z y WITHSCORES", "ZINTER 3 z y x WITHSCORES", "ZDIFF 2 z y", "ZDIFF 3 z none y WITHSCORES", "ZINTERCARD 2 z y",
                "SUNION set:z set:y", "SINTER set:z set:y", "SDIFF set:z none", "SDIFF set:z set:none set:none set:y", "SINTERCARD 2 set:z set:y",
                "ZUNIONSTORE t 2 z y", "ZINTERSTORE t 2 z y", "ZDIFFSTORE t 2 z none", "SUNIONSTORE t set:z set:y", "SDIFFSTORE t set:z none")


def sorted_if_set(words, reply):
    return sorted(reply) if words[0] in ("SUNION", "SINTER", "SDIFF") else reply


def test_long_ranges_and_combinations_give_others_their_turn():
    """The replies are those of a transaction, which is one step. A range takes a step for each element, a combination some for each member and bucket."""
    for count in (10, 4000, 10000):
        with Server() as server:
            client, other = server.client(), server.client()
            set_ranges(client, count)
            for words in map(str.split, RANGES + COMBINATIONS):
                other.send(encoded("MULTI") + encoded(*words) + encoded("EXEC"))
                wanted = [other.read() for _ in range(3)][-1][0]
                reply, turns = turns_of(server, client, *words)
                assert sorted_if_set(words, reply) == sorted_if_set(words, wanted), words
                assert not isinstance(wanted, list) or count - 20 <= len(wanted) or words[0] == "ZDIFF" or words[0] == "SDIFF", words
                most = 1 if " ".join(words) in RANGES else 18
                least = count // 8192 if count > 4096 else 0
                assert least <= turns <= most * (count // 8192 + 1), (count, words, turns)
                # it is counted once, others stay in their order, and one that has no reply has none
                other.send(encoded("PING") + encoded("CLIENT", "REPLY", "SKIP") + encoded(*words) + encoded(*words) + encoded("PING"))
                assert other.read() == "PONG" and sorted_if_set(words, other.read()) == sorted_if_set(words, wanted) and other.read() == "PONG", words


def test_long_replies_that_are_too_large_are_errors():
    """Also if that shows in a later slice; nothing of the others is left."""
    with Server("--reply", 1024) as server:
        client = server.client()
        for at in range(0, 40000, 2000):
            client.call("RPUSH", "l", *[f"{i:050}" for i in range(at, at + 2000)])
            client.call("ZADD", "z", *[word for i in range(at, at + 2000) for word in (i, f"{i:050}")])
            client.call("SADD", "s", *[f"{i:050}" for i in range(at, at + 2000)])
        for words in ("LRANGE l 0 -1", "ZRANGE z 0 -1", "ZUNION 1 z", "ZINTER 1 z", "SUNION s", "SDIFF s none", "SMEMBERS s"):
            client.send(encoded(*words.split()) + encoded("ECHO", words))
            assert "the reply would be larger than" in client.read() and client.read() == words.encode()
        assert client.call("LRANGE", "l", 0, 5000)[5000] == b"%050d" % 5000


def test_a_combination_ends_with_its_client():
    """Clients disconnect between slices, also in the replies of a complete result."""
    with Server() as server:
        client = server.client()
        set_ranges(client, 10000)
        for words in map(str.split, RANGES + COMBINATIONS):
            with held(server.process):
                other = server.client()
                other.send(encoded(*words))
                other.close()
            assert client.call("PING") == "PONG"
        assert client.call("LLEN", "l") == 10000


def test_a_long_range_is_of_one_moment():
    """As test_a_large_collection_is_of_one_moment: numbers are added at one end and removed at the other."""
    count, changes = 20000, 12
    with Server() as server:
        client, other = server.client(), server.client()
        for key in ("t", "u"):
            assert other.call("SADD", key, *range(9000)) == 9000
        requests = ("LRANGE l 0 -1", "ZRANGE z 0 -1", "ZREVRANGE z 0 -1", "ZUNION 2 z z", "ZINTER 2 z z", "ZDIFF 2 z none", "SUNION s none", "SINTER s s",
                    "SDIFF s none")
        between = 0
        for words in map(str.split, requests):
            other.call("DEL", "l", "z", "s")
            for at in range(0, count, 4000):
                members = range(at, at + 4000)
                other.call("RPUSH", "l", *members)
                other.call("ZADD", "z", *[word for member in members for word in (member, member)])
                other.call("SADD", "s", *members)
            moves = b""
            for i in range(changes):
                moves += encoded("MULTI") + encoded("LPOP", "l") + encoded("RPUSH", "l", count + i) + encoded("ZREM", "z", i)
                moves += encoded("ZADD", "z", count + i, count + i) + encoded("SREM", "s", i) + encoded("SADD", "s", count + i) + encoded("EXEC")
                moves += encoded("SINTERCARD", 2, "t", "u")
            with held(server.process):
                client.send(encoded(*words))
                other.send(moves)
            reply = sorted(map(int, client.read()))
            assert reply == list(range(reply[0], reply[0] + count)), (words, reply[0])
            between += 0 < reply[0] < changes
            for _ in range(9 * changes):
                assert not isinstance(other.read(), Error)
        assert between > 0
        # the key may be gone meanwhile
        for words in map(str.split, requests):
            other.call("DEL", "l", "z", "s")
            other.call("RPUSH", "l", *range(9000))
            other.call("ZADD", "z", *[word for member in range(9000) for word in (member, member)])
            other.call("SADD", "s", *range(9000))
            with held(server.process):
                client.send(encoded(*words))
                other.send(encoded("DEL", "l", "z", "s"))
            reply = client.read()
            assert reply == [] or sorted(map(int, reply)) == list(range(9000)), words
            assert other.read() == 3


def test_a_large_collection_is_of_one_moment():
    """Numbers are added at one end and removed at the other, in one step. So a reply of two moments would lack some, or have too many."""
    count, changes = 30000, 20
    with Server() as server:
        client, other = server.client(), server.client()
        for key in ("t", "u"):
            assert other.call("SADD", key, *range(9000)) == 9000
        between = 0
        for words in LISTINGS:
            for first in range(2):
                other.call("DEL", "s", "h")
                set_members(other, count)
                moves = b""
                for i in range(changes if first == 0 else 1):
                    moves += encoded("MULTI") + encoded("SREM", "s", i) + encoded("SADD", "s", count + i) + encoded("HDEL", "h", i)
                    moves += encoded("HSET", "h", count + i, count + i) + encoded("EXEC") + encoded("SINTERCARD", 2, "t", "u")
                with held(server.process):
                    client.send(encoded(*words))
                    other.send(moves)
                reply = members_of(words, client.read())
                assert reply == list(range(reply[0], reply[0] + count)), (words, reply[0])
                between += 0 < reply[0] < changes and first == 0
                for _ in range(7 * moves.count(b"EXEC")):
                    assert not isinstance(other.read(), Error)
        # (each SINTERCARD ends a turn, and so does each slice of a listing: some have begun before a change and ended behind it)
        assert between > 0
        # the key may be gone meanwhile, or another
        wrong = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
        for words in LISTINGS:
            for change, wanted in ((("DEL", words[1]), []), (("SET", words[1], "x"), wrong), (("RENAME", "small", words[1]), None)):
                other.call("DEL", "s", "h", "small")
                set_members(other, count)
                other.call(*(("SADD", "small", 7) if words[1] == "s" else ("HSET", "small", 7, 7)))
                with held(server.process):
                    client.send(encoded(*words) + encoded("KEYS", "none*"))
                    other.send(encoded(*change))
                reply = client.read()
                if isinstance(reply, Error) or reply == []:
                    assert reply == wanted, (words, change)
                else:
                    assert members_of(words, reply) in (list(range(count)), [7] if wanted is None else None), (words, change)
                assert client.read() == [] and not isinstance(other.read(), Error)


def test_a_flush_ends_a_listing_and_a_client_may_leave_it():
    with Server("--reply", 1000000) as server:
        client, other = server.client(), server.client()
        names = [b"key:%020d" % i for i in range(100000)]
        too_large = Error("ERR the reply would be larger than 1000000 bytes")
        for _ in range(4):
            set_keys(other, names)
            assert client.call("KEYS", "*") == too_large and client.call("PING") == "PONG"
            with held(server.process):
                client.send(encoded("KEYS", "*:*9*9*9*9") + encoded("PING"))
                other.send(encoded("FLUSHALL") + encoded("SET", "new", 1))
            reply = client.read()
            assert len(reply) == len(set(reply)) and set(reply) <= set(names + [b"new"]) and client.read() == "PONG"
            assert other.read() == other.read() == "OK" and client.call("KEYS", "*") == [b"new"]
        set_keys(other, names)
        for leave in ("close", "vanish", "kill"):
            client = server.client()
            number = client.call("CLIENT", "ID")
            client.send(encoded("KEYS", "*9*9*"))
            if leave == "kill":
                assert other.call("CLIENT", "KILL", "ID", number) == 1
            else:
                getattr(client, leave)()
        until(lambda: server.info(other)["connected_clients"] == "1")
        # a subscriber has messages meanwhile, but none inside of the reply
        client = server.client()
        assert client.call("HELLO", 3)[b"proto"] == 3 and client.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        with held(server.process):
            client.send(encoded("KEYS", "*99999"))
            other.send(encoded("PUBLISH", "c", "first") + encoded("PUBLISH", "c", "second"))
        got = [client.read() for _ in range(3)]
        assert [b"message", b"c", b"first"] in got and [b"message", b"c", b"second"] in got and [b"key:%020d" % 99999] in got, got


def fields_of(line):
    return dict(field.split(b"=", 1) for field in line.split())


def test_clients_are_listed_by_what_they_do():
    with Server() as server:
        client, other, patterns, waiting, queued = (server.client() for _ in range(5))
        for each, name in ((client, "me"), (other, "other"), (patterns, "patterns"), (waiting, "waiting"), (queued, "queued")):
            assert each.call("CLIENT", "SETNAME", name) == "OK"
        patterns.call("SUBSCRIBE", "c")
        patterns.call("PSUBSCRIBE", "a*")
        patterns.call("PSUBSCRIBE", "b*")
        patterns.call("PUNSUBSCRIBE", "b*")
        waiting.send(encoded("BLPOP", "l", 0))
        assert [queued.call("MULTI"), queued.call("GET", "x")] == ["OK", "QUEUED"]
        until(lambda: server.info(other)["blocked_clients"] == "1")
        lines = {fields_of(line)[b"name"]: fields_of(line) for line in client.call("CLIENT", "LIST").splitlines() if b"name= " not in line}
        assert set(lines) == {b"me", b"other", b"patterns", b"waiting", b"queued"}, lines
        for name, wanted in ((b"me", (b"N", b"client|list", b"0", b"0", b"-1")), (b"other", (b"N", b"info", b"0", b"0", b"-1")),
                             (b"patterns", (b"P", b"punsubscribe", b"1", b"1", b"-1")), (b"waiting", (b"b", b"blpop", b"0", b"0", b"-1")),
                             (b"queued", (b"x", b"get", b"0", b"0", b"1"))):
            assert tuple(lines[name][field] for field in (b"flags", b"cmd", b"sub", b"psub", b"multi")) == wanted, (name, lines[name])
        assert lines[b"me"][b"addr"] == b"127.0.0.1:%d" % client.socket.getsockname()[1], lines[b"me"]
        assert lines[b"me"][b"laddr"] == b"127.0.0.1:%d" % server.port, lines[b"me"]
        me, he = client.call("CLIENT", "ID"), other.call("CLIENT", "ID")
        assert fields_of(client.call("CLIENT", "INFO"))[b"id"] == b"%d" % me
        listed = client.call("CLIENT", "LIST", "ID", me, he, 999).splitlines()
        assert [int(fields_of(line)[b"id"]) for line in listed] == [me, he], listed
        # (in the order of the numbers, each client once)
        listed = client.call("CLIENT", "LIST", "ID", *range(1000, 50000), he, me, *[he] * 50000, 1 << 62).splitlines()
        assert [int(fields_of(line)[b"id"]) for line in listed] == [he, me], listed
        everyone = [int(fields_of(line)[b"id"]) for line in client.call("CLIENT", "LIST").splitlines()]
        for ids in (everyone, everyone[::-1]):
            listed = client.call("CLIENT", "LIST", "ID", *ids).splitlines()
            assert [int(fields_of(line)[b"id"]) for line in listed] == ids, listed
        assert [fields_of(line)[b"name"] for line in client.call("CLIENT", "LIST", "TYPE", "pubsub").splitlines()] == [b"patterns"]
        assert client.call("CLIENT", "LIST", "TYPE", "replica") == b""
        expect(client, ("CLIENT LIST TYPE x", Error("ERR Unknown client type 'x'")), ("CLIENT LIST ID x", Error("ERR Invalid client ID")),
               ("CLIENT LIST ID", Error("ERR syntax error")), ("CLIENT NO-EVICT on", "OK"), ("CLIENT NO-EVICT OFF", "OK"),
               ("CLIENT NO-EVICT x", Error("ERR syntax error")), ("CLIENT NO-EVICT", Error("ERR unknown subcommand or wrong number of arguments for 'client|NO-EVICT'")))
        waiting.vanish()


def test_clients_are_killed():
    with Server() as server:
        client = server.client()
        me = client.call("CLIENT", "ID")

        def ended(*words, count=1, prepare=()):
            """A client that was killed by this, and is counted no longer."""
            victim = server.client()
            number = victim.call("CLIENT", "ID")
            address = "127.0.0.1:%d" % victim.socket.getsockname()[1]
            for request in prepare:
                victim.send(encoded(*request))
            if prepare and prepare[0][0] == "BLPOP":
                until(lambda: server.info(client)["blocked_clients"] == "1")
            elif prepare:
                assert victim.read() is not None
            assert client.call("CLIENT", "KILL", *(str(word).format(id=number, address=address) for word in words)) == count, words
            assert server.info(client)["connected_clients"] == "1", words
            assert victim.is_at_end(), words

        for prepare in ((), (("BLPOP", "l", 0),), (("SUBSCRIBE", "c"),), (("MULTI",),)):
            ended("ID", "{id}", prepare=prepare)
            ended("ADDR", "{address}", prepare=prepare)
            ended("{address}", count="OK", prepare=prepare)
        ended("TYPE", "pubsub", prepare=(("SUBSCRIBE", "c"),))
        ended("LADDR", f"127.0.0.1:{server.port}", "USER", "default", "TYPE", "normal")
        ended("SKIPME", "yes")
        # (its element stays)
        expect(client, ("RPUSH l x", 1), ("LRANGE l 0 -1", [b"x"]))
        syntax = Error("ERR syntax error")
        expect(client,
               ("CLIENT KILL", Error("ERR wrong number of arguments for 'client|kill' command")), ("CLIENT KILL 1.2.3.4:5", Error("ERR No such client")),
               ("CLIENT KILL ID 999", 0), ("CLIENT KILL TYPE master", 0), (f"CLIENT KILL ID {me}", 0), (f"CLIENT KILL ID {me} SKIPME", syntax),
               ("CLIENT KILL SKIPME maybe", syntax), ("CLIENT KILL ID 0", Error("ERR client-id should be greater than 0")),
               ("CLIENT KILL TYPE x", Error("ERR Unknown client type 'x'")), ("CLIENT KILL USER x", Error("ERR No such user 'x'")),
               ("CLIENT KILL WHAT x", syntax), (f"CLIENT KILL ID {me} SKIPME no", 1))
        assert client.is_at_end()
        # a reply before, and nothing behind
        client = server.client()
        number = client.call("CLIENT", "ID")
        client.send(encoded("CLIENT", "KILL", "ID", number, "SKIPME", "no") + encoded("SET", "never", 1))
        assert client.read() == 1 and client.is_at_end()
        assert server.client().call("EXISTS", "never") == 0


def test_replies_are_left_out_on_request():
    with Server() as server:
        client, other = server.client(), server.client()

        def next_is(*wanted):
            client.send(encoded("ECHO", "end"))
            got = []
            while (reply := client.read()) != b"end":
                got.append(reply)
            assert got == list(wanted), (got, wanted)

        for words in (("SET", "a", 1), ("GET", "a"), ("NONE",), ("GET",), ("LPUSH", "a", 1), ("MGET", *"aaaaaaaa"), ("SMEMBERS", "s"), ("CLIENT", "LIST")):
            client.send(encoded("CLIENT", "REPLY", "SKIP") + encoded(*words))
            next_is()
        client.send(encoded("CLIENT", "REPLY", "OFF") + encoded("PING") + encoded("CLIENT", "REPLY", "SKIP") + encoded("INCR", "a") +
                    encoded("MULTI") + encoded("INCR", "a") + encoded("EXEC") + encoded("CLIENT", "REPLY", "ON") + encoded("GET", "a"))
        next_is("OK", b"3")
        client.send(encoded("CLIENT", "REPLY", "SKIP") + encoded("CLIENT", "REPLY", "ON"))
        next_is("OK")
        # a request that waits has no reply either, however the wait ends
        number = client.call("CLIENT", "ID")
        for end in (("RPUSH", "l", "x"), ("CLIENT", "UNBLOCK", number), ("CLIENT", "UNBLOCK", number, "ERROR")):
            client.send(encoded("PING") + encoded("CLIENT", "REPLY", "SKIP") + encoded("BLPOP", "l", 0))
            assert client.read() == "PONG"
            until(lambda: server.info(other)["blocked_clients"] == "1")
            assert other.call(*end) == 1
            next_is()
        client.send(encoded("CLIENT", "REPLY", "SKIP") + encoded("BLPOP", "l", "0.001"))
        next_is()
        # in a transaction it is refused
        assert [client.call(*words) for words in (("MULTI",), ("CLIENT", "REPLY", "OFF"), ("EXEC",))] == [
            "OK", "QUEUED", [Error("ERR CLIENT REPLY is not allowed inside a transaction")]]
        assert client.call("CLIENT", "REPLY", "MAYBE") == Error("ERR syntax error")
        # messages are no replies
        assert client.call("HELLO", 3)[b"proto"] == 3
        client.send(encoded("CLIENT", "REPLY", "OFF") + encoded("SUBSCRIBE", "c") + encoded("PUBLISH", "c", "own") + encoded("MULTI") +
                    encoded("PUBLISH", "c", "in") + encoded("INCR", "a") + encoded("EXEC") + encoded("UNSUBSCRIBE", "d"))
        for wanted in ([b"subscribe", b"c", 1], [b"message", b"c", b"own"], [b"message", b"c", b"in"], [b"unsubscribe", b"d", 1]):
            assert client.read() == wanted, wanted
        assert other.call("PUBLISH", "c", "other") == 1
        assert client.read() == [b"message", b"c", b"other"]
        assert client.call("RESET") == "RESET"
        next_is()


def test_a_protocol_error_is_left_out_as_a_reply_is():
    """The connection ends all the same, and nothing behind the error is run."""
    error = Error("ERR Protocol error: expected '$', got 'x'")
    wrong, change = b"*1\r\nx\r\n", encoded("SET", "never", 1)
    off, skip, on = (encoded("CLIENT", "REPLY", mode) for mode in ("OFF", "SKIP", "ON"))
    ping = encoded("PING")
    with Server() as server:
        for data, replies in ((wrong, [error]), (off + wrong, []), (ping + off + ping + wrong, ["PONG"]), (skip + wrong, []),
                              (skip + ping + wrong, [error]), (off + on + wrong, ["OK", error]), (off + b"PING 'x\r\n", [])):
            client = server.client()
            client.send(data + change)
            for reply in replies:
                got = client.read()
                assert got == reply and isinstance(got, Error) == isinstance(reply, Error), (data, got)
            assert client.is_at_end(), data
        # messages that came before are sent
        client, other = server.client(), server.client()
        assert client.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1] and client.call("RESET") == "RESET"
        assert client.call("HELLO", 3)[b"proto"] == 3
        client.send(off + encoded("SUBSCRIBE", "d") + encoded("PUBLISH", "d", "own") + wrong + change)
        assert [client.read(), client.read()] == [[b"subscribe", b"d", 1], [b"message", b"d", b"own"]]
        assert client.is_at_end()
        expect(other, ("EXISTS never", 0))


def test_options_are_set_all_or_none():
    with Server("--reply", 100000, "--bulk", 10000) as server:
        client = server.client()
        failed = "ERR CONFIG SET failed (possibly related to argument '%s') - %s"
        expect(client,
               ("CONFIG GET reply proto*", [b"proto-max-bulk-len", b"10000", b"reply", b"100000"]),
               ("CONFIG SET reply 2kb PROTO-MAX-BULK-LEN 2000", "OK"),
               ("CONFIG GET reply proto*", [b"proto-max-bulk-len", b"2000", b"reply", b"2048"]),
               ("CONFIG SET reply 5k port 1", Error(failed % ("port", "can't set immutable config"))),
               ("CONFIG SET reply 5k reply 6k", Error(failed % ("reply", "duplicate parameter"))),
               ("CONFIG SET reply 5k backlog x", Error(failed % ("backlog", "argument must be a memory value"))),
               ("CONFIG SET reply 5k backlog 1", Error(failed % ("backlog", "argument is out of range"))),
               ("CONFIG SET maxmemory 9223372036854775807 reply 1", Error(failed % ("reply", "argument is out of range"))),
               ("CONFIG SET maxmemory-policy allkeys-ttl", Error(failed % ("maxmemory-policy", "argument(s) must be one of the following: volatile-lru, "
                            "volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction"))),
               ("CONFIG SET lfu-log-factor x", Error(failed % ("lfu-log-factor", "argument couldn't be parsed into an integer"))),
               ("CONFIG SET lfu-decay-time -1", Error(failed % ("lfu-decay-time", "argument must be between 0 and 2147483647 inclusive"))),
               ("CONFIG SET lfu-log-factor 3 lfu-decay-time 4", "OK"), ("CONFIG GET lfu-*", [b"lfu-decay-time", b"4", b"lfu-log-factor", b"3"]),
               ("CONFIG SET maxmemory 99999999999999999999gb", Error(failed % ("maxmemory", "argument must be a memory value"))),
               ("CONFIG SET maxmemory 9223372036854775807gb", Error(failed % ("maxmemory", "argument must be a memory value"))),
               ("CONFIG SET protected-mode maybe", Error(failed % ("protected-mode", "argument must be 'yes' or 'no'"))),
               ("CONFIG SET reply 5k none 1", Error("ERR Unknown option or number of arguments for CONFIG SET - 'none'")),
               ("CONFIG GET reply", [b"reply", b"2048"]), ("CONFIG SET maxmemory 0 protected-mode NO", "OK"),
               ("CONFIG GET protected-mode maxmemory", [b"maxmemory", b"0", b"protected-mode", b"no"]),
               ("CONFIG SET reply", Error("ERR wrong number of arguments for 'config|SET' command")),
               ("CONFIG GET", Error("ERR wrong number of arguments for 'config|GET' command")),
               ("CONFIG WHAT", Error("ERR unknown subcommand 'WHAT'. GET, SET and RESETSTAT are supported.")))
        patterns = Error("ERR CONFIG GET may have 64 patterns of 2048 bytes together")
        everything = ["reply", *["none"] * 63]
        assert client.call("CONFIG", "GET", *everything) == [b"reply", b"2048"]
        assert client.call("CONFIG", "GET", *everything, "none") == patterns
        longest = client.call("CONFIG", "GET", "*" * 1000 + "reply", "x" * 1043)
        assert longest == [b"reply", b"2048"], longest
        assert client.call("CONFIG", "GET", "*" * 1000 + "reply", "x" * 1044) == patterns
        assert client.call("SET", "large", "x" * 2000) == "OK"
        assert client.call("APPEND", "large", "x") == Error("ERR string exceeds maximum allowed size")
        expect(client, ("CONFIG SET proto-max-bulk-len 3000", "OK"), ("APPEND large x", 2001), ("STRLEN large", 2001))
        client.send(encoded("SET", "large", "x" * 3001))
        assert client.read() == Error("ERR Protocol error: invalid bulk length") and client.is_at_end()


def test_a_reply_of_several_values_has_a_limit():
    with Server("--reply", 100000) as server:
        client = server.client()
        client.call("SET", "large", "x" * 200000)
        client.call("MSET", *[word for i in range(20000) for word in (f"{i:0100}", "x" * 10)])
        too_large = Error("ERR the reply would be larger than 100000 bytes")
        assert client.call("GET", "large") == client.call("MGET", "large")[0] == b"x" * 200000
        assert client.call("MGET", "large", "none") == too_large
        assert client.call("MGET", *["large"] * 1000) == too_large
        assert client.call("MGET", *[f"{i:0100}" for i in range(1000)]) == [b"x" * 10] * 1000
        assert client.call("KEYS", "*") == too_large
        cursor, keys = client.call("SCAN", 0, "COUNT", 100000) # (which is a hint: it ends with the turn)
        assert int(cursor) != 0 and 0 < len(keys) <= 8300, len(keys)
        client.call("HSET", "values", *[word for i in range(200) for word in (i, "x" * 10000)])
        assert client.call("HSCAN", "values", 0, "COUNT", 1000) == too_large
        assert client.call("DEL", "values") == 1
        client.send(encoded("PING") + encoded("KEYS", "*") + encoded("PING"))
        assert [client.read() for _ in range(3)] == ["PONG", too_large, "PONG"]
        assert client.call("KEYS", "large") == [b"large"]


def test_patterns_are_found_and_bounded():
    with Server() as server:
        client, other = server.client(), server.client()
        names = [f"{i}*" for i in range(5000)]
        client.send(encoded("PSUBSCRIBE", *names, *names[:10]))
        for i, name in enumerate(names + names[:10]):
            assert client.read() == [b"psubscribe", name.encode(), min(i + 1, 5000)]
        assert other.call("PUBSUB", "NUMPAT") == 5000
        assert other.call("PUBLISH", "4999-", "hello") == 4 # 4*, 49*, 499*, 4999*
        assert sorted(client.read()[1] for _ in range(4)) == [b"4*", b"49*", b"499*", b"4999*"]
        client.send(encoded("PUNSUBSCRIBE", *names[:4990]))
        for i, name in enumerate(names[:4990]):
            assert client.read() == [b"punsubscribe", name.encode(), 4999 - i]
        assert other.call("PUBSUB", "NUMPAT") == 10
        client.close()
        until(lambda: other.call("PUBSUB", "NUMPAT") == 0)
        # a pattern that would take the product of both sizes
        other.call("SET", "a" * 200000, "1")
        for pattern in ("*" + "a" * 100000 + "b", "*[" + "b" * 100000 + "]"):
            assert other.call("KEYS", pattern) == []
        assert other.call("KEYS", "*" + "a" * 64) == other.call("KEYS", "a*a*a*") == [b"a" * 200000]


def test_a_killed_server_can_be_started_again_at_once():
    """The kernel takes the killed one's listener apart later. (At an address that no other test has.)"""
    address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
    port = 0
    for _ in range(10):
        with Server("--bind", address, "--port", port) as server:
            port = server.port
            with socket.create_connection((address, port), timeout=PATIENCE) as client:
                client.sendall(encoded("PING"))
                assert client.recv(100) == b"+PONG\r\n"
                server.end(signal.SIGKILL)
                server.process.returncode = 0


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


# ---- CLIENT PAUSE ----


def test_replies_about_pauses():
    with Server() as server:
        expect(
            server.client(),
            ("CLIENT PAUSE a", Error("ERR timeout is not an integer or out of range")),
            ("CLIENT PAUSE 1.5", Error("ERR timeout is not an integer or out of range")),
            ("CLIENT PAUSE -1", Error("ERR timeout is negative")),
            ("CLIENT PAUSE a x", Error("ERR CLIENT PAUSE mode must be WRITE or ALL")),
            (f"CLIENT PAUSE {2**63 - 1}", Error("ERR timeout is out of range")),
            ("CLIENT PAUSE 0", "OK"), ("PING", "PONG"), ("CLIENT UNPAUSE", "OK"),
            ("CLIENT PAUSE 1 ALL", "OK"), ("PING", "PONG"), ("client pause 1 write", "OK"), ("SET a 1", "OK"),
        )


def test_a_pause_of_changes():
    with Server() as server:
        client, writers = server.client(), [server.client() for _ in range(20)]
        assert client.call("SET", "a", "0") == "OK" and client.call("CLIENT", "PAUSE", 10**9, "WRITE") == "OK"
        assert client.call("CLIENT", "PAUSE", 1, "WRITE") == "OK" # it makes none shorter
        first = writers[0].call("CLIENT", "ID")
        for n, writer in enumerate(writers):
            writer.send(encoded("GET", "a") + encoded("APPEND", "a", f"{n:02}") + encoded("ECHO", n))
            assert writer.read() == b"0" # what is before is answered
            until(lambda: server.info(client)["blocked_clients"] == str(n + 1))
        assert b"flags=b " in client.call("CLIENT", "LIST", "ID", first)
        assert client.call("GET", "a") == b"0"
        # errors, reads and transactions of reads are not postponed
        expect(client, ("SET a", Error("ERR wrong number of arguments for 'SET' command")), ("MULTI", "OK"), ("GET a", "QUEUED"),
               ("EXEC", [b"0"]))
        assert client.call("CLIENT", "UNPAUSE") == "OK"
        for n, writer in enumerate(writers):
            assert writer.read() == 3 + 2 * n and writer.read() == str(n).encode()
        assert client.call("GET", "a") == ("0" + "".join(f"{n:02}" for n in range(20))).encode() # in their order
        # messages too, and a transaction that was queued before
        assert writers[0].call("MULTI") == "OK" and writers[0].call("INCR", "b") == "QUEUED"
        assert writers[1].call("MULTI") == "OK" and writers[1].call("PUBLISH", "c", "m") == "QUEUED"
        assert client.call("CLIENT", "PAUSE", 10**9, "WRITE") == "OK"
        writers[0].send(encoded("EXEC"))
        writers[1].send(encoded("EXEC"))
        writers[2].send(encoded("PUBLISH", "c", "m"))
        until(lambda: server.info(client)["blocked_clients"] == "3")
        assert client.call("EXISTS", "b") == 0
        assert client.call("CLIENT", "UNPAUSE") == "OK"
        assert [writers[n].read() for n in range(3)] == [[1], [0], 0]


def test_a_pause_of_all_ends_at_its_time():
    with Server() as server:
        client, other, subscriber = server.client(), server.client(), server.client()
        subscriber.call("SUBSCRIBE", "c")
        client.send(encoded("MULTI") + encoded("CLIENT", "PAUSE", 200) + encoded("PUBLISH", "c", "m") + encoded("EXEC") + encoded("CLIENT", "UNPAUSE"))
        assert [client.read() for _ in range(4)] == ["OK", "QUEUED", "QUEUED", ["OK", 1]]
        assert subscriber.read() == [b"message", b"c", b"m"]
        subscriber.send(encoded("PING"))
        other.send(encoded("PING"))
        assert other.read() == "PONG" and client.read() == "OK" and subscriber.read() == [b"pong", b""]
        assert server.info(client)["blocked_clients"] == "0"


def test_a_second_pause_makes_none_shorter_or_weaker():
    with Server() as server:
        client = server.client()
        # (the requests are sent at once, so an answer to the last one would be behind EXEC's)
        client.send(encoded("MULTI") + encoded("CLIENT", "PAUSE", 10**9, "ALL") + encoded("CLIENT", "PAUSE", 1, "WRITE") +
                    encoded("EXEC") + encoded("PING"))
        assert [client.read() for _ in range(4)] == ["OK", "QUEUED", "QUEUED", ["OK", "OK"]]
        assert server.end() == 0 and client.is_at_end()


def test_clients_that_leave_in_a_pause():
    with Server() as server:
        client = server.client()
        assert client.call("CLIENT", "PAUSE", 10**9, "WRITE") == "OK"
        for leave in (Client.close, Client.vanish):
            other = server.client()
            other.send(encoded("SET", "a", "1"))
            until(lambda: server.info(client)["blocked_clients"] == "1")
            leave(other)
            until(lambda: server.info(client)["blocked_clients"] == "0")
        other = server.client()
        number = other.call("CLIENT", "ID")
        other.send(encoded("SET", "a", "1"))
        until(lambda: server.info(client)["blocked_clients"] == "1")
        assert client.call("CLIENT", "KILL", "ID", number) == 1 and other.is_at_end()
        until(lambda: server.info(client)["blocked_clients"] == "0")
        assert client.call("EXISTS", "a") == 0
        last = server.client()
        last.send(encoded("SET", "a", "1"))
        until(lambda: server.info(client)["blocked_clients"] == "1")
        assert server.end() == 0 and last.is_at_end()


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
