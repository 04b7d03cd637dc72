"""Tests messages to many subscribers, and subscriptions to many channels: kv_messages_test.py PROGRAM [NAME...]."""
import random

from client import Error, Push, Server, encoded, expect, held, run, until

TURN = 8192  # steps


def matching(count):
    """So many different patterns that match `channel`."""
    return [b"[c%d]*" % i for i in range(count)]


def subscribe(client, *words):
    """Returns the confirmations."""
    client.send(encoded(*words))
    return [client.read() for _ in words[1:]]


def number_of(server, client, name):
    return int(server.info(client)[name])


def test_messages_to_many_subscribers_give_others_their_turn():
    """A step for each pattern and for each message, and more for long ones. In a transaction it is one step."""
    with Server("--patterns", 20000) as server:
        client, publisher, subscriber = server.client(), server.client(), server.client()
        for count in (10, 20000):
            names = matching(count)
            there = client.call("PUBSUB", "NUMPAT")
            assert subscribe(subscriber, "PSUBSCRIBE", *names) == [[b"psubscribe", name, max(there, i + 1)] for i, name in enumerate(names)]
            for size in (1, 1024):
                for before, behind in (((), ()), (["MULTI"], ["EXEC"])):
                    turns, work = number_of(server, client, "turns_ended"), number_of(server, client, "total_work")
                    for word in before:
                        assert publisher.call(word) == "OK"
                    reply = publisher.call("PUBLISH", "channel", "x" * size)
                    assert reply == ("QUEUED" if before else count)
                    for word in behind:
                        assert publisher.call(word) == [count]
                    turns, work = number_of(server, client, "turns_ended") - turns, number_of(server, client, "total_work") - work
                    steps = count * (3 if size == 1024 else 2)
                    assert steps <= work <= steps + 100, (count, size, work)
                    if before:
                        assert turns <= 2, (count, size, turns)
                    else:
                        assert steps // TURN <= turns <= steps // TURN + 2, (count, size, turns)
                    got = [subscriber.read() for _ in names]
                    assert sorted(got) == sorted([b"pmessage", name, b"channel", b"x" * size] for name in names)


def steps_before(server, greedy, other, words, first):
    """Has both requests arrive before the next step; returns the steps until the other client is served."""
    request = encoded(*words)
    greedy.send(request[:-1])
    until(lambda: b"qbuf=%d " % (len(request) - 1) in other.call("CLIENT", "LIST"))
    before = number_of(server, other, "total_work")
    with held(server.process):
        for client, data in ((greedy, request[-1:]), (other, encoded("INFO")))[::first]:
            client.send(data)
    info = other.read().decode()
    return int(info.split("total_work:")[1].split()[0]) - before


def test_another_client_waits_for_a_turn_only():
    """Counted in steps of the greedy client that are before the other client's: not in time."""
    count = 40000
    names = [b"%d" % i for i in range(count)]
    with Server("--patterns", count) as server:
        for first in (1, -1):
            many, publisher, other = server.client(), server.client(), server.client()
            # each replies so often, and the last reply is the number of subscriptions that are left, or the reply itself
            for client, words, replies in ((many, ["SUBSCRIBE", *names], count), (publisher, ["PUBSUB", "NUMSUB", *names], 1),
                                           (publisher, ["PUBSUB", "CHANNELS"], 1), (many, ["SUBSCRIBE", *names], count),
                                           (many, ["UNSUBSCRIBE", *names], count), (many, ["PSUBSCRIBE", *matching(count)], count),
                                           (publisher, ["PUBLISH", "channel", "x"], 1), (many, ["UNSUBSCRIBE"], 1),
                                           (many, ["PUNSUBSCRIBE"], count), (many, ["SUBSCRIBE", *names], count), (many, ["RESET"], 1)):
                steps = steps_before(server, client, other, words, first)
                assert steps <= 2 * TURN + 1000, (words[:2], steps)
                if words[0] == "PUBLISH":
                    assert all(many.read()[0] == b"pmessage" for _ in range(count))
                got = [client.read() for _ in range(replies)][-1]
                if words[0] in ("SUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE"):
                    assert got[0] == words[0].lower().encode() and got[2] == (0 if words[0] == "PUNSUBSCRIBE" else count), (words[:2], got)
                elif words[0] == "PUBSUB":
                    assert got == [word for name in names for word in (name, 1)] if words[1] == "NUMSUB" else sorted(got) == sorted(names)
                else:
                    assert got in ([b"unsubscribe", b"39999", 0], [b"unsubscribe", None, count], count, "RESET"), (words[:2], got)
            assert many.call("PING") == "PONG"
            for client in (many, publisher, other):
                client.close()


