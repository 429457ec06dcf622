"""Copies of given documents: in corpora, runs and indexes, by text, file and id; lists of what to delete; refusals."""

import json
import random

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import Recipe
from likewise.corpus import ContainmentRules, find_copies
from likewise.errors import InvalidInput
from likewise.index import Index
from likewise.job.reading import FileRun
from tests.command import likewise_command
from tests.files import jsonl
from tests.golden.texts import made_up
from tests.oracle.items import Items
from tests.oracle.normalize import normalize

KINDS = ("exact", "near", "containing", "duplicate")


def collection(seed=0, num_documents=60):
    """Return given documents, and a corpus with copies of all kinds, each with the kind it was planted as."""
    rng = random.Random(seed)
    given = [{"id": f"g{i}", "text": made_up(rng.randint(20, 60), 500 + 50 * seed + i)} for i in range(8)]
    documents = []
    for i in range(num_documents):
        own = made_up(rng.randint(5, 50), 3000 + 100 * seed + i).split()
        text = rng.choice(given)["text"]
        kind = ("none", "exact", "respaced", "changed", "inside")[i % 5]
        if kind == "none":
            text = " ".join(own)
        elif kind == "respaced":
            text = "  ".join(text.split()).upper()
        elif kind == "changed":
            words = text.split()
            words[rng.randrange(len(words))] = "changed"
            text = " ".join(words)
        elif kind == "inside":
            middle = len(own) // 2
            text = " ".join([*own[:middle], *text.split(), *own[middle:]])
        documents.append({"id": f"d{i}", "text": text})
    return given, documents


def rows_of(found, place=None):
    return [row for row in found.copies.to_pylist() if place is None or row["place"] == str(place)]


def expected_copies(given, documents):
    """Return (given, document, kind, span) by the oracle of items and by plain equality."""
    oracle = Items([one["text"] for one in given], 8)
    found = set()
    for document in documents:
        for one in given:
            if normalize(document["text"]) == normalize(one["text"]):
                found.add((one["id"], document["id"], "exact", 0, len(document["text"].encode())))
    equal = {(row[0], row[1]) for row in found}
    for match, share, similarity in oracle.judge([one["text"] for one in documents]):
        if share < 0.2 or similarity < 0.75:
            continue
        document = documents[match.document]
        for one, distinct in zip(given, oracle.distinct, strict=True):
            if distinct == match.text and (one["id"], document["id"]) not in equal:
                fills = len(one["text"].encode()) >= 0.8 * len(document["text"].encode())
                found.add((one["id"], document["id"], "near" if fills else "containing", match.start, match.end))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_a_corpus_gives_the_oracles_answer(tmp_path, seed):
    given, documents = collection(seed)
    corpus = jsonl(tmp_path / "corpus.jsonl", documents)
    answers = []
    for threads in (1, 3):
        run = FileRun(threads=threads)
        files = jsonl(tmp_path / "given.jsonl", given)
        answers.append(find_copies(corpus, files=files, run=run, output=tmp_path / f"out-{threads}"))
    found = answers[0]
    names = ("given", "doc_id", "kind", "span_start", "span_end")
    assert {tuple(row[name] for name in names) for row in rows_of(found)} == expected_copies(given, documents)
    assert {row["kind"] for row in rows_of(found)} == {"exact", "near", "containing"}
    assert answers[1].copies.equals(found.copies)
    assert pq.read_table(tmp_path / "out-1" / "copies.parquet").equals(found.copies)
    lines = (corpus.read_bytes()).splitlines(keepends=True)
    starts = {json.loads(line)["id"]: sum(map(len, lines[:i])) for i, line in enumerate(lines)}
    for row in rows_of(found):
        assert row["offset"] == starts[row["doc_id"]]
    # Search by texts in memory, and by the ids of the same documents.
    by_text = find_copies(corpus, texts={one["id"]: one["text"] for one in given})
    assert by_text.copies.equals(found.copies)
    more = jsonl(tmp_path / "more.jsonl", [*documents, *given])
    by_id = find_copies([corpus, more], ids=[one["id"] for one in given])
    assert [row for row in rows_of(by_id, corpus)] == rows_of(
        find_copies([corpus, more], files=tmp_path / "given.jsonl"), corpus
    )


