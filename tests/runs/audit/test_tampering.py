"""Audits of tampered runs, the certificate, the command, and rejected arguments."""

import dataclasses
import hashlib
import importlib
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from likewise import InvalidInput, InvalidParameter, Recipe, RecipeMismatch, dedup_files
from likewise.batch.against.index import IndexUse
from likewise.runs.audit import audit, read_certificate
from tests.command import likewise_command
from tests.golden.texts import made_up
from tests.runs.audit.corpora import SABOTAGED, failed, graded, run_of, write


@pytest.fixture(scope="module")
def texts():
    return graded(240, 3)


def rewritten(out, change):
    """Rewrite the evidence with one column changed by a function of its list."""
    path = out / "removed.parquet"
    table = pq.read_table(path)
    columns = table.to_pydict()
    change(columns)
    pq.write_table(type(table).from_pydict(columns, schema=table.schema), path)


def higher_similarity(columns):
    columns["similarity"][0] = np.nextafter(columns["similarity"][0], 2.0)


def other_kept(columns):
    columns["kept_row"][1], columns["kept_id"][1] = columns["row"][0], columns["doc_id"][0]


def other_id(columns):
    columns["doc_id"][0] = "nobody"


def no_such_row(columns):
    columns["kept_row"][0] = 10**6


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (higher_similarity, {"the similarity equals the recorded one"}),
        (
            other_kept,
            {
                "every removed document refers to a kept document",
                "every row of the evidence names a document of the inputs",
                "the similarity equals the recorded one",
                "the similarity reaches the threshold or is marked below_threshold",
            },
        ),
        (other_id, {"every row of the evidence names a document of the inputs"}),
        (
            no_such_row,
            {
                "every removed document refers to a kept document",
                "the kept document has the higher priority",
                "every row of the evidence names a document of the inputs",
                "the similarity equals the recorded one",
                "the similarity reaches the threshold or is marked below_threshold",
            },
        ),
    ],
)
def test_evidence_that_was_changed_fails_by_name(tmp_path, texts, change, names):
    out = run_of(tmp_path, texts)
    rewritten(out, change)
    found = audit(out)
    assert set(failed(found)) <= names
    assert failed(found)
    assert not found.passed
    assert all(check.failures for check in found.checks if not check.passed)


def test_a_removal_that_is_hidden_is_seen(tmp_path, texts):
    out = run_of(tmp_path, texts)

    def drop_last(columns):
        for column in columns.values():
            column.pop()

    rewritten(out, drop_last)
    assert "the counts in the summary are correct" in failed(audit(out))


def test_a_requirement_that_was_changed_fails(tmp_path, texts):
    out = run_of(tmp_path, texts, Recipe.minhash(0.4, short_margin=0.8))
    assert failed(audit(out)) == []

    def lower(columns):
        columns["required"][0] = np.nextafter(columns["required"][0], 0.0)

    rewritten(out, lower)
    assert failed(audit(out)) == ["the similarity equals the recorded one"]


def test_kept_files_that_were_changed_fail(tmp_path, texts):
    out = run_of(tmp_path, texts)
    name = "the kept files contain exactly the kept documents"
    kept = out / "kept" / "in.jsonl"
    lines = kept.read_text().splitlines(keepends=True)
    for changed in (lines[:-1], lines[1:], [*lines, lines[0]], [lines[1], lines[0], *lines[2:]]):
        kept.write_text("".join(changed))
        assert failed(audit(out)) == [name]
    kept.unlink()
    assert failed(audit(out)) == [name]
    kept.write_text("".join(lines))
    for stranger, is_told in (("more.jsonl", True), ("below/more.jsonl", True), (".hidden", False)):
        path = kept.parent / stranger
        path.parent.mkdir(exist_ok=True)
        path.write_text(lines[0])
        assert failed(audit(out)) == [name] * is_told
        path.unlink()


def test_inputs_that_changed_fail(tmp_path, texts):
    out = run_of(tmp_path, texts)
    path = tmp_path / "in.jsonl"
    path.write_text(path.read_text().replace("otherword", "x") + json.dumps({"text": "new"}) + "\n")
    assert "the inputs are unchanged since the run" in failed(audit(out))
    path.write_text("")
    with pytest.raises(InvalidInput, match="the inputs are now empty"):
        audit(out)


def test_a_run_that_did_less_than_its_recipe_says_fails(tmp_path, texts, monkeypatch):
    candidates = importlib.import_module("likewise.batch.search.opening")
    honest = candidates.open_buckets

    def fewer_bands(signatures, method, order, **options):
        return honest(signatures, dataclasses.replace(method, bands=2), order, **options)

    with monkeypatch.context() as patched:
        patched.setattr(candidates, "open_buckets", fewer_bands)
        out = run_of(tmp_path, texts, Recipe.minhash(0.5))
    found = audit(out)
    assert failed(found) == ["the run used all matches in the sample that its search finds"]
    assert found.recall.by_stage["found and not acted on"] > 0
    assert found.recall.removals.value < 0.9


