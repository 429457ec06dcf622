"""Views of finished runs and indexes: texts by position, groups, thresholds, labels, neighbors."""

import csv
import itertools
import json
import os
import random
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import InvalidInput, Recipe, dedup_files
from likewise.runs.viewing.catalog import KINDS, GroupFilter
from likewise.runs.viewing.neighbors import Marks
from likewise.runs.viewing.texts import Missing
from likewise.runs.viewing.view import IndexView, RunView
from likewise.stages.groups import choose_leaders
from tests.runs.viewing.runs import make_named_run, make_run, rows
from tests.runs.viewing.test_near_pairs import RECIPES, corpus


def headroom(row):
    """Return by how much a removal of the evidence exceeds the similarity that it needed; 1 if nothing differs."""
    return 1.0 if row["similarity"] == 1.0 else row["similarity"] - row.get("required", 0.55)


TEXTS = {row["id"]: row["text"] for row in rows()}


@pytest.fixture(scope="module")
def named_run(tmp_path_factory):
    return make_named_run(tmp_path_factory.mktemp("named"))


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "parquet", "txt"])
def test_every_document_of_every_group_is_read_again(tmp_path, form):
    out = make_run(tmp_path, form)
    evidence = pq.read_table(out / "removed.parquet").to_pylist()
    assert len(evidence) >= 15
    known = TEXTS if form != "txt" else {path.name: path.read_text() for path in (tmp_path / "in.txt").iterdir()}
    with RunView(out) as view:
        seen = {}
        for group in view.catalog.list_groups(limit=1000).groups:
            members = view.catalog.members(group.number)
            places = [(group.row, group.place), *((one.row, one.place) for one in members)]
            ids = [group.doc_id, *(one.doc_id for one in members)]
            assert view.texts(places) == [known[doc_id] for doc_id in ids]
            assert group.size == len(ids)
            assert group.lowest == min(one.similarity for one in members)
            assert group.highest == max(one.similarity for one in members)
            seen |= {one.doc_id: group.doc_id for one in members}
        assert seen == {row["doc_id"]: row["kept_id"] for row in evidence}


def test_lists_go_on_where_they_ended_in_every_order(tmp_path):
    with RunView(make_run(tmp_path)) as view:
        whole = view.catalog.list_groups(GroupFilter(sort="input"), limit=1000).groups
        keys = {
            "size": lambda group: (-group.size, group.number),
            "certainty": lambda group: (group.headroom, group.number),
            "input": lambda group: group.number,
        }
        for sort, key in keys.items():
            expected = sorted(whole, key=key)
            pages, cursor = [], ""
            while cursor is not None:
                page = view.catalog.list_groups(GroupFilter(sort=sort), cursor=cursor, limit=3)
                assert page.num_found == len(whole)
                pages.append(page)
                cursor = page.after
            assert [group for page in pages for group in page.groups] == expected
            assert pages[0].before is None
            for before, page in itertools.pairwise(pages):
                assert (
                    view.catalog.list_groups(GroupFilter(sort=sort), cursor=page.before, limit=3).groups
                    == before.groups
                )


