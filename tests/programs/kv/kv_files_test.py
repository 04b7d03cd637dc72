"""Tests the files of the key-value server: kv_files_test.py PROGRAM [NAME...]. Acknowledged changes are kept."""
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import threading

from client import PATIENCE, Error, Server, encoded, held, rounds_of, run_rejected, run, until

DIRECTORY = None
VERSION = 4  # of the files


def in_a_directory(test):
    """Gives a test a directory; afterwards only the declared files may be left in it."""

    def with_directory():
        global DIRECTORY
        DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
        try:
            test()
        finally:
            shutil.rmtree(DIRECTORY)

    with_directory.__name__ = test.__name__
    return with_directory


def path(name):
    return os.path.join(DIRECTORY, name)


def contents(client):
    """All keys with their values."""
    keys = client.call("KEYS", "*")
    return dict(zip(keys, client.call("MGET", *keys))) if keys else {}


def append_only(fsync="always", name="file", **how):
    return Server("--append-only", path(name), "--fsync", fsync, **how)


# ---- A sequence of changes, and the keys after each number of them ----


class Story:
    """Many changes also set the key `last` to their number, in one request, so a state shows its position."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.changes = []

    def words(self, i):
        while len(self.changes) <= i:
            number, kind = len(self.changes), self.random.randrange(100)
            key = b"key:%d" % self.random.randrange(3000)
            value = self.random.randbytes(self.random.randrange(100))
            if number % 4000 == 3999:
                self.changes.append((b"FLUSHALL",))
            elif kind < 20:
                self.changes.append((b"DEL", key))
            elif kind < 40:
                self.changes.append((b"APPEND", key, value))
            else:
                self.changes.append((b"MSET", b"last", b"%d" % number, key, value))
        return self.changes[i]

    def change(self, i):
        return encoded(*self.words(i))

    def apply(self, state, i):
        words = self.words(i)
        if words[0] == b"FLUSHALL":
            state.clear()
        elif words[0] == b"DEL":
            state.pop(words[1], None)
        elif words[0] == b"APPEND":
            state[words[1]] = state.get(words[1], b"") + words[2]
        else:
            state.update(zip(words[1::2], words[2::2]))

    def state(self, count):
        state = {}
        for i in range(count):
            self.apply(state, i)
        return state

    def is_at(self, wanted, least, most):
        """The number of changes after which this is the state; fails if there is none."""
        state = {}
        for count in range(most + 1):
            if count >= least and state.get(b"last") == wanted.get(b"last") and state == wanted:
                return count
            self.apply(state, count)
        raise AssertionError(f"no state between {least} and {most}: last is {wanted.get(b'last')}")


# ---- The append-only file ----


@in_a_directory
def test_all_is_there_again():
    for fsync in ("always", "everysec", "no"):
        name = f"file-{fsync}"
        story = Story(random.randrange(1 << 30))
        for begin in range(0, 6000, 2000):
            with append_only(fsync, name) as server:
                client = server.client()
                assert contents(client) == story.state(begin)
                client.send(b"".join(story.change(i) for i in range(begin, begin + 2000)))
                for _ in range(2000):
                    assert not isinstance(client.read(), Error)
        with append_only(fsync, name) as server:
            assert contents(server.client()) == story.state(6000)


@in_a_directory
def test_each_kind_of_change_is_kept():
    with append_only() as server:
        client = server.client()
        for words in (
            "SET a 1", "SET b 1 EX 1000", "SET c 1 EX 1000", "SET c 2 KEEPTTL", "INCR n", "INCRBY n 41",
            "SETEX d 1000 4", "SET e 1", "EXPIRE e 1000", "SET f 1 EX 1000", "PERSIST f", "SET g 1 EX 1000",
            "GETSET g 2", "SET h 1", "GETDEL h", "SET i 1", "EXPIRE i -1", "MSET j 1 k 2", "APPEND j 0",
            "APPEND new x", "SET l 1 PXAT 99999999999999", "SETNX a 5", "SETNX m 5", "DEL k", "DECR n",
            "SET o 1 NX", "SET o 2 XX", "SET o 3 NX", "SET p 1 EX 100", "INCR p", "SET q 1 EX 100", "SET q 2",
            "SETRANGE r 3 abc", "SETRANGE r 1 x", "SETRANGE r 20 long", "SET s 1 EX 1000", "RENAME s t", "RENAMENX t u", "COPY u v",
            "SET w 1", "COPY v w REPLACE", "INCRBYFLOAT x 1.5", "MSETNX y 1 z 2", "GETEX y EX 1000", "GETEX z EX 1000",
            "GETEX z PERSIST", "EXPIRE y 2000 GT", "EXPIRE y 1 NX", "SET aa 1", "GETEX aa EXAT 1"):
            client.call(*words.split())
        client.call("SET", b"\0\r\n", bytes(range(256)))
        before = contents(client)
        ends = {key: client.call("TTL", key) > 0 for key in before}
    with append_only() as server:
        client = server.client()
        assert contents(client) == before
        assert {key: client.call("TTL", key) > 0 for key in before} == ends
        assert sum(ends.values()) == 10, ends


@in_a_directory
def test_keys_that_ended_stay_ended():
    with append_only() as server:
        client = server.client()
        # (changed before it expired)
        while client.call("SET", "a", 5, "PX", 20) != "OK" or client.call("INCR", "a") != 6:
            pass
        client.call("SET", "later", 1, "PX", 60)
        while client.call("EXISTS", "a"):
            pass
        assert client.call("INCR", "a") == 1
        server.end(signal.SIGKILL)
        server.process.returncode = 0
    with append_only() as server:
        client = server.client()
        assert client.call("GET", "a") == b"1" and client.call("TTL", "a") == -1
        while client.call("EXISTS", "later"):
            pass
    with append_only() as server:
        assert contents(server.client()) == {b"a": b"1"}


def write_and_note(server, name, acknowledged, enough, killed):
    """A client that writes increasing numbers under its name, in pipelines, and records the acknowledged ones."""
    number = 0
    try:
        client = server.client()
        while True:
            count = random.randrange(1, 20)
            client.send(b"".join(encoded("SET", name, number + i) for i in range(count)))
            for _ in range(count):
                assert client.read() == "OK"
                acknowledged[name] = number
                number += 1
            if sum(acknowledged.values()) > enough:
                killed.set()
    except (EOFError, OSError):
        pass


@in_a_directory
def test_what_was_acknowledged_survives_a_kill():
    with append_only():
        pass
    for round_ in range(6):
        with append_only(("always", "everysec", "no")[round_ % 3], says=True) as server:
            acknowledged, killed = {}, threading.Event()
            enough = random.randrange(200, 1500)
            names = [f"{round_}:{i}" for i in range(8)]
            threads = [threading.Thread(target=write_and_note, args=(server, name, acknowledged, enough, killed))
                       for name in names]
            for thread in threads:
                thread.start()
            assert killed.wait(60)
            server.end(signal.SIGKILL)
            server.process.returncode = 0
            for thread in threads:
                thread.join()
        with append_only(says=True) as server:
            client = server.client()
            for name in acknowledged:
                assert int(client.call("GET", name)) >= acknowledged[name]


@in_a_directory
def test_syncs_are_shared():
    with append_only() as server:
        clients = [server.client() for _ in range(20)]
        for i in range(50):
            with held(server.process):  # so that they arrive together
                for client in clients:
                    client.send(encoded("INCR", "n"))
            for client in clients:
                client.read()
        info = server.info(clients[0])
        assert clients[0].call("GET", "n") == b"1000"
        assert info["aof_groups"] == info["aof_syncs"]
        assert 50 <= int(info["aof_syncs"]) <= 200, info["aof_syncs"]


def kill(server):
    server.end(signal.SIGKILL)
    server.process.returncode = 0


def read_file(name):
    with open(path(name), "rb") as file:
        return file.read()


def write_file(name, data):
    with open(path(name), "wb") as file:
        file.write(data)


def check(name):
    """The exit status of --check, and its output."""
    done = subprocess.run([Server.program, "--check", path(name)], capture_output=True, timeout=PATIENCE, text=True)
    return done.returncode, done.stdout + done.stderr


@in_a_directory
def test_a_torn_tail_is_moved_to_a_file_beside():
    with append_only() as server:
        client = server.client()
        client.call("SET", "a", "first")
        client.call("APPEND", "a", "+")
    whole = os.path.getsize(path("file"))
    with append_only() as server:
        server.client().call("MSET", "a", "second", "b", "\0" * 10)
        kill(server)
    data = read_file("file").rstrip(b"\0")
    tails = [data[:cut] for cut in range(whole, len(data))]
    tails += [data[:cut] + bytes(len(data) - cut) for cut in range(whole, len(data), 7)]
    for at in range(whole, len(data), 5):
        tails.append(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    # (a write of the killed server may still be under way in its own file)
    for tail in random.sample(tails, min(rounds_of(len(tails)), len(tails))):
        write_file("copy", tail)
        torn = tail.rstrip(b"\0")[whole:]
        assert check("copy")[0] == (1 if torn else 0)
        assert read_file("copy") == tail
        with append_only(name="copy", says=True) as server:
            assert contents(server.client()) == {b"a": b"first+"}
            kept = path("copy.torn")
            said = f"moved the last {len(torn)} bytes, which belong to incomplete changes, to {kept}\n"
            assert server.said() == (f"kv: {path('copy')}: {said}" if torn else ""), server.said()
        assert read_file("copy") == data[:whole]
        if torn:
            assert read_file("copy.torn") == torn
            assert os.stat(kept).st_mode & 0o777 == 0o600
            os.unlink(kept)
    # records written behind a removed tail can be read again
    with append_only(name="copy") as server:
        server.client().call("SET", "c", "third")
    with append_only(name="copy") as server:
        assert contents(server.client()) == {b"a": b"first+", b"c": b"third"}


@in_a_directory
def test_an_earlier_torn_tail_is_kept():
    with append_only() as server:
        server.client().call("SET", "a", "1")
    whole = read_file("file")
    write_file("file.torn", b"mine")
    write_file("file", whole + b"other")
    with append_only(says=True) as server:
        assert f"to {path('file.torn.1')}\n" in server.said()
    assert (read_file("file.torn"), read_file("file.torn.1"), read_file("file")) == (b"mine", b"other", whole)


@in_a_directory
def test_a_file_of_another_is_left_as_it_is():
    with Server("--append-only", path("journal")) as server:
        server.client().call("SET", "a", "1")
    with Server("--snapshot", path("snapshot")) as server:
        server.client().call("SET", "a", "1")
    journal, snapshot = read_file("journal"), read_file("snapshot")
    foreign = "not a file of this server"
    for option, data, why in (
        ("--append-only", b"important notes\nline 2\n", foreign), ("--append-only", b"", "an empty file"),
        ("--append-only", b"\0" * 100, foreign), ("--append-only", encoded("SET", "a", "1"), "commands without"),
        ("--append-only", journal[:12], "damaged at byte 0 of 12"), ("--append-only", journal[:5], foreign),
        ("--append-only", b"REDIS0010\xfa" + bytes(50), foreign), ("--append-only", snapshot, "a snapshot, not"),
        ("--append-only", journal[:12] + bytes([VERSION + 1]) + journal[13:], "damaged at byte 0"),
        ("--snapshot", journal, "an append-only file, not"), ("--snapshot", b"notes", foreign), ("--snapshot", b"", "an empty file"),
        ("--snapshot", encoded("SET", "a", "1"), "commands without"),
    ):
        write_file("other", data)
        status, text = run_rejected(option, path("other"))
        assert status == 1 and why in text and "the file is left as it is" in text, (option, data, text)
        assert read_file("other") == data
        if "not" not in why or why == foreign:
            assert check("other")[0] == 1
        assert sorted(os.listdir(DIRECTORY)) == ["journal", "other", "snapshot"]
    for special in (DIRECTORY, "/dev/full", "/dev/null"):
        assert run_rejected("--append-only", special)[0] == 1
        assert check(special)[0] == 1
    assert check("journal") == (0, f"{path('journal')}: append-only file, version {VERSION}: {len(journal)} bytes are intact, "
                                "with 1 records in 1 groups\n")
    assert check("snapshot")[0] == 0
    assert check("none")[0] == 1


def checksum(data, key):
    """SipHash-1-3, which the files' checksums are."""
    mask = (1 << 64) - 1
    a, b = struct.unpack("<QQ", key)
    v = [a ^ 0x736F6D6570736575, b ^ 0x646F72616E646F6D, a ^ 0x6C7967656E657261, b ^ 0x7465646279746573]

    def rotate(word, by):
        return (word << by | word >> (64 - by)) & mask

    def mix():
        for x, y, first, last in ((0, 1, 13, 32), (2, 3, 16, 0)):
            v[x] = (v[x] + v[y]) & mask
            v[y] = rotate(v[y], first) ^ v[x]
            v[x] = rotate(v[x], last) if last else v[x]
        for x, y, first, last in ((0, 3, 21, 0), (2, 1, 17, 32)):
            v[x] = (v[x] + v[y]) & mask
            v[y] = rotate(v[y], first) ^ v[x]
            v[x] = rotate(v[x], last) if last else v[x]

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        mix()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        mix()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def with_version(data, version):
    """The file as a server of another version would have begun it."""
    head = data[:12] + struct.pack("<H", version) + data[14:32]
    return head + struct.pack("<Q", checksum(head, head[16:32])) + data[40:]


