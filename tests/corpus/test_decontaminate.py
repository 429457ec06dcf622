"""Items of evaluation sets in documents: the same answer from memory and any files, outputs, rejected arguments."""

import gzip
import json
import random
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.corpus import ContainmentRules, decontaminate_files
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from tests.batch.parts import naive
from tests.command import likewise_command
from tests.files import jsonl
from tests.golden.texts import made_up
from tests.io.files import write_dataset
from tests.oracle.items import Items


def collection(seed=0, num_documents=80):
    """Return two evaluation sets, and documents: every fourth one contains an item, some of them changed."""
    rng = random.Random(seed)
    quiz = [
        {
            "id": f"q{i}",
            "question": made_up(rng.randint(12, 40), 500 + i),
            "answer": made_up(rng.choice([4, 25]), 700 + i),
        }
        for i in range(20)
    ]
    reading = [{"id": i, "passage": made_up(60, 900 + i)} for i in range(5)]
    reading.append({"id": 5, "passage": quiz[3]["question"]})
    documents = []
    for i in range(num_documents):
        words = made_up(rng.randint(0, 80), 2000 + i).split()
        if i % 4 == 0:
            item = rng.choice([*quiz, *reading])
            copy = rng.choice([text for name, text in item.items() if name != "id"]).split()
            for place in rng.sample(range(len(copy)), rng.choice([0, 0, 1, len(copy) // 8])):
                copy[place] = "changed"
            words[len(words) // 2 : len(words) // 2] = copy
        documents.append({"id": f"d{i}", "text": " ".join(words)})
    return {"quiz": quiz, "reading": reading}, [one for one in documents if one["text"]]


def write(tmp_path, sets, documents):
    jsonl(tmp_path / "corpus.jsonl", documents)
    for name, rows in sets.items():
        jsonl(tmp_path / f"{name}.jsonl", rows)
    return tmp_path / "corpus.jsonl", {name: tmp_path / f"{name}.jsonl" for name in sets}


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows_of(path, drop=()):
    return [{k: v for k, v in row.items() if k not in drop} for row in pq.read_table(path).to_pylist()]


PLACE = ("file", "offset", "length")


@pytest.mark.parametrize("seed", range(3))
def test_memory_and_files_give_the_oracles_answer(tmp_path, seed):
    sets, documents = collection(seed)
    corpus, paths = write(tmp_path, sets, documents)
    found = likewise.decontaminate(pa.Table.from_pylist(documents), sets)
    texts = [
        (name, str(item["id"]), field)
        for name, rows in sets.items()
        for item in rows
        for field in item
        if field != "id"
    ]
    of_item = {(name, str(item["id"])): item for name, rows in sets.items() for item in rows}
    oracle = Items([of_item[name, item][field] for name, item, field in texts], 8)
    expected = set()
    for match, share, similarity in oracle.judge([one["text"] for one in documents]):
        if share >= 0.2 and similarity >= 0.75:
            at = (documents[match.document]["id"], match.start, match.end, match.run)
            expected |= {(*at, *text) for text, own in zip(texts, oracle.distinct, strict=True) if own == match.text}
    names = ("doc_id", "span_start", "span_end", "longest_run", "set", "item_id", "field")
    assert {tuple(row[name] for name in names) for row in found.evidence.to_pylist()} == expected
    assert len(expected) >= 15
    assert {name for *_, name, _, _ in expected} == {"quiz", "reading"}
    summary = decontaminate_files(corpus, paths, tmp_path / "out", run=FileRun(threads=2))
    assert rows_of(tmp_path / "out" / "contaminated.parquet", PLACE) == found.evidence.to_pylist()
    assert rows_of(tmp_path / "out" / "items.parquet") == found.items.to_pylist()
    kept = [row["id"] for row in lines_of(tmp_path / "out" / "kept" / "corpus.jsonl")]
    assert kept == [one["id"] for one, stays in zip(documents, found.kept, strict=True) if stays]
    assert summary["items"] == found.summary["items"]
    assert summary["num_contaminated"] == len({row[0] for row in expected}) == (~found.kept).sum()


def test_every_format_gives_the_same_answer(tmp_path):
    sets, documents = collection()
    corpus, _ = write(tmp_path, sets, documents)
    expected = None
    table = pa.Table.from_pylist(documents)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(corpus.read_bytes()))
    pq.write_table(table, tmp_path / "table.parquet")
    pa.csv.write_csv(table, tmp_path / "table.csv")
    write_dataset(tmp_path / "dataset", [{**one, "n": ""} for one in documents])
    for name, rows in sets.items():
        items = pa.Table.from_pylist([{key: str(value) for key, value in row.items()} for row in rows])
        pq.write_table(items, tmp_path / f"{name}.parquet")
        pa.csv.write_csv(items, tmp_path / f"{name}.csv")
    names = ("corpus.jsonl", "packed.jsonl.gz", "table.parquet", "table.csv", "dataset")
    for number, name in enumerate(names):
        ending = ("jsonl", "parquet", "csv")[number % 3]
        items = {set_name: tmp_path / f"{set_name}.{ending}" for set_name in sets}
        for threads in (1, 3):
            out = tmp_path / f"out-{number}-{threads}"
            decontaminate_files(tmp_path / name, items, out, run=FileRun(threads=threads))
            found = rows_of(out / "contaminated.parquet", PLACE)
            expected = expected or found
            assert found == expected, name
            assert (out / "kept").exists()


def test_cutting_takes_the_stretches_and_nothing_else(tmp_path):
    sets, documents = collection(4)
    documents.append({"id": "whole", "text": sets["quiz"][0]["question"], "more": [1]})
    corpus, paths = write(tmp_path, sets, documents)
    summary = decontaminate_files(corpus, paths, tmp_path / "out", write="cut")
    cuts = {}
    for row in rows_of(tmp_path / "out" / "contaminated.parquet"):
        cuts.setdefault(row["doc_id"], []).append((row["span_start"], row["span_end"]))
    left = {row["id"]: row for row in lines_of(tmp_path / "out" / "kept" / "corpus.jsonl")}
    assert "whole" not in left
    assert summary["num_emptied"] == 1
    for one in documents[:-1]:
        data = one["text"].encode()
        for start, end in sorted(cuts.get(one["id"], ()), reverse=True):
            data = data[:start] + data[end:]
        assert left[one["id"]]["text"].split() == data.decode().split()
    again = decontaminate_files(tmp_path / "out" / "kept", paths, tmp_path / "again", write="evidence")
    assert again["num_contaminated"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_marks_go_with_the_words_that_are_cut(tmp_path, seed):
    """As for spans, compared with plain Python on the words that the evidence names."""
    rng = random.Random(seed)
    marks = (" ", " ", " ", ", ", ". ", ' "', '" ', " (", ") ", "? ", "\n- ", "…", " — ", ").")

    def marked(words):
        return "".join(part for word in words for part in (word, rng.choice(marks)))

    items = [made_up(rng.randint(14, 20), 60 + i).split() for i in range(6)]
    documents = []
    for i in range(40):
        # Two adjacent items, one item twice with half in common, no item, or nothing but an item.
        one, other = rng.sample(items, 2)
        shared = one[:8] + one
        middle = rng.choice([one + other, one, shared, [], one])
        before, behind = (made_up(rng.choice([0, 1, 9]), 200 + 2 * i + side).split() for side in (0, 1))
        text = rng.choice(["", "(", '"', "¿"]) + marked([*before, *middle, *behind])
        documents.append({"id": f"d{i}", "text": text})
    documents = [one for one in documents if one["text"].strip()]
    corpus, paths = write(tmp_path, {"s": [{"question": " ".join(words)} for words in items]}, documents)
    decontaminate_files(corpus, paths, tmp_path / "out", write="cut")
    spans = {}
    for row in rows_of(tmp_path / "out" / "contaminated.parquet"):
        spans.setdefault(row["doc_id"], []).append((row["span_start"], row["span_end"]))
    left = {row["id"]: row["text"] for row in lines_of(tmp_path / "out" / "kept" / "corpus.jsonl")}
    num_marks = 0
    for one in documents:
        text, cuts = one["text"], spans.get(one["id"], ())
        places = [(start, end) for start, end, _ in naive.words(text)]
        at = [(len(text[:start].encode()), len(text[:end].encode())) for start, end in places]
        goes = [any(low <= start and end <= high for low, high in cuts) for start, end in at]
        expected = naive.without_words(text, places, goes) if cuts else text
        assert left.get(one["id"], "").strip() == expected.strip()
        # Cutting the words alone would leave other marks.
        plain = text.encode()
        for low, high in sorted(cuts, reverse=True):
            plain = plain[:low] + plain[high:]
        num_marks += expected.split() != plain.decode().split()
    assert len(spans) > 20
    assert num_marks > 10
    assert any(len(cuts) > 1 for cuts in spans.values())


def test_rows_are_annotated_in_every_format(tmp_path):
    sets, documents = collection(6)
    corpus, paths = write(tmp_path, sets, documents)
    table = pa.Table.from_pylist(documents)
    pq.write_table(table, tmp_path / "table.parquet")
    pa.csv.write_csv(table, tmp_path / "table.csv")
    with pa.OSFile(str(tmp_path / "table.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    expected = {}
    for row in likewise.decontaminate(table, sets).evidence.to_pylist():
        if row["similarity"] > expected.get(row["doc_id"], {"similarity": 0})["similarity"]:
            expected[row["doc_id"]] = row
    with corpus.open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    readers = {
        "parquet": pq.read_table,
        "csv": pa.csv.read_csv,
        "arrow": lambda path: pa.ipc.open_file(path).read_all(),
    }
    for name in ("corpus.jsonl", "table.parquet", "table.csv", "table.arrow"):
        out, run = tmp_path / f"out-{name}", FileRun(on_error="keep", max_bad_rows=1.0)
        decontaminate_files(tmp_path / name, paths, out, run=run, write="annotated", write_prefix="eval_")
        path = out / "annotated" / name
        if name == "corpus.jsonl":
            *lines, bad = path.read_text(encoding="utf-8").splitlines()
            assert bad == "{broken"
            rows = list(map(json.loads, lines))
        else:
            rows = readers[name.split(".")[1]](path).to_pylist()
        assert [row["id"] for row in rows] == [one["id"] for one in documents]
        for row in rows:
            best = expected.get(row["id"])
            assert row["eval_is_contaminated"] == (best is not None)
            found = [row[f"eval_{name}"] or None for name in ("item_set", "item_id", "item_field", "similarity")]
            names = ("set", "item_id", "field", "similarity")
            assert list(map(str, found)) == ([str(best[n]) for n in names] if best else ["None"] * 4)
    jsonl(tmp_path / "taken.jsonl", [{**one, "item_id": 1} for one in documents])
    with pytest.raises(InvalidParameter, match="item_id"):
        decontaminate_files(tmp_path / "taken.jsonl", paths, tmp_path / "o", write="annotated")
    with pytest.raises(InvalidParameter, match="write_prefix"):
        decontaminate_files(corpus, paths, tmp_path / "o", write_prefix="x")


def test_a_run_goes_on_behind_what_was_scanned(tmp_path, monkeypatch):
    files, module = (sys.modules[f"likewise.corpus.{name}"] for name in ("decontaminate_files", "items"))
    sets, documents = collection(5)
    _, paths = write(tmp_path, sets, documents)
    (tmp_path / "parts").mkdir()
    for number in range(5):
        jsonl(tmp_path / "parts" / f"{number}.jsonl", documents[number::5])
    decontaminate_files(tmp_path / "parts", paths, tmp_path / "whole")
    monkeypatch.setattr(files, "_GROUP_BYTES", 1)
    calls = []
    scan = module.Items.scan

    def interrupted(self, texts, threads):
        calls.append(len(texts))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return scan(self, texts, threads)

    monkeypatch.setattr(module.Items, "scan", interrupted)
    with pytest.raises(KeyboardInterrupt):
        decontaminate_files(tmp_path / "parts", paths, tmp_path / "out", run=FileRun(threads=1))
    assert (tmp_path / "out" / ".unfinished").exists()
    decontaminate_files(tmp_path / "parts", paths, tmp_path / "out", run=FileRun(threads=1))
    assert len(calls) in (6, 7)
    for name in ("contaminated.parquet", "items.parquet"):
        assert rows_of(tmp_path / "out" / name) == rows_of(tmp_path / "whole" / name)
    for number in range(5):
        ours, theirs = (tmp_path / out / "kept" / f"{number}.jsonl" for out in ("out", "whole"))
        assert ours.read_bytes() == theirs.read_bytes()


def test_items_of_one_id_count_by_rows_and_are_told(tmp_path):
    questions = [made_up(20, i) for i in range(3)]
    jsonl(tmp_path / "q.jsonl", [{"id": min(i, 1), "question": one} for i, one in enumerate(questions)])
    jsonl(tmp_path / "c.jsonl", [{"text": questions[1]}])
    files = (tmp_path / "c.jsonl", "--against", tmp_path / "q.jsonl")
    done = likewise_command("decontaminate", *files, "-o", tmp_path / "o")
    assert "several items of 'q' have the id '1'; --item-id-field none" in done.err
    assert "1 of 1 document contains 1 of 3 items" in done.err
    items = [{"id": "same", "question": one} for one in questions]
    memory = likewise.decontaminate([questions[1]], {"q": items})
    assert memory.summary["items"]["q"]["num_items"] == 3
    by_row = likewise.decontaminate([questions[1]], {"q": items}, item_id_field="none")
    assert by_row.evidence.column("item_id").to_pylist() == ["1"]
    nested = [{"about": {"key": f"k{i}"}, **one} for i, one in enumerate(items)]
    by_key = likewise.decontaminate([questions[1]], {"q": nested}, item_id_field="about.key")
    assert by_key.evidence.column("item_id").to_pylist() == ["k1"]
    done = likewise_command("decontaminate", *files, "--item-id-field", "none", "-o", tmp_path / "rows")
    assert "several items" not in done.err
    assert rows_of(tmp_path / "rows" / "contaminated.parquet")[0]["item_id"] == "1"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"question": "\xff"}', "bad UTF-8"),
        (b'{"question": 5}', "is a number"),
        (b'{"question": "x"', "JSON"),
        (b'{"id": [1], "question": "a text"}', "--item-id-field none"),
        (b'{"prompt": "a text"}', "--item-field"),
        (b'{"question": "a text"}\n{"answer": "5"}', "choose a field with --item-field"),
        (b'{"question": "%s"}' % (b"long " * 20), "max_document"),
    ],
)
def test_what_is_wrong_with_an_item_is_told(tmp_path, line, words):
    (tmp_path / "q.jsonl").write_bytes(line + b"\n")
    jsonl(tmp_path / "c.jsonl", [{"text": "a text"}])
    done = likewise_command(
        *("decontaminate", tmp_path / "c.jsonl", "--against", tmp_path / "q.jsonl"),
        *("-o", tmp_path / "out", "--max-document", "64"),
    )
    assert (done.status, done.out) == (2, b"")
    assert "q.jsonl:" in done.err or "'q'" in done.err
    assert words in done.err
    assert not (tmp_path / "out" / "summary.json").exists()


def test_short_texts_are_listed_and_never_found():
    found = likewise.decontaminate(["a b c d e f g"], {"s": ["a b c d e f g"]})
    assert found.items.to_pylist() == [
        {
            **{"set": "s", "item_id": "0", "field": "text", "num_words": 7, "num_ngrams": 3},
            **{"status": "too short", "num_documents": 0},
        }
    ]
    assert found.kept.tolist() == [True]
    assert not likewise.decontaminate(["a b c d e f g"], {"s": ["a b c d e f g"]}, min_ngrams=3).kept.all()
    assert "0 of 1 document contain 0 of 1 item" in repr(found)
    assert "too short" in found._repr_html_()


def test_lists_of_choices_and_own_fields():
    rows = [{"prompt": made_up(20, 1), "choices": [made_up(8, 2), made_up(8, 3)], "n": 3}, {"prompt": made_up(15, 4)}]
    choices = " -- ".join(rows[0]["choices"])
    found = likewise.decontaminate([choices, made_up(20, 1)], {"s": rows}, item_fields=["prompt", "choices"])
    assert [(row["row"], row["field"]) for row in found.evidence.to_pylist()] == [(0, "choices"), (1, "prompt")]


def test_fields_inside_others(tmp_path):
    """Choices nested as in published sets: lists inside a mapping, and lists of mappings; from memory and files."""
    question, first, second = (made_up(count, seed) for count, seed in ((20, 1), (15, 2), (15, 3)))
    choices = {"text": [first, second], "label": ["A", "B"]}
    rows = [{"id": "x", "stem": {"text": question}, "choices": choices, "options": [{"text": first}, {"text": second}]}]
    documents = [question, f"{first} {second}", first]
    fields = ["stem.text", "choices.text", "options"]
    jsonl(tmp_path / "q.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "q.parquet")
    jsonl(tmp_path / "c.jsonl", [{"text": text} for text in documents])
    expected = [(0, "stem.text"), (1, "choices.text"), (1, "options")]
    for given in (rows, pa.Table.from_pylist(rows)):
        found = likewise.decontaminate(documents, {"q": given}, item_fields=fields)
        assert [(row["row"], row["field"]) for row in found.evidence.to_pylist()] == expected
        assert [row["num_words"] for row in found.items.to_pylist()] == [20, 30, 30]
        with pytest.raises(InvalidInput, match=r"stem\.no"):
            likewise.decontaminate(documents, {"q": given}, item_fields=["stem.no"])
    for name in ("q.jsonl", "q.parquet"):
        out = tmp_path / f"out-{name}"
        decontaminate_files(tmp_path / "c.jsonl", {"q": tmp_path / name}, out, item_fields=fields)
        rows_found = rows_of(out / "contaminated.parquet")
        assert [(row["row"], row["field"]) for row in rows_found] == expected


def test_lone_surrogates_are_read_as_in_documents():
    question = f"\ud800 {made_up(20, 1)}"
    found = likewise.decontaminate([question], {"s": [question], "t": [{"question": question}]})
    assert found.evidence.column("set").to_pylist() == ["s", "t"]


def test_null_documents_follow_the_option():
    table = pa.table({"text": [None, made_up(20, 1), "other"]})
    with pytest.raises(InvalidInput):
        likewise.decontaminate(table, {"s": [made_up(20, 1)]})
    for nulls, first in (("keep", True), ("drop", False)):
        found = likewise.decontaminate(table, {"s": [made_up(20, 1)]}, nulls=nulls)
        assert found.kept.tolist() == [first, False, True]
        assert found.evidence.column("row").to_pylist() == [1]


@pytest.mark.parametrize("write", ["kept", "cut"])
def test_bad_rows_are_told_and_kept(tmp_path, write):
    question = made_up(20, 1)
    lines = [json.dumps({"text": f"before {question}"}), "{broken", json.dumps({"text": "fine"})]
    (tmp_path / "c.jsonl").write_text("\n".join(lines) + "\n")
    jsonl(tmp_path / "q.jsonl", [{"question": question}])
    with pytest.raises(InvalidInput, match=r"c\.jsonl:2"):
        decontaminate_files(tmp_path / "c.jsonl", {"q": tmp_path / "q.jsonl"}, tmp_path / "out")
    for on_error, num_lines in (("skip", 1), ("keep", 2)):
        out = tmp_path / on_error
        run = FileRun(on_error=on_error, max_bad_rows=1.0)
        summary = decontaminate_files(tmp_path / "c.jsonl", {"q": tmp_path / "q.jsonl"}, out, run=run, write=write)
        assert summary["num_bad_rows"] == 1
        kept = (out / "kept" / "c.jsonl").read_text().splitlines()
        assert [line for line in kept if "before" not in line] == lines[3 - num_lines :]
        assert json.loads((out / "errors.jsonl").read_text())["row"] == 2


def test_bad_rows_of_all_files_count_together(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["likewise.corpus.decontaminate_files"], "_GROUP_BYTES", 1)
    (tmp_path / "parts").mkdir()
    for number in range(4):
        (tmp_path / "parts" / f"{number}.jsonl").write_text('{"text": "a text"}\n{broken\n')
    jsonl(tmp_path / "q.jsonl", [{"question": made_up(20, 1)}])
    for limit in (3, 4):
        run, out = FileRun(on_error="skip", max_bad_rows=limit), tmp_path / str(limit)
        if limit == 3:
            with pytest.raises(InvalidInput, match="max-bad-rows"):
                decontaminate_files(tmp_path / "parts", {"q": tmp_path / "q.jsonl"}, out, run=run)
        else:
            decontaminate_files(tmp_path / "parts", {"q": tmp_path / "q.jsonl"}, out, run=run)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"items": {}}, "at least one evaluation set"),
        ({"items": ["a"]}, "mapping of names"),
        ({"items": {"s": "one"}}, "a single str"),
        ({"items": {"s": [{"prompt": "x"}]}}, "the field question, answer, passage or text"),
        ({"items": {"s": [{"question": "x"}]}, "item_fields": ["question", "target"]}, "the field 'target'"),
        ({"items": {"s": ["x"]}, "threshold": 1.5}, "threshold"),
        ({"items": {"s": ["x"]}, "min_share": float("nan")}, "min_share"),
        ({"items": {"s": ["x"]}, "min_ngrams": 0}, "min_ngrams"),
        ({"items": {"s": [1, 2]}}, "neither texts nor mappings"),
        ({"items": {"s": []}}, "no item of 's' has a text"),
        ({"items": {"s": pa.table({"question": [b"bytes"]})}}, "holds bytes, not texts"),
        ({"items": {"s": pa.Table.from_arrays([pa.array(["a"])] * 2, ["text", "text"])}}, "two columns named 'text'"),
        ({"items": {"s": ["x"]}, "item_fields": "text"}, "'text' is a single name; give a list"),
        ({"items": {"s": ["x"]}, "item_fields": ["text", "text"]}, "'text' is named twice"),
        ({"items": {1: ["x"]}}, "the name 1 of an evaluation set is not a text"),
    ],
    ids=str,
)
def test_refusals_in_memory(call, words):
    with pytest.raises((InvalidInput, InvalidParameter), match=words):
        likewise.decontaminate(["a text"], **call)


