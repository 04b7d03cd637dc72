"""Tests MONITOR, also beside redis-server: kv_monitor_test.py PROGRAM [NAME...]."""
import os
import re
import tempfile

from client import Client, Error, Server, encoded, expect, held, run, until
from redis import Redis, has_redis

TURN = 8192  # steps


def monitor_of(server):
    monitor = server.client()
    assert monitor.call("MONITOR") == "OK"
    return monitor


def lines_until(monitor, end):
    """The lines before the one that shows ECHO `end`, as pairs of the origin and the arguments."""
    lines = []
    while True:
        line = monitor.file.readline()
        if not line:
            raise EOFError
        found = re.fullmatch(rb'\+\d{10}\.\d{6} \[(0 [^\]]*)\] (".*")\r\n', line)
        assert found, line
        if found[2] == b'"ECHO" "%s"' % end:
            return lines
        lines.append(found.groups())


REQUESTS = """
GET a|AUTH bad|AUTH pw|AUTH default pw|AUTH user pw|HELLO 2 AUTH default pw|HELLO 3 AUTH default bad SETNAME x|HELLO 2 AUTH default pw SETNAME x
HELLO 2 SETNAME auth AUTH default pw|HELLO 2|HELLO|HELLO 9|SET a 1 EX 10|set a 010|Get a|GET|nothing|NOTHING a b|MONITOR a|SPOP s|SPOP s 2
LPUSH a b|LPUSH l a b c|SADD s a b|LASTSAVE|INFO|INFO server|CLIENT ID|CLIENT ID 3|CLIENT INFO|CLIENT GETNAME|CLIENT SETNAME a|CLIENT REPLY ON|CLIENT REPLY x|client id
CLIENT NOTHING|CLIENT LIST|CLIENT LIST ID 1|CLIENT KILL 1.2.3.4:5|CLIENT KILL ID 999|CLIENT PAUSE 0|CLIENT UNPAUSE|CLIENT UNBLOCK 999|CLIENT NO-EVICT ON|CLIENT NO-EVICT x
CONFIG GET port|CONFIG SET maxmemory 0|CONFIG RESETSTAT|CONFIG NOTHING|CONFIG|OBJECT ENCODING l|OBJECT ENCODING none|OBJECT NOTHING a|OBJECT REFCOUNT l|OBJECT IDLETIME l|OBJECT FREQ none|OBJECT FREQ l
COMMAND COUNT|COMMAND NOTHING|SAVE|BGSAVE|TIME|PUBSUB NUMPAT|PUBSUB NUMSUB a|PUBSUB CHANNELS|PUBSUB NOTHING|PUBLISH a b|SHUTDOWN x
MULTI|GET a|SET b 1|EXEC|MULTI|GET a|NOTHING|EXEC|MULTI|GET a|CONFIG GET x|CLIENT ID|CLIENT LIST|PING|INCR l|MULTI|WATCH a|MONITOR|SAVE|PUBLISH a b|EXEC
MULTI|GET a|CONFIG GET x|CLIENT ID|CLIENT LIST|PING|INCR l|MONITOR|PUBLISH a b|EXEC|EXEC|DISCARD|MULTI|DISCARD|MULTI|EXEC
WATCH a|MULTI|GET a|SET a 2|EXEC|WATCH b|UNWATCH|SELECT 0|SELECT 99|DBSIZE|KEYS *|SCAN 0|FLUSHALL|FLUSHDB|ECHO a|PING|PING a|GETSET a b|GETDEL a|SORT l|SORT l BY nothing STORE m
EXPIRE a 10|EXPIRE a x|INCRBYFLOAT f 1.5|INCRBYFLOAT f x|ZADD z 1 a 2 b|ZPOPMIN z|ZRANGESTORE y z 0 -1|SINTERSTORE s s s|SMOVE s t a|RESTORE|BLPOP none 0.001|LPUSH l c|BLPOP l 1|LMOVE l l LEFT RIGHT
RENAME l l2|RENAME none x|COPY l2 l3|DEL l2 l3 s|UNLINK x|HSET h a b|HINCRBY h a 1|RESET|AUTH pw|PING
"""


def shown_by(server):
    """The lines of the requests, with the clients' address masked if it is that of a Unix socket."""
    client, monitor, marker = server.client(), server.client(), server.client()
    shown = {}
    for other in (monitor, marker):
        assert other.call("AUTH", "pw") == "OK"
    assert monitor.call("MONITOR") == "OK"

    def note(name):
        marker.call("ECHO", "end")
        shown[name] = lines_until(monitor, b"end")

    for number, text in enumerate(REQUESTS.replace("\n", "|").strip("|").split("|")):
        client.call(*text.split())
        note(f"{number}: {text}")
    every = bytes(range(256))
    client.call("ECHO", every)
    note("every byte")
    client.call("ECHO", "")
    note("empty")
    for words in (["SUBSCRIBE", "c", "d"], ["PSUBSCRIBE", "c*"]):
        client.send(encoded(*words))
        for _ in words[1:]:
            client.read()
        note(words[0])
    for words in ("GET a", "PING", "UNSUBSCRIBE c"):
        client.call(*words.split())
        note("subscriber: " + words)
    client.send(encoded("QUIT"))
    while client.file.readline():
        pass
    note("QUIT")
    blocked = server.client()
    blocked.call("AUTH", "pw")
    blocked.send(encoded("BLPOP", "q", "0"))
    until(lambda: b"blocked_clients:1\r" in marker.call("INFO", "clients"))
    marker.call("RPUSH", "q", "x", "y")
    assert blocked.read() == [b"q", b"x"]
    marker.call("ECHO", "end")
    shown["blocked"] = [line for line in lines_until(monitor, b"end") if line[1] != b'"INFO" "clients"']
    return {name: [(b"0 unix" if origin.startswith(b"0 unix:") else origin, words) for origin, words in lines] for name, lines in shown.items()}