@in_a_directory
def test_older_versions_are_read_and_newer_ones_refused():
    with Server("--append-only", path("journal")) as server:
        server.client().call("MSET", "a", "1", "b", "2")
    with Server("--snapshot", path("snapshot")) as server:
        server.client().call("MSET", "a", "1", "b", "2")
    for option, name in (("--append-only", "journal"), ("--snapshot", "snapshot")):
        data = read_file(name)
        assert with_version(data, VERSION) == data
        for version in (0, VERSION + 1, 65535):
            write_file(name, with_version(data, version))
            status, text = run_rejected(option, path(name))
            assert status == 1 and f"a file of version {version}, at byte 12; this server reads versions up to {VERSION}" in text, text
            assert read_file(name) == with_version(data, version)
        for version in range(1, VERSION):
            write_file(name, with_version(data, version))
            assert check(name)[0] == 0 and f"version {version}" in check(name)[1]
            with Server(option, path(name)) as server:
                # (new records do not go into a file of an old version)
                assert name == "snapshot" or f"version {VERSION}" in check(name)[1]
                assert server.client().call("SETRANGE", "a", 1, "x") == 2
            assert check(name)[0] == 0 and f"version {VERSION}" in check(name)[1]
            with Server(option, path(name)) as server:
                assert contents(server.client()) == {b"a": b"1x", b"b": b"2"}
    assert sorted(os.listdir(DIRECTORY)) == ["journal", "snapshot"]


