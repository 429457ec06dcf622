"""Audits of `likewise repeats`: sound runs pass, and each kind of tampering is found."""

import json
import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise import Recipe
from likewise.batch.parts import PartRules, dedup_parts
from likewise.errors import InvalidInput
from likewise.job.reading import FileRun
from likewise.runs.audit import audit_parts
from tests.batch.parts.naive import lines
from tests.command import likewise_command
from tests.golden.texts import made_up
from tests.oracle.normalize import normalize

FORMS = [
    ("line", None, None),
    ("paragraph", None, None),
    ("sentence", None, 2),
    ("span", None, 8),
    ("line", Recipe.minhash(0.6, tokens="word", shingle=1), None),
]


def texts(seed=0, num_texts=60):
    """Return documents with repeated lines, some of them changed by a word."""
    rng = random.Random(seed)
    stock = [made_up(rng.randint(6, 20), 300 + i).capitalize() + "." for i in range(30)]
    found = []
    for i in range(num_texts):
        parts = []
        for _ in range(rng.randint(1, 6)):
            words = rng.choice(stock).split()
            if rng.random() < 0.3:
                words[rng.randrange(len(words))] = "changed"
            parts.append(" ".join(words) if rng.random() < 0.7 else made_up(5, 5000 + i))
        found.append(rng.choice(["\n", "\n\n"]).join([*parts, rng.choice(["}", "", "ok"])]))
    return found


