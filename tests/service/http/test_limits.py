"""Every limit, and how it is reported: answers, log and counters."""

import dataclasses
import gzip
import json
import time
from types import SimpleNamespace

import pytest

from likewise.errors import InvalidParameter

pytest.importorskip("fastapi", reason="needs likewise[server]")
pytest.importorskip("httpx2", reason="needs likewise[client]")


from likewise.service import Settings
from likewise.service.guard.gate import Rates
from tests.service.http.answers import PAGES, problem
from tests.waiting import LIMIT_S

SECRETS = {right: f"a secret of the right {right}" for right in ("read", "write", "admin")}


def test_values_that_are_refused(begin):
    client = begin(max_document_characters=100, max_id_characters=10, max_batch=3, max_results=5)
    add = f"{PAGES}/check-and-add"
    for body, field in [
        ({"doc_id": "a" * 11, "text": "x"}, "doc_id"),
        ({"doc_id": "a", "text": "x" * 101}, "text"),
        ({"doc_id": None, "text": "x"}, "doc_id"),
        ({"doc_id": True, "text": "x"}, "doc_id"),
        ({"doc_id": 1.5, "text": "x"}, "doc_id"),
        ({"doc_id": "a", "text": 7}, "text"),
        ({"doc_id": "a"}, "text"),
        ({"doc_id": "a", "text": "x", "more": 1}, "more"),
        ([], None),
        ("x", None),
    ]:
        found = problem(client.post(add, json=body), "invalid")["field"]
        assert found == field, (body, found)
    documents = [{"doc_id": i, "text": "x"} for i in range(4)]
    problem(client.post(f"{add}/batch", json={"documents": documents}), "invalid", "documents")
    problem(client.post(f"{add}/batch", json={"documents": []}), "invalid", "documents")
    found = problem(
        client.post(f"{add}/batch", json={"documents": [documents[0], {"doc_id": 1, "text": 1}]}), "invalid"
    )
    assert found["field"] == "documents.1.text"
    problem(client.post(f"{PAGES}/neighbors", json={"text": "x", "k": 6}), "invalid", "k")
    problem(client.post(f"{PAGES}/neighbors", json={"text": "x", "k": 0}), "invalid", "k")
    assert len(client.get("/v1/collections").json()["collections"][0]["stats"]) > 5
    assert client.post(f"{PAGES}/get", json={"doc_id": 5}).status_code == 404
    problem(client.get("/v2"), "not-found")
    problem(client.put(f"{PAGES}/check", json={}), "method-not-allowed")
    for content in (
        b"{",
        b"",
        b"\xff",
        b'{"text": NaN}',
        b'{"text": "\\ud800"}',
        b'{"text": "\xed\xa0\x80"}',
        b"[" * 5000,
    ):
        answer = client.post(f"{PAGES}/check", content=content, headers={"content-type": "application/json"})
        assert answer.json()["type"] in ("bad-request", "invalid"), content
    for media in ("text/plain", "", "application/x-www-form-urlencoded", "application/json5"):
        answer = client.post(f"{PAGES}/check", content=b'{"text": "x"}', headers={"content-type": media})
        problem(answer, "unsupported-media-type", "content-type")


def test_answers_are_cut_and_say_so(begin):
    client = begin(max_results=5)
    documents = [{"doc_id": i, "text": "one and the same"} for i in range(9)]
    assert client.post(f"{PAGES}/add/batch", json={"documents": documents}).status_code == 200
    first = client.post(f"{PAGES}/group", json={"doc_id": 0}).json()
    assert (first["member_ids"], first["num_members"], first["truncated"]) == (list("12345"), 8, True)
    rest = client.post(f"{PAGES}/group", json={"doc_id": 0, "offset": 5}).json()
    assert (rest["member_ids"], rest["truncated"]) == (list("678"), False)
    assert client.post(f"{PAGES}/group/batch", json={"doc_ids": [0]}).json()["groups"] == [first]
    for i in range(12):
        # Kept documents that differ in one word of many: a radius of 3 sometimes keeps them all.
        words = [f"word{j}" for j in range(100)]
        words[i * 5 : i * 5 + 3] = [f"other{i}-{j}" for j in range(3)]
        client.post(f"{PAGES}/add", json={"doc_id": f"k{i}", "text": " ".join(words)})
    near = client.post(f"{PAGES}/neighbors", json={"text": "one and the same", "k": 1, "among": "candidates"}).json()
    assert near["truncated"] is False
    assert "likewise_query_truncated_total 2.0" in client.get("/metrics").text


def test_bodies_have_a_limit_plain_and_packed(begin):
    client = begin(max_body_bytes=2000, max_decoded_bytes=5000)
    check = f"{PAGES}/check"
    problem(client.post(check, json={"text": "x" * 2000}), "too-large")

    def chunks():
        for _ in range(10):
            yield b" " * 500

    json_type = {"content-type": "application/json"}
    problem(client.post(check, content=chunks(), headers=json_type), "too-large")
    packed = {**json_type, "content-encoding": "gzip"}
    body = json.dumps({"text": "x" * 4900}).encode()
    assert client.post(check, content=gzip.compress(body), headers=packed).status_code == 200
    two = gzip.compress(body[:100]) + gzip.compress(body[100:])
    assert client.post(check, content=two, headers=packed).status_code == 200
    problem(client.post(check, content=gzip.compress(body + b" " * 200), headers=packed), "too-large")
    problem(client.post(check, content=gzip.compress(body)[:-5], headers=packed), "bad-request", "content-encoding")
    problem(client.post(check, content=b"no gzip", headers=packed), "bad-request", "content-encoding")
    for coding in ("br", "deflate", "gzip, gzip"):
        answer = client.post(check, content=body[:100], headers={**json_type, "content-encoding": coding})
        problem(answer, "unsupported-media-type", "content-encoding")
    assert client.app.state.service.body_memory.taken == 0


