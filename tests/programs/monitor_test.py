#!/usr/bin/env python3
"""bide-top shows each program that has --monitor: monitor_test.py TOP NAME=PROGRAM...

The program is confined meanwhile, where it confines itself; and the socket is gone when it has ended. Prints TAP.
"""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from programs import PATIENCE, Lines, check, equal, run, without_notes  # noqa: E402

NOBODY = 65534
top = sys.argv[1]
programs = dict(argument.split("=", 1) for argument in sys.argv[2:])
servers = [name for name in ("httpd", "proxy", "kv", "chat") if name in programs]
os.environ.pop("BIDE_MONITOR", None)
for variable in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):  # fetch would use them
    os.environ.pop(variable, None)
    os.environ.pop(variable.upper(), None)


def options_of(name, directory):
    return {"httpd": ["--threads", "2", directory], "proxy": ["--server", "127.0.0.1:1"]}.get(name, [])


class Program:
    """A program that runs; a server listens when it is created."""

    def __init__(self, name, options, back_end="epoll", environment=None):
        self.name = name
        self.process = subprocess.Popen([programs[name], *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True,
                                        env=dict(os.environ, BIDE_IO=back_end, **(environment or {})))
        if name in servers:
            out = Lines(self.process.stdout)
            out.expect("^listening")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def stop(self, status=0):
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(PATIENCE), status, self.name, "its status")