def test_the_lines_are_those_of_redis():
    if not has_redis():
        return
    with tempfile.TemporaryDirectory() as directory:
        path, password, snapshot = (os.path.join(directory, name) for name in ("socket", "password", "snapshot"))
        with open(password, "w") as file:
            file.write("pw\n")
        with Server("--unix-socket", path, "--password-file", password, "--snapshot", snapshot) as server, Redis("--requirepass", "pw") as redis:
            server.client = lambda: Client(None, path=path)
            own, wanted = shown_by(server), shown_by(redis)
            for name in wanted:
                assert own[name] == wanted[name], (name, own[name], wanted[name])


def test_an_own_client_has_what_redis_replies():
    """To a client that monitors."""
    requests = ("PING|MONITOR|PING|GET a|SET a b|PUBLISH a b|EXISTS a|MULTI|GET a|PING|EXEC|MULTI|PING|DISCARD|MULTI|MONITOR|DISCARD"
                "|SUBSCRIBE c|PING|UNSUBSCRIBE c|PING|RESET|PING|GET a|MULTI|MONITOR|EXEC").split("|")
    if not has_redis():
        return
    got = []
    with Server() as server, Redis() as redis:
        for each in (server, redis):
            client = each.client()
            client.send(b"".join(encoded(*words.split()) for words in requests) + encoded("ECHO", "end"))
            text = b""
            while not text.endswith(b"$3\r\nend\r\n"):
                text += client.file.readline()
            got.append(re.sub(rb"\+\d{10}\.\d{6} \[0 [^\]]*\]", b"ORIGIN", text))
    assert got[0] == got[1], got


def test_the_origin_is_the_address_of_the_client():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "socket")
        with Server("--unix-socket", path) as server:
            monitor, client, local = monitor_of(server), server.client(), Client(None, path=path)
            client.call("PING")
            local.call("PING")
            client.call("ECHO", "end")
            assert lines_until(monitor, b"end") == [(b"0 %s:%d" % (client.socket.getsockname()[0].encode(), client.socket.getsockname()[1]), b'"PING"'),
                                                    (b"0 unix:" + path.encode(), b'"PING"')]


def test_a_password_is_never_shown():
    """Also not in a request that is wrong, as it is if a client that speaks another version sends it."""
    with tempfile.TemporaryDirectory() as directory:
        password = os.path.join(directory, "password")
        with open(password, "w") as file:
            file.write("secret\n")
        with Server("--password-file", password) as server:
            monitor = server.client()
            assert monitor.call("AUTH", "secret") == "OK" and monitor.call("MONITOR") == "OK"
            client = server.client()
            for words in ("AUTH secret", "AUTH default secret", "AUTH a b secret", "HELLO 9 AUTH default secret", "HELLO x AUTH default secret", "HELLO 3 x AUTH default secret",
                          "HELLO 3 AUTH default secret x", "HELLO 2 SETNAME auth AUTH default secret", "HELLO 2 AUTH secret", "HELLO 2 AUTH a b AUTH default secret"):
                client.call(*words.split())
            assert client.call("ECHO", "end") == b"end"
            lines = lines_until(monitor, b"end")
            assert len(lines) == 9 and not any(b"secret" in words for _, words in lines), lines


def test_a_monitor_with_resp3_has_lines_too():
    with Server() as server:
        monitor, client = server.client(), server.client()
        monitor.call("HELLO", 3)
        assert monitor.call("MONITOR") == "OK"
        expect(client, ("PING", "PONG"), ("ECHO end", b"end"))
        assert [words for _, words in lines_until(monitor, b"end")] == [b'"PING"']
        assert b" flags=O " in client.call("CLIENT", "LIST")
        assert monitor.call("RESET") == "RESET"
        assert client.call("PING") == "PONG"
        assert monitor.call("PING") == "PONG" and b" flags=O " not in client.call("CLIENT", "LIST")


