"""A pseudo-terminal for programs under test, with the control sequences that bide-top uses."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

PATIENCE = 60  # seconds until a wait fails


class Screen:
    """Runs a program on a terminal of a given size, and keeps the contents of its screen."""

    def __init__(self, arguments, columns=80, rows=24, environment=None):
        self.raw = b""
        self.pending = b""
        self.columns, self.rows = columns, rows
        self.is_other = False  # the alternate screen
        self.has_cursor = True
        self.clear()
        self.master, slave = pty.openpty()
        self.slave = slave
        self.set_size(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.process = os.fork()
        if self.process == 0:
            os.close(self.master)
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for i in range(3):
                os.dup2(slave, i)
            os.execve(arguments[0], arguments, {**os.environ, "TERM": "xterm", **(environment or {})})
        self.status = None

    def clear(self):
        self.lines = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0

    def set_size(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.clear()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)

    # ---- The program's output ----

    def sequence(self, text, final):
        if final == "H":
            self.row = self.column = 0
        elif final == "K":
            self.lines[self.row][self.column:] = [" "] * (self.columns - self.column)
        elif final == "J":
            if text == "2":
                self.clear()
            else:
                self.lines[self.row][self.column:] = [" "] * (self.columns - self.column)
                for row in range(self.row + 1, self.rows):
                    self.lines[row] = [" "] * self.columns
        elif text == "?1049":
            self.is_other = final == "h"
            self.clear()
        elif text == "?25":
            self.has_cursor = final == "h"
        elif final != "m":
            raise AssertionError(f"a sequence that is not ours: {text}{final}")

    def take(self, data):
        self.raw += data
        text = (self.pending + data).decode("utf-8", "surrogateescape")
        self.pending = b""
        at = 0
        while at < len(text):
            if text[at] == "\033":
                found = re.compile(r"\033\[([0-9;?]*)([@-~])").match(text, at)
                if not found:
                    if len(text) - at < 16:
                        self.pending = text[at:].encode("utf-8", "surrogateescape")
                        return
                    raise AssertionError("an escape that is not ours: " + repr(text[at : at + 20]))
                self.sequence(found[1], found[2])
                at = found.end()
                continue
            if text[at] == "\r":
                self.column = 0
            elif text[at] == "\n":
                self.row = min(self.row + 1, self.rows - 1)
            elif ord(text[at]) < 32:
                raise AssertionError("a control character: " + repr(text[at]))
            elif self.column < self.columns:
                self.lines[self.row][self.column] = text[at]
                self.column += 1
            at += 1

    def step(self, limit):
        """Reads output; False: there is no more."""
        ready, _, _ = select.select([self.master], [], [], max(0, limit - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        if data:
            self.take(data)
        return bool(data)

    def wait_for(self, *expected):
        """Waits until all patterns are on the screen. Otherwise raises an error with the screen's contents."""
        limit = time.monotonic() + PATIENCE
        while not all(re.search(pattern, self.text()) for pattern in expected):
            if not self.step(limit):
                raise AssertionError(f"no {expected} in:\n{self.text()}")

    def type(self, keys):
        os.write(self.master, keys.encode())

    # ---- Its end ----

    def signal(self, number):
        os.kill(self.process, number)

    def wait(self, options=0):
        """Returns the status of the program's exit or stop, and reads its output until then."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            found, status = os.waitpid(self.process, options | os.WNOHANG)
            if found:
                while self.step(0):
                    pass
                return status
            select.select([self.master], [], [], 0.01)
            while self.step(0):
                pass
        raise AssertionError("it does not end; on its screen:\n" + self.text())

    def is_as_before(self):
        return termios.tcgetattr(self.slave) == self.before and not self.is_other and self.has_cursor

    def comes_back(self):
        """Waits until the terminal is as before. The kernel hands output on by a thread of its own, so what a program has
        written last may come after its end."""
        limit = time.monotonic() + PATIENCE
        while not self.is_as_before():
            if not self.step(limit):
                return False
        return True

    def close(self):
        try:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        for fd in (self.master, self.slave):
            try:
                os.close(fd)
            except OSError:
                pass