def test_bodies_of_all_requests_have_a_limit(begin):
    client = begin(max_body_memory_bytes=1000)
    problem(client.post(f"{PAGES}/check", json={"text": "x" * 2000}), "overloaded")
    assert client.post(f"{PAGES}/check", json={"text": "x" * 200}).status_code == 200
    assert client.app.state.service.body_memory.taken == 0


def test_too_many_requests(begin, monkeypatch):
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], perf_counter=time.perf_counter)
    monkeypatch.setattr("likewise.service.guard.gate.time", clock)
    client = begin(max_requests_per_second=3)
    answers = [client.get("/v1/collections") for _ in range(8)]
    assert answers[-1].headers["retry-after"] == "1"
    problem(answers[-1], "too-many-requests")
    assert client.get("/healthz").status_code == 200
    rates = Rates(2)
    assert [rates.take("a") for _ in range(6)] == [True] * 4 + [False] * 2
    assert rates.take("b")
    now[0] = 1.0
    assert [rates.take("a") for _ in range(3)] == [True, True, False]


def test_too_much_at_work_and_too_long(begin, monkeypatch):
    import asyncio
    import threading

    client = begin(max_concurrency=1, deadline_s=0.2)
    service = client.app.state.service

    async def long():
        await asyncio.Event().wait()

    async def converse():
        first = asyncio.create_task(service.worked(long, "key"))
        # It is at work once it has been scheduled.
        await asyncio.sleep(0)
        return await asyncio.gather(service.worked(long, "key"), first, return_exceptions=True)

    found = asyncio.run(converse())
    assert [one.kind for one in found] == ["overloaded", "deadline"]
    assert service.at_work.taken == 0
    release = threading.Event()
    pages = service.collection("pages")
    check = pages.index.check_batch
    monkeypatch.setattr(pages.index, "check_batch", lambda texts: release.wait() and check(texts))
    problem(client.post(f"{PAGES}/check", json={"text": "x"}), "deadline")
    release.set()
    service.settings = dataclasses.replace(service.settings, deadline_s=LIMIT_S)
    assert client.post(f"{PAGES}/check", json={"text": "x"}).status_code == 200


def test_a_failure_of_ours_shows_no_text(begin, monkeypatch, capsys):
    client = begin()

    def fail(_):
        raise RuntimeError("the secret text of a document")

    monkeypatch.setattr(client.app.state.service.collection("pages").index, "check_batch", fail)
    answer = client.post(f"{PAGES}/check", json={"text": "the secret text of a document"})
    problem(answer, "internal", None)
    captured = capsys.readouterr()
    assert "secret" not in answer.text + captured.err + captured.out
    line = json.loads(captured.err.splitlines()[-1])
    assert (line["event"], line["kind"], captured.out) == ("failure", "RuntimeError", "")


def test_a_poisoned_collection_says_so(begin, monkeypatch):
    from likewise.errors import IndexPoisoned

    client = begin()

    def fail(*_):
        raise IndexPoisoned("a write failed")

    monkeypatch.setattr(client.app.state.service.collection("pages").index, "check_and_add_batch", fail)
    problem(client.post(f"{PAGES}/add", json={"doc_id": "a", "text": "x"}), "poisoned")
    problem(client.get("/readyz"), "store")
    assert 'likewise_poisoned{collection="pages"} 1.0' in client.get("/metrics").text
    assert client.post(f"{PAGES}/check", json={"text": "x"}).status_code == 200


def test_the_log_has_a_line_for_each_request(begin, capsys):
    client = begin(has_request_log=True)
    client.post(f"{PAGES}/add", json={"doc_id": "id\nof a line", "text": "the text of a document"})
    client.get("/nowhere%0A{}" + "x" * 500)
    captured = capsys.readouterr()
    lines = [json.loads(line) for line in captured.err.splitlines()]
    assert [line["status"] for line in lines] == [201, 200, 404]
    assert lines[1]["route"] == "/v1/collections/{collection}/add"
    assert lines[1]["bytes_in"] > 30
    assert len(lines[2]["path"]) == 300
    assert "the text" not in captured.err
    assert captured.out == ""


def test_counters(begin):
    client = begin()
    for i in range(3):
        client.post(f"{PAGES}/add", json={"doc_id": i, "text": "one and the same"})
    client.post(f"{PAGES}/check", json={"text": 1})
    found = client.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in [
        'likewise_documents{collection="pages"} 3.0',
        'likewise_verdicts_total{verdict="new"} 1.0',
        'likewise_verdicts_total{verdict="duplicate"} 2.0',
        'likewise_rejected_total{reason="invalid"} 1.0',
        'likewise_http_requests_total{code="200",method="POST",route="/v1/collections/{collection}/add"} 3.0',
        "likewise_commit_duration_seconds_count 3.0",
        'likewise_check_duration_seconds_count{op="check_and_add"} 3.0',
        'likewise_poisoned{collection="pages"} 0.0',
        'likewise_tail_documents{collection="pages"} 3.0',
    ]:
        assert line in found.text.splitlines(), line


def test_settings_are_checked():
    with pytest.raises(InvalidParameter, match="max_batch"):
        Settings(max_batch=0)
    with pytest.raises(InvalidParameter, match="deadline_s"):
        Settings(deadline_s=float("nan"))