def test_subscriptions_of_a_client_that_leaves_are_removed_in_turns():
    count = 40000
    with Server() as server:
        for _ in range(3):
            many, other = server.client(), server.client()
            assert subscribe(many, "SUBSCRIBE", *[b"%d" % i for i in range(count)])[-1][2] == count
            turns = number_of(server, other, "turns_ended")
            many.vanish()
            until(lambda: server.info(other)["pubsub_channels"] == "0")
            assert number_of(server, other, "turns_ended") - turns >= count // TURN
            assert other.call("PUBLISH", "1", "x") == 0


def test_all_subscribers_have_messages_in_one_order():
    """Publishers at the same time, one of them in transactions, and one that leaves at once."""
    count, each = 6000, 4
    with Server() as server:
        many, single = server.client(), server.client()
        names = matching(count)
        subscribe(many, "PSUBSCRIBE", *names)
        assert single.call("SUBSCRIBE", "channel") == [b"subscribe", b"channel", 1]
        publishers = [server.client() for _ in range(4)]
        random.shuffle(publishers)
        with held(server.process):
            for at, publisher in enumerate(publishers):
                for number in range(each if at < 3 else 1):
                    publish = encoded("PUBLISH", "channel", f"{at}:{number}")
                    publisher.send(encoded("MULTI") + publish + publish + encoded("EXEC") if at == 1 else publish)
                if at < 3:
                    publisher.send(encoded("ECHO", at))
            publishers[3].close()
        for at, publisher in enumerate(publishers[:3]):
            for _ in range(each):
                if at == 1:
                    assert [publisher.read() for _ in range(3)] == ["OK", "QUEUED", "QUEUED"]
                got = publisher.read()
                assert got == ([count + 1] * 2 if at == 1 else count + 1), (at, got)
            assert publisher.read() == b"%d" % at
        total = each * 4 + 1
        order = [single.read()[2] for _ in range(total)]
        for at in range(4):
            own = [b"%d:%d" % (at, number) for number in range(each if at < 3 else 1) for _ in range(1 + (at == 1))]
            assert [message for message in order if message.startswith(b"%d:" % at)] == own
        by_pattern = {name: [] for name in names}
        for _ in range(total * count):
            _, name, channel, message = many.read()
            by_pattern[name].append(message)
        assert all(messages == order for messages in by_pattern.values())