def test_refusals_of_files(tmp_path):
    sets, documents = collection()
    corpus, paths = write(tmp_path, sets, documents)
    (tmp_path / "t.warc").write_bytes(b"WARC/1.0\r\n\r\n")
    refused = [
        (lambda: decontaminate_files(corpus, {"s": "-"}, tmp_path / "o"), "standard input"),
        (lambda: decontaminate_files(corpus, {"s": corpus}, tmp_path / "o", item_fields=["x"]), "the field 'x'"),
        (lambda: decontaminate_files(tmp_path / "t.warc", paths, tmp_path / "o", write="cut"), "web archives"),
        (lambda: decontaminate_files(corpus, paths, tmp_path / "o", run=FileRun(memory_bytes="1GB")), "memory"),
        (lambda: decontaminate_files(corpus, paths, tmp_path / "o", write="all"), "write"),
        (lambda: decontaminate_files(corpus, paths, tmp_path / "o", run=FileRun(tokens_field="t")), "tokens"),
        (lambda: decontaminate_files(corpus, paths, tmp_path / "o", run=FileRun(text_fields=("body",))), "body"),
    ]
    for call, words in refused:
        with pytest.raises((InvalidInput, InvalidParameter), match=words):
            call()
        assert not (tmp_path / "o").exists(), words
    decontaminate_files(corpus, paths, tmp_path / "o")
    with pytest.raises(InvalidInput, match="finished"):
        decontaminate_files(corpus, paths, tmp_path / "o")
    decontaminate_files(corpus, paths, tmp_path / "o", ContainmentRules(min_ngrams=4), overwrite=True)


