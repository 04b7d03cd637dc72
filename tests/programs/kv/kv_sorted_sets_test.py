"""Sorted sets, over sockets. kv_sorted_sets_test.py PROGRAM [NAME...]"""
import math
import os
import random
import shutil
import signal
import tempfile

from client import Error, Server, encoded, expect, held, rounds_of, run, until

WRONG = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
SYNTAX = Error("ERR syntax error")
NO_NUMBER = Error("ERR value is not an integer or out of range")
NO_FLOAT = Error("ERR value is not a valid float")
NO_RANGE = Error("ERR min or max is not a float")
NO_MEMBERS = Error("ERR min or max not valid string range item")
NOT_POSITIVE = Error("ERR value is out of range, must be positive")
LIMIT_BY_RANK = Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
SCORES_BY_LEX = Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
NAN = Error("ERR resulting score is not a number (NaN)")


def test_members():
    with Server() as server:
        expect(server.client(),
               ("ZADD z 1 a 2 b 3 c 1 a", 3), ("ZADD z 4 a 5 d", 1), ("ZADD z CH 5 a 5 d 6 e", 2), ("ZCARD z", 5), ("TYPE z", "zset"),
               ("OBJECT ENCODING z", b"listpack"), ("ZRANGE z 0 -1 WITHSCORES", [b"b", b"2", b"c", b"3", b"a", b"5", b"d", b"5", b"e", b"6"]),
               ("ZADD z NX 9 a 9 f", 1), ("ZADD z XX 9 g 7 f", 0), ("ZSCORE z f", b"7"), ("ZSCORE z g", None), ("ZADD z XX CH 9 g 8 f", 1),
               ("ZADD z GT CH 7 f 9 f 1 h", 2), ("ZADD z LT CH 10 f 2 f 1 h", 1), ("ZADD z GT XX 5 i", 0), ("ZADD z INCR 1.5 f", b"3.5"),
               ("ZADD z NX INCR 1 f", None), ("ZADD z XX INCR 1 i", None), ("ZADD z GT INCR -1 f", None), ("ZADD z GT INCR 0 f", None),
               ("ZADD none XX 1 a", 0), ("ZADD none XX INCR 1 a", None), ("EXISTS none", 0), ("ZINCRBY z 2 new", b"2"), ("ZINCRBY z -inf new", b"-inf"),
               ("ZINCRBY z +inf new", NAN), ("ZADD z INCR inf new", NAN), ("ZSCORE z new", b"-inf"), ("ZMSCORE z new a none", [b"-inf", b"5", None]),
               ("ZMSCORE none a", [None]), ("ZRANK z new", 0), ("ZREVRANK z new", 7), ("ZRANK z none", None), ("ZRANK none a", None), ("ZREVRANK none a", None),
               ("ZREM z new h none new", 2), ("ZREM z none", 0), ("ZREM none a", 0), ("ZCARD z", 6), ("ZCARD none", 0), ("ZREM z a b c d e f", 6), ("EXISTS z", 0),
               ("ZADD n 0.1 a 3.2 b 1e300 c -0 d 1e-300 e 0x10 f 17 g 1e17 h", 8),
               ("ZMSCORE n a b c d e f g h", [b"0.10000000000000001", b"3.2000000000000002", b"1.0000000000000001e+300", b"-0", b"1e-300", b"16", b"17", b"1e+17"]),
               ("ZSCAN none 0", [b"0", []]), ("COPY n m", 1), ("ZADD m 1 a", 0), ("ZSCORE n a", b"0.10000000000000001"), ("RENAME m n", "OK"), ("ZSCORE n a", b"1"),
               ("ZSCAN n 0 MATCH a", [b"0", [b"a", b"1"]]), ("SCAN 0 TYPE zset", [b"0", [b"n"]]), ("SCAN 0 TYPE set", [b"0", []]))
        client = server.client()
        client.call("ZADD", "large", *[word for i in range(129) for word in (i, i)])
        assert client.call("OBJECT", "ENCODING", "large") == b"skiplist"