def test_evidence_that_is_true_but_not_the_best_fails(tmp_path):
    words = [f"w{i}" for i in range(90)]
    texts = [" ".join(words[low : low + 60]) for low in (0, 30, 10)]
    out = run_of(tmp_path, texts, Recipe.minhash(0.4, shingle=1))
    assert pq.read_table(out / "removed.parquet").column("similarity").to_pylist() == [50 / 70]
    assert audit(out).passed

    def second_best(columns):
        offset = (tmp_path / "in.jsonl").read_bytes().index(b"\n") + 1
        columns |= {"kept_row": [1], "kept_id": ["d1"], "kept_offset": [offset], "similarity": [40 / 80]}

    rewritten(out, second_best)
    assert failed(audit(out)) == ["the run used all matches in the sample that its search finds"]


def test_the_certificate_names_what_was_audited_and_tells_a_change(tmp_path, texts):
    out = run_of(tmp_path, texts)
    done = likewise_command("audit", out, "--sample", 100, "--seed", 4)
    assert done.status == 0, done.err
    path = out / "audit.json"
    certificate = read_certificate(path)
    assert certificate["seed"] == 4
    assert sum(stratum["num_sampled"] for stratum in certificate["sample"]) in range(95, 101)
    assert certificate["inputs"] == [
        {
            "path": "in.jsonl",
            "num_bytes": (tmp_path / "in.jsonl").stat().st_size,
            "sha256": hashlib.sha256((tmp_path / "in.jsonl").read_bytes()).hexdigest(),
        }
    ]
    assert [file["path"] for file in certificate["outputs"]] == ["summary.json", "removed.parquet", "kept/in.jsonl"]
    path.write_text(path.read_text().replace('"passed": true', '"passed": false', 1))
    with pytest.raises(InvalidInput, match="changed"):
        read_certificate(path)
    # The certificate is removed with its run.
    dedup_files(tmp_path / "in.jsonl", out, SABOTAGED, overwrite=True)
    assert not path.exists()


def test_the_same_seed_gives_the_same_audit(tmp_path, texts):
    out = run_of(tmp_path, texts)
    one, two, other = (audit(out, num_sampled=60, seed=seed).certificate for seed in (1, 1, 2))
    for certificate in (one, two):
        del certificate["made_at"], certificate["seal"]
    assert one == two
    assert one["missed_pairs"] != other["missed_pairs"]


def test_the_command_says_what_was_missed_and_fails_where_recall_is_not_proved(tmp_path, texts):
    out = run_of(tmp_path, texts)
    done = likewise_command("audit", out, "-o", tmp_path / "mine.json")
    assert done.status == 0
    text = done.out.decode()
    assert text.count("ok  ") == 10
    assert "not a candidate, both kept" in text
    assert not (out / "audit.json").exists()
    low = json.loads((tmp_path / "mine.json").read_text())["pair_recall"]["low"]
    done = likewise_command("audit", out, "--least-recall", low + 0.01, "--json", "-q")
    assert done.status == 1
    assert "requires" in done.err
    assert json.loads(done.out)["pair_recall"]["low"] == low
    assert likewise_command("audit", out, "--least-recall", "nan").status == 2
    rewritten(out, higher_similarity)
    done = likewise_command("audit", out)
    assert done.status == 1
    assert "FAIL the similarity equals the recorded one" in done.out.decode()


