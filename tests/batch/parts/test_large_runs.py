"""Runs over parts with a memory limit, after an unfinished run, or against earlier documents."""

import gzip
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.parts import PartRules, dedup_parts
from likewise.batch.read import resume
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.job.reading import FileRun
from likewise.progress import Warned
from likewise.runs.audit.parts import audit_parts
from tests.batch.parts.naive import lines, paragraphs, without_units
from tests.batch.parts.test_parts import mixed
from tests.command import likewise_command

BOUND = "256MB"
RULES = [PartRules("line"), PartRules("sentence", 3), PartRules("span", 8)]
NEAR = likewise.Recipe.minhash(threshold=0.5, shingle=1)


def write(path, texts, first=0):
    rows = [{"id": f"d{first + i}", "text": text} for i, text in enumerate(texts)]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=13)
    else:
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def files(out):
    """Return all files that a run wrote, without facts on time, memory and progress."""
    found = {}
    for path in sorted(out.rglob("*")):
        if path.name == "summary.json":
            summary = json.loads(path.read_text())
            found["summary"] = {
                name: value for name, value in summary.items() if name not in ("timings", "memory", "continued")
            }
        elif path.suffix == ".parquet":
            found[path.name] = pq.read_table(path).to_pylist()
        elif path.is_file():
            found[path.name] = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return found


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz", "in.parquet"])
@pytest.mark.parametrize(
    ("rules", "recipe"),
    [*((rules, None) for rules in RULES), (PartRules("sentence"), NEAR)],
    ids=["line", "sentence", "span", "near"],
)
def test_a_bound_of_memory_changes_nothing(tmp_path, monkeypatch, name, rules, recipe):
    # Small steps, so that columns and evidence are split into many.
    for module in ("run", "units"):
        monkeypatch.setattr(f"likewise.batch.parts.{module}._ROWS_AT_ONCE", 7)
    path = write(tmp_path / name, mixed(1, 150))
    for out, run in (("free", FileRun()), ("bound", FileRun(memory_bytes=BOUND)), ("one", FileRun(threads=1))):
        dedup_parts(path, tmp_path / out, rules, recipe, run=run)
    free = files(tmp_path / "free")
    assert free["summary"]["num_removed_parts"] > 20
    assert len(free["summary"]["most_removed"]) == 5
    assert files(tmp_path / "bound") == free
    assert files(tmp_path / "one") == free
    memory = json.loads((tmp_path / "bound" / "summary.json").read_text()).get("memory")
    assert (memory is None) == (rules.unit == "span")


def test_bytes_of_the_most_removed_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.batch.parts.run._ROWS_AT_ONCE", 5)
    texts = mixed(2, 120)
    _, gone = without_units(texts, lines)
    summary = dedup_parts(write(tmp_path / "in.jsonl", texts), tmp_path / "out", PartRules("line"))
    totals = {}
    for row, start, end, *kept in gone:
        times, num_bytes = totals.get(tuple(kept), (0, 0))
        totals[tuple(kept)] = times + 1, num_bytes + len(texts[row][start:end].encode())
    most = sorted(totals.items(), key=lambda item: (-item[1][1], item[0]))[:5]
    found = [(part["num_times"], part["num_bytes"]) for part in summary["most_removed"]]
    assert found == [sizes for _, sizes in most]
    assert summary["num_removed_bytes"] == sum(num_bytes for _, num_bytes in totals.values())


@pytest.mark.parametrize("recipe", [None, NEAR], ids=["equal", "near"])
@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz", "in.parquet"])
def test_an_unfinished_run_continues(tmp_path, monkeypatch, name, recipe):
    monkeypatch.setattr(resume, "SAVED_AFTER_S", 0)
    monkeypatch.setattr(resume, "PART_BYTES", 1)
    monkeypatch.setattr("likewise.batch.parts.collection.PIECE_BYTES", 2000)
    monkeypatch.setattr("likewise.batch.read.ingest.PIECE_BYTES", 2000)
    rules, path = PartRules("line"), write(tmp_path / name, mixed(3, 150))
    dedup_parts(path, tmp_path / "whole", rules, recipe)

    def stop(*_args, **_options):
        raise KeyboardInterrupt

    told = []
    with monkeypatch.context() as patch:
        patch.setattr("likewise.batch.parts.units.decided", stop)
        with pytest.raises(KeyboardInterrupt):
            dedup_parts(path, tmp_path / "out", rules, recipe, progress=told.append)
    assert any(isinstance(event, Warned) and "progress is saved" in str(event) for event in told)
    assert not (tmp_path / "out" / "summary.json").exists()
    with pytest.raises(RecipeMismatch, match="unit is 'paragraph' here"):
        dedup_parts(path, tmp_path / "out", PartRules("paragraph"), recipe)
    summary = dedup_parts(path, tmp_path / "out", rules, recipe)
    assert summary["continued"]["num_parts"] > 0
    assert files(tmp_path / "out") == files(tmp_path / "whole")


