"""Which licence is this? Containment by rarity names the right reference more often than naive top-1 does."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

import likewise
from likewise.features import features
from tests.conftest import LABELLED

FOLDER = LABELLED / "license-rules"
RECIPE = likewise.Recipe.shingles(0.5, measure="containment", shingle=2, weights="idf")


def read(name, id_field):
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row[id_field] for row in rows], [row["text"] for row in rows]


@pytest.mark.slow
def test_containment_names_more_licences_rightly_than_naive_jaccard(tmp_path):
    """Of the references that a query contains or that contain it, the one that both containments speak for most."""
    if not FOLDER.is_dir():
        pytest.skip("labelled set license-rules is not at ../shared/data")
    keys, references = read("refs.jsonl.gz", "key")
    ids, queries = read("queries.jsonl.gz", "id")
    texts = references + queries
    found = likewise.pairs(texts, RECIPE)
    of_all = features(texts, RECIPE)
    size = np.add.reduceat(of_all.weights.astype(np.int64), of_all.offsets[:-1])
    best = {}
    for a, b, share in zip(*(found.column(c).to_pylist() for c in ("row_a", "row_b", "similarity")), strict=True):
        if (a < len(keys)) == (b < len(keys)):
            continue
        jaccard = share * size[a] / (size[a] + size[b] - share * size[a])
        query, reference = max(a, b), min(a, b)
        best[query] = max(best.get(query, (-1.0, 0)), (jaccard, -reference))
    predictions = tmp_path / "predictions.tsv"
    predictions.write_text("".join(f"{ids[q - len(keys)]}\t{keys[-minus]}\n" for q, (_, minus) in best.items()))
    command = [sys.executable, str(FOLDER.parent / "score.py"), str(FOLDER), str(predictions)]
    right = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["recall"]
    baseline = json.loads((FOLDER / "baseline.json").read_text())
    naive = max(row["top1"] for row in baseline.values() if isinstance(row, dict))
    print(f"right of all: {right}; naive: {naive}")
    assert right >= naive + 0.03
