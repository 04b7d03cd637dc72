"""Tests the server while system calls or allocations fail: kv_failures_test.py PROGRAM [NAME...].

Changes acknowledged with `always` are in the file; a server that exits reports why, and none crashes.
"""
import os
import re
import select
import shutil
import subprocess
import tempfile
import threading

from client import Error, Server, encoded, rounds_of, run, until

DIRECTORY = None
# (leaks are not looked for in a process that is traced)
TRACED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def path(name):
    return os.path.join(DIRECTORY, name)


def is_refused(reply):
    return isinstance(reply, Error) and reply.startswith(("OOM", "MISCONF"))


def note_elements(client, name, number, acknowledged):
    """The same in a list, in a hash, and in a transaction, whose other changes are made even if one has no memory."""
    reply = client.call("RPUSH", "list:" + name, number, number)
    assert is_refused(reply) or reply % 2 == 0, reply
    if not is_refused(reply):
        acknowledged["list:" + name] = reply
    reply = client.call("HSET", "hash:" + name, number, number, "last", number)
    assert is_refused(reply) or reply in (0, 1, 2), reply
    replies = [client.call("MULTI"), client.call("RPUSH", "both:" + name, number), client.call("HSET", "hash:" + name, "x", number),
               client.call("GETRANGE", name, 0, -1), client.call("EXEC")]
    assert replies[0] == "OK" and all(reply == "QUEUED" or is_refused(reply) for reply in replies[1:4]), replies
    if isinstance(replies[4], list):
        assert len(replies[4]) == 3 and all(isinstance(reply, (int, bytes)) or is_refused(reply) for reply in replies[4][:2]), replies
    else:
        assert is_refused(replies[4]) or replies[4].startswith("EXECABORT"), replies
    # without memory for a string, a list is still there
    key = "over:" + name
    client.call("DEL", key)
    pushed, reply = client.call("RPUSH", key, number), client.call("SET", key, "x" * 300)
    if pushed == 1 and isinstance(reply, Error) and reply.startswith("OOM"):
        assert client.call("LRANGE", key, 0, -1) == [b"%d" % number], reply


def write_and_note(server, name, acknowledged, enough, failures):
    """Writes increasing numbers under its name, and records the acknowledged ones; sometimes requests a rewrite of the file."""
    try:
        client = server.client()
        for number in range(enough):
            if number % 20 == 10 and name == "0":
                client.call("BGREWRITEAOF")
            note_elements(client, name, number, acknowledged)
            reply = client.call("SET", name, number)
            if reply == "OK":
                acknowledged[name] = number
            else:
                assert isinstance(reply, Error) and reply.startswith(("OOM", "MISCONF")), reply
    except (EOFError, OSError):
        pass
    except Exception as failure: # (for the thread that waits)
        failures.append(failure)


def look_again(acknowledged):
    """A server without failures finds everything that was acknowledged."""
    with Server("--append-only", path("file"), "--fsync", "always", says=True) as server:
        client = server.client()
        for name, number in acknowledged.items():
            if name.startswith("list:"):
                count = client.call("LLEN", name)
                assert count >= number and count % 2 == 0, (name, number, count, server.said())
                continue
            got = client.call("GET", name)
            assert got is not None and int(got) >= number, (name, number, got, server.said())


