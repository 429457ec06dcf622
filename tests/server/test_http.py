"""The service in process: every operation, every limit, every error by its stable type."""

import base64
import gzip
import json

import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter

pytest.importorskip("fastapi", reason="needs likewise[server]")
pytest.importorskip("httpx2", reason="needs likewise[client]")

from starlette.testclient import TestClient

from likewise.server import Settings, create_app
from likewise.server.gate import Rates
from likewise.server.keys import key_of, line_of, new_key, read_keys
from likewise.server.problems import TYPES
from likewise.server.run import check_address

PAGES = "/v1/collections/pages"
SECRETS = {right: f"a secret of the right {right}" for right in ("read", "write", "admin")}


@pytest.fixture
def begin(tmp_path):
    """A client of a service with these settings and one collection, `pages`."""
    contexts = []

    def begun(path=None, *, recipe=None, headers=None, **settings):
        settings.setdefault("allowed_hosts", ("testserver",))
        settings.setdefault("has_request_log", False)
        app = create_app(path or tmp_path / "served", Settings(**settings))
        client = TestClient(app, headers=headers)
        contexts.append(client.__enter__())
        if path is None and not settings.get("keys"):
            made = client.put(PAGES, json={"recipe": recipe or {"method": "simhash", "within": 3}})
            assert made.status_code == 201, made.text
        return client

    yield begun
    for client in contexts:
        client.__exit__(None, None, None)


