"""One key cannot use up resources that all keys share."""

import json

import pytest

pytest.importorskip("fastapi", reason="needs likewise[server]")
pytest.importorskip("httpx2", reason="needs likewise[client]")

from likewise.errors import InvalidParameter
from likewise.service import Settings
from likewise.service.collections.lanes import Budget
from likewise.service.collections.service import Service
from likewise.service.problems import Problem
from likewise.service.settings import key_of
from tests.service.http.sockets import answer, connect, head, received, status_of

SECRETS = {right: f"a-secret-of-the-right-{right}" for right in ("read", "write", "admin")}
CHECK = "/v1/collections/pages/check/batch"


def refused(budget, key, amount):
    with pytest.raises(Problem) as caught:
        budget.take(key, amount)
    return caught.value.kind, caught.value.detail


def test_a_budget_has_a_part_for_each_key():
    budget = Budget(10, "open streams", most_of_key=6)
    budget.take("a", 6)
    assert refused(budget, "a", 1) == ("too-many-requests", "the key a is at its limit of 6 open streams")
    budget.take("b", 3)
    assert refused(budget, "b", 2) == ("overloaded", "the service is at its limit of 10 open streams")
    budget.give_back("a", 1)
    budget.take("b", 2)
    for key, amount in (("a", 5), ("b", 5)):
        budget.give_back(key, amount)
    assert (budget.taken, budget._of_keys) == (0, {})
    Budget(10, "open streams").take("a", 10)


def test_where_there_are_several_keys_each_has_a_share(tmp_path):
    keys = tuple(key_of(secret, name=right, right=right) for right, secret in SECRETS.items())
    few = {"max_streams": 4, "max_concurrency": 8, "max_body_bytes": 100, "max_decoded_bytes": 300}
    service = Service(tmp_path, Settings(keys=keys, max_body_memory_bytes=400, **few))
    service.streams.take("read", 2)
    assert refused(service.streams, "read", 1)[0] == "too-many-requests"
    assert refused(service.at_work, "read", 5)[0] == "too-many-requests"
    # A body of the maximum size fits.
    service.body_memory.take("read", 300)
    assert refused(service.body_memory, "read", 1)[0] == "too-many-requests"
    # One key, or none, need not leave anything to others.
    for settings in (Settings(keys=keys[:1], **few), Settings(**few)):
        Service(tmp_path, settings).streams.take("read", 4)
    for share in (0, 1.1, float("nan")):
        with pytest.raises(InvalidParameter, match="max_key_share"):
            Settings(max_key_share=share)


def test_silent_streams_of_one_key_leave_room_for_others(start):
    service = start(keys=SECRETS, max_streams=8)

    def stream(right):
        connection = connect(service)
        key = f"authorization: Bearer {SECRETS[right]}"
        lines = ["content-type: application/x-ndjson", "transfer-encoding: chunked", key]
        connection.sendall(head(service, "POST", CHECK, *lines))
        return connection

    made = connect(service)
    key = f"authorization: Bearer {SECRETS['admin']}"
    made.sendall(
        head(service, "PUT", "/v1/collections/pages", "content-type: application/json", "content-length: 2", key)
        + b"{}"
    )
    assert answer(made)[0] == 201
    silent = [stream("read") for _ in range(10)]
    # Streams beyond the key's share are answered at once; the others wait for their lines.
    for connection in silent[4:]:
        status, content = answer(connection)
        assert (status, json.loads(content)["type"]) == (429, "too-many-requests")
    for right in ("write", "admin"):
        connection = stream(right)
        line = b'{"text": "one fine day"}\n'
        connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(line), line))
        status, content = answer(connection)
        assert (status, json.loads(content)["is_new"]) == (200, True)
    # A stream that ends lets another one of its key begin.
    silent[0].sendall(b"0\r\n\r\n")
    assert answer(silent[0])[0] == 200
    silent[0].close()
    line = b'{"text": "one fine day"}\n'
    following = stream("read")
    following.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(line), line))
    assert answer(following)[0] == 200


@pytest.mark.parametrize(
    "repeated", ["host: 127.0.0.1", "authorization: Bearer x", "content-type: text/plain", "idempotency-key: x"]
)
def test_headers_that_decide_are_given_once(running, repeated):
    connection = connect(running)
    name = repeated.partition(":")[0]
    connection.sendall(head(running, "GET", "/v1/collections", repeated, repeated, "connection: close"))
    found = received(connection)
    assert status_of(found) == 400
    assert json.loads(found.partition(b"\r\n\r\n")[2])["field"] == name
    # Other headers may be repeated.
    connection = connect(running)
    connection.sendall(head(running, "GET", "/v1/collections", "accept: a/b", "accept: c/d", "connection: close"))
    assert status_of(received(connection)) == 200
