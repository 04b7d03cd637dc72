"""Tests the key-value server: kv_test.py PROGRAM [NAME...]. Commands, protocol, limits, expiry, messages."""
import random
import socket

from client import Error, Left, Server, encoded, expect, rounds_of, run, until


# ---- Commands ----


def test_values():
    with Server() as server:
        client = server.client()
        expect(
            client,
            ("PING", "PONG"),
            ("PING hello", b"hello"),
            ("ECHO hello", b"hello"),
            ("GET a", None),
            ("SET a 1", "OK"),
            ("get a", b"1"),
            ("SET a 2 NX", None),
            ("SET b 2 XX", None),
            ("SET a 2 XX", "OK"),
            ("SET a 3 GET", b"2"),
            ("SET a 4 NX GET", b"3"),
            ("GET a", b"3"),
            ("SET c 4 NX GET", None),
            ("GET c", b"4"),
            ("SET a 1 EX", Error("ERR syntax error")),
            ("SET a 1 EX 0", Error("ERR invalid expire time in 'set' command")),
            ("SET a 1 EX x", Error("ERR value is not an integer or out of range")),
            ("SET a 1 EX 9223372036854775807", Error("ERR invalid expire time in 'set' command")),
            ("SET a 1 EX 10 PX 10", Error("ERR syntax error")),
            ("SET a 1 EX 10 KEEPTTL", Error("ERR syntax error")),
            ("SET a 1 NX XX", Error("ERR syntax error")),
            ("SET a 1 WHAT", Error("ERR syntax error")),
            ("GET a", b"3"),
            ("SETNX a 5", 0),
            ("SETNX d 5", 1),
            ("GETSET d 6", b"5"),
            ("GETDEL d", b"6"),
            ("GETDEL d", None),
            ("MSET x 1 y 2", "OK"),
            ("MSET x 1 y", Error("ERR wrong number of arguments for 'mset' command")),
            ("MGET x y z", [b"1", b"2", None]),
            ("APPEND e abc", 3),
            ("APPEND e def", 6),
            ("GET e", b"abcdef"),
            ("STRLEN e", 6),
            ("STRLEN nothing", 0),
            ("INCR n", 1),
            ("INCRBY n 41", 42),
            ("DECR n", 41),
            ("DECRBY n 40", 1),
            ("INCR e", Error("ERR value is not an integer or out of range")),
            ("INCRBY n x", Error("ERR value is not an integer or out of range")),
            ("DECRBY n -9223372036854775808", Error("ERR decrement would overflow")),
            ("SET n 9223372036854775807", "OK"),
            ("INCR n", Error("ERR increment or decrement would overflow")),
            ("INCRBY n -1", 9223372036854775806),
            ("SET n 0001", "OK"),
            ("INCR n", Error("ERR value is not an integer or out of range")),
            ("DEL x y z", 2),
            ("EXISTS a a z", 2),
            ("UNLINK a", 1),
            ("TYPE a", "none"),
            ("TYPE c", "string"),
            ("DBSIZE", 3),
            ("FLUSHALL", "OK"),
            ("DBSIZE", 0),
            ("GET e", None),
            ("FLUSHDB ASYNC", "OK"),
            ("FLUSHDB WHAT", Error("ERR syntax error")),
        )