@pytest.mark.parametrize("sort", ["size", "certainty", "input"])
def test_filters_list_what_the_evidence_says(tmp_path, sort):
    folder = tmp_path / "in"
    folder.mkdir()
    documents = rows()
    for number in range(3):
        lines = "".join(json.dumps(row) + "\n" for row in documents[number::3])
        (folder / f"{number}.jsonl").write_text(lines)
    out = tmp_path / "out"
    dedup_files([folder], out, Recipe.minhash(0.55, weights="none"))
    groups = {}
    for row in pq.read_table(out / "removed.parquet").to_pylist():
        groups.setdefault(row["kept_id"], []).append(row)
    keys = {
        "size": lambda one: -len(groups[one.doc_id]),
        "certainty": lambda one: min(map(headroom, groups[one.doc_id])),
        "input": lambda one: 0,
    }
    with RunView(out) as view:
        everything = view.catalog.list_groups(GroupFilter(sort="input"), limit=1000).groups
        for wanted, holds in [
            (GroupFilter(sort=sort), lambda kept, gone: True),
            (GroupFilter(sort=sort, smallest=3), lambda kept, gone: len(gone) >= 2),
            (GroupFilter(sort=sort, largest=2), lambda kept, gone: len(gone) <= 1),
            (GroupFilter(sort=sort, least=0.9), lambda kept, gone: any(row["similarity"] >= 0.9 for row in gone)),
            (
                GroupFilter(sort=sort, least=0.6, most=0.8),
                lambda kept, gone: any(0.6 <= row["similarity"] <= 0.8 for row in gone),
            ),
            (
                GroupFilter(sort=sort, file="1.jsonl", smallest=2),
                lambda kept, gone: "1.jsonl" in {gone[0]["kept_file"], *(row["file"] for row in gone)},
            ),
            (GroupFilter(sort=sort, words="mill", least=0.99), lambda kept, gone: False),
        ]:
            expected = [one for one in everything if holds(one.doc_id, groups[one.doc_id])]
            expected.sort(key=lambda one: (keys[sort](one), one.number))
            found = view.catalog.list_groups(wanted, limit=1000)
            assert (found.groups, found.num_found) == (expected, len(expected))
            assert [(group, one.doc_id) for group, one in view.catalog.rows_of(wanted)] == [
                (group, row["doc_id"]) for group in expected for row in groups[group.doc_id]
            ]
            beside = [None, *(one.number for one in expected), None]
            for number, group in enumerate(expected):
                assert view.catalog.groups_beside(wanted, group) == (beside[number], beside[number + 2])
            if len(expected) > 2:
                first = view.catalog.list_groups(wanted, limit=2)
                second = view.catalog.list_groups(wanted, cursor=first.after, limit=2)
                assert (first.num_before, second.num_before) == (0, 2)


def test_groups_are_found_by_words_and_ids_in_any_script(tmp_path):
    with RunView(make_run(tmp_path)) as view:

        def found(words):
            return {group.doc_id for group in view.catalog.list_groups(GroupFilter(words=words), limit=1000).groups}

        assert found("Baker MILL") == {"mill"}
        assert found("mill-3") == {"mill"}
        assert found("pair-2-again") >= {"pair-2"}
        assert found("小猫") == {"chinese"}
        assert found("word5x7") == {"pair-5"}
        assert found("baker nowhere") == set()
        for odd in ('"', "'", "NEAR(", "a AND", "*", "text:", "-", "\u202e", "x" * 500, "%", "\0", "don't", "^mill"):
            found(odd)
        assert view.catalog.find_id("mill-4") == view.catalog.find_id("mill")
        assert view.catalog.find_id("nobody") is None


def test_removals_of_each_kind_are_listed_least_certain_first(named_run):
    evidence = pq.read_table(named_run / "removed.parquet").to_pylist()
    with RunView(named_run) as view:
        catalog = view.catalog
        kinds = {kind: num for kind, num, _ in catalog.least_certain(3)}
        assert set(KINDS) >= set(kinds) > {"words", "form"}
        for kind, num, found in catalog.least_certain(1000):
            of_kind = [row for row in evidence if kind in (row["differs_in"] or "words").split(",")]
            assert len(found) == len(of_kind) == num
            by_id = {row["doc_id"]: row for row in of_kind}
            rows = [by_id[member.doc_id] for _, member in found]
            assert [headroom(row) for row in rows] == sorted(map(headroom, of_kind))
            for row, (group, member) in zip(rows, found, strict=True):
                assert group.doc_id == row["kept_id"]
                shown = (member.required, member.penalty, member.differs)
                assert shown == (row["required"], row["penalty"], row["differs_in"])
            listed = [member.doc_id for _, member in catalog.rows_of(GroupFilter(differs=kind))]
            assert sorted(listed) == sorted(by_id)


def test_groups_are_sorted_once_and_again_when_the_run_is_another(tmp_path):
    out = make_run(tmp_path)
    with RunView(out) as view:
        number = view.catalog.num_groups()
    stamp = (out / ".view/groups.sqlite").stat().st_mtime_ns
    with RunView(out) as view:
        assert view.catalog.num_groups() == number
    assert (out / ".view/groups.sqlite").stat().st_mtime_ns == stamp
    (out / ".view/groups.sqlite").write_bytes(b"SQLite format 3\0" + bytes(5000))
    with RunView(out) as view:
        assert view.catalog.num_groups() == number
    likewise.dedup_files(tmp_path / "in.jsonl", out, Recipe.minhash(0.99), overwrite=True)
    with RunView(out) as view:
        assert view.catalog.num_groups() < number