def live(before, environment, enough=60):
    """Runs a server with failures. Returns the acknowledged numbers, its exit status, and its stderr."""
    acknowledged, failures = {}, []
    server = Server("--append-only", path("file"), "--fsync", "always", before=before, environment=environment, says=True)
    if server.port is not None:
        threads = [threading.Thread(target=write_and_note, args=(server, str(i), acknowledged, enough, failures)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        shut_down(server)
    status = server.wait()
    if failures:
        raise failures[0]
    return acknowledged, status, server.said()


def shut_down(server):
    """Connects a client to a server that runs under another program, and retries while that fails."""
    while server.process.poll() is None:
        try:
            client = server.client()
            client.send(encoded("SHUTDOWN"))
            client.is_at_end()
            client.close()
        except OSError:
            pass


def with_directory(body):
    global DIRECTORY
    DIRECTORY = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    try:
        return body()
    finally:
        shutil.rmtree(DIRECTORY)


def one_life(before, environment):
    acknowledged, status, said = live(before, environment)
    assert status in (0, 1), (status, said)
    assert status == 0 or said.startswith("kv: "), said
    look_again(acknowledged)
    return acknowledged, status, said


# ---- Calls of the system ----

CALLS = ("openat", "pwrite64", "fdatasync", "fsync", "rename,renameat,renameat2", "mmap", "close", "unlink,unlinkat")


def may_trace():
    if shutil.which("strace") and subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"]).returncode == 0:
        return True
    print("# strace is missing, or may not trace here")
    return False


def test_calls_on_files_fail():
    if Server.io != "epoll" or not may_trace(): # io_uring operations are not system calls
        return
    ends = set()
    for calls in CALLS:
        for error in ("EIO", "ENOSPC", "ENOMEM"):
            for when in (1, 2, 3, 4, 5, 6, 8):
                # (loading the program must not fail)
                first = when + 12 if calls in ("openat", "mmap", "close") else when
                injection = f"inject={calls}:error={error}:when={first}"
                before = ("strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", injection)
                try:
                    _, status, said = with_directory(lambda: one_life(before, TRACED))
                except Exception:
                    print("#", injection)
                    raise
                ends.add((calls, status, re.sub("/.*/", "", said)))
    assert any(status == 1 and calls == "pwrite64" for calls, status, _ in ends), ends
    assert any(status == 1 and calls == "fdatasync" for calls, status, _ in ends), ends


def test_a_sync_that_the_stop_cancels_is_no_error():
    """Syncs take longer than a second: the one of each second begins while the server stops."""
    if Server.io != "epoll" or not may_trace():
        return
    slow = ("strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync",
            "-e", "inject=fsync,fdatasync:delay_enter=1200000")

    def stop_while_syncing():
        with Server("--append-only", path("file"), before=slow, environment=TRACED, says=True) as server:
            assert server.client().call("SET", "a", "1") == "OK"
            shut_down(server)
            assert (server.wait(), server.said()) == (0, "")

    with_directory(stop_while_syncing)


def test_evictions_wait_for_a_slow_file():
    """Their records are in groups of a megabyte or little more, since no more are made while the file is behind."""
    if Server.io != "epoll" or not may_trace():
        return
    count, name, most = 40000, "x" * 200, 2 << 20

    def evict_while_writing():
        slow = ("strace", "-f", "--seccomp-bpf", "-qq", "-o", path("trace"), "-e", "trace=pwrite64", "-e", "inject=pwrite64:delay_enter=200000")
        with Server("--append-only", path("file"), "--eviction", "allkeys-random", before=slow, environment=TRACED, says=True) as server:
            client = server.client()
            for at in range(0, count, 4000):
                assert client.call("MSET", *[word for i in range(at, at + 4000) for word in (f"{name}{i}", i)]) == "OK"
            assert client.call("CONFIG", "SET", "maxmemory", "2mb") == "OK"
            assert client.call("SET", "a", "x") == "OK"
            assert int(server.info(client)["evicted_keys"]) > count // 2
            shut_down(server)
            assert (server.wait(), server.said()) == (0, "")
        with open(path("trace"), encoding="utf-8", errors="replace") as file:
            sizes = [int(size) for size in re.findall(r"pwrite64\(.*\) = (\d+)", file.read())]
        assert sum(sizes) > 2 * most and max(sizes) < most, sizes

    with_directory(evict_while_writing)


# ---- Allocations, and calls on sockets ----


def test_each_call_fails():
    """One at a time; for the program linked with faults."""
    if not Server.program.endswith("_faults"):
        print("# for the program that is linked with faults")
        return
    for name, error in (("malloc", 12), ("calloc", 12), ("realloc", 12), ("aligned_alloc", 12), ("mmap", 12),
                        ("pthread_create", 11), ("epoll_create1", 24), ("eventfd", 24), ("socket", 24), ("accept4", 24),
                        ("epoll_ctl", 12), ("recv", 104), ("send", 104)):
        n, hits = 1, 1
        while hits != 0:
            def once():
                one_life((), {"FAULTS": f"{name}:{n}:{error}", "FAULTS_REPORT": path("report")})
                with open(path("report"), encoding="ascii") as file:
                    return int(file.read())
            try:
                hits = with_directory(once)
            except Exception:
                print("#", name, n)
                raise
            n += 1 if n < 20 else n // 10 # (later ones are similar)
            assert n < 10000, name



POPS = ( # adding an element, popping it, and a look at what is left
    (("RPUSH", "k"), ("LPOP", "k"), ("LRANGE", "k", 0, -1)),
    (("RPUSH", "k"), ("LMOVE", "k", "m", "LEFT", "LEFT"), ("LRANGE", "k", 0, -1)),
    (("RPUSH", "k"), ("BLPOP", "k", 0), ("LRANGE", "k", 0, -1)),
    (("SADD", "k"), ("SPOP", "k"), ("SMEMBERS", "k")),
    (("SADD", "k"), ("SPOP", "k", 1), ("SMEMBERS", "k")),
    (("ZADD", "k", 1), ("ZPOPMIN", "k"), ("ZRANGE", "k", 0, -1)),
    (("ZADD", "k", 1), ("ZMPOP", 1, "k", "MAX"), ("ZRANGE", "k", 0, -1)),
    (("ZADD", "k", 1), ("BZPOPMIN", "k", 0), ("ZRANGE", "k", 0, -1)),
    (("SET", "k"), ("GETDEL", "k"), ("MGET", "k")),
    (("SET", "k"), ("GETSET", "k", "new"), ("MGET", "k")),
)


def elements_of(reply):
    """Those of a reply, whatever its form: the values that were added."""
    if isinstance(reply, list):
        return [element for part in reply for element in elements_of(part)]
    return [reply] if isinstance(reply, bytes) and reply[:1] == b"x" else []


def read_unless_ended(client):
    """None if the server has ended the connection."""
    try:
        return client.read()
    except EOFError:
        return None


def pop_without_memory(add, pop, look, n, waits):
    """Pops while the n-th growth of a buffer fails. Returns the number of failures."""
    value = b"x" * 6000 # (which no buffer of a new client has room for)
    environment = {"FAULTS": f"realloc:{n}:12", "FAULTS_REPORT": path("report")}
    server = Server("--append-only", path(f"file{n}"), environment=environment, says=True)
    try:
        if server.port is not None:
            client, other = server.client(), server.client()
            if waits:
                client.send(encoded(*pop))
                until(lambda: int(server.info(other)["blocked_clients"]) == 1 or select.select([client.socket], [], [], 0)[0])
            added = other.call(*add, value)
            if not waits:
                client.send(encoded(*pop))
            if added in (1, "OK"): # (otherwise there is nothing to be popped)
                got, last = elements_of(read_unless_ended(client)), server.client()
                assert got + elements_of(last.call(*look)) == [value], (pop, waits, n, got)
                if pop[0] == "LMOVE": # (the other list has what has left this one)
                    look = ("LRANGE", pop[2], 0, -1)
                    # (it is looked at again, since this reply may be the one without memory)
                    moved = elements_of(last.call(*look)) or elements_of(server.client().call(*look))
                    assert moved == got, (pop, n, moved)
    except (EOFError, OSError): # another call has failed, for which the server ends, or ends a connection
        pass
    shut_down(server)
    assert server.wait() in (0, 1), (pop, n, server.said())
    with open(path("report"), encoding="ascii") as file:
        return int(file.read())


def test_a_popped_element_is_in_the_reply_or_in_the_key():
    """Also if the reply has no memory; for the program linked with faults."""
    if not Server.program.endswith("_faults"):
        print("# for the program that is linked with faults")
        return
    if Server.io != "epoll": # (replies are made the same on both)
        return
    for add, pop, look in POPS if rounds_of(16) > 1 else POPS[:1]:
        for waits in (False, True) if pop[0] in ("BLPOP", "BZPOPMIN") else (False,):
            n, hits = 1, 1
            while hits != 0:
                hits = with_directory(lambda: pop_without_memory(add, pop, look, n, waits))
                n += 1


def run_a_transaction_without_memory(n):
    """The n-th growth of a buffer fails. Returns the number of failures, and EXEC's reply."""
    environment, replies = {"FAULTS": f"realloc:{n}:12", "FAULTS_REPORT": path("report")}, []
    server = Server("--append-only", path(f"file{n}"), environment=environment, says=True)
    try:
        if server.port is not None:
            client = server.client()
            for words in (("MULTI",), ("PEXPIRE", "k", "1"), ("EXEC",), ("PING",)):
                replies.append(client.call(*words))
            assert replies[3] == "PONG", (n, replies) # (not QUEUED)
    except (EOFError, OSError): # the connection or the server has ended
        pass
    shut_down(server)
    assert server.wait() in (0, 1), (n, server.said())
    with open(path("report"), encoding="ascii") as file:
        return int(file.read()), replies[2] if len(replies) > 2 else None


def test_exec_ends_a_transaction_also_without_memory():
    """For the program linked with faults."""
    if not Server.program.endswith("_faults"):
        print("# for the program that is linked with faults")
        return
    if Server.io != "epoll":
        return
    n, hits, ends = 1, 1, []
    while hits != 0:
        hits, end = with_directory(lambda: run_a_transaction_without_memory(n))
        ends.append(end)
        n += 1
    assert Error("OOM out of memory") in ends, ends


def notify_without_memory(n):
    """The n-th allocation fails. Returns the number of failures, and how many messages a subscriber has had; None: it could not subscribe."""
    # (the comparison with the first pattern ends the turn, so there is a queue)
    slow, key = b"*" + b"a" * 2000 + b"b", b"a" * 4000
    environment, got = {"FAULTS": f"malloc:{n}:12", "FAULTS_REPORT": path("report")}, None
    server = Server("--notify", "KE$", "--confine", "off", environment=environment, says=True)
    try:
        if server.port is not None:
            client, subscriber = server.client(), server.client()
            subscriber.send(encoded("PSUBSCRIBE", "__key*", slow))
            wanted = []
            for name in (key, b"b", b"c"):
                wanted += [[b"__keyspace@0__:" + name, b"set"], [b"__keyevent@0__:set", name]]
            if [subscriber.read()[2] for _ in range(2)] == [1, 2] and client.call("MSET", key, 1, "b", 1, "c", 1) == "OK":
                got = []
                while (message := read_unless_ended(subscriber)) is not None:
                    got.append(message[-2:])
                    assert got == wanted[:len(got)], (n, got)
                    if len(got) == len(wanted):
                        break
    except (EOFError, OSError, TypeError): # the connection or the server has ended, or the subscription has failed
        pass
    shut_down(server)
    assert server.wait() in (0, 1), (n, server.said())
    with open(path("report"), encoding="ascii") as file:
        return int(file.read()), None if got is None else len(got)


def test_no_notification_is_missed_without_memory():
    """The subscriber is disconnected instead; for the program linked with faults."""
    if not Server.program.endswith("_faults"):
        print("# for the program that is linked with faults")
        return
    if Server.io != "epoll":
        return
    n, hits, counts = 1, 1, []
    while hits != 0:
        hits, count = with_directory(lambda: notify_without_memory(n))
        counts.append(count)
        n += 1
    assert counts[-1] == 6 and any(count is not None and count < 6 for count in counts), counts


def test_allocations_fail():
    if not shutil.which("fiu-run") or subprocess.run(["fiu-run", "-x", "true"], capture_output=True).returncode != 0:
        print("# fiu-run is missing (fiu-utils, libfiu-dev), or does not run here")
        return
    served = 0
    for turn in range(40):
        probability = (0.0005, 0.002, 0.01, 0.05)[turn % 4]
        before = ["fiu-run", "-x"]
        for name in ("malloc", "calloc", "realloc"):
            before += ["-c", f"enable_random name=libc/mm/{name},probability={probability}"]
        acknowledged, _, _ = with_directory(lambda: one_life(before, {}))
        served += len(acknowledged) > 0
    assert served > 4, served


if __name__ == "__main__":
    run([value for name, value in list(globals().items()) if name.startswith("test_")])
