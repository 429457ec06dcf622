"""A real server on its own socket, in memory. The tests are skipped if none is installed."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.waiting import LIMIT_S

SERVERS = [name for name in ("redis-server", "valkey-server") if shutil.which(name)]


class Running:
    """A running server; `url` is that of its socket."""

    def __init__(self, program, folder, *options):
        self._program, self._options = program, options
        self.folder = Path(folder)
        self.socket = self.folder / "socket"
        self.url = f"unix://{self.socket}"
        self.start()

    def start(self):
        options = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", ""]
        self.process = subprocess.Popen(
            [self._program, *options, *self._options], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
        )
        self.client = None
        until = time.monotonic() + LIMIT_S
        while not self._answers():
            if time.monotonic() > until or self.process.poll() is not None:
                self.process.kill()
                self.process.wait()
                raise AssertionError("the server does not come up")
            time.sleep(0.02)

    def _answers(self):
        import redis

        try:
            self.client = redis.Redis(unix_socket_path=str(self.socket))
            return self.client.ping()
        except redis.exceptions.ConnectionError:
            return False

    def stop(self, *, kill=False):
        self.client.close()
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="session", params=SERVERS or ["none"])
def program(request):
    """The program of a server."""
    if request.param == "none":
        pytest.skip("no redis-server or valkey-server is installed")
    pytest.importorskip("redis", reason='the package redis is missing: pip install "likewise[redis]"')
    return request.param


@pytest.fixture(scope="session")
def running(program):
    """A server for all tests, which use different prefixes."""
    with tempfile.TemporaryDirectory(prefix="likewise-redis-") as folder:
        server = Running(program, folder)
        yield server
        server.stop()


@pytest.fixture
def start(program):
    """Start a separate server for a test, with options."""
    servers = []
    with tempfile.TemporaryDirectory(prefix="likewise-redis-") as folder:

        def begin(*options):
            servers.append(Running(program, folder, *options))
            return servers[-1]

        yield begin
        for server in servers:
            if server.process.poll() is None:
                server.stop()


@pytest.fixture
def open_index(running, request):
    """Open an index under a prefix for this test."""
    from likewise.redis import RedisIndex

    opened = []

    def begin(recipe=None, **options):
        options = {"prefix": request.node.name.translate({ord(c): "-" for c in "{}[]"})[:100], "threads": 1, **options}
        opened.append(RedisIndex(options.pop("url", running.url), recipe, **options))
        return opened[-1]

    running.client.flushall()
    yield begin
    for index in opened:
        index.close()