def test_parts_and_conditions_of_values():
    with Server("--bulk", 1000) as server:
        client = server.client()
        expect(
            client,
            ("SET a hello", "OK"),
            ("GETRANGE a 0 -1", b"hello"),
            ("GETRANGE a 1 3", b"ell"),
            ("SUBSTR a -3 -2", b"ll"),
            ("GETRANGE a -100 100", b"hello"),
            ("GETRANGE a 3 1", b""),
            ("GETRANGE a 5 9", b""),
            ("GETRANGE a -1 -9223372036854775808", b""),
            ("GETRANGE a 0 9223372036854775807", b"hello"),
            ("GETRANGE none 0 -1", b""),
            ("GETRANGE a x 1", Error("ERR value is not an integer or out of range")),
            ("SETRANGE a 1 ipp", 5),
            ("GET a", b"hippo"),
            ("SETRANGE a 7 x", 8),
            ("GET a", b"hippo\0\0x"),
            ("SETRANGE none 3 x", 4),
            ("GET none", b"\0\0\0x"),
            ("SETRANGE a -1 x", Error("ERR offset is out of range")),
            ("SETRANGE a 1000 x", Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")),
            ("SETRANGE a 9223372036854775807 x", Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")),
            ("SETRANGE a 999 x", 1000),
            ("MSETNX a 1 new 1", 0),
            ("EXISTS new", 0),
            ("MSETNX new 1 newer 2", 1),
            ("MSETNX new 1 newer", Error("ERR wrong number of arguments for 'msetnx' command")),
            ("MGET new newer", [b"1", b"2"]),
            ("INCRBYFLOAT f 1.5", b"1.5"),
            ("INCRBYFLOAT f 0.25", b"1.75"),
            ("INCRBYFLOAT f -2e0", b"-0.25"),
            ("INCRBYFLOAT f 0.25", b"0"),
            ("INCRBYFLOAT f 1024", b"1024"),
            ("INCRBYFLOAT f x", Error("ERR value is not a valid float")),
            ("INCRBYFLOAT f inf", Error("ERR increment would produce NaN or Infinity")),
            ("INCRBYFLOAT f nan", Error("ERR value is not a valid float")),
            ("INCRBYFLOAT a 1", Error("ERR value is not a valid float")),
            ("SET f 3.0e3", "OK"),
            ("INCRBYFLOAT f 200", b"3200"),
            ("GETEX new", b"1"),
            ("TTL new", -1),
            ("GETEX new EX 100", b"1"),
            ("TTL new", Left(100)),
            ("INCRBYFLOAT new 1", b"2"),
            ("TTL new", Left(100)),
            ("GETEX new PERSIST", b"2"),
            ("TTL new", -1),
            ("GETEX new PXAT 99999999999999", b"2"),
            ("GETEX new PERSIST EX 1", Error("ERR syntax error")),
            ("GETEX new EX 1 PERSIST", Error("ERR syntax error")),
            ("GETEX new PERSIST PERSIST", Error("ERR syntax error")),
            ("GETEX new EX", Error("ERR syntax error")),
            ("GETEX new EX 0", Error("ERR invalid expire time in 'getex' command")),
            ("GETEX new WHAT", Error("ERR syntax error")),
            ("GETEX none2 EX 100", None),
            ("PEXPIRETIME new", 99999999999999),
            ("EXPIRETIME new", 100000000000),
            ("GETEX new EXAT 1", b"2"),
            ("EXISTS new", 0),
            ("EXPIRETIME new", -2),
            ("PEXPIRETIME newer", -1),
        )


def test_expiry_under_conditions():
    with Server() as server:
        client = server.client()
        expect(
            client,
            ("SET a 1", "OK"),
            ("EXPIRE a 100 XX", 0),
            ("EXPIRE a 100 GT", 0),
            ("TTL a", -1),
            ("EXPIRE a 500 LT", 1),
            ("EXPIRE a 400 NX", 0),
            ("EXPIRE a 400 GT", 0),
            ("EXPIRE a 600 LT", 0),
            ("TTL a", Left(500)),
            ("EXPIRE a 1000 GT", 1),
            ("PEXPIRE a 700000 XX LT", 1),
            ("TTL a", Left(700)),
            ("EXPIRE a 1 NX XX", Error("ERR NX and XX, GT or LT options at the same time are not compatible")),
            ("EXPIRE a 1 NX GT", Error("ERR NX and XX, GT or LT options at the same time are not compatible")),
            ("EXPIRE a 1 GT LT", Error("ERR GT and LT options at the same time are not compatible")),
            ("EXPIRE a 1 WHAT", Error("ERR Unsupported option WHAT")),
            ("EXPIREAT a 1 GT", 0),
            ("PEXPIREAT a 1 LT", 1),
            ("EXISTS a", 0),
            ("EXPIRE a 100 NX", 0),
        )


def test_names_of_values():
    with Server() as server:
        client = server.client()
        expect(
            client,
            ("RANDOMKEY", None),
            ("RENAME a b", Error("ERR no such key")),
            ("SET a 1 EX 500", "OK"),
            ("SET b 2", "OK"),
            ("RENAMENX a b", 0),
            ("RENAME a b", "OK"),
            ("MGET a b", [None, b"1"]),
            ("TTL b", Left(500)),
            ("RENAME b b", "OK"),
            ("RENAMENX b c", 1),
            ("COPY c c", Error("ERR source and destination objects are the same")),
            ("COPY c d", 1),
            ("TTL d", Left(500)),
            ("SET d 3", "OK"),
            ("COPY c d", 0),
            ("COPY c d DB 1", Error("ERR DB index is out of range")),
            ("COPY c d WHAT", Error("ERR syntax error")),
            ("COPY d c DB 0 REPLACE", 1),
            ("TTL c", -1),
            ("MGET c d", [b"3", b"3"]),
            ("COPY none e", 0),
            ("TOUCH c d e", 2),
        )
        seen = set()
        until(lambda: seen.add(client.call("RANDOMKEY")) or len(seen) == 2)
        assert seen == {b"c", b"d"}
        client.call("SET", "large", "x" * 100000)
        assert client.call("RENAME", "large", "c") == "OK" and client.call("STRLEN", "c") == 100000
        client.call("FLUSHALL")
        client.call("MSET", *[word for i in range(1000) for word in (i, i)])
        drawn = [client.call("RANDOMKEY") for _ in range(300)]
        assert len(set(drawn)) > 100, len(set(drawn))


def longest_common(a, b):
    """The model of LCS: the subsequence, and its matches from the end on."""
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a)):
        for j in range(len(b)):
            lengths[i + 1][j + 1] = lengths[i][j] + 1 if a[i] == b[j] else max(lengths[i][j + 1], lengths[i + 1][j])
    i, j, text, matches, is_open = len(a), len(b), b"", [], False
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            text = a[i:i + 1] + text
            if is_open:
                matches[-1][0][0], matches[-1][1][0], matches[-1][2] = i, j, matches[-1][2] + 1
            else:
                matches.append([[i, i], [j, j], 1])
            is_open = True
        else:
            is_open = False
            if lengths[i - 1][j] > lengths[i][j - 1]:
                i -= 1
            else:
                j -= 1
    return text, matches