def test_every_format_gives_the_same_copies(tmp_path):
    given, documents = collection()
    table = pa.Table.from_pylist(documents)
    places = [jsonl(tmp_path / "corpus.jsonl", documents), tmp_path / "corpus.parquet", tmp_path / "corpus.csv"]
    pq.write_table(table, places[1])
    pa.csv.write_csv(table, places[2])
    found = find_copies(places, texts={one["id"]: one["text"] for one in given})
    names = ("given", "doc_id", "kind", "similarity", "share", "longest_run", "span_start", "span_end")
    answers = [[[row[name] for name in names] for row in rows_of(found, place)] for place in places]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]


def test_a_run_tells_what_it_kept_and_what_it_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.job.reading._PIECE_BYTES", 1000)
    given, documents = collection(1)
    # Without ids, rows of the run and of its kept files are distinguished by their order.
    for has_ids in (True, False):
        rows = documents if has_ids else [{"text": one["text"]} for one in documents]
        half = len(rows) // 2
        (tmp_path / f"in-{has_ids}").mkdir()
        inputs = [
            jsonl(tmp_path / f"in-{has_ids}" / "a.jsonl", rows[:half]),
            jsonl(tmp_path / f"in-{has_ids}" / "b.jsonl", rows[half:]),
        ]
        out = tmp_path / f"out-{has_ids}"
        likewise.dedup_files(inputs, out, Recipe.minhash(0.6))
        evidence = pq.read_table(out / "removed.parquet").to_pylist()
        found = find_copies(out, texts={one["id"]: one["text"] for one in given})
        kept = [json.loads(line) for name in "ab" for line in (out / "kept" / f"{name}.jsonl").read_text().splitlines()]
        removed = {row["row"] for row in evidence}
        kept_rows = [row for row in range(len(rows)) if row not in removed]
        assert [rows[row]["text"] for row in kept_rows] == [one["text"] for one in kept]
        named = [{"id": str(row), "text": rows[row]["text"]} for row in kept_rows]
        hits = {(one, int(row)) for one, row, *_ in expected_copies(given, named)}
        duplicates = {
            (one, row["file"], row["offset"], row["similarity"])
            for one, kept_row in hits
            for row in evidence
            if row["kept_row"] == kept_row
        }
        seen = [row for row in rows_of(found) if row["kind"] == "duplicate"]
        assert {(row["given"], row["file"], row["offset"], row["similarity"]) for row in seen} == duplicates
        assert duplicates
        assert len(seen) == len(duplicates)
        assert len({(row["given"], row["file"], row["offset"]) for row in rows_of(found) if row not in seen}) == len(
            hits
        )


def test_ids_of_removed_documents_lead_to_their_group(tmp_path):
    text = made_up(40, 7)
    rows = [{"id": name, "text": text + end} for name, end in (("a", ""), ("b", "!"), ("c", "?"), ("d", ""))]
    rows.append({"id": "e", "text": made_up(40, 8)})
    likewise.dedup_files(jsonl(tmp_path / "in.jsonl", rows), tmp_path / "out", Recipe.minhash(0.6))
    found = find_copies(tmp_path / "out", ids=["c"], output=tmp_path / "found")
    assert {(row["doc_id"], row["kind"], row["via"]) for row in rows_of(found)} == {
        ("c", "exact", None),
        ("a", "near", None),
        ("b", "duplicate", "a"),
        ("d", "duplicate", "a"),
    }
    assert sorted((tmp_path / "found" / "delete" / "1-out.txt").read_text().split()) == ["a", "b", "c", "d"]
    assert found.summary["num_without_text"] == 1


