#!/usr/bin/env python3
"""Tests the steps of a restart of the proxy, one by one: handover_steps_test.py PROGRAM [TEST...]."""

import os
import select
import signal
import socket
import sys
import tempfile

from handover_test import ends, start, succeed
from harness import PATIENCE, NotBegun, Server, check, equal, run, tests_of
from http_messages import Message, ask, configuration, get, named, respond

MESSAGE = 128  # the size of one
MESSAGES = 3  # of a proxy with one listener: the path's socket, the listener's, the end
READY = MESSAGES + 1  # steps until the new one has said that it is ready


class Between:
    """Takes the place of a proxy at its path, and passes the messages between it and its successor on, one by one."""

    def __init__(self, directory, text=None):
        self.path = f"{directory}/handover"
        os.rename(self.path, f"{directory}/moved")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(PATIENCE)
            listener.bind(self.path)
            listener.listen(1)
            self.new = start(directory, text or TEXT, listeners=0)
            self.successor, _ = listener.accept()
            self.predecessor = socket.socket(socket.AF_UNIX)
            self.predecessor.connect(f"{directory}/moved")
            os.rename(f"{directory}/moved", self.path)
        for one in (self.successor, self.predecessor):
            one.settimeout(PATIENCE)

    def step(self):
        message, descriptors, _, _ = socket.recv_fds(self.predecessor, MESSAGE, 1)
        equal(len(message), MESSAGE)
        socket.send_fds(self.successor, [message], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def wait_for_ready(self):
        equal(self.successor.recv(1), b"r")

    def say_ready(self):
        self.predecessor.sendall(b"r")

    def go_to(self, step):
        for _ in range(min(step, MESSAGES)):
            self.step()
        if step == READY:
            self.wait_for_ready()

    def close(self):
        self.successor.close()
        self.predecessor.close()


def serves(proxy):
    """Others connect until the client has its answer: after a kill, with io_uring, it may wait for them (see the manual page)."""
    with proxy.client() as client:
        ask(client)
        while not select.select([client], [], [], 0.1)[0]:
            proxy.client().close()
        equal(Message(client).body, b"good")


def connections_at(path):
    """The number of connections to sockets that were bound to the path, with those in a queue."""
    with open("/proc/net/unix", encoding="ascii") as file:
        return sum(line.split()[5] in ("02", "03") and line.split()[-1] == path for line in file)


def wait_in_queue(directory):
    """Starts a process that connects to the proxy of this directory, which has another successor."""
    path = f"{directory}/handover"
    before = connections_at(path)
    third = start(directory, TEXT, listeners=0)
    while connections_at(path) == before:
        check(third.process.poll() is None, "the process has ended")
    return third


# ---- Tests ----


def the_old_one_goes_on_if_the_new_one_is_killed():
    """At each step, until it has said that it is ready."""
    with tempfile.TemporaryDirectory() as directory:
        proxy = start(directory, TEXT)
        for step in range(READY + 1):
            between = Between(directory)
            between.go_to(step)
            between.new.kill()
            between.close()
            serves(proxy)
            equal([line for line in proxy.out.seen if line == "handed over"], [])
            new = succeed(proxy, directory, TEXT)
            equal(new.port, proxy.port)
            ends(proxy)
            serves(new)
            proxy = new
        proxy.__exit__(None, None, None)
        equal(os.listdir(directory), [])


def the_new_one_serves_if_the_old_one_is_killed():
    """At each step. It has the sockets that were passed, or listens anew."""
    with tempfile.TemporaryDirectory() as directory:
        for step in range(READY + 2):
            proxy = start(directory, TEXT)
            between = Between(directory)
            between.go_to(step)
            if step > READY:
                between.say_ready()
            proxy.kill()
            between.close()
            new = between.new
            new.begin()
            check(new.port == proxy.port or step < MESSAGES, new.port, proxy.port)
            serves(new)
            third = succeed(new, directory, TEXT)
            ends(new)
            serves(third)
            third.__exit__(None, None, None)
            equal(os.listdir(directory), [])


def a_third_one_takes_over_from_the_second():
    """It waits until that is ready."""
    with tempfile.TemporaryDirectory() as directory:
        first = start(directory, TEXT)
        between = Between(directory)
        between.step()
        third = wait_in_queue(directory)
        between.step()
        between.step()
        between.wait_for_ready()
        between.say_ready()
        ends(first)
        third.begin()
        between.new.begin()
        equal((between.new.port, third.port), (first.port, first.port))
        ends(between.new)
        between.close()
        serves(third)
        third.__exit__(None, None, None)
        equal(os.listdir(directory), [])


def a_third_one_takes_over_from_the_first_if_the_second_is_killed():
    with tempfile.TemporaryDirectory() as directory:
        first = start(directory, TEXT)
        between = Between(directory)
        between.step()
        third = wait_in_queue(directory)
        between.new.kill()
        between.close()
        third.begin()
        equal(third.port, first.port)
        ends(first)
        serves(third)
        third.__exit__(None, None, None)
        equal(os.listdir(directory), [])


def a_third_one_listens_anew_if_the_second_is_killed_when_it_is_ready():
    """The first one has left by then, and the third waits in the queue of a socket that nobody has any more."""
    with tempfile.TemporaryDirectory() as directory:
        first = start(directory, TEXT)
        between = Between(directory)
        between.step()
        third = wait_in_queue(directory)
        between.new.signal(signal.SIGSTOP)
        between.step()
        between.step()
        between.say_ready()
        ends(first)
        between.new.kill()
        between.close()
        third.begin()
        serves(third)
        third.__exit__(None, None, None)
        equal(os.listdir(directory), [])


def a_slow_one_takes_over_in_the_end():
    """It has all the time it needs; meanwhile the old one serves, and another new one is refused. So two never stay."""
    with tempfile.TemporaryDirectory() as directory:
        proxy = start(directory, TEXT)
        between = Between(directory)
        between.step()
        try:
            start(directory, TEXT).give_up()
        except NotBegun as failure:
            equal((failure.status, any("serves another successor" in line for line in failure.errors)), (1, True), failure.errors)
        serves(proxy)
        between.new.kill()
        between.close()
        new = succeed(proxy, directory, TEXT)
        ends(proxy)
        serves(new)
        new.__exit__(None, None, None)


def a_stop_leaves_the_sockets_to_the_new_one():
    """Before that is ready, and at the same time."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/web"
        text = f"{TEXT}listen unix:{path}\nmode http\nto web\n"
        for is_ready in (False, True):
            proxy = start(directory, text)
            between = Between(directory, text)
            for _ in range(MESSAGES + 1):
                between.step()
            if is_ready:
                between.wait_for_ready()
                proxy.signal(signal.SIGSTOP)
                between.say_ready()
            proxy.signal(signal.SIGTERM)
            proxy.signal(signal.SIGCONT)
            ends(proxy)
            between.close()
            new = between.new
            new.begin()
            equal((new.port, sorted(os.listdir(directory))), (proxy.port, ["handover", "web"]))
            serves(new)
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(PATIENCE)
                client.connect(path)
                equal(get(client).body, b"good")
            third = succeed(new, directory, text)
            ends(new)
            serves(third)
            third.__exit__(None, None, None)
            equal(os.listdir(directory), [])


def a_stop_makes_room_at_once():
    """While requests are under way. The next process listens anew. A successor that ended before does not change that."""
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        for has_successor in (False, True):
            proxy = start(directory, configuration(server.name, head="log off"))
            with proxy.client() as client:
                ask(client)
                with server.accept() as other:
                    Message(other)
                    between = Between(directory) if has_successor else None
                    if between:
                        between.go_to(MESSAGES)
                    proxy.signal(signal.SIGTERM)
                    if between:
                        between.new.kill()
                        between.close()
                    with start(directory, TEXT) as new:
                        serves(new)
                        respond(other, body=b"late")
                        equal(Message(client).body, b"late")
                        ends(proxy)
                        serves(new)
                        check("handover" in os.listdir(directory))
            equal(os.listdir(directory), [])


if __name__ == "__main__":
    GOOD = Server(named("good"))
    TEXT = configuration(GOOD.name, head="log off")
    run(tests_of(globals()), sys.argv[1:])