def test_common_subsequences():
    """Beside a model; the texts are redis's."""
    with Server() as server:
        client = server.client()
        for _ in range(rounds_of(200)):
            a, b = (bytes(random.choices(b"ab\0\xff", k=random.randrange(30))) for _ in range(2))
            for key, value in (("a", a), ("b", b)):
                if value:
                    client.call("SET", key, value)
                else:
                    client.call("DEL", key)
            text, matches = longest_common(a, b)
            size = random.randrange(-1, 5)
            assert client.call("LCS", "a", "b") == text and client.call("LCS", "a", "b", "LEN") == len(text)
            assert client.call("LCS", "a", "b", "IDX") == [b"matches", [match[:2] for match in matches], b"len", len(text)]
            assert client.call("LCS", "a", "b", "withmatchlen", "IDX", "MINMATCHLEN", size) == [
                b"matches", [match for match in matches if match[2] >= size], b"len", len(text)]
        large = Error("ERR the product of the sizes is more than 524288")
        strings = Error("ERR The specified keys must contain string values")
        for key in ("c", "d"):
            client.call("SET", key, b"xy" * 512)
        expect(client, ("LCS c d LEN", large), ("LCS c d", large), ("LCS c d IDX", large), ("SETRANGE c 5000000 z", 5000001), ("LCS none c", b""), ("LCS c none", b""),
               ("LCS c none LEN", 0), ("LCS c none IDX", [b"matches", [], b"len", 0]),
               ("SET c " + "xy" * 511 + "x", "OK"), ("SET d " + "xy" * 255 + "x", "OK"))
        before = int(server.info(client)["total_work"])
        expect(client, ("LCS c d LEN", 511))
        assert 8192 <= int(server.info(client)["total_work"]) - before < 8192 + 20
        expect(client, ("LCS c d", b"xy" * 255 + b"x"), ("RPUSH l a", 1), ("LCS l a", strings),
               ("LCS a l NOT", strings), ("LCS a b LEN IDX", Error("ERR If you want both the length and indexes, please just use IDX.")),
               ("LCS a b MINMATCHLEN", Error("ERR syntax error")), ("LCS a b IDX MINMATCHLEN x", Error("ERR value is not an integer or out of range")),
               ("LCS a", Error("ERR wrong number of arguments for 'LCS' command")))


