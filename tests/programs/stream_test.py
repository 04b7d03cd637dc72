#!/usr/bin/env python3
"""
Tests the program stream, by its command line: stream_test.py PROGRAM [TEST]...

A PROGRAM_faults, which is linked with tests/programs/faults.c, has the test of calls that fail.
"""

import os
import pty
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import threading

from programs import PATIENCE, Failure, check, equal, run, tests_of

PROGRAM = sys.argv[1]
SEED = int(os.environ.get("BIDE_SEED") or random.SystemRandom().getrandbits(48))
TAB = "a field before the data is not NAME=VALUE, or a tab of the data is not escaped"
ESCAPE = r"an escape is none of \\ \n \r \t \xHH"


class Folder:
    """A directory of a test's own, in memory if possible: logs sync. log(NAME) is the URL of a log in it."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="bide-stream-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def log(self, name, options="level=stored"):
        return f"file://{self.path}/{name}" + (f"?{options}" if options else "")


def call(*arguments, given=b"", **options):
    """Runs the program: its status, its output and what it says."""
    done = subprocess.run([PROGRAM, *arguments], input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE,
                          check=False, **options)
    return done.returncode, done.stdout, done.stderr.decode()


def fill(log, *lines, options=()):
    given = b"".join(line + b"\n" for line in lines)
    equal(call("copy", "--quiet", *options, "stdio:", log, given=given), (0, b"", ""))


def start(*arguments, **options):
    return subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **options)


def finish(process):
    """Waits for the end: its status, the rest of its output, and what it says."""
    try:
        out, said = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failure(f"it does not end; {process.communicate()}") from None
    return process.returncode, out, said.decode()


# ---- copy ----


def test_lines_become_messages_and_lines_again():
    with Folder() as it:
        equal(call("copy", "stdio:", it.log("a"), given=b"one\n\ntwo\n"), (0, b"", "stream: copied 3 messages\n"))
        equal(call("copy", it.log("a"), "stdio:"), (0, b"one\n\ntwo\n", "stream: copied 3 messages, up to position 0-3\n"))
        equal(call("copy", it.log("a"), it.log("b", "level=synced")), (0, b"", "stream: copied 3 messages, up to position 0-3\n"))
        equal(call("copy", "--quiet", it.log("b"), "stdio:"), (0, b"one\n\ntwo\n", ""))
        equal(call("copy", "stdio:", it.log("a"), given=b""), (0, b"", "stream: copied 0 messages\n"))


def test_lines_have_a_key_headers_and_escapes():
    rows = [
        (b"plain \xc3\xa4\xff", None),
        (b"key:k\tdata", None),
        (b"key:k\ta=1\tb=\tdata", None),
        (b"a=1\ta=2\tkey:not one", None),
        (b"key:\tno key", b"no key"),
        (b"\\x41\\n\\r\\t\\\\\\x00", b"A\\n\\r\\t\\\\\\x00"),
        (b"a\\x3Db\\x3a=c=:\td", b"a\\x3db\\x3a=c=:\td"),
        (b"\x01\x1b[0m\r\x7f", b"\\x01\\x1b[0m\\r\\x7f"),
        (b"key:\\x09\\n\t", b"key:\\t\\n\t"),
    ]
    given = b"".join(line + b"\n" for line, _ in rows)
    wanted = b"".join((written or line) + b"\n" for line, written in rows)
    with Folder() as it:
        equal(call("copy", "stdio:", "stdio:", given=given), (0, wanted, f"stream: copied {len(rows)} messages\n"))
        fill(it.log("a"), *(line for line, _ in rows))
        equal(call("copy", "--quiet", it.log("a"), it.log("b")), (0, b"", ""))
        equal(call("copy", "--quiet", it.log("b"), "stdio:"), (0, wanted, ""))


def test_wrong_lines_are_reported_and_those_before_them_are_copied():
    rows = [
        (b"a\tb\n", TAB),
        (b"a:b=c\td\n", TAB),
        (b"a=b\tkey:k\td\n", TAB),
        (b"=v\td\n", "a header's name has 1 to 255 bytes"),
        (b"n" * 256 + b"=v\td\n", "a header's name has 1 to 255 bytes"),
        (b"a\\\n", ESCAPE),
        (b"a\\x4\n", ESCAPE),
        (b"a\\xg0\n", ESCAPE),
        (b"a\\q\n", ESCAPE),
        (b"key:\\q\td\n", ESCAPE),
        (b"n=\\q\td\n", ESCAPE),
        (b"\\q=v\td\n", ESCAPE),
        (b"torn", "the last line does not end: it may be a part of one"),
    ]
    for line, why in rows:
        given = b"one\ntwo\n" + line + (b"behind\n" if line.endswith(b"\n") else b"")
        equal(call("copy", "stdio:", "stdio:", given=given),
              (1, b"one\ntwo\n", f"stream: stdio: line 3: {why}\nstream: copied 2 messages\n"))
    equal(call("copy", "stdio:", "stdio:", given=b"\\q\n"),
          (1, b"", f"stream: stdio: line 1: {ESCAPE}\n"))


def test_a_line_has_a_message_of_at_most_8_mib_or_the_size_of_the_url():
    large = "it is larger than `size`"
    fits = b"x" * (8 << 20) + b"\n"
    status, out, said = call("copy", "stdio:", "stdio:", given=b"a\n" + fits)
    check(status == 0 and out == b"a\n" + fits, said)
    equal(call("copy", "stdio:", "stdio:", given=b"a\nx" + fits),
          (1, b"a\n", f"stream: stdio: line 2: {large}\nstream: copied 1 message\n"))
    status, out, said = call("copy", "stdio:?size=8388609", "stdio:", given=b"a\nx" + fits)
    check(status == 0 and out == b"a\nx" + fits, said)
    equal(call("copy", "stdio:?size=2&window=1", "stdio:?window=3", given=b"ab\nb\nabc\nc\n"),
          (1, b"ab\nb\n", f"stream: stdio: line 3: {large}\nstream: copied 2 messages\n"))
    equal(call("copy", "stdio:", "stdio:?size=2", given=b"ab\n" + b"abc\n"),
          (1, b"", "stream: stdio:?size=2: a message is larger than the log's size\n"))


def test_any_message_is_the_same_after_a_copy():
    print(f"# seed {SEED}")
    drawn = random.Random(SEED)

    def escaped(size, extra=b""):
        return b"".join(b"\\x%02x" % c if c < 32 or c == 127 or c in b"\\" + extra else bytes([c]) for c in drawn.randbytes(size))

    lines = []
    for _ in range(300):
        line = b"key:" + escaped(drawn.randint(1, 20)) + b"\t" if drawn.random() < 0.5 else b""
        for _ in range(drawn.choice([0, 0, 1, 5])):
            line += escaped(drawn.randint(1, 9), b"=:") + b"=" + escaped(drawn.randint(0, 20)) + b"\t"
        lines.append(line + escaped(drawn.choice([0, 1, 30, 500])))
    named = {b"\\x0a": b"\\n", b"\\x0d": b"\\r", b"\\x09": b"\\t", b"\\x5c": b"\\\\"}
    wanted = b"".join(re.sub(rb"\\x(?:0a|0d|09|5c)", lambda found: named[found[0]], line) + b"\n" for line in lines)
    with Folder() as it:
        fill(it.log("a", "level=stored&segment=4096"), *lines)
        batch = str(drawn.randint(1, 400))
        equal(call("copy", "--quiet", "--batch", batch, it.log("a"), it.log("b", "level=stored&window=7")), (0, b"", ""))
        for command in ["copy", "--quiet", it.log("b"), "stdio:"], ["tail", "-n", "300", it.log("b")]:
            status, out, said = call(*command)
            equal((status, said), (0, ""))
            for found, line in zip(out.split(b"\n"), wanted.split(b"\n")):
                equal(found, line)
            equal(len(out), len(wanted))


def test_a_group_continues_where_it_was():
    with Folder() as it:
        fill(it.log("a"), b"1", b"2", b"3")
        equal(call("copy", "--quiet", "--group", "g", it.log("a"), "stdio:"), (0, b"1\n2\n3\n", ""))
        equal(call("copy", "--quiet", "--group", "g", it.log("a"), "stdio:"), (0, b"", ""))
        fill(it.log("a"), b"4")
        equal(call("lag", it.log("a"), "g"), (0, b"1\n", ""))
        equal(call("copy", "--quiet", "--group", "g", it.log("a"), "stdio:"), (0, b"4\n", ""))
        equal(call("lag", it.log("a"), "g"), (0, b"0\n", ""))
        equal(call("copy", "--quiet", "--group", "late", "--after", "0-2", it.log("a"), "stdio:"), (0, b"3\n4\n", ""))
        equal(call("copy", "--quiet", "--after", "0-3", it.log("a"), "stdio:"), (0, b"4\n", ""))
        equal(call("copy", "--quiet", "--after", "0-9", it.log("a"), "stdio:"), (0, b"", ""))
        equal(call("lag", it.log("a"), "h"), (1, b"", "stream: h: there is no such group\n"))


def test_a_copy_that_was_killed_is_continued():
    print(f"# seed {SEED}")
    drawn = random.Random(SEED)
    lines = [b"%d" % i for i in range(400)]
    with Folder() as it:
        fill(it.log("a"), *lines)
        copy = ["copy", "--quiet", "--group", "g", "--batch", "3", it.log("a"), "stdio:"]
        seen = []
        for _ in range(4):
            with start(*copy) as process:
                begin = [process.stdout.readline() for _ in range(drawn.randint(0, 90))]
                process.kill()
                out = (b"".join(begin) + process.stdout.read()).splitlines()
            first = len(set(seen))  # what was copied before, or the last batch of it again
            check(not out or (int(out[0]) in range(first - 3, first + 1) and out == lines[int(out[0]):][:len(out)]), first, out)
            seen += out
        status, out, said = call(*copy)
        equal((status, said), (0, ""))
        equal(sorted(set(seen + out.split()), key=int), lines)
        equal(call("lag", it.log("a"), "g"), (0, b"0\n", ""))


def test_what_was_not_written_is_not_acknowledged():
    with Folder() as it, open("/dev/full", "wb") as full:
        fill(it.log("a"), b"1", b"2")
        done = subprocess.run([PROGRAM, "copy", "--group", "g", it.log("a"), "stdio:"], stdout=full, stderr=subprocess.PIPE,
                              timeout=PATIENCE, check=False)
        equal((done.returncode, done.stderr),
              (1, b"stream: standard output: No space left on device\n"))
        equal(call("lag", it.log("a"), "g"), (0, b"2\n", ""))
        status, _, said = call("copy", "--group", "g", it.log("a"), it.log("b", "level=stored&size=0"))
        equal((status, "size=0" in said), (1, True), said)
        fill(it.log("c"), b"large enough")
        equal(call("copy", "--group", "g", it.log("c"), it.log("d", "level=stored&size=4")),
              (1, b"", f"stream: {it.log('d', 'level=stored&size=4')}: a message is larger than the log's size\n"))
        equal(call("lag", it.log("c"), "g"), (0, b"1\n", ""))


def closed(*numbers):
    """For preexec_fn: the program is started without these descriptors."""
    return lambda: [os.close(number) for number in numbers]


def test_closed_standard_streams_are_errors_and_no_files_of_logs():
    with Folder() as it:
        fill(it.log("a"), b"1", b"2")
        for stream, url in [(0, ["stdio:", it.log("a")]), (1, [it.log("a"), "stdio:"])]:
            name = ["standard input", "standard output"][stream]
            equal(call("copy", *url, preexec_fn=closed(stream)), (1, b"", f"stream: {name}: Bad file descriptor\n"))
        equal(call("count", it.log("a"), preexec_fn=closed(1)), (1, b"", "stream: standard output: Bad file descriptor\n"))
        equal(call("copy", "stdio:", it.log("a"), given=b"3\n", preexec_fn=closed(2)), (0, b"", ""))
        equal(call("copy", it.log("a"), it.log("b"), preexec_fn=closed(0, 1, 2)), (0, b"", ""))
        equal(call("tail", it.log("b")), (0, b"1\n2\n3\n", ""))
        equal(call("copy", it.log("none"), it.log("b"), preexec_fn=closed(2))[0], 1)
        with open(f"{it.path}/lines", "wb+") as file:
            file.write(b"4\n5\n")
            file.seek(2)
            done = subprocess.run([PROGRAM, "copy", "--quiet", "stdio:", it.log("b")], stdin=file, timeout=PATIENCE, check=False)
        equal(done.returncode, 0)
        equal(call("tail", "-n", "2", it.log("b")), (0, b"3\n5\n", ""))


def test_a_reader_that_has_gone_is_an_error():
    with Folder() as it:
        fill(it.log("a"), b"1")
        process = start("copy", "--quiet", "stdio:", "stdio:", stdin=subprocess.PIPE)
        process.stdout.close()
        process.stdout = None
        process.stdin.write(b"1\n")
        equal(finish(process), (1, None, "stream: standard output: Broken pipe\n"))


# ---- tail, count ----


def test_tail_prints_the_newest():
    with Folder() as it:
        fill(it.log("a"), *(b"%d" % i for i in range(1, 2001)))
        equal(call("tail", it.log("a")), (0, b"".join(b"%d\n" % i for i in range(1991, 2001)), ""))
        equal(call("tail", "-n", "2", it.log("a", "level=stored&window=3")), (0, b"1999\n2000\n", ""))
        equal(call("tail", "-n", "0", it.log("a")), (0, b"", ""))
        equal(call("tail", "-n", "5000", it.log("a"))[1].count(b"\n"), 2000)
        equal(call("tail", "-n", "1", "stdio:", given=b"a\nb\n"), (0, b"b\n", ""))


def test_count_reads_every_message():
    with Folder() as it:
        fill(it.log("a"), *(b"%d" % i for i in range(1500)))
        equal(call("count", it.log("a")), (0, b"1500\n", ""))
        equal(call("count", it.log("a", "level=stored&window=1")), (0, b"1500\n", ""))
        equal(call("count", "stdio:", given=b"a\nb\n"), (0, b"2\n", ""))
        equal(call("count", "ring:"), (0, b"0\n", ""))
        status, out, said = call("count", it.log("a", "level=majority"))
        equal((status, out, "the engine does not give this level" in said), (1, b"", True), said)
        fill(it.log("b", "level=stored&segment=4096"), *[b"x" * 4000] * 3, options=["--batch", "1"])
        with open(f"{it.path}/b/00000000000000000002.log", "r+b") as file:
            file.seek(64 + 40)  # the data of the second message
            file.write(b"?")
        equal(call("count", it.log("b", "")), (1, b"", f"stream: {it.log('b', '')}: the message at position 0-2 is damaged\n"))
        equal(call("copy", it.log("b", ""), "stdio:"),
              (1, b"x" * 4000 + b"\n", f"stream: {it.log('b', '')}: the message at position 0-2 is damaged\n"
               "stream: copied 1 message, up to position 0-1\n"))


def test_a_log_that_is_not_there_is_not_made():
    with Folder() as it:
        for command in ["count"], ["tail"], ["lag"], ["copy"]:
            rest = ["g"] if command == ["lag"] else ["stdio:"] if command == ["copy"] else []
            said = call(*command, it.log("a"), *rest)
            equal(said, (1, b"", f"stream: {it.log('a')}: there is no log\n"))
        os.mkdir(f"{it.path}/other")
        equal(call("count", it.log("other")), (1, b"", f"stream: {it.log('other')}: there is no log\n"))
        equal(os.listdir(it.path), ["other"])
        equal(os.listdir(f"{it.path}/other"), [])
        fill(it.log("with%20blank"), b"1")
        equal(call("count", it.log("with%20blank")), (0, b"1\n", ""))


def test_a_log_in_shared_memory_is_shared():
    name = f"bide-stream-test-{os.getpid()}"
    url = f"shm:///{name}"
    try:
        equal(call("count", url), (1, b"", f"stream: {url}: there is no log\n"))
        status, _, said = call("copy", "stdio:", f"{url}?window=4", given=b"1\n2\n3\n")
        if "no such engine" in said:
            return "for systems with the engine"
        equal((status, said), (0, "stream: copied 3 messages\n"))
        equal(call("copy", "--quiet", "--group", "g", url, "stdio:"), (0, b"1\n2\n3\n", ""))
        process = start("copy", "--quiet", "stdio:", url, stdin=subprocess.PIPE)
        lines = [b"%d" % i for i in range(4, 100)]
        process.stdin.write(b"".join(line + b"\n" for line in lines))
        process.stdin.close()
        process.stdin = None
        seen = []
        while len(seen) < len(lines):  # the window is small, so it waits for the group
            status, out, said = call("copy", "--quiet", "--group", "g", url, "stdio:")
            equal((status, said), (0, ""))
            seen += out.split()
        equal(seen, lines)
        equal(finish(process), (0, b"", ""))
        equal(call("lag", url, "g"), (0, b"0\n", ""))
        equal(call("tail", "-n", "1", url), (0, b"99\n", ""))
        equal(call("copy", url, f"{url}?window=4"),
              (2, b"", f"stream: both URLs are the same log: {url}\nTry 'stream --help'.\n"))
        os.unlink(f"/dev/shm/{name}")
        status, out, said = call("measure", "--count", "100", f"{url}?window=16")
        equal((status, said), (0, ""))
        check_measured(out, 100)
    finally:
        if os.path.exists(f"/dev/shm/{name}"):
            os.unlink(f"/dev/shm/{name}")
    return None


def test_tail_follows_a_log_that_others_write():
    name = f"bide-stream-follow-{os.getpid()}"
    url = f"shm:///{name}"
    try:
        status, _, said = call("copy", "--quiet", "stdio:", f"{url}?window=8", given=b"1\n2\n3\n")
        if "no such engine" in said:
            return "for systems with the engine"
        equal((status, said), (0, ""))
        follower = start("tail", "-f", "-n", "2", url)
        equal([follower.stdout.readline() for _ in range(2)], [b"2\n", b"3\n"])
        lines = [b"%d" % i for i in range(4, 1000)]  # more than the window: it holds nobody back for ever
        fill(url, *lines)
        equal([follower.stdout.readline().strip() for _ in lines], lines)
        check(follower.poll() is None, "it has ended")
        follower.send_signal(signal.SIGTERM)
        equal(finish(follower), (130, b"", "stream: interrupted: printed 998 messages\n"))

        follower = start("tail", "-f", "-n", "1", "--count", "3", url)
        equal(follower.stdout.readline(), b"999\n")
        fill(url, b"key:k\ta=1\tone", b"two", b"three")
        equal(finish(follower), (0, b"key:k\ta=1\tone\ntwo\n", ""))
        follower = start("tail", "-f", "-n", "0", "--count", "1", url)
        while follower.poll() is None:  # it prints nothing that was there when it was started
            fill(url, b"new")
        equal(finish(follower), (0, b"new\n", ""))
    finally:
        if os.path.exists(f"/dev/shm/{name}"):
            os.unlink(f"/dev/shm/{name}")
    return None


def test_tail_follows_until_its_count_or_a_signal():
    name = f"bide-stream-count-{os.getpid()}"
    url = f"shm:///{name}"
    try:
        status, _, said = call("copy", "--quiet", "stdio:", url, given=b"1\n2\n3\n")
        if "no such engine" in said:
            return "for systems with the engine"
        equal((status, said), (0, ""))
        equal(call("tail", "-f", "--count", "3", "-n", "3", url), (0, b"1\n2\n3\n", ""))
        equal(call("tail", "-f", "--count", "2", "-n", "3", url), (0, b"1\n2\n", ""))
        equal(call("tail", "-f", "--count", "1", f"{url}-none"), (1, b"", f"stream: {url}-none: there is no log\n"))
        process = start("tail", "-f", "-n", "2", url)
        equal([process.stdout.readline() for _ in range(2)], [b"2\n", b"3\n"])
        process.send_signal(signal.SIGINT)
        equal(finish(process), (130, b"", "stream: interrupted: printed 2 messages\n"))
    finally:
        if os.path.exists(f"/dev/shm/{name}"):
            os.unlink(f"/dev/shm/{name}")
    return None


def test_tail_misses_and_repeats_nothing_when_it_begins_to_follow():
    name = f"bide-stream-begin-{os.getpid()}"
    url = f"shm:///{name}"

    def feed(pipe):  # numbers, until the writer ends
        try:
            with pipe:
                for begin in range(0, sys.maxsize, 100):
                    pipe.write(b"".join(b"%d\n" % i for i in range(begin, begin + 100)))
        except BrokenPipeError:
            pass

    try:
        status, _, said = call("copy", "--quiet", "stdio:", f"{url}?window=4096", given=b"")
        if "no such engine" in said:
            return "for systems with the engine"
        equal((status, said), (0, ""))
        writer = start("copy", "--quiet", "--batch", "4", "stdio:", url, stdin=subprocess.PIPE)
        feeder = threading.Thread(target=feed, args=[writer.stdin])
        feeder.start()
        try:
            for _ in range(5):  # the writer publishes while the tail is read, which takes several batches
                status, out, said = call("tail", "-f", "-n", "100000", "--count", "12000", url)
                equal((status, said), (0, ""))
                numbers = [int(line) for line in out.split()]
                equal(len(numbers), 12000)
                wrong = [pair for pair in zip(numbers, numbers[1:]) if pair[1] != pair[0] + 1]
                equal(wrong, [])
            check(writer.poll() is None, "the writer has ended")
        finally:
            writer.kill()
            writer.wait(PATIENCE)
            feeder.join(PATIENCE)
            writer.stdout.close()
            writer.stderr.close()
    finally:
        if os.path.exists(f"/dev/shm/{name}"):
            os.unlink(f"/dev/shm/{name}")
    return None


def test_a_log_in_use_is_reported():
    with Folder() as it:
        fill(it.log("a"), b"1")
        process = start("copy", "stdio:", it.log("a"), stdin=subprocess.PIPE)
        process.stdin.write(b"it is open\n")
        while not any(b"it is open" in bytes_of(file) for file in os.scandir(f"{it.path}/a")):
            check(process.poll() is None, "it has ended")
        status, out, said = call("count", it.log("a"))
        equal((status, out), (1, b""))
        check(said.startswith("stream: file:"), said)
        equal(finish(process), (0, b"", "stream: copied 1 message\n"))


def bytes_of(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:  # it has another name meanwhile
        return b""


# ---- measure ----


def check_measured(out, count):
    words = [line.split(" ") for line in out.decode().splitlines()]
    equal([row[0] for row in words], ["messages", "rate", "p50", "p99", "p99.9"])
    equal(words[0][1], str(count))
    equal([row[2:] for row in words], [[], ["items/s"], ["us"], ["us"], ["us"]])
    check(0 <= float(words[2][1]) <= float(words[3][1]) <= float(words[4][1]), out)


def test_measure_sends_and_reads():
    with Folder() as it:
        for url, options, count in [("ring:", [], 10000), ("ring:name?window=16", ["--batch", "1000", "--size", "16"], 10000),
                                    (it.log("a"), ["--count", "200"], 200),
                                    (it.log("b", "level=stored&window=5"), ["--count", "203", "--batch", "10"], 203),
                                    (it.log("c"), ["--count", "1"], 1)]:
            status, out, said = call("measure", *options, url)
            equal((status, said), (0, ""))
            check_measured(out, count)
        equal(call("count", it.log("b")), (0, b"203\n", ""))
        url = it.log("b")
        equal(call("measure", url), (1, b"", f"stream: {url}: it has messages; measure takes a log without any\n"))
        equal(call("count", it.log("b")), (0, b"203\n", ""))
        url = it.log("d", "level=stored&size=99")
        equal(call("measure", url), (1, b"", f"stream: {url}: --size is larger than the log's size\n"))


# ---- Signals, and the terminal ----


def test_an_interruption_reports_what_was_copied():
    with Folder() as it:
        for number in signal.SIGINT, signal.SIGTERM:
            process = start("copy", "stdio:", "stdio:", stdin=subprocess.PIPE)
            process.stdin.write(b"1\n2\n")
            process.stdin.flush()
            equal([process.stdout.readline() for _ in range(2)], [b"1\n", b"2\n"])
            os.kill(process.pid, number)
            process.wait(PATIENCE)
            equal(finish(process), (130, b"", "stream: interrupted: copied 2 messages\n"))
        fill(it.log("a"), *[b"x" * 4000] * 200)
        process = start("copy", "--group", "g", "--batch", "100", it.log("a"), "stdio:")
        out = process.stdout.read(1)  # it writes more than the pipe takes
        process.send_signal(signal.SIGINT)
        status, rest, said = finish(process)
        # (it may have been at its end before it took the signal)
        found = re.fullmatch(r"stream: (interrupted: )?copied (\d+) messages, up to position 0-\2\n", said)
        copied = int(found[2])
        equal((status, len(out + rest)), (130 if found[1] else 0, 4001 * copied))
        check(copied >= 100 if found[1] else copied == 200, said)
        equal(call("lag", it.log("a"), "g"), (0, b"%d\n" % (200 - copied), ""))


def test_the_second_signal_cancels():
    with Folder() as it:
        fill(it.log("a"), *[b"x" * 4000] * 200)
        process = start("copy", "--group", "g", "--batch", "100", it.log("a"), "stdio:")
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        for _ in range(20 * PATIENCE):  # the first may not have been taken yet, and two at once are one
            process.send_signal(signal.SIGINT)
            try:
                process.wait(0.05)
                break
            except subprocess.TimeoutExpired:
                pass
        equal((process.returncode, process.stderr.read()), (130, b"stream: interrupted: copied 0 messages\n"))
        process.stdout.close()
        process.stderr.close()
        equal(call("lag", it.log("a"), "g"), (0, b"200\n", ""))


def test_measure_is_interrupted():
    # (so many large messages take minutes)
    process = start("measure", "--count", "10000000", "--size", "1048576", "ring:?window=2&size=1048576")
    while not catches(process.pid, signal.SIGINT):
        check(process.poll() is None, "it has ended")
    process.send_signal(signal.SIGINT)
    status, out, said = finish(process)
    count = int(re.fullmatch(r"stream: interrupted: measured (\d+) messages?\n", said)[1])
    equal(status, 130)
    if count != 0:
        check_measured(out, count)


def catches(pid, number):
    """Has the program a handler? (Before it is started, Python has.)"""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        status = file.read()
    caught = int(re.search(r"^SigCgt:\s*(\w+)", status, re.M)[1], 16)
    return status.startswith("Name:\tstream\n") and caught >> (number - 1) & 1


def said_on_terminal(*arguments, prints=False):
    """What the program writes to a terminal that is its standard error, and its output if it prints."""
    control, terminal = pty.openpty()
    process = subprocess.Popen([PROGRAM, *arguments], stderr=terminal, stdout=terminal if prints else subprocess.DEVNULL)
    os.close(terminal)
    said = b""
    try:
        while piece := os.read(control, 65536):
            said += piece
    except OSError:  # nobody has it open any more
        pass
    os.close(control)
    equal(process.wait(PATIENCE), 0)
    return said


def test_progress_is_drawn_on_a_terminal():
    with Folder() as it:
        fill(it.log("a"), b"1", b"2")
        drawn = rb"(\r\d+ messages, \d+\.\d MB, \d+/s\x1b\[K)+\r\x1b\[K"
        found = said_on_terminal("copy", it.log("a"), "stdio:")
        check(re.fullmatch(drawn + rb"stream: copied 2 messages, up to position 0-2\r\n", found), found)
        equal(said_on_terminal("copy", "--quiet", it.log("a"), "stdio:"), b"")
        equal(said_on_terminal("tail", it.log("a"), prints=True), b"1\r\n2\r\n")
        equal(said_on_terminal("copy", it.log("a"), "stdio:", prints=True),
              b"1\r\n2\r\nstream: copied 2 messages, up to position 0-2\r\n")
        found = said_on_terminal("count", it.log("a"), prints=True)
        check(re.fullmatch(drawn + rb"2\r\n", found), found)
        found = said_on_terminal("count", it.log("a"))
        check(re.fullmatch(drawn, found), found)


# ---- Calls that fail ----

# (The library wakes threads by writes to an eventfd, which cannot fail; /dev/full makes the program's own fail.)
FAILING = [("malloc", 12), ("calloc", 12), ("realloc", 12), ("aligned_alloc", 12), ("mmap", 12), ("pthread_create", 11),
           ("epoll_create1", 24), ("eventfd", 24), ("epoll_ctl", 12), ("fcntl", 9), ("read", 5), ("close", 5)]


def calls_that_fail(report):
    """The environment for each call of each function; what is done with it tells whether there was such a call."""
    for name, error in FAILING:
        for n in range(1, 500):
            yield f"{name}:{n}", dict(os.environ, FAULTS=f"{name}:{n}:{error}", FAULTS_REPORT=report)
            with open(report, encoding="ascii") as file:
                hits = int(file.read())
            os.remove(report)
            if hits == 0:
                break
        check(hits == 0, name)


def test_each_call_fails():
    if not PROGRAM.endswith("_faults"):
        return "for the program that is linked with faults"
    lines = [b"%d" % i for i in range(1, 6)]
    whole = b"".join(line + b"\n" for line in lines)
    with Folder() as it:
        report = f"{it.path}/report"
        fill(it.log("a"), *lines)
        for at, environment in calls_that_fail(report):
            shutil.copytree(f"{it.path}/a", f"{it.path}/from")
            copy = ["copy", "--quiet", "--group", "g", "--batch", "2", it.log("from"), it.log("to")]
            status, _, said = call(*copy, env=environment)
            check(status in (0, 1) and (status == 1) == (said != ""), at, status, said)
            copied = call("count", it.log("to"))[1]
            copied = int(copied) if copied else 0  # (the log may not have been made)
            has_group, lag, _ = call("lag", it.log("from"), "g")
            left = int(lag) if has_group == 0 else 5
            check(copied <= 5 and copied + left >= 5 and (status != 0 or (copied, left) == (5, 0)), at, status, copied, left)
            equal(call(*copy), (0, b"", ""), at)
            out = call("copy", "--quiet", it.log("to"), "stdio:")[1]
            equal(sorted(set(out.split())), lines, at)
            equal(call("lag", it.log("from"), "g"), (0, b"0\n", ""), at)
            shutil.rmtree(f"{it.path}/from")
            shutil.rmtree(f"{it.path}/to")
        for at, environment in calls_that_fail(report):
            status, out, said = call("copy", "--quiet", "--batch", "2", "stdio:", "stdio:", given=whole, env=environment)
            check(status in (0, 1) and (status == 1) == (said != "") and whole.startswith(out), at, status, out, said)
            check(status != 0 or out == whole, at, out)
        for at, environment in calls_that_fail(report):
            status, out, said = call("tail", "-n", "5", it.log("a"), env=environment)
            check(status in (0, 1) and (status == 1) == (said != "") and whole.startswith(out), at, status, out, said)
            check(status != 0 or out == whole, at, out)
        for at, environment in calls_that_fail(report):
            status, out, said = call("measure", "--count", "10", "ring:", env=environment)
            check(status in (0, 1) and (status == 1) == (said != ""), at, status, out, said)
            if status == 0:
                check_measured(out, 10)


# ---- The command line ----


def test_help_and_version():
    status, out, said = call("--help")
    equal((status, said), (0, ""))
    check(out.startswith(b"usage: stream copy"), out)
    equal(call("tail", "-n", "1", "--help"), (0, out, ""))
    status, out, said = call("--version")
    equal((status, said), (0, ""))
    check(re.fullmatch(rb"bide-stream \d+\.\d+\.\d+\n", out), out)
    with open("/dev/full", "wb") as full:
        equal(subprocess.run([PROGRAM, "--help"], stdout=full, timeout=PATIENCE, check=False).returncode, 1)
        done = subprocess.run([PROGRAM, "count", "ring:"], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        equal(done.returncode, 1)
        check(b"No space left on device" in done.stderr, done.stderr)


class Server:
    """A Redis server, until the end of the test; its `url`, or None if there is no such program."""

    def __enter__(self):
        self.url, self.process = None, None
        self.path = tempfile.mkdtemp(prefix="bide-stream-")
        while shutil.which("redis-server") and self.url is None:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            self.process = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""],
                                            cwd=self.path, stdout=subprocess.DEVNULL)
            while self.process.poll() is None:
                try:
                    with socket.create_connection(("127.0.0.1", port)):
                        self.url = f"redis://127.0.0.1:{port}"
                        break
                except OSError:
                    time.sleep(0.01)
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.path)


def test_a_stream_of_a_redis_server_is_copied():
    with Server() as server, Folder() as it:
        if server.url is None:
            return "redis-server is not installed"
        orders = f"{server.url}/orders"
        status, _, said = call("copy", "stdio:", orders, given=b"1\n2\n3\n")
        if "no such engine" in said:
            return "for systems with the engine"
        equal((status, said), (0, "stream: copied 3 messages\n"))
        equal(call("count", orders), (0, b"3\n", ""))
        equal(call("tail", "-n", "2", orders), (0, b"2\n3\n", ""))
        equal(call("copy", "--quiet", "--group", "g", orders, it.log("copy")), (0, b"", ""))
        equal(call("count", it.log("copy")), (0, b"3\n", ""))
        fill(orders, b"4")
        equal(call("lag", orders, "g"), (0, b"1\n", ""))
        equal(call("lag", orders, "none"), (1, b"", "stream: none: there is no such group\n"))
        equal(call("measure", "--count", "10", f"{server.url}/measured")[0], 0)
        private = orders.replace("redis://", "redis://ann:secret@")
        for arguments, expected in ((("count", private), 1), (("copy", private, orders), 2)):
            status, _, said = call(*arguments)
            equal(status, expected)
            check("secret" not in said, said)
    return None


def test_wrong_command_lines_are_rejected():
    hint = "Try 'stream --help'.\n"
    with Folder() as it:
        fill(it.log("a"), b"1")
        rows = [
            ([], f"stream: a command is expected\n{hint}"),
            (["move"], f"stream: unknown command move\n{hint}"),
            (["copy", "ring:"], f"stream: copy takes two URLs\n{hint}"),
            (["tail"], f"stream: tail takes a URL\n{hint}"),
            (["count"], f"stream: count takes a URL\n{hint}"),
            (["count", "ring:", "ring:"], f"stream: count takes a URL\n{hint}"),
            (["lag", "ring:"], f"stream: lag takes a URL and a group\n{hint}"),
            (["measure"], f"stream: measure takes a URL\n{hint}"),
            (["copy", "a", "b", "c"], f"stream: an argument too many: c\n{hint}"),
            (["copy", "--colour", "a", "b"], f"stream: unknown option --colour\n{hint}"),
            (["copy", "-n", "1", "a", "b"], f"stream: the command does not take -n\n{hint}"),
            (["count", "--group", "g", "a"], f"stream: the command does not take --group\n{hint}"),
            (["tail", "-n"], f"stream: an option without a value: -n\n{hint}"),
            (["tail", "-n", "1000001", "a"], "stream: -n takes a number from 0 to 1000000, not '1000001'\n"),
            *((["tail", "-f", url], f"stream: -f is for a log that other processes can have open, not {url}\n{hint}")
              for url in ("stdio:", "ring:x", it.log("a"))),
            (["tail", "--count", "1", "a"], f"stream: --count of tail is for -f\n{hint}"),
            (["copy", "-f", "a", "b"], f"stream: the command does not take -f\n{hint}"),
            (["copy", "--batch", "0", "a", "b"], "stream: --batch takes a number from 1 to 1000, not '0'\n"),
            (["copy", "--after", "12", "a", "b"], f"stream: --after takes a position, such as 0-12, not 12\n{hint}"),
            (["measure", "--count", "0", "a"], "stream: --count takes a number from 1 to 10000000, not '0'\n"),
            (["measure", "--size", "15", "a"], "stream: --size takes a number from 16 to 1048576, not '15'\n"),
            (["lag", "stdio:", "g"], f"stream: a log is expected, not stdio:\n{hint}"),
            (["measure", "stdio:"], f"stream: a log is expected, not stdio:\n{hint}"),
            (["copy", "--group", "g", "stdio:", "ring:"], f"stream: --group and --after are for a log, not stdio:\n{hint}"),
            (["copy", "--after", "0-1", "stdio:", "ring:"], f"stream: --group and --after are for a log, not stdio:\n{hint}"),
            (["copy", it.log("a"), it.log("%61", "")], f"stream: both URLs are the same log: {it.log('a')}\n{hint}"),
            (["copy", it.log("a"), it.log("./a", "")], f"stream: both URLs are the same log: {it.log('a')}\n{hint}"),
            (["copy", "ring:x", "ring:x?window=2"], f"stream: both URLs are the same log: ring:x\n{hint}"),
        ]
        for arguments, said in rows:
            equal(call(*arguments), (2, b"", said), arguments)
        equal(call("count", "none:x"), (1, b"", "stream: none:x: no such engine\n"))
        equal(call("count", "--", "-x"), (1, b"", "stream: -x: no such engine\n"))
        equal(call("count", "stdio:?window=1", given=b"a\nb\n"), (0, b"2\n", ""))
        equal(call("count", "stdio:x"), (1, b"", "stream: stdio: it has no name: x\n"))
        for level in "stored", "synced":
            equal(call("copy", "--quiet", "stdio:", f"stdio:?level={level}", given=b"a\n"),
                  (1, b"", f"stream: stdio:: the engine does not give this level: level={level}\n"))


if __name__ == "__main__":
    sys.exit(run([test for test in tests_of(globals()) if test.__name__.startswith("test_")], sys.argv[2:]))
