"""The pages over HTTP, without a browser: every view, hostile documents, odd requests, rights."""

import csv
import html
import io
import json
import os
import re
import shlex
import threading
from collections import Counter
from itertools import pairwise
from urllib.parse import parse_qs, quote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import Recipe
from likewise.batch.parts import PartRules, dedup_parts
from likewise.io.html import visible
from likewise.io.label_rows import id_of_cell
from likewise.runs.report import report
from likewise.runs.viewing.catalog import KINDS
from tests.command import likewise_command
from tests.runs.viewing.runs import HOSTILE, make_named_run, make_run
from tests.runs.viewing.test_drawing import Parsed
from tests.waiting import LIMIT_S

testing = pytest.importorskip("starlette.testclient", reason="needs likewise[server]")
pytest.importorskip("fastapi", reason="needs likewise[server]")

VIEWS = ["", "groups", "groups/1", "groups/1/pair/kept/kept", "threshold", "threshold/around", "threshold/pair/0",
         "compare", "near", "review", "review/next", "review/pairs", "review.csv", "decisions.csv"]  # fmt: skip
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


def client_of(path, **settings):
    from likewise.service import Settings, create_app

    app = create_app(path, Settings(has_request_log=False, **({"deadline_s": LIMIT_S} | settings)))
    return testing.TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=True)