def test_what_clients_ask_of_a_server():
    with Server() as server:
        client = server.client()
        expect(
            client,
            ("SELECT 0", "OK"),
            ("SELECT 1", Error("ERR DB index is out of range: the only database is 0")),
            ("CONFIG GET save", [b"save", b""]),
            ("CONFIG GET appendonly", [b"appendonly", b"no"]),
            ("CONFIG GET max[cm]*", [b"maxclients", b"10000", b"maxmemory", b"0", b"maxmemory-policy", b"noeviction"]),
            ("CONFIG SET a b", Error("ERR Unknown option or number of arguments for CONFIG SET - 'a'")),
            ("CLIENT SETNAME me", "OK"),
            ("CLIENT GETNAME", b"me"),
            ("CLIENT ID", 1),
            ("CLIENT WHAT", Error("ERR unknown subcommand or wrong number of arguments for 'client|WHAT'")),
            ("HELLO 4", Error("NOPROTO unsupported protocol version")),
            ("HELLO x", Error("NOPROTO unsupported protocol version")),
            ("HELLO 2 WHAT", Error("ERR Syntax error in HELLO option 'WHAT'")),
            ("GET", Error("ERR wrong number of arguments for 'GET' command")),
            ("WHAT IS THIS", Error("ERR unknown command 'WHAT'")),
            ("@ET a", Error("ERR unknown command '@ET'")),
            ("COMMAND DOCS", []),
            ("SAVE", Error("ERR no file for snapshots: the server was started without --snapshot")),
            ("BGREWRITEAOF", Error("ERR no append-only file: the server was started without --append-only")),
        )
        assert client.call("x" * 500) == Error("ERR unknown command '" + "x" * 128 + "'")
        assert client.call("WHAT\r\nOK") == Error("ERR unknown command 'WHAT  OK'")
        assert client.call("HELLO", "2", "SETNAME", "you")[:2] == [b"server", b"kv"]
        assert client.call("CLIENT", "GETNAME") == b"you"
        assert b"name=you" in client.call("CLIENT", "LIST")
        assert len(client.call("COMMAND")) == client.call("COMMAND", "COUNT")
        assert int(client.call("TIME")[0]) > 1700000000
        assert server.info(client)["connected_clients"] == "1"
        assert client.call("QUIT") == "OK" and client.is_at_end()


