"""Every operation, in process: the answers are those of the library."""

import json
from pathlib import Path

import pytest

import likewise
from likewise.errors import InvalidInput

pytest.importorskip("fastapi", reason="needs likewise[server]")
pytest.importorskip("httpx2", reason="needs likewise[client]")

from starlette.testclient import TestClient

from likewise.service import Settings, create_app
from tests.command import likewise_command
from tests.service.http.answers import PAGES, problem

SECRETS = {right: f"a secret of the right {right}" for right in ("read", "write", "admin")}


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
        near = client.post(f"{PAGES}/neighbors", json={"text": texts[1]}).json()
        assert near == {"neighbors": [one._asdict() for one in index.neighbors(texts[1])], "truncated": False}
        removal = client.post(f"{PAGES}/remove", json={"doc_id": "d0"}).json()
        assert removal == index.remove("d0")._asdict() | {"promoted": ["d1"], "moved": []}


def test_stored_texts_are_returned_on_request(begin):
    client = begin(max_decoded_bytes=200)
    client.put("/v1/collections/texts", json={"store": "text"})
    texts, place = {"a": "one fine day in May, we left", "b": "something else entirely"}, "/v1/collections/texts"
    for doc_id, text in texts.items():
        client.post(f"{place}/add", json={"doc_id": doc_id, "text": text})
    client.post(f"{PAGES}/add", json={"doc_id": "a", "text": texts["a"]})
    assert "text" not in client.post(f"{place}/get", json={"doc_id": "a"}).json()
    assert client.post(f"{place}/get", json={"doc_id": "a", "with_text": True}).json()["text"] == texts["a"]
    asked = {"doc_ids": ["b", "nobody"], "with_text": True}
    found, missing = client.post(f"{place}/get/batch", json=asked).json()["documents"]
    assert (found["text"], missing) == (texts["b"], None)
    asked = {"text": texts["a"], "with_text": True}
    near = client.post(f"{place}/neighbors", json=asked).json()["neighbors"]
    assert [(one["doc_id"], one["text"]) for one in near] == [("a", texts["a"])]
    lines = json.dumps(asked) + "\n" + json.dumps({"text": texts["b"]})
    headers = {"content-type": "application/x-ndjson"}
    answer = client.post(f"{place}/neighbors/batch", content=lines, headers=headers).text.splitlines()
    assert ["text" in json.loads(line)["neighbors"][0] for line in answer] == [True, False]
    # This collection stores no texts.
    near = client.post(f"{PAGES}/neighbors", json=asked).json()["neighbors"]
    assert [one["text"] for one in near] == [None]
    client.post(f"{place}/add", json={"doc_id": "long", "text": "word " * 30 + texts["a"]})
    client.post(f"{place}/add", json={"doc_id": "longer", "text": "word " * 30 + texts["b"]})
    asked = {"doc_ids": ["long", "longer"], "with_text": True}
    assert "ask for fewer" in problem(client.post(f"{place}/get/batch", json=asked), "invalid", "with_text")["detail"]


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
    near = client.post(f"{PAGES}/neighbors/batch", json={**texts, "k": 1}).json()["results"]
    assert [one["neighbors"][0]["doc_id"] for one in near] == [str(i) for i in range(20)]
    gone = client.post(f"{PAGES}/remove/batch", json=ids).json()["removals"]
    assert [one and one["doc_id"] for one in gone] == ["3", None, "4"]
    for verb, line in [("check", {"text": "x"}), ("get", {"doc_id": "5"}), ("group", {"doc_id": "5"}),
                       ("neighbors", {"text": "x"}), ("remove", {"doc_id": "nobody"})]:  # fmt: skip
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
    """Requests that are decided together fail one by one."""
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
        # Once begun, they wait for their turn.
        await asyncio.sleep(0)
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


def test_the_name_of_a_field_elsewhere_is_answered_with_that_of_the_service(begin):
    client = begin()
    for body, field, meant in (
        ({"id": "a", "text": "b"}, "id", "doc_id"),
        ({"doc_id": "a", "body": "b"}, "body", "text"),
    ):
        answer = client.post(f"{PAGES}/add", json=body)
        problem(answer, "invalid", field)
        assert answer.json()["detail"].endswith(f"; did you mean {meant}?")
    for path, body, takes in (
        ("add", {"doc_id": "a", "text": "b", "other": 1}, "doc_id, text"),
        ("check", {"doc_id": "a", "text": "b"}, "text"),
        ("check", {"id": "a", "text": "b"}, "text"),
    ):
        answer = client.post(f"{PAGES}/{path}", json=body)
        problem(answer, "invalid", next(iter(body.keys() - {*takes.split(", ")})))
        assert answer.json()["detail"].endswith(f"; this request takes {takes}")


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
    # A trailing slash deletes nothing.
    assert client.delete(f"{PAGES}/").status_code in (404, 405)
    assert client.get(PAGES).status_code == 200
    problem(client.post("/v1/collections/other/check", json={"text": "x"}), "unknown-collection")
    assert client.put("/v1/collections/other", json={}).json()["ttl_s"] is None
    problem(client.put("/v1/collections/renewed", json={"ttl_from": "last_seen"}), "invalid", "ttl_from")
    made = client.put("/v1/collections/renewed", json={"ttl_s": 5, "ttl_from": "last_seen"})
    assert made.json()["stats"]["ttl_from"] == "last_seen"
    client.delete("/v1/collections/renewed")
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