def test_texts_that_are_gone_are_said_to_be_gone(tmp_path):
    out = make_run(tmp_path)
    with (tmp_path / "in.jsonl").open("ab") as file:
        file.write(b"\n")
    with RunView(out) as view:
        (group, *_) = view.catalog.list_groups().groups
        (text,) = view.texts([(group.row, group.place)])
        assert isinstance(text, Missing)
        assert "changed" in text.reason
        with pytest.raises(InvalidInput, match="are missing or have changed"):
            view.neighbors("some text", 3)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "in.jsonl").rename(tmp_path / "elsewhere" / "in.jsonl")
    with RunView(out) as view:
        assert "is missing" in view.texts([(group.row, group.place)])[0].reason
    with (tmp_path / "elsewhere/in.jsonl").open("r+b") as file:
        file.truncate((tmp_path / "elsewhere/in.jsonl").stat().st_size - 1)
    with RunView(out, inputs=tmp_path / "elsewhere") as view:
        assert view.texts([(group.row, group.place)]) == [TEXTS[group.doc_id]]


def test_reference_documents_are_shown_too(tmp_path):
    make_run(tmp_path)
    (tmp_path / "new.jsonl").write_text(json.dumps({"id": "again", "text": TEXTS["mill"] + " again"}) + "\n")
    for number, against in enumerate((tmp_path / "out", tmp_path / "in.jsonl")):
        out = tmp_path / f"new-{number}"
        likewise.dedup_files(tmp_path / "new.jsonl", out, Recipe.minhash(0.5), against=[against])
        with RunView(out) as view:
            (group,) = view.catalog.list_groups(GroupFilter(words="baker")).groups
            assert group.source == "against"
            assert view.texts([(group.row, group.place)]) == [TEXTS[group.doc_id]]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_directory_that_cannot_be_written_to_is_looked_at(tmp_path):
    out = make_run(tmp_path)
    out.chmod(0o555)
    try:
        with RunView(out) as view:
            assert view.catalog.num_groups() > 0
            with pytest.raises(OSError, match="Permission"):
                view.marks.mark("a", "b", True)
    finally:
        out.chmod(0o755)


