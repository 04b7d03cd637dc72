"""Sets, drawn elements and bits, over sockets. kv_sets_test.py PROGRAM [NAME...]"""
import collections
import os
import random
import shutil
import signal
import tempfile

from client import Error, Server, encoded, expect, held, rounds_of, run, until

WRONG = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
SYNTAX = Error("ERR syntax error")
NO_NUMBER = Error("ERR value is not an integer or out of range")


def test_members():
    with Server() as server:
        client = server.client()
        expect(client,
               ("SADD s a b c a", 3), ("SADD s c d", 1), ("SADD s a", 0), ("SCARD s", 4), ("TYPE s", "set"), ("OBJECT ENCODING s", b"hashtable"),
               ("SISMEMBER s a", 1), ("SISMEMBER s z", 0), ("SMISMEMBER s a z d", [1, 0, 1]), ("SMISMEMBER none a b", [0, 0]), ("SISMEMBER none a", 0),
               ("SCARD none", 0), ("SMEMBERS none", []), ("SREM s a z", 1), ("SREM s z", 0), ("SREM none z", 0), ("SMOVE s t b", 1), ("SMOVE s t b", 0),
               ("SMOVE none t b", 0), ("SMOVE s s c", 1), ("SMEMBERS t", [b"b"]), ("SMOVE t s b", 1), ("EXISTS t", 0), ("SREM s b c d", 3), ("EXISTS s", 0))
        client.call("SET", "text", "x")
        client.call("SADD", "s", "a")
        for words in ("SADD text a", "SREM text a", "SMOVE text s a", "SMOVE s text a", "SISMEMBER text a", "SMISMEMBER text a", "SCARD text", "SMEMBERS text",
                      "SPOP text", "SPOP text 2", "SRANDMEMBER text", "SRANDMEMBER text 2", "SINTER s text", "SINTER none text", "SINTERSTORE t s text",
                      "SINTERCARD 2 s text", "SUNION s text", "SUNIONSTORE t s text", "SDIFF s text", "SDIFFSTORE t s text", "SSCAN text 0",
                      "HGET s a", "LPUSH s a", "APPEND s x"):
            assert client.call(*words.split()) == WRONG, words
        expect(client, ("SPOP s 1 2", SYNTAX), ("SRANDMEMBER s 1 2", SYNTAX), ("SPOP s -1", Error("ERR value is out of range, must be positive")),
               ("SPOP s x", NO_NUMBER), ("SRANDMEMBER s x", NO_NUMBER), ("SINTERCARD 0 s", Error("ERR numkeys should be greater than 0")),
               ("SINTERCARD 2 s", Error("ERR Number of keys can't be greater than number of args")), ("SINTERCARD 1 s LIMIT -1", Error("ERR LIMIT can't be negative")),
               ("SINTERCARD 1 s LIMIT", SYNTAX), ("SINTERCARD 1 s other", SYNTAX), ("SMEMBERS s", [b"a"]))