@pytest.mark.parametrize("is_relative", [False, True])
def test_a_collection_that_cannot_be_opened_is_named(begin, tmp_path, monkeypatch, is_relative):
    client = begin()
    client.app.state.service.close()
    held = likewise.Index(tmp_path / "served" / "pages")
    monkeypatch.chdir(tmp_path)
    place = Path("served") if is_relative else tmp_path / "served"
    again = TestClient(create_app(place, Settings(allowed_hosts=("testserver",))))
    assert "pages" in problem(again.get("/readyz"), "store")["detail"]
    problem(again.post(f"{PAGES}/check", json={"text": "x"}), "store", "collection")
    broken = again.get("/v1/collections").json()["broken"]
    assert set(broken) == {"pages"}
    assert str(tmp_path) not in broken["pages"]
    assert again.get("/healthz").status_code == 200
    held.close()


def test_requests_to_a_collection_that_is_deleted_meanwhile(begin):
    import asyncio

    client = begin()
    service = client.app.state.service
    pages = service.collection("pages")

    async def converse():
        pages._reading._num_threads = 0
        waiting = asyncio.create_task(pages.check(["x"]))
        # Once begun, they wait for their turn.
        await asyncio.sleep(0)
        service.delete("pages")
        pages._reading._num_threads = 2
        pages._reading._begin(asyncio.get_running_loop())
        late = [pages.check(["x"]), pages.check_and_add(["a"], ["x"]), pages.ask(pages.index.get, "a")]
        return await asyncio.gather(waiting, *late, return_exceptions=True)

    assert [one.kind for one in asyncio.run(converse())] == ["unknown-collection"] * 4


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
    with pytest.raises(InvalidInput, match="not a directory"):
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
        ({"preset": "magic"}, "recipe.preset"),
        ("magic", "recipe"),
        ("strict" * 20, ...),
        ({"preset": ["strict"]}, ...),
        ({"preset": "templates"}, "weights"),
        ({"method": "magic"}, "recipe.method"),
        ({"method": "exact"}, "method"),
        ({"method": "simhash", "within": 11}, "recipe.within"),
        ({"method": "simhash", "within": "x"}, "recipe.within"),
        ({"method": "minhash", "threshold": 7}, "recipe.threshold"),
        ({"method": "minhash", "num_slots": 4096, "bands": 2048, "rows": 2}, "recipe.bands"),
        ({"method": "minhash", "weights_id": "ab"}, "recipe.weights_id"),
        ({"method": "minhash", "tokenizer": "os.system"}, "recipe.tokenizer"),
        ({"method": "minhash", "tokens": "user"}, "recipe.tokenizer"),
        ({"method": "minhash", "weights": "idf"}, "weights"),
        ({"method": "minhash", "unheard": 1}, "recipe.unheard"),
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


@pytest.mark.parametrize(
    ("given", "fields", "options"),
    [
        ({"method": "minhash"}, {"method": "minhash"}, ["--method", "minhash"]),
        ({}, {"keep": "first"}, []),
        (None, {"keep": "first"}, []),
        ("strict", {"recipe": "strict"}, ["--preset", "strict"]),
        (
            {"preset": "strict", "threshold": 0.9},
            {"recipe": likewise.Recipe.preset("strict", threshold=0.9)},
            ["--preset", "strict", "--threshold", "0.9"],
        ),
        ({"threshold": 0.7}, {"threshold": 0.7}, ["--threshold", "0.7"]),
        ({"within": 3}, {"within": 3}, ["--within", "3"]),
        ({"recall": 0.9}, {"recall": 0.9}, ["--recall", "0.9"]),
    ],
)
def test_fields_make_one_recipe_over_http_in_python_and_on_the_command_line(begin, tmp_path, given, fields, options):
    client = begin()
    assert client.put("/v1/collections/more", json={"recipe": given}).status_code == 201
    found = client.get("/v1/collections/more").json()
    with likewise.Index(tmp_path / "python", **fields) as index:
        assert found["recipe"] == index.recipe.to_dict()
        assert found["recipe_id"] == index.recipe.recipe_id
    done = likewise_command("index", "create", tmp_path / "command", *options)
    assert done.status == 0, done.err
    with likewise.Index(tmp_path / "command") as index:
        assert found["recipe_id"] == index.recipe.recipe_id
    if given is not None:
        planned = client.post("/v1/plan", json={"recipe": given}).json()["recipe"]
        assert planned.get("threshold") == found["recipe"].get("threshold")


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