def test_sections_of_info():
    with Server() as server:
        client = server.client()
        names = [line[2:] for line in client.call("INFO").decode().split("\r\n") if line.startswith("# ")]
        assert names == ["Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "Keyspace"]
        for name in names:
            text = client.call("INFO", name.lower()).decode()
            assert text.startswith(f"# {name}\r\n") and text.count("#") == 1, text
        assert client.call("INFO", "keyspace", "CLIENTS").decode().count("#") == 2
        assert client.call("INFO", "none") == b""
        for words in (("all",), ("default",), ("everything",), ("none", "ALL")):
            assert client.call("INFO", *words).count(b"#") == 7


def test_binary_keys_and_values():
    with Server() as server:
        client = server.client()
        every = bytes(range(256))
        for key, value in ((every, every), (b"", b"empty key"), (b"empty", b""), (b"\r\n", b"$3\r\n\0\0")):
            assert client.call("SET", key, value) == "OK"
            assert client.call("GET", key) == value
            assert client.call("STRLEN", key) == len(value)
        assert client.call("APPEND", every, every) == 512
        assert client.call("GET", every) == every + every
        assert client.call("ECHO", every) == every
        assert sorted(client.call("KEYS", "*")) == sorted([every, b"", b"empty", b"\r\n"])


def test_values_of_all_sizes():
    with Server() as server:
        client = server.client()
        for size in [1, 15, 16, 17, 4095, 16384, 65536, 1 << 20, (8 << 20) + 1, 3]:
            value = random.randbytes(size)
            assert client.call("SET", "a", value) == "OK"
            assert client.call("GET", "a") == value, size
        pieces = [random.randbytes(random.randrange(3000)) for _ in range(300)]
        for i, piece in enumerate(pieces):
            assert client.call("APPEND", "b", piece) == sum(map(len, pieces[: i + 1]))
        assert client.call("GET", "b") == b"".join(pieces)


def test_a_table_that_grows_and_shrinks():
    with Server() as server:
        client = server.client()
        model = {}
        for key_count, steps in ((40000, 60000), (40000, 60000), (50, 40000), (3000, 5000)):
            batch, wanted = [], []
            if key_count == 50:  # most are removed
                for key in list(model)[50:]:
                    batch.append(encoded("DEL", key))
                    wanted.append(1)
                    del model[key]
            for _ in range(steps):
                key, number = b"key:%d" % random.randrange(key_count), random.randrange(4)
                if number == 0:
                    batch.append(encoded("DEL", key))
                    wanted.append(int(model.pop(key, None) is not None))
                elif number == 1:
                    batch.append(encoded("GET", key))
                    wanted.append(model.get(key))
                else:
                    model[key] = random.randbytes(random.randrange(40))
                    batch.append(encoded("SET", key, model[key]))
                    wanted.append("OK")
            for at in range(0, len(batch), 500):
                client.send(b"".join(batch[at : at + 500]))
                for want in wanted[at : at + 500]:
                    assert client.read() == want
            assert client.call("DBSIZE") == len(model)
        assert set(client.call("KEYS", "*")) == set(model)
        for key, value in model.items():
            assert client.call("GET", key) == value


def test_scan_visits_all_that_stay():
    with Server() as server:
        client = server.client()
        for i in range(2000):
            client.call("SET", f"stays:{i}", i)
        found, cursor, number = set(), b"0", 0
        while True:
            cursor, keys = client.call("SCAN", cursor, "COUNT", 20, "MATCH", "stays:*")
            found.update(keys)
            if cursor == b"0":
                break
            number += 1
            step = 150 if number < 100 else -150  # the table grows, and shrinks again
            for i in range(150):
                key = f"other:{number if step > 0 else 200 - number}:{i}"
                client.send(encoded("SET", key, i) if step > 0 else encoded("DEL", key))
            for i in range(150):
                client.read()
        assert found == {b"stays:%d" % i for i in range(2000)}
        expect(client, ("SCAN x", Error("ERR invalid cursor")), ("SCAN -1", Error("ERR invalid cursor")), ("SCAN 0 COUNT 0", Error("ERR syntax error")), ("SCAN 0 TYPE", Error("ERR syntax error")))
        assert client.call("SCAN", "0", "TYPE", "list", "COUNT", 100000)[1] == []


def test_patterns():
    with Server() as server:
        client = server.client()
        keys = ["hello", "hallo", "hxllo", "heello", "h[llo", "h*llo", "HELLO", "a-b", "a]b"]
        client.call("MSET", *[word for key in keys for word in (key, 1)])
        for pattern, wanted in (
            ("h?llo", {"hello", "hallo", "hxllo", "h[llo", "h*llo"}),
            ("h*llo", {"hello", "hallo", "hxllo", "heello", "h[llo", "h*llo"}),
            ("h[ae]llo", {"hello", "hallo"}),
            ("h[^e]llo", {"hallo", "hxllo", "h[llo", "h*llo"}),
            ("h[a-f]llo", {"hello", "hallo"}),
            ("h[f-a]llo", {"hello", "hallo"}),
            ("h\\*llo", {"h*llo"}),
            ("h[\\[]llo", {"h[llo"}),
            ("a[-]b", {"a-b"}),
            ("a[\\]]b", {"a]b"}),
            ("*l*l*o*", {"hello", "hallo", "hxllo", "heello", "h[llo", "h*llo"}),
            ("", set()),
            ("*", set(keys)),
            ("h[", set()),
        ):
            assert set(client.call("KEYS", pattern)) == {key.encode() for key in wanted}, pattern
        client.call("SET", "a" * 60, 1)
        assert client.call("KEYS", "a*" * 30 + "b") == []  # (not in exponential time)


# ---- The protocol ----

STORY = b"".join(
    [
        encoded("SET", "key", b"\0\r\n value"),
        b"PING\r\n",
        b'set "a key" "with \\x41\\n\\"quotes\\"" \r\n',
        b"\r\n*0\r\n*-1\r\n",
        encoded("MGET", "key", "a key", "none"),
        b"echo 'it\\'s'\n",
        b"echo a\0b\n",
        encoded("ECHO", ""),
    ]
)
REPLIES = ["OK", "PONG", "OK", [b"\0\r\n value", b'with A\n"quotes"', None], b"it's", b"a\0b", b""]


def test_requests_cut_at_every_byte():
    with Server() as server:
        other = server.client()
        for cut in range(1, len(STORY)):
            client = server.client()
            client.send(STORY[:cut])
            other.call("PING")  # by now the server has received it
            client.send(STORY[cut:])
            assert [client.read() for _ in REPLIES] == REPLIES, cut
            client.close()
        client = server.client()
        for i in range(len(STORY)):
            client.send(STORY[i : i + 1])
            other.call("PING")
        assert [client.read() for _ in REPLIES] == REPLIES


def test_pipelines():
    with Server() as server:
        client = server.client()
        client.send(b"".join(encoded("INCR", "n") for _ in range(20000)))
        assert [client.read() for _ in range(20000)] == list(range(1, 20001))
        # more replies than the sockets hold: the server stops reading until they are received
        client.call("SET", "large", b"x" * 100000)
        client.send(encoded("GET", "large") * 500)
        for _ in range(500):
            assert client.read() == b"x" * 100000
        client.send(STORY * 200)
        assert [client.read() for _ in range(200 * len(REPLIES))] == REPLIES * 200


def test_requests_of_many_arguments():
    with Server() as server:
        client = server.client()
        words = [f"word:{i}" for i in range(100000)]
        assert client.call("MSET", *words) == "OK"
        assert client.call("MGET", *words[0:100:2]) == [word.encode() for word in words[1:100:2]]
        assert client.call("DEL", *words) == 50000


WRONG = [
    b"*1\r\n+PING\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$x\r\n",
    b"*x\r\n",
    b"*\r\n",
    b"*1\n$4\r\nPING\r\n",
    b"*1\r\r$4\r\nPING\r\n",
    b"*99999999999\r\n",
    b"*1048577\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n$99999999999\r\n",
    b"*1\r\n$4\r\nPINGxx",
    b"*1\r\n$\r\n",
    b"*1\r\n$0x4\r\n",
    b'set "a\r\n',
    b'set "a"b 1\r\n',
    b"set 'a\r\n",
    b"x" * 70000,
    b"x" * 70000 + b"\r\n",
]


def test_wrong_requests_are_reported_and_close_the_connection():
    with Server() as server:
        for data in WRONG:
            for before in (b"", encoded("SET", "a", "b")):
                client = server.client()
                client.send(before + data)
                if before:
                    assert client.read() == "OK"
                got = client.read()
                assert isinstance(got, Error) and got.startswith("ERR Protocol error: "), (data, got)
                assert client.is_at_end(), data
                client.close()
        assert server.client().call("GET", "a") == b"b"


def test_a_web_pages_request_ends_the_connection():
    with Server() as server:
        stays = server.client()
        stays.call("SET", "precious", "1")
        body = b"FLUSHALL\r\nSET owned by-a-page\r\n"
        for head in (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"post /\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                     b"host: x\r\n", encoded("POST", "/"), encoded("Host:", "x")):
            client = server.client()
            assert client.call("ECHO", "before") == b"before"
            client.send(head + body)
            while not client.is_at_end(): # (GET with too many arguments has had its error)
                pass
            assert stays.call("GET", "precious") == b"1" and stays.call("GET", "owned") is None
        assert stays.call("GET", "post") is None


def test_the_list_of_clients_has_whole_lines():
    with Server() as server:
        client, other = server.client(), server.client()
        for size in (1, 99, 100, 101, 200, 100000):
            assert other.call("CLIENT", "SETNAME", "n" * size) == "OK"
            lines = client.call("CLIENT", "LIST").split(b"\n")
            assert len(lines) == 3 and lines[2] == b"", lines
            assert any(b" name=" + b"n" * min(size, 100) + b" age=" in line for line in lines), lines
            assert all(line.startswith(b"id=") and b" obl=" in line for line in lines[:2]), lines


def test_random_bytes():
    with Server() as server:
        pieces = [b"*", b"$", b"\r\n", b"1", b"3", b"GET", b"SET", b"\0", b'"', b" ", b"-1", b"\xff"]
        for _ in range(300):
            client = server.client()
            data = encoded("PING") + b"".join(random.choices(pieces, k=random.randrange(60)))
            client.send(data)
            client.socket.shutdown(socket.SHUT_WR)
            assert client.read() == "PONG"
            try:
                while client.file.read(1000):
                    pass
            except ConnectionError:
                pass
            client.close()
        assert server.client().call("PING") == "PONG"


def test_limits():
    with Server("--bulk", 100, "--request", 1024) as server:
        client = server.client()
        assert client.call("SET", "a", b"x" * 100) == "OK"
        assert client.call("APPEND", "a", b"x") == Error("ERR string exceeds maximum allowed size")
        client.send(encoded("SET", "a", b"x" * 101))
        assert client.read() == Error("ERR Protocol error: invalid bulk length")
        client = server.client()
        client.send(encoded("MSET", *[b"x" * 100] * 12))
        assert client.read() == Error("ERR Protocol error: too big request")
        assert client.is_at_end()


def test_more_clients_than_allowed_wait():
    with Server("--clients", 3) as server:
        clients = [server.client() for _ in range(3)]
        assert [client.call("PING") for client in clients] == ["PONG"] * 3
        more = server.client()
        more.send(encoded("PING"))
        clients[0].close()
        assert more.read() == "PONG"


# ---- Time ----


def test_keys_end_at_their_time():
    with Server() as server:
        client = server.client()
        expect(
            client,
            ("SET a 1", "OK"),
            ("TTL a", -1),
            ("TTL none", -2),
            ("EXPIRE a 1000", 1),
            ("TTL a", Left(1000)),
            ("EXPIRE none 100", 0),
            ("PERSIST a", 1),
            ("PERSIST a", 0),
            ("PERSIST none", 0),
            ("PTTL a", -1),
            ("SET a 1 EX 500", "OK"),
            ("INCR a", 2),
            ("TTL a", Left(500)),
            ("APPEND a 0", 2),
            ("TTL a", Left(500)),
            ("SET a 1 KEEPTTL", "OK"),
            ("TTL a", Left(500)),
            ("SET a 1", "OK"),
            ("TTL a", -1),
            ("SETEX a 200 1", "OK"),
            ("TTL a", Left(200)),
            ("SETEX a 0 1", Error("ERR invalid expire time in 'setex' command")),
            ("PSETEX a 200000 1", "OK"),
            ("TTL a", Left(200)),
            ("GETSET a 2", b"1"),
            ("TTL a", -1),
            ("EXPIRE a x", Error("ERR value is not an integer or out of range")),
            ("EXPIRE a 9223372036854775807", Error("ERR invalid expire time in 'expire' command")),
            ("EXPIREAT a 99999999999", 1),
            ("PEXPIREAT a 1", 1),
            ("EXISTS a", 0),
            ("SET a 1", "OK"),
            ("EXPIRE a -1", 1),
            ("GET a", None),
        )
        # lookup: a key is not found after its expiry
        client.call("SET", "a", 1, "PX", 15)
        until(lambda: client.call("GET", "a") is None)
        assert client.call("PTTL", "a") == -2
        client.call("SET", "a", 5, "PX", 5)
        until(lambda: client.call("EXISTS", "a") == 0)
        assert client.call("INCR", "a") == 1 and client.call("TTL", "a") == -1
        # no lookup: a key is still removed, the earliest first
        client.call("FLUSHALL")
        for i in range(100):
            client.call("SET", f"k{i}", 1, "PX", 3 + (i * 37) % 50)
        client.call("SET", "later", 1, "EX", 1000)
        until(lambda: client.call("DBSIZE") == 1)
        assert client.call("KEYS", "*") == [b"later"]
        # a key whose expiry was moved later in time is not removed
        until(lambda: client.call("SET", "a", 1, "PX", 5) == "OK" and client.call("PEXPIRE", "a", 1000000) == 1)
        client.call("SET", "b", 1, "PX", 10)
        until(lambda: client.call("DBSIZE") == 2)
        assert client.call("GET", "a") == b"1"


def test_many_keys_end_at_once():
    with Server() as server:
        client = server.client()
        count = 50000
        when = int(client.call("TIME")[0]) * 1000 + 1500
        for i in range(0, count, 1000):
            client.send(b"".join(encoded("SET", f"key:{j}", "x" * 20, "PXAT", when) for j in range(i, i + 1000)))
            for _ in range(1000):
                assert client.read() == "OK"
        seen = set()
        until(lambda: seen.add(client.call("DBSIZE")) or 0 in seen)
        assert int(server.info(client)["expired_keys"]) == count
        assert client.call("KEYS", "*") == []


# ---- Messages ----


def test_messages():
    with Server() as server:
        one, two, publisher = server.client(), server.client(), server.client()
        assert publisher.call("PUBLISH", "news", "nobody") == 0
        assert one.call("SUBSCRIBE", "news", "other") == [b"subscribe", b"news", 1]
        assert one.read() == [b"subscribe", b"other", 2]
        assert one.call("SUBSCRIBE", "news") == [b"subscribe", b"news", 2]
        assert two.call("PSUBSCRIBE", "n*") == [b"psubscribe", b"n*", 1]
        assert publisher.call("PUBLISH", "news", b"\0\r\n") == 2
        assert one.read() == [b"message", b"news", b"\0\r\n"]
        assert two.read() == [b"pmessage", b"n*", b"news", b"\0\r\n"]
        assert isinstance(one.call("GET", "a"), Error)
        assert one.call("PING") == [b"pong", b""] and one.call("PING", "x") == [b"pong", b"x"]
        assert publisher.call("PUBSUB", "NUMSUB", "news", "none") == [b"news", 1, b"none", 0]
        assert publisher.call("PUBSUB", "NUMPAT") == 1
        assert sorted(publisher.call("PUBSUB", "CHANNELS")) == [b"news", b"other"]
        assert publisher.call("PUBSUB", "CHANNELS", "n*") == [b"news"]
        assert one.call("UNSUBSCRIBE", "news", "never") == [b"unsubscribe", b"news", 1]
        assert one.read() == [b"unsubscribe", b"never", 1]
        assert publisher.call("PUBLISH", "news", 2) == 1
        assert one.call("UNSUBSCRIBE") == [b"unsubscribe", b"other", 0]
        assert one.call("UNSUBSCRIBE") == [b"unsubscribe", None, 0]
        assert one.call("SET", "a", "b") == "OK"
        assert two.read()[3] == b"2"
        assert two.call("PUNSUBSCRIBE") == [b"punsubscribe", b"n*", 0]
        assert one.call("SUBSCRIBE", "again")[2] == 1
        assert one.call("QUIT") == "OK" and one.is_at_end()
        until(lambda: publisher.call("PUBLISH", "again", 1) == 0)
        assert publisher.call("PUBSUB", "CHANNELS") == []


def test_messages_come_whole_and_in_order():
    with Server() as server:
        subscribers = [server.client() for _ in range(20)]
        for i, client in enumerate(subscribers):
            client.call(*(["SUBSCRIBE", "c"] if i % 2 else ["PSUBSCRIBE", "?"]))
        publisher = server.client()
        for i in range(2000):
            publisher.send(encoded("PUBLISH", "c", b"%d " % i + b"x" * (i % 500)))
        assert [publisher.read() for _ in range(2000)] == [20] * 2000
        for client in subscribers:
            for i in range(2000):
                assert client.read()[-1] == b"%d " % i + b"x" * (i % 500)


def test_a_slow_subscriber_is_cut_off():
    with Server("--backlog", 1 << 20) as server:
        slow, quick, publisher = server.client(), server.client(), server.client()
        slow.call("SUBSCRIBE", "c")
        quick.call("SUBSCRIBE", "c")
        sent = 0
        while server.info(publisher)["subscribers_cut_off"] == "0":
            assert publisher.call("PUBLISH", "c", b"%d " % sent + b"x" * 60000) >= 1
            assert quick.read()[2].startswith(b"%d " % sent)
            sent += 1
        until(lambda: publisher.call("PUBLISH", "c", "last") == 1)
        # earlier messages are complete
        number = 0
        try:
            while True:
                assert slow.read()[2].startswith(b"%d " % number)
                number += 1
        except (EOFError, ConnectionError):
            pass
        assert number < sent


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
