"""Repeated parts are removed, the first occurrence is kept, and everything else is unchanged."""

import gzip
import json
import random
import sys

import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.parts import PartRules, dedup_parts
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from likewise.runs.diff import run_differences
from tests.batch.parts.naive import lines, paragraphs, without_spans, without_units
from tests.command import jsonl, likewise_command

NOTICE = "Subscribe to our letter today."
TEXTS = [
    f"{NOTICE}\n\nThe river rose over night.\nNobody was hurt.\n",
    f"A mill burned down.\n\n \n{NOTICE.upper()}  \nnobody was  hurt.",
    f"{NOTICE}\n{NOTICE}\n",
    "  \n",
    "",
]


def run(tmp_path, texts, unit, recipe=None, *, out="out", file="in.jsonl", **options):
    (tmp_path / file).write_bytes(jsonl(texts))
    summary = dedup_parts(
        tmp_path / file, tmp_path / out, PartRules(unit, options.pop("min_tokens", None)), recipe, **options
    )
    return summary, tmp_path / out


def kept(out, file="in.jsonl"):
    return {int(row["id"]): row["text"] for row in map(json.loads, (out / "kept" / file).read_text().splitlines())}


def evidence(out):
    return pq.read_table(out / "removed.parquet").to_pylist()


def jsonl_ids(texts):
    return [{"id": str(i), "text": text} for i, text in enumerate(texts)]


def mixed(seed, num_texts=60):
    """Return texts of sentences from a small stock, in lines and paragraphs, with the case of some words changed."""
    rng = random.Random(seed)
    words = [f"{rng.choice('bcdfghklmnprst')}{rng.choice('aeiou')}{c}" for c in "abcdefghijklmnopqrstuvwxyz"]
    stock = [" ".join(rng.choices(words, k=rng.randint(2, 12))) + "." for _ in range(40)]
    texts = []
    for _ in range(num_texts):
        parts = [
            rng.choice(stock) if rng.random() < 0.6 else " ".join(rng.choices(words, k=8))
            for _ in range(rng.randint(0, 9))
        ]
        parts = [part.upper() if rng.random() < 0.1 else part for part in parts]
        texts.append("".join(part + rng.choice(["\n", "\r\n", "\n\n", " \n \n", "\u2028"]) for part in parts))
    return texts