def test_the_command(tmp_path):
    sets, documents = collection()
    corpus, paths = write(tmp_path, sets, documents)
    done = likewise_command(
        "decontaminate",
        corpus,
        "--against",
        paths["quiz"],
        "--against",
        f"r={paths['reading']}",
        "-o",
        tmp_path / "out",
    )
    assert done.status == 0, done.err
    assert done.out.decode().splitlines()[0].split() == ["set", "items", "found", "texts", "too", "short"]
    assert [line.split()[0] for line in done.out.decode().splitlines()[1:]] == ["quiz", "r"]
    assert "too short to be found" in done.err
    done = likewise_command(
        "decontaminate", corpus, "--against", paths["quiz"], "-o", tmp_path / "o2", "--json", "--quiet"
    )
    assert json.loads(done.out)["items"].keys() == {"quiz"}
    assert done.err == ""
    twice = likewise_command("decontaminate", corpus, "--against", corpus, "--against", corpus, "-o", tmp_path / "o3")
    assert "two evaluation sets are named 'corpus'" in twice.err
    failed = likewise_command("decontaminate", corpus, "--against", corpus, "-o", tmp_path / "o3", "--threshold", "2")
    assert failed.status == 2
    assert "threshold" in failed.err


def test_templates_and_swapped_names_are_no_copies():
    frame = "{} buys {} boxes of {} at the {} and gives {} of them to {} on the way home before counting what is left"
    fills = [
        ("Ann", 3, "pears", "harbor", 7, "Bo"),
        ("Kim", 12, "nails", "bakery", 31, "Lu"),
        ("Ida", 8, "maps", "mill", 5, "Jo"),
    ]
    items = [frame.format(*fill) for fill in fills[:2]]
    rng = np.random.default_rng(1)
    carriers = [made_up(60, 50 + int(i)) for i in rng.permutation(20)]
    documents = [f"{carriers[0]} {frame.format(*fills[2])}", f"{carriers[1]} {items[0]}", *carriers[2:]]
    found = likewise.decontaminate(documents, {"s": items})
    assert found.evidence.select(["row", "item_id"]).to_pylist() == [{"row": 1, "item_id": "0"}]


