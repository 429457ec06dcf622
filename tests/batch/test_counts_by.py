"""Counts by a field in the summary, the terminal and the report equal those recomputed from the evidence."""

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.against.index import IndexUse
from likewise.batch.parts import BoilerplateRules, remove_boilerplate
from likewise.cli.dedup import summary_lines
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from likewise.runs.report import report
from tests.batch.labels import grouped_texts
from tests.io import files

RECIPE = likewise.Recipe.minhash(threshold=0.8)
SOURCES = ["a.example", "b.example", None, 7, "<b>"]
TEXTS = grouped_texts(60, seed=5)
ROWS = [{"id": f"d{number}", "text": text, "source": SOURCES[number * 7 // 3 % 5]} for number, text in enumerate(TEXTS)]


def _expected(rows, evidence):
    names = [None if row["source"] is None else str(row["source"]) for row in rows]
    pairs = Counter(
        (names[row["row"]], names[row["kept_row"]] if row["kept_source"] == "input" else None, row["kept_source"])
        for row in evidence
    )
    return Counter(names), Counter(names[row["row"]] for row in evidence), pairs


@pytest.mark.parametrize("memory", [None, "400MB"])
def test_counts_are_those_of_the_evidence(memory, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(files.jsonl(ROWS))
    run = FileRun(memory_bytes=memory)
    summary = likewise.dedup_files(path, tmp_path / "out", RECIPE, run=run, count_by="source")
    counts = summary["counts_by"]
    of_all, of_removed, pairs = _expected(ROWS, pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist())
    assert counts["num_values"] == len(counts["values"]) == 5
    assert {one["value"]: one["num_documents"] for one in counts["values"]} == of_all
    assert {one["value"]: one["num_removed"] for one in counts["values"]} == {name: of_removed[name] for name in of_all}
    assert {(one["removed"], one["kept"], one["kept_source"]): one["num_removed"] for one in counts["pairs"]} == pairs
    assert counts["num_pairs"] == len(pairs) > 10
    lines = "\n".join(summary_lines(summary, None))
    assert "removed by source (5 values): " in lines
    most = max((number, one) for one, number in of_removed.items() if one)[1]
    assert f"{most} {of_removed[most]} of {of_all[most]}" in lines
    assert "duplicates between values of source: " in lines
    page = report(tmp_path / "out")
    assert "Duplicates by source" in page
    assert '<th scope="row">&lt;b&gt;</th>' in page


def test_documents_of_an_index_have_no_value_and_are_told_apart(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(files.jsonl(ROWS[30:]))
    with likewise.Index(tmp_path / "seen.lw", RECIPE) as index:
        index.add_batch([row["id"] for row in ROWS[:30]], [row["text"] for row in ROWS[:30]])
    seen = tmp_path / "seen.jsonl"
    seen.write_bytes(files.jsonl(ROWS[:30]))
    use = IndexUse(against=tmp_path / "seen.lw")
    summary = likewise.dedup_files(path, tmp_path / "out", RECIPE, index=use, count_by="source")
    evidence = pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
    pairs = {
        (one["removed"], one["kept"], one["kept_source"]): one["num_removed"] for one in summary["counts_by"]["pairs"]
    }
    assert pairs == _expected(ROWS[30:], evidence)[2]
    # Reference files have the field.
    summary = likewise.dedup_files(path, tmp_path / "files", RECIPE, against=[seen], count_by="source")
    names = {row["id"]: None if row["source"] is None else str(row["source"]) for row in ROWS}
    expected = Counter(
        (names[row["doc_id"]], names[row["kept_id"]], row["kept_source"])
        for row in pq.read_table(tmp_path / "files" / "removed.parquet").to_pylist()
    )
    assert {
        (one["removed"], one["kept"], one["kept_source"]): one["num_removed"] for one in summary["counts_by"]["pairs"]
    } == expected


def test_a_field_that_no_document_has_is_an_error(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(files.jsonl(ROWS))
    with pytest.raises((InvalidInput, InvalidParameter), match=r"no document has the field .sauce.*--count-by"):
        likewise.dedup_files(path, tmp_path / "out", RECIPE, count_by="sauce")


def test_lone_surrogates_of_values_count_as_replacement_characters(tmp_path):
    """As those of texts and ids, in every count of values."""
    path = tmp_path / "a.jsonl"
    rows = [{"id": f"d{n}", "s": "\ud800" if n % 3 else "\udfff b", "text": text} for n, text in enumerate(TEXTS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = likewise.dedup_files(path, tmp_path / "out", RECIPE, count_by="s", write="evidence,groups")
    expected = Counter("\ufffd" if n % 3 else "\ufffd b" for n in range(len(TEXTS)))
    assert {one["value"]: one["num_documents"] for one in summary["counts_by"]["values"]} == expected
    values = pq.read_table(tmp_path / "out" / "removed.parquet")["value"].to_pylist()
    assert values == ["\ufffd" if int(row) % 3 else "\ufffd b" for row in _removed_rows(tmp_path / "out")]
    assert "\ufffd b" in report(tmp_path / "out")
    lines = [{"id": f"d{n}", "s": "\ud800", "text": f"the menu of all\nthe text number {n}"} for n in range(20)]
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))
    remove_boilerplate(path, tmp_path / "parts", BoilerplateRules("s"))
    assert pq.read_table(tmp_path / "parts" / "sites.parquet")["site"].to_pylist() == ["\ufffd"]
    kept = (tmp_path / "parts" / "kept" / "a.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in kept] == [
        row | {"text": f"the text number {n}"} for n, row in enumerate(lines)
    ]


def _removed_rows(out):
    return pq.read_table(out / "removed.parquet")["row"].to_pylist()
