#!/usr/bin/env python3
"""Counts the system calls of httpd for a file, with strace: calls_test.py PROGRAM [TEST...]."""

import collections
import os
import re
import signal
import subprocess
import sys

from harness import PATIENCE, Httpd, Response, ask, check, equal, missing, run, tests_of

FILES = 20
LARGE = b"x" * 1048576
TRACED = "futex,splice,pipe2,sendfile,preadv2,sendto,recvfrom,openat2,fstat,newfstatat,statx,close,epoll_wait,epoll_pwait2"


def why_not(httpd, name):
    """True if the file system can read from the page cache only."""
    absent = missing("strace")
    if absent:
        return absent
    fd = os.open(httpd.path(name), os.O_RDONLY)
    try:
        os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
    except OSError as error:
        return f"the files are not in memory, as far as is known: {error}"
    finally:
        os.close(fd)
    return None


class Calls:
    """Counts calls by name, after strace has attached."""

    def __init__(self, httpd):
        self.path = os.path.join(httpd.directory, "trace")
        self.process = subprocess.Popen(["strace", "-f", "-o", self.path, "-e", "trace=" + TRACED, "-p",
                                         str(httpd.process.pid)], stderr=subprocess.PIPE, text=True)
        check("attached" in self.process.stderr.readline(), "strace cannot attach")

    def count(self, thread):
        """The counts of that thread."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE)
        calls = collections.Counter()
        with open(self.path, encoding="latin-1") as lines:
            for line in lines:
                match = re.match(r"(\d+) +(\w+)\(", line)
                if match:
                    calls[match[2] if match[1] == str(thread) else "others: " + match[2]] += 1
        return calls


def calls_for(name, data, size):
    """The calls for FILES responses on one connection, or the reason to skip."""
    with Httpd({name: data}, ["--log", os.devnull]) as httpd:
        reason = why_not(httpd, name)
        if reason:
            return reason
        with httpd.client() as client:
            ask(client, "/" + name)
            equal(Response(client).length, size)
            httpd.statistics()  # (by then it has closed the file)
            calls = Calls(httpd)
            for _ in range(FILES):
                ask(client, "/" + name)
                equal(Response(client).length, size)
            ask(client, "/", "DELETE")  # answered after the last file was closed
            equal(Response(client).status, 405)
            counted = calls.count(httpd.process.pid)
        print("#", dict(counted))
        return counted


def no_threads_and_pipes(calls):
    for name in "splice", "pipe2":
        equal(calls[name] + calls["others: " + name], 0, name)
    # (strace restarts the futex call of a sleeping thread)
    check(calls["futex"] == 0 and calls["others: futex"] < FILES / 4, calls)


def a_large_file_that_is_in_memory_goes_without_threads_and_pipes():
    calls = calls_for("large", LARGE, len(LARGE))
    if isinstance(calls, str):
        return calls
    no_threads_and_pipes(calls)
    check(calls["sendfile"] >= FILES, calls)
    return None


def a_small_file_costs_one_send():
    calls = calls_for("small", b"x" * 1024, 1024)
    if isinstance(calls, str):
        return calls
    no_threads_and_pipes(calls)
    for name in "preadv2", "openat2", "close":
        equal(calls[name], FILES, name)
    equal(calls["fstat"] + calls["newfstatat"] + calls["statx"], FILES)
    equal(calls["sendfile"], 0)
    check(calls["sendto"] in (0, FILES + 1), calls)  # (0: by io_uring; the extra one is the last answer)
    return None


run(tests_of(dict(globals())), sys.argv[1:])