@in_a_directory
def test_nothing_is_written_through_a_link():
    """Another user of the directory puts links and files where new files are created."""
    write_file("precious", b"precious")
    for name in ("snapshot.new", "file.new"):
        os.symlink(path("precious"), path(name))
    with Server("--snapshot", path("snapshot"), "--append-only", path("file")) as server:
        client = server.client()
        assert client.call("SET", "a", "1") == "OK"
        assert client.call("SAVE") == "OK"
        os.symlink(path("precious"), path("snapshot.new"))
        os.link(path("precious"), path("file.new"))
        assert client.call("SAVE") == "OK"
        old = os.stat(path("file")).st_ino
        client.call("BGREWRITEAOF")
        until(lambda: os.stat(path("file")).st_ino != old)
    assert read_file("precious") == b"precious"
    assert sorted(os.listdir(DIRECTORY)) == ["file", "precious", "snapshot"]
    for name in ("file", "snapshot"):
        assert os.lstat(path(name)).st_mode & 0o7777 == 0o600


@in_a_directory
def test_a_copy_of_the_file_as_a_value_is_no_group():
    """Neither damage nor a torn tail is judged by bytes that a client has sent."""
    with append_only() as server:
        server.client().call("SET", "a", "1")
    before = read_file("file")
    with append_only() as server:
        client = server.client()
        client.call("SET", "copy", before)
        client.call("SET", "copies", before * 3)
        kill(server)
    data = read_file("file").rstrip(b"\0")
    write_file("other", data[:-1])
    with append_only(name="other", says=True) as server:
        assert contents(server.client()) == {b"a": b"1", b"copy": before}


