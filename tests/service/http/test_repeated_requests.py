"""A request repeated with its idempotency key gets the first answer."""

import asyncio

import pytest

import likewise
from likewise.errors import InvalidInput

pytest.importorskip("fastapi", reason="needs likewise[server]")
pytest.importorskip("httpx2", reason="needs likewise[client]")

import httpx2

from likewise.service.client import ServiceError
from likewise.service.collections.lanes import Answers, Asked, Repeatable
from likewise.service.problems import Problem
from tests.service.http.answers import PAGES, problem

TEXT = "one and the same text"


def request(name, content=0):
    return Repeatable(("key", "/path", name), content)


def test_a_repeated_removal_gives_the_same_answer(begin):
    client = begin()
    documents = [{"doc_id": name, "text": TEXT} for name in "abc"]
    client.post(f"{PAGES}/add/batch", json={"documents": documents})
    key = {"idempotency-key": "first"}
    first = client.post(f"{PAGES}/remove", json={"doc_id": "a"}, headers=key)
    assert first.json()["promoted"] == ["b"]
    again = client.post(f"{PAGES}/remove", json={"doc_id": "a"}, headers=key)
    assert (again.status_code, again.json()) == (200, first.json())
    # Without the key, with another one, and with another body.
    problem(client.post(f"{PAGES}/remove", json={"doc_id": "a"}), "unknown-document")
    other = {"idempotency-key": "second"}
    problem(client.post(f"{PAGES}/remove", json={"doc_id": "a"}, headers=other), "unknown-document")
    problem(client.post(f"{PAGES}/remove", json={"doc_id": "b"}, headers=key), "invalid", "idempotency-key")
    assert client.post(f"{PAGES}/get", json={"doc_id": "b"}).status_code == 200
    for wrong in ("", "x" * 129, "two words"):
        answer = client.post(f"{PAGES}/remove", json={"doc_id": "b"}, headers={"idempotency-key": wrong})
        problem(answer, "invalid", "idempotency-key")
    # The answer to a removal of nothing is repeated too, although the document exists by then.
    key = {"idempotency-key": "third"}
    problem(client.post(f"{PAGES}/remove", json={"doc_id": "later"}, headers=key), "unknown-document")
    client.post(f"{PAGES}/add", json={"doc_id": "later", "text": TEXT})
    problem(client.post(f"{PAGES}/remove", json={"doc_id": "later"}, headers=key), "unknown-document")


def test_a_repeated_addition_gives_the_same_answer_and_adds_nothing_again(begin):
    client = begin()
    for path, body in [
        ("check-and-add", {"doc_id": "a", "text": TEXT}),
        ("add/batch", {"documents": [{"doc_id": "b", "text": TEXT}, {"doc_id": "c", "text": "another text"}]}),
    ]:
        key = {"idempotency-key": "same"}
        first = client.post(f"{PAGES}/{path}", json=body, headers=key)
        assert client.post(f"{PAGES}/{path}", json=body, headers=key).content == first.content
        assert b'"added":true' in first.content
        assert b'"added":true' not in client.post(f"{PAGES}/{path}", json=body).content
    # A document removed in between is not added again.
    assert client.post(f"{PAGES}/remove", json={"doc_id": "c"}).status_code == 200
    client.post(f"{PAGES}/{path}", json=body, headers=key)
    assert client.post(f"{PAGES}/get", json={"doc_id": "c"}).status_code == 404
    problem(client.post(f"{PAGES}/{path}", json={"documents": [{"doc_id": "d", "text": "x"}]}, headers=key), "invalid")


def test_a_repetition_in_the_same_batch_is_decided_once(begin):
    pages = begin().app.state.service.collection("pages")

    def asked(name, text, key, content=0):
        return Asked([name], [text], None, None if key is None else request(key, content))

    batch = [asked("a", TEXT, "1"), asked("b", TEXT, None), asked("a", TEXT, "1"), asked("c", "x", "1", content=5)]
    first, other, again, wrong = pages._add(batch)
    assert first[0]["added"]
    assert again is first
    assert other[0]["kept_id"] == "a"
    assert isinstance(wrong, Problem)
    assert pages._add(batch[:1]) == [first]


