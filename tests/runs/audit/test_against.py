"""Audits of runs that were compared with earlier runs and with files, against plain sets."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import InvalidInput, Recipe, dedup_files
from likewise.runs.audit import audit
from tests.command import likewise_command
from tests.runs.audit.corpora import SABOTAGED, failed, graded, resembling, write


@pytest.fixture
def runs(tmp_path):
    """Return a folder with old and new documents, some new ones copies of old, and a run of the new against the old."""
    texts = graded(300, 11)
    write(tmp_path / "old.jsonl", texts[:120])
    write(tmp_path / "new.jsonl", texts[120:])
    dedup_files(tmp_path / "new.jsonl", tmp_path / "out", SABOTAGED, against=[tmp_path / "old.jsonl"])
    return tmp_path, texts


def check_census(found, out, texts, num_old):
    """Check that the recall of an audit of all documents is that of plain sets, ignoring pairs of old documents."""
    true = {pair for pair in resembling(texts, 0.5) if max(pair) >= num_old}
    table = likewise.pairs(texts[num_old:], SABOTAGED).to_pylist()
    compared = {(row["row_a"] + num_old, row["row_b"] + num_old) for row in table}
    across = likewise.pairs(texts[num_old:], SABOTAGED, against=texts[:num_old]).to_pylist()
    compared |= {(row["row_b"], row["row_a"] + num_old) for row in across}
    removed = {row + num_old for row in pq.read_table(out / "removed.parquet").column("row").to_pylist()}
    kept = set(range(len(texts))) - removed
    ought = {b for a, b in true if a in kept and b in kept}
    assert len(ought) > 3
    assert 0.3 < len(compared & true) / len(true) < 0.9
    assert found.recall.num_pairs == len(true)
    assert found.recall.pairs.value == pytest.approx(len(compared & true) / len(true), abs=1e-12)
    assert found.recall.num_overlooked == len(ought)
    assert found.recall.removals.value == pytest.approx(len(removed) / (len(removed) + len(ought)), abs=1e-12)


def test_a_run_against_files_is_audited(runs):
    folder, texts = runs
    sources = pq.read_table(folder / "out" / "removed.parquet").column("kept_source").to_pylist()
    assert set(sources) == {"against", "input"}
    found = audit(folder / "out", num_sampled=1000)
    assert found.passed, failed(found)
    check_census(found, folder / "out", texts, 120)
    facts = found.certificate
    assert (facts["num_documents"], facts["num_references"]) == (180, 120)
    assert [file["path"] for file in facts["references"]] == ["old.jsonl"]
    rows = [(pair["row_a"], pair["row_b"]) for pair in facts["missed_pairs"]]
    # A reference document has no row number; its copy has one.
    assert any(a is None and b is not None for a, b in rows)
    assert all(row is None or 0 <= row < 180 for pair in rows for row in pair)


@pytest.mark.parametrize("keep_sketches", [False, True])
@pytest.mark.parametrize(
    "recipe", [Recipe.minhash(0.5), "default", Recipe.simhash(within=12)], ids=["minhash", "default", "simhash"]
)
def test_a_run_against_an_earlier_run_is_audited(runs, recipe, keep_sketches):
    folder, texts = runs
    dedup_files(folder / "old.jsonl", folder / "first", recipe, keep_sketches=keep_sketches)
    write(folder / "twice.jsonl", texts[100:200])
    dedup_files(folder / "new.jsonl", folder / "second", against=[folder / "first"])
    dedup_files(folder / "twice.jsonl", folder / "third", against=[folder / "first", folder / "new.jsonl"])
    for name in ("second", "third"):
        found = audit(folder / name, num_sampled=1000)
        assert found.passed, failed(found)
        right = found.within_radius if found.precision is None else found.precision
        assert right.value == 1.0


def test_rows_that_were_tampered_with_are_seen(runs):
    folder, _ = runs
    path = folder / "out" / "removed.parquet"
    table = pq.read_table(path)
    at = table.column("kept_source").to_pylist().index("against")
    for name, value in (
        ("kept_offset", 1),
        ("kept_file", "/nowhere.jsonl"),
        ("kept_id", "d119x"),
        ("similarity", 0.99),
    ):
        column = table.column(name).to_pylist()
        column[at] = value
        place = table.column_names.index(name)
        pq.write_table(table.set_column(place, name, pa.array(column, table.column(name).type)), path)
        assert failed(audit(folder / "out", num_sampled=50)), name
    pq.write_table(table, path)
    summary = json.loads((folder / "out" / "summary.json").read_text())
    summary["against"]["num_removed"] += 1
    (folder / "out" / "summary.json").write_text(json.dumps(summary))
    assert failed(audit(folder / "out", num_sampled=50)) == ["the counts in the summary are correct"]


def test_changed_and_missing_references_are_told(runs):
    folder, _ = runs
    old = (folder / "old.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "old.jsonl").write_bytes(b"".join(old[:-1]))
    assert "the counts in the summary are correct" in failed(audit(folder / "out", num_sampled=50))
    (folder / "old.jsonl").unlink()
    with pytest.raises(InvalidInput, match="reference documents of the run"):
        audit(folder / "out")
    assert likewise_command("audit", folder / "out").status == 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_intervals_hold_the_truth(tmp_path):
    """Of 100 audits of samples, at least 93 intervals contain the truth by plain sets."""
    held = {"pairs": 0, "removals": 0}
    for corpus in range(5):
        folder = tmp_path / str(corpus)
        folder.mkdir()
        texts = graded(900, 300 + corpus, 0.4)
        write(folder / "old.jsonl", texts[:300])
        write(folder / "new.jsonl", texts[300:])
        dedup_files(folder / "new.jsonl", folder / "out", SABOTAGED, against=[folder / "old.jsonl"])
        truth = audit(folder / "out", num_sampled=10_000).recall
        assert truth.pairs.is_exact
        for seed in range(20):
            found = audit(folder / "out", num_sampled=200, seed=seed).recall
            for name in held:
                share, exact = getattr(found, name), getattr(truth, name).value
                held[name] += share.low - 1e-12 <= exact <= share.high + 1e-12
    print(held)
    assert min(held.values()) >= 93