def test_a_sample_that_shows_nothing_proves_no_recall(tmp_path):
    out = run_of(tmp_path, [made_up(40, number) for number in range(60)])
    done = likewise_command("audit", out, "--sample", 10, "--least-recall", 0.9)
    assert done.status == 1
    assert "unknown: the sample contains none" in done.out.decode()
    assert "the recall of pairs is unknown" in done.err
    # All documents were examined: there is nothing to find.
    done = likewise_command("audit", out, "--least-recall", 0.9)
    assert done.status == 0
    assert "nothing to find" in done.out.decode()


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    words = graded(1, 1)[0].split()
    rows = [{"id": f"a\x1b[31m{i}", "text": " ".join([*words[: 30 - i * 4], f"n{i}"])} for i in range(5)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dedup_files(tmp_path / "in.jsonl", tmp_path / "out", Recipe.minhash(0.5, bands=1, rows=128))
    done = likewise_command("audit", tmp_path / "out")
    assert b"\\x1b[31m" in done.out
    assert b"\x1b" not in done.out


def test_what_cannot_be_audited_is_refused_by_name(tmp_path, texts):
    with pytest.raises(InvalidInput, match="no finished run"):
        audit(tmp_path)
    out = run_of(tmp_path, texts)
    for options in ({"num_sampled": 1}, {"seed": -1}, {"num_sampled": 2.5}):
        with pytest.raises(InvalidParameter):
            audit(out, **options)
    dedup_files(tmp_path / "in.jsonl", tmp_path / "second", Recipe.minhash(0.8), index=IndexUse(create=tmp_path / "i"))
    dedup_files(tmp_path / "in.jsonl", tmp_path / "third", Recipe.minhash(0.8), index=IndexUse(against=tmp_path / "i"))
    with pytest.raises(InvalidInput, match="compared with an index"):
        audit(tmp_path / "third")
    for unit in ("line", "span"):
        done = likewise_command("repeats", tmp_path / "in.jsonl", "-o", tmp_path / unit, "--unit", unit)
        assert done.status == 0, done.err
        with pytest.raises(InvalidInput, match="likewise repeats"):
            audit(tmp_path / unit)
    for name in ("removed.parquet", "summary.json"):
        whole = (out / name).read_bytes()
        (out / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(InvalidInput):
            audit(out)
        (out / name).write_bytes(whole)
    assert likewise_command("audit", tmp_path / "nothing").status == 2


def test_a_certificate_replaces_nothing_else(tmp_path, texts):
    out = run_of(tmp_path, texts)
    before = (out / "removed.parquet").read_bytes()
    for name in ("removed.parquet", "summary.json", "kept", "/dev/zero"):
        done = likewise_command("audit", out, "-o", out / name)
        assert done.status == 2
        assert "compared exactly" not in done.out.decode()
    assert (out / "removed.parquet").read_bytes() == before
    assert likewise_command("audit", out, "-o", tmp_path / "none" / "a.json").status == 2
    for _ in range(2):
        assert likewise_command("audit", out, "-q").status == 0


def test_damaged_summaries_and_evidence_are_told(tmp_path, texts):
    out = run_of(tmp_path, texts)
    summary = json.loads((out / "summary.json").read_text())
    for name in ("inputs", "num_kept", "recall"):
        damaged = {key: value for key, value in summary.items() if key != name}
        (out / "summary.json").write_text(json.dumps(damaged))
        with pytest.raises(InvalidInput, match=name):
            audit(out)
    for name, value in (("input_directory", 1), ("inputs", [{**summary["inputs"][0], "num_bytes": "many"}])):
        (out / "summary.json").write_text(json.dumps({**summary, name: value}))
        with pytest.raises(InvalidInput, match="not a Likewise summary"):
            audit(out)
    for name in ("num_bytes", "num_documents", "num_kept", "num_bad_rows"):
        less = {key: value for key, value in summary["inputs"][0].items() if key != name}
        (out / "summary.json").write_text(json.dumps({**summary, "inputs": [less]}))
        for command in (("audit", out), ("report", out), ("diff", out, out)):
            done = likewise_command(*command)
            assert done.status == 2
            assert "not a Likewise summary" in done.err
    for name, value in (("text_field", [1]), ("text_field", 5), ("delimiter", 1), ("id_field", [])):
        (out / "summary.json").write_text(json.dumps({**summary, "options": {**summary["options"], name: value}}))
        with pytest.raises(InvalidInput, match="not a Likewise summary"):
            audit(out)
    (out / "summary.json").write_text(json.dumps(summary))
    table = pq.read_table(out / "removed.parquet")
    words = table.set_column(0, "row", table.column("doc_id"))
    for other in (words, table.drop_columns(["similarity"])):
        pq.write_table(other, out / "removed.parquet")
        with pytest.raises(InvalidInput, match="evidence"):
            audit(out)


def test_weights_of_another_collection_are_asked_for(tmp_path, texts):
    other = write(tmp_path / "other.jsonl", graded(50, 8))
    table = tmp_path / "table.lww"
    assert likewise_command("weights", other, "-o", table).status == 0
    path = write(tmp_path / "in.jsonl", texts)
    assert likewise_command("dedup", path, "-o", tmp_path / "out", "--weights", table).status == 0
    assert audit(tmp_path / "out").passed
    # Without the table that the run stored.
    shutil.rmtree(tmp_path / "out" / "recipe")
    with pytest.raises(RecipeMismatch, match="--weights"):
        audit(tmp_path / "out")
    assert audit(tmp_path / "out", weights=table).passed


@pytest.mark.parametrize("texts", [[], ["one"], ["", "", ""], ["a", "a", "b"]], ids=["none", "one", "empty", "tiny"])
def test_tiny_runs_are_audited(tmp_path, texts):
    found = audit(run_of(tmp_path, texts, Recipe.minhash()))
    assert found.passed
    assert failed(found) == []
