"""Redis 7.0's own server, on a Unix socket, for tests that compare kv with it."""
import os
import shutil
import subprocess
import tempfile

from client import PATIENCE, Client, until


class Redis:
    """Starts redis-server, which must be installed. `path` is its socket."""

    def __init__(self, *options):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, "redis.sock")
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.path, "--save", "", "--dir", self.directory.name, *map(str, options)],
            stdout=subprocess.DEVNULL)
        until(self.accepts)

    def accepts(self):
        assert self.process.poll() is None, "redis-server ended"
        try:
            self.client().close()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def client(self):
        return Client(None, path=self.path)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.process.kill()
        self.process.wait(PATIENCE)
        self.directory.cleanup()


def has_redis():
    """False, with a note, if there is no redis-server of that version."""
    if shutil.which("redis-server") is None:
        print("skipped: redis-server is not installed")
        return False
    version = subprocess.run(["redis-server", "--version"], capture_output=True, check=True).stdout.decode()
    if " v=7.0." not in version:
        print("skipped: redis-server is not version 7.0:", version.strip())
        return False
    return True