def run(tmp_path, form, found=None, **options):
    unit, recipe, min_tokens = form
    rows = [{"id": f"d{i}", "text": text} for i, text in enumerate(texts() if found is None else found)]
    half = len(rows) // 2
    for name, part in (("a", rows[:half]), ("b", rows[half:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    inputs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    dedup_parts(inputs, tmp_path / "out", PartRules(unit, min_tokens), recipe, **options)
    return tmp_path / "out"


def failed(out, **options):
    return {check.name: check for check in audit_parts(out, **options).checks if not check.passed}


@pytest.mark.parametrize("form", FORMS)
def test_sound_runs_pass(tmp_path, form):
    found = audit_parts(run(tmp_path, form), threads=2)
    assert found.passed, [check for check in found.checks if not check.passed]
    assert found.num_removed > 20
    assert found.num_left == (None if form[0] == "span" or form[1] else 0)
    assert all(check.num_checked for check in found.checks)
    if form[1]:
        assert 0.6 <= found.certificate["least_similar"][0]["similarity"] < 1
    if form == FORMS[0]:
        assert found.certificate["short_parts"][0]["text"] in ("}", "ok")


def changed_evidence(out, change):
    table = pq.read_table(out / "removed.parquet")
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), out / "removed.parquet")


@pytest.mark.parametrize("form", FORMS)
def test_tampered_evidence_is_found(tmp_path, form):
    out = run(tmp_path, form)
    rows = pq.read_table(out / "removed.parquet").to_pylist()
    number = next(
        i for i, row in enumerate(rows) if row["kept_row"] < row["row"] - 1 and row["span_end"] - row["span_start"] > 20
    )

    def other_place(rows):
        rows[number]["kept_span_start"] += 7

    def later(rows):
        row = rows[number]
        for name in ("row", "span_start", "span_end"):
            row[name], row[f"kept_{name}"] = row[f"kept_{name}"], row[name]

    def beyond(rows):
        rows[number]["kept_row"] = 10_000

    def less(rows):
        rows[number]["similarity"] = 0.25

    def longer(rows):
        rows[number]["span_end"] += 10_000

    names = {
        other_place: "matches the one",
        later: "refers to an earlier part",
        beyond: "refers to an earlier part",
        less: "matches the one",
        longer: "matches the one",
    }
    for change, name in names.items():
        copy = tmp_path / "copy"
        shutil.copytree(out, copy)
        changed_evidence(copy, change)
        found = failed(copy)
        assert any(name in one for one in found), (change, found)
        assert all(check.failures for check in found.values())
        shutil.rmtree(copy)
    # A part removed without evidence counts as a part left, or as missing text.
    changed_evidence(out, lambda rows: rows.pop(number))
    found = failed(out)
    assert any("counts" in one for one in found)
    assert any("without the removed parts" in one for one in found)
    assert form[1] or form[0] == "span" or any("equals an earlier one" in one for one in found)


@pytest.mark.parametrize("form", FORMS)
def test_changed_kept_files_are_found(tmp_path, form):
    out = run(tmp_path, form)
    path = out / "kept" / "b.jsonl"
    original = path.read_text()
    rows = [json.loads(line) for line in original.splitlines()]
    longest = max(range(len(rows)), key=lambda i: len(rows[i]["text"]))
    for change in (
        lambda text: text[1:],
        lambda text: text + "x",
        lambda text: text[:5] + text[6:],
    ):
        own = [dict(row) for row in rows]
        own[longest]["text"] = change(own[longest]["text"])
        path.write_text("".join(json.dumps(row) + "\n" for row in own))
        (check,) = failed(out).values()
        assert "without the removed parts" in check.name
        assert rows[longest]["id"] in check.failures[0]
    path.write_text("".join(line + "\n" for line in original.splitlines()[1:]))
    assert failed(out)
    path.write_text(original + original.splitlines()[0] + "\n")
    assert "more than expected" in next(iter(failed(out).values())).failures[-1]
    path.write_text(original)
    assert not failed(out)


@pytest.mark.parametrize("form", FORMS)
def test_changed_counts_lists_and_strange_files_are_found(tmp_path, form):
    out = run(tmp_path, form, ["one line of words and more words\n" * 3] * 3)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["num_emptied"] > 0
    assert not failed(out)
    for name in ("num_documents", "num_kept", "num_changed", "num_emptied", "num_removed_parts", "num_removed_bytes"):
        (out / "summary.json").write_text(json.dumps(summary | {name: summary[name] + 1}))
        (check,) = failed(out).values()
        assert check.failures[0].startswith(name.removeprefix("num_").replace("_", " "))
    (out / "summary.json").write_text(json.dumps(summary))
    listed = (out / "emptied.jsonl").read_text()
    for changed in ("", listed.replace('"row": ', '"row": 1'), listed + listed.splitlines()[0] + "\n"):
        (out / "emptied.jsonl").write_text(changed)
        (check,) = failed(out).values()
        assert "emptied.jsonl" in check.failures[0]
    (out / "emptied.jsonl").write_text(listed)
    (out / "kept" / "extra.jsonl").write_text("x")
    (check,) = failed(out).values()
    assert "extra.jsonl is not the file of an input" in check.failures[0]


def test_what_was_left_is_counted_as_by_hand(tmp_path):
    """A run with a longer minimum is audited as if it had none."""
    found = texts(3)
    out = run(tmp_path, ("line", None, 8), found)
    summary = json.loads((out / "summary.json").read_text())
    summary["options"]["min_tokens"] = 0
    (out / "summary.json").write_text(json.dumps(summary))
    seen, repeats = set(), set()
    for row, text in enumerate(found):
        for start, end in lines(text):
            part = normalize(text[start:end])
            if part in seen:
                repeats.add((row, len(text[:start].encode())))
            seen.add(part)
    removed = {(row["row"], row["span_start"]) for row in pq.read_table(out / "removed.parquet").to_pylist()}
    assert removed < repeats
    assert audit_parts(out).num_left == len(repeats - removed)


def test_the_command_writes_a_certificate(tmp_path):
    out = run(tmp_path, FORMS[0])
    done = likewise_command("audit", out)
    assert done.status == 0, done.err
    assert b"ok   every removed part refers to an earlier part" in done.out
    assert b"fewer than 3 words" in done.out
    certificate = json.loads((out / "audit.json").read_text())
    assert certificate["passed"]
    assert len(certificate["inputs"]) == 2
    changed_evidence(out, lambda rows: rows[0].update(kept_row=10_000))
    done = likewise_command("audit", out, "--json")
    assert done.status == 1
    assert not json.loads(done.out)["passed"]
    for option, value in {"--memory": "1GB", "--least-recall": "0.5", "--sample": "100", "--seed": "1"}.items():
        done = likewise_command("audit", out, option, value)
        assert done.status == 2
        assert "does not apply to a run of likewise repeats" in done.err


def test_what_is_missing_is_named(tmp_path):
    out = run(tmp_path, FORMS[0], run=FileRun())
    (tmp_path / "moved").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").rename(tmp_path / "moved" / f"{name}.jsonl")
    with pytest.raises(InvalidInput, match="give its directory with --inputs"):
        audit_parts(out)
    assert audit_parts(out, inputs=tmp_path / "moved").passed
    (out / "removed.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match=r"evidence of the run is missing or damaged \(.+\)"):
        audit_parts(out, inputs=tmp_path / "moved")
    (out / "kept" / "a.jsonl").unlink()
    with pytest.raises(InvalidInput, match="no finished run"):
        audit_parts(tmp_path / "moved")


def test_similar_parts_must_reach_the_threshold(tmp_path):
    out = run(tmp_path, FORMS[-1])
    least = min(row["similarity"] for row in pq.read_table(out / "removed.parquet").to_pylist())
    summary = json.loads((out / "summary.json").read_text())
    summary["recipe"]["threshold"] = least + 0.01
    (out / "summary.json").write_text(json.dumps(summary))
    (check,) = failed(out).values()
    assert "matches the one" in check.name