def test_an_index_answers_by_its_recipe_and_by_id(tmp_path):
    text = made_up(60, 1)
    changed = text.replace(text.split()[30], "changed")
    with Index(tmp_path / "seen.lw", Recipe.minhash(0.7)) as index:
        index.add_batch(["a", "b", "c"], [text, changed, made_up(60, 2)])
    found = find_copies(tmp_path / "seen.lw", texts={"x": text})
    assert [(row["doc_id"], row["kind"], row["via"]) for row in rows_of(found)] == [
        ("a", "near", None),
        ("b", "duplicate", "a"),
    ]
    with Index(tmp_path / "seen.lw", read_only=True) as index:
        assert [row["similarity"] for row in rows_of(found)] == [1.0, index.get("b").similarity]
    by_id = find_copies(tmp_path / "seen.lw", ids=["b"])
    assert {(row["doc_id"], row["kind"]) for row in rows_of(by_id)} == {("a", "near"), ("b", "exact")}
    # A document found in the corpus by its text and in the index by its id is listed once.
    corpus = jsonl(tmp_path / "corpus.jsonl", [{"id": "b", "text": changed}])
    both = find_copies([corpus, tmp_path / "seen.lw"], ids=["b"])
    assert sorted(row["doc_id"] for row in rows_of(both, tmp_path / "seen.lw")) == ["a", "b"]
    assert both.summary["num_given"] == 1


def test_erasing_what_was_found_leaves_nothing_to_find(tmp_path):
    given, documents = collection(2)
    with Index(tmp_path / "seen.lw", Recipe.minhash(0.7)) as index:
        index.add_batch([one["id"] for one in documents], [one["text"] for one in documents])
    jsonl(tmp_path / "given.jsonl", given)
    found = tmp_path / "found"
    done = likewise_command("copies", tmp_path / "given.jsonl", "--in", tmp_path / "seen.lw", "-o", found)
    assert done.status == 0, done.err
    ids = found / "delete" / "1-seen.lw.txt"
    assert f"likewise index erase {tmp_path / 'seen.lw'} --ids {ids}" in done.err
    assert ids.read_text().split()
    done = likewise_command("index", "erase", tmp_path / "seen.lw", "--ids", ids)
    assert done.status == 0, done.err
    again = find_copies(tmp_path / "seen.lw", files=tmp_path / "given.jsonl")
    assert rows_of(again) == []
    assert {one["status"] for one in again.given.to_pylist()} == {"not found"}


def test_short_texts_are_found_only_if_they_are_equal(tmp_path):
    rows = [{"id": "a", "text": "Closed  on Monday"}, {"id": "b", "text": "It is closed on monday and on friday."}]
    found = find_copies(jsonl(tmp_path / "in.jsonl", rows), texts=["closed on monday", "open on sunday"])
    assert [(row["given"], row["doc_id"], row["kind"]) for row in rows_of(found)] == [("text 1", "a", "exact")]
    assert [(one["status"], one["num_copies"]) for one in found.given.to_pylist()] == [
        ("too short", 1),
        ("too short", 0),
    ]
    rows = [{"id": "a", "text": "\u200b\u200c"}, {"id": "b", "text": "\u200d"}]
    found = find_copies(jsonl(tmp_path / "blank.jsonl", rows), texts=["\u200b"])
    assert rows_of(found) == []
    text = "这是一段用来测试的中文文本,说的是图书馆星期五重新开放,屋顶已经修好了。"
    rows = [{"id": "a", "text": f"通知：{text}请大家互相转告，带好借书证，按时归还图书，谢谢合作。"}]
    found = find_copies(jsonl(tmp_path / "zh.jsonl", rows), texts=[text])
    assert [row["kind"] for row in rows_of(found)] == ["containing"]
    row = rows_of(found)[0]
    assert text[:10] in rows[0]["text"].encode()[row["span_start"] : row["span_end"]].decode()