def test_bad_rows_of_evaluation_sets_are_said(tmp_path):
    question = "which of these seven rivers of the north reaches the cold sea first in spring"
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": "a", "text": f"before {question} after"}) + "\n")
    good = json.dumps({"id": "q", "question": question})
    (tmp_path / "q.jsonl").write_text(f'{good}\n{{"id": "r", "passage": "p"}}\n{good.replace("q", "s", 1)}\n')
    with pytest.raises(InvalidInput, match=r"q\.jsonl:2"):
        decontaminate_files(tmp_path / "c.jsonl", {"q": tmp_path / "q.jsonl"}, tmp_path / "out")
    events = []
    run = FileRun(on_error="skip")
    summary = decontaminate_files(
        tmp_path / "c.jsonl", {"q": tmp_path / "q.jsonl"}, tmp_path / "out", run=run, progress=events.append
    )
    assert summary["num_bad_item_rows"] >= 1
    assert any("of the evaluation sets" in str(event) for event in events)
    errors = [json.loads(line) for line in (tmp_path / "out" / "errors.jsonl").read_text().splitlines()]
    assert ("q=q.jsonl", 2) in [(error["file"], error["row"]) for error in errors]
    (tmp_path / "q.jsonl").write_text(good + "\n" + '{"id": "r", "passage": "p"}\n' * 2)
    with pytest.raises(InvalidInput, match="2 of 3 rows"):
        decontaminate_files(tmp_path / "c.jsonl", {"q": tmp_path / "q.jsonl"}, tmp_path / "out2", run=run)


