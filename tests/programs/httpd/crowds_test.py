#!/usr/bin/env python3
"""Tests httpd with many clients: slow ones, and more than its descriptors allow: crowds_test.py PROGRAM [TEST...]."""

import os
import re
import selectors
import signal
import subprocess
import sys
import time

from harness import PATIENCE, Httpd, check, equal, missing, run, tests_of

TEXT = b"x" * 1024
SLOW = 1000
CURLS = 100
CLIENTS = 200
SECONDS = 10


def curls_are_served_beside(kind):
    absent = missing("slowhttptest")
    if absent:
        return absent
    with Httpd({"1k": TEXT, "large": TEXT * 1024}) as httpd:
        slow = subprocess.Popen(["slowhttptest", *kind, "-c", str(SLOW), "-r", "500", "-l", "120", "-u",
                                 f"http://127.0.0.1:{httpd.port}/large"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while httpd.statistics()["accepted"] < SLOW:
                check(slow.poll() is None, "slowhttptest has ended")
            for _ in range(CURLS):
                equal(httpd.curl("URL/1k"), TEXT)
        finally:
            slow.kill()
            slow.wait()
        httpd.idle()
    return None


def curls_are_served_beside_slow_heads():
    return curls_are_served_beside(["-H", "-i", "5"])


def curls_are_served_beside_slow_bodies():
    return curls_are_served_beside(["-B", "-i", "5", "-s", "8192"])


def curls_are_served_beside_slow_readers():
    return curls_are_served_beside(["-X", "-w", "10", "-y", "20", "-n", "5", "-z", "32", "-k", "1"])


class Holders:
    """Silent clients that keep their connections; a client whose connection is closed connects again."""

    def __init__(self, httpd, count):
        self.httpd, self.selector = httpd, selectors.DefaultSelector()
        for _ in range(count):
            self.come()

    def come(self):
        self.selector.register(self.httpd.client(), selectors.EVENT_READ)

    def hold(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                self.selector.unregister(key.fileobj)
                key.fileobj.close()
                self.come()

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


class Accepts:
    """Counts calls of accept with strace, without those inside io_uring."""

    def __init__(self, httpd):
        self.path = os.path.join(httpd.directory, "trace")
        self.process = subprocess.Popen(["strace", "-f", "-c", "-e", "trace=accept,accept4", "-o", self.path, "-p",
                                         str(httpd.process.pid)], stderr=subprocess.PIPE, text=True)
        check("attached" in self.process.stderr.readline(), "strace cannot attach")

    def count(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE)
        with open(self.path, encoding="ascii") as file:
            return sum(int(line.split()[3]) for line in file if re.search(r" accept4?$", line))


def few_accepts_where_descriptors_are_few():
    absent = missing("prlimit", "strace")
    if absent:
        return absent
    with Httpd({"1k": TEXT}, prefix=["prlimit", "--nofile=64"]) as httpd:
        accepts = Accepts(httpd)
        holders = Holders(httpd, CLIENTS)
        holders.hold(SECONDS)
        statistics = httpd.statistics()
        calls = accepts.count()
        check(calls < 100, "calls of accept:", calls)
        check(statistics["accepted"] + statistics["refused"] + statistics["errors"] < 100, statistics)
        print(f"# {calls} calls of accept, {statistics['accepted']} connections")
        holders.close()
        httpd.idle()
        for _ in range(10):
            equal(httpd.curl("URL/1k"), TEXT)
    return None


run(tests_of(dict(globals())), sys.argv[1:])
