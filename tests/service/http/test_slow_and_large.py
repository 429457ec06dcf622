"""Slow, silent, greedy or many clients: the service stays up and answers the others."""

import contextlib
import gzip
import http.client
import itertools
import json
import threading
import time
import zlib

import pytest

from tests.service.http.conftest import Service
from tests.service.http.sockets import JSON, answer, ask, connect, head, received, status_of

pytestmark = pytest.mark.rounds

_NUMBER = itertools.count()


def service_of(tmp_path_factory, **settings):
    """Start a service for the tests of this file, since each start takes a second."""
    pytest.importorskip("fastapi", reason="needs likewise[server]")
    service = Service(tmp_path_factory.mktemp("served") / "served", max_body_bytes=1 << 20, **settings)
    yield service
    assert service.stop() == (0, "")


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """Start a service with a small limit on bodies."""
    yield from service_of(tmp_path_factory)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """Start a service with short deadlines; on a busy machine it may cut off any client."""
    yield from service_of(tmp_path_factory, receive_s=1.5, send_s=1)


@pytest.fixture
def served(patient):
    """Return the patient service, and the path of a new collection."""
    path = f"/v1/collections/pages-{next(_NUMBER)}"
    assert ask(patient, "PUT", path, {})[0] == 201
    yield patient, path
    patient.close_connections()


@pytest.fixture
def hurried(impatient):
    """Return the impatient service, and the path of a new collection."""
    path = f"/v1/collections/pages-{next(_NUMBER)}"
    assert answered(lambda: ask(impatient, "PUT", path, {})) in (201, 409)
    yield impatient, path
    impatient.close_connections()


def answered(attempt, unwanted=408):
    """Return the status of a request to an impatient service, repeated if it was cut off."""
    for _ in range(100):
        with contextlib.suppress(OSError, http.client.HTTPException):
            status = attempt()[0]
            if status != unwanted:
                return status
    return None


