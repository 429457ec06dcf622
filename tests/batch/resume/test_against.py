"""New documents compared with old ones: a finished run, with or without its sketches, or plain files."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.read import ingest
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.job.reading import FileRun
from tests.batch.resume.test_resume import write_inputs
from tests.command import jsonl, likewise_command
from tests.quality.test_promises import planted
from tests.recipes import RECIPES

METHODS = [
    "minhash",
    "minhash-containment",
    "simhash",
    "simhash-cosine",
    "exact",
    "bloom",
    "shingles",
]
SOME = ["doc_id", "kept_id", "similarity", "distance", "measure"]


@pytest.fixture(scope="module")
def texts():
    return planted()


@pytest.fixture
def sketched(monkeypatch):
    """Count the texts that are sketched."""
    counts = []
    plain = ingest.sketch_texts

    def counting(texts, *arguments, **options):
        counts.append(len(texts))
        return plain(texts, *arguments, **options)

    monkeypatch.setattr(ingest, "sketch_texts", counting)
    monkeypatch.setattr(ingest, "PIECE_BYTES", 9_000)
    return counts


def evidence(out):
    return pq.read_table(out / "removed.parquet")


def old_and_new(tmp_path, texts, kind, recipe, *, keep_sketches):
    """Run on some texts, then on what that run kept followed by the other texts; return the files of the others."""
    half = len(texts) // 2
    old = write_inputs(tmp_path / "old", texts[:half], kind)
    likewise.dedup_files(old, tmp_path / "first", recipe, keep_sketches=keep_sketches)
    new = write_inputs(tmp_path / "new", texts[half:], kind)
    for path in new:
        path.rename(path.with_name("new-" + path.name))
    new = [path.with_name("new-" + path.name) for path in new]
    kept = sorted((tmp_path / "first" / "kept").iterdir())
    likewise.dedup_files([*kept, *new], tmp_path / "both", recipe, run=FileRun(duplicate_ids="allow"))
    return new


def check_same_verdicts(tmp_path, num_old):
    """Check that the run on new files alone gives the same verdicts as the run on both."""
    out, both = tmp_path / "out", tmp_path / "both"
    found, expected = evidence(out), evidence(both)
    assert num_old > 40
    assert (expected["row"].to_numpy() >= num_old).all()
    assert found.select(SOME).equals(expected.select(SOME))
    assert (found["row"].to_numpy() == expected["row"].to_numpy() - num_old).all()
    from_old = expected["kept_row"].to_numpy() < num_old
    assert from_old.any()
    assert not from_old.all()
    assert [source == "against" for source in found["kept_source"].to_pylist()] == from_old.tolist()
    assert [row is None for row in found["kept_row"].to_pylist()] == from_old.tolist()
    return found


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("keep_sketches", [True, False])
def test_against_a_run_is_as_if_both_were_one(tmp_path, texts, sketched, name, keep_sketches):
    if keep_sketches and name == "shingles":
        with pytest.raises(InvalidParameter, match="shingles"):
            likewise.dedup_files(tmp_path, tmp_path / "out", RECIPES[name], keep_sketches=True)
        return
    recipe = RECIPES[name].replace(keep="first")
    new = old_and_new(tmp_path, texts, "jsonl", recipe, keep_sketches=keep_sketches)
    num_old = json.loads((tmp_path / "first" / "summary.json").read_text())["num_kept"]
    sketched.clear()
    summary = likewise.dedup_files(new, tmp_path / "out", recipe, against=[tmp_path / "first"])
    assert summary["num_documents"] == len(texts) - len(texts) // 2
    assert sum(sketched) == summary["num_documents"] + (0 if keep_sketches else num_old)
    found = check_same_verdicts(tmp_path, num_old)
    assert summary["num_removed"] == found.num_rows
    assert summary["num_kept"] + summary["num_removed"] == summary["num_documents"]
    assert summary["against"]["num_documents"] == num_old
    assert sum(entry["num_kept"] for entry in summary["inputs"]) == summary["num_kept"]
    # Both texts can be shown: the kept one is in the old run's files.
    for row in found.to_pylist():
        if row["kept_source"] == "against":
            with open(row["kept_file"], "rb") as file:
                file.seek(row["kept_offset"])
                assert json.loads(file.readline())["id"] == row["kept_id"]


@pytest.mark.parametrize("kind", ["csv", "jsonl.gz", "parquet"])
def test_every_format_keeps_sketches(tmp_path, texts, sketched, kind):
    recipe = RECIPES["minhash"]
    new = old_and_new(tmp_path, texts, kind, recipe, keep_sketches=True)
    num_old = json.loads((tmp_path / "first" / "summary.json").read_text())["num_kept"]
    sketched.clear()
    summary = likewise.dedup_files(new, tmp_path / "out", recipe, against=[tmp_path / "first"])
    assert sum(sketched) == summary["num_documents"]
    check_same_verdicts(tmp_path, num_old)


def test_bad_rows_that_were_kept_move_no_place(tmp_path, texts):
    lines = jsonl(texts[:150]).splitlines(keepends=True)
    lines[3:3] = [b"broken\n", b"\n", b"{}\n"]
    (tmp_path / "old.jsonl").write_bytes(b"".join(lines))
    (tmp_path / "new.jsonl").write_bytes(b"".join(jsonl(texts[:150]).replace(b'"id": ', b'"id": 9').splitlines(True)))
    likewise.dedup_files(tmp_path / "old.jsonl", tmp_path / "first", run=FileRun(on_error="keep"), keep_sketches=True)
    summary = likewise.dedup_files(tmp_path / "new.jsonl", tmp_path / "out", against=[tmp_path / "first"])
    assert summary["num_kept"] == 0
    assert summary["num_bad_rows"] == 0
    assert set(evidence(tmp_path / "out")["kept_source"].to_pylist()) >= {"against"}


def test_references_are_never_compared_with_each_other(tmp_path):
    base = [f"w{i}" for i in range(40)]
    near, far = " ".join([*base[:36], "a", "b", "c", "d"]), " ".join([*base[:30], *"abcdefghij"])
    recipe = likewise.Recipe.minhash(0.6, shingle=1)
    (tmp_path / "old.jsonl").write_bytes(jsonl([" ".join(base), near, near]))
    (tmp_path / "new.jsonl").write_bytes(jsonl([far, "another thing", "another thing"]))
    summary = likewise.dedup_files(tmp_path / "new.jsonl", tmp_path / "out", recipe, against=[tmp_path / "old.jsonl"])
    # Ids of references may be repeated, even among themselves.
    rows = evidence(tmp_path / "out").to_pylist()
    assert [(row["doc_id"], row["kept_id"], row["kept_source"]) for row in rows] == [
        ("0", "1", "against"),
        ("2", "1", "input"),
    ]
    assert rows[1]["kept_row"] == 1
    assert (summary["num_documents"], summary["num_kept"], summary["num_removed"]) == (3, 1, 2)
    assert summary["against"] == {"paths": [str(tmp_path / "old.jsonl")], "num_documents": 3, "num_removed": 1}
    assert [path.name for path in (tmp_path / "out" / "kept").iterdir()] == ["new.jsonl"]


def test_keep_prefers_references_to_all_others(tmp_path, texts):
    (tmp_path / "old.jsonl").write_bytes(jsonl(texts[:60]))
    (tmp_path / "new.jsonl").write_bytes(jsonl([text + " more" for text in texts[:60]]))
    recipe = RECIPES["minhash"].replace(keep="longest")
    likewise.dedup_files(tmp_path / "old.jsonl", tmp_path / "first", recipe, keep_sketches=True)
    likewise.dedup_files(tmp_path / "new.jsonl", tmp_path / "out", recipe, against=[tmp_path / "first"])
    one = evidence(tmp_path / "out")
    likewise.dedup_files(tmp_path / "new.jsonl", tmp_path / "other", recipe, against=[tmp_path / "first" / "kept"])
    assert one.equals(evidence(tmp_path / "other"))
    assert one.num_rows > 40


def test_what_does_not_fit_is_refused(tmp_path, texts):
    (tmp_path / "old.jsonl").write_bytes(jsonl(texts[:80]))
    (tmp_path / "new.jsonl").write_bytes(jsonl(texts[80:120]))
    old, new = tmp_path / "first", tmp_path / "new.jsonl"
    likewise.dedup_files(tmp_path / "old.jsonl", old, RECIPES["minhash"], keep_sketches=True)

    def against(path, recipe=RECIPES["minhash"]):
        return likewise.dedup_files(new, tmp_path / "out", recipe, against=[path], overwrite=True)

    with pytest.raises(RecipeMismatch, match="shingle"):
        against(old, RECIPES["minhash"].replace(shingle=3))
    with pytest.raises(InvalidInput, match="would overwrite"):
        likewise.dedup_files(new, old, RECIPES["minhash"], against=[old], overwrite=True)
    # Another threshold gives other verdicts from the same sketches.
    against(old, RECIPES["minhash"].replace(threshold=0.8))
    moved = tmp_path / "moved"
    shutil.copytree(old, moved)
    (moved / "kept" / "old.jsonl").touch()
    against(moved)
    data = (moved / "kept" / "old.jsonl").read_bytes()
    (moved / "kept" / "old.jsonl").write_bytes(data.replace(b"e", b"f", 1))
    with pytest.raises(InvalidInput, match="the file has changed since the run wrote it"):
        against(moved)
    (moved / "kept" / "old.jsonl").write_bytes(data)
    part = next((moved / "sketches").glob("part-*"))
    part.write_bytes(part.read_bytes()[:-3])
    with pytest.raises(InvalidInput, match="damaged"):
        against(moved)
    likewise.dedup_files(new, tmp_path / "bare", write="evidence")
    with pytest.raises(InvalidInput, match="wrote no kept documents"):
        against(tmp_path / "bare")
    with pytest.raises(InvalidParameter, match="components"):
        against(old, RECIPES["minhash"].replace(group="components"))
    with pytest.raises(InvalidParameter, match="kept files"):
        likewise.dedup_files(new, tmp_path / "x", write="evidence", keep_sketches=True)


def test_days_of_news_from_the_command_line(tmp_path, texts):
    days = [texts[:100], texts[50:150], texts[100:200]]
    for number, day in enumerate(days):
        (tmp_path / f"day{number}.jsonl").write_bytes(jsonl(day, ids=False))
    common = ("--weights", "idf", "--shingle", "2", "--threshold", "0.7")
    ran = likewise_command("dedup", "day0.jsonl", "-o", "out0", "--keep-sketches", *common, cwd=tmp_path)
    assert ran.status == 0, ran.err
    ran = likewise_command("dedup", "day1.jsonl", "-o", "out1", "--against", "out0", "--keep-sketches", cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert "removed as duplicates of documents in out0" in ran.err
    ran = likewise_command(
        "dedup", "day2.jsonl", "-o", "-", "--against", "out0", "--against", "out1", "--json", cwd=tmp_path
    )
    assert ran.status == 2
    ran = likewise_command("dedup", "day2.jsonl", "-o", "-", "--against", "out0", "--against", "out1", cwd=tmp_path)
    assert ran.status == 0, ran.err
    stayed = [json.loads(line)["text"] for line in ran.out.splitlines()]
    assert stayed
    assert not set(stayed) & set(texts[:150])
    recipes = [json.loads((tmp_path / f"out{number}" / "summary.json").read_text())["recipe_id"] for number in (0, 1)]
    assert recipes[0] == recipes[1]
    assert likewise_command("dedup", "day2.jsonl", "-o", "x", "--against", "nowhere", cwd=tmp_path).status == 2


@pytest.mark.parametrize("keep_sketches", [True, False])
def test_a_run_of_which_something_is_gone_is_refused(tmp_path, texts, keep_sketches):
    old = write_inputs(tmp_path / "old", texts[:40], "jsonl")
    likewise.dedup_files(old, tmp_path / "first", keep_sketches=keep_sketches)
    new = write_inputs(tmp_path / "new", texts[40:], "jsonl")
    likewise.dedup_files(new, tmp_path / "out", against=[tmp_path / "first"])
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    next((tmp_path / "second" / "kept").iterdir()).unlink()
    with pytest.raises(InvalidInput, match="a kept file of this run is missing"):
        likewise.dedup_files(new, tmp_path / "other", against=[tmp_path / "second"])
    if keep_sketches:
        next((tmp_path / "first" / "sketches").glob("part-*")).unlink()
        with pytest.raises(InvalidInput, match="parts of the stored sketches are missing"):
            likewise.dedup_files(new, tmp_path / "other", against=[tmp_path / "first"])
