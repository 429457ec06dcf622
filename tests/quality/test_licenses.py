"""`likewise match` names the right license more often than a naive top-1 search."""

import gzip
import json
import subprocess
import sys

import pytest

import likewise
from tests.conftest import LABELED

FOLDER = LABELED / "license-rules"
# Number of words of other text before and after.
AROUND = 300


def read(name, id_field):
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row[id_field] for row in rows], [row["text"] for row in rows]


@pytest.mark.slow
def test_match_names_more_licenses_rightly_than_naive_jaccard_also_inside_other_text(tmp_path):
    if not FOLDER.is_dir():
        pytest.skip("labeled set license-rules is not at ../shared/data")
    keys, references = read("refs.jsonl.gz", "key")
    ids, queries = read("queries.jsonl.gz", "id")
    baseline = json.loads((FOLDER / "baseline.json").read_text())
    naive = max(row["top1"] for row in baseline.values() if isinstance(row, dict))
    for around in ("", " ".join(f"word{i % 97} of page{i % 13}" for i in range(AROUND))):
        table = likewise.match([f"{around} {query} {around}" for query in queries], references)
        answers = zip(ids, table.column("reference_row").to_pylist(), strict=True)
        predictions = tmp_path / "predictions.tsv"
        predictions.write_text("".join(f"{query}\t{keys[row]}\n" for query, row in answers if row is not None))
        command = [sys.executable, str(FOLDER.parent / "score.py"), str(FOLDER), str(predictions)]
        right = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["recall"]
        print(f"right of all: {right}; naive: {naive}")
        assert right >= naive + 0.03