def test_subscriptions_come_and_go_while_messages_are_delivered():
    """Those that stay have each message."""
    count = 5000
    with Server() as server:
        stays, changes, leaves, publisher = (server.client() for _ in range(4))
        names = matching(count)
        for client in (stays, changes, leaves):
            subscribe(client, "PSUBSCRIBE", *random.sample(names, count))
            subscribe(client, "SUBSCRIBE", "channel")
        gone, messages = random.sample(names, count // 2), 10
        with held(server.process):
            publisher.send(encoded("PUBLISH", "channel", "x") * messages)
            changes.send(encoded("PUNSUBSCRIBE", *gone) + encoded("PSUBSCRIBE", *gone[:100]))
            leaves.vanish()
        for _ in range(messages):
            assert count + 1 <= publisher.read() <= 3 * (count + 1)
        for client, left in ((stays, set(names)), (changes, set(names) - set(gone))):
            client.send(encoded("PING"))
            got = []
            while not got or got[-1][0] != b"pong":
                got.append(client.read())
            assert sum(reply[0] == b"message" for reply in got) == messages
            counts = {name: 0 for name in names}
            for reply in got:
                if reply[0] == b"pmessage":
                    counts[reply[1]] += 1
            assert all(counts[name] == messages if name in left else counts[name] <= messages for name in names)
        until(lambda: server.info(publisher)["pubsub_patterns"] == str(count))
        until(lambda: publisher.call("PUBLISH", "channel", "last") == 2 * (count + 1) - len(gone) + 100)


def test_own_messages_are_before_the_reply():
    count = 9000
    with Server() as server:
        client = server.client()
        client.call("HELLO", 3)
        subscribe(client, "PSUBSCRIBE", *matching(count))
        publish = encoded("PUBLISH", "channel", "x")
        client.send(publish + encoded("CLIENT", "REPLY", "SKIP") + publish + encoded("MULTI") + publish + encoded("EXEC") + encoded("PING"))
        got = [client.read() for _ in range(3 * count + 5)]
        replies = [(at, reply) for at, reply in enumerate(got) if not isinstance(reply, Push)]
        assert replies == [(count, count), (2 * count + 1, "OK"), (2 * count + 2, "QUEUED"), (2 * count + 3, [count]), (3 * count + 4, "PONG")]


def test_patterns_of_a_client_have_a_limit():
    with Server("--patterns", 3) as server:
        client, other = server.client(), server.client()
        refused = Error("ERR a client may subscribe to 3 patterns")
        assert subscribe(client, "PSUBSCRIBE", "a", "b", "a", "c", "d", "b") == [
            [b"psubscribe", b"a", 1], [b"psubscribe", b"b", 2], [b"psubscribe", b"a", 2], [b"psubscribe", b"c", 3], refused, [b"psubscribe", b"b", 3]]
        assert subscribe(client, "SUBSCRIBE", "a", "b", "c", "d")[-1] == [b"subscribe", b"d", 7]
        assert other.call("PUBLISH", "d", "x") == 1 and client.read() == [b"message", b"d", b"x"]
        assert client.call("PUNSUBSCRIBE", "b") == [b"punsubscribe", b"b", 6]
        assert subscribe(client, "PSUBSCRIBE", "d", "e") == [[b"psubscribe", b"d", 7], refused]
        expect(other, ("CONFIG GET patterns", [b"patterns", b"3"]), ("CONFIG SET patterns 4", "OK"))
        assert subscribe(client, "PSUBSCRIBE", "e", "f") == [[b"psubscribe", b"e", 8], Error("ERR a client may subscribe to 4 patterns")]
        expect(other, ("PUBSUB NUMPAT", 4), ("CONFIG SET patterns 0", "OK"), ("PSUBSCRIBE a", Error("ERR a client may subscribe to 0 patterns")))
        assert other.call("GET", "none") is None  # (it has no subscription)


def test_names_of_channels_and_patterns_have_a_limit():
    with Server() as server:
        client, other = server.client(), server.client()
        name, long = "a" * 4096, "a" * 4097
        refused = Error("ERR a channel or pattern may have 4096 bytes")
        assert subscribe(client, "SUBSCRIBE", name, long, "b") == [[b"subscribe", name.encode(), 1], refused, [b"subscribe", b"b", 2]]
        assert subscribe(client, "PSUBSCRIBE", long, "a*") == [refused, [b"psubscribe", b"a*", 3]]
        assert other.call("PUBLISH", long, "x") == Error("ERR a channel may have 4096 bytes")
        assert other.call("PUBLISH", name, "x") == 2
        assert client.read() == [b"message", name.encode(), b"x"] and client.read() == [b"pmessage", b"a*", name.encode(), b"x"]
        assert client.call("UNSUBSCRIBE", long) == [b"unsubscribe", long.encode(), 3]


def test_a_slow_pattern_is_more_work():
    """The steps of a comparison count, 32 as one, whatever compares."""
    text, pattern = "a" * 4096, "*" + "a" * 100 + "b"
    steps = (4096 - 100) * 100

    def work_of(*words):
        before = int(server.info(other)["total_work"])
        reply = other.call(*words)
        return reply, int(server.info(other)["total_work"]) - before

    with Server() as server:
        client, other = server.client(), server.client()
        for words, wanted in ((("PSUBSCRIBE", pattern), [b"psubscribe", pattern.encode(), 1]), (("SUBSCRIBE", text), [b"subscribe", text.encode(), 2])):
            assert client.call(*words) == wanted
        assert other.call("SET", text, "x") == "OK" and other.call("HSET", "h", text, "x") == 1
        for words, wanted in ((("PUBLISH", text, "x"), 1), (("KEYS", pattern), []), (("SCAN", 0, "MATCH", pattern), [b"0", []]), (("HSCAN", "h", 0, "MATCH", pattern), [b"0", []]),
                              (("PUBSUB", "CHANNELS", pattern), [])):
            reply, work = work_of(*words)
            if words[0] in ("SCAN", "HSCAN"):
                reply[0] = b"0"  # (the scan ends with the turn)
            assert reply == wanted and steps / 32 <= work <= 2 * steps / 32, (words[0], reply, work)
        reply, work = work_of("KEYS", "h" + "*" * 32000)
        assert reply == [b"h"] and work >= 1000, work
        # (a pattern that fits at once is little work)
        reply, work = work_of("KEYS", "a*")
        assert reply == [text.encode()] and work < 100, work


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