def look(where, **environment):
    """What bide-top finds, at a path or at the number of a process."""
    done = subprocess.run([top, "--json", "--tasks", "100", str(where)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE, check=False, env=dict(os.environ, **environment))
    equal((done.returncode, done.stderr), (0, ""), "bide-top", where)
    return json.loads(done.stdout)


def look_at_tasks(where):
    """The first look that finds tasks: a server may start them after it listens."""
    end = time.monotonic() + PATIENCE
    while (found := look(where))["look"]["tasks"] == 0:
        check(time.monotonic() < end, "no tasks:", found)
    return found


def in_directory(test):
    """Runs the test in a directory that everybody can enter."""
    def run_it():
        with tempfile.TemporaryDirectory(prefix="monitor-test-") as directory:
            os.chmod(directory, 0o777)
            return test(directory)
    run_it.__name__ = test.__name__
    return run_it


def no_user():
    """The reason why a server cannot become another user here."""
    become = f"import os; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); os.stat({tempfile.gettempdir() + '/.'!r})"
    can = os.geteuid() == 0 and subprocess.run([sys.executable, "-c", become], stdin=subprocess.DEVNULL,
                                               stderr=subprocess.DEVNULL, check=False).returncode == 0
    return None if can else "the test cannot become another user"


# ---- Tests ----


@in_directory
def servers_are_shown_until_they_end(directory):
    for name in servers:
        for back_end in ("uring", "epoll"):
            path = os.path.join(directory, "socket")
            with Program(name, ["--monitor", path, *options_of(name, directory)], back_end) as program:
                equal(os.stat(path).st_mode & 0o777, 0o600, name)
                found = look_at_tasks(path)
                equal(found["program"]["pid"], program.process.pid, name)
                check(found["loops"], name)
                for loop in found["loops"]:  # (0: the loop's thread has not started yet)
                    check(loop["thread"] == 0 or loop["thread_name"], name, loop)
                program.stop()
                check(not os.path.exists(path), name, back_end)


@in_directory
def servers_are_found_by_their_process(directory):
    for name in servers:
        with Program(name, ["--monitor", "auto", *options_of(name, directory)], "epoll",
                     {"XDG_RUNTIME_DIR": directory}) as program:
            path = os.path.join(directory, "bide", str(program.process.pid))
            found = look(program.process.pid, XDG_RUNTIME_DIR=directory)
            equal(found["program"]["pid"], program.process.pid, name)
            program.stop()
            check(not os.path.exists(path), name)
    with Program("httpd" if "httpd" in servers else servers[0], options_of(servers[0], directory), "epoll",
                 {"BIDE_MONITOR": directory + "/unasked"}):
        check(not os.path.exists(directory + "/unasked"), "a monitor that was not asked for")


@in_directory
def another_user_owns_the_socket(directory):
    if reason := no_user():
        return reason
    usual = f"/tmp/bide-{NOBODY}"  # (stays: the servers of other tests may use it)
    if os.path.lexists(usual) and os.lstat(usual).st_uid != NOBODY:
        return f"{usual} belongs to another user"
    for name in servers:
        path = os.path.join(directory, "socket")
        rest = ["--user", f"{NOBODY}:{NOBODY}", *options_of(name, directory)]
        with Program(name, ["--monitor", path, *rest]) as program:
            equal(os.stat(path).st_uid, NOBODY, name)
            equal(look(path)["program"]["pid"], program.process.pid, name)
            program.stop()
            check(not os.path.exists(path), name)
        environment = {"XDG_RUNTIME_DIR": ""}
        with Program(name, ["--monitor", "auto", *rest], "epoll", environment) as program:
            path = f"{usual}/{program.process.pid}"
            equal((os.stat(usual).st_uid, os.stat(path).st_uid), (NOBODY, NOBODY), name)
            equal(look(path)["program"]["pid"], program.process.pid, name)
            program.stop()
            check(not os.path.exists(path), name)
    return None


@in_directory
def nothing_is_created_in_another_users_directory(directory):
    """Which may have a link there, to any directory."""
    if reason := no_user():
        return reason
    elsewhere = os.path.join(directory, "elsewhere")
    runtime = os.path.join(directory, "runtime")
    os.mkdir(elsewhere)
    for has_link in (False, True):
        os.mkdir(runtime)
        if has_link:
            os.symlink(elsewhere, os.path.join(runtime, "bide"))
        os.chown(runtime, NOBODY, NOBODY)
        for name in servers:
            done = subprocess.run([programs[name], "--monitor", "auto", *options_of(name, directory)], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=PATIENCE, check=False,
                                  env={**os.environ, "XDG_RUNTIME_DIR": runtime})
            equal((done.returncode, without_notes(done.stderr)),
                  (1, f"{name}: --monitor: XDG_RUNTIME_DIR, {runtime}, is another user's\n"))
            equal(os.listdir(runtime), ["bide"] if has_link else [], name)
            equal(os.listdir(elsewhere), [], name)
        shutil.rmtree(runtime)
    return None


@in_directory
def the_reason_against_the_runtime_directory_is_reported(directory):
    there = os.path.join(directory, "a-file")
    link = os.path.join(directory, "a-link")
    with open(there, "w", encoding="ascii"):
        pass
    os.symlink(directory, link)
    for name in servers:
        for path, reason in ((directory + "/no", os.strerror(errno.ENOENT)), (there, "is no directory"), (link, "is no directory")):
            done = subprocess.run([programs[name], "--monitor", "auto", *options_of(name, directory)], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=PATIENCE, check=False,
                                  env={**os.environ, "XDG_RUNTIME_DIR": path})
            equal((done.returncode, without_notes(done.stderr)), (1, f"{name}: --monitor: XDG_RUNTIME_DIR, {path}, {reason}\n"))


@in_directory
def the_reason_of_a_failure_is_reported(directory):
    there = os.path.join(directory, "a-file")
    with open(there, "w", encoding="ascii") as file:
        file.write("kept")
    for name in servers:
        for path, error in ((directory + "/no/such", errno.ENOENT), (there, errno.EEXIST),
                            (directory + "/" + 200 * "x", errno.ENAMETOOLONG)):
            done = subprocess.run([programs[name], "--monitor", path, *options_of(name, directory)], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=PATIENCE, check=False)
            equal((done.returncode, without_notes(done.stderr)), (1, f"{name}: --monitor {path}: {os.strerror(error)}\n"))
            equal(done.stdout, "", name)
    with open(there, encoding="ascii") as file:
        equal(file.read(), "kept")


@in_directory
def fetch_is_shown(directory):
    if "fetch" not in programs:
        return "fetch was not built"
    path = os.path.join(directory, "socket")
    with socket.create_server(("127.0.0.1", 0)) as origin:
        url = f"http://127.0.0.1:{origin.getsockname()[1]}/file"
        origin.settimeout(PATIENCE)
        with Program("fetch", ["--monitor", path, "-O", directory, url]) as fetch:
            client, _ = origin.accept()
            with client:
                found = look(path)
                equal(found["program"]["pid"], fetch.process.pid)
                check(found["look"]["tasks"] > 0, found["look"])
                fetch.stop(130)
                check(not os.path.exists(path))
    return None


@in_directory
def pipeline_is_shown(directory):
    if "pipeline" not in programs:
        return "the pipeline was not built"
    path = os.path.join(directory, "socket")
    with Program("pipeline", ["--monitor", path]) as pipeline:
        pipeline.process.stdin.write("a line\n" * 100000)  # more than the pipe has room for, so it has started
        pipeline.process.stdin.flush()
        found = look(path)
        equal(found["program"]["pid"], pipeline.process.pid)
        check(found["look"]["tasks"] > 0 and found["pools"], found)
        out, _ = pipeline.process.communicate(timeout=PATIENCE)
        equal(pipeline.process.returncode, 0)
        check("100000" in out, out)
        check(not os.path.exists(path))
    return None


sys.exit(run([servers_are_shown_until_they_end, servers_are_found_by_their_process, another_user_owns_the_socket,
              nothing_is_created_in_another_users_directory, the_reason_against_the_runtime_directory_is_reported,
              the_reason_of_a_failure_is_reported, fetch_is_shown, pipeline_is_shown], []))