@in_a_directory
def test_zeros_behind_the_records_are_no_damage():
    """A killed server leaves zeros behind its records; a server that was stopped does not."""
    numbers = iter(range(1000))
    for end in (signal.SIGKILL, signal.SIGTERM):
        with append_only(says=True) as server:
            client = server.client()
            for _ in range(20):
                client.call("SET", f"key{next(numbers)}", "x" * 1000)
            before = contents(client)
            # (a client that waits for the disk is answered after preallocation)
            client.call("SET", "last", "\0\0")
            client.call("DEL", "last")
            server.end(end)
            server.process.returncode = 0
            assert server.said() == ""
        data = open(path("file"), "rb").read()
        if end == signal.SIGKILL:
            assert len(data) - len(data.rstrip(b"\0")) >= 64 << 10, len(data)
            torn = data.rstrip(b"\0")[:-1]
            with open(path("file"), "wb") as file: # the last group is incomplete, and zeros follow it
                file.write(torn + bytes(len(data) - len(torn)))
            with append_only(says=True) as server:
                assert {**contents(server.client()), b"last": None} == {**before, b"last": None}
                assert "which belong to incomplete changes" in server.said()
        else:
            assert data[-48:].startswith(b"kvFr")
        with append_only() as server:
            assert {**contents(server.client()), b"last": None} == {**before, b"last": None}


