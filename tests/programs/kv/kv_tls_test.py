"""Tests clients over TLS: kv_tls_test.py PROGRAM [NAME...]. The certificates are made by the program openssl."""
import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile

from client import PATIENCE, Client, Error, Server, encoded, expect, run, run_rejected, until
from kv_access_test import own_address, with_password

directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def file_of(name, kind="pem"):
    return os.path.join(directory, f"{name}.{kind}")


def make_authority(name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key", "-out",
            name + ".crt", "-days", "30", "-subj", "/CN=" + name)


def make_certificate(name, authority):
    """NAME.crt, NAME.key, and both in NAME.pem."""
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key", "-out",
            name + ".csr", "-subj", "/CN=" + name)
    with open(file_of(name, "ext"), "w", encoding="ascii") as file:
        file.write("subjectAltName=DNS:localhost\n")
    openssl("x509", "-req", "-in", name + ".csr", "-CA", authority + ".crt", "-CAkey", authority + ".key", "-CAcreateserial",
            "-extfile", name + ".ext", "-days", "30", "-out", name + ".crt")
    with open(file_of(name), "wb") as file:
        for kind in ("crt", "key"):
            with open(file_of(name, kind), "rb") as part:
                file.write(part.read())


def trusting(certificate=None, version=None):
    """A context that trusts the authority, and shows a certificate."""
    context = ssl.create_default_context(cafile=file_of("authority", "crt"))
    if certificate is not None:
        context.load_cert_chain(file_of(certificate))
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


class SecureServer(Server):
    """A server with a port for TLS beside the other one."""

    def __init__(self, *options, certificate=("--tls-cert", "server.pem"), **more):
        super().__init__("--tls-port", 0, *certificate, *options, **more)
        self.tls_port = int(self.process.stdout.readline().split()[-1]) if self.port else None

    def secure(self, *arguments, **more):
        return Client(self.tls_port, context=trusting(*arguments, **more))

    def raw(self):
        """A connection to the port for TLS on which nothing has been sent."""
        return Client(self.tls_port)


def refused(server, *arguments, **more):
    """Why a handshake fails. (With TLS 1.3 a client learns that when it reads.)"""
    try:
        server.secure(*arguments, **more).file.read(1)
    except ssl.SSLError as error:
        return error.reason
    return None


# ---- What a client does ----


def test_commands_over_each_version():
    with SecureServer() as server:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            client, plain = server.secure(version=version), server.client()
            assert client.socket.version() == {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}[version]
            expect(client, ("SET a 1", "OK"), ("INCR a", 2), ("GET a", b"2"), ("CLIENT SETNAME me", "OK"))
            assert plain.call("GET", "a") == b"2" and b"name=me " in plain.call("CLIENT", "LIST")
            value = os.urandom(5 << 20) # (in many records, both ways)
            assert client.call("SET", "large", value) == "OK" and plain.call("GET", "large") == value
            assert client.call("GET", "large") == value
            client.send(b"".join(encoded("APPEND", "p", n) for n in range(1000)) + encoded("STRLEN", "p"))
            assert [client.read() for _ in range(1001)][-1] == 2890
            client.send(encoded("MULTI") + encoded("DEL", "p") + encoded("GET", "a") + encoded("EXEC"))
            assert [client.read() for _ in range(4)] == ["OK", "QUEUED", "QUEUED", [1, b"2"]]
            assert client.call("HELLO", "3")[b"proto"] == 3
            # a request that comes a byte at a time
            for byte in encoded("ECHO", "slow"):
                client.send(bytes([byte]))
            assert client.read() == b"slow"


