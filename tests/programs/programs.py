"""The common part of the harnesses of programs: checks, and the lines that a program prints.

PATIENCE bounds every wait, so that a failing test terminates.
"""

import contextlib
import os
import queue
import re
import signal
import sys
import threading
import traceback

PATIENCE = int(os.environ.get("PATIENCE", "60"))


class Failure(Exception):
    pass


def check(condition, *what):
    if not condition:
        raise Failure(" ".join(str(part) for part in what) or "a check has failed")


def equal(found, wanted, *what):
    check(found == wanted, *what, f"{found!r} is not {wanted!r}")


@contextlib.contextmanager
def held(process):
    """Stops the process meanwhile: everything sent to it arrives before its next step, however slow the sender is."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def without_notes(text):
    """Standard error without the line that says that this kernel cannot confine the program."""
    return re.sub(r"(?m)^\w+: not confined: .*\n", "", text)


class Lines:
    """The lines of a pipe, read by a thread."""

    def __init__(self, pipe):
        self.queue = queue.Queue()
        self.seen = []
        self.thread = threading.Thread(target=self.read, args=(pipe,), daemon=True)
        self.thread.start()

    def read(self, pipe):
        for line in pipe:
            if without_notes(line):
                self.queue.put(line.rstrip("\n"))
        self.queue.put(None)

    def next(self):
        try:
            line = self.queue.get(timeout=PATIENCE)
        except queue.Empty:
            raise Failure(f"no line came; so far: {self.seen}") from None
        if line is not None:
            self.seen.append(line)
        return line

    def expect(self, pattern):
        """The next line that matches; earlier lines are skipped."""
        while True:
            line = self.next()
            if line is None:
                raise Failure(f"no line has {pattern!r}: {self.seen}")
            found = re.search(pattern, line)
            if found:
                return found

    def rest(self):
        lines = []
        while (line := self.next()) is not None:
            lines.append(line)
        return lines


class Beside(threading.Thread):
    """Calls a function in a thread; `result` waits for its result, or raises its exception."""

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.function, self.arguments = function, arguments
        self.value = self.error = None
        self.start()

    def run(self):
        try:
            self.value = self.function(*self.arguments)
        except BaseException as error:  # raised again by `result`
            self.error = error

    def result(self):
        self.join(PATIENCE)
        check(not self.is_alive(), "it does not end:", self.function)
        if self.error is not None:
            raise self.error
        return self.value


def read_all(connection):
    data = bytearray()
    while piece := connection.recv(65536):
        data += piece
    return bytes(data)


def tests_of(names):
    """The functions of a test file without parameters, in order."""
    return [value for value in names.values() if getattr(value, "__module__", "") == "__main__" and hasattr(value, "__code__")
            and value.__code__.co_argcount == 0 and value.__code__.co_kwonlyargcount == 0]


def run(tests, chosen):
    """Runs the tests chosen by name, or all; prints TAP. A test may return a reason to be skipped."""
    tests = [test for test in tests if not chosen or test.__name__ in chosen]
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for number, test in enumerate(tests, 1):
        try:
            skipped = test()
            print(f"ok {number} {test.__name__}" + (f" # SKIP {skipped}" if skipped else ""), flush=True)
        except BaseException:
            failed += 1
            traceback.print_exc()
            print(f"not ok {number} {test.__name__}", flush=True)
    return 1 if failed else 0
