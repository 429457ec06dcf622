"""Services on real sockets; the tests are skipped without the extra."""

import contextlib
import json
import tempfile
import threading
from pathlib import Path

import pytest

import likewise
from tests.command import started
from tests.waiting import LIMIT_S

CHILD = Path(__file__).with_name("child.py")


class Service:
    """A running service: `url`, `log` as received so far, `port`."""

    def __init__(self, path, **settings):
        self.path = Path(path)
        self.process = started(CHILD, path, json.dumps(settings), cwd=Path(__file__).parents[3])
        self.log = []
        self.connections = []
        first = self.process.stderr.readline()
        if not first.startswith("{"):
            raise AssertionError(first + self.process.stderr.read())
        self.log.append(json.loads(first))
        assert self.log[0]["event"] == "listening", self.log
        self.url = self.log[0]["url"]
        self.port = int(self.url.rpartition(":")[2])
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            try:
                self.log.append(json.loads(line))
            except ValueError:
                self.log.append({"event": "not-json", "line": line})

    def client(self, collection=None, **options):
        options.setdefault("timeout_s", LIMIT_S)
        return likewise.Client(self.url, collection=collection, **options)

    def close_connections(self):
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._end()

    def stop(self):
        """Ask it to stop; return its status, and its standard output."""
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(timeout=LIMIT_S)
        return status, self._end()

    def _end(self):
        self.close_connections()
        self._reader.join(timeout=LIMIT_S)
        with contextlib.closing(self.process.stdout), contextlib.closing(self.process.stderr):
            return self.process.stdout.read()


@pytest.fixture
def start(tmp_path):
    """Start services; they stop with the test."""
    pytest.importorskip("fastapi", reason="needs likewise[server]")
    pytest.importorskip("httpx2", reason="needs likewise[client]")
    services = []

    def begin(path=None, **settings):
        services.append(Service(path or tmp_path / "served", **settings))
        return services[-1]

    yield begin
    for service in services:
        service.close_connections()
        if service.process.poll() is None:
            service.kill()


@pytest.fixture
def redis_server():
    """Start a Redis or Valkey server for a test."""
    from tests.index.redis.conftest import SERVERS, Running

    if not SERVERS:
        pytest.skip("no redis-server or valkey-server is installed")
    pytest.importorskip("redis", reason="needs likewise[redis]")
    with tempfile.TemporaryDirectory(prefix="likewise-redis-") as folder:
        server = Running(SERVERS[0], folder)
        yield server
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="session")
def running():
    """Start one service for all tests that tolerate each other: each uses its own collections."""
    pytest.importorskip("fastapi", reason="needs likewise[server]")
    pytest.importorskip("httpx2", reason="needs likewise[client]")
    with tempfile.TemporaryDirectory(prefix="likewise-server-") as folder:
        service = Service(Path(folder) / "served", durability="interval:1s", max_collections=2000)
        yield service
        status, output = service.stop()
        assert (status, output) == (0, "")
        assert not [line for line in service.log if line["event"] in ("failure", "not-json", "server-error")]


@pytest.fixture
def begin(tmp_path):
    """Return a client of a service in this process, with these settings and one collection, `pages`."""
    pytest.importorskip("fastapi", reason="needs likewise[server]")
    pytest.importorskip("httpx2", reason="needs likewise[client]")
    from starlette.testclient import TestClient

    from likewise.service import Settings, create_app

    contexts = []

    def begun(path=None, *, recipe=None, headers=None, **settings):
        settings.setdefault("allowed_hosts", ("testserver",))
        settings.setdefault("has_request_log", False)
        settings.setdefault("deadline_s", LIMIT_S)
        app = create_app(path or tmp_path / "served", Settings(**settings))
        client = TestClient(app, headers=headers)
        contexts.append(client.__enter__())
        if path is None and not settings.get("keys"):
            made = client.put("/v1/collections/pages", json={"recipe": recipe or {"method": "simhash", "within": 3}})
            assert made.status_code == 201, made.text
        return client

    yield begun
    for client in contexts:
        client.__exit__(None, None, None)
