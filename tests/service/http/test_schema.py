"""Requests generated from the schema, and broken ones: the service does only what the schema states."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.http.sockets import ask, connect, head, received, status_of

PAGES = "/v1/collections/pages"
HERE = Path(__file__).parent


@pytest.fixture
def served(start):
    service = start(max_collections=400, durability="interval:1s")
    assert ask(service, "PUT", PAGES, {})[0] == 201
    assert ask(service, "POST", f"{PAGES}/add", {"doc_id": "a", "text": "one fine day"})[0] == 200
    return service


def run_schemathesis(service, phases, num_examples):
    pytest.importorskip("schemathesis", reason="needs schemathesis")
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(HERE / "schemathesis.toml"), "run",
        f"{service.url}/openapi.json", "--phases", phases, "--max-examples", str(num_examples), "--seed", "1",
        "--continue-on-failure", "--generation-database", "none",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def check_log(service):
    assert not [line for line in service.log if line["event"] in ("failure", "not-json", "server-error")]
    assert service.stop() == (0, "")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_phases_of_schemathesis(served):
    run_schemathesis(served, "examples,coverage,fuzzing,stateful", 60)
    check_log(served)


VERBS = ["check", "check-and-add", "add", "get", "group", "neighbors", "remove"]
VALUES = [
    None, True, 0, -1, 1.5, 1e308, 10**30, "", "x", "\x00", "a" * 3000, [], [[]], {}, {"doc_id": {}}, "\U0001f600",
]  # fmt: skip
WRECKS = [
    b"NaN", b"Infinity", b"-Infinity", b'"\\ud800"', b'"\\udc00x"', b"\xff\xfe", b'"\xed\xa0\x80"', b"1e999", b"-0",
    b'"\x01"', b"[" * 300 + b"]" * 300, b'{"a":' * 200, b"", b"nul", b"\x00", b"\xef\xbb\xbf{}",
    b'{"text":"a","text":"b"}',
]  # fmt: skip


def malformed(chance):
    """Return method, path, headers and body of a malformed request."""
    base = {
        "doc_id": "a", "text": "one fine day", "texts": ["x"], "doc_ids": ["a"],
        "documents": [{"doc_id": "a", "text": "x"}],
        "limit": 3, "offset": 0, "recipe": {"method": "minhash"}, "a": "x", "b": "y", "full": False,
    }  # fmt: skip
    verb = chance.choice([*VERBS, *(f"{verb}/batch" for verb in VERBS), "verify", "snapshots/x", "nothing", "check/"])
    name = chance.choice(["pages", "pages", "pages", "none", "%00", "..", "a b", "%ff", "x" * 300])
    path = f"/v1/collections/{name}/{verb}"
    path = chance.choice(
        [path, path, path, "/v1/compare", "/v1/plan", "/v1/collections/new", "/v1/", "//", "/v1/collections"]
    )
    method = chance.choice(["POST"] * 6 + ["PUT", "PATCH", "DELETE", "BREW"])
    fields = {name: base[name] for name in base if chance.random() < 0.4}
    name = chance.choice([*fields, "other"])
    match chance.randrange(4):
        case 0:
            fields[name] = chance.choice(VALUES)
            body = json.dumps(fields).encode()
        case 1:
            fields[name] = "@"
            body = json.dumps(fields).encode().replace(b'"@"', chance.choice(WRECKS))
        case 2:
            body = json.dumps(fields).encode()
            place = chance.randrange(len(body))
            body = body[:place] + bytes([chance.randrange(256)]) * chance.randrange(1, 4) + body[place + 1 :]
        case _:
            body = chance.choice([*WRECKS, json.dumps(chance.choice(VALUES)).encode(), chance.randbytes(30)])
    media = chance.choice(
        ["application/json"] * 5 + ["application/x-ndjson"] * 3 + ["text/plain", "", "\xff/\x7f", "a" * 900]
    )
    lines = [f"content-type: {media}"]
    if chance.random() < 0.1:
        lines.append(
            chance.choice(["content-encoding: gzip", "x: " + "y" * 70_000, "authorization: Basic ////", ": x"])
        )
    return method, path, lines, body


def send(service, method, path, lines, body):
    """Return status and body of the answer; unparsable requests may be cut off without one."""
    connection = connect(service)
    rows = [*lines, f"content-length: {len(body)}", "connection: close"]
    text = head(service, method, path, *rows)
    connection.sendall(text + body)
    raw = received(connection)
    service.close_connections()
    return status_of(raw), raw.partition(b"\r\n\r\n")[2]


def fuzz(service, num_requests, seed):
    chance = random.Random(seed)
    statuses = {}
    for _ in range(num_requests):
        asked = malformed(chance)
        try:
            status, content = send(service, *asked)
        except UnicodeEncodeError:
            continue
        except OSError:
            continue
        if status is None:
            continue
        assert status < 500, (asked, content)
        statuses[status] = statuses.get(status, 0) + 1
        if status >= 400 and asked[0] != "HEAD":
            assert set(json.loads(content)) == {"type", "title", "detail", "field"}, (asked, content)
    assert sum(count for status, count in statuses.items() if status >= 400) > 0.7 * num_requests, statuses
    assert ask(service, "GET", "/readyz")[0] == 200
    check_log(service)


def test_malformed_requests_get_answers(served):
    check_garbage(served)
    fuzz(served, 200, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_malformed_requests_get_answers(served):
    fuzz(served, 10_000, seed=2)


def check_garbage(served):
    """Check that bytes that are not requests get an error or nothing."""
    chance = random.Random(5)
    for garbage in [
        b"\x16\x03\x01\x02\x00" + chance.randbytes(200), b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 1000,
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"GET http://[ HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", b"GET \xff HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil\r\nconnection: close\r\n\r\n",
    ]:  # fmt: skip
        connection = connect(served)
        connection.sendall(garbage)
        connection.shutdown(1)
        status = status_of(received(connection))
        assert status is None or 300 <= status < 500, (garbage, status)