def problem(answer, kind, field=...):
    """The answer is this problem, in the one shape."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    shape = answer.json()
    assert list(shape) == ["type", "title", "detail", "field"]
    assert (shape["type"], answer.status_code) == (kind, TYPES[kind].status), shape
    assert shape["title"] == TYPES[kind].title
    if field is not ...:
        assert shape["field"] == field, shape
    return shape


def test_verdicts_are_those_of_an_index(begin, tmp_path):
    client = begin()
    texts = ["one fine day in spring", "One fine day, in spring!", "", "something else", ""]
    with likewise.Index(tmp_path / "alone", likewise.Recipe.simhash(within=3)) as index:
        for i, text in enumerate(texts):
            assert client.post(f"{PAGES}/check", json={"text": text}).json() == index.check(text)._asdict()
            found = client.post(f"{PAGES}/check-and-add", json={"doc_id": f"d{i}", "text": text})
            assert found.json() == index.check_and_add(f"d{i}", text)._asdict()
        for i in range(len(texts)):
            assert client.post(f"{PAGES}/get", json={"doc_id": f"d{i}"}).json() == index.get(f"d{i}")._asdict() | {
                "arrival_s": client.post(f"{PAGES}/get", json={"doc_id": f"d{i}"}).json()["arrival_s"]
            }
        group = client.post(f"{PAGES}/group", json={"doc_id": "d1"}).json()
        assert group == {
            "leader_id": "d0", "is_leader_gone": False, "num_members": 1, "member_ids": ["d1"], "truncated": False,
        }  # fmt: skip
        near = client.post(f"{PAGES}/neighbours", json={"text": texts[1]}).json()
        assert near == {"neighbours": [one._asdict() for one in index.neighbours(texts[1])], "truncated": False}
        removal = client.post(f"{PAGES}/remove", json={"doc_id": "d0"}).json()
        assert removal == index.remove("d0")._asdict() | {"promoted": ["d1"], "moved": []}


def test_batches_in_json_and_in_lines(begin):
    client = begin()
    documents = [{"doc_id": i, "text": f"text of its own, number {i} of kind {i * i * 7}"} for i in range(20)]
    first = client.post(f"{PAGES}/check-and-add/batch", json={"documents": documents}).json()["verdicts"]
    assert [verdict["doc_id"] for verdict in first] == [str(i) for i in range(20)]
    lines = "\n".join(json.dumps(document) for document in documents) + "\n\n"
    headers = {"content-type": "application/x-ndjson"}
    again = client.post(f"{PAGES}/add/batch", content=lines, headers=headers)
    assert again.headers["content-type"] == "application/x-ndjson"
    found = [json.loads(line) for line in again.text.splitlines()]
    assert found == [{**verdict, "added": False} for verdict in first]
    texts = {"texts": [document["text"] for document in documents]}
    checked = client.post(f"{PAGES}/check/batch", json=texts).json()["verdicts"]
    assert [verdict["kept_id"] for verdict in checked] == [str(i) for i in range(20)]
    ids = {"doc_ids": ["3", "nobody", 4]}
    got = client.post(f"{PAGES}/get/batch", json=ids).json()["documents"]
    assert [one and one["doc_id"] for one in got] == ["3", None, "4"]
    groups = client.post(f"{PAGES}/group/batch", json=ids).json()["groups"]
    assert [one and one["leader_id"] for one in groups] == ["3", None, "4"]
    near = client.post(f"{PAGES}/neighbours/batch", json={**texts, "limit": 1}).json()["results"]
    assert [one["neighbours"][0]["doc_id"] for one in near] == [str(i) for i in range(20)]
    gone = client.post(f"{PAGES}/remove/batch", json=ids).json()["removals"]
    assert [one and one["doc_id"] for one in gone] == ["3", None, "4"]
    for verb, line in [("check", {"text": "x"}), ("get", {"doc_id": "5"}), ("group", {"doc_id": "5"}),
                       ("neighbours", {"text": "x"}), ("remove", {"doc_id": "nobody"})]:  # fmt: skip
        answer = client.post(
            f"{PAGES}/{verb}/batch", content=json.dumps(line) + "\n" + json.dumps(line), headers=headers
        )
        assert len(answer.text.splitlines()) == 2, (verb, answer.text)
    assert client.post(f"{PAGES}/check/batch", content=b"", headers=headers).text == ""


def test_a_bad_line_ends_a_stream_after_those_before_it(begin):
    client = begin(max_batch=2)
    good = [json.dumps({"doc_id": f"d{i}", "text": f"text {i}"}) for i in range(5)]
    headers = {"content-type": "application/x-ndjson"}
    answer = client.post(f"{PAGES}/add/batch", content="\n".join([*good, '{"doc_id": 7}', good[0]]), headers=headers)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.status_code == 200
    assert [line.get("doc_id") for line in lines] == ["d0", "d1", "d2", "d3", "d4", None]
    assert (lines[-1]["type"], lines[-1]["field"]) == ("invalid", "text")
    assert lines[-1]["detail"].startswith("line 6:")
    problem(client.post(f"{PAGES}/add/batch", content="{", headers=headers), "bad-request")


def test_one_bad_document_spoils_its_own_request_only(begin):
    """Requests that are decided together are blamed one by one."""
    import asyncio

    client = begin()
    pages = client.app.state.service.collection("pages")
    assert client.post(f"{PAGES}/add", json={"doc_id": "a", "text": "first"}).status_code == 200

    async def together():
        pages._writing._num_threads = 0
        asked = [
            asyncio.create_task(pages.check_and_add(ids, texts))
            for ids, texts in [
                (["b"], ["second"]), (["a"], ["not first"]), (["c", "d", "a"], ["x", "y", "not first"]),
                (["e", "e"], ["one", "two"]), (["f"], ["last"]),
            ]
        ]  # fmt: skip
        await asyncio.sleep(0.01)
        pages._writing._num_threads = 1
        pages._writing._begin(asyncio.get_running_loop())
        return await asyncio.gather(*asked, return_exceptions=True)

    found = asyncio.run(together())
    assert [type(one).__name__ for one in found] == ["list", "Problem", "Problem", "Problem", "list"]
    assert [found[i].field for i in (1, 2, 3)] == ["doc_id", "documents.2.doc_id", "documents.1.doc_id"]
    assert [found[i][0]["seq"] for i in (0, 4)] == [2, 3]
    got = client.post(f"{PAGES}/get/batch", json={"doc_ids": ["a", "b", "c", "d", "e", "f"]}).json()["documents"]
    assert [one and one["doc_id"] for one in got] == ["a", "b", None, None, None, "f"]
    problem(client.post(f"{PAGES}/add", json={"doc_id": "a", "text": "other"}), "conflicting-document", "doc_id")


def test_collections_are_made_described_and_deleted(begin, tmp_path):
    client = begin()
    shown = client.get(PAGES).json()
    assert (shown["name"], shown["num_documents"], shown["recipe"]["within"]) == ("pages", 0, 3)
    problem(client.put(PAGES, json={}), "collection-exists", "collection")
    made = client.put("/v1/collections/other", json={"store": "text", "ttl_s": 3600})
    assert (made.status_code, made.json()["store"], made.json()["ttl_s"]) == (201, "text", 3600)
    assert [one["name"] for one in client.get("/v1/collections").json()["collections"]] == ["other", "pages"]
    for name in ("Pages", "..", ".hidden", "a" * 65, "-x", "a%2Fb", "%00", "a b"):
        answer = client.put(f"/v1/collections/{name}", json={})
        assert answer.status_code in (404, 405, 422), (name, answer.text)
    assert sorted(entry.name for entry in (tmp_path / "served").iterdir()) == ["lives.json", "other", "pages"]
    client.post("/v1/collections/other/add", json={"doc_id": "a", "text": "x"})
    assert client.post("/v1/collections/other/compact").json() == {"status": "ok"}
    assert client.post("/v1/collections/other/verify", json={"full": True}).json() == {"problems": []}
    assert client.delete("/v1/collections/other").json() == {"deleted": "other"}
    problem(client.get("/v1/collections/other"), "unknown-collection", "collection")
    # A slash too many deletes nothing.
    assert client.delete(f"{PAGES}/").status_code in (404, 405)
    assert client.get(PAGES).status_code == 200
    problem(client.post("/v1/collections/other/check", json={"text": "x"}), "unknown-collection")
    assert client.put("/v1/collections/other", json={}).json()["ttl_s"] is None
    assert sorted(entry.name for entry in (tmp_path / "served").iterdir()) == ["lives.json", "other", "pages"]


def test_collections_are_there_again(begin, tmp_path):
    client = begin(recipe={"method": "minhash", "threshold": 0.7})
    client.put("/v1/collections/short", json={"ttl_s": 5})
    client.post(f"{PAGES}/add", json={"doc_id": "a", "text": "one fine day in spring"})
    client.app.state.service.close()
    (tmp_path / "served" / "notes.txt").write_text("of somebody")
    (tmp_path / "served" / ".removed-x-1").mkdir()
    (tmp_path / "served" / "no-index").mkdir()
    again = TestClient(create_app(tmp_path / "served", Settings(allowed_hosts=("testserver",))))
    found = {one["name"]: one for one in again.get("/v1/collections").json()["collections"]}
    assert sorted(found) == ["pages", "short"]
    assert (found["short"]["ttl_s"], found["pages"]["recipe"]["threshold"]) == (5, 0.7)
    assert again.post(f"{PAGES}/check", json={"text": "one fine day in spring"}).json()["kept_id"] == "a"
    assert not (tmp_path / "served" / ".removed-x-1").exists()
    again.app.state.service.close()


def test_a_collection_that_cannot_be_opened_is_named(begin, tmp_path):
    client = begin()
    client.app.state.service.close()
    held = likewise.Index(tmp_path / "served" / "pages")
    again = TestClient(create_app(tmp_path / "served", Settings(allowed_hosts=("testserver",))))
    assert "pages" in problem(again.get("/readyz"), "store")["detail"]
    problem(again.post(f"{PAGES}/check", json={"text": "x"}), "store", "collection")
    assert "pages" in again.get("/v1/collections").json()["broken"]
    assert again.get("/healthz").status_code == 200
    held.close()


def test_snapshots(begin, tmp_path):
    client = begin()
    client.post(f"{PAGES}/add", json={"doc_id": "a", "text": "x y z"})
    made = client.post(f"{PAGES}/snapshots")
    assert made.status_code == 201
    name = made.json()["snapshot"]
    assert client.get(f"{PAGES}/snapshots").json() == {"snapshots": [name]}
    with likewise.Index(tmp_path / "served" / ".snapshots" / "pages" / name) as copy:
        assert copy.get("a").seq == 1
    for other in ("%2e%2e", name[:-1], "x", ""):
        assert client.delete(f"{PAGES}/snapshots/{other}").status_code in (404, 405), other
    assert client.delete(f"{PAGES}/snapshots/{name}").json() == {"deleted": name}
    assert client.get(f"{PAGES}/snapshots").json() == {"snapshots": []}


def test_one_index_is_served_alone(begin, tmp_path):
    with likewise.Index(tmp_path / "Seen it.lw", likewise.Recipe.simhash(within=3)) as index:
        index.add("a", "one fine day")
    client = begin(tmp_path / "Seen it.lw")
    assert [one["name"] for one in client.get("/v1/collections").json()["collections"]] == ["seen-it"]
    url = "/v1/collections/seen-it"
    assert client.post(f"{url}/check-and-add", json={"doc_id": "b", "text": "one fine day"}).json()["kept_id"] == "a"
    problem(client.put("/v1/collections/more", json={}), "read-only")
    problem(client.delete(url), "read-only")
    problem(client.post(f"{url}/snapshots"), "read-only")


def test_read_only_reads_beside_the_writer(begin, tmp_path):
    with likewise.Index(tmp_path / "c" / "pages", likewise.Recipe.simhash(within=3)) as index:
        index.add("a", "one fine day")
        client = begin(tmp_path / "c", is_read_only=True)
        assert client.post(f"{PAGES}/check", json={"text": "one fine day"}).json()["kept_id"] == "a"
        index.add("b", "another day altogether")
        assert client.post(f"{PAGES}/check", json={"text": "another day altogether"}).json()["kept_id"] == "b"
        for verb, body in [("add", {"doc_id": "c", "text": "x"}), ("remove", {"doc_id": "a"}), ("compact", None)]:
            problem(client.post(f"{PAGES}/{verb}", json=body), "read-only")
        problem(client.delete(PAGES), "read-only")


def test_what_cannot_be_served(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match="it is a file"):
        create_app(tmp_path / "file")


def test_compare_and_plan_are_those_of_the_library(begin):
    client = begin()
    given = {"a": "one fine day", "b": "one rainy day"}
    assert client.post("/v1/compare", json=given).json() == json.loads(
        json.dumps(likewise.compare("one fine day", "one rainy day").to_dict())
    )
    fields = {"method": "simhash", "within": 5}
    found = client.post("/v1/compare", json={**given, "recipe": fields}).json()
    assert found["recipe"]["within"] == 5
    planned = client.post("/v1/plan", json={"recipe": {"method": "minhash", "threshold": 0.8}}).json()
    assert planned["recall"] >= 0.95
    assert planned["recipe"]["bands"] * planned["recipe"]["rows"] <= 128


@pytest.mark.parametrize(
    ("recipe", "field"),
    [
        ({}, "recipe.method"),
        ({"method": "magic"}, "recipe.method"),
        ({"method": "exact"}, "method"),
        ({"method": "simhash", "within": 11}, "recipe.within"),
        ({"method": "simhash", "within": "x"}, "recipe.within"),
        ({"method": "minhash", "threshold": 7}, "recipe.threshold"),
        ({"method": "minhash", "num_slots": 4096, "bands": 2048, "rows": 2}, "recipe.bands"),
        ({"method": "minhash", "weights_id": "ab"}, "recipe.weights_id"),
        ({"method": "minhash", "tokenizer": "os.system"}, "recipe.tokenizer"),
        ({"method": "minhash", "weights": "idf"}, "weights"),
        ({"method": "minhash", "unheard": 1}, "recipe"),
        ({"method": ["minhash"]}, ...),
        ({"method": "minhash", "fold": {"a": 1}}, ...),
        ({"method": "minhash", "seed": 1e300}, ...),
        ({"method": "minhash", "keep": "longest"}, "keep"),
    ],
)
def test_recipes_that_are_refused(begin, recipe, field):
    client = begin()
    problem(client.put("/v1/collections/more", json={"recipe": recipe}), "invalid", field)
    assert [one["name"] for one in client.get("/v1/collections").json()["collections"]] == ["pages"]


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
        assert field is None or found.startswith(field), (body, found)
    documents = [{"doc_id": i, "text": "x"} for i in range(4)]
    problem(client.post(f"{add}/batch", json={"documents": documents}), "invalid", "documents")
    problem(client.post(f"{add}/batch", json={"documents": []}), "invalid", "documents")
    found = problem(
        client.post(f"{add}/batch", json={"documents": [documents[0], {"doc_id": 1, "text": 1}]}), "invalid"
    )
    assert found["field"].startswith("documents.1.text")
    problem(client.post(f"{PAGES}/neighbours", json={"text": "x", "limit": 6}), "invalid", "limit")
    problem(client.post(f"{PAGES}/neighbours", json={"text": "x", "limit": 0}), "invalid", "limit")
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
        # Kept documents that differ in one word of many, which a radius of 3 lets stand beside each other at times.
        words = [f"word{j}" for j in range(100)]
        words[i * 5 : i * 5 + 3] = [f"other{i}-{j}" for j in range(3)]
        client.post(f"{PAGES}/add", json={"doc_id": f"k{i}", "text": " ".join(words)})
    near = client.post(f"{PAGES}/neighbours", json={"text": "one and the same", "limit": 1}).json()
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


def test_keys_have_rights(begin, tmp_path):
    keys = tuple(key_of(secret, name=right, right=right) for right, secret in SECRETS.items())
    client = begin(keys=keys)
    bearer = {right: {"authorization": f"Bearer {secret}"} for right, secret in SECRETS.items()}
    assert client.put(PAGES, json={}, headers=bearer["admin"]).status_code == 201
    tried = {
        "read": [("POST", f"{PAGES}/check", {"text": "x"}), ("GET", PAGES, None), ("GET", "/metrics", None),
                 ("POST", "/v1/compare", {"a": "x", "b": "y"}), ("GET", "/docs", None), ("GET", "/openapi.json", None)],
        "write": [("POST", f"{PAGES}/add", {"doc_id": "a", "text": "x"}), ("POST", f"{PAGES}/remove", {"doc_id": "a"})],
        "admin": [("PUT", "/v1/collections/more", {}), ("POST", f"{PAGES}/snapshots", None),
                  ("DELETE", "/v1/collections/more", None)],
    }  # fmt: skip
    order = list(SECRETS)
    for needed, requests in tried.items():
        for method, path, body in requests:
            for other in [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {SECRETS['read'][:-1]}"}]:
                problem(client.request(method, path, json=body, headers=other), "unauthorized")
            for right in order:
                answer = client.request(method, path, json=body, headers=bearer[right])
                if order.index(right) < order.index(needed):
                    problem(answer, "forbidden")
            assert answer.status_code < 300 or path.endswith("remove"), (path, answer.text)
    for path in ("/healthz", "/livez", "/readyz"):
        assert client.get(path).status_code == 200
    basic = base64.b64encode(f"anybody:{SECRETS['read']}".encode()).decode()
    assert client.get(PAGES, headers={"authorization": f"Basic {basic}"}).status_code == 200
    for broken in ("Basic !", "Basic", "Digest x", "\xff"):
        problem(client.get(PAGES, headers={"authorization": broken.encode("latin-1")}), "unauthorized")
    assert "www-authenticate" in client.get(PAGES).headers


def test_a_key_is_looked_at_before_the_body(begin):
    client = begin(keys=(key_of(SECRETS["read"], name="reader", right="read"),))
    pulled = []

    def chunks():
        for i in range(3):
            pulled.append(i)
            yield b"x"

    async def receive():
        raise AssertionError("the body was read")

    sent = []

    async def send(message):
        sent.append(message)

    import asyncio

    for headers, status in [([], 401), ([(b"authorization", b"Bearer " + SECRETS["read"].encode())], 403)]:
        sent.clear()
        scope = {
            "type": "http", "method": "POST", "path": f"{PAGES}/add", "headers": headers, "query_string": b"",
            "client": ("10.0.0.1", 1), "http_version": "1.1", "scheme": "http", "root_path": "", "server": ("x", 80),
        }  # fmt: skip
        asyncio.run(client.app(scope, receive, send))
        assert sent[0]["status"] == status


def test_only_its_own_names_reach_a_service_without_keys(begin):
    client = begin(allowed_hosts=("testserver", "Pages.Example"))
    for host in ("localhost", "localhost:99", "127.0.0.1:1", "[::1]:8", "pages.example"):
        assert client.get("/v1/collections", headers={"host": host}).status_code == 200, host
    for host in ("evil.example", "localhost.evil.example", "", "127.0.0.1.evil", "[::2]"):
        problem(client.get("/v1/collections", headers={"host": host}), "unknown-host", "host")
    for site in ("cross-site", "same-site"):
        answer = client.post(f"{PAGES}/add", json={"doc_id": "a", "text": "x"}, headers={"sec-fetch-site": site})
        problem(answer, "cross-site")


def test_too_many_requests(begin, monkeypatch):
    client = begin(max_requests_per_second=3)
    answers = [client.get("/v1/collections") for _ in range(8)]
    assert answers[-1].headers["retry-after"] == "1"
    problem(answers[-1], "too-many-requests")
    assert client.get("/healthz").status_code == 200
    now = [0.0]
    monkeypatch.setattr("likewise.server.gate.time.monotonic", lambda: now[0])
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
        await asyncio.sleep(5)

    async def converse():
        first = asyncio.create_task(service.worked(long))
        await asyncio.sleep(0.01)
        return await asyncio.gather(service.worked(long), first, return_exceptions=True)

    found = asyncio.run(converse())
    assert [one.kind for one in found] == ["overloaded", "deadline"]
    assert service._num_at_work == 0
    release = threading.Event()
    pages = service.collection("pages")
    check = pages.index.check_batch
    monkeypatch.setattr(pages.index, "check_batch", lambda texts: release.wait(5) and check(texts))
    problem(client.post(f"{PAGES}/check", json={"text": "x"}), "deadline")
    release.set()
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


def test_the_description_is_whole(begin):
    client = begin()
    found = client.get("/openapi.json").json()
    operations = [one for methods in found["paths"].values() for one in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names) >= 29
    add = found["paths"]["/v1/collections/{collection}/check-and-add/batch"]["post"]
    assert sorted(add["requestBody"]["content"]) == ["application/json", "application/x-ndjson"]
    schema = found["components"]["schemas"]["Documents"]["properties"]["documents"]
    assert schema["maxItems"] == 1000
    page = client.get("/docs")
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert "http://" not in page.text.replace("http://www.w3.org", "")
    assert "https://" not in page.text
    for name in ("check-and-add/batch", "conflicting-document", "maxItems 1000"):
        assert name in page.text
    assert client.get("/docs.css").headers["content-type"].startswith("text/css")


def test_keys_are_kept_as_hashes(tmp_path):
    secret, key = new_key("crawler", "write")
    path = tmp_path / "keys.txt"
    path.write_text("# who may do what\n\n" + line_of(key) + "reader read " + "0" * 64 + " # later\n")
    assert secret not in path.read_text()
    assert [one.name for one in read_keys(path)] == ["crawler", "reader"]
    assert read_keys(path)[0] == key_of(secret, name="crawler", right="write")
    for text in ("a read\n", f"a all {'0' * 64}\n", f"a read {'0' * 63}\n", f"A read {'0' * 64}\n",
                 f"a read {'0' * 64}\na read {'1' * 64}\n"):  # fmt: skip
        path.write_text(text)
        with pytest.raises(InvalidInput):
            read_keys(path)
    for name, right in [("a", "all"), ("a b", "read")]:
        with pytest.raises(InvalidParameter):
            new_key(name, right)
    with pytest.raises(InvalidParameter, match="16 characters"):
        key_of("short")


def test_other_addresses_need_a_key():
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        check_address(host, Settings())
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""):
        with pytest.raises(InvalidParameter, match="can be reached by others"):
            check_address(host, Settings())
        check_address(host, Settings(keys=(key_of(SECRETS["read"]),)))


def test_settings_are_checked():
    with pytest.raises(InvalidParameter, match="max_batch"):
        Settings(max_batch=0)
    with pytest.raises(InvalidParameter, match="deadline_s"):
        Settings(deadline_s=float("nan"))