@pytest.mark.parametrize("unit", ["line", "paragraph"])
@pytest.mark.parametrize("seed", range(3))
def test_units_as_by_hand(tmp_path, unit, seed):
    texts = mixed(seed)
    expected, gone = without_units(texts, {"line": lines, "paragraph": paragraphs}[unit])
    summary, out = run(tmp_path, texts, unit)
    stays = {i: text for i, text in enumerate(expected) if text.strip() or text == texts[i]}
    assert kept(out) == stays
    assert len(gone) > 10
    assert summary["num_emptied"] == len(texts) - len(stays)
    # Offsets count bytes; these texts are ASCII except for line separators of three bytes.
    byte = [lambda at, text=text: len(text[:at].encode()) for text in texts]
    assert [(r["row"], r["span_start"], r["span_end"], r["kept_row"], r["kept_span_start"]) for r in evidence(out)] == [
        (row, byte[row](start), byte[row](end), other, byte[other](place)) for row, start, end, other, place in gone
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("num_words", [8, 13])
def test_spans_as_by_hand(tmp_path, seed, num_words):
    rng = random.Random(seed)
    vocabulary = [f"{a}{b}" for a in "bcdfg" for b in "aeiou"]
    stock = [rng.choices(vocabulary, k=rng.randint(4, 40)) for _ in range(12)]
    # One, two and five words repeated many times: windows overlap what they repeat.
    stock += [["ding"] * 30, ["ding", "dong"] * 20, rng.choices(vocabulary, k=5) * 9]
    texts = []
    for _ in range(50):
        words = [
            w
            for _ in range(rng.randint(0, 5))
            for w in (rng.choice(stock) if rng.random() < 0.5 else rng.choices(vocabulary, k=9))
        ]
        texts.append("".join(w + rng.choice([" ", " ", ", ", ".\n", '" (']) for w in words))
    expected = without_spans(texts, num_words)
    summary, out = run(tmp_path, texts, "span", min_tokens=num_words)
    stays = {i: text for i, text in enumerate(expected) if text.strip() or text == texts[i]}
    assert kept(out) == stays
    assert summary["num_removed_parts"] > 20
    for row in evidence(out):
        a = texts[row["row"]].encode()[row["span_start"] : row["span_end"]].decode()
        b = texts[row["kept_row"]].encode()[row["kept_span_start"] : row["kept_span_end"]].decode()
        assert likewise.stages.text.tokens(a) == likewise.stages.text.tokens(b)
        assert len(likewise.stages.text.tokens(a)) >= num_words
        assert (row["kept_row"], row["kept_span_start"]) < (row["row"], row["span_start"])


def test_documents_of_one_window(tmp_path):
    """The window of each document is followed at once by that of the next."""
    text = "one two three four five six seven eight"
    _, out = run(tmp_path, [text, text.upper(), text], "span", min_tokens=8)
    assert kept(out) == {0: text}
    assert [row["kept_row"] for row in evidence(out)] == [0, 0]


@pytest.mark.parametrize("unit", ["line", "sentence", "span"])
def test_threads_and_files_change_nothing(tmp_path, unit, monkeypatch):
    texts = [text for seed in range(4) for text in mixed(seed)]
    rules = {"min_tokens": 8} if unit == "span" else {}
    _, one = run(tmp_path, texts, unit, out="one", run=FileRun(threads=1), **rules)
    # Jobs of a few hundred bytes.
    for name in ("likewise.batch.parts.collection", "likewise.batch.read.ingest"):
        monkeypatch.setattr(sys.modules[name], "PIECE_BYTES", 500)
    # No spans are held, and few are measured at a time.
    for name in ("_WINDOW_BYTES", "_BYTES_AT_ONCE"):
        monkeypatch.setattr(sys.modules["likewise.batch.parts.run"], name, 1)
    _, two = run(tmp_path, texts, unit, out="two", run=FileRun(threads=3), **rules)
    assert run_differences(one, two)[0] == []
    rows = [json.dumps(row) for row in map(json.loads, (tmp_path / "in.jsonl").read_text().splitlines())]
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "a.jsonl").write_text("\n".join(rows[:33]))
    (tmp_path / "cut" / "b.jsonl").write_text("\n".join(rows[33:]) + "\n\n")
    dedup_parts(tmp_path / "cut", tmp_path / "three", PartRules(unit, **rules))
    assert run_differences(one, tmp_path / "three")[0] == []


def test_near_parts_by_a_recipe(tmp_path):
    long = "the old ferry crosses the river twice a day in summer and once a day while the ice holds off"
    texts = [f"{long}\nsomething of its own stands here\n", f"other words\n{long} now\n"]
    summary, out = run(tmp_path, texts, "line", likewise.Recipe.minhash(0.7))
    assert kept(out) == {0: texts[0], 1: "other words\n"}
    (row,) = evidence(out)
    assert 0.7 <= row["similarity"] < 1
    assert row["measure"] == "jaccard"
    assert "exact jaccard similarity >= 0.7" in summary["verification"]


def test_all_else_stays(tmp_path):
    """Only the value of the text changes, and only if something was removed."""
    before = [
        b'{"n": 1.0e3, "big": 123456789012345678901234567890, "meta": {"text": "x", "body": "once\\ntwice"}, "z":[1 ]}',
        b'\t{"meta":{"body":"twice\\nthird \\ud83d\\ude00 \\ud800 end","text":"x"} , "n":1.50, "text": 7 }  ',
        '{"meta": {"body": "einmal größer\\nonce\\n"}, "name": "ü"}'.encode(),
        b'{"meta": {"body": "twice"}, "id": "gone"}',
    ]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join([*before[:2], b"", *before[2:]]))
    options = FileRun(text_fields=("meta.body",))
    dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("line"), run=options)
    after = (tmp_path / "out" / "kept" / "in.jsonl").read_bytes().split(b"\n")
    assert after == [
        before[0],
        before[1].replace(b"twice\\n", b""),
        before[2].replace(b"once\\n", b""),
        b"",
    ]
    emptied = [json.loads(line) for line in (tmp_path / "out" / "emptied.jsonl").read_text().splitlines()]
    assert emptied == [{"row": 3, "doc_id": "gone", "file": "in.jsonl"}]