@pytest.mark.parametrize("place_of", [lines, paragraphs], ids=["line", "paragraph"])
@pytest.mark.parametrize("seed", range(3))
def test_references_as_by_hand(tmp_path, seed, place_of):
    """Compared with earlier documents, the new ones lose what they would lose if appended to them."""
    unit = place_of.__name__[:-1]
    old, new = mixed(seed, 40), mixed(seed, 90)[40:]
    random.Random(seed).shuffle(new)
    left, gone = without_units([*old, *new], place_of)
    places = [write(tmp_path / "a.jsonl", old[:15]), write(tmp_path / "b.parquet", old[15:])]
    path = write(tmp_path / "new.jsonl", new)
    summary = dedup_parts(path, tmp_path / "out", PartRules(unit), against=places)
    rows = [json.loads(line) for line in (tmp_path / "out" / "kept" / "new.jsonl").read_text().splitlines()]
    expected = {f"d{i}": text for i, text in enumerate(left[40:]) if text.strip() or text == new[i]}
    assert {row["id"]: row["text"] for row in rows} == expected
    own = [one for one in gone if one[0] >= 40]
    assert summary["num_removed_parts"] == len(own) > 5
    stated = {"paths": list(map(str, places)), "num_documents": 40}
    assert summary["against"] == stated | {"num_removed_parts": sum(one[3] < 40 for one in own)}
    evidence = pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
    found = [(row["row"] + 40, row["kept_row"], row["kept_id"]) for row in evidence]
    assert found == [
        (row, None if kept < 40 else kept - 40, f"d{kept if kept < 15 else kept - 15 if kept < 40 else kept - 40}")
        for row, _, _, kept, _ in own
    ]
    assert audit_parts(tmp_path / "out").passed
    # After tampering, the reference does not contain what the evidence names.
    write(places[0], ["nothing of it"] * 15)
    assert not audit_parts(tmp_path / "out").passed


@pytest.mark.parametrize("rules", [PartRules("line"), PartRules("span", 8)], ids=lambda rules: rules.unit)
def test_against_runs(tmp_path, rules):
    """Several dumps, each compared with the runs before, lose the same parts as all dumps at once."""
    texts = mixed(7, 120)
    dumps = [write(tmp_path / f"{i}.jsonl", texts[40 * i : 40 * i + 40], 40 * i) for i in range(3)]
    dedup_parts(dumps, tmp_path / "whole", rules)
    for i, dump in enumerate(dumps):
        # Spans need the original documents: output of an earlier run lacks what was removed from it.
        earlier = dumps[:i] if rules.unit == "span" else [tmp_path / f"out{k}" for k in range(i)]
        dedup_parts(dump, tmp_path / f"out{i}", rules, against=earlier)
        assert audit_parts(tmp_path / f"out{i}").passed
        name = dump.name
        assert (tmp_path / f"out{i}" / "kept" / name).read_bytes() == (tmp_path / "whole" / "kept" / name).read_bytes()


def test_a_near_part_of_references_counts_whatever_it_matches(tmp_path):
    """References are not compared with each other: each keeps its parts."""
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    chain = [" ".join(words[i : i + 6]) + ".\n" for i in range(0, 5, 2)]
    old, new = write(tmp_path / "old.jsonl", chain[:2]), write(tmp_path / "new.jsonl", chain[2:], 2)
    recipe = likewise.Recipe.minhash(threshold=0.5, shingle=1, num_slots=256)
    together = dedup_parts([old, new], tmp_path / "together", PartRules("line"), recipe)
    assert together["num_removed_parts"] == 1
    assert dedup_parts(new, tmp_path / "out", PartRules("line"), recipe, against=[old])["num_removed_parts"] == 1


def test_ids_of_references_may_be_those_of_documents(tmp_path):
    old, new = write(tmp_path / "old.jsonl", ["a x\nb\n"]), write(tmp_path / "new.jsonl", ["a x\nc\n"])
    assert dedup_parts(new, tmp_path / "out", PartRules("line"), against=[old])["num_changed"] == 1
    write(tmp_path / "double.jsonl", ["a"])
    with pytest.raises(InvalidInput, match="the id 'd0' is already used"):
        dedup_parts([new, tmp_path / "double.jsonl"], tmp_path / "out2", PartRules("line"), against=[old])


def test_what_parts_are_not_compared_with(tmp_path):
    path = write(tmp_path / "in.jsonl", ["a b c\n"])
    likewise.Index(tmp_path / "index", likewise.Recipe.minhash()).close()
    with pytest.raises(InvalidParameter, match="is an index"):
        dedup_parts(path, tmp_path / "out", PartRules("line"), against=[tmp_path / "index"])
    with pytest.raises(InvalidInput, match="local runs and files"):
        dedup_parts(path, tmp_path / "out", PartRules("line"), against=["s3://bucket/run"])
    with pytest.raises(InvalidParameter, match="memory"):
        dedup_parts(path, tmp_path / "out", PartRules("line"), run=FileRun(memory_bytes="1MB"))
    likewise.dedup_files(path, tmp_path / "evidence", write="evidence")
    with pytest.raises(InvalidInput, match="wrote no kept documents"):
        dedup_parts(path, tmp_path / "out", PartRules("line"), against=[tmp_path / "evidence"])
    assert not (tmp_path / "out").exists()


def test_command(tmp_path):
    old, new = write(tmp_path / "old.jsonl", ["same line\nold\n"]), write(tmp_path / "new.jsonl", ["same line\nnew\n"])
    done = likewise_command(
        "repeats", new, "--unit", "line", "--against", old, "--memory", BOUND, "-o", tmp_path / "out"
    )
    assert done.status == 0, done.err
    assert "1 of them occur in 1 document of --against" in done.err
    assert "memory: at most 256 MB" in done.err
    assert json.loads((tmp_path / "out" / "kept" / "new.jsonl").read_text())["text"] == "new\n"
    audit = likewise_command("audit", tmp_path / "out")
    assert audit.status == 0, audit.err
    old.unlink()
    gone = likewise_command("audit", tmp_path / "out")
    assert gone.status == 2
    assert "old.jsonl" in gone.err
    assert np.all([name not in gone.err for name in ("Traceback",)])