def test_evaluation_sets_that_cannot_be_read_say_why(tmp_path):
    (tmp_path / "c.jsonl").write_text('{"id": "a", "text": "x"}\n')
    for name, data, message in [
        ("empty.jsonl", b"", "has no rows"),
        ("wide.jsonl", "\ufeff{}".encode("utf-16-le"), "UTF-16"),
        ("cut.jsonl.gz", gzip.compress(b'{"question": "a b c"}\n' * 99)[:40], r"cut\.jsonl\.gz"),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InvalidInput, match=message):
            decontaminate_files(tmp_path / "c.jsonl", {"s": tmp_path / name}, tmp_path / "out")


def test_files_of_a_set_that_hold_no_rows_are_skipped(tmp_path):
    """A README in the directory of a set is not part of it, unless it is named."""
    question, about = made_up(20, 1), made_up(20, 2)
    jsonl(tmp_path / "c.jsonl", [{"text": question}, {"text": about}])
    (tmp_path / "evals" / "more").mkdir(parents=True)
    jsonl(tmp_path / "evals" / "q.jsonl", [{"text": question}])
    for name in ("README.md", "LICENSE.txt", "LICENSE", "more/notes.rst"):
        (tmp_path / "evals" / name).write_text(about)
    passed = {"LICENSE", "LICENSE.txt", "README.md"}
    for number, (path, names) in enumerate([("evals", {*passed, "more/notes.rst"}), ("evals/*", {*passed, "more/"})]):
        out = tmp_path / f"out{number}"
        done = likewise_command("decontaminate", tmp_path / "c.jsonl", "--against", f"s={tmp_path / path}", "-o", out)
        assert done.status == 0, done.err
        assert "skipped 4 files" in done.err
        summary = json.loads((out / "summary.json").read_bytes())
        assert set(summary["skipped_files"]) == {f"s={name}" for name in names}
        assert [file["path"] for file in summary["item_files"]] == ["s=q.jsonl"]
        assert summary["items"]["s"]["num_items"] == 1
        assert lines_of(out / "kept" / "c.jsonl") == [{"text": about}]
    for number, path in enumerate(("evals/README.md", "evals/*.md", "evals/**/*.md")):
        out = tmp_path / f"named{number}"
        summary = decontaminate_files(tmp_path / "c.jsonl", {"s": tmp_path / path}, out)
        assert summary["skipped_files"] == []
        assert lines_of(out / "kept" / "c.jsonl") == [{"text": question}]
    (tmp_path / "evals" / "q.jsonl").unlink()
    with pytest.raises(InvalidInput, match=r"skipped: LICENSE, LICENSE.txt, .*name them, such as 'DIR/\*.txt'"):
        decontaminate_files(tmp_path / "c.jsonl", {"s": tmp_path / "evals"}, tmp_path / "none")


