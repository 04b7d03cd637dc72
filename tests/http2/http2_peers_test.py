#!/usr/bin/python3
"""HTTP/2 with third-party clients: http2_peers_test.py HTTP2_SERVER HAS_TLS

curl, nghttp and h2load, each where it is installed, with prior knowledge and by ALPN. TAP.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

server, has_tls = sys.argv[1], sys.argv[2] == "1" and shutil.which("openssl") is not None
number = failures = 0
directory = tempfile.mkdtemp()
LARGE = bytes(ord("a") + i % 26 for i in range(1000000))


def report(name, run, *needs):
    """Runs a test, or reports why it is skipped."""
    global number, failures
    number += 1
    missing = [need for need in needs if not (has_tls if need == "TLS" else shutil.which(need))]
    if missing:
        print(f"ok {number} - {name} # SKIP no {missing[0]}")
        return
    try:
        run()
        print(f"ok {number} - {name}")
    except Exception as error:
        failures += 1
        print(f"not ok {number} - {name}")
        for line in f"{type(error).__name__}: {error}".splitlines()[:20]:
            print(f"# {line}")


class Server:
    """The server of bide. Returns its addresses without and with TLS."""

    def __enter__(self):
        files = [directory + "/cert.pem", directory + "/key.pem"] if has_tls else []
        self.process = subprocess.Popen([server] + files, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ports = self.process.stdout.readline().split()
        return ["http://127.0.0.1:" + ports[0].decode()] + ["https://127.0.0.1:" + port.decode() for port in ports[1:]]

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        status = self.process.wait(60)
        assert kind is not None or status == 0, f"the server has ended with {status}"


def run(*command, **options):
    return subprocess.run(command, capture_output=True, timeout=120, check=True, **options).stdout


def curl(address, version):
    def it():
        with Server() as addresses:
            base = addresses[address]
            flags = ["curl", "-sk", version]
            answer = run(*flags, "-w", "%{http_version} %{http_code}", base + "/hello")
            expected = b"hello1.1 200" if version == "--http1.1" else b"hello2 200"
            assert answer == expected, answer
            assert run(*flags, base + "/large") == LARGE
            assert run(*flags, "--data-binary", "@-", base + "/echo", input=LARGE) == LARGE
            assert run(*flags, "-w", "%{http_code}", "-o", "/dev/null", base + "/nowhere") == b"404"
            if version == "--http2-prior-knowledge":  # (curl 7.88 then fails with several requests at once, with any server)
                return
            urls = " ".join(f"{base}/{'large' if i % 4 == 0 else 'hello'}" for i in range(40)).split()
            many = run(*flags, "--parallel", "-w", "%{http_code}\n", *sum((["-o", "/dev/null", url] for url in urls), []))
            assert many.split() == [b"200"] * 40, many
    return it


def nghttp():
    with Server() as addresses:
        answer = run("nghttp", "-v", "--no-dep", addresses[0] + "/trailer").decode()
        assert "x-sum: 4" in answer and "END_STREAM" in answer, answer
        answer = run("nghttp", "-n", "-s", "--no-dep", "-m", "50", addresses[0] + "/large").decode()
        assert len(re.findall(r" 200 +976K /large", answer)) == 50, answer


def h2load(address, path, requests, clients, streams):
    def it():
        with Server() as addresses:
            answer = run("h2load", "-n", str(requests), "-c", str(clients), "-m", str(streams), addresses[address] + path).decode()
            assert f"{requests} succeeded, 0 failed, 0 errored" in answer, answer
    return it


def a_client_that_is_killed():
    with Server() as addresses:
        for _ in range(5):
            load = subprocess.Popen(["h2load", "-n", "1000000", "-c", "10", "-m", "50", addresses[0] + "/large"],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            while b"progress" not in load.stdout.readline() and load.poll() is None:
                break
            load.kill()
            load.wait()
        assert run("curl", "-s", "--http2-prior-knowledge", addresses[0] + "/hello") == b"hello"


def shutdown_ends_it():
    server = Server()
    addresses = server.__enter__()
    slow = subprocess.Popen(["curl", "-s", "--http2-prior-knowledge", addresses[0] + "/slow"], stdout=subprocess.PIPE)
    assert run("curl", "-s", "--http2-prior-knowledge", addresses[0] + "/hello") == b"hello"
    server.__exit__(None)
    slow.wait(60)


if has_tls:
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
        directory + "/key.pem", "-out", directory + "/cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1")
print("1..11")
report("curl has prior knowledge", curl(0, "--http2-prior-knowledge"), "curl")
report("curl speaks HTTP/1.1 to the same port", curl(0, "--http1.1"), "curl")
report("curl agrees on it by ALPN", curl(1, "--http2"), "curl", "TLS")
report("curl agrees on HTTP/1.1 by ALPN", curl(1, "--http1.1"), "curl", "TLS")
report("nghttp sees trailers and many streams", nghttp, "nghttp")
report("h2load: many streams", h2load(0, "/hello", 20000, 10, 100), "h2load")
report("h2load: many connections", h2load(0, "/hello", 5000, 500, 2), "h2load")
report("h2load: large responses", h2load(0, "/large", 500, 5, 20), "h2load")
report("h2load: with TLS", h2load(1, "/large", 200, 5, 20), "h2load", "TLS")
report("a client that is killed leaves nothing", a_client_that_is_killed, "h2load", "curl")
report("the server stops during a request", shutdown_ends_it, "curl")
shutil.rmtree(directory)
sys.exit(1 if failures else 0)