def test_subscribers_and_waiting_clients():
    with SecureServer() as server:
        client, other, plain = server.secure(), server.secure(), server.client()
        assert client.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        for n in range(200):
            assert other.call("PUBLISH", "c", f"{n}" * 1000) == 1
        client.send(encoded("PING"))
        for n in range(200):
            assert client.read() == [b"message", b"c", f"{n}".encode() * 1000]
        assert client.read() == [b"pong", b""]
        other.send(encoded("BLPOP", "l", 0))
        until(lambda: server.info(plain)["blocked_clients"] == "1")
        assert plain.call("RPUSH", "l", "x") == 1 and other.read() == [b"l", b"x"]
        # one that leaves while it waits takes nothing
        for leave in (Client.close, Client.vanish):
            other.send(encoded("BLPOP", "l", 0))
            until(lambda: server.info(plain)["blocked_clients"] == "1")
            leave(other)
            until(lambda: server.info(plain)["blocked_clients"] == "0")
            assert plain.call("RPUSH", "l", "y") == 1 and plain.call("LPOP", "l") == b"y"
            other = server.secure()


def test_redis_cli():
    if shutil.which("redis-cli") is None or b"--tls" not in subprocess.run(
            ["redis-cli", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout:
        print("# there is no redis-cli with TLS")
        return

    def cli(*arguments):
        done = subprocess.run(["redis-cli", "-h", "localhost", "-p", str(server.tls_port), "--tls", "--cacert", "authority.crt",
                               *arguments], capture_output=True, timeout=PATIENCE)
        return done.stdout + done.stderr

    with SecureServer("--tls-ca", "authority.crt") as server:
        own = ("--cert", "user.crt", "--key", "user.key")
        assert cli(*own, "SET", "a", "1") == b"OK\n"
        assert cli(*own, "-3", "GET", "a") == b"1\n"


# ---- How it ends ----


def test_the_end_is_not_a_cut():
    """Without the end of TLS, reading raises SSLEOFError."""
    with SecureServer() as server:
        client = server.secure()
        client.send(encoded("SET", "a", "1") + encoded("QUIT"))
        assert client.read() == "OK" and client.read() == "OK" and client.is_at_end()
        client = server.secure()
        client.send(b"*1\r\n+")
        assert client.read().startswith("ERR Protocol error: expected '$'") and client.is_at_end()
        subscriber, client = server.secure(), server.secure()
        assert subscriber.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        assert client.call("PING") == "PONG"
        assert server.end() == 0
        assert client.is_at_end() and subscriber.is_at_end()


def test_the_client_ends():
    with SecureServer() as server:
        plain = server.client()
        client = server.secure()
        client.send(encoded("SET", "a", "1"))
        assert client.read() == "OK"
        client.socket.unwrap() # the other side's end comes, too
        for leave in (Client.close, Client.vanish):
            for subscribes in (False, True):
                client = server.secure()
                if subscribes:
                    client.call("SUBSCRIBE", "c")
                client.send(encoded("INCR", "n")[:-3])
                leave(client)
                until(lambda: server.info(plain)["connected_clients"] == "1")
        assert plain.call("GET", "a") == b"1" and plain.call("EXISTS", "n") == 0
        client = server.secure()
        client.call("CLIENT", "SETNAME", "target")
        number = client.call("CLIENT", "ID")
        assert plain.call("CLIENT", "KILL", "ID", number) == 1
        try:
            assert client.is_at_end()
        except ssl.SSLEOFError:
            pass # (it is cut off at once)


# ---- Handshakes ----


def test_garbage_instead_of_a_handshake():
    with SecureServer() as server:
        plain = server.client()
        for data in (encoded("PING"), b"\0" * 100, b"\x16\x03\x01\xff\xff" + b"x" * 65535, b"\x16\x03\x01\0\x05" + b"\1\xff\xff\xff\0",
                     b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", os.urandom(4096)):
            raw = server.raw()
            with contextlib.suppress(ConnectionError):
                raw.send(data)
            with contextlib.suppress(OSError):
                raw.socket.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                while raw.socket.recv(65536): # (an alert at most)
                    pass
            assert plain.call("PING") == "PONG"
        until(lambda: server.info(plain)["connected_clients"] == "1")
        # TLS where the other protocol is expected
        try:
            Client(server.port, context=trusting())
            assert False, "a handshake with the plain port"
        except (ssl.SSLError, ConnectionError):
            pass
        # a record that is altered behind the handshake: what was before it counts
        client = server.secure()
        assert client.call("SET", "a", "1") == "OK"
        with socket.socket(fileno=os.dup(client.socket.fileno())) as below:
            below.sendall(b"\x17\x03\x03\0\x20" + b"x" * 32)
        try:
            assert client.is_at_end()
        except ssl.SSLError:
            pass
        until(lambda: server.info(plain)["connected_clients"] == "1")
        assert plain.call("GET", "a") == b"1" and server.secure().call("PING") == "PONG"


def first_message():
    """What a client sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        trusting().wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError


def test_a_handshake_that_stalls_holds_nobody_and_ends():
    """(It waits for the ten seconds of a handshake.)"""
    hello = first_message()
    with SecureServer("--clients", 5) as server:
        silent = server.raw()
        cut = server.raw()
        cut.send(hello[:20])
        half = server.raw()
        half.send(hello)
        assert half.socket.recv(1 << 16) # the server's half
        client = server.secure()
        assert client.call("PING") == "PONG"
        # (5 is the maximum: the next ones wait until the handshakes above have ended)
        last = server.secure()
        assert last.call("PING") == "PONG"
        for stalled in (silent, cut, half):
            with contextlib.suppress(ConnectionError):
                while stalled.socket.recv(1 << 16):
                    pass
        others = [server.secure() for _ in range(3)]
        assert [one.call("PING") for one in others] == ["PONG"] * 3 and client.call("PING") == "PONG"


def test_the_maximum_of_clients_counts_handshakes():
    with SecureServer("--clients", 2) as server:
        stalled, client = server.raw(), server.secure()
        assert client.call("PING") == "PONG"
        third = Client(server.tls_port)
        third.send(first_message())
        # (the other port has its own)
        assert server.info(server.client())["connected_clients"] == "3"
        stalled.close()
        assert third.socket.recv(5)[:1] == b"\x16" # it is served now


def test_client_certificates():
    with SecureServer("--tls-ca", "authority.crt") as server:
        assert server.secure("user").call("PING") == "PONG"
        assert refused(server) == "TLSV13_ALERT_CERTIFICATE_REQUIRED"
        assert refused(server, "stranger") == "TLSV1_ALERT_UNKNOWN_CA", refused(server, "stranger")
        expect(server.client(), ("CONFIG GET tls-auth*", [b"tls-auth-clients", b"yes"]),
               ("CONFIG GET tls-ca*", [b"tls-ca-cert-file", b"authority.crt"]))
    with SecureServer("--tls-ca", "authority.crt", "--tls-auth-clients", "optional") as server:
        assert server.secure("user").call("PING") == "PONG" and server.secure().call("PING") == "PONG"
        assert refused(server, "stranger") == "TLSV1_ALERT_UNKNOWN_CA"
    for options in ((), ("--tls-ca", "authority.crt", "--tls-auth-clients", "no")):
        with SecureServer(*options) as server:
            assert server.secure().call("PING") == "PONG" and server.secure("stranger").call("PING") == "PONG"


# ---- Limits and rights ----


def test_the_password_and_protected_mode():
    def body(path):
        with SecureServer("--password-file", path) as server:
            client = server.secure()
            expect(client, ("GET a", Error("NOAUTH Authentication required.")))
            assert client.call("AUTH", "secret word") == "OK" and client.call("GET", "a") is None

    with_password(body)
    address = own_address()
    if address is None:
        print("# there is no address but the loopback's")
        return
    with SecureServer("--bind", "0.0.0.0") as server:
        context = trusting()
        client = Client(server.tls_port, address, context=context)
        assert client.read().startswith("DENIED ") and client.is_at_end()


def test_a_client_that_does_not_read_holds_nobody():
    with SecureServer("--backlog", 1 << 20) as server:
        plain, greedy, subscriber = server.client(), server.secure(), server.secure()
        assert plain.call("SET", "a", b"x" * (1 << 20)) == "OK"
        assert subscriber.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        greedy.send(encoded("GET", "a") * 100)
        assert plain.call("PING") == "PONG"
        while plain.call("PUBLISH", "c", b"x" * 100000) == 1: # until it is cut off
            pass
        assert server.secure().call("PING") == "PONG"
        assert [len(greedy.read()) for _ in range(100)] == [1 << 20] * 100
        with contextlib.suppress(ssl.SSLError, ConnectionError, EOFError, AssertionError):
            while True:
                subscriber.read()
        until(lambda: server.info(plain)["connected_clients"] == "2")


# ---- Failing calls ----

# For the first clients, OpenSSL loads its algorithms.
WARM = 2


def use_secure_client(server):
    """What a client does. Returns whether its connection ended early; it never gets a wrong reply."""
    value, client = b"x" * 20000, None
    try:
        client = server.secure()
        for words, wanted in ((("SET", "a", value), "OK"), (("GET", "a"), value), (("SUBSCRIBE", "c"), [b"subscribe", b"c", 1])):
            got = client.call(*words)
            if isinstance(got, Error) and got.startswith("OOM "): # (a command may have no memory)
                return True
            assert got == wanted, (words, got)
        client.send(encoded("QUIT"))
        return client.read() != "OK" or not client.is_at_end()
    except (OSError, EOFError): # (also ssl.SSLError; an alert may be lost with the connection)
        return True
    finally:
        if client is not None:
            client.close()


def is_idle(server):
    """Asked by a client of its own, which may be the one that fails."""
    with contextlib.suppress(OSError, EOFError), contextlib.closing(server.client()) as client:
        text = client.call("INFO", "clients")
        return isinstance(text, bytes) and b"connected_clients:1\r\n" in text
    return False


def descriptors_of(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def descriptors_without_clients():
    """
    Of a server without failures, with its back end as the key: without memory for io_uring, a server has epoll. It has
    accepted on both ports, so both of them have their reserve.
    """
    with SecureServer("--confine", "off") as server, contextlib.closing(server.client()) as plain, contextlib.closing(server.secure()) as secure:
        assert plain.call("PING") == secure.call("PING") == "PONG"
        return {server.back_end: descriptors_of(server) - 2}


def failing(fault):
    """A server with a fault. When it has ended, the number of failures is in the file `report`, which confinement would forbid."""
    return SecureServer("--confine", "off", environment={"FAULTS": fault, "FAULTS_REPORT": file_of("report")}, says=True)


def failures():
    with open(file_of("report"), encoding="ascii") as file:
        return int(file.read())


def use_while_it_fails(fault, descriptors):
    """
    At most one client is disconnected, or the server does not start. Without clients, it has at most as many descriptors as
    one without failures. (After a failed accept it may have one less: its reserve is opened again with the next connection.)
    Returns the number of failures.
    """
    server = failing(fault)
    try:
        served = [] if server.tls_port is None else [not use_secure_client(server) for _ in range(WARM)]
        until(lambda: server.process.poll() is not None or is_idle(server))
        if server.process.poll() is not None:
            assert server.wait() == 1 and server.said().startswith("kv: ") and not any(served), (server.said(), served)
            return failures()
        served += [not use_secure_client(server) for _ in range(3)]
        assert served.count(False) <= 1, served
        until(lambda: is_idle(server))
        until(lambda: descriptors_of(server) <= descriptors.get(server.back_end, sys.maxsize))
        status = server.end()
        assert status == 0 and server.said() == "", (status, server.said())
        return failures()
    finally:
        server.process.kill() # (if it has not ended)


def allocations_with(clients):
    """Of OpenSSL, with so many clients. They are only counted."""
    server = failing(f"openssl:1:0:{1 << 30}")
    assert not any(use_secure_client(server) for _ in range(clients))
    assert server.end() == 0
    return failures()


def test_each_call_fails():
    """One at a time; for the program linked with faults."""
    if not Server.program.endswith("_faults"):
        print("# for the program that is linked with faults")
        return
    descriptors = descriptors_without_clients()
    first, later = allocations_with(0), allocations_with(WARM)
    for name, error in (("malloc", 12), ("calloc", 12), ("realloc", 12), ("aligned_alloc", 12), ("accept4", 24), ("epoll_ctl", 12),
                        ("recv", 104), ("send", 104), ("openssl", 12)):
        n, hits = first if name == "openssl" else 1, 1
        while hits != 0:
            try:
                hits = use_while_it_fails(f"{name}:{n}:{error}", descriptors)
            except Exception:
                print("#", name, n)
                raise
            if name == "openssl": # (those for the first clients may be what all connections need)
                n += 11 if n < later else 53
            else:
                n += 1 if n < 20 else n // 10 # (later ones are similar)


# ---- Options ----


def test_options_that_do_not_go_together():
    with open(file_of("nothing"), "w", encoding="ascii") as file:
        file.write("no certificate\n")
    for options, status, said in (
        (("--tls-port", 0), 2, "--tls-port needs --tls-cert"),
        (("--tls-cert", "server.pem"), 2, "--tls-cert needs --tls-port"),
        (("--tls-key", "server.key"), 2, "--tls-key needs --tls-port"),
        (("--tls-ca", "authority.crt"), 2, "--tls-ca needs --tls-port"),
        (("--tls-auth-clients", "no"), 2, "--tls-auth-clients needs --tls-port"),
        (("--port", "none"), 2, "without a port there must be --tls-port or --unix-socket"),
        (("--tls-port", 0, "--tls-cert", "server.pem", "--tls-auth-clients", "yes"), 2, "--tls-auth-clients needs --tls-ca"),
        (("--tls-port", 0, "--tls-cert", "server.pem", "--tls-ca", "authority.crt", "--tls-auth-clients", "often"), 2,
         "--tls-auth-clients takes yes, no or optional, not often"),
        (("--tls-port", 70000, "--tls-cert", "server.pem"), 2, "--tls-port"),
        (("--tls-port", 0, "--tls-cert", "missing.pem"), 1, "kv: missing.pem: No such file or directory\n"),
        (("--tls-port", 0, "--tls-cert", "nothing.pem"), 1, "kv: nothing.pem: "),
        (("--tls-port", 0, "--tls-cert", "server.crt", "--tls-key", "user.key"), 1, "kv: server.crt: "),
        (("--tls-port", 0, "--tls-cert", "server.pem", "--tls-ca", "missing.pem"), 1, "kv: missing.pem: No such file or directory\n"),
    ):
        got, text = run_rejected(*options)
        assert got == status and said in text and text.count("\n") <= 3, (options, got, text)


def test_which_ports():
    with SecureServer(certificate=("--tls-cert", "server.crt", "--tls-key", "server.key")) as server:
        expect(server.client(), ("CONFIG GET tls-cert-file", [b"tls-cert-file", b"server.crt"]),
               ("CONFIG GET tls-key-file", [b"tls-key-file", b"server.key"]),
               ("CONFIG GET tls-port", [b"tls-port", str(server.tls_port).encode()]),
               ("CONFIG SET tls-port 1", Error("ERR CONFIG SET failed (possibly related to argument 'tls-port') - can't set immutable config")))
        assert server.secure().call("PING") == "PONG"
    with Server("--port", "none", "--tls-port", 0, "--tls-cert", "server.pem") as server:
        client = Client(server.port, context=trusting())
        expect(client, ("PING", "PONG"), ("CONFIG GET port", [b"port", b"0"]))
    path = file_of("a", "socket")
    with Server("--unix-socket", path, "--tls-port", 0, "--tls-cert", "server.pem") as server:
        port = int(server.process.stdout.readline().split()[-1])
        assert server.process.stdout.readline().split()[-2:] == [b"at", path.encode()]
        for client in (server.client(), Client(port, context=trusting()), Client(None, path=path)):
            assert client.call("PING") == "PONG"
    process = subprocess.Popen([Server.program, "--port", "none", "--unix-socket", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline().split()[-2:] == [b"at", path.encode()]
    assert Client(None, path=path).call("PING") == "PONG"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


if __name__ == "__main__":
    sys.argv[1] = os.path.abspath(sys.argv[1])
    if shutil.which("openssl") is None:
        print("# there is no openssl")
        sys.exit(77)
    try:
        make_authority("authority")
        make_authority("others")
        for one, signer in (("server", "authority"), ("user", "authority"), ("stranger", "others")):
            make_certificate(one, signer)
        os.chdir(directory)
        run([value for name, value in list(globals().items()) if name.startswith("test_")])
    finally:
        shutil.rmtree(directory)