def test_a_removal_that_exceeded_its_deadline_is_continued(begin, monkeypatch):
    client = begin()
    index = client.app.state.service.collection("pages").index
    client.post(f"{PAGES}/add/batch", json={"documents": [{"doc_id": name, "text": TEXT} for name in "abc"]})
    remove = index.remove
    asked = []

    def slow(doc_id):
        asked.append(doc_id)
        if asked == ["a", "b"]:
            raise Problem("deadline", "the request exceeded its time limit")
        return remove(doc_id)

    monkeypatch.setattr(index, "remove", slow)
    key = {"idempotency-key": "same"}
    problem(client.post(f"{PAGES}/remove/batch", json={"doc_ids": ["a", "b"]}, headers=key), "deadline")
    found = client.post(f"{PAGES}/remove/batch", json={"doc_ids": ["a", "b"]}, headers=key).json()["removals"]
    assert [one["promoted"] for one in found] == [["b"], ["c"]]
    assert asked == ["a", "b", "b"]


def test_answers_are_kept_for_a_bounded_time_and_number():
    now = [0.0]
    answers = Answers(most_entries=10, kept_s=60, clock=lambda: now[0])
    answers.keep(None, ["x"], 1)
    assert answers.find(None) is None
    for number in range(8):
        answers.keep(request(str(number)), [number], 2)
    assert [answers.find(request(str(number))) for number in range(8)] == [None] * 3 + [[3], [4], [5], [6], [7]]
    now[0] = 30.0
    # The latest answer is kept whatever its size.
    answers.keep(request("large"), ["large"], 100)
    assert answers.find(request("7")) is None
    assert answers.find(request("large")) == ["large"]
    answers.keep(request("small"), ["small"], 1)
    assert answers.find(request("large")) is None
    # A partial answer is replaced.
    answers.keep(request("small"), ["small", "more"], 2)
    assert answers._num_entries == 2
    now[0] = 90.0
    assert answers.find(request("small")) == ["small", "more"]
    now[0] = 90.1
    assert answers.find(request("small")) is None
    answers.keep(request("next"), ["next"], 1)
    assert (len(answers._kept), answers._num_entries) == (1, 1)


class Cut(httpx2.HTTPTransport):
    """A connection that breaks after every other removal or addition, before the answer arrives."""

    num_cut = 0

    def handle_request(self, request):
        response = super().handle_request(request)
        if request.url.path.endswith(("remove", "check-and-add")):
            self.num_cut += 1
            if self.num_cut % 2:
                response.close()
                raise httpx2.ReadError("cut")
        return response


class AsyncCut(httpx2.AsyncHTTPTransport):
    num_cut = 0

    async def handle_async_request(self, request):
        response = await super().handle_async_request(request)
        if request.url.path.endswith(("remove", "check-and-add")):
            self.num_cut += 1
            if self.num_cut % 2:
                await response.aclose()
                raise httpx2.ReadError("cut")
        return response


def test_clients_know_what_was_done_over_a_cut_connection(running, monkeypatch):
    real, real_async = httpx2.Client, httpx2.AsyncClient
    monkeypatch.setattr(httpx2, "Client", lambda **options: real(**options, transport=Cut()))
    monkeypatch.setattr(httpx2, "AsyncClient", lambda **options: real_async(**options, transport=AsyncCut()))
    with running.client("cut") as client:
        client.create_collection("cut", likewise.Recipe.simhash(within=3))
        assert client.check_and_add("a", TEXT).added
        assert client.check_and_add("b", TEXT).added
        assert client.remove("a").promoted == ("b",)
        with pytest.raises(InvalidInput, match="no document"):
            client.remove("a")
        with pytest.raises(InvalidInput, match="no document"):
            client.remove("nobody")
        assert len(client) == 1

    async def converse():
        async with likewise.AsyncClient(running.url, collection="cut") as client:
            assert (await client.check_and_add("c", TEXT)).added
            assert (await client.remove("b")).promoted == ("c",)

    asyncio.run(converse())


def test_a_removal_whose_answer_is_lost_for_good_is_an_error_of_its_own(monkeypatch):
    """A service restarted between the attempts knows neither the document nor the answer."""
    errors = [httpx2.ReadError("cut")]

    def answer(_):
        if errors:
            raise errors.pop()
        return httpx2.Response(404, json={"type": "unknown-document", "detail": "no document has the id 'a'"})

    real = httpx2.Client
    transport = httpx2.MockTransport(answer)
    monkeypatch.setattr(httpx2, "Client", lambda **options: real(**options, transport=transport))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with likewise.Client("http://nowhere", collection="c") as client:
        with pytest.raises(ServiceError, match="may have removed it") as caught:
            client.remove("a")
        assert caught.value.kind == "uncertain"
        # A request that was never sent leaves no doubt.
        errors.append(httpx2.ConnectError("refused"))
        with pytest.raises(InvalidInput, match="no document"):
            client.remove("a")