def siblings():
    """Return word problems, and documents with a copy of each and with a sibling whose numbers are other ones."""
    items = [f"{made_up(25, 10 + i)} holds {3 + i} of them and {made_up(12, 30 + i)} costs {40 + i}" for i in range(9)]
    carriers = [(i, is_other, text) for i, text in enumerate(items) for is_other in (0, 1)]
    carriers = [
        (i, other, text.replace(f"{3 + i} of", f"{13 + i} of") if other else text) for i, other, text in carriers
    ]
    rng = random.Random(1)
    made = [f"{made_up(30, 50 + n)}\n{text}\n{made_up(30, 90 + n)}" for n, (_, _, text) in enumerate(carriers)]
    order = rng.sample(range(len(made)), len(made))
    return items, [made[n] for n in order], [carriers[n][1] == 1 for n in order]


def test_siblings_with_other_numbers_are_marked_and_kept(tmp_path):
    items, documents, is_sibling = siblings()
    found = likewise.decontaminate(documents, {"s": items})
    marked = {(row["row"], row["differs_in"]) for row in found.evidence.to_pylist()}
    copies = {(row, None) for row, sibling in enumerate(is_sibling) if not sibling}
    assert copies <= marked
    assert marked - copies
    assert {row for row, _ in marked - copies} <= {row for row, sibling in enumerate(is_sibling) if sibling}
    assert {mark for _, mark in marked - copies} == {"numbers"}
    assert found.kept.tolist() == is_sibling
    num_other = len(found.evidence) - found.summary["num_windows"]
    assert found.summary["num_other_numbers"] == num_other > 0
    assert (found.summary["num_contaminated"], found.summary["items"]["s"]["num_found"]) == (9, 9)
    assert set(found.items.column("num_documents").to_pylist()) == {1}
    removing = likewise.decontaminate(documents, {"s": items}, unsure="remove")
    assert removing.evidence == found.evidence
    assert set(np.flatnonzero(~removing.kept).tolist()) == {row for row, _ in marked}
    assert removing.summary["num_other_numbers"] == num_other
    corpus, paths = write(
        tmp_path,
        {"s": [{"text": text} for text in items]},
        [{"id": str(row), "text": text} for row, text in enumerate(documents)],
    )
    for mode, field in (("kept", None), ("cut", None), ("annotated", "is_contaminated")):
        out = tmp_path / mode
        done = likewise_command("decontaminate", corpus, "--against", f"s={paths['s']}", "-o", out, "--write", mode)
        places = "place differs" if num_other == 1 else "places differ"
        assert f"{num_other} {places} from an item in a number, not removed" in done.err
        rows = lines_of(out / ("annotated" if field else "kept") / "corpus.jsonl")
        if mode == "kept":
            assert [row["id"] for row in rows] == [str(row) for row, sibling in enumerate(is_sibling) if sibling]
        elif mode == "cut":
            unchanged = [row["text"] == documents[int(row["id"])] for row in rows]
            assert unchanged == is_sibling
        else:
            assert [row[field] for row in rows] == [not sibling for sibling in is_sibling]
    done = likewise_command(
        "decontaminate", corpus, "--against", f"s={paths['s']}", "-o", tmp_path / "gone", "--unsure", "remove"
    )
    assert "in a number, removed" in done.err
    assert len(lines_of(tmp_path / "gone" / "kept" / "corpus.jsonl")) == removing.kept.sum()


