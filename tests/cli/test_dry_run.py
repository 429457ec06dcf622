"""A dry run decides what the run decides, shows examples, and writes nothing."""

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest

import likewise
from likewise.runs.viewing.first_look import preview
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up

TEXTS = [
    *[made_up(60, 1)] * 4,
    made_up(60, 2),
    made_up(60, 2) + " changed",
    made_up(60, 3),
    *[made_up(60, 1) + " other words"] * 2,
    "",
    "",
]
SIZES = {1: 1, 2: 2, 6: 1}


def files_of(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*"))


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(jsonl(TEXTS))
    return tmp_path


def test_it_decides_what_the_run_decides(inputs):
    run = ["dedup", inputs / "t.jsonl", "--threshold", "0.8"]
    done = likewise_command(*run, "--dry-run", "--json")
    assert done.status == 0, done.err
    assert files_of(inputs) == ["t.jsonl"]
    found = json.loads(done.out)
    assert found["group_sizes"] == {str(size): num for size, num in SIZES.items()}
    assert sum(size * num for size, num in SIZES.items()) == len(TEXTS)
    assert found["first_look"][0] == "Removals nearest to the threshold:"
    assert "other words" not in done.out.decode()
    shown = preview(inputs / "t.jsonl", likewise.Recipe.minhash(0.8)).first_look
    assert any('"other words"' in line for line in shown)
    # Without texts, the same removals are listed by their ids.
    assert [line.partition(': "')[0] for line in shown] == found["first_look"]
    done = likewise_command(*run, "-o", inputs / "out", "--json")
    assert done.status == 0, done.err
    summary = json.loads(done.out)
    assert all(
        found[name] == summary[name] for name in summary if name not in ("timings", "num_measured", "options", "inputs")
    )
    leaders = Counter(pq.read_table(inputs / "out" / "removed.parquet").column("kept_row").to_pylist())
    sizes = Counter(num + 1 for num in leaders.values()) + Counter({1: summary["num_kept"] - len(leaders)})
    assert sizes == SIZES


def test_it_goes_with_the_options_of_the_run(inputs):
    common = ["dedup", inputs / "t.jsonl", "-o", inputs / "out", "--dry-run", "--threshold", "0.8"]
    done = likewise_command(*common, "--index", inputs / "new.lw", "--keep-sketches", "--overwrite")
    assert done.status == 0, done.err
    assert files_of(inputs) == ["t.jsonl"]
    lines = done.err.splitlines()
    assert lines[-1] == "nothing was written (--dry-run)"
    assert "groups: 1 of 1 document, 2 of 2 documents, 1 of 6 documents" in lines
    assert likewise_command(*common, "--quiet").err == ""
    with likewise.Index(inputs / "seen.lw", threshold=0.8) as seen:
        seen.add("first", TEXTS[0])
    common[-2:] = ["--against", inputs / "seen.lw", "--add", "--json"]
    done = likewise_command(*common)
    assert done.status == 0, done.err
    # All six are removed for the document of the index, which leads their group.
    assert json.loads(done.out)["group_sizes"] == {"1": 1, "2": 2, "7": 1}
    with likewise.Index(inputs / "seen.lw") as seen:
        assert len(seen) == 1


def test_an_output_is_required_otherwise(inputs):
    done = likewise_command("dedup", inputs / "t.jsonl")
    assert done.status == 2
    assert "Missing option '-o' / '--out' (or --dry-run)." in done.err


@pytest.mark.parametrize(
    "options",
    [
        ["--count-by", "nothing"],
        ["--write", "groups", "--date-field", "nothing"],
        ["--date-field", "id"],
        ["--count-weight", "log"],
        ["--write", "groups", "--count-weight", "square"],
        ["--write", "kept,annotated"],
        ["--write-prefix", "x"],
        ["--write", "annotated", "--keep-sketches"],
        ["--store-pairs", "0.9"],
        ["--keep", "max:nothing"],
        ["--decisions", "none.csv"],
    ],
)
def test_it_rejects_what_the_run_rejects(inputs, options):
    run = ["dedup", inputs / "t.jsonl", "--threshold", "0.8", *options]
    told = likewise_command(*run, "-o", inputs / "out").err
    done = likewise_command(*run, "--dry-run")
    assert (done.status, done.err.splitlines()[-1]) == (2, told.splitlines()[-1])


def test_it_counts_what_the_run_counts(inputs):
    run = ["dedup", inputs / "t.jsonl", "--threshold", "0.8", "--count-by", "id", "--json"]
    found = json.loads(likewise_command(*run, "--dry-run").out)
    summary = json.loads(likewise_command(*run, "-o", inputs / "out").out)
    assert found["counts_by"] == summary["counts_by"]
