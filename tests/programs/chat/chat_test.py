#!/usr/bin/python3
"""Tests the chat with independent clients: chat_test.py CHAT

The clients are python3-websockets, and bare sockets for misbehaving clients. Prints TAP.
"""
import asyncio
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from programs import without_notes  # noqa: E402 (in the parent directory)

try:
    import websockets
except ImportError:
    websockets = None

chat = sys.argv[1]
number = failures = 0
LIMIT = 60


class Server:
    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.process = subprocess.Popen([chat, *self.options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().split()[-1])
        return self

    def stop(self):
        self.process.send_signal(signal.SIGTERM)

    def __exit__(self, kind, *_):
        self.stop()
        said = without_notes(self.process.communicate(timeout=LIMIT)[1].decode())
        if kind is None:
            assert self.process.returncode == 0 and said == "", (self.process.returncode, said)


class Client:
    """A client in a room."""

    def __init__(self, server, room="room", name="ana", **options):
        self.server, self.room, self.name, self.options = server, room, name, options

    async def __aenter__(self):
        self.socket = await websockets.connect(f"ws://127.0.0.1:{self.server.port}/chat", **self.options)
        await self.socket.send(f"join\t{self.room}\t{self.name}")
        self.name = (await self.next("welcome"))[1]
        self.who = set((await self.next("who"))[1:])
        return self

    async def __aexit__(self, *_):
        await self.socket.close()

    async def next(self, word=None):
        """The next line, or the next line with that first word."""
        while True:
            fields = (await asyncio.wait_for(self.socket.recv(), LIMIT)).split("\t")
            if word is None or fields[0] == word:
                return fields

    async def say(self, text):
        await self.socket.send("say\t" + text)

    async def hears(self, name, text):
        fields = await self.next("said")
        assert fields[2] == name and "\t".join(fields[3:]) == text, fields


async def closes(server, line, code):
    """Checks that a client that sends this is disconnected with that code."""
    async with Client(server, name="somebody") as client:
        await client.socket.send(line)
        try:
            while True:
                await asyncio.wait_for(client.socket.recv(), LIMIT)
        except websockets.ConnectionClosed as closed:
            assert closed.rcvd.code == code, closed


async def closes_at_once(server, code, line="join\tanother\tana"):
    """The same, for its first line."""
    async with websockets.connect(f"ws://127.0.0.1:{server.port}/chat") as client:
        await client.send(line)
        try:
            await asyncio.wait_for(client.recv(), LIMIT)
            assert False, line
        except websockets.ConnectionClosed as closed:
            assert closed.rcvd.code == code, closed


# ---- The tests ----

def get(server, path, headers=None):
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, ""


def the_page_brings_all_that_it_needs():
    with Server() as server:
        status, headers, page = get(server, "/")
        assert status == 200 and headers["Content-Type"].startswith("text/html"), headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert not re.search(r"https?://", page)
        for link in re.findall(r'(?:src|href)="(/[^"]*)"', page):
            status, _, text = get(server, link)
            assert status == 200 and text and "http" not in re.sub(r"'https?:'|http-equiv", "", text), link
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in get(server, "/chat.js")[2], word
        assert get(server, "/nothing")[0] == 404
        assert get(server, "/chat")[0] == 400
        assert get(server, "/?query")[0] == 200


async def those_in_a_room_hear_each_other_and_no_others():
    with Server() as server:
        async with Client(server, "kitchen", "ana") as ana, Client(server, "kitchen", "bo") as bo, \
                Client(server, "garden", "ana") as other:
            assert bo.who == {"ana", "bo"} and other.name == "ana" and other.who == {"ana"}
            assert (await ana.next("joined"))[2] == "bo"
            for text in ("hello", "tabs\tand\nlines", "<b>&amp;", "é☕😀", "x" * 1000):
                await ana.say(text)
                await ana.hears("ana", text)
                await bo.hears("ana", text)
            await other.say("who is there?")
            await other.hears("ana", "who is there?")
            await bo.say("   ")  # is dropped
            await bo.say("bye")
            await ana.hears("bo", "bye")
            await bo.socket.close()
            assert (await ana.next("left"))[2] == "bo"


async def a_name_is_one_persons():
    with Server() as server:
        async with Client(server) as first, Client(server) as second, Client(server, name=" a\0na\x07 ") as third:
            assert [first.name, second.name, third.name] == ["ana", "ana 2", "a na"]
            await second.socket.close()
            await first.next("left")
            async with Client(server, name="ana") as again:
                assert again.name == "ana 2"
        async with Client(server, name="bo 1") as literal, Client(server, name="bo") as first, Client(server, name="bo 3") as third, \
                Client(server, name="bo 02"), Client(server, name="bo 2x"), Client(server, name="bob 2"):
            assert [literal.name, first.name, third.name] == ["bo 1", "bo", "bo 3"]
            async with Client(server, name="bo") as second, Client(server, name="bo") as fourth, Client(server, name="bo 2") as other:
                assert [second.name, fourth.name, other.name] == ["bo 2", "bo 4", "bo 2 2"]
            crowd = [Client(server, name="many") for _ in range(60)]
            for client in crowd:
                await client.__aenter__()
            assert [client.name for client in crowd] == ["many"] + [f"many {i}" for i in range(2, 61)]
            for client in crowd:
                await client.__aexit__(None, None, None)
        async with Client(server, name="é" * 40) as client:
            assert client.name == "é" * 16


async def who_comes_later_hears_the_last_fifty():
    with Server("--rate", "100000") as server:
        async with Client(server) as ana:
            for i in range(73):
                await ana.say(str(i))
            for i in range(73):
                await ana.hears("ana", str(i))
            async with Client(server, name="bo") as bo:
                for i in range(23, 73):
                    fields = await bo.next()
                    assert fields[0] == "old" and fields[2:] == ["ana", str(i)], fields
                await bo.say("new")
                await bo.hears("bo", "new")


async def a_slow_client_learns_what_it_missed():
    most = 9000
    with Server("--rate", "1000000", "--ping", "3600") as server:
        # (with a small receive window, and a library that does not read ahead)
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.connect(("127.0.0.1", server.port))
        async with Client(server, name="slow", sock=small, max_queue=1, read_limit=1024) as slow, \
                Client(server, name="quick") as quick:
            for i in range(0, most, 20):
                for j in range(i, i + 20):
                    await quick.say(f"{j} " + "x" * 900)
                for j in range(i, i + 20):
                    fields = await quick.next("said")
                    assert fields[3].startswith(f"{j} "), (j, fields)
            expected = missed = 0
            was_told = False
            while expected < most:
                fields = await slow.next()
                if fields[0] == "missed":
                    missed, was_told = int(fields[1]), True
                elif fields[0] == "said":
                    found = int(fields[3].split()[0])
                    assert found == expected + missed, (found, expected, missed)
                    expected, missed = found + 1, 0
            assert was_told, "the slow one was quick enough"


async def what_is_not_understood_ends_it():
    with Server() as server:
        await closes(server, "say\t" + "x" * 5000, 1009)
        await closes(server, b"say\thello", 1003)
        await closes(server, "shout\thello", 1008)
        await closes(server, "say", 1008)
        for line in ("hello", "join\troom", "join\troom\t  ", "join\t\tana"):
            await closes_at_once(server, 1008, line)


async def one_that_vanishes_is_noticed():
    with Server("--ping", "4") as server:  # (the other client has to answer within that time)
        async with Client(server) as ana:
            gone = socket.create_connection(("127.0.0.1", server.port))
            gone.sendall(b"GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            line = b"join\troom\tgone"
            gone.sendall(struct.pack("!BB4x", 0x81, 0x80 | len(line)) + line)  # the mask is 0
            assert (await ana.next("joined"))[2] == "gone"
            assert (await ana.next("left"))[2] == "gone"  # it did not answer a ping
            gone.close()
            # and a client whose connection is lost
            async with Client(server, name="cut") as cut:
                assert (await ana.next("joined"))[2] == "cut"
                cut.socket.transport.abort()
                assert (await ana.next("left"))[2] == "cut"


async def a_client_that_is_too_quick_waits_and_loses_nothing():
    with Server("--rate", "20") as server:
        async with Client(server) as ana:
            for i in range(60):
                await ana.say(str(i))
            for i in range(60):
                await ana.hears("ana", str(i))


async def shutdown_closes_with_1001():
    with Server() as server:
        async with Client(server) as ana, Client(server, "another", "bo") as bo, \
                websockets.connect(f"ws://127.0.0.1:{server.port}/chat"):
            server.stop()
            for client in (ana, bo):
                try:
                    await client.next("nothing")
                except websockets.ConnectionClosed as closed:
                    assert closed.rcvd.code == 1001 and closed.rcvd.reason == "server shutting down", closed
            assert await asyncio.to_thread(server.process.wait, LIMIT) == 0


async def pages_of_others_may_not_open_one():
    with Server() as server:
        url, host = f"ws://127.0.0.1:{server.port}/chat", f"127.0.0.1:{server.port}"
        async with websockets.connect(url, origin="http://" + host):
            pass
        for origin in ("http://example.org", "null", "http://example.org:" + host, host, "http://evil" + host):
            try:
                async with websockets.connect(url, origin=origin):
                    assert False, origin
            except websockets.InvalidStatusCode as error:
                assert error.status_code == 403, (origin, error)


async def many_come_and_go():
    with Server("--clients", "300") as server:
        async def one(i):
            async with Client(server, f"room {i % 50}", f"guest {i}") as client:
                await client.say(f"hello from {i}")
                while (await client.next("said"))[3] != f"hello from {i}":
                    pass

        for _ in range(3):
            await asyncio.gather(*(one(i) for i in range(200)))


async def there_are_so_many_rooms_and_no_more():
    with Server() as server:
        clients = [await Client(server, f"room {i}").__aenter__() for i in range(64)]
        await closes_at_once(server, 1013)
        await clients.pop().__aexit__()
        async with Client(server, "another"):
            pass
        for client in clients:
            await client.__aexit__()


def it_says_how_it_is_used():
    done = subprocess.run([chat, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage: chat "), done
    for options in (["--port", "65536"], ["--port"], ["--nonsense"], ["--rate", "0"], ["--ping", "x"]):
        done = subprocess.run([chat, *options], capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.startswith("usage: chat "), (options, done)
    done = subprocess.run([chat, "--address", "nowhere"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("chat: "), done


TESTS = [the_page_brings_all_that_it_needs, those_in_a_room_hear_each_other_and_no_others, a_name_is_one_persons,
         who_comes_later_hears_the_last_fifty, a_slow_client_learns_what_it_missed,
         what_is_not_understood_ends_it, one_that_vanishes_is_noticed,
         a_client_that_is_too_quick_waits_and_loses_nothing, shutdown_closes_with_1001, pages_of_others_may_not_open_one,
         many_come_and_go, there_are_so_many_rooms_and_no_more, it_says_how_it_is_used]

print(f"1..{len(TESTS)}")
for test in TESTS:
    number += 1
    if asyncio.iscoroutinefunction(test) and not websockets:
        print(f"ok {number} - {test.__name__} # SKIP python3-websockets is not installed")
        continue
    try:
        asyncio.run(test()) if asyncio.iscoroutinefunction(test) else test()
        print(f"ok {number} - {test.__name__}", flush=True)
    except Exception as error:
        failures += 1
        print(f"not ok {number} - {test.__name__}\n# {type(error).__name__}: {error}", flush=True)
sys.exit(failures != 0)