def test_what_makes_no_sense_is_refused(tmp_path):
    corpus = jsonl(tmp_path / "in.jsonl", [{"id": "a", "text": "one"}])
    (tmp_path / "empty").mkdir()
    likewise.dedup_files(corpus, tmp_path / "evidence", Recipe.minhash(0.6), write="evidence")
    find_copies(corpus, texts=["one"], output=tmp_path / "found")
    with pytest.raises(InvalidInput, match="contains a finished run"):
        find_copies(corpus, texts=["one"], output=tmp_path / "found")
    find_copies(corpus, texts=["one"], output=tmp_path / "found", overwrite=True)
    for places, options, message in [
        ([], {"texts": ["one"]}, "no place to search"),
        (corpus, {}, "no document is given"),
        (corpus, {"texts": "one"}, "texts is a single text; give a list"),
        (corpus, {"texts": [" "]}, "'text 1' is empty"),
        (corpus, {"texts": [None]}, "text 1 is a NoneType, not a text"),
        (corpus, {"ids": ["x", "y"]}, "no place has a document with the id 'x' and 1 more"),
        ([corpus, corpus], {"texts": ["one"]}, "this place is given twice"),
        (tmp_path / "evidence", {"texts": ["one"]}, "wrote no kept documents"),
        (tmp_path / "found", {"texts": ["one"]}, "output of likewise copies, not of a deduplication"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            find_copies(places, **options)
    with pytest.raises(InvalidInput, match="contains a finished run"):
        find_copies(corpus, texts=["one"], output=tmp_path / "evidence")
    with pytest.raises(FileNotFoundError):
        find_copies(tmp_path / "absent.jsonl", texts=["one"])
    done = likewise_command("copies", "--in", corpus)
    assert done.status == 2
    assert "Missing argument" in done.err


def test_rules_and_bad_rows_are_those_of_the_caller(tmp_path):
    given, documents = collection(3)
    corpus = tmp_path / "in.jsonl"
    corpus.write_text("{broken\n" + "".join(json.dumps(one) + "\n" for one in documents))
    texts = {one["id"]: one["text"] for one in given}
    with pytest.raises(InvalidInput, match=r"in\.jsonl:1: bad JSON"):
        find_copies(corpus, texts=texts)
    loose = find_copies(corpus, texts=texts, run=FileRun(on_error="skip", max_bad_rows=1))
    strict = find_copies(corpus, texts=texts, rules=ContainmentRules(1.0), run=FileRun(on_error="skip", max_bad_rows=1))
    assert loose.summary["num_bad_rows"] == 1
    assert strict.copies.num_rows < loose.copies.num_rows
    assert all(row["similarity"] == 1.0 for row in rows_of(strict))


def test_no_document_is_not_every_document(tmp_path):
    jsonl(tmp_path / "c.jsonl", [{"id": "a", "text": made_up(30, 1)}])
    for given in ("", "  "):
        done = likewise_command("copies", given, "--in", "c.jsonl", "-o", "out", cwd=tmp_path)
        assert done.status == 2
        assert "the given text is empty" in done.err
    for given in ("my missing file.jsonl", "données.txt", "sub dir/x.parquet"):
        done = likewise_command("copies", given, "--in", "c.jsonl", cwd=tmp_path)
        assert done.status == 2
        assert given.rpartition("/")[2] in done.err
    assert not (tmp_path / "out").exists()


def test_an_id_that_another_document_has_is_not_listed(tmp_path):
    text = made_up(30, 1)
    path = jsonl(tmp_path / "c.jsonl", [{"id": "d", "text": text}, {"id": "d", "text": made_up(30, 2)}])
    with pytest.raises(InvalidInput, match="2 documents have the id 'd', 1 of them a copy"):
        find_copies(path, texts=[text])
    allowed = find_copies(path, texts=[text], run=FileRun(duplicate_ids="allow"))
    assert rows_of(allowed)[0]["doc_id"] == "d"
    # Ids of documents that are not copies do not matter.
    assert not find_copies(path, texts=[made_up(30, 3)]).copies.num_rows
    twice = jsonl(tmp_path / "twice.jsonl", [{"id": "x", "text": f"{text} {made_up(5, 9)} {text}"}])
    assert find_copies(twice, texts=[text]).summary["num_given_found"] == 1


def test_what_is_not_listed_or_not_read_is_said(tmp_path):
    text = made_up(30, 1)
    (tmp_path / "d").mkdir()
    jsonl(tmp_path / "d" / "c.jsonl", [{"id": "a\nb", "text": text}, {"id": "c", "text": text}, {"id": "e"}])
    (tmp_path / "d" / "x.bin").write_bytes(b"\0")
    jsonl(tmp_path / "g.jsonl", [{"id": "g", "text": text}])
    found = ("g.jsonl", "--in", "d", "-o", "out", "--on-error", "skip")
    done = likewise_command("copies", *found, cwd=tmp_path)
    assert done.status == 0, done.err
    assert "1 id with a line break: in copies.parquet only" in done.err
    assert "skipped 1 file" in done.err
    assert "x.bin" in done.err
    assert (tmp_path / "out" / "delete" / "1-d.txt").read_text() == "c\n"
    (error,) = (tmp_path / "out" / "errors.jsonl").read_text().splitlines()
    assert json.loads(error)["row"] == 3


def test_runs_that_were_changed_or_are_of_another_kind(tmp_path):
    texts = [made_up(30, i) for i in range(3)]
    path = jsonl(tmp_path / "c.jsonl", [{"id": str(i), "text": text} for i, text in enumerate([*texts, texts[0]])])
    likewise.dedup_files(path, tmp_path / "run", method="exact")
    kept = tmp_path / "run" / "kept" / "c.jsonl"
    original = kept.read_text()
    for changed in ("", "".join(original.splitlines(keepends=True)[1:]), original * 2):
        kept.write_text(changed)
        run = FileRun(duplicate_ids="allow")
        with pytest.raises(InvalidInput, match=r"the kept files have \d documents of c\.jsonl, but the run kept 3"):
            find_copies(tmp_path / "run", texts=[texts[0]], run=run)
    kept.write_text(original)
    for command in (("copies", path, "--in", tmp_path / "run"), ("dedup", kept), ("repeats", kept.parent)):
        done = likewise_command(*command, "-o", tmp_path / "run", "--overwrite")
        assert done.status == 2
        assert "inside the output directory" in done.err
        assert kept.read_text() == original
    likewise_command("repeats", path, "-o", tmp_path / "parts", "--unit", "line")
    with pytest.raises(InvalidInput, match="output of likewise repeats"):
        find_copies(tmp_path / "parts", texts=[texts[0]])


def test_binary_files_are_rejected_without_options_that_copies_lacks(tmp_path):
    (tmp_path / "n.txt").write_bytes(b"a text\0")
    (tmp_path / "c.jsonl").write_text(json.dumps({"text": "a text"}) + "\n")
    for given, place in (("n.txt", "c.jsonl"), ("c.jsonl", "n.txt")):
        done = likewise_command("copies", given, "--in", place, cwd=tmp_path)
        assert done.status == 2
        assert (
            "byte 7 is NUL, so this is a binary file; compare raw bytes with likewise dedup --tokens bytes" in done.err
        )
    (tmp_path / "blob").write_bytes(b"\0\1\2")
    done = likewise_command("copies", "blob", "--in", "c.jsonl", cwd=tmp_path)
    assert "compare raw bytes with likewise dedup --tokens bytes" in done.err


def test_documents_with_other_numbers_have_a_list_of_their_own(tmp_path):
    text = (
        "Invoice 41 of the mill at the old harbor: twelve sacks of flour at 30 each, payable within ten days of receipt"
    )
    places = {"same": text, "next": text.replace("41", "42"), "inside": f"{made_up(60, 1)} {text.replace('30', '31')}"}
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps({"id": name, "text": one}) + "\n" for name, one in places.items()))
    found = find_copies([path], texts={"given": text}, output=tmp_path / "out")
    kinds = {row["doc_id"]: (row["kind"], row["differs_in"]) for row in rows_of(found)}
    assert kinds == {"same": ("exact", None), "next": ("near", "numbers"), "inside": ("containing", "numbers")}
    lists = {path.name: path.read_text().split() for path in (tmp_path / "out" / "delete").iterdir()}
    assert lists == {"1-c.jsonl.txt": ["same"], "1-c.jsonl.numbers.txt": ["next", "inside"]}