def test_each_set_needs_one_of_the_fields(tmp_path):
    sets = {
        "quiz": [{"question": made_up(20, 1)}, {"question": made_up(20, 2)}],
        "exam": [{"prompt": made_up(20, 3), "target": made_up(20, 4)}],
    }
    fields = ["question", "prompt", "target"]
    documents = [{"id": str(seed), "text": made_up(20, seed)} for seed in range(1, 6)]
    corpus, paths = write(tmp_path, sets, documents)
    options = [option for field in fields for option in ("--item-field", field)]
    named = [option for name, path in paths.items() for option in ("--against", f"{name}={path}")]
    done = likewise_command("decontaminate", corpus, *named, *options, "-o", tmp_path / "out", "--json", "--quiet")
    assert done.status == 0, done.err
    found = likewise.decontaminate(pa.Table.from_pylist(documents), sets, item_fields=fields)
    for items in (json.loads(done.out)["items"], found.summary["items"]):
        assert {name: (facts["fields"], facts["num_found"]) for name, facts in items.items()} == {
            "quiz": (["question"], 2),
            "exam": (["prompt", "target"], 1),
        }
    assert found.kept.tolist() == [False] * 4 + [True]
    with pytest.raises(InvalidInput, match="no item of 'exam' has a text in the field 'question' or 'answer'"):
        likewise.decontaminate(["a text"], sets, item_fields=["question", "answer"])
    with pytest.raises(InvalidInput, match="no item of 'quiz' or 'exam' has a text in the field 'passage'"):
        likewise.decontaminate(["a text"], sets, item_fields=[*fields, "passage"])
    done = likewise_command(
        "decontaminate", corpus, *named, *options, "--item-field", "passage", "-o", tmp_path / "none"
    )
    assert (done.status, "has a text in the field 'passage'" in done.err) == (2, True)
