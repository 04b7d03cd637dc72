"""Tests the files of the key-value server: kv_files_test.py PROGRAM [NAME...]. Acknowledged changes are kept."""
import os
import random
import re
import resource
import shutil
import signal
import tempfile
import threading

from client import Error, Server, encoded, held, rounds_of, run_rejected, run

DIRECTORY = None


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
            "SET o 1 NX", "SET o 2 XX", "SET o 3 NX", "SET p 1 EX 100", "INCR p", "SET q 1 EX 100", "SET q 2"):
            client.call(*words.split())
        client.call("SET", b"\0\r\n", bytes(range(256)))
        before = contents(client)
        ends = {key: client.call("TTL", key) > 0 for key in before}
    with append_only() as server:
        client = server.client()
        assert contents(client) == before
        assert {key: client.call("TTL", key) > 0 for key in before} == ends
        assert sum(ends.values()) == 6, ends


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
    client = server.client()
    number = 0
    try:
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
        with append_only(says=True) as server:
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


@in_a_directory
def test_a_torn_tail_is_cut_off():
    with append_only() as server:
        client = server.client()
        client.call("SET", "a", "first")
        client.call("APPEND", "a", "+")
    whole = os.path.getsize(path("file"))
    with append_only() as server:
        server.client().call("MSET", "a", "second", "b", "\0" * 10)
    data = open(path("file"), "rb").read()
    tails = [data[:cut] for cut in range(whole, len(data))]
    tails += [data[:cut] + bytes(len(data) - cut) for cut in range(whole, len(data), 7)]
    for at in range(whole, len(data), 5):
        tails.append(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    for tail in random.sample(tails, min(rounds_of(len(tails)), len(tails))):
        with open(path("file"), "wb") as file:
            file.write(tail)
        with append_only(says=True) as server:
            assert contents(server.client()) == {b"a": b"first+"}
            torn = max(len(tail.rstrip(b"\0")) - whole, 0)
            assert f"removed the last {torn} bytes, which belong to incomplete changes" in server.said() if torn else server.said() == ""
        assert open(path("file"), "rb").read() == data[:whole]
    # records written behind a removed tail can be read again
    with append_only() as server:
        server.client().call("SET", "c", "third")
    with append_only() as server:
        assert contents(server.client()) == {b"a": b"first+", b"c": b"third"}


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
            assert data.endswith(b"\r\n")
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
def test_damage_in_the_middle_is_rejected():
    with append_only() as server:
        client = server.client()
        for i in range(3):
            client.call("SET", f"key{i}", "*2\r\n$5\r\nGROUP\r\n$16\r\n0123456789abcdef\r\n")
    data = open(path("file"), "rb").read()
    group = len(data) // 3
    for at in (0, 10, group - 3, group, 2 * group - 1):
        with open(path("file"), "wb") as file:
            file.write(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        good = at // group * group
        assert run_rejected("--append-only", path("file")) == (
            1, f"kv: {path('file')}: damaged at byte {good} of {len(data)}; everything before it is intact, so "
            f"'truncate -s {good} {path('file')}' would keep that part\n")


@in_a_directory
def test_one_process_has_a_file():
    with append_only():
        status, text = run_rejected("--append-only", path("file"))
        assert status == 1 and "locked by another process" in text, text


def test_a_full_disk_ends_it_and_acknowledges_nothing():
    for fsync in ("always", "everysec", "no"):
        with Server("--append-only", "/dev/full", "--fsync", fsync, says=True) as server:
            client = server.client()
            assert client.call("GET", "a") is None
            client.send(encoded("SET", "a", "b"))
            if fsync == "always":
                assert client.is_at_end()
            status = server.wait()
            assert status == 1
            assert server.said() == "kv: /dev/full: No space left on device; the server has stopped\n"
            server.process.returncode = 0


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
    with open(snapshot, "r+b") as file:
        file.truncate(os.path.getsize(snapshot) - 1)
    status, text = run_rejected("--snapshot", snapshot)
    assert status == 1 and "damaged at byte 0" in text, text


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))


@in_a_directory
def test_a_file_without_room_ends_the_server():
    story = Story(random.randrange(1 << 30))
    for fsync in ("always", "everysec"):
        name = f"file-{fsync}"
        with append_only(fsync, name, says=True, first=limit_files) as server:
            done = tell_story(server, story, 0, threading.Event())
            assert server.wait() == 1
            assert server.said() == f"kv: {path(name)}: File too large; the server has stopped\n", server.said()
            server.process.returncode = 0
        with append_only(fsync, name, says=True) as server:
            at = story.is_at(contents(server.client()), done if fsync == "always" else 0, done + 50)
            assert fsync != "always" or at >= done


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