@pytest.fixture(scope="module", autouse=True)
def patient():
    """Make pages wait until the groups are sorted, however long a busy machine takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.service.page.routes._WAIT_S", LIMIT_S)
        yield


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), store_pairs=0.2)


@pytest.fixture(scope="module")
def client(out):
    with client_of(out) as client:
        assert client.get("/look/out/").status_code == 200
        yield client


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_a_run(client, view):
    answer = client.get(f"/look/out/{view}")
    assert answer.status_code == 200, answer.text
    if not view.endswith(".csv"):
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        tags = set(Parsed(re.sub(r"<(meta|link|input)\b[^>]*>|<br>|<!doctype html>", "", answer.text)).tags)
        assert not {"img", "iframe", "style", "object"} & tags
        # Nothing that the content security policy forbids: no style, no handler, no script but the page's own.
        assert not re.search(r"<[^>]*\s(style|on\w+)=", answer.text)
        for script in re.findall(r"<script\b[^>]*>", answer.text):
            assert 'src="/look/page.js' in script or 'type="application/json"' in script


def test_the_first_page_goes_to_the_run(client):
    answer = client.get("/", follow_redirects=False)
    assert answer.status_code == 307
    assert answer.headers["location"] == "/look/out/"
    for asset in ("style.css", "page.js"):
        assert client.get(f"/look/{asset}").status_code == 200


def test_a_name_without_its_slash_leads_to_the_run(client):
    answer = client.get("/look/out", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (308, "/look/out/")
    assert client.get("/look/%2F%2Fevil.example", follow_redirects=False).status_code == 404
    assert client.get("/look/a%20b%3Fc", follow_redirects=False).headers["location"] == "/look/a%20b%3Fc/"
    assert client.get("/look/nobody").status_code == 404


def links_of(client, address):
    return [html.unescape(link) for link in re.findall(r'href="(/look/[^"]*)"', client.get(address).text)]


def test_all_links_of_all_pages_lead_somewhere(client):
    seen, waiting = set(), ["/look/out/"]
    while waiting and len(seen) < 150:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address)
        assert answer.status_code == 200, address
        if "html" in answer.headers["content-type"]:
            waiting += links_of(client, address)
    assert len(seen) > 60


def test_hostile_documents_stay_text(client):
    groups = client.get("/look/out/groups?q=onerror").text
    (link,) = [link for link in links_of(client, "/look/out/groups?q=onerror") if re.search(r"groups/\d+[?]", link)]
    assert "<b>hostile" not in groups
    group = client.get(link).text
    (pair,) = [link for link in links_of(client, link) if re.search(r"pair/\d+/kept", link)]
    for text in (group, client.get(pair).text):
        assert html.escape(HOSTILE[:60]) in text
        assert "<script>document" not in text
        # Form values are sent back unchanged.
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", text)
        assert "⟨U+202E⟩" in text


def test_odd_requests_are_answered_with_a_page(client):
    for address, status in (
        ("groups/0", 422), ("groups/999999999999999999999", 422), ("groups/1/pair/x/y", 422),
        ("groups/1/pair/-5/kept", 422), ("threshold/pair/999999", 422), ("document?id=nobody", 422),
        ("groups?at=garbage", 200), ("groups?at=%3C1e999:9", 200), ("groups?at=nan:nan", 200), ("groups?sort=%00", 200),
        ("groups?q=%ff%fe%00%22", 200), ("threshold?cut=nan", 200), ("threshold?cut=-inf", 200),
        ("threshold?cut=1e9", 200), ("groups/1?after=x", 200), ("nothing", 404),
    ):  # fmt: skip
        assert client.get(f"/look/out/{address}").status_code == status, address
    assert client.get("/look/other/").status_code == 404
    assert client.get(f"/look/{quote('<script>', safe='')}/").status_code == 404
    assert client.post("/look/out/compare", json={"a": 1}).status_code == 415
    assert client.post("/look/out/compare", data={"a": "x" * 200_001, "b": "y"}).status_code == 422
    assert client.post("/look/out/groups").status_code == 405
    assert client.post("/look/out/groups/sort", data={}).status_code == 422
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert (
        client.post("/look/out/compare", content="&".join(f"f{i}=1" for i in range(99)), headers=form).status_code
        == 400
    )
    assert client.post("/look/out/compare", content=b"a=%ff&b=\xff", headers=form).status_code in (200, 400)


def test_two_pasted_texts_are_compared(client):
    answer = client.post("/look/out/compare", data={"a": HOSTILE + " one", "b": HOSTILE + " two\r\nlines"})
    assert answer.status_code == 200
    assert "They match" in answer.text
    assert "<del>one</del>" in answer.text
    assert "<script>document" not in answer.text
    again = client.post("/look/out/compare", data={"a": "", "b": ""})
    assert "They match" in again.text


def test_what_is_near_a_pasted_text(client):
    answer = client.post(
        "/look/out/near", data={"text": "the old mill by the river was sold on monday to a baker who wants"}
    )
    assert answer.status_code == 200
    assert ">mill</bdi>" in answer.text
    assert answer.text.count('class="pair"') >= 6


def test_the_threshold_page_counts_without_a_script(client, out):
    import json

    summary = json.loads((out / "summary.json").read_text())
    own = client.get("/look/out/threshold").text
    assert f'<b id="kept">{summary["num_kept"]}</b>' in own
    assert "same as the run" in own
    data = json.loads(re.search(r'id="points">(.*?)</script>', own, re.S)[1])
    for at in (0, len(data["cuts"]) // 2, -1):
        text = client.get(f"/look/out/threshold?cut={data['cuts'][at]}").text
        assert f'<b id="kept">{data["kept"][at]}</b>' in text


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe.minhash(0.6, short_margin=0.75, fold="width", recall=0.99, seed=7, keep="longest", weights="none"),
        Recipe.simhash(within=12, bits=128, weights="count"),
        Recipe.minhash(0.5, bands=30, rows=2, weights="none"),
    ],
    ids=["minhash", "simhash", "own-bands"],
)
def test_the_command_of_the_threshold_page_makes_the_run_that_the_page_shows(tmp_path, recipe):
    out = make_run(tmp_path, recipe=recipe, store_pairs=0.3)
    with client_of(out) as client:
        own = client.get("/look/out/threshold").text
        data = json.loads(re.search(r'id="points">(.*?)</script>', own, re.S)[1])
        for cut in (data["own"], data["cuts"][len(data["cuts"]) // 2]):
            text = client.get(f"/look/out/threshold?cut={cut}").text
            command = html.unescape(re.search(r'<code id="command"[^>]*>(.*?)</code>', text, re.S)[1])
            link = html.unescape(re.search(r'id="recipe" href="([^"]*)" download="([^"]*)"', text)[1])
            name = re.search(r"--recipe (\S+)", command)[1]
            (tmp_path / name).write_text(client.get(link).text)
            again = Recipe.from_file(tmp_path / name).resolve()
            if cut == data["own"]:
                assert again.recipe_id == recipe.resolve().recipe_id
            arguments = shlex.split(command)
            assert arguments[:2] == ["likewise", "dedup"]
            arguments[arguments.index("-o") + 1] = str(tmp_path / f"again-{cut}")
            arguments[arguments.index("--recipe") + 1] = str(tmp_path / name)
            done = likewise_command(*arguments[1:], "--quiet")
            assert done.status == 0, done.err
            summary = json.loads((tmp_path / f"again-{cut}" / "summary.json").read_text())
            kept = dict(zip(data["cuts"], data["kept"], strict=True))[cut]
            # A search for another threshold may find other pairs; with so few documents it finds all of these.
            assert summary["num_kept"] == kept


def test_lists_are_filtered_exported_and_walked_in_their_order(client, out):
    evidence = pq.read_table(out / "removed.parquet").to_pylist()
    high = {row["doc_id"] for row in evidence if row["similarity"] >= 0.9}
    assert 0 < len(high) < len(evidence)
    query = "sort=certainty&from=0.9&max=2"
    rows = [json.loads(line) for line in client.get(f"/look/out/groups.jsonl?{query}").text.splitlines()]
    sizes = Counter(row["kept_id"] for row in evidence)
    expected = {row["doc_id"] for row in evidence if row["doc_id"] in high and sizes[row["kept_id"]] == 1}
    assert {row["doc_id"] for row in rows} == expected
    assert [row["similarity"] for row in rows] == sorted(row["similarity"] for row in rows)
    table = list(csv.DictReader(io.StringIO(client.get(f"/look/out/groups.csv?{query}").text)))
    assert [id_of_cell(row["doc_id"]) for row in table] == [row["doc_id"] for row in rows]
    assert [id_of_cell(row["kept_id"]) for row in table] == [row["kept_id"] for row in rows]
    # Walk from group to group in the order of the list, and back to the list.
    walked, address = (
        [],
        next(link for link in links_of(client, f"/look/out/groups?{query}") if re.search(r"groups/\d+[?]", link)),
    )
    while address is not None:
        text = client.get(address).text
        walked.append(html.unescape(re.search(r"<h1><bdi>(.*?)</bdi>", text)[1]))
        up = html.unescape(re.search(r'href="([^"]*)" data-key="Escape"', text)[1])
        assert up == f"/look/out/groups?{query}"
        found = re.search(r'rel="next" href="([^"]*)"', text)
        address = html.unescape(found[1]) if found else None
    assert walked == [visible(row["kept_id"]) for row in rows]
    assert "No group matches" in client.get("/look/out/groups?min=1000000").text
    for odd in ("from=x", "from=nan", "to=7", "min=-1", "max=1e9", "file=%00"):
        assert client.get(f"/look/out/groups?{odd}").status_code == 200


def test_the_overview_opens_with_the_least_certain_removals_of_each_kind(tmp_path):
    out = make_named_run(tmp_path)
    evidence = {row["doc_id"]: row for row in pq.read_table(out / "removed.parquet").to_pylist()}
    with client_of(out) as client:
        text = client.get("/look/out/").text
        assert text.index("Least certain removals") < text.index(">Recipe<")
        unsure = json.loads((out / "summary.json").read_text())["num_unsure"]
        assert f"<b>{unsure:,}</b>of these differ in first words or in numbers only" in text
        for kind in ("lead", "numbers"):
            (link,) = [one for one in links_of(client, "/look/out/") if f"differs={kind}" in one]
            assert client.get(link).status_code == 200
            rows = [json.loads(line) for line in client.get(link.replace("groups?", "groups.jsonl?")).text.splitlines()]
            expected = {doc_id for doc_id, row in evidence.items() if kind in row["differs_in"].split(",")}
            assert {row["doc_id"] for row in rows} == expected
            assert all(row["required"] == evidence[row["doc_id"]]["required"] for row in rows)
            assert f'value="{kind}" selected' in client.get(link).text
        penalized = next(row for row in evidence.values() if row["penalty"] > 0 and row["required"] < 1)
        group = client.get(f"/look/out/document?id={penalized['kept_id']}").text
        assert f"{penalized['required']:.4f} (0.4 + " in group
        assert f"{penalized['penalty']:.4f} for different names); differs in " in group
        assert client.get("/look/out/groups?differs=other").status_code == 200


def test_bars_of_the_overview_lead_to_their_groups(client, out):
    similarities = [row["similarity"] for row in pq.read_table(out / "removed.parquet").to_pylist()]
    links = [link for link in links_of(client, "/look/out/") if "from=" in link]
    assert links
    for link in links:
        low, high = (float(re.search(rf"{name}=([\d.]+)", link)[1]) for name in ("from", "to"))
        assert any(low <= one <= high for one in similarities)
        assert re.search(r"[1-9]\d* groups? found", client.get(link).text)


def test_a_group_shows_the_difference_of_each_removed_document(client):
    (link,) = [one for one in links_of(client, "/look/out/groups?q=mill") if re.search(r"groups/\d+[?]", one)]
    text = client.get(link).text
    for day in ("tuesday", "friday", "sunday"):
        assert f"<del>{day}</del><ins>monday</ins>" in text
    pair = next(one for one in links_of(client, link) if "/pair/" in one)
    shown = client.get(pair).text
    assert "Containment of removed in kept" in shown
    assert "SimHash fingerprints (not used by this recipe)" in shown


def test_an_unknown_address_is_a_page_for_browsers_and_json_for_programs(client):
    for address in ("/nothing", "/look/out/nothing", "/look/"):
        page = client.get(address, headers={"accept": "text/html,*/*"})
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8"), address
        assert "Home" in page.text
    answer = client.get("/v1/nothing", headers={"accept": "*/*"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_labels_are_stored_and_exported(client, out):
    def mark(a, b, label, **more):
        return client.post(
            "/look/out/review/mark", data={"a": a, "b": b, "label": label, **more}, follow_redirects=False
        )

    assert mark("mill", "mill-1", "1", then="/look/out/groups/1").headers["location"] == "/look/out/groups/1"
    mark("pair-1", "=1+1", "0")
    assert client.get("/look/out/review.csv").text == "doc_id_a,doc_id_b,label\nmill,mill-1,1\n'=1+1,pair-1,0\n"
    assert (out / "review.csv").read_text() == client.get("/look/out/review.csv").text
    assert "duplicate</span>" in client.get("/look/out/review").text
    for then in (
        "https://evil.example/",
        "//evil.example/",
        "/look/out/..//evil",
        "/look/out\\@evil",
        "/v1/collections",
        "",
    ):
        assert mark("mill", "mill-1", "1", then=then).headers["location"] == "/look/out/review"
    assert mark("mill", "mill", "1").status_code == 422
    assert mark("mill", "mill-1", "2").status_code == 422
    mark("mill", "mill-1", "")
    mark("pair-1", "=1+1", "")
    assert client.get("/look/out/review.csv").text == "doc_id_a,doc_id_b,label\n"


def fields_of(text, form="review/mark"):
    """Return the hidden fields of the first form with an action."""
    part = re.search(rf'action="[^"]*{form}".*?</form>', text, re.S)[0]
    return {name: html.unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', part)}


@pytest.mark.parametrize("queue", ["review/next", "review/pairs"])
def test_the_next_pair_to_label_is_another_each_time(client, queue):
    seen, text = set(), client.get(f"/look/out/{queue}").text
    for _ in range(8):
        fields = fields_of(text)
        assert (fields["a"], fields["b"]) not in seen
        seen.add((fields["a"], fields["b"]))
        text = client.post("/look/out/review/mark", data=fields).text
        # The next page can undo a label.
        undo = fields_of(text[text.index("toast") - 300 :])
        assert (undo["a"], undo["b"], undo["label"]) == (fields["a"], fields["b"], "")
    shown = client.post("/look/out/review/mark", data=undo).text
    assert fields_of(shown)["a"] == undo["a"]
    for a, b in seen:
        client.post("/look/out/review/mark", data={"a": a, "b": b, "label": ""})


def test_pairs_are_skipped_without_a_label(client):
    def pair(text):
        return tuple(fields_of(text)[name] for name in "ab")

    seen, address = [], "/look/out/review/pairs"
    for _ in range(4):
        text = client.get(address).text
        seen.append(pair(text))
        address = html.unescape(re.search(r'href="([^"]*)" data-key="s"', text)[1])
    assert len(set(seen)) == 4
    # A label does not bring back skipped pairs.
    a, b = seen[1]
    data = {"a": a, "b": b, "label": "0", "then": "/look/out/review/pairs?skip=1"}
    assert pair(client.post("/look/out/review/mark", data=data).text) == seen[2]
    for end in ("pairs?skip=99999999", "next?after=99999999"):
        assert client.get(f"/look/out/review/{end}").url.path == "/look/out/review"
    text = client.get("/look/out/review").text
    assert "59 more labels" in text
    assert "likewise tune" in text
    client.post("/look/out/review/mark", data={"a": a, "b": b, "label": ""})


def test_removals_are_reviewed_by_kind_and_certainty_and_each_judgment_decides(tmp_path):
    out = make_named_run(tmp_path)
    evidence = {row["doc_id"]: row for row in pq.read_table(out / "removed.parquet").to_pylist()}
    kinds = list(KINDS)

    def expected(row):
        differs = (row["differs_in"] or "words").split(",")
        headroom = 1 if row["similarity"] == 1 else row["similarity"] - row["required"]
        return min(map(kinds.index, differs)), headroom, row["kept_row"], row["row"]

    order = sorted(evidence, key=lambda doc_id: expected(evidence[doc_id]))
    first = {kind: sum(expected(row)[0] == kinds.index(kind) for row in evidence.values()) for kind in kinds}
    with client_of(out) as client:
        text, seen = client.get("/look/out/review/next").text, []
        for place in range(1, 12):
            fields, row = fields_of(text), evidence[fields_of(text)["a"]]
            assert (fields["b"], fields["removed"]) == (row["kept_id"], row["doc_id"])
            assert f'<span class="quiet" id="place">{place} of {len(order)}</span>' in text
            assert f"jaccard {row['similarity']:.4f} is at least {row['required']:.4f}" in text
            assert KINDS[kinds[expected(row)[0]]] in text.partition("differs in")[2].partition("<")[0]
            assert text.index(">removed</span>") < text.index(">kept</span>")
            seen.append(fields["a"])
            text = client.post("/look/out/review/mark", data={**fields, "label": str(place % 2)}).text
        assert seen == order[:11]
        # Each judgment is a label for tune and, for others than duplicates, a decision for the next run.
        labels = list(csv.reader(io.StringIO((out / "review.csv").read_text())))[1:]
        assert [(sorted(row[:2]), row[2]) for row in labels] == [
            (sorted([doc_id, evidence[doc_id]["kept_id"]]), str(place % 2)) for place, doc_id in enumerate(seen, 1)
        ]
        assert (out / "decisions.csv").read_text().splitlines()[1:] == [f"{doc_id},keep" for doc_id in seen[1::2]]
        # The list links to each pair, and undoes a judgment whole.
        page = client.get("/look/out/review").text
        assert len(re.findall(r'class="id" href="[^"]*/pair/[0-9]+/kept"', page)) == 11
        undo = fields_of(page.partition("<tbody>")[2].partition(seen[9])[2])
        assert undo["removed"] == seen[9]
        client.post("/look/out/review/mark", data=undo)
        assert seen[9] not in (out / "decisions.csv").read_text() + (out / "review.csv").read_text()
        assert fields_of(client.get("/look/out/review/next").text)["a"] == seen[9]
        # Each kind has a queue of its own.
        for kind in [kind for kind in kinds if first[kind] > len(seen)]:
            text = client.get(f"/look/out/review/next?kind={kind}").text
            assert re.search(rf'id="place">[0-9]+ of {first[kind]}</span>', text)
            assert f'aria-current="true">{KINDS[kind]}</a> {first[kind]}' in text


def test_documents_to_keep_after_all_are_kept_by_the_command_of_the_page(client, out, tmp_path, monkeypatch):
    def mark(doc_id, keep, **more):
        data = {"doc_id": doc_id, "keep": keep, **more}
        return client.post("/look/out/review/keep", data=data, follow_redirects=False)

    removed = pq.read_table(out / "removed.parquet").column("doc_id").to_pylist()[:3]
    address = html.unescape(re.search(r'href="([^"]*/pair/[^"]*/kept)"', client.get("/look/out/groups/1").text)[1])
    form = client.get(address).text.partition("review/keep")[2]
    assert 'aria-pressed="false">Keep after all' in form
    doc_id = html.unescape(re.search(r'name="doc_id" value="([^"]*)"', form)[1])
    assert mark(doc_id, "1", then=address).headers["location"] == address
    assert 'aria-pressed="true">Keep after all' in client.get(address).text
    assert 'href="/look/out/review">Review</a>. Press' in client.get(address).text
    assert "keep after all</span>" in client.get("/look/out/groups/1").text
    mark(doc_id, "")
    assert client.get("/look/out/decisions.csv").text == "doc_id,decision\n"
    for one in removed:
        mark(one, "1")
    shown = client.get("/look/out/review").text
    assert "3 removed documents to keep" in shown
    command = html.unescape(re.search(r'<code id="rerun">(likewise dedup [^<]*)</code>', shown)[1])
    assert (out / "decisions.csv").read_text() == client.get("/look/out/decisions.csv").text
    monkeypatch.chdir(tmp_path)
    done = likewise_command(*shlex.split(command)[1:])
    assert done.status == 0, done.err
    again = next(tmp_path.glob("*-decided"))
    assert json.loads((again / "summary.json").read_text())["decisions"] == {"given": 3, "found": 3, "overruled": 3}
    still_removed = pq.read_table(again / "removed.parquet").column("doc_id").to_pylist()
    assert not set(removed) & set(still_removed)
    assert mark("", "1").status_code == mark("x", "2").status_code == 422
    for one in removed:
        mark(one, "")


def test_the_commands_of_the_pages_count_by_the_field_of_the_run(tmp_path):
    rows = [
        {"id": name, "text": "one fine day in spring it rained and the river rose above the old bridge", "source": of}
        for name, of in (("wire", "wire"), ("copy", "copy"), ("again", "copy"))
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert likewise_command("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--count-by", "source").status == 0
    with client_of(tmp_path / "out") as client:
        home = client.get("/look/out/").text
        assert home.index("Duplicates by source") < home.index("<h2>Recipe")
        assert "<li>100% of copy removed (2 of 2 documents), mostly as copies of wire</li></ul>" in home
        client.post("/look/out/review/keep", data={"doc_id": "copy", "keep": "1"})
        assert "--count-by source" in client.get("/look/out/review").text


@pytest.mark.parametrize(("kind", "places"), [("parquet", ("row 0", "row 1")), ("jsonl", ("byte 0", "byte 100"))])
def test_the_place_of_a_document_is_a_row_of_a_table_or_a_byte_of_a_file(tmp_path, kind, places):
    text = "one fine day in spring it rained and the river rose above the bridge"
    rows = [{"id": name, "text": text} for name in "ab"]
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    else:
        (tmp_path / "in.jsonl").write_text("".join(json.dumps(row).ljust(99) + "\n" for row in rows))
    likewise.dedup_files(tmp_path / f"in.{kind}", tmp_path / "out")
    with client_of(tmp_path / "out") as client:
        (pair,) = {link for link in links_of(client, "/look/out/groups/1") if "/pair/" in link}
        for place in places:
            assert f"in.{kind}, {place}<" in client.get(pair).text


def test_lists_are_filtered_by_the_values_of_a_field(tmp_path):
    sources = ["wire", "copy", None, "", '<b>"&amp;', "null", 7]
    texts = [
        "one fine day in spring it rained and the river rose above the old bridge",
        "so many other words of a play",
    ]
    rows = [
        {"id": f"d{number}", "text": texts[number % 2] + " x" * (number // 20), "source": sources[number * 5 // 3 % 7]}
        for number in range(60)
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("--count-by", "source", "--threshold", "0.9")
    assert likewise_command("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out", *arguments).status == 0
    named = {row["id"]: None if row["source"] is None else str(row["source"]) for row in rows}
    evidence = pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
    for row in evidence:
        assert (row["value"], row["kept_value"]) == (named[row["doc_id"]], named[row["kept_id"]])
    pairs = Counter((named[row["doc_id"]], named[row["kept_id"]]) for row in evidence)
    assert len(pairs) > 5
    with client_of(tmp_path / "out") as client:
        # Each number of the matrix links to the list of its documents.
        home = client.get("/look/out/").text
        cells = re.findall(r'<a href="([^"]*removed=[^"]*)"[^>]*>([0-9,]+)</a>', home)
        found = {}
        for address, number in cells:
            address = html.unescape(address)
            removed, kept = (json.loads(parse_qs(urlsplit(address).query)[name][0]) for name in ("removed", "kept"))
            expected = [row for row in evidence if (named[row["doc_id"]], named[row["kept_id"]]) == (removed, kept)]
            found[removed, kept] = int(number)
            page = client.get(address).text
            assert page.count("selected") == 3
            groups = [link for link in links_of(client, address) if re.search(r"groups/[0-9]+[?]", link)]
            assert len(set(groups)) == len({row["kept_id"] for row in expected})
            jsonl, table = (address.replace("groups?", f"groups.{form}?") for form in ("jsonl", "csv"))
            exported = [json.loads(line) for line in client.get(jsonl).text.splitlines()]
            assert {row["doc_id"] for row in exported} == {row["doc_id"] for row in expected}
            assert {(row["value"], row["kept_value"]) for row in exported} == {(removed, kept)}
            of_csv = list(csv.DictReader(io.StringIO(client.get(table).text)))
            assert [row["doc_id"] for row in of_csv] == [row["doc_id"] for row in exported]
            shown = set()
            for group in set(groups):
                text = client.get(group).text
                assert "Show all of this group" in text
                shown |= set(re.findall(r'class="id" href="[^"]*/pair/[^"]*"><bdi>(.*?)</bdi>', text))
            assert shown == {row["doc_id"] for row in expected}
        assert found == pairs
        # Pairs of a group are walked in the order of its list.
        address = next(one for one, number in cells if int(number) > 1)
        group = next(x for x in links_of(client, html.unescape(address)) if re.search(r"groups/[0-9]+[?]", x))
        walk = [link for link in links_of(client, group) if "/pair/" in link and link.endswith(group.split("?")[1])]
        for link, behind in pairwise(walk):
            assert f'rel="next" href="{html.escape(behind)}"' in client.get(link).text
        everything = client.get("/look/out/groups.jsonl").text.splitlines()
        for nonsense in ("{}", "wire", '"\\ud800"', "[" * 5000):
            assert client.get("/look/out/groups.jsonl", params={"removed": nonsense}).text.splitlines() == everything
        assert "No group matches" in client.get("/look/out/groups", params={"kept": '"nobody"'}).text


def test_pages_of_other_sites_and_names_are_kept_out(client):
    data = {"a": "x", "b": "y", "label": "1"}
    answer = client.post("/look/out/review/mark", data=data, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403
    assert client.get("/look/out/groups", headers={"host": "evil.example"}).status_code == 403


def test_a_service_that_is_read_only_stores_no_label(out):
    with client_of(out, is_read_only=True) as client:
        client.get("/look/out/")
        answer = client.post("/look/out/review/mark", data={"a": "x", "b": "y", "label": "1"})
        assert answer.status_code == 422
        assert "read-only" in answer.text
        assert "Not a duplicate" not in client.get("/look/out/groups/1/pair/kept/kept").text


def test_collections_have_pages_as_runs_have(tmp_path):
    with likewise.Index(tmp_path / "news", Recipe.minhash(0.5), store="text") as index:
        index.add_batch(
            ["a", "b", "c", "<i>"], ["one fine day in spring it rained"] * 2 + ["other words here", HOSTILE]
        )
    with likewise.Index(tmp_path / "bare", Recipe.simhash(within=3)) as index:
        index.add_batch(["a", "b"], ["one fine day", "One fine day!"])
    with client_of(tmp_path) as client:
        home = client.get("/").text
        assert "/look/news/" in home
        assert "/look/bare/" in home
        for name in ("news", "bare"):
            for view in ("", "groups", "groups/1", "groups/1/pair/1/kept", "compare", "near", "review", "review/next"):
                assert client.get(f"/look/{name}/{view}").status_code == 200, (name, view)
        assert "one fine day in spring" in client.get("/look/news/groups/1").text
        assert "stores no texts" in client.get("/look/bare/groups/1").text
        assert ">a</bdi>" in client.post("/look/news/near", data={"text": "one fine day in spring it rained"}).text
        client.post("/v1/collections/news/documents", json={"doc_id": "d", "text": "other words here"})
        assert client.post("/look/news/groups/sort", data={}).status_code == 200
        client.post("/look/news/review/mark", data={"a": "a", "b": "b", "label": "1"})
        assert (tmp_path / ".reviews/news.csv").read_text().endswith("a,b,1\n")


@pytest.mark.parametrize(("served", "labels"), [(".", ".reviews/news.csv"), ("news", "news.review.csv")])
def test_an_erasure_names_the_files_of_the_service_that_it_does_not_reach(tmp_path, served, labels):
    place, key = tmp_path / "place", b"a key of the test, 16 bytes or more"
    with likewise.Index(place / "news", Recipe.minhash(0.5), store="text") as index:
        index.add_batch(["secret-id", "other-id"], ["one fine day in spring it rained"] * 2)
    with client_of(place / served) as client:
        for view in ("groups", "groups/1", "review", "review/next"):
            assert client.get(f"/look/news/{view}").status_code == 200
        client.post("/look/news/review/mark", data={"a": "other-id", "b": "secret-id", "label": "1"})
    with likewise.Index(place / "news") as index:
        certificate = index.erase(["secret-id"]).certificate(key)
    files = [path for path in place.rglob("*") if path.is_file()]
    left = {path.relative_to(place).as_posix() for path in files if b"secret-id" in path.read_bytes()}
    assert left == {labels}
    of_service = [line for line in certificate["not_reached"] if "likewise serve" in line]
    assert len(of_service) == 1
    assert "labels of the review page" in of_service[0]
    assert "output to a log" in of_service[0]


def test_many_threads_look_at_once(out):
    with client_of(out) as client:
        failures = []

        def look(number):
            for view in VIEWS:
                answer = client.get(f"/look/out/{view}")
                if answer.status_code != 200:
                    failures.append((number, view, answer.status_code))

        threads = [threading.Thread(target=look, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


def test_evidence_that_is_damaged_is_said(tmp_path):
    out = make_run(tmp_path)
    (out / "removed.parquet").write_bytes(b"PAR1 nothing")
    with client_of(out) as client:
        for _ in range(2):
            answer = client.get("/look/out/groups")
            assert answer.status_code == 422
            assert "damaged" in answer.text


RUNS = {
    "distance": (Recipe.simhash(within=3), 0.8),
    "cosine": (Recipe.simhash(threshold=0.8), 0.5),
    "components": (Recipe.minhash(0.5, group="components"), 0.3),
    "containment": (Recipe.minhash(0.8, measure="containment"), 0.5),
    "bloom": (Recipe.bloom(0.5), 0.4),
    "idf": (Recipe.minhash(weights="idf"), 0.3),
    "shingles": (Recipe.shingles(0.5), 0.3),
    "exact": (Recipe.exact(), None),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_every_recipe_are_shown(tmp_path, name):
    recipe, floor = RUNS[name]
    out = make_run(tmp_path, recipe=recipe, store_pairs=floor)
    with client_of(out) as client:
        is_empty = "There are no groups" in client.get("/look/out/groups").text
        for view in VIEWS:
            is_absent = (floor is None and view.startswith("threshold/")) or (is_empty and view.startswith("groups/"))
            assert client.get(f"/look/out/{view}").status_code == (422 if is_absent else 200), view
        pasted = {"a": HOSTILE, "b": HOSTILE + " more", "text": HOSTILE}
        for view in ("compare", "near"):
            assert client.post(f"/look/out/{view}", data=pasted).status_code == 200, view


def test_documents_that_are_bytes_are_shown_as_far_as_they_can_be(tmp_path):
    (tmp_path / "files").mkdir()
    data = bytes(range(256)) * 40
    for number in range(3):
        (tmp_path / "files" / f"{number}.bin").write_bytes(data + bytes([number]))
    likewise.dedup_files(tmp_path / "files", tmp_path / "out", Recipe.minhash(0.5, tokens="bytes"))
    with client_of(tmp_path / "out") as client:
        for view in ("", "groups", "groups/1", "groups/1/pair/1/kept", "review"):
            assert client.get(f"/look/out/{view}").status_code == 200, view
        assert client.get("/look/out/compare").status_code == 422


def test_a_page_that_cannot_be_sorted_says_why(tmp_path, monkeypatch):
    from likewise.runs.viewing import catalog

    out = make_run(tmp_path)
    monkeypatch.setattr(catalog, "_TABLES", "CREATE VIRTUAL TABLE words USING fts99(text);")
    with client_of(out) as client:
        answer = client.get("/look/out/groups")
        assert answer.status_code == 422
        assert "could not be sorted" in answer.text
    assert not list((out / ".view").iterdir())


def test_a_run_that_is_replaced_or_removed_under_its_pages(tmp_path):
    """The pages show the current run, and say so if there is none."""
    (tmp_path / "in.jsonl").write_text('{"id": "a", "text": "one fine day"}\n{"id": "b", "text": "one fine day"}\n')
    out, moved = tmp_path / "out", tmp_path / "moved"
    likewise.dedup_files(tmp_path / "in.jsonl", out, Recipe.minhash(0.5))
    with client_of(out) as client:
        assert "0.5" in client.get("/look/out/").text
        likewise.dedup_files(tmp_path / "in.jsonl", out, Recipe.minhash(0.875), overwrite=True)
        for view in ("", "groups", "groups/1"):
            assert client.get(f"/look/out/{view}").status_code == 200
        assert "0.875" in client.get("/look/out/").text
        out.rename(moved)
        for view in VIEWS:
            answer = client.get(f"/look/out/{view}")
            assert answer.status_code == 422
            assert "no finished run here" in answer.text
        assert client.get("/readyz").status_code == 200
        moved.rename(out)
        assert "0.875" in client.get("/look/out/").text
        os.truncate(out / "removed.parquet", 100)
        (out / "summary.json").touch()
        answer = client.get("/look/out/groups")
        assert (answer.status_code, "missing or damaged" in answer.text) == (422, True)


def test_a_run_that_chose_its_threshold_shows_the_density(tmp_path):
    with client_of(make_run(tmp_path, recipe=Recipe.minhash("auto"))) as client:
        text = client.get("/").text
    assert "How the threshold was chosen" in text
    assert re.search(r"threshold 0\.\d+ \(auto", text)
    assert "How the threshold was chosen" not in _overview_of_another(tmp_path)


def _overview_of_another(tmp_path):
    (tmp_path / "other").mkdir()
    with client_of(make_run(tmp_path / "other")) as client:
        return client.get("/").text


def test_inputs_that_were_moved_are_named_once_with_the_cure(tmp_path):
    out = make_run(tmp_path)
    (moved,) = [path for path in tmp_path.iterdir() if path != out]
    (tmp_path / "other").mkdir()
    moved.rename(tmp_path / "other" / moved.name)
    with client_of(out) as client:
        text = client.get("/look/out/groups").text
        assert text.count("--inputs DIRECTORY") == 1
        assert "is missing" in text
    with client_of(out, inputs=tmp_path / "other") as client:
        assert "--inputs" not in client.get("/look/out/groups").text


def test_a_run_over_parts_is_shown_as_its_report(tmp_path):
    rows = [{"id": f"d{i}", "text": f"same line\nown {i}\n<b>hostile</b>\n"} for i in range(3)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("line"))
    with client_of(tmp_path / "out") as client:
        page = client.get("/", follow_redirects=True)
        assert page.status_code == 200
        assert page.text == report(tmp_path / "out")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "<b>d1</b> repeats <b>d0</b>" in page.text
        assert "<b>hostile" not in page.text
        for path in ("groups", "threshold", "review"):
            assert client.get(f"/look/out/{path}").status_code == 404
        # A run that replaces it is shown at once.
        dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("span", 8), overwrite=True)
        assert "Nothing was removed." in client.get("/look/out/").text


def test_a_directory_without_an_index_is_refused(tmp_path):
    (tmp_path / "texts.jsonl").write_text("{}\n")
    with pytest.raises(likewise.InvalidInput, match=r"contains texts\.jsonl, but no index and no run"):
        client_of(tmp_path).__enter__()
    (tmp_path / "empty").mkdir()
    with client_of(tmp_path / "empty") as client:
        assert client.get("/").status_code == 200
