#!/usr/bin/env python3
"""bide-top shows the tasks of a program, restores the terminal, and trusts no server: top_test.py TOP SUBJECT"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from screen import Screen  # noqa: E402

top, subject = sys.argv[1:3]
directory = tempfile.mkdtemp(prefix="bide-top-test-")
os.environ["XDG_RUNTIME_DIR"] = directory
for name in ("BIDE_MONITOR", "NO_COLOR"):
    os.environ.pop(name, None)
tests = []


def test(function):
    tests.append(function)
    return function


def run(*arguments, **options):
    return subprocess.run([top, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                          check=False, **options)


class Subject:
    """A running program with a monitor at `path`."""

    count = 0

    def __init__(self, *arguments, path=None):
        Subject.count += 1
        self.path = path or os.path.join(directory, f"subject{Subject.count}")
        self.process = subprocess.Popen([subject, self.path, *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.end()


class Live:
    """bide-top on a screen."""

    def __init__(self, path, *arguments, **options):
        self.screen = Screen([top, "-d", "0.1", *arguments, path], **options)

    def __enter__(self):
        return self.screen

    def __exit__(self, *error):
        self.screen.close()


class Server:
    """A server that is not a monitor: sends the given answers to each client, and then nothing."""

    def __init__(self, *answers):
        Subject.count += 1
        self.path = os.path.join(directory, f"server{Subject.count}")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(8)
        self.answers = answers
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        peer, _ = self.socket.accept()
        with peer:
            for i, text in enumerate(self.answers):
                if i != 0 and not peer.recv(4096):
                    return
                try:
                    peer.sendall(text)
                except OSError:
                    return
            try:
                while peer.recv(4096):
                    pass
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()


def hello(version=1, program="p"):
    return (json.dumps({"is": "hello", "protocol": "bide-monitor", "version": version, "pid": 1, "program": program,
                        "library": "9.9"}) + "\n").encode()


# ---- For scripts ----


@test
def it_says_how_it_is_used():
    assert "Usage: bide-top" in run("--help").stdout
    for wrong in (["--nothing"], ["--tasks", "x"], ["--tasks", "1001"], ["-d", "0"], ["-d", "nan"], ["one", "two"]):
        done = run(*wrong)
        assert done.returncode == 2, wrong
        assert re.search("one program at a time|is out of range|unrecognized option", done.stderr), (wrong, done.stderr)


@test
def programs_are_listed_and_found_by_their_number():
    assert "No program" in run().stdout
    assert json.loads(run("--json").stdout) == []
    with Subject(0, 1, path="-") as program:
        pid = program.process.pid
        lines = run().stdout.splitlines()
        assert len(lines) == 2 and lines[1].split()[0] == str(pid) and lines[1].endswith("top_subject"), lines
        listed = json.loads(run("--json").stdout)
        assert [entry["pid"] for entry in listed] == [pid], listed
        assert "waiter_body" in run("--once", str(pid)).stdout
        program.process.kill()
        program.process.wait()
        left = os.path.join(directory, "bide", str(pid))
        assert os.path.exists(left)
        assert "No program" in run().stdout
        assert not os.path.exists(left)
    found = run("--once", str(pid))
    assert found.returncode == 1 and "has no monitor" in found.stderr


def quiet_look(program):
    """Returns a look at which nothing runs: a coroutine that sleeps may run at any look, and one that has started may not
    wait yet."""
    while True:
        look = json.loads(run("--once", "--json", "--tasks", "1000", program.path).stdout)
        if look["look"]["running"] == 0:
            return look


@test
def one_look_as_text_and_as_json():
    with Subject(3, 20) as program:
        look = quiet_look(program)
        text = run("--once", program.path).stdout
        assert "\033" not in text
        assert "Tasks 26: " in text and "main" in text and "workers" in text, text
        assert any(line.split()[:2] == ["20", "waiting"] and "inner_body" in line and "bide_event_wait" in line
                   for line in text.splitlines()), text
        assert look["program"]["pid"] == program.process.pid
        assert look["look"]["tasks"] == 26
        groups = {group["name"]: group for group in look["groups"]}
        assert groups["waiter_body"]["tasks"] == 20 and groups["waiter_body"]["at"] == "inner_body"
        receiving = [task for task in look["tasks"] if task["name"] == "connection_body"]
        assert len(receiving) == 3 and all(task["peer"].startswith("127.0.0.1:") for task in receiving), receiving
        chain = [frame["name"] for frame in look["frames"]
                 if frame["task"] == next(t["task"] for t in look["tasks"] if t["name"] == "waiter_body")]
        assert chain == ["inner_body", "waiter_body"], chain
        assert look["loops"][0]["name"] == "main" and look["loops"][0]["in_flight"] >= 4, look["loops"]
        assert look["pools"][0]["workers"] == 2 and len(look["workers"]) == 2
        some = json.loads(run("--json", "--group", groups["waiter_body"]["group"], program.path).stdout)
        assert len(some["tasks"]) == 20 and all(task["name"] == "waiter_body" for task in some["tasks"])


@test
def a_crowd_is_a_line():
    with Subject(0, 100000) as program:
        text = run("--json", program.path).stdout
        look = json.loads(text)
        assert look["groups"][0]["tasks"] == 100000 and len(text) < 8192


@test
def what_is_not_there_is_told():
    found = run("--once", os.path.join(directory, "nothing"))
    assert found.returncode == 1 and "No such file" in found.stderr, found
    assert run(os.path.join(directory, "nothing"), stdin=subprocess.DEVNULL).returncode == 1  # no terminal


# ---- The screen ----


@test
def the_screen_shows_the_groups_and_what_is_chosen():
    with Subject(2, 30) as program, Live(program.path, columns=110) as screen:
        screen.wait_for(r"bide-top  top_subject  pid %d" % program.process.pid, r"Tasks 35: ", r"main .*asleep",
                        r" 30 waiting .*waiter_body +subject.c:\d+ inner_body +bide_event_wait", "q quit")
        assert screen.is_other and not screen.has_cursor
        screen.type("\r")
        screen.wait_for(r"#0 inner_body at .*subject.c:\d+", r"#1 waiter_body at .*subject.c:\d+")
        screen.type("\x1b[C")
        screen.type(" ")
        screen.type("\x1b[B\r")
        screen.wait_for(r"on descriptor \d+, peer 127.0.0.1:\d+ in main")
        screen.type("\x1b/tick")
        screen.wait_for("filter: tick_", r"^(?![\s\S]*waiter_body)[\s\S]*ticker_body")
        screen.type("\x7f\x7f\x7f\x7fconn\r")
        screen.wait_for('only with "conn"', r"^(?![\s\S]*ticker_body)[\s\S]*connection_body")
        screen.type("\x1b")
        screen.wait_for("ticker_body")
        screen.type("s")
        screen.wait_for("sort: stands")
        screen.type("ssr")
        screen.wait_for("sort: place, reversed")
        screen.type("w")
        screen.wait_for("worker 1 .*workers-1")
        screen.type("l")
        screen.wait_for(r"^(?![\s\S]*LOOP, POOL)[\s\S]*ticker_body")
        screen.type("p")
        screen.wait_for("PAUSED")
        screen.type("p-")
        screen.wait_for(r"^(?![\s\S]*PAUSED)[\s\S]*every 250ms|every 500ms")
        screen.type("h")
        screen.wait_for("STANDS   how long", "any key: back")
        screen.type("xq")
        assert screen.wait() == 0
        assert screen.comes_back()


@test
def runs_wakes_and_busy_time_are_rates_between_two_looks():
    with Subject(1, 30) as program, Live(program.path) as screen:
        screen.wait_for(r"TASKS STATE   STANDS  BUSY RUNS/s TASK", r" 1 waiting +\S+ +[\d.]+% +[1-9]\S* +ticker_body",
                        r" 30 waiting +\S+ +0\.0% +0 +waiter_body")
        for key, word in ("W", "wakes"), ("B", "busy"), ("R", "runs"):
            screen.type(key)
            screen.wait_for(f"sort: {word}", r"TASKS STATE .*\n +1 waiting .*ticker_body")
        screen.type("\x1b[H\r")
        screen.wait_for(r"busy [\d.]+%, [1-9]\S* runs/s, [1-9]\S* wakes/s")
        screen.type("\rr")
        screen.wait_for("sort: runs, reversed", r"ticker_body.*\n\n")
        screen.type("q")
        assert screen.wait() == 0
    with Subject(1, 5) as program, Live(program.path, "--no-turns") as screen:
        screen.wait_for(r"TASKS STATE   STANDS TASK", "ticker_body")
        assert "BUSY" not in screen.text()
        screen.type("q")
        assert screen.wait() == 0


@test
def narrow_terminals_have_fewer_columns():
    with Subject(1, 30) as program, Live(program.path, columns=36) as screen:
        screen.wait_for(r"LOOP, POOL    STATE       FLIGHT", r"main          asleep",
                        r"TASKS  BUSY RUNS/s TASK", r" 1 +[\d.]+% +[1-9]\S* ticker_body",
                        r" 30  0\.0%      0 waiter_body")
        assert all(len(line) <= 36 for line in screen.text().splitlines())
        screen.set_size(120, 24)
        screen.wait_for(r"TASKS STATE   STANDS  BUSY RUNS/s WAKE/s TASK", r"30 waiting .*waiter_body .*bide_event_wait")
        screen.type("q")
        assert screen.wait() == 0 and screen.comes_back()


@test
def it_fits_every_size():
    with Subject(2, 30) as program, Live(program.path) as screen:
        for columns, rows in (80, 24), (200, 60), (40, 10), (25, 6), (10, 3), (1, 1), (80, 24):
            screen.set_size(columns, rows)
            if columns >= 25:
                screen.wait_for("bide-top", "q quit")
                assert screen.text().splitlines()[0].startswith("bide-top"), screen.text()
        screen.wait_for("waiter_body")
        screen.type("q")
        assert screen.wait() == 0 and screen.comes_back()


@test
def a_loop_that_is_held_up_is_seen():
    with Subject(1, 5, "busy") as program, Live(program.path) as screen:
        screen.wait_for(r"main .* busy \d", r"1 running .*program_body +subject.c:\d+")
        screen.type("q")
        assert screen.wait() == 0


@test
def colours_only_where_they_are_wanted():
    with Subject(0, 1) as program:
        for environment, wanted in ({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True):
            with Live(program.path, environment=environment) as screen:
                screen.wait_for("waiter_body")
                assert (b"\033[0;1;36m" in screen.raw) == wanted, environment
                screen.type("q")
                assert screen.wait() == 0


@test
def the_terminal_is_as_it_was_after_every_end():
    with Subject(0, 1) as program:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT):
            with Live(program.path) as screen:
                screen.wait_for("waiter_body")
                assert not screen.is_as_before()
                screen.signal(number)
                status = screen.wait()
                ended = os.WIFSIGNALED(status) and os.WTERMSIG(status) == number
                # a sanitizer exits in its own way
                assert ended or number in (signal.SIGSEGV, signal.SIGABRT) and status != 0, (number, status)
                assert screen.comes_back(), number


@test
def it_may_be_stopped_and_goes_on():
    with Subject(0, 1) as program:
        for stop in (lambda screen: screen.signal(signal.SIGTSTP)), (lambda screen: screen.type("\x1a")):
            with Live(program.path) as screen:
                screen.wait_for("waiter_body")
                stop(screen)
                assert os.WIFSTOPPED(screen.wait(os.WUNTRACED))
                assert screen.comes_back()
                screen.signal(signal.SIGCONT)
                screen.wait_for("waiter_body", "q quit")
                assert screen.is_other
                screen.type("q")
                assert screen.wait() == 0 and screen.comes_back()


@test
def a_program_that_ends_meanwhile_is_told_of():
    program = Subject(0, 3)
    with Live(program.path) as screen:
        screen.wait_for("waiter_body")
        program.end()
        screen.wait_for("the program has ended", "waiter_body")
        screen.type("\r")
        screen.type("q")
        assert screen.wait() == 0 and screen.comes_back()


@test
def a_terminal_that_is_gone_ends_it():
    with Subject(0, 1) as program, Live(program.path) as screen:
        screen.wait_for("waiter_body")
        os.close(screen.slave)
        os.close(screen.master)
        _, status = os.waitpid(screen.process, 0)
        assert status != 0


# ---- Hostile servers ----


@test
def what_a_server_says_moves_no_cursor():
    bad = "a\033]0;evil\007\033[2J\x9b31m\r\n\u202eb\u2066c\u2069\u061c\u200f\x85\u2028"
    group = {"is": "group", "group": "1", "tasks": 7, "name": bad, "at": bad, "file": bad, "line": 1, "context": bad,
             "state": bad, "waiting_for": bad, "longest_ms": 18446744073709551615, "runs": 18446744073709551615,
             "wakes": 18446744073709551615, "busy_ns": 18446744073709551615}
    loop = {"is": "loop", "loop": 1, "name": bad, "back_end": bad, "thread_name": bad, "state": bad, "thread": 1}
    look = {"is": "look", "tasks": 18446744073709551615, "since_ms": 1, "turns_us": 1, "unknown": "x" * 3000}
    records = [look, loop, group, {"is": "frame", "task": "1"}, {"is": "what is new"}, {"is": "end", "left_out": 0}]
    answer = "".join(json.dumps(record) + "\n" for record in records).encode()
    ok = b'{"is":"end"}\n'
    acted_upon = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
    with Server(hello(program=bad), ok, answer) as server, Live(server.path) as screen:
        screen.wait_for(r" 7 a\.\]0;ev", r"bide-top  a\.\]0;evil")  # (the screen fails at any unknown sequence)
        screen.type("q")
        assert screen.wait() == 0
    with Server(hello(program=bad), answer) as server:
        text = run("--once", server.path).stdout
        assert "evil" in text and not acted_upon.search(text), repr(text)
    with Server(hello(program=bad), answer) as server:
        text = run("--json", server.path).stdout
        assert json.loads(text)["groups"][0]["name"] == bad and not acted_upon.search(text), repr(text)


@test
def no_control_character_reaches_the_terminal_as_it_is():
    """C1, DEL and the marks of direction, not escaped by the server, and bytes that are no UTF-8."""
    bad = "a\x9b31m\x7f\x85\u061c\u200f\u202e\u2028\u2066b\u20ac"
    group = {"is": "group", "group": "1", "tasks": 7, "name": bad, "at": bad, "file": bad, "line": 1, "context": bad,
             "state": bad, "waiting_for": bad, "longest_ms": 1}
    records = [{"is": "look", "tasks": 1}, group, {"is": "frame", "task": "1"}, {"is": "end", "left_out": 0}]
    answer = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    greeting = json.loads(hello())
    greeting["program"] = bad
    greeting = (json.dumps(greeting, ensure_ascii=False) + "\n").encode()

    def is_clean(text):
        return not any(ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0 or
                       c in "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" for c in text)

    with Server(greeting, answer) as server:
        text = run("--once", server.path).stdout
        assert "a.31m......." in text and is_clean(text), repr(text)
    with Server(greeting, answer) as server:
        text = run("--json", server.path).stdout
        assert is_clean(text), repr(text)
        assert json.loads(text)["groups"][0]["name"] == bad and json.loads(text)["program"]["program"] == bad
    with Server(greeting, answer.replace(b"a\xc2\x9b", b"a\x9b\xff")) as server:
        text = run("--json", server.path).stdout
        assert json.loads(text)["groups"][0]["name"].startswith("a\ufffd\ufffd31m")
    problem = (json.dumps({"is": "error", "what": bad}, ensure_ascii=False) + "\n").encode()
    with Server(greeting, problem) as server:
        assert is_clean(run("--once", server.path).stderr)


@test
def a_server_that_is_none_is_told_of():
    cases = [
        (hello(version=2), "speaks version 2"),
        (b"SSH-2.0-OpenSSH\r\n", "no monitor of bide"),
        (b"{}\n", "no monitor of bide"),
        (b'{"is":"hello"}\n', "no monitor of bide"),
        (b"x" * 100000, "no monitor of bide"),
        (b'{"is":"hello"', "does not answer"),
        (b'{"is":"error","what":"there is \\u001b[2J no room"}\n', "it says: there is .[2J no room"),
    ]
    for greeting, expected in cases:
        with Server(greeting) as server:
            found = run("--once", server.path)
            assert found.returncode == 1 and expected in found.stderr, (greeting[:40], found)
    for answer in (b"nonsense\n", b'{"is":"look"', b'{"is":"look","tasks":-1}\n', b'{"is":["look"]}\n', b"\0\n",
                   b'{"is":"look","tasks":99999999999999999999}\n', b'{"is":"\\ud8"}\n', b'{"is":"\\x"}\n'):
        if answer.endswith(b"\n"):
            with Server(hello(), answer) as server:
                found = run("--json", server.path)
                assert found.returncode == 1 and "no monitor of bide" in found.stderr, (answer, found)


@test
def a_socket_of_another_user_is_not_believed():
    """Where root's process would have its monitor, somebody else listens."""
    try:
        os.seteuid(65534)
        os.seteuid(0)
    except PermissionError:
        return  # only root can be somebody else
    Subject.count += 1
    os.mkdir(place := os.path.join(directory, f"place{Subject.count}"))
    for name, trusted in ((str(os.getpid()), False), ("name", True)):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path := os.path.join(place, name))
            os.seteuid(65534)  # the kernel remembers who has listened
            try:
                listener.listen(8)
            finally:
                os.seteuid(0)
            thread = threading.Thread(target=greet, args=(listener,), daemon=True)
            thread.start()
            found = run("--once", path)
            assert found.returncode == 1 and ("another user's" in found.stderr) != trusted, (name, found)
            thread.join()


def greet(listener):
    peer, _ = listener.accept()
    with peer:
        try:
            peer.sendall(hello(version=2))
        except OSError:
            pass


# A process in the background of a shell, or under nohup, inherits these signals as ignored.
for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(ignored, signal.SIG_DFL)
failures = 0
print(f"1..{len(tests)}")
for number, function in enumerate(tests, 1):
    try:
        function()
        print(f"ok {number} - {function.__name__}", flush=True)
    except (AssertionError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        failures += 1
        print(f"not ok {number} - {function.__name__}")
        for line in (type(error).__name__ + ": " + str(error)).splitlines():
            print("#", line, flush=True)
shutil.rmtree(directory)
sys.exit(failures != 0)