@pytest.mark.parametrize("name", ["minhash", "longest", "components", "cosine", "distance", "idf"])
def test_thresholds_say_what_a_run_at_them_keeps(tmp_path, name):
    recipe, floor = RECIPES[name]
    (tmp_path / "in.jsonl").write_text("".join(likewise_line(i, text) for i, text in enumerate(corpus(5))))
    summary = likewise.dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe, store_pairs=floor)
    with RunView(tmp_path / "out") as view:
        stored = view.thresholds
        curve = dict(stored.curve)
        assert curve[stored.own] == summary["num_kept"]
        assert sorted(curve)[0] >= floor
        assert sorted(curve)[-1] == 1.0
        table = pq.read_table(tmp_path / "out/pairs.parquet")
        similarity = table["similarity"].to_numpy()
        ranks = np.stack([table["rank_a"].to_numpy(), table["rank_b"].to_numpy()], 1)
        if recipe.group == "leaders":
            for cut in list(curve)[:: max(1, len(curve) // 9)]:
                some = similarity >= cut
                kept = choose_leaders(stored.facts.num_distinct, ranks[some], similarity[some]).kept
                assert curve[cut] == kept.sum()
        above, below = stored.around(stored.own, 3)
        assert all(pair.similarity >= stored.own > other.similarity for pair in above for other in below)
        assert stored.pair(above[0].number) == above[0]
        assert stored.pair(len(similarity)) is None
        edges, counts = stored.histogram()
        assert sum(counts) == len(similarity)
        assert edges[0] == floor
        assert stored.found(stored.own) == pytest.approx(summary["recall"]) if summary["recall"] else True


def likewise_line(number, text):
    return json.dumps({"id": str(number), "text": text}) + "\n"


@pytest.mark.parametrize("method", ["minhash", "shingles", "simhash", "bloom", "exact"])
def test_neighbors_of_a_text_are_the_most_similar_documents(tmp_path, method):
    recipe = Recipe.from_options(method, **({} if method in ("simhash", "exact") else {"threshold": 0.5}))
    out = make_run(tmp_path, recipe=recipe)
    with RunView(out) as view:
        found = view.neighbors(TEXTS["mill-2"], 6)
        assert {near.doc_id for near in found} >= {"mill-2", "mill"}
        assert found[0].doc_id == "mill-2"
        assert found[0].similarity == 1.0
        assert found[0].matches
        assert [near.similarity for near in found] == sorted((near.similarity for near in found), reverse=True)
        assert view.neighbors("", 3) is not None


def test_groups_of_an_index_are_those_it_answers(tmp_path):
    with likewise.Index(tmp_path / "seen", Recipe.minhash(0.5), store="text") as index:
        draw = random.Random(2)
        shuffled = list(TEXTS.items())
        draw.shuffle(shuffled)
        index.add_batch([doc_id for doc_id, _ in shuffled], [text for _, text in shuffled])
        with IndexView(index, "seen") as view:
            groups = view.catalog.list_groups(limit=1000).groups
            assert groups
            for group in groups:
                members = view.catalog.members(group.number)
                assert tuple(one.doc_id for one in members) == index.group(group.doc_id).member_ids
                texts = view.texts([(group.row, group.place), *((one.row, one.place) for one in members)])
                assert texts == [TEXTS[group.doc_id], *(TEXTS[one.doc_id] for one in members)]
            assert view.catalog.list_groups(GroupFilter(words="baker")).num_found == 1
            assert view.is_current
            index.add_batch(["mill-9"], [TEXTS["mill"]])
            assert not view.is_current
            for _ in range(4):
                view.sort_again()
            assert view.is_current
            assert view.catalog.find_id("mill-9") is not None
            assert view.neighbors(TEXTS["mill"], 5)[0].doc_id == index.get("mill-9").kept_id
    with likewise.Index(tmp_path / "bare", Recipe.simhash(within=3)) as index:
        index.add_batch(["a", "b"], ["one fine day", "One fine day!"])
        with IndexView(index, "bare") as view:
            (group,) = view.catalog.list_groups().groups
            assert "stores no texts" in view.texts([(group.row, group.place)])[0].reason


def test_labels_are_stored_at_once_and_read_again(tmp_path):
    path = tmp_path / "review.csv"
    marks = Marks(path)
    marks.mark("b", "a", True)
    marks.mark('x, "y"\nz', "a", False)
    marks.mark("a", "c", True)
    assert marks.label("a", "b") is True
    marks.mark("c", "a", None)
    again = Marks(path)
    assert again.items() == [("a", 'x, "y"\nz', False), ("a", "b", True)]
    with path.open(newline="") as file:
        assert list(csv.reader(file))[1:] == [["a", "b", "1"], ["a", 'x, "y"\nz', "0"]]
    assert os.listdir(tmp_path) == ["review.csv"]
    for bad in (("a", "a"), ("", "a"), ("a", "x" * 10_001)):
        with pytest.raises(InvalidInput):
            marks.mark(*bad, True)
    (tmp_path / "other.csv").write_text("id,name\n1,2\n")
    with pytest.raises(InvalidInput, match="the first line must be"):
        Marks(tmp_path / "other.csv")


@pytest.mark.slow
def test_a_million_groups_are_sorted_and_listed(tmp_path):
    from likewise.runs.viewing.catalog import Catalog, CatalogWriter

    with CatalogWriter(tmp_path / "groups.sqlite") as writer:
        count = 1_000_000
        sizes = [2 + (i * 7919) % 50 for i in range(count)]
        writer.add_groups(
            (i + 1, i, f"d{i}", "input", "f", i, None, sizes[i], (i % 997) / 997, 1.0, None, i % 97)
            for i in range(count)
        )
        writer.add_members(
            (i + 1, i, f"m{i}", "f", i, 1, (i % 997) / 997, None, 0, None, 0.1, 0.0, "lead" if i == 999 else "", i % 97)
            for i in range(count)
        )
        writer.add_words((i + 1, f"d{i} shared word{i % 1000}") for i in range(count))
        writer.finish({})
    catalog = Catalog(tmp_path / "groups.sqlite")
    for sort in ("size", "certainty", "input"):
        page = catalog.list_groups(GroupFilter(sort=sort))
        for _ in range(5):
            began = time.process_time()
            page = catalog.list_groups(GroupFilter(sort=sort), cursor=page.after)
            assert time.process_time() - began < 0.5
            assert len(page.groups) == 50
    began = time.process_time()
    assert catalog.list_groups(GroupFilter(words="word7 shared")).num_found == 1000
    assert catalog.find_id("m999999") == 1_000_000
    assert [member.row for _, member in catalog.doubtful("lead")] == [999]
    assert time.process_time() - began < 5
