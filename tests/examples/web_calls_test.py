#!/usr/bin/env python3
"""Counts the system calls of the example web server on epoll, with strace: for each request of a kept-alive connection,
and for each connection of one request. web_calls_test.py PROGRAM"""
import collections
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

REQUESTS = 200  # of a kept-alive connection
WAVE = 10  # connections at a time
CONNECTIONS = 10 * WAVE
KEPT = b'GET /hello/bide HTTP/1.1\r\nHost: here\r\n\r\n'
LAST = b'GET /hello/bide HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n'
BODY = b'hello, bide\n'


def skip(reason):
    print('1..0 # SKIP ' + reason)
    sys.exit(0)


def connect(port):
    client = socket.create_connection(('127.0.0.1', port), timeout=60)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def hear(client):
    got = b''
    while not got.endswith(BODY):
        piece = client.recv(4096)
        if not piece:
            raise EOFError('the server has closed')
        got += piece


def keep(port):
    """One connection, which sends the next request after the last answer."""
    with connect(port) as client:
        for _ in range(REQUESTS):
            client.sendall(KEPT)
            hear(client)


def close_each(port):
    """Connections of one request, several at a time: the server closes first."""
    for _ in range(CONNECTIONS // WAVE):
        clients = [connect(port) for _ in range(WAVE)]
        for step in (lambda client: client.sendall(LAST), hear, lambda client: client.recv(1), socket.socket.close):
            for client in clients:
                step(client)


def calls_of(program, directory, talk):
    """
    The calls by name, and how many of them failed, from when the server listens until it exits. A look at the set that
    does not wait and finds nothing is a call 'look': their number depends on the time that the turns take.
    """
    trace = os.path.join(directory, 'trace')
    command = ['strace', '-f', '-qq', '-o', trace, program, directory]
    environment = dict(os.environ, BIDE_IO='epoll')
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as server:
        port = int(server.stdout.readline().split()[-1])
        talk(port)
        # (strace does not forward signals; the server is its child)
        children = subprocess.run(['ps', '-o', 'pid=', '--ppid', str(server.pid)], capture_output=True, check=True)
        os.kill(int(children.stdout.split()[0]), signal.SIGTERM)
        if server.wait(timeout=60) != 0:
            raise OSError('the server has failed')
    calls = collections.Counter()
    listens = False
    with open(trace, encoding='latin-1') as lines:
        for line in lines:
            match = re.match(r'\d+ +(\w+)\(', line)
            listens = listens or 'listening on port' in line
            if match and listens:
                calls['look' if re.search(r'epoll_wait\(.*, 0\) += 0$', line) else match[1]] += 1
                if ' = -1 E' in line:
                    calls[match[1], 'failed'] += 1
    return calls


def main():
    program = sys.argv[1]
    for needed in 'strace', 'ps':
        if shutil.which(needed) is None:
            skip(needed + ' is missing')
    if subprocess.run(['strace', '-qq', '-o', '/dev/null', 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
        skip('strace may not trace here')
    failed = 0
    number = 0

    def check(name, value, most):
        nonlocal failed, number
        number += 1
        good = value <= most
        failed += not good
        print(f'{"ok" if good else "not ok"} {number} - {name}: {value}, at most {most}')

    with tempfile.TemporaryDirectory() as directory:
        kept = calls_of(program, directory, keep)
        closed = calls_of(program, directory, close_each)

    # The calls that a server makes once (startup, signal, cleanup) are within FEW.
    few = 12
    check('a kept request: receives', kept['recvfrom'], REQUESTS + 2)  # the first may find nothing; and the end of file
    check('a kept request: sends', kept['sendto'], REQUESTS)
    check('a kept request: waits', kept['epoll_wait'] + kept['epoll_pwait2'], REQUESTS + few)
    check('a kept request: changes of the set', kept['epoll_ctl'], few)
    check('a kept request: other calls', sum(count for name, count in kept.items() if name not in (
        'recvfrom', 'sendto', 'epoll_wait', 'epoll_pwait2', 'epoll_ctl', 'look') and isinstance(name, str)), 100)
    # Each connection takes one event and one accept, without a failing one; it may get an event for its request, which adds it to the set.
    check('a connection: accepts', closed['accept4'], 2 * CONNECTIONS + 2)
    check('a connection: receives', closed['recvfrom'], 2 * CONNECTIONS)
    check('a connection: sends', closed['sendto'], CONNECTIONS)
    check('a connection: closes', closed['close'], CONNECTIONS + few)
    check('a connection: options', closed['setsockopt'], few)
    check('a connection: waits', closed['epoll_wait'] + closed['epoll_pwait2'], 2 * CONNECTIONS + few)
    check('a connection: changes of the set', closed['epoll_ctl'], 2 * CONNECTIONS + few)
    check('both: what has failed but for what would wait', sum(
        count for calls in (kept, closed) for name, count in calls.items()
        if isinstance(name, tuple) and name[0] not in ('recvfrom', 'accept4')), few)
    print(f'1..{number}')
    return failed != 0


sys.exit(main())