@in_a_directory
def test_a_file_may_lack_room():
    """The disk has space for records, but not for zeros behind them."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    with append_only(first=limit) as server:
        client = server.client()
        for i in range(50):
            assert client.call("SET", i, "x" * 1000) == "OK"
        server.end(signal.SIGKILL)
        server.process.returncode = 0
    with append_only() as server:
        assert len(contents(server.client())) == 50


@in_a_directory
def test_damage_to_what_was_synced_is_rejected():
    for end in (signal.SIGKILL, signal.SIGTERM):
        with append_only(name=f"file{end}") as server:
            client = server.client()
            sizes = []
            for i in range(3):
                sizes.append(int(server.info(client)["aof_current_size"]))
                client.call("SET", f"key{i}", "value\r\n" * 10)
            server.end(end)
            server.process.returncode = 0
        data = read_file(f"file{end}")
        for group in range(3 if end == signal.SIGTERM else 2):
            for at in (sizes[group], sizes[group] + 10, sizes[group] + 50, sizes[group] + 100):
                changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
                write_file("file", changed)
                message = f"kv: {path('file')}: damaged at byte {sizes[group]} of {len(data)}"
                assert run_rejected("--append-only", path("file")) == (1, f"{message}; the file is left as it is\n")
                assert check("file")[0] == 1 and f"{message}\n" in check("file")[1]
                assert read_file("file") == changed


@in_a_directory
def test_one_process_has_a_file():
    with append_only():
        status, text = run_rejected("--append-only", path("file"))
        assert status == 1 and "locked by another process" in text, text


# ---- Snapshots and rewrites while clients write ----


def tell_story(server, story, begin, stop):
    """Writes until it is stopped or the server exits; returns the number of acknowledged changes."""
    client = server.client()
    done = begin
    try:
        while not stop.is_set():
            client.send(b"".join(story.change(i) for i in range(done, done + 50)))
            for _ in range(50):
                assert not isinstance(client.read(), Error)
                done += 1
    except (EOFError, OSError):
        pass
    return done


class Telling(threading.Thread):
    def __init__(self, server, story, begin=0):
        super().__init__()
        self.arguments, self.stop, self.done = (server, story, begin, threading.Event()), threading.Event(), begin

    def run(self):
        server, story, begin, _ = self.arguments
        self.done = tell_story(server, story, begin, self.stop)

    def end(self):
        self.stop.set()
        self.join()
        return self.done


@in_a_directory
def test_a_snapshot_is_of_one_moment():
    story = Story(random.randrange(1 << 30))
    with Server("--snapshot", path("snapshot")) as server:
        client = server.client()
        # keys that do not change, so that a snapshot takes a while
        for i in range(0, 60000, 1000):
            client.send(encoded("MSET", *[word for j in range(i, i + 1000) for word in (f"other:{j}", "x" * 50)]))
            assert client.read() == "OK"
        client.call("SET", "ends", 1, "EX", 1000)
        telling = Telling(server, story)
        telling.start()
        for i in range(8):
            assert client.call("SAVE") == "OK"
            shutil.copy(path("snapshot"), path(f"copy{i}"))
        done = telling.end()
        assert server.info(client)["rdb_last_bgsave_status"] == "ok"
    assert not os.path.exists(path("snapshot.new"))
    last = 0
    for i in range(8):
        with Server("--snapshot", path(f"copy{i}")) as server:
            client = server.client()
            state = contents(client)
            if state.get(b"ends") is not None:
                assert 0 < client.call("TTL", "ends") <= 1000
                assert sum(key.startswith(b"other:") for key in state) == 60000
            story_keys = {key: value for key, value in state.items() if not key.startswith((b"other:", b"ends"))}
            last = story.is_at(story_keys, last, done)


@in_a_directory
def test_a_snapshot_has_nothing_that_was_flushed_before():
    with Server("--snapshot", path("snapshot")) as server:
        client = server.client()
        for i in range(0, 60000, 1000):
            client.call("MSET", *[word for j in range(i, i + 1000) for word in (f"old:{j}", "x")])
        client.send(encoded("FLUSHALL") + encoded("SET", "new", 1) + encoded("SAVE"))
        assert [client.read() for _ in range(3)] == ["OK"] * 3
        client.send(encoded("SHUTDOWN", "NOSAVE"))
        assert server.wait() == 0
    with Server("--snapshot", path("snapshot")) as server:
        assert contents(server.client()) == {b"new": b"1"}


@in_a_directory
def test_the_file_is_written_anew_while_others_write():
    story = Story(random.randrange(1 << 30))
    done = 0
    for round_ in range(3):
        with append_only(says=True) as server:
            client = server.client()
            done = story.is_at(contents(client), done, done + 50)
            telling = Telling(server, story, done)
            telling.start()
            for _ in range(4):
                client.call("BGREWRITEAOF")
                while server.info(client)["aof_rewrite_in_progress"] == "1":
                    pass
            server.end(signal.SIGKILL)
            server.process.returncode = 0
            telling.join()
            done = telling.done
    with append_only(says=True) as server:
        client = server.client()
        state = contents(client)
        done = story.is_at(state, done, done + 50)
        # (the size may be the same if there was no change after the last rewrite)
        old = os.stat(path("file")).st_ino
        client.call("BGREWRITEAOF")
        while server.info(client)["aof_rewrite_in_progress"] == "1" or os.stat(path("file")).st_ino == old:
            pass
        assert contents(client) == state
    with append_only() as server:
        assert contents(server.client()) == state
    assert not os.path.exists(path("file.new"))


@in_a_directory
def test_the_snapshot_is_where_a_new_file_begins():
    with Server("--snapshot", path("snapshot")) as server:
        server.client().call("MSET", "a", 1, "b", 2)
    with Server("--snapshot", path("snapshot"), "--append-only", path("file"), "--fsync", "always") as server:
        client = server.client()
        assert contents(client) == {b"a": b"1", b"b": b"2"}
        client.call("DEL", "a")
        server.end(signal.SIGKILL)
        server.process.returncode = 0
    # the append-only file is newer
    with Server("--snapshot", path("snapshot"), "--append-only", path("file")) as server:
        assert contents(server.client()) == {b"b": b"2"}


@in_a_directory
def test_when_snapshots_are_written():
    snapshot = path("snapshot")
    with Server("--snapshot", snapshot) as server:
        client = server.client()
        client.call("SET", "a", 1)
        client.send(encoded("SHUTDOWN", "NOSAVE"))
        assert server.wait() == 0
    assert not os.path.exists(snapshot)
    with Server("--snapshot", snapshot, "--save-every", 1) as server:
        client = server.client()
        client.call("SET", "a", 2)
        while not os.path.exists(snapshot):
            pass
        client.call("SET", "a", 3)
        while client.call("BGSAVE") != "Background saving started":
            pass
        while server.info(client)["rdb_changes_since_last_save"] != "0":
            pass
        server.end(signal.SIGKILL)
        server.process.returncode = 0
    with Server("--snapshot", snapshot) as server:
        client = server.client()
        assert client.call("GET", "a") == b"3"
        client.call("SET", "a", 4)
    with Server("--snapshot", snapshot) as server:
        assert server.client().call("GET", "a") == b"4"
    data = read_file("snapshot")
    for cut in (1, 40, 48, 60):  # the last two end behind a group: only the mark is missing, or it and some of the group
        write_file("snapshot", data[:-cut])
        status, text = run_rejected("--snapshot", snapshot)
        assert status == 1 and re.search(f"damaged at byte [0-9]+ of {len(data) - cut};", text), text
        assert read_file("snapshot") == data[:-cut]


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def give_room(server):
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))


REFUSED = Error("MISCONF Errors writing to the AOF file: File too large")


@in_a_directory
def test_without_room_changes_are_refused_and_reads_served():
    for fsync in ("always", "everysec", "no"):
        name = f"file-{fsync}"
        with append_only(fsync, name, says=True, first=limit_files) as server:
            client, other = server.client(), server.client()
            done = 0
            while (reply := client.call("SET", done, "x" * 1000)) == "OK":
                done += 1
            assert reply == REFUSED and done > 50, (reply, done)
            assert contents(other).items() >= {b"%d" % i: b"x" * 1000 for i in range(done)}.items()
            for words in (("SET", "a", "b"), ("MSET", "a", "b"), ("DEL", "1"), ("EXPIRE", "1", 10), ("FLUSHALL",), ("INCR", "n")):
                assert other.call(*words) == REFUSED, words
            client.send(encoded("GET", 1) + encoded("SET", 1, "y") + encoded("PING") + encoded("GET", 1))
            assert [client.read() for _ in range(4)] == [b"x" * 1000, REFUSED, "PONG", b"x" * 1000]
            assert server.info(client)["aof_last_write_status"] == "err"
            give_room(server)
            until(lambda: other.call("SET", "again", "1") == "OK")
            assert server.info(client)["aof_last_write_status"] == "ok"
            assert client.call("APPEND", "again", "2") == 2
            kill(server)
            assert server.said() == (f"kv: {path(name)}: File too large; changes are refused\n"
                                     f"kv: {path(name)}: changes are accepted again\n")
        with append_only(fsync, name) as server:
            state = contents(server.client())
            assert state.items() >= {b"%d" % i: b"x" * 1000 for i in range(done)}.items()
            assert state[b"again"] == b"12"


@in_a_directory
def test_replies_of_a_group_without_room_are_errors():
    """Reads in the same pipeline are answered; changes that came before the group was written are refused too."""
    with append_only("everysec", says=True, first=limit_files) as server:
        client = server.client()
        client.call("MSET", "a", "1", "room", "x" * 95000)
        with held(server.process): # so that it arrives as a whole
            client.send(encoded("GET", "a") + encoded("SET", "b", "y" * 6000) + encoded("GET", "a") + encoded("STRLEN", "b") +
                        encoded("SET", "c", "2", "NX") + encoded("DEL", "none") + encoded("PING"))
        assert [client.read() for _ in range(7)] == [b"1", REFUSED, b"1", 6000, REFUSED, 0, "PONG"]
        give_room(server)
        until(lambda: client.call("SET", "d", "3") == "OK")
    with append_only() as server: # the group was kept, and is in the file in its place
        state = contents(server.client())
        assert len(state.pop(b"room")) == 95000
        assert state == {b"a": b"1", b"b": b"y" * 6000, b"c": b"2", b"d": b"3"}


@in_a_directory
def test_without_room_no_waiting_client_is_served():
    """Those that one turn has not served wait until there is room, and get their elements."""
    with append_only("everysec", says=True) as server:
        client, other, left = server.client(), server.client(), 0
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        keys = [f"k{i}" for i in range(8192)]
        while left == 0: # (once the journal is full, some usually wait still)
            waiting = [server.client() for _ in range(32)]
            for number, each in enumerate(waiting):
                each.send(encoded("BLPOP", *keys, "l", 0))
                until(lambda: int(server.info(other)["blocked_clients"]) == number + 1)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, hard))
            assert client.call("RPUSH", "l", *range(32)) == REFUSED
            left = int(server.info(other)["blocked_clients"])
            for _ in range(100):
                assert other.call("PING") == "PONG"
            assert int(server.info(other)["blocked_clients"]) == left == other.call("LLEN", "l")
            give_room(server)
            replies = [each.read() for each in waiting]
            # (elements that were taken before it was full are in the file as taken, and their replies may be errors)
            assert replies[32 - left:] == [[b"l", b"%d" % i] for i in range(32 - left, 32)], (left, replies)
            assert all(reply in (REFUSED, [b"l", b"%d" % i]) for i, reply in enumerate(replies)), (left, replies)
            for each in waiting:
                each.close()
            until(lambda: client.call("SET", "a", "1") == "OK") # (before that, BLPOP is refused)
    with append_only() as server:
        assert contents(server.client()) == {b"a": b"1"}


@in_a_directory
def test_a_rewrite_makes_room():
    with append_only("everysec", says=True, first=limit_files) as server:
        client = server.client()
        client.call("SET", "a", "")
        while client.call("APPEND", "n", "x" * 40) != REFUSED:
            assert client.call("SET", "a", "x" * 5000) in ("OK", REFUSED)
        size = client.call("STRLEN", "n")
        assert client.call("BGREWRITEAOF") == "Background append only file rewriting started"
        until(lambda: client.call("SET", "b", "1") == "OK")
        assert client.call("STRLEN", "n") == size
    with append_only() as server: # the part that had no room is not appended twice
        assert server.client().call("STRLEN", "n") == size


@in_a_directory
def test_a_stop_without_room_is_reported():
    with append_only("everysec", says=True, first=limit_files) as server:
        client = server.client()
        assert client.call("SET", "a", "x" * 50000) == "OK"
        assert client.call("SET", "b", "x" * 100000) == REFUSED
        assert server.end() == 1
        assert server.said() == (f"kv: {path('file')}: File too large; changes are refused\n"
                                 f"kv: {path('file')}: File too large; the server has stopped\n"), server.said()
        server.process.returncode = 0
    with append_only() as server:
        assert contents(server.client()) == {b"a": b"x" * 50000}


@in_a_directory
def test_a_snapshot_that_cannot_be_written():
    with Server("--snapshot", path("none/snapshot"), says=True) as server:
        client = server.client()
        client.call("SET", "a", 1)
        assert client.call("SAVE") == Error(f"ERR {path('none/snapshot')}: No such file or directory")
        assert server.info(client)["rdb_last_bgsave_status"] == "err"
        assert client.call("GET", "a") == b"1"
        client.send(encoded("SHUTDOWN", "NOSAVE"))
        assert server.wait() == 0
        assert re.fullmatch(r"kv: .*/none/snapshot: No such file or directory\n", server.said())


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