def test_a_slow_monitor_is_disconnected():
    """By many lines, by one of a large request, and by a transaction; the other clients do not notice."""
    with Server("--backlog", 1 << 20) as server:
        client = server.client()

        def cut_off():
            return int(server.info(client)["subscribers_cut_off"])

        def is_cut_off_by(*requests):
            before, monitor = cut_off(), monitor_of(server)
            for words in requests:
                client.send(encoded(*words))
                client.read()
            until(lambda: b" flags=O " not in client.call("CLIENT", "LIST"))
            assert cut_off() == before + 1
            monitor.close()

        value = "x" * 400000
        is_cut_off_by(("SET", "a", "x" * (1 << 20)))
        is_cut_off_by(("SET", "a", b"\0" * 300000))
        is_cut_off_by(("MULTI",), *[("SET", "a", value)] * 3, ("EXEC",))
        before, monitor = cut_off(), monitor_of(server)
        while cut_off() == before:
            assert client.call("SET", "a", value) == "OK"
        monitor.close()
        monitor = monitor_of(server)
        for number in range(20):
            assert client.call("SET", "a", value) == "OK" and client.call("ECHO", number) == b"%d" % number
            assert len(lines_until(monitor, b"%d" % number)[-1][1]) == 400000 + len('"SET" "a" ""')
        assert cut_off() == before + 1


def test_lines_to_many_monitors_give_others_their_turn():
    """A step for each monitor and for each kilobyte."""
    count, each = 300, 60
    with Server() as server:
        client, other = server.client(), server.client()
        monitors = [monitor_of(server) for _ in range(count)]
        for monitor in monitors:
            other.call("ECHO", "begin")
            lines_until(monitor, b"begin")
        numbers = [server.info(other)]
        size, transaction = 20000, encoded("MULTI") + encoded("ECHO", "y" * 20000) * each + encoded("EXEC")
        client.send(encoded("ECHO", "x" * size) * each + transaction)
        for _ in range(each):
            assert client.read() == b"x" * size
        assert [client.read() for _ in range(each + 1)] == ["OK"] + ["QUEUED"] * each and client.read() == [b"y" * size] * each
        other.call("ECHO", "end")
        numbers.append(server.info(other))
        work, turns = (int(numbers[1][name]) - int(numbers[0][name]) for name in ("total_work", "turns_ended"))
        steps = 2 * count * each * (size // 1024)
        assert steps <= work <= 2 * steps, (steps, work)
        assert turns >= steps // (2 * TURN) - 2, (steps, turns)
        wanted = [b'"ECHO" "%s"' % (b"x" * size)] * each + [b'"MULTI"'] + [b'"ECHO" "%s"' % (b"y" * size)] * each + [b'"EXEC"']
        for monitor in monitors:
            lines = [words for _, words in lines_until(monitor, b"end") if words not in (b'"INFO"', b'"ECHO" "begin"')]
            assert lines == wanted


def test_another_client_waits_for_a_turn_only():
    """Counted in steps of the greedy client that are before the other client's: not in time."""
    count, each = 300, 400
    with Server() as server:
        greedy, other = server.client(), server.client()
        monitors = [monitor_of(server) for _ in range(count)]
        for requests in (encoded("PING") * each, encoded("MULTI") + encoded("ECHO", "x" * 100) * each + encoded("EXEC")):
            before = int(server.info(other)["total_work"])
            with held(server.process):
                greedy.send(requests)
                other.send(encoded("INFO"))
            info = other.read().decode()
            steps = int(info.split("total_work:")[1].split()[0]) - before
            assert steps <= 3 * TURN + 4 * count, steps
            assert greedy.call("ECHO", "end") in ("PONG", "OK")
            while greedy.read() != b"end":
                continue
        for monitor in monitors:
            monitor.close()


def test_all_monitors_have_lines_in_one_order():
    """Also those of transactions, and behind messages that are delivered meanwhile; monitors come and go."""
    patterns = 9000
    with Server() as server:
        many, clients = server.client(), [server.client() for _ in range(4)]
        many.send(encoded("PSUBSCRIBE", *[b"[c%d]*" % i for i in range(patterns)]))
        for _ in range(patterns):
            many.read()
        stays, leaves = [monitor_of(server) for _ in range(3)], [monitor_of(server) for _ in range(3)]
        with held(server.process):
            for number, client in enumerate(clients):
                client.send(b"".join(encoded("MULTI") + encoded("ECHO", f"{number}-{i}") * 2 + encoded("EXEC") + encoded("PUBLISH", "channel", f"{number}-{i}")
                                     for i in range(3)))
            for monitor in leaves:
                monitor.vanish()
        for client in clients:
            for _ in range(3):
                assert [client.read() for _ in range(3)] == ["OK", "QUEUED", "QUEUED"]
                assert len(client.read()) == 2 and client.read() == patterns
        assert clients[0].call("ECHO", "end") == b"end"
        got = [[line for line in lines_until(monitor, b"end") if line[1] != b'"MONITOR"'] for monitor in stays]
        assert got[0] == got[1] == got[2]
        lines = [words for _, words in got[0]]
        for number in range(4):
            for i in range(3):
                at = lines.index(b'"ECHO" "%d-%d"' % (number, i))
                assert lines[at + 1:at + 3] == [lines[at], b'"EXEC"'], lines
                assert lines.index(b'"PUBLISH" "channel" "%d-%d"' % (number, i)) > at + 2
        until(lambda: clients[0].call("CLIENT", "LIST").count(b" flags=O ") == 3)


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