def test_combinations():
    """As Python has them, whatever the sizes and however often a key is named."""
    with Server() as server:
        client = server.client()
        for _ in range(rounds_of(60)):
            sets = {}
            for number in range(4):
                name, size = b"s%d" % number, random.choice((0, 1, 5, 60, 300))
                sets[name] = {b"%d" % random.randrange(400) for _ in range(size)}
                client.call("DEL", name)
                if sets[name]:
                    assert client.call("SADD", name, *sets[name]) == len(sets[name])
            names = [b"s%d" % random.randrange(4) for _ in range(random.randrange(1, 7))]
            for word in ("SINTER", "SUNION", "SDIFF"):
                values = [sets[name] for name in names]
                wanted = {"SINTER": values[0].intersection, "SUNION": values[0].union, "SDIFF": values[0].difference}[word](*values[1:])
                got = client.call(word, *names)
                assert len(got) == len(wanted) and set(got) == wanted, (word, names)
                to = random.choice(("to", b"s0"))
                if to == "to":
                    client.call("SADD", "to", "old")
                client.call("EXPIRE", to, 1000)
                assert client.call(word + "STORE", to, *names) == len(wanted)
                assert set(client.call("SMEMBERS", to)) == wanted
                assert client.call("TTL", to) == (-1 if wanted else -2)
                if to == b"s0":
                    sets[b"s0"] = wanted
            values = [sets[name] for name in names]
            assert client.call("SINTERCARD", len(names), *names) == len(values[0].intersection(*values))
            assert client.call("SINTERCARD", len(names), *names, "LIMIT", 3) == min(3, len(values[0].intersection(*values)))
        # (the first set is large, and there are many small ones)
        client.call("SADD", "large", *range(3000))
        for number in range(300):
            client.send(encoded("SADD", f"small{number}", number))
        assert [client.read() for _ in range(300)] == [1] * 300
        assert set(client.call("SDIFF", "large", *[f"small{number}" for number in range(300)])) == {b"%d" % number for number in range(300, 3000)}
        assert client.call("SDIFFSTORE", "to", "large", *[f"small{number}" for number in range(300)], "large") == 0
        assert client.call("EXISTS", "to") == 0


def test_resp3():
    with Server() as server:
        client = server.client()
        client.call("HELLO", 3)
        client.call("SADD", "s", "a")
        client.call("HSET", "h", "f", "v")
        for words, reply in (("SMEMBERS s", b"~1\r\n$1\r\na\r\n"), ("SINTER s s", b"~1\r\n$1\r\na\r\n"), ("SUNION s none", b"~1\r\n$1\r\na\r\n"),
                             ("SDIFF s none", b"~1\r\n$1\r\na\r\n"), ("SRANDMEMBER s 2", b"*1\r\n$1\r\na\r\n"), ("SPOP s 2", b"~1\r\n$1\r\na\r\n"),
                             ("SPOP s 2", b"~0\r\n"), ("SPOP s", b"_\r\n"), ("SRANDMEMBER s", b"_\r\n"), ("HRANDFIELD none", b"_\r\n"),
                             ("HRANDFIELD h 2 WITHVALUES", b"*1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"), ("HRANDFIELD h -2", b"*2\r\n$1\r\nf\r\n$1\r\nf\r\n")):
            client.send(encoded(*words.split()))
            assert client.file.read(len(reply)) == reply, words