def test_a_value_deeper_than_any_stack(tmp_path):
    deep = b"[" * 100_000 + b'"}]\\""' + b"]" * 100_000
    lines = [b'{"a": %b, "text": "one\\ntwo"}' % deep, b'{"a": {"b": %b}, "text": "two\\nthree", "c": -1e3}' % deep]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("line"))
    after = (tmp_path / "out" / "kept" / "in.jsonl").read_bytes().split(b"\n")
    assert after == [lines[0], lines[1].replace(b"two\\n", b""), b""]


def test_packed_and_bad_rows(tmp_path):
    rows = [b'{"text": "one line\\nmore"}', b"no json", b'{"text": "One Line\\nother"}']
    for name, pack in (("a.jsonl", bytes), ("b.jsonl.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(b"\n".join(rows)))
        for unit in ("line", "span"):
            with pytest.raises(InvalidInput, match=rf"{name}:2: "):
                dedup_parts(tmp_path / name, tmp_path / "x", PartRules(unit))
        for on_error, expected in (
            ("skip", [rows[0], b'{"text": "other"}']),
            ("keep", [rows[0], rows[1], b'{"text": "other"}']),
        ):
            out = tmp_path / f"{name}-{on_error}"
            dedup_parts(tmp_path / name, out, PartRules("line"), run=FileRun(on_error=on_error))
            data = (out / "kept" / name).read_bytes()
            assert (data if pack is bytes else gzip.decompress(data)).splitlines() == expected
            assert json.loads((out / "errors.jsonl").read_text())["row"] == 2


def test_least_words(tmp_path):
    texts = ["yes\na line of five words\n", "yes\na line of five words\n"]
    _, out = run(tmp_path, texts, "line", min_tokens=2)
    assert kept(out) == {0: texts[0], 1: "yes\n"}
    _, out = run(tmp_path, texts, "line", min_tokens=6, out="six")
    assert kept(out) == dict(enumerate(texts))
    # A bracket alone has no word: it is removed unless parts must have at least one word.
    texts = ["if a\n}\n", "if b\n}\n"]
    for least, second in ((None, "if b\n"), (0, "if b\n"), (1, texts[1])):
        _, out = run(tmp_path, texts, "line", min_tokens=least, out=f"least-{least}")
        assert kept(out) == {0: texts[0], 1: second}


def test_bytes_of_what_is_shown_are_those_that_went(tmp_path):
    """Stretches of a repetitive text overlap."""
    text = "one two three four five six seven " * 400
    summary, out = run(tmp_path, [text, f"{text}end", "x " * 90], "span", min_tokens=8)
    assert len(evidence(out)) > 100
    assert sum(part["num_bytes"] for part in summary["most_removed"]) == summary["num_removed_bytes"] > 0


def test_dry_run_and_refusals(tmp_path):
    summary, out = run(tmp_path, TEXTS, "line", dry_run=True)
    assert not out.exists()
    assert summary["num_removed_parts"] == 4
    assert summary["num_emptied"] == 1
    assert summary["most_removed"][0]["text"].startswith(NOTICE)
    assert summary["most_removed"][0]["num_times"] == 3
    for options, word in (
        ({"recipe": likewise.Recipe.minhash(keep="longest")}, "keep"),
        ({"recipe": likewise.Recipe.minhash(weights="idf")}, "weights"),
        ({"recipe": likewise.Recipe.bloom()}, "filter_bits"),
        ({"run": FileRun(text_fields=("a", "b"))}, "text_field"),
        ({"parts": PartRules("word")}, "unit"),
        ({"parts": PartRules("span", 3)}, "min_tokens"),
        ({"parts": PartRules("span"), "recipe": likewise.Recipe.minhash()}, "method"),
        ({"parts": PartRules("span"), "recipe": likewise.Recipe.exact(keep="longest")}, "keep"),
        ({"parts": PartRules("span"), "recipe": likewise.Recipe.exact(fold="accents")}, "fold"),
        ({"parts": PartRules("span"), "recipe": likewise.Recipe.exact(markup="html")}, "markup"),
    ):
        arguments = {"parts": PartRules("line"), **options}
        with pytest.raises(InvalidParameter, match=word):
            dedup_parts(tmp_path / "in.jsonl", out, **arguments)
        assert not out.exists()
    (tmp_path / "double.jsonl").write_bytes(b'{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n')
    for unit in ("line", "span"):
        with pytest.raises(InvalidInput, match=r"double\.jsonl:2: the id 'a'"):
            dedup_parts(tmp_path / "double.jsonl", out, PartRules(unit))
    (tmp_path / "none.jsonl").write_bytes(b"")
    for unit in ("line", "span"):
        assert dedup_parts(tmp_path / "none.jsonl", tmp_path / f"none-{unit}", PartRules(unit))["num_kept"] == 0


def test_command(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(jsonl(TEXTS))
    done = likewise_command("repeats", "in.jsonl", "-o", "out", "--unit", "line", cwd=tmp_path)
    assert done.status == 0, done.err
    assert "4 repeated lines removed from 2 documents" in done.err
    assert kept(tmp_path / "out")[1] == "A mill burned down.\n\n \n"
    done = likewise_command("repeats", "in.jsonl", "-o", "dry", "--unit", "span", "--dry-run", "--json", cwd=tmp_path)
    assert done.status == 0, done.err
    assert json.loads(done.out)["is_dry_run"]
    assert not (tmp_path / "dry").exists()
    for options, word in (
        (["--unit", "line", "--threshold", "0.8"], "--threshold: requires --method with --unit line"),
        (["--unit", "span", "--threshold", "0.8"], "--threshold: does not apply to --unit span"),
        (["--unit", "span", "--preset", "strict"], "--preset: does not apply to --unit span"),
    ):
        done = likewise_command("repeats", "in.jsonl", "-o", "out9", *options, cwd=tmp_path)
        assert done.status == 2
        assert word in done.err
    assert likewise_command("repeats", "in.jsonl", "-o", "-", cwd=tmp_path).status == 2
    assert not (tmp_path / "out9").exists()


def test_paragraphs_are_the_default(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(jsonl(TEXTS))
    done = likewise_command("repeats", "in.jsonl", "-o", "out", "--json", cwd=tmp_path)
    assert json.loads(done.out)["options"]["unit"] == "paragraph"


def test_a_recipe_says_of_parts_what_it_says_of_documents(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(jsonl(TEXTS))
    near = ["--unit", "sentence", "--method", "minhash", "--threshold", "0.8"]
    ran = likewise_command("repeats", tmp_path / "in.jsonl", "-o", tmp_path / "near", *near)
    assert "\nP(found) at the threshold: 0." in ran.err
    assert "\nMinHash: " in ran.err
    assert "an earlier one by exact jaccard similarity >= 0.8." in ran.err
    coarse = ["--unit", "line", "--method", "simhash", "--within", "3"]
    ran = likewise_command("repeats", tmp_path / "in.jsonl", "-o", tmp_path / "coarse", *coarse)
    assert "texts under 64 features also by Jaccard similarity >= " in ran.err.splitlines()[1]
    ran = likewise_command("repeats", tmp_path / "in.jsonl", "-o", tmp_path / "equal", "--unit", "line")
    assert "P(found)" not in ran.err
    assert "recipe: " not in ran.err


def test_an_unfinished_run_over_parts_holds_nothing_that_another_would_lose(tmp_path):
    _, out = run(tmp_path, TEXTS, "line")
    left = tmp_path / "left" / ".unfinished"
    left.mkdir(parents=True)
    (left / "identity.json").write_text(json.dumps({"recipe_id": "another", "unit": "line"}))
    ran = likewise_command("repeats", tmp_path / "in.jsonl", "-o", tmp_path / "left", "--unit", "line")
    assert ran.status == 0, ran.err
    assert kept(tmp_path / "left") == kept(out)
    assert not left.exists()


@pytest.mark.parametrize("command", [["tune"], ["dedup", "-o", "other"]])
def test_the_output_of_a_run_is_no_input_as_it_is(tmp_path, command):
    _, out = run(tmp_path, TEXTS, "line")
    assert (out / "emptied.jsonl").exists()
    ran = likewise_command(*command, out, cwd=tmp_path)
    assert ran.status == 2
    assert f"{out}: this is the output of a run; give its kept/ directory" in ran.err
    assert likewise_command("dedup", out / "kept", "-o", tmp_path / "again").status == 0
