#!/usr/bin/python3
"""WebSockets with third-party clients and servers: websocket_peers_test.py WEBSOCKET_PEER

Python's websockets, Python's websocket-client and node's ws, each where it is installed. TAP.
"""
import asyncio
import os
import subprocess
import sys

try:
    import websockets
except ImportError:
    websockets = None
try:
    import websocket
except ImportError:
    websocket = None

peer = sys.argv[1]
os.environ["NODE_PATH"] = "/usr/share/nodejs:/usr/lib/nodejs"
SIZES = [0, 1, 125, 126, 127, 65535, 65536, 1000000]
number = failures = 0


def report(name, run, reason):
    """Runs a test, or reports why it is skipped."""
    global number, failures
    number += 1
    if reason:
        print(f"ok {number} - {name} # SKIP {reason}")
        return
    try:
        run()
        print(f"ok {number} - {name}")
    except Exception as error:
        failures += 1
        print(f"not ok {number} - {name}")
        print(f"# {type(error).__name__}: {error}")


class Server:
    """The server of bide, which echoes."""

    def __enter__(self):
        self.process = subprocess.Popen([peer, "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return int(self.process.stdout.readline())

    def __exit__(self, *_):
        self.process.stdin.close()
        status = self.process.wait(60)
        assert status == 0, f"the server has ended with {status}"


def node(script, *arguments):
    subprocess.run(["node", "-e", script, *map(str, arguments)], check=True, timeout=60)


def has_node():
    return subprocess.run(["node", "-e", "require('ws')"], capture_output=True).returncode == 0


# ---- Third-party clients ----

async def with_websockets(port):
    async with websockets.connect(f"ws://127.0.0.1:{port}/") as client:
        assert client.extensions == []
        for size in SIZES:
            await client.send("é" * (size // 2))
            assert await client.recv() == "é" * (size // 2)
            await client.send(bytes(i % 251 for i in range(size)))
            assert await client.recv() == bytes(i % 251 for i in range(size))
        await client.send(["in ", "", "fragments, ", "cut in the é"])
        assert await client.recv() == "in fragments, cut in the é"
        await asyncio.wait_for(await client.ping(b"x" * 125), 60)
        await asyncio.gather(*(client.send(str(i)) for i in range(1000)))
        assert [await client.recv() for _ in range(1000)] == [str(i) for i in range(1000)]
        await client.close(4000, "enough")
        assert client.close_code == 4000, client.close_code
    async with websockets.connect(f"ws://127.0.0.1:{port}/") as client:
        try:
            await client.send(b"x" * (1 << 20) + b"y")
            await client.recv()
        except websockets.ConnectionClosed as closed:
            assert closed.rcvd.code == 1009, closed
        else:
            raise AssertionError("it took more than it may")


def python_websockets():
    with Server() as port:
        asyncio.run(with_websockets(port))


def python_websocket_client():
    with Server() as port:
        client = websocket.create_connection(f"ws://127.0.0.1:{port}/", timeout=60)
        for size in SIZES:
            client.send("a" * size)
            assert client.recv() == "a" * size
            client.send_binary(b"\xff" * size)
            assert client.recv() == b"\xff" * size
        client.ping("hello")
        assert client.recv_data(control_frame=True) == (websocket.ABNF.OPCODE_PONG, b"hello")
        client.send(b"\xc3\x28", websocket.ABNF.OPCODE_TEXT)
        opcode, data = client.recv_data()
        assert opcode == websocket.ABNF.OPCODE_CLOSE and data[:2] == b"\x03\xef", (opcode, data)
        client.shutdown()


NODE_CLIENT = """
const WebSocket = require('ws'), assert = require('assert');
const sizes = [0, 1, 125, 126, 127, 65535, 65536, 1000000];
const client = new WebSocket('ws://127.0.0.1:' + process.argv[1] + '/', {perMessageDeflate: true});
let round = 0, ponged = false;
const send = () => client.send(round % 2 ? Buffer.alloc(sizes[round >> 1], 7) : 'x'.repeat(sizes[round >> 1]));
client.on('open', () => { client.ping('hello'); send(); });
client.on('pong', data => { assert.equal(data.toString(), 'hello'); ponged = true; });
client.on('message', (data, isBinary) => {
    assert.equal(isBinary, round % 2 == 1);
    assert.equal(data.length, sizes[round >> 1]);
    if (++round < 2 * sizes.length) return send();
    assert(ponged);
    client.close(3001, 'bye');
});
client.on('close', code => process.exit(code == 3001 ? 0 : 1));
client.on('error', error => { console.error(error); process.exit(1); });
"""


def node_client():
    with Server() as port:
        node(NODE_CLIENT, port)


# ---- Third-party servers ----

async def serve_websockets():
    closes = []

    async def echo(connection):
        try:
            async for message in connection:
                await connection.send(message)
        finally:
            closes.append((connection.close_code, connection.close_reason))

    async with websockets.serve(echo, "127.0.0.1", 0, max_size=None) as server:
        port = server.sockets[0].getsockname()[1]
        client = await asyncio.create_subprocess_exec(peer, "client", str(port))
        assert await asyncio.wait_for(client.wait(), 60) == 0
    assert closes == [(1000, "done")], closes


NODE_SERVER = """
const {WebSocketServer} = require('ws'), {spawn} = require('child_process');
const server = new WebSocketServer({port: 0, host: '127.0.0.1', perMessageDeflate: true});
let closed = null, exited = null;
const look = () => {
    if (closed !== null && exited !== null) process.exit(exited == 0 && closed == '1000 done' ? 0 : 1);
};
server.on('connection', connection => {
    connection.on('message', (data, isBinary) => connection.send(data, {binary: isBinary}));
    connection.on('close', (code, reason) => { closed = code + ' ' + reason; look(); });
});
server.on('listening', () => {
    const client = spawn(process.argv[1], ['client', server.address().port], {stdio: 'inherit'});
    client.on('exit', code => { exited = code; look(); });
});
"""


print("1..5")
no_websockets = "" if websockets else "python3-websockets is not installed"
no_client = "" if websocket else "python3-websocket is not installed"
no_node = "" if has_node() else "node-ws is not installed"
report("python3-websockets is served", python_websockets, no_websockets)
report("python3-websocket is served", python_websocket_client, no_client)
report("node's ws is served", node_client, no_node)
report("python3-websockets serves", lambda: asyncio.run(serve_websockets()), no_websockets)
report("node's ws serves", lambda: node(NODE_SERVER, peer), no_node)
sys.exit(failures != 0)