def test_drawn_elements():
    """All are drawn, those of a positive count are different, and those that SPOP draws are removed."""
    with Server() as server:
        client = server.client()
        for size in (1, 2, 17, 50, 150):
            members = {b"%d" % number for number in range(size)}
            client.call("DEL", "s", "h")
            client.call("SADD", "s", *members)
            client.call("HSET", "h", *[word for member in members for word in (member, b"v" + member)])
            for counts in ((-100,), (1, size // 5, size // 2, size, size + 9)):
                for key, command in (("s", "SRANDMEMBER"), ("h", "HRANDFIELD")):
                    seen = collections.Counter()
                    while set(seen) != members: # (it would never end if one were never drawn)
                        count = random.choice(counts)
                        got = client.call(command, key, count)
                        assert len(got) == (-count if count < 0 else min(count, size)) and set(got) <= members
                        assert count < 0 or len(set(got)) == len(got)
                        seen.update(got)
            pairs = client.call("HRANDFIELD", "h", size, "WITHVALUES")
            assert {pairs[i]: pairs[i + 1] for i in range(0, len(pairs), 2)} == {member: b"v" + member for member in members}
            assert client.call("HRANDFIELD", "h") in members and client.call("SRANDMEMBER", "s") in members
            while members:
                count = random.choice((1, 2, len(members) // 2, len(members), len(members) + 1))
                popped = client.call("SPOP", "s", count)
                assert len(popped) == min(count, len(members)) and set(popped) <= members
                members -= set(popped)
                assert client.call("SCARD", "s") == len(members)
            assert client.call("EXISTS", "s") == 0
        expect(client, ("SPOP none", None), ("SPOP none 2", []), ("SRANDMEMBER none", None), ("SRANDMEMBER none 2", []), ("SRANDMEMBER none -2", []),
               ("HRANDFIELD none", None), ("HRANDFIELD none 2", []), ("HRANDFIELD h 0", []), ("HRANDFIELD h x", NO_NUMBER), ("HRANDFIELD h 1 values", SYNTAX),
               ("HRANDFIELD h 1 WITHVALUES x", SYNTAX),
               ("HRANDFIELD h -9223372036854775808", Error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")),
               ("HRANDFIELD h -9223372036854770000 WITHVALUES", Error("ERR value is out of range")), ("HRANDFIELD h x BAD", NO_NUMBER))


def bits_of(value):
    return [byte >> (7 - i) & 1 for byte in value for i in range(8)]


def test_bits():
    """Counts and positions as Python finds them in lists of bits."""
    with Server() as server:
        client = server.client()
        offset, bit = Error("ERR bit offset is not an integer or out of range"), Error("ERR bit is not an integer or out of range")
        expect(client, ("SETBIT k 7 1", 0), ("SETBIT k 7 1", 1), ("GET k", b"\x01"), ("SETBIT k 17 1", 0), ("GET k", b"\x01\x00\x40"), ("SETBIT k 7 0", 1),
               ("GETBIT k 17", 1), ("GETBIT k 7", 0), ("GETBIT k 100000", 0), ("GETBIT none 0", 0), ("SETBIT zero 9 0", 0), ("GET zero", b"\x00\x00"),
               ("SETBIT k -1 1", offset), ("SETBIT k x 1", offset), ("SETBIT k 4294967296 1", offset), ("GETBIT k -1", offset), ("SETBIT k 0 2", bit),
               ("SETBIT k 0 x", bit), ("BITCOUNT none", 0), ("BITCOUNT k 0", SYNTAX), ("BITCOUNT k 0 1 NIBBLE", SYNTAX), ("BITCOUNT k 0 1 BIT x", SYNTAX),
               ("BITCOUNT k x 1", NO_NUMBER), ("BITPOS none 0", 0), ("BITPOS none 1", -1), ("BITPOS k 2", Error("ERR The bit argument must be 1 or 0.")),
               ("BITPOS k x", NO_NUMBER), ("BITPOS k 1 0 1 NIBBLE", SYNTAX), ("BITPOS k 1 0 1 BIT x", SYNTAX), ("BITCOUNT k -1 -2", 0))
        client.call("RPUSH", "l", "x")
        for words in ("SETBIT l 0 1", "GETBIT l 0", "BITCOUNT l", "BITPOS l 1", "BITOP NOT to l", "BITOP OR to k l"):
            assert client.call(*words.split()) == WRONG, words
        for _ in range(rounds_of(200)):
            size = random.choice((1, 2, 7, 8, 9, 17, 40))
            value = bytes(random.choice((0, 255, random.randrange(256))) for _ in range(size))
            bits = bits_of(value)
            client.call("SET", "v", value)
            assert client.call("BITCOUNT", "v") == sum(bits)
            for unit, all_of in (("BYTE", size), ("BIT", 8 * size)):
                first, last = random.randrange(-all_of - 2, all_of + 3), random.randrange(-all_of - 2, all_of + 3)
                begin, end = max(0, first + all_of if first < 0 else first), min(all_of - 1, max(0, last + all_of if last < 0 else last))
                scale = 8 if unit == "BYTE" else 1
                part = bits[begin * scale : (end + 1) * scale] if begin <= end else []
                count = 0 if first < 0 and last < 0 and first > last else sum(part)
                assert client.call("BITCOUNT", "v", first, last, unit) == count, (value, first, last, unit)
                for wanted in (0, 1):
                    place = part.index(wanted) + begin * scale if wanted in part else -1
                    assert client.call("BITPOS", "v", wanted, first, last, unit) == place, (value, wanted, first, last, unit)
            begin = random.randrange(size)
            for wanted in (0, 1):
                part = bits[8 * begin :]
                place = 8 * begin + part.index(wanted) if wanted in part else (8 * size if wanted == 0 else -1)
                assert client.call("BITPOS", "v", wanted, begin) == place


def test_bit_operations():
    with Server("--request", 3000000) as server:
        client = server.client()
        for _ in range(rounds_of(60)):
            values = [random.randbytes(random.choice((0, 1, 3, 16))) for _ in range(random.randrange(1, 5))]
            for number, value in enumerate(values):
                client.call("SET", f"v{number}", value)
            size = max(map(len, values))
            padded = [int.from_bytes(value.ljust(size, b"\0"), "big") for value in values]
            mixed = {"AND": padded[0], "OR": padded[0], "XOR": padded[0]}
            for value in padded[1:]:
                mixed = {"AND": mixed["AND"] & value, "OR": mixed["OR"] | value, "XOR": mixed["XOR"] ^ value}
            for word, result in mixed.items():
                to = random.choice(("to", "v0")) if word == "XOR" else "to"
                assert client.call("BITOP", word, to, *[f"v{number}" for number in range(len(values))]) == size
                assert (client.call("GET", to) or b"") == result.to_bytes(size, "big")
            client.call("SET", "n", values[0])
            assert client.call("BITOP", "NOT", "to", "n") == len(values[0])
            assert (client.call("GET", "to") or b"") == bytes(255 - byte for byte in values[0])
        client.call("SET", "large", "x" * 1000000)
        expect(client, ("BITOP NOT to a b", Error("ERR BITOP NOT must be called with a single source key.")), ("BITOP NAND to a", SYNTAX),
               ("BITOP OR to large large large", 1000000), ("BITOP OR to large large large large", Error("ERR the values have more than 3000000 bytes")),
               ("BITOP OR to none", 0), ("EXISTS to", 0))


def test_records():
    """All changes are in the file, as they were made."""
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    path = os.path.join(directory, "file")

    def state(client):
        return {key: set(client.call("SMEMBERS", key)) if client.call("TYPE", key) == "set" else client.call("GET", key) for key in client.call("KEYS", "*")}

    try:
        for how in ("kill", "rewrite", "snapshot"):
            with Server("--append-only", path, "--snapshot", path + ".snapshot") as server:
                client = server.client()
                client.call("FLUSHALL")
                client.call("SADD", "many", *range(1000))
                for words in ("SADD a 1 2 3 4", "SREM a 1 9", "SADD b 5 6", "SMOVE a b 2", "SADD c x", "SMOVE c d x", "SADD e 1 2 3", "SPOP e", "SPOP many 300",
                              "SADD f 1 2", "SPOP f 9", "SINTERSTORE g many many", "SUNIONSTORE h a b", "SDIFFSTORE i b a", "SET j x", "SDIFFSTORE j a b",
                              "SADD k 1", "SINTERSTORE k a none", "COPY a l", "RENAME b m", "SADD l 77", "SETBIT n 33 1", "SETBIT n 1 1", "SETBIT n 33 0",
                              "BITOP NOT o n", "SET p x", "BITOP AND p none", "SADD q 1", "EXPIRE q 1000", "SUNIONSTORE q a"):
                    assert not isinstance(client.call(*words.split()), Error), words
                before = state(client)
                assert len(before[b"many"]) == 700 and before[b"o"] == b"\xbf\xff\xff\xff\xff" and before[b"a"] == {b"3", b"4"}
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
                assert state(client) == before and client.call("TTL", "q") == -1
                server.end(signal.SIGKILL)
                server.process.returncode = 0
    finally:
        shutil.rmtree(directory)


def test_watched_sets():
    with Server() as server:
        client, other = server.client(), server.client()
        for first, change in (("SADD k a", "SADD k b"), ("SADD k a b", "SREM k a"), ("SADD k a", "SPOP k"), ("SADD k a b c", "SPOP k 2"), ("SADD k a", "SMOVE k m a"),
                              ("SADD m a", "SMOVE m k a"), ("SADD m a", "SUNIONSTORE k m"), ("SADD k a", "SINTERSTORE k k m"), ("SET k a", "SETBIT k 0 1"),
                              ("SET m a", "BITOP NOT k m")):
            for same in (change, "SADD n x", "SREM k none", "SETBIT n2 0 1"):
                other.call("DEL", "k", "m", "n2")
                other.call(*first.split())
                client.call("WATCH", "k")
                other.call(*same.split())
                client.call("MULTI")
                assert client.call("EXEC") == (None if same == change else []), same


def test_sets_are_bounded():
    """Replies have a limit, and others have their turn."""
    with Server("--reply", 100000) as server:
        client, other = server.client(), server.client()
        too_large = Error("ERR the reply would be larger than 100000 bytes")
        client.call("SADD", "s", *[f"{i:0100}" for i in range(13000)])
        client.call("SADD", "t", *range(9000))
        for words in (("SMEMBERS", "s"), ("SUNION", "s", "t"), ("SDIFF", "s", "t"), ("SINTER", "s", "s"), ("SPOP", "s", 12900), ("SRANDMEMBER", "s", 12900),
                      ("SRANDMEMBER", "s", -(1 << 60))):
            client.send(encoded("PING") + encoded(*words) + encoded("PING"))
            assert [client.read() for _ in range(3)] == ["PONG", too_large, "PONG"], words
        assert client.call("SCARD", "s") == 13000
        for words in (("SINTERCARD", 2, "s", "t"), ("SUNIONSTORE", "u", "t"), ("SDIFFSTORE", "u", "t", "s")):
            other.call("CONFIG", "RESETSTAT")
            with held(server.process):
                client.send(encoded(*words) * 12)
                other.send(encoded("INFO"))
            info = other.read().decode()
            before = int(info.split("total_commands_processed:")[1].split()[0])
            assert before <= 8, (words[0], before)
            for _ in range(12):
                client.read()
        cursor, seen = 0, set()
        while True:
            cursor, members = client.call("SSCAN", "t", cursor, "MATCH", "1*", "COUNT", 100)
            seen |= set(members)
            cursor = int(cursor)
            if cursor == 0:
                break
        assert seen == {b"%d" % number for number in range(9000) if str(number).startswith("1")}
        assert client.call("DEL", "s", "t") == 2


def wrapped(number, bits, signed):
    number &= (1 << bits) - 1
    return number - (1 << bits) if signed and number >> (bits - 1) else number


class Fields:
    """The model of BITFIELD: a number whose bits are those of the string, the first the most significant."""

    def __init__(self):
        self.bits = ""

    def get(self, offset, bits, signed):
        return wrapped(int(self.bits[offset:offset + bits].ljust(bits, "0"), 2), bits, signed)

    def put(self, offset, bits, number):
        text = format(number & ((1 << bits) - 1), f"0{bits}b")
        self.bits = self.bits[:offset] + text + self.bits[offset + bits:]

    def reserve(self, end):
        self.bits = self.bits.ljust((end + 7) // 8 * 8, "0") if end > len(self.bits) else self.bits

    def run(self, operation, signed, bits, offset, number, overflow):
        old = self.get(offset, bits, signed)
        if operation == "GET":
            return old
        top = (1 << (bits - signed)) - 1
        bottom = -top - 1 if signed else 0
        new = number if operation == "SET" else old + number
        if operation == "SET" and not signed and new < 0:
            new += 1 << 64
        if not bottom <= new <= top:
            if overflow == "FAIL":
                return None
            new = wrapped(new, bits, signed) if overflow == "WRAP" else top if new > top else bottom
        self.put(offset, bits, new)
        return old if operation == "SET" else new

    def value(self):
        return int(self.bits, 2).to_bytes(len(self.bits) // 8, "big") if self.bits else None


def test_fields_of_bits():
    """Random operations beside a model, and from the append-only file again."""
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    path = os.path.join(directory, "kv.aof")
    try:
        with Server("--append-only", path) as server:
            client, fields = server.client(), Fields()
            for _ in range(rounds_of(300)):
                words, wanted, end, overflow, writes = [], [], 0, "WRAP", False
                requests = []
                for _ in range(random.randrange(1, 6)):
                    signed = random.randrange(2)
                    bits = random.choice([1, 2, 7, 8, 9, 31, 32, 33, 63, 63 + signed])
                    counted = random.randrange(2)
                    offset = random.randrange(8 if counted else 300)
                    operation = random.choice(["GET", "SET", "INCRBY"])
                    number = random.choice([0, 1, -1, random.randrange(-300, 300), random.randrange(-2**63, 2**63), 2**63 - 1, -2**63])
                    if random.randrange(3) == 0:
                        overflow = random.choice(["WRAP", "SAT", "FAIL"])
                        words += ["OVERFLOW", overflow]
                    words += [operation, "ui"[signed] + str(bits), f"#{offset}" if counted else offset] + [number] * (operation != "GET")
                    at = offset * bits if counted else offset
                    requests.append((operation, signed, bits, at, number, overflow))
                    if operation != "GET":
                        writes, end = True, max(end, at + bits)
                if writes:
                    fields.reserve(end)
                wanted = [fields.run(*request) for request in requests]
                got = client.call("BITFIELD", "f", *words)
                assert got == wanted, (words, got, wanted)
                assert client.call("GET", "f") == fields.value(), words
                if not writes:
                    assert client.call("BITFIELD_RO", "f", *words) == wanted
            before = int(server.info(client)["rdb_changes_since_last_save"])
            client.call("BITFIELD", "f", "SET", "u8", 0, fields.get(0, 8, 0), "INCRBY", "i5", 3, 0, "GET", "u63", 1)
            assert int(server.info(client)["rdb_changes_since_last_save"]) == before
            kind = Error("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
            offset = Error("ERR bit offset is not an integer or out of range")
            expect(client, *((f"BITFIELD f GET {word} 0", kind) for word in ("u64", "i65", "u0", "i-1", "x8", "u", "u8x")),
                   *((f"BITFIELD f GET u8 {word}", offset) for word in ("-1", "x", "#", "#-1", "9223372036854775807", "#9223372036854775807", "4294967290")),
                   ("BITFIELD f", []), ("BITFIELD none GET u8 0 GET i64 #3", [0, 0]), ("EXISTS none", 0), ("BITFIELD f SET u8 0", SYNTAX),
                   ("BITFIELD f ADD u8 0 1", SYNTAX), ("BITFIELD f OVERFLOW", SYNTAX), ("BITFIELD f OVERFLOW NO GET u8 0", Error("ERR Invalid OVERFLOW type specified")),
                   ("BITFIELD f SET u8 0 x", Error("ERR value is not an integer or out of range")),
                   ("BITFIELD_RO f GET u8 0 SET u8 0 1", Error("ERR BITFIELD_RO only supports the GET subcommand")), ("LPUSH list a", 1),
                   ("BITFIELD list SET u8 0 1", WRONG), ("BITFIELD list GET u8 0", WRONG), ("BITFIELD new OVERFLOW FAIL SET u4 8 16", [None]),
                   ("GET new", bytes(2)))
            long = "k" * 5000
            much = Error("ERR the changes times the size of the key are more than 1048576 bytes")
            assert client.call("BITFIELD", long, *["SET", "u8", 0, 1] * 210) == much
            assert client.call("BITFIELD", long, *["SET", "u8", 0, 1] * 209) == [0] + [1] * 208
            server.end(signal.SIGKILL)
            server.process.returncode = 0
        with Server("--append-only", path) as server:
            client = server.client()
            assert client.call("GET", "f") == fields.value() and client.call("GET", "new") == bytes(2) and client.call("GET", long) == b"\x01"
    finally:
        shutil.rmtree(directory)


def test_replies_of_fields_have_a_limit():
    """A request whose reply may be too large changes nothing. In a transaction its changes are made."""
    with Server("--reply", 1024) as server:
        client = server.client()
        too_large = Error("ERR the reply would be larger than 1024 bytes")
        fits, many = ((1 << 20) + 1024) // 23 - 1, 50000  # a number has up to 23 bytes, and so has the head
        for words in (["BITFIELD_RO", "f", *["GET", "u8", 0] * many], ["BITFIELD", "f", *["SET", "u8", 0, 1] * (fits + 1)],
                      ["BITFIELD", "f", *["OVERFLOW", "FAIL", "INCRBY", "u1", 7, 2] * many]):
            assert client.call(*words) == too_large and client.call("EXISTS", "f") == 0, words[:5]
        assert client.call("BITFIELD", "f", *["SET", "i64", 0, -2**63] * fits) == [0] + [-2**63] * (fits - 1)
        assert client.call("BITFIELD_RO", "f", *["GET", "i64", 0] * fits) == [-2**63] * fits
        client.send(encoded("MULTI") + encoded("BITFIELD", "f", *["SET", "i64", 0, -2**63] * many + ["SET", "u8", 0, 7]) + encoded("GET", "f") +
                    encoded("EXEC"))
        assert [client.read() for _ in range(4)] == ["OK", "QUEUED", "QUEUED", [too_large, b"\x07" + bytes(7)]]


def test_sort():
    """Beside a model: lists, sets and sorted sets by number and by text, weights and values of other keys, stored results."""
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    path = os.path.join(directory, "kv.aof")
    double = Error("ERR One or more scores can't be converted into double")
    try:
        with Server("--append-only", path) as server:
            client = server.client()
            names = [b"%d" % number for number in random.sample(range(-500, 500), 200)]
            weights = {name: random.choice([b"", b"1", b"2.5", b"-3", b"inf"]) for name in names}
            client.call("RPUSH", "l", *names, *names[:10])
            client.call("SADD", "s", *names)
            client.call("ZADD", "z", *[word for name in names for word in (-int(name), name)])
            for name in names[:150]:
                client.call("SET", b"w:" + name, weights[name])
                client.call("HSET", b"h:" + name, "f", weights[name])
            scores = {name: float(weights[name] or 0) if name in names[:150] else 0.0 for name in names}
            for key, elements in (("l", names + names[:10]), ("s", names), ("z", names)):
                for backward in (False, True):
                    direction = ["DESC"] if backward else []
                    assert client.call("SORT", key, *direction) == sorted(elements, key=int, reverse=backward)
                    assert client.call("SORT_RO", key, "ALPHA", *direction) == sorted(elements, reverse=backward)
                    wanted = sorted(elements, key=lambda name: (scores[name], name), reverse=backward)
                    for by in ("w:*", "h:*->f"):
                        assert client.call("SORT", key, "BY", by, *direction) == wanted
                        offset, limit = random.randrange(-3, 250), random.randrange(-1, 250)
                        begin = max(offset, 0)
                        part = wanted[begin:] if limit < 0 else wanted[begin:begin + limit]
                        assert client.call("SORT", key, "BY", by, "LIMIT", offset, limit, *direction) == part
                        got = client.call("SORT", key, "GET", "#", "BY", by, "GET", "w:*", "GET", "h:*->f", "GET", "none", *direction)
                        value = {name: weights[name] if name in names[:150] else None for name in names}
                        assert got == [word for name in wanted for word in (name, value[name], value[name], None)]
                        assert client.call("SORT", key, "BY", by, "GET", "w:*", "STORE", "to", *direction) == len(wanted)
                        assert client.call("LRANGE", "to", 0, -1) == [value[name] or b"" for name in wanted]
                for words in (["BY", "none"], ["BY", "none", "LIMIT", 3, 10]):
                    got = client.call("SORT", key, *words)
                    wanted = {"l": names + names[:10], "z": sorted(names, key=int, reverse=True), "s": client.call("SMEMBERS", "s")}[key]
                    assert got == (wanted[3:13] if "LIMIT" in words else wanted)
            assert client.call("SORT", "z", "BY", "none", "DESC") == sorted(names, key=int)
            assert client.call("SORT", "s", "BY", "none", "STORE", "to") == 200 and client.call("LRANGE", "to", 0, -1) == sorted(names)
            expect(client, ("RPUSH texts 1 x", 2), ("SORT texts", double), ("SORT texts ALPHA", [b"1", b"x"]), ("SET w:1 nan", "OK"), ("SORT texts BY w:*", double),
                   ("SORT none", []), ("SORT none STORE to", 0), ("EXISTS to", 0), ("SORT texts ALPHA LIMIT 5 1 STORE to", 0), ("SORT w:1", WRONG),
                   ("SORT_RO texts STORE to", SYNTAX), ("SORT texts LIMIT 1", SYNTAX), ("SORT texts BY", SYNTAX), ("SORT texts LIMIT a 1", Error("ERR value is not an integer or out of range")),
                   ("SORT texts ALPHA STORE texts", 2), ("LRANGE texts 0 -1", [b"1", b"x"]), ("SORT texts ALPHA STORE w:1", 2), ("TYPE w:1", "list"))
            # a short request does not hold the others for long, nor fill the memory
            steps = Error("ERR SORT would take more than 16777216 steps")
            client.call("RPUSH", "many", *range(20000))
            assert client.call("SORT", "many", *["GET", "#"] * 840) == steps and client.call("SORT", "many", "BY", "*" + "x" * 65536) == steps
            client.call("RPUSH", "long", "x" * 1000000)
            assert client.call("SORT", "long", "BY", "nosort", *["GET", "a*"] * 1200) == steps
            assert client.call("SORT", "long", "BY", "nosort", *["GET", "a*"] * 50) == [None] * 50
            client.call("RPUSH", "same", *["a"] * 2000)
            client.call("SET", "weight:a", "1" * 500000)
            assert client.call("SORT", "same", "BY", "weight:*", "ALPHA") == steps
            assert client.call("DEL", "same", "weight:a") == 2
            # in a transaction that has done enough, it is refused unless it stores
            client.call("MULTI")
            for words in [("SORT", "many", "BY", "a*", "GET", "#", "LIMIT", 0, 1)] * 30 + [("SORT", "texts", "ALPHA", "STORE", "late"), ("BITFIELD", "f", "GET", "u8", 0),
                                                                                         ("BITFIELD", "f", "SET", "u8", 0, 1)]:
                assert client.call(*words) == "QUEUED"
            replies = client.call("EXEC")
            refused = Error("ERR the transaction does too much")
            assert replies[0] == [b"0"] and replies[29] == refused and replies[31] == refused, replies[-4:]
            assert client.call("LLEN", "late") == 2 and client.call("BITFIELD", "f", "GET", "u8", 0) == [1]
            left = {key: client.call("SORT", key, "ALPHA") for key in ("l", "s", "texts", "w:1")}
            server.end(signal.SIGKILL)
            server.process.returncode = 0
        with Server("--append-only", path, "--request", 100000) as server:
            client = server.client()
            assert {key: client.call("SORT", key, "ALPHA") for key in left} == left
            client.call("SET", "big", "x" * 50000)
            client.call("RPUSH", "three", 1, 2, 3)
            assert client.call("SORT", "three", "GET", "b*g", "STORE", "to") == 3
            client.call("RPUSH", "gs", "i", "i", "i")
            assert client.call("SORT", "gs", "ALPHA", "GET", "b*g", "STORE", "to") == Error("ERR the values have more than 100000 bytes")
            assert client.call("SORT", "gs", "ALPHA", "GET", "b*g", "LIMIT", 0, 2, "STORE", "to") == 2 and client.call("LLEN", "to") == 2
    finally:
        shutil.rmtree(directory)


def test_waiting_clients_take_a_sorted_list():
    with Server() as server:
        client, other = server.client(), server.client()
        client.call("RPUSH", "l", 3, 1, 2)
        other.send(encoded("BLPOP", "to", 0))
        while server.info(client)["blocked_clients"] != "1":
            pass
        assert client.call("SORT", "l", "STORE", "to") == 3 and other.read() == [b"to", b"1"]
        assert client.call("LRANGE", "to", 0, -1) == [b"2", b"3"]


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