def memory_bytes(service):
    """Return the anonymous memory of the service, in bytes."""
    with open(f"/proc/{service.process.pid}/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("RssAnon"))


def test_slow_heads_bodies_and_readers_are_cut_off(hurried):
    """Each client waits for its connection to be cut, and would otherwise wait forever."""
    service, pages = hurried
    # Half a head, then silence; a byte now and then; an endless head.
    silent, dripping, endless = connect(service), connect(service), connect(service)
    silent.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ")
    with contextlib.suppress(OSError):
        for letter in itertools.chain(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ", itertools.repeat(ord("1"))):
            dripping.sendall(bytes([letter]))
            time.sleep(0.1)
    assert received(silent) == b""
    assert received(dripping) == b""
    with contextlib.suppress(OSError):
        for _ in range(100):
            endless.sendall(b"x-more: " + b"x" * 8000)
    assert status_of(received(endless)) in (400, 431, None)

    # A body that never arrives, and one that arrives too slowly.
    def send_part(part):
        slow = connect(service)
        slow.sendall(head(service, "POST", f"{pages}/check", JSON.strip(), "content-length: 1000") + part)
        return answer(slow)

    for part in (b"", b'{"text": "x'):
        assert answered(lambda part=part: send_part(part), unwanted=None) == 408

    # The second request of a connection has a deadline too.
    def begin_second():
        second = connect(service)
        second.sendall(head(service, "GET", "/healthz"))
        status = answer(second)[0]
        second.sendall(b"GET /healthz HTTP/1.1\r\n")
        return status, received(second)

    assert answered(begin_second) == 200
    # Answers that nobody reads are dropped.
    deaf = connect(service, receive_bytes=4096)
    deaf.sendall(
        head(service, "POST", f"{pages}/get/batch", "content-type: application/x-ndjson", "transfer-encoding: chunked")
    )
    texts = json.dumps({"documents": [{"doc_id": f"{'name ' * 90}{i}", "text": "same"} for i in range(1000)]}).encode()

    def add():
        adding = connect(service)
        length = f"content-length: {len(texts)}"
        adding.sendall(head(service, "POST", f"{pages}/add/batch", JSON.strip(), length) + texts)
        return answer(adding)

    assert answered(add) == 200
    lines = b"".join(json.dumps({"doc_id": f"{'name ' * 90}{i}"}).encode() + b"\n" for i in range(1000))
    cut = False
    for _ in range(200):
        try:
            deaf.sendall(b"%x\r\n" % len(lines) + lines + b"\r\n")
        except OSError:
            cut = True
            break
    assert cut
    assert answered(lambda: ask(service, "GET", "/readyz")) == 200


def test_a_head_that_comes_at_once_has_the_same_limit(served):
    service, pages = served
    long = "x" * (70 << 10)
    body = b'{"text": "x"}'
    for request in (
        head(service, "GET", "/healthz", f"x-long: {long}"),
        head(service, "GET", f"/{long}"),
        head(service, "POST", f"{pages}/check", JSON.strip(), f"content-length: {len(body)}", f"x-long: {long}") + body,
    ):
        connection = connect(service)
        connection.sendall(request)
        status, content = answer(connection)
        assert (status, json.loads(content)["type"]) == (431, "head-too-large")
    # A small head is accepted even if a large body is in the same bytes.
    body = json.dumps({"text": long}).encode()
    connection = connect(service)
    connection.sendall(head(service, "POST", f"{pages}/check", JSON.strip(), f"content-length: {len(body)}") + body)
    assert answer(connection)[0] == 200


@pytest.mark.parametrize("is_chunked", [False, True])
def test_clients_that_send_all_before_they_read_see_why_a_body_is_refused(served, is_chunked):
    """Sixteen times the limit: the connection stays open until such a client has read its answer."""
    service, pages = served
    body = b'{"text": "' + b"x" * (16 << 20) + b'"}'
    parts = (body[start : start + 65536] for start in range(0, len(body), 65536))
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    with contextlib.closing(connection):
        given = parts if is_chunked else body
        headers = {"content-type": "application/json"}
        connection.request("POST", f"{pages}/check", given, headers, encode_chunked=is_chunked)
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["type"]) == (413, "too-large")


def test_a_client_that_asks_before_it_sends_is_refused_at_once(served):
    service, pages = served
    asking = connect(service)
    lines = [JSON.strip(), "content-length: 9000000", "expect: 100-continue"]
    asking.sendall(head(service, "POST", f"{pages}/check", *lines))
    # Not 100: the body is not requested.
    assert answer(asking)[0] == 413


def test_bodies_without_end(served):
    service, pages = served
    # With a declared length: rejected before any byte is read, and the connection is closed.
    announced = connect(service)
    announced.sendall(head(service, "POST", f"{pages}/check", JSON.strip(), "content-length: 1073741824"))
    status, content = answer(announced)
    assert (status, json.loads(content)["type"]) == (413, "too-large")
    # In chunks: reading continues for a while, so that the client sees its answer, but not forever.
    chunked = connect(service)
    chunked.sendall(head(service, "POST", f"{pages}/check", JSON.strip(), "transfer-encoding: chunked"))
    sent = 0
    with contextlib.suppress(OSError):
        while sent < 1 << 31:
            chunked.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            sent += 65536
    assert sent < 1 << 30
    assert status_of(received(chunked)) in (413, None)
    # A hundred kilobytes that decompress to over a hundred megabytes.
    bomb = gzip.compress(b" " * (100 << 20), 9)
    for path, media in [("check", "application/json"), ("check/batch", "application/x-ndjson")]:
        packed = connect(service)
        lines = [f"content-type: {media}", "content-encoding: gzip", f"content-length: {len(bomb)}"]
        packed.sendall(head(service, "POST", f"{pages}/{path}", *lines) + bomb)
        status, content = answer(packed)
        assert (status, json.loads(content)["type"]) == (413, "too-large"), content
    assert memory_bytes(service) < 400 << 20
    assert ask(service, "GET", "/readyz")[0] == 200


@pytest.mark.slow
def test_ten_gigabytes_in_ten_megabytes_and_less(start):
    service, pages = start(max_body_bytes=64 << 20), "/v1/collections/pages"
    assert ask(service, "PUT", pages, {})[0] == 201
    squeeze = zlib.compressobj(9, wbits=31)
    block = squeeze.compress(b" " * (64 << 20))
    small = block + squeeze.flush()
    # A 64 MiB member repeated: ten gigabytes.
    whole = small * 160
    for path, media in [("check", "application/json"), ("check/batch", "application/x-ndjson")]:
        packed = connect(service)
        lines = [f"content-type: {media}", "content-encoding: gzip", f"content-length: {len(whole)}"]
        with contextlib.suppress(OSError):
            packed.sendall(head(service, "POST", f"{pages}/{path}", *lines) + whole)
        assert status_of(received(packed)) in (413, None)
        assert ask(service, "GET", "/readyz")[0] == 200
    assert memory_bytes(service) < 600 << 20


def test_a_refused_body_is_not_read(start):
    """With a wrong key, the service answers with the reason without waiting for the body."""
    service = start(keys={"read": "a-secret-of-sixteen-and-more"})
    pages = "/v1/collections/pages"
    refused = connect(service)
    refused.sendall(head(service, "POST", f"{pages}/check", JSON.strip(), "content-length: 8000000") + b"x" * 100)
    # The rest of the body never comes.
    status, content = answer(refused)
    assert (status, json.loads(content)["type"]) == (401, "unauthorized")
    # A client that first sends a whole body of moderate size also gets the answer.
    polite = connect(service)
    polite.sendall(head(service, "POST", f"{pages}/check", JSON.strip(), "content-length: 500000") + b"x" * 500_000)
    assert answer(polite)[0] == 401
    # A client that asks before it sends gets the answer at once.
    asking = connect(service)
    lines = [JSON.strip(), "content-length: 500000", "expect: 100-continue"]
    asking.sendall(head(service, "POST", f"{pages}/check", *lines))
    assert answer(asking)[0] == 401


@pytest.mark.slow
def test_many_silent_connections(start):
    service, pages = start(max_connections=1500), "/v1/collections/pages"
    assert ask(service, "PUT", pages, {})[0] == 201
    silent = [connect(service) for _ in range(2000)]
    assert {ask(service, "POST", f"{pages}/check", {"text": "x"})[0] for _ in range(50)} == {200}
    for one in silent:
        one.close()


def test_a_stream_is_answered_while_it_comes(served):
    """Lines are answered before the stream ends; a client that reads only afterwards gets all answers."""
    service, pages = served
    stream = connect(service)
    lines = ["content-type: application/x-ndjson", "transfer-encoding: chunked"]
    stream.sendall(head(service, "POST", f"{pages}/add/batch", *lines))

    def send(data):
        stream.sendall(b"%x\r\n" % len(data) + data + b"\r\n")

    send(b'{"doc_id": "a", "text": "one fine day"}\n{"doc_id": "b", ')
    reading = stream.makefile("rb")
    service.connections.append(reading)
    seen = b""
    while b'"a"' not in seen:
        seen += reading.readline()
    send(b'"text": "one fine day"}\n')
    while b'"b"' not in seen:
        seen += reading.readline()
    assert b'"kept_id":"a"' in seen
    many = b"".join(b'{"doc_id": "c%d", "text": "one fine day"}\n' % i for i in range(20_000))
    for start in range(0, len(many), 50_000):
        send(many[start : start + 50_000])
    stream.sendall(b"0\r\n\r\n")
    count = 0
    while line := reading.readline():
        count += line.startswith(b'{"doc_id":"c')
        if line == b"0\r\n":
            break
    assert count == 20_000
    assert ask(service, "GET", pages)[1]["num_documents"] == 20_002


def test_requests_behind_each_other_on_one_connection(served):
    service, pages = served
    body = b'{"text": "x"}'
    one = head(service, "POST", f"{pages}/check", JSON.strip(), f"content-length: {len(body)}") + body
    piped = connect(service)
    piped.sendall(one * 50)
    found = b""
    while found.count(b'"is_new":true') < 50:
        found += piped.recv(1 << 16)
    assert found.count(b"HTTP/1.1 200") == 50


def test_many_clients_add_at_once(served):
    """Of many threads that add one page, exactly one is told that it is new; all verdicts have different numbers."""
    service, pages = served
    found = []

    def add(number):
        for i in range(10):
            found.append(
                ask(service, "POST", f"{pages}/check-and-add", {"doc_id": f"{number}-{i}", "text": f"page {i}"})
            )

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {status for status, _ in found} == {200}
    assert sorted(verdict["seq"] for _, verdict in found) == list(range(1, 121))
    assert sum(verdict["is_new"] for _, verdict in found) == 10