def test_errors():
    with Server() as server:
        client = server.client()
        client.call("SET", "text", "x")
        client.call("ZADD", "z", 1, "a")
        for words in ("ZADD text 1 a", "ZADD text INCR 1 a", "ZINCRBY text 1 a", "ZREM text a", "ZCARD text", "ZSCORE text a", "ZMSCORE text a", "ZRANK text a",
                      "ZREVRANK text a", "ZCOUNT text 0 1", "ZLEXCOUNT text - +", "ZRANGE text 0 1", "ZRANGESTORE t text 0 1", "ZREVRANGE text 0 1",
                      "ZRANGEBYSCORE text 0 1", "ZREVRANGEBYSCORE text 1 0", "ZRANGEBYLEX text - +", "ZREVRANGEBYLEX text + -", "ZREMRANGEBYRANK text 0 1",
                      "ZREMRANGEBYSCORE text 0 1", "ZREMRANGEBYLEX text - +", "ZPOPMIN text", "ZPOPMAX text 2", "ZMPOP 1 text MIN", "BZPOPMIN text 0",
                      "BZPOPMAX none text 0", "BZMPOP 0 2 none text MAX", "ZUNION 1 text", "ZINTER 2 z text", "ZDIFF 2 none text", "ZINTERCARD 1 text",
                      "ZUNIONSTORE t 1 text", "ZINTERSTORE t 2 none text", "ZDIFFSTORE t 1 text", "ZRANDMEMBER text", "ZRANDMEMBER text 2", "ZSCAN text 0",
                      "HGET z a", "SADD z a", "LPUSH z a", "GET z", "APPEND z x", "SUNION z z", "SISMEMBER z a"):
            assert client.call(*words.split()) == WRONG, words
        needs_key = "ERR at least 1 input key is needed for '%s' command"
        expect(client, ("ZADD z 1", Error("ERR wrong number of arguments for 'ZADD' command")), ("ZADD z NX XX 1", SYNTAX), ("ZADD z 1 a 2", SYNTAX), ("ZADD z NX XX", SYNTAX),
               ("ZADD z NX XX 1 a", Error("ERR XX and NX options at the same time are not compatible")),
               ("ZADD z NX GT 1 a", Error("ERR GT, LT, and/or NX options at the same time are not compatible")),
               ("ZADD z LT GT 1 a", Error("ERR GT, LT, and/or NX options at the same time are not compatible")),
               ("ZADD z INCR 1 a 2 b", Error("ERR INCR option supports a single increment-element pair")), ("ZADD z x a", NO_FLOAT), ("ZADD z nan a", NO_FLOAT),
               ("ZADD z 1 b x a", NO_FLOAT), ("ZADD z 1e999 a", NO_FLOAT), ("ZINCRBY z x a", NO_FLOAT), ("ZINCRBY z nan a", NO_FLOAT), ("ZSCORE z b", None),
               ("ZRANGE z x 1", NO_NUMBER), ("ZRANGE z 0 1 x", SYNTAX), ("ZRANGE z 0 1 BYSCORE BYLEX", SYNTAX), ("ZRANGE z 0 1 REV REV", SYNTAX),
               ("ZRANGE z 0 1 LIMIT 0 1", LIMIT_BY_RANK), ("ZREVRANGE z 0 1 LIMIT 0 1", LIMIT_BY_RANK), ("ZRANGE z 0 1 BYSCORE LIMIT 0", SYNTAX),
               ("ZRANGE z 0 1 BYSCORE LIMIT 0 x", NO_NUMBER), ("ZRANGE z - + BYLEX WITHSCORES", SCORES_BY_LEX), ("ZRANGEBYLEX z - + WITHSCORES", SCORES_BY_LEX),
               ("ZREVRANGE z 0 1 REV", SYNTAX), ("ZRANGEBYSCORE z 0 1 REV", SYNTAX), ("ZRANGEBYSCORE z 0 1 BYLEX", SYNTAX), ("ZRANGEBYSCORE z x 1", NO_RANGE), ("ZRANGEBYSCORE z -1e999 1e999", [b"a"]), ("ZCOUNT z (1e999 inf", 0), ("ZCOUNT z 1e-999 1e400", 1),
               ("ZCOUNT z -1e999x 1", NO_RANGE), ("ZADD z 1e999 b", NO_FLOAT),
               ("ZRANGEBYSCORE z 0 (x", NO_RANGE), ("ZREVRANGEBYSCORE z nan 1", NO_RANGE), ("ZCOUNT z 0 x", NO_RANGE), ("ZREMRANGEBYSCORE z 0 [1", NO_RANGE),
               ("ZRANGEBYLEX z a +", NO_MEMBERS), ("ZRANGEBYLEX z - +a", NO_MEMBERS), ("ZREVRANGEBYLEX z + -a", NO_MEMBERS), ("ZLEXCOUNT z [a b", NO_MEMBERS),
               ("ZREMRANGEBYLEX z 0 1", NO_MEMBERS), ("ZREMRANGEBYRANK z x 1", NO_NUMBER), ("ZRANGESTORE t z 0 1 WITHSCORES", SYNTAX),
               ("ZRANGESTORE t z 0 x", NO_NUMBER), ("ZPOPMIN z 1 2", SYNTAX), ("ZPOPMIN z x", NO_NUMBER), ("ZPOPMAX z -1", NOT_POSITIVE),
               ("ZMPOP 0 z MIN", Error("ERR numkeys should be greater than 0")), ("ZMPOP x z MIN", Error("ERR numkeys should be greater than 0")), ("ZMPOP 2 z MIN", SYNTAX),
               ("ZMPOP 1 z LEFT", SYNTAX), ("ZMPOP 1 z MIN COUNT", SYNTAX), ("ZMPOP 1 z MIN COUNT 0", Error("ERR count should be greater than 0")),
               ("BZPOPMIN z x", Error("ERR timeout is not a float or out of range")), ("BZPOPMIN z -1", Error("ERR timeout is negative")),
               ("BZMPOP x 1 z MIN", Error("ERR timeout is not a float or out of range")), ("BZMPOP 0 1 z MID", SYNTAX),
               ("ZUNION x z", NO_NUMBER), ("ZUNION 0 z", Error(needs_key % "zunion")), ("ZINTER 0 z", Error(needs_key % "zinter")), ("ZDIFF -1 z", Error(needs_key % "zdiff")),
               ("ZINTERCARD 0 z", Error(needs_key % "zintercard")), ("ZUNIONSTORE t 0 z", Error(needs_key % "zunionstore")),
               ("ZINTERSTORE t 0 z", Error(needs_key % "zinterstore")), ("ZDIFFSTORE t 0 z", Error(needs_key % "zdiffstore")), ("ZUNION 2 z", SYNTAX),
               ("ZUNION 1 z WEIGHTS", SYNTAX), ("ZUNION 1 z WEIGHTS x", Error("ERR weight value is not a float")), ("ZUNION 1 z WEIGHTS 1 2", SYNTAX),
               ("ZUNION 1 z AGGREGATE", SYNTAX), ("ZUNION 1 z AGGREGATE AVERAGE", SYNTAX), ("ZDIFF 1 z WEIGHTS 1", SYNTAX), ("ZDIFF 1 z AGGREGATE SUM", SYNTAX),
               ("ZUNIONSTORE t 1 z WITHSCORES", SYNTAX), ("ZINTERCARD 1 z WITHSCORES", SYNTAX), ("ZINTERCARD 1 z LIMIT", SYNTAX), ("ZINTERCARD 1 z WEIGHTS 1", SYNTAX),
               ("ZINTERCARD 1 z LIMIT -1", Error("ERR LIMIT can't be negative")), ("ZINTERCARD 1 z LIMIT x", Error("ERR LIMIT can't be negative")),
               ("ZRANDMEMBER z x", NO_NUMBER), ("ZRANDMEMBER z 1 x", SYNTAX), ("ZRANDMEMBER z x BAD", NO_NUMBER),
               ("ZRANDMEMBER z 9223372036854775807 WITHSCORES", Error("ERR value is out of range")), ("ZRANDMEMBER none 9223372036854775807", []),
               ("ZUNION 1 text BAD", WRONG), ("ZINTERCARD 1 text LIMIT -1", WRONG), ("ZUNIONSTORE t 1 text WEIGHTS", WRONG),
               ("ZRANDMEMBER z 1 WITHSCORES x", SYNTAX),
               ("ZRANDMEMBER z -9223372036854775808", Error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")),
               ("ZSCAN z x", Error("ERR invalid cursor")), ("ZSCAN z 0 COUNT 0", SYNTAX), ("ZRANGE z 0 -1 WITHSCORES", [b"a", b"1"]), ("EXISTS t", 0))


# ---- A model ----

def printed(score):
    return b"%.17g" % score


def flat(pairs, has_scores=True):
    return [word for score, member in pairs for word in ((member, printed(score)) if has_scores else (member,))]


def ordered(model):
    return sorted((score, member) for member, score in model.items())


def some_score():
    return random.choice((random.randrange(-3, 4), random.randrange(-40, 40) / 4, math.inf, -math.inf) if random.random() < 0.9 else (random.random(),))


def some_member():
    return random.choice((b"%d" % random.randrange(40), bytes(random.choice(b"ab") for _ in range(random.randrange(4)))))


def add(client, model, name):
    """ZADD with options as the model has it; returns what it replies."""
    options = [word for word in ("NX", "XX", "GT", "LT", "CH") if random.random() < 0.2]
    if "NX" in options or "GT" in options and "LT" in options:
        options = [word for word in options if word in ("NX", "CH")]
    increments = random.random() < 0.3
    pairs = [(some_score(), some_member()) for _ in range(1 if increments else random.choice((1, 2, 50)))]
    added = changed = 0
    wanted = None
    for score, member in pairs:
        present = model.get(member)
        if "NX" in options and present is not None or "XX" in options and present is None:
            continue
        if increments and present is not None:
            score += present
        if math.isnan(score):
            wanted = NAN
            break
        if present is not None and ("GT" in options and score <= present or "LT" in options and score >= present):
            continue
        added += present is None
        changed += present is not None and present != score
        if present is None or present != score:
            model[member] = score
        wanted = printed(score)
    words = options + (["INCR"] if increments else []) + [word for score, member in pairs for word in (repr(float(score)), member)]
    got = client.call("ZADD", name, *words)
    wanted = wanted if increments else added + changed * ("CH" in options)
    assert got == wanted, (words, got, wanted)


def some_range(pairs):
    """The words of a range, and its members."""
    kind, backward = random.choice(("rank", "score", "lex")), random.random() < 0.5
    if kind == "rank":
        first, last = (random.randrange(-len(pairs) - 3, len(pairs) + 3) for _ in range(2))
        every = pairs[::-1] if backward else pairs
        begin = max(0, first + len(every) if first < 0 else first)
        end = last + len(every) if last < 0 else last
        return [first, last], kind, backward, every[begin : end + 1] if end >= begin else []
    if kind == "score":
        bounds = [(random.choice(("", "(")), some_score()) for _ in range(2)]
        chosen = [pair for pair in pairs if (bounds[0][1] < pair[0] or not bounds[0][0] and bounds[0][1] == pair[0]) and
                  (pair[0] < bounds[1][1] or not bounds[1][0] and pair[0] == bounds[1][1])]
        words = [f"{sign}{float(score)!r}" for sign, score in bounds]
    else:
        bounds = [random.choice((b"-", b"+", b"[" + some_member(), b"(" + some_member())) for _ in range(2)]

        def is_before(bound, member, counts):
            """True if the bound is before the member, or is the member and that counts."""
            return bound[:1] == b"-" or bound[:1] != b"+" and (bound[1:] < member or counts and bound[1:] == member)
        chosen = [pair for pair in pairs if is_before(bounds[0], pair[1], bounds[0][:1] == b"[") and
                  not is_before(bounds[1], pair[1], bounds[1][:1] == b"(")]
        words = bounds
    return words[::-1] if backward else words, kind, backward, chosen[::-1] if backward else chosen


def read_range(client, model, name, to):
    pairs = ordered(model)
    words, kind, backward, chosen = some_range(pairs)
    if kind == "lex" and len({score for score, _ in pairs}) > 1:
        return
    limit = []
    if kind != "rank" and random.random() < 0.5:
        offset, count = random.randrange(-1, 10), random.randrange(-1, 10)
        limit = ["LIMIT", offset, count]
        chosen = [] if offset < 0 else chosen[offset:] if count < 0 else chosen[offset : offset + count]
    options = {"rank": [], "score": ["BYSCORE"], "lex": ["BYLEX"]}[kind] + ["REV"] * backward
    random.shuffle(options)
    options += limit
    scores = ["WITHSCORES"] if kind != "lex" and random.random() < 0.5 else []
    assert client.call("ZRANGE", name, *words, *options, *scores) == flat(chosen, scores), (words, options)
    old = {"rank": "ZRANGE", "score": "ZRANGEBYSCORE", "lex": "ZRANGEBYLEX"}[kind].replace("Z", "ZREV" if backward else "Z")
    assert client.call(old, name, *words, *limit, *scores) == flat(chosen, scores), (old, words, limit)
    if not limit and not backward and kind != "rank":
        assert client.call("ZCOUNT" if kind == "score" else "ZLEXCOUNT", name, *words) == len(chosen)
    assert client.call("ZRANGESTORE", to, name, *words, *options) == len(chosen)
    assert client.call("ZRANGE", to, 0, -1, "WITHSCORES") == flat(sorted(chosen)) and client.call("EXISTS", to) == (len(chosen) > 0)


def remove(client, model, name):
    kind = random.randrange(4)
    pairs = ordered(model)
    if kind == 0:
        members = [some_member() for _ in range(random.choice((1, 3)))]
        assert client.call("ZREM", name, *members) == len(set(members) & set(model))
        removed = members
    elif kind == 1:
        words, how, backward, chosen = some_range(pairs)
        if backward or how == "lex" and len({score for score, _ in pairs}) > 1:
            return
        assert client.call({"rank": "ZREMRANGEBYRANK", "score": "ZREMRANGEBYSCORE", "lex": "ZREMRANGEBYLEX"}[how], name, *words) == len(chosen)
        removed = [member for _, member in chosen]
    else:
        count = random.choice((0, 1, 3, 100))
        popped = (pairs if kind == 2 else pairs[::-1])[:count]
        if count and random.random() < 0.5:
            got = client.call("ZMPOP", 2, "none", name, "MIN" if kind == 2 else "MAX", "COUNT", count)
            assert got == ([name, [[member, printed(score)] for score, member in popped]] if pairs else None), got
        else:
            assert client.call("ZPOPMIN" if kind == 2 else "ZPOPMAX", name, count) == flat(popped)
        removed = [member for _, member in popped]
    for member in removed:
        model.pop(member, None)


def check(client, model, name):
    pairs = ordered(model)
    assert client.call("ZRANGE", name, 0, -1, "WITHSCORES") == flat(pairs)
    assert client.call("ZCARD", name) == len(pairs) and client.call("EXISTS", name) == (len(pairs) > 0)
    members = [some_member() for _ in range(5)]
    assert client.call("ZMSCORE", name, *members) == [printed(model[member]) if member in model else None for member in members]
    for member in members:
        rank = [pair[1] for pair in pairs].index(member) if member in model else None
        assert client.call("ZRANK", name, member) == rank
        assert client.call("ZREVRANK", name, member) == (None if rank is None else len(pairs) - 1 - rank)


def test_random_operations():
    """The replies are those of a sorted list in Python."""
    with Server() as server:
        client = server.client()
        for _ in range(rounds_of(60)):
            model, name = {}, b"z"
            client.call("DEL", name)
            same = random.random() < 0.3 # all scores: for ranges of members
            for _ in range(30):
                kind = random.randrange(6)
                if kind < 2 and same:
                    members = {some_member() for _ in range(8)}
                    assert client.call("ZADD", name, *[word for member in members for word in (0, member)]) == len(members - set(model))
                    model.update({member: 0 for member in members})
                elif kind < 2:
                    add(client, model, name)
                elif kind < 3:
                    remove(client, model, name)
                elif kind < 5:
                    read_range(client, model, name, b"to")
                else:
                    check(client, model, name)
            check(client, model, name)


def test_large_sets():
    """Ranks in a set of many members, also after most have been removed."""
    with Server() as server:
        client = server.client()
        members = {b"%d" % i: float(random.randrange(2000)) for i in range(5000)}
        names = list(members)
        for i in range(0, 5000, 500):
            client.call("ZADD", "z", *[word for name in names[i : i + 500] for word in (repr(members[name]), name)])
        random.shuffle(names)
        for count in (4800, 200):
            pairs = ordered(members)
            for _ in range(50):
                rank = random.randrange(len(pairs))
                assert client.call("ZRANK", "z", pairs[rank][1]) == rank
                assert client.call("ZRANGE", "z", rank, rank + 1) == flat(pairs[rank : rank + 2], False)
                low = random.randrange(2000)
                assert client.call("ZCOUNT", "z", low, f"({low + 100}") == sum(low <= score < low + 100 for score in members.values())
            assert client.call("ZRANGE", "z", 0, -1, "WITHSCORES") == flat(pairs)
            removed, names = names[:count], names[count:]
            for name in removed:
                client.send(encoded("ZREM", "z", name))
                del members[name]
            assert [client.read() for _ in removed] == [1] * count
        assert client.call("EXISTS", "z") == 0


def test_combinations():
    """As Python has them, with weights, of sorted sets and sets, however often a key is named."""
    with Server() as server:
        client = server.client()
        for number_of_round in range(rounds_of(60)):
            sets = {}
            finite = number_of_round % 2 == 0
            for number in range(4):
                name, size = b"s%d" % number, random.choice((0, 1, 5, 60, 200))
                members = {b"%d" % random.randrange(300) for _ in range(size)}
                client.call("DEL", name)
                if number < 3:
                    sets[name] = {member: random.randrange(-20, 20) / 2 if finite or random.random() < 0.5 else random.choice((math.inf, -math.inf))
                                  for member in members}
                    if members:
                        client.call("ZADD", name, *[word for member, score in sets[name].items() for word in (repr(float(score)), member)])
                else:
                    sets[name] = dict.fromkeys(members, 1)
                    if members:
                        client.call("SADD", name, *members)
            names = [b"s%d" % random.randrange(4) for _ in range(random.randrange(1, 5))]
            # (a sum that meets both infinities depends on the order: so there are none in a round with sums)
            aggregate = random.choice(("SUM", "SUM", "MIN", "MAX")) if finite else random.choice(("MIN", "MAX"))
            weights = [random.choice((1, 2, -1, 0, 0.5) if finite else (1, 2, -1, 0, 0.5, math.inf)) for _ in names]
            if random.random() < 0.5:
                weights = [1] * len(names)
            options = (["WEIGHTS", *[repr(float(weight)) for weight in weights]] if weights != [1] * len(names) else []) + ["AGGREGATE", aggregate]
            for word in ("UNION", "INTER", "DIFF"):
                wanted = {}
                for name, weight in zip(names, weights):
                    for member, score in sets[name].items():
                        score *= weight
                        score = 0 if math.isnan(score) else score
                        if member in wanted:
                            score = {"SUM": sum, "MIN": min, "MAX": max}[aggregate]((wanted[member], score))
                        wanted[member] = score
                if word == "INTER":
                    wanted = {member: score for member, score in wanted.items() if all(member in sets[name] for name in names)}
                if word == "DIFF":
                    wanted = {member: score for member, score in sets[names[0]].items() if not any(member in sets[name] for name in names[1:])}
                used = options if word != "DIFF" else []
                pairs = [(member, score + 0) for score, member in ordered(wanted)]

                def same(got):
                    return [(got[i], float(got[i + 1])) for i in range(0, len(got), 2)] == pairs
                assert same(client.call("Z" + word, len(names), *names, *used, "WITHSCORES")), (word, names, used)
                assert client.call("Z" + word, len(names), *names, *used) == [member for member, _ in pairs]
                to = random.choice((b"to", b"s0"))
                client.call("EXPIRE", to, 1000)
                assert client.call("Z" + word + "STORE", to, len(names), *names, *used) == len(wanted)
                assert same(client.call("ZRANGE", to, 0, -1, "WITHSCORES")) and client.call("TTL", to) == (-1 if wanted else -2)
                if to == b"s0":
                    sets[b"s0"] = wanted
            shared = set(sets[names[0]]).intersection(*[sets[name] for name in names])
            assert client.call("ZINTERCARD", len(names), *names) == len(shared)
            assert client.call("ZINTERCARD", len(names), *names, "LIMIT", 3) == min(3, len(shared))
        client.call("DEL", "p", "q")
        client.call("ZADD", "p", "1.5", "a", 2, "b")
        client.call("ZADD", "q", 2, "a", 3, "c", -1, "b")
        expect(client, ("ZUNION 2 p q WITHSCORES", [b"b", b"1", b"c", b"3", b"a", b"3.5"]), ("ZINTER 2 p q WEIGHTS 2 3 WITHSCORES", [b"b", b"1", b"a", b"9"]),
               ("ZUNION 3 p q p AGGREGATE SUM WITHSCORES", [b"b", b"3", b"c", b"3", b"a", b"5"]))
        client.call("DEL", "p", "q")
        client.call("ZADD", "p", "inf", "a", 2, "b")
        client.call("ZADD", "q", "-inf", "a")
        expect(client, ("ZUNION 2 p q WITHSCORES", [b"a", b"0", b"b", b"2"]), ("ZUNION 1 p WEIGHTS 0 WITHSCORES", [b"a", b"0", b"b", b"0"]),
               ("ZUNIONSTORE p 1 none", 0), ("EXISTS p", 0), ("ZINTER 2 none q", []), ("ZDIFF 1 none", []))


def test_resp3():
    with Server() as server:
        client = server.client()
        client.call("HELLO", 3)
        client.call(*"ZADD z 1.5 a inf b -inf c 0.1 d".split())
        pair = b"*2\r\n$1\r\nc\r\n,-inf\r\n"
        for words, reply in (("ZSCORE z a", b",1.5\r\n"), ("ZSCORE z b", b",inf\r\n"), ("ZSCORE z d", b",0.10000000000000001\r\n"), ("ZSCORE z e", b"_\r\n"),
                             ("ZMSCORE z c e", b"*2\r\n,-inf\r\n_\r\n"), ("ZINCRBY z 1 a", b",2.5\r\n"), ("ZADD z NX INCR 1 a", b"_\r\n"),
                             ("ZRANGE z 0 0 WITHSCORES", b"*1\r\n" + pair), ("ZRANGE z 0 0", b"*1\r\n$1\r\nc\r\n"), ("ZRANK z e", b"_\r\n"),
                             ("ZUNION 1 z WITHSCORES", b"*4\r\n" + pair + b"*2\r\n$1\r\nd\r\n,0.10000000000000001\r\n*2\r\n$1\r\na\r\n,2.5\r\n*2\r\n$1\r\nb\r\n,inf\r\n"),
                             ("ZPOPMIN z", b"*2\r\n$1\r\nc\r\n,-inf\r\n"), ("ZADD z -inf c", b":1\r\n"), ("ZPOPMIN z 1", b"*1\r\n" + pair), ("ZADD z -inf c", b":1\r\n"),
                             ("ZMPOP 1 z MIN", b"*2\r\n$1\r\nz\r\n*1\r\n" + pair), ("ZMPOP 1 none MIN", b"_\r\n"), ("BZPOPMAX z 0", b"*3\r\n$1\r\nz\r\n$1\r\nb\r\n,inf\r\n"),
                             ("ZREM z d", b":1\r\n"), ("ZRANDMEMBER z", b"$1\r\na\r\n"), ("ZRANDMEMBER z 1 WITHSCORES", b"*1\r\n*2\r\n$1\r\na\r\n,2.5\r\n"),
                             ("ZRANDMEMBER none", b"_\r\n"), ("ZSCAN z 0", b"*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$3\r\n2.5\r\n")):
            client.send(encoded(*words.split()))
            assert client.file.read(len(reply)) == reply, words


def test_drawn_members():
    with Server() as server:
        client = server.client()
        members = {b"%d" % number: printed(number / 2) for number in range(50)}
        for member, score in members.items():
            client.call("ZADD", "z", score, member)
        seen = set()
        while len(seen) < 50: # (it would never end if one were never drawn)
            seen.add(client.call("ZRANDMEMBER", "z"))
        assert seen == set(members)
        for count, size in ((10, 10), (60, 50), (-60, 60), (0, 0)):
            got = client.call("ZRANDMEMBER", "z", count, "WITHSCORES")
            assert len(got) == 2 * size and all(members[got[i]] == got[i + 1] for i in range(0, len(got), 2))
            assert count < 0 or len(set(got[::2])) == size
            assert len(client.call("ZRANDMEMBER", "z", count)) == size
        expect(client, ("ZRANDMEMBER none", None), ("ZRANDMEMBER none 3", []), ("ZRANDMEMBER none -3 WITHSCORES", []))


def test_waiting():
    """Clients that wait are served in their order, by what adds members in whatever way, and not by other types."""
    with Server() as server:
        waiting = [server.client() for _ in range(3)]
        client = server.client()

        def wait(number, words):
            before = int(server.info(client)["blocked_clients"])
            waiting[number].send(encoded(*words.split()))
            until(lambda: int(server.info(client)["blocked_clients"]) == before + 1)

        wait(0, "BZPOPMIN none z 0")
        wait(1, "BZPOPMAX z 0")
        wait(2, "BZMPOP 0 2 none z MIN COUNT 2")
        client.call("RPUSH", "z", "x")
        client.call("DEL", "z")
        assert client.call("ZADD", "z", 1, "a", 2, "b", 3, "c", 4, "d", 5, "e") == 5
        assert waiting[0].read() == [b"z", b"a", b"1"]
        assert waiting[1].read() == [b"z", b"e", b"5"]
        assert waiting[2].read() == [b"z", [[b"b", b"2"], [b"c", b"3"]]]
        assert client.call("ZRANGE", "z", 0, -1) == [b"d"]
        client.call("DEL", "z")
        client.call("SADD", "s", "a")
        client.call("ZADD", "other", 3, "x")
        for change in ("ZINCRBY z 1 x", "ZUNIONSTORE z 1 s", "ZRANGESTORE z other 0 -1", "RENAME other z", "COPY more z"):
            wait(0, "BZPOPMIN z 0")
            client.call("ZADD", "more", 1, "y")
            client.call(*change.split())
            assert waiting[0].read()[0] == b"z", change
            assert client.call("EXISTS", "z") == 0
        # a list and a sorted set have queues of their own
        wait(0, "BLPOP z 0")
        wait(1, "BZPOPMIN z 0")
        client.call("RPUSH", "z", "x")
        assert waiting[0].read() == [b"z", b"x"]
        client.call("ZADD", "z", 1, "a")
        assert waiting[1].read() == [b"z", b"a", b"1"]
        # an end without a member
        expect(client, ("BZPOPMIN z 0.01", None), ("BZPOPMAX none z 0.01", None), ("BZMPOP 0.01 1 z MAX", None))
        for words in ("BZPOPMIN z 0", "BZMPOP 0 1 z MIN"):
            expect(client, ("MULTI", "OK"), (words, "QUEUED"), ("EXEC", [None]))
        wait(0, "BZPOPMIN z 0")
        waiting[0].close()
        until(lambda: server.info(client)["blocked_clients"] == "0")
        assert client.call("ZADD", "z", 1, "a") == 1 and client.call("ZCARD", "z") == 1


def test_records():
    """All changes are in the file, as they were made."""
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    path = os.path.join(directory, "file")

    def state(client):
        return {key: client.call("ZRANGE", key, 0, -1, "WITHSCORES") for key in client.call("KEYS", "*") if client.call("TYPE", key) == "zset"}

    try:
        for how in ("kill", "rewrite", "snapshot"):
            with Server("--append-only", path, "--snapshot", path + ".snapshot") as server:
                client = server.client()
                client.call("FLUSHALL")
                client.call("ZADD", "many", *[word for i in range(1000) for word in (i, i)])
                for words in ("ZADD a 1 x 2 y 0.1 z inf p -inf q", "ZADD a CH XX 7 x 7 none", "ZADD a NX 1 x 1 r", "ZADD a INCR 0.2 z", "ZADD a GT 1 z 9 z",
                              "ZINCRBY a 1e-300 s", "ZREM a y none", "ZREM a none", "ZPOPMIN a", "ZPOPMAX many 100", "ZPOPMIN many 100",
                              "ZREMRANGEBYRANK many 0 99", "ZREMRANGEBYSCORE many (300 400", "ZADD b 0 a 0 b 0 c", "ZREMRANGEBYLEX b [b (c", "ZRANGESTORE c a 0 1",
                              "ZRANGESTORE a0 a 5 1", "SADD s x w", "ZUNIONSTORE d 2 a s WEIGHTS 2 3", "ZINTERSTORE e 2 a s", "ZDIFFSTORE f 2 a s", "ZDIFFSTORE b2 1 none",
                              "COPY a g", "RENAME b h", "ZADD g 77 new", "ZADD i 1 a", "ZPOPMAX i", "ZADD j 1 a 2 b", "ZMPOP 1 j MIN", "ZADD k 1 a", "BZPOPMIN k 0",
                              "ZADD l 1 a", "EXPIRE l 1000", "ZADD m -0 a", "SET n x", "ZUNIONSTORE n 1 a"):
                    assert not isinstance(client.call(*words.split()), Error), words
                before = state(client)
                assert len(before[b"many"]) == 2 * 600 and before[b"j"] == [b"b", b"2"] and b"i" not in before and b"k" not in before
                assert before[b"a"] == [b"s", b"1e-300", b"r", b"1", b"x", b"7", b"z", b"9", b"p", b"inf"], before[b"a"]
                if how == "rewrite":
                    client.call("BGREWRITEAOF")
                    until(lambda: server.info(client)["aof_rewrite_in_progress"] == "0")
                if how == "snapshot":
                    assert client.call("SAVE") == "OK"
                server.end(signal.SIGKILL)
                server.process.returncode = 0
            options = ("--snapshot", path + ".snapshot") if how == "snapshot" else ("--append-only", path)
            with Server(*options) as server:
                client = server.client()
                assert state(client) == before and client.call("TTL", "l") > 900
                server.end(signal.SIGKILL)
                server.process.returncode = 0
    finally:
        shutil.rmtree(directory)


def test_watched_sorted_sets():
    with Server() as server:
        client, other = server.client(), server.client()
        for first, change in (("ZADD k 1 a", "ZADD k 2 a"), ("ZADD k 1 a", "ZINCRBY k 1 b"), ("ZADD k 1 a 2 b", "ZREM k a"), ("ZADD k 1 a", "ZPOPMIN k"),
                              ("ZADD k 1 a 2 b", "ZREMRANGEBYRANK k 0 0"), ("ZADD m 1 a", "ZUNIONSTORE k 1 m"), ("ZADD m 1 a", "ZRANGESTORE k m 0 -1"),
                              ("ZADD k 1 a", "ZMPOP 1 k MAX"), ("ZADD k 1 a", "ZINTERSTORE k 2 k m")):
            for same in (change, "ZADD n 1 x", "ZREM k none", "ZADD k XX 1 none", "ZREMRANGEBYSCORE k (inf inf"):
                other.call("DEL", "k", "m", "n")
                other.call(*first.split())
                client.call("WATCH", "k")
                other.call(*same.split())
                client.call("MULTI")
                assert client.call("EXEC") == (None if same == change else []), same


def test_sorted_sets_are_bounded():
    """Replies have a limit, short requests too, and others have their turn."""
    with Server("--reply", 100000) as server:
        client, other = server.client(), server.client()
        too_large = Error("ERR the reply would be larger than 100000 bytes")
        for i in range(0, 13000, 1000):
            client.call("ZADD", "z", *[word for j in range(i, i + 1000) for word in (j, f"{j:0100}")])
        client.call("ZADD", "t", *[word for j in range(9000) for word in (j, j)])
        for words in (("ZRANGE", "z", 0, -1), ("ZRANGE", "z", 0, -1, "WITHSCORES"), ("ZREVRANGEBYSCORE", "z", "inf", "-inf"), ("ZUNION", 2, "z", "t"),
                      ("ZDIFF", 2, "z", "t"), ("ZINTER", 2, "z", "z"), ("ZPOPMIN", "z", 12900), ("ZMPOP", 1, "z", "MAX", "COUNT", 12900), ("ZRANDMEMBER", "z", 12900),
                      ("ZRANDMEMBER", "z", -(1 << 60))):
            client.send(encoded("PING") + encoded(*words) + encoded("PING"))
            assert [client.read() for _ in range(3)] == ["PONG", too_large, "PONG"], words
        assert client.call("ZCARD", "z") == 13000
        repeated = Error("ERR keys that are named again have more than 1048576 members")
        for words in (("ZUNION", 130, *["t"] * 130), ("ZINTERSTORE", "u", 130, *["t"] * 130)):
            assert client.call(*words) == repeated
        assert client.call("ZINTERCARD", 130, *["t"] * 130) == 9000 and client.call("ZDIFFSTORE", "u", 130, *["t"] * 130) == 0
        for words in (("ZINTERCARD", 2, "z", "t"), ("ZUNIONSTORE", "u", 1, "t"), ("ZDIFFSTORE", "u", 2, "t", "z"), ("ZRANGESTORE", "u", "t", 0, -1)):
            other.call("CONFIG", "RESETSTAT")
            with held(server.process):
                client.send(encoded(*words) * 12)
                other.send(encoded("INFO"))
            info = other.read().decode()
            before = int(info.split("total_commands_processed:")[1].split()[0])
            assert before <= 8, (words[0], before)
            for _ in range(12):
                client.read()
        cursor, seen = 0, {}
        while True:
            cursor, words = client.call("ZSCAN", "t", cursor, "MATCH", "1*", "COUNT", 100)
            seen.update(zip(words[::2], words[1::2]))
            cursor = int(cursor)
            if cursor == 0:
                break
        assert seen == {b"%d" % number: b"%d" % number for number in range(9000) if str(number).startswith("1")}
        client.send(encoded("PING") + encoded("ZMSCORE", "t", *["1"] * 200000) + encoded("PING"))
        assert [client.read() for _ in range(3)] == ["PONG", too_large, "PONG"]
        assert client.call("ZREMRANGEBYRANK", "z", 0, -2) == 12999 and client.call("DEL", "z", "t", "u") == 3


def test_one_member_has_no_limit():
    """A member that is larger than the limit of replies can be popped, also after a large reply."""
    large = b"x" * (2 << 20)
    with Server("--reply", 100000) as server:
        client, waiting = server.client(), server.client()
        for words, wanted in (("ZPOPMIN z", [large, b"1"]), ("ZPOPMAX z 1", [large, b"1"]), ("BZPOPMIN z 0", [b"z", large, b"1"]), ("ZMPOP 1 z MAX", [b"z", [[large, b"1"]]])):
            client.call("ZADD", "z", 1, large)
            assert client.call(*words.split()) == wanted and client.call("EXISTS", "z") == 0, words
        waiting.send(encoded("BZPOPMAX", "z", 0))
        until(lambda: server.info(client)["blocked_clients"] == "1")
        assert client.call("ZADD", "z", 1, large) == 1 and waiting.read() == [b"z", large, b"1"]
        client.call("ZADD", "z", 1, large, 2, "a", 3, "b")
        client.call("ZADD", "more", 1, large)
        expect(client, ("MULTI", "OK"), ("ZPOPMIN z", "QUEUED"), ("ZPOPMIN z", "QUEUED"), ("ZPOPMIN more", "QUEUED"))
        too_much = Error("ERR the transaction does too much")
        assert client.call("EXEC") == [too_much, [b"a", b"2"], too_much]
        assert client.call("ZRANGE", "z", 0, -1) == [b"b"] and client.call("EXISTS", "more") == 0


def test_replies_in_slices_have_the_same_limit():
    """A set has the same limit whether it is listed in slices, or in one step as in a transaction."""
    too_large = Error("ERR the reply would be larger than 1024 bytes")
    with Server("--reply", 1024) as server:
        client = server.client()
        for size, wanted in ((200, False), (250, True)):
            client.call("DEL", "s")
            for i in range(0, 5000, 1000):
                client.call("SADD", "s", *[f"{j:0{size}}" for j in range(i, i + 1000)])
            alone = client.call("SMEMBERS", "s")
            expect(client, ("MULTI", "OK"), ("SMEMBERS s", "QUEUED"))
            queued = client.call("EXEC")[0]
            assert (alone == too_large) == wanted and isinstance(queued, Error) == wanted, (size, len(alone), len(queued))


def test_ranges_are_removed_by_rank_in_the_file():
    """The record of a range is short, however many members it removes. Records by name are still read."""
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    path = os.path.join(directory, "file")
    try:
        with Server("--append-only", path) as server:
            client = server.client()
            for key in ("z", "y"):
                client.call("ZADD", key, *[word for i in range(5000) for word in (i, f"{i:0100}")])
            for words, wanted in (("ZREMRANGEBYRANK z 1 -2", 4998), ("ZREMRANGEBYSCORE y 4900 inf", 100), ("ZREMRANGEBYLEX y [x +", 0)):
                before = int(server.info(client)["aof_current_size"])
                assert client.call(*words.split()) == wanted
                assert int(server.info(client)["aof_current_size"]) - before < 1000
            before = int(server.info(client)["aof_current_size"])
            assert len(client.call("ZPOPMAX", "y", 900)) == 1800 and len(client.call("ZPOPMIN", "y", 1000)) == 2000
            assert len(client.call("ZMPOP", 1, "y", "MIN", "COUNT", 1000)[1]) == 1000 and client.call("ZREM", "y", f"{2000:0100}") == 1
            assert int(server.info(client)["aof_current_size"]) - before < 3000
            left = [client.call("ZRANGE", key, 0, -1, "WITHSCORES") for key in ("z", "y")]
            assert left[0] == [b"%0100d" % 0, b"0", b"%0100d" % 4999, b"4999"] and len(left[1]) == 2 * 1999
            server.end(signal.SIGKILL)
            server.process.returncode = 0
        with Server("--append-only", path) as server:
            client = server.client()
            assert [client.call("ZRANGE", key, 0, -1, "WITHSCORES") for key in ("z", "y")] == left
    finally:
        shutil.rmtree(directory)


def test_a_sum_that_is_no_number_changes_nothing():
    """Neither the key nor the journal changes; no key is created."""
    nan = Error("ERR resulting score is not a number (NaN)")
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    try:
        with Server("--append-only", os.path.join(directory, "kv.aof")) as server:
            client = server.client()
            client.call("ZADD", "z", "inf", "a", 1, "b")
            before = server.info(client)
            for words in ("ZADD z INCR -inf a", "ZADD z GT INCR -inf a", "ZADD z XX CH INCR -inf a", "ZINCRBY z -inf a"):
                assert client.call(*words.split()) == nan, words
            for words in ("ZADD none INCR nan a", "ZINCRBY none nan a", "ZADD z 2 c nan d"):
                assert client.call(*words.split()) == Error("ERR value is not a valid float"), words
            after = server.info(client)
            assert client.call("KEYS", "*") == [b"z"] and after["lazyfree_pending_objects"] == "0"
            assert client.call("ZRANGE", "z", 0, -1, "WITHSCORES") == [b"b", b"1", b"a", b"inf"]
            for name in ("aof_current_size", "rdb_changes_since_last_save"):
                assert after[name] == before[name], name
    finally:
        shutil.rmtree(directory)


def test_discarded_values_do_not_add_up():
    """A client has its next request run when what the one before has discarded is freed; in a transaction it is freed between requests."""
    count, times = 12000, 3
    with Server("--reply", 1024) as server:
        client = server.client()

        def pending(replies):
            """The numbers that the replies of INFO have."""
            return [int(reply.split(b"lazyfree_pending_objects:")[1].split()[0]) for reply in replies
                    if isinstance(reply, bytes) and b"lazyfree" in reply]

        def until_nothing_is_pending():
            """The server's coroutine may have met some of it, which it frees in its own time."""
            while pending([client.call("INFO")])[0] != 0:
                pass

        for i in range(0, count, 2000):
            client.call("ZADD", "z", *[word for j in range(i, i + 2000) for word in (j, f"{j:0100}")])
        for words in ("ZUNION 1 z", "ZINTER 2 z z", "ZDIFF 2 z none", "ZUNIONSTORE t 1 z", "ZINTERSTORE t 2 z z", "ZDIFFSTORE t 1 z", "ZRANGESTORE t z 0 -1",
                      "COPY z t REPLACE", "SUNIONSTORE u s", "ZUNIONSTORE v 1 z", "DEL v"):
            client.send(encoded("SADD", "s", *range(5000)) + encoded("ZUNIONSTORE", "v", 1, "z") + (encoded(*words.split()) + encoded("INFO")) * times)
            numbers = pending(client.read() for _ in range(2 + 2 * times))
            assert len(numbers) == times and max(numbers) == 0, (words, numbers)
        for words in ("ZUNION 1 z", "ZUNIONSTORE t 1 z", "ZRANGESTORE t z 0 -1", "COPY z t REPLACE"):
            client.send(encoded("MULTI") + (encoded(*words.split()) + encoded("INFO")) * times + encoded("EXEC"))
            for _ in range(1 + 2 * times):
                client.read()
            numbers = pending(client.read())
            assert len(numbers) == times and max(numbers) == 0, (words, numbers)
        # of a key that was there before, the rest is freed behind the transaction
        client.send(encoded("MULTI") + encoded("DEL", "z") + encoded("INFO") + encoded("EXEC") + encoded("INFO"))
        for _ in range(3):
            client.read()
        first = pending(client.read())[0]
        assert 0 < first <= count + 1, first
        client.read()
        until_nothing_is_pending()
        # collections of few elements
        for words in (("ZADD k 1 a", "ZPOPMIN k"), ("RPUSH k a", "LPOP k"), ("ZADD none XX 1 a", "ZADD none XX INCR 1 a")):
            client.send(b"".join(encoded(*word.split()) for word in words) * 2000 + encoded("INFO"))
            assert pending(client.read() for _ in range(4001))[-1] == 0, words
        # all keys, and their values
        client.call("SADD", "s", *range(5000))
        client.call("MSET", *range(20000))
        assert client.call("FLUSHALL") == "OK"
        until_nothing_is_pending()


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
