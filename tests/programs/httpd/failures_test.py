#!/usr/bin/env python3
"""Tests httpd while its log cannot be written, and while files shrink during a transfer: failures_test.py PROGRAM [TEST...]."""

import os
import re
import subprocess
import sys
import tempfile
import time

from harness import (PATIENCE, Httpd, Response, ask, certificate, check, equal, missing, run, speaks_http2, tests_of)
from programs import Beside

TEXT = b"0123456789"
LARGE = 64 << 20
LINE = re.compile(r'^127\.0\.0\.1 - - \[[^]]+\] "GET /\S* HTTP/1\.1" 200 \d+ "-" "\S*"$')


def get(client, target, *fields):
    ask(client, target, "GET", *fields)
    response = Response(client)
    equal((response.status, response.body), (200, TEXT))


# ---- Logs ----


def lines_that_find_no_room_are_counted():
    """A log that is not read: requests do not wait for it, and lost lines are counted."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "log")
        os.mkfifo(path)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as log:
            with Httpd({"a": TEXT}, ["--log", path]) as httpd:
                requests = 0
                with httpd.client() as client:
                    while httpd.statistics()["dropped-log-lines"] < 5:
                        check(requests < 5000, "none is dropped")
                        for _ in range(20):
                            get(client, "/a", "User-Agent: " + "x" * 3000)
                            requests += 1
                statistics = httpd.idle()
                equal(statistics["log-lines"] + statistics["dropped-log-lines"], requests)
                os.set_blocking(log.fileno(), True)
                reading = Beside(log.read)
                httpd.stop()
                lines = reading.result().decode().splitlines()
                equal(len(lines), statistics["log-lines"])
                check(all(LINE.match(line) for line in lines))


def a_log_is_opened_anew_while_lines_are_written():
    """No line is lost or split."""
    def ask_often(httpd, name):
        with httpd.client() as client:
            for number in range(400):
                get(client, f"/a?{name}-{number}", "User-Agent: " + "y" * 500)

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "log")
        with Httpd({"a": TEXT}, ["--log", path]) as httpd:
            askers = [Beside(ask_often, httpd, name) for name in "abc"]
            for number in range(12):
                os.rename(path, f"{path}.{number}")
                httpd.reload()
            for asker in askers:
                asker.result()
            httpd.stop()
        targets = []
        for name in os.listdir(directory):
            with open(os.path.join(directory, name), encoding="ascii") as file:
                for line in file:
                    check(LINE.match(line), line)
                    targets.append(line.split()[6])
        equal(sorted(targets), sorted(f"/a?{name}-{number}" for name in "abc" for number in range(400)))


def a_full_disk_loses_lines_and_nothing_else():
    with Httpd({"a": TEXT}, ["--log", "/dev/full"]) as httpd:
        with httpd.client() as client:
            for _ in range(50):
                get(client, "/a")
        equal(httpd.idle()["log-lines"], 50)
        _, errors = httpd.stop()
        equal(errors, ["httpd: /dev/full: No space left on device"])
    # lines lost before the exit are counted
    with Httpd({"a": TEXT}, ["--log", "/dev/full"]) as httpd:
        with httpd.client() as client:
            count = 0
            while httpd.statistics()["dropped-log-lines"] == 0:
                check(count < 5000, "none is dropped")
                get(client, "/a", "User-Agent: " + "x" * 3000)
                count += 1
        httpd.reload()
        httpd.err.expect("^httpd: /dev/full: No space left on device$")


# ---- Files that shrink ----


def shrinks(httpd, path, *arguments):
    """A client whose file is truncated during the transfer receives less than announced, and can detect that."""
    os.truncate(path, 0)
    os.truncate(path, LARGE)
    with subprocess.Popen(["curl", "--silent", "--no-buffer", "--max-time", str(PATIENCE), "--cacert", certificate("authority"),
                           *arguments, f"{httpd.url}/large"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as curl:
        size = len(curl.stdout.read(1))
        os.truncate(path, 100000)
        while piece := curl.stdout.read(1 << 16):
            size += len(piece)
        curl.wait(PATIENCE)
        check(size < LARGE, arguments, "it has got", size)
        # (18: the body is shorter than announced; 92: the stream was reset)
        equal(curl.returncode, 92 if any("http2" in argument for argument in arguments) else 18, arguments)


def files_shrink_while_they_are_sent():
    lacking = missing("curl", "openssl")
    if lacking:
        return lacking
    with_http2 = speaks_http2()
    for tls in (False, True):
        with Httpd({"a": TEXT, "large": b""}, tls=tls) as httpd:
            path = httpd.path("large")
            httpd.curl("URL/a")
            httpd.idle()
            shrinks(httpd, path, "--http1.1")
            httpd.idle()
            descriptors = httpd.descriptors()
            for arguments in [["--http1.1"], ["--http1.1", "--range", "1000-"]] + (
                    [["--http2"] if tls else ["--http2-prior-knowledge"]] if with_http2 else []):
                shrinks(httpd, path, *arguments)
                equal(httpd.curl("URL/a"), TEXT)
            patience = time.monotonic() + PATIENCE
            while httpd.idle() and (found := httpd.descriptors()) > descriptors:
                check(time.monotonic() < patience, found, "descriptors, and it was", descriptors)
    return None


run(tests_of(dict(globals())), sys.argv[1:])
