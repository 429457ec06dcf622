"""One recipe per method, on the four sets used to choose defaults, against exact Jaccard and naive SimHash.

The bars are the sets' own baselines; the recipes are scored by the sets' own scorer.
"""

import json
import subprocess
import sys

import pytest

import likewise
from tests.quality.test_labeled import best_f1

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SETS = ("en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc", "warc-real")
# Low or wide enough to include the best setting of every set.
MINHASH = likewise.Recipe.minhash(0.4, tokens="auto", shingle=3, weights="none")
DISTANCE = likewise.Recipe.simhash(bits=128, within=36, shingle=2, weights="log-count", short_threshold=0.5)
VERIFIED = likewise.Recipe.simhash(bits=128, threshold=0.6, shingle=2, weights="log-count")


def naive(folder):
    """Return F1 of exact Jaccard and of naive SimHash, each with the best features at the best setting for the set."""
    rows = json.loads((folder / "baseline.json").read_text())
    exact = max(row["f1"] for name, row in rows.items() if name.startswith("jaccard-"))
    fingerprints = max(row["f1"] for name, row in rows.items() if name.startswith("simhash64"))
    return exact, fingerprints


def found_by(texts, recipe):
    """Return (row, row, similarity) of each pair of a run; by the distance if that alone decides."""
    table = likewise.pairs(texts, recipe)
    return list(zip(*(table.column(name).to_pylist() for name in ("row_a", "row_b", "similarity")), strict=True))


def scored(tmp_path, ids, folder, found):
    """Return F1 by the sets' own scorer."""
    predictions = tmp_path / "predictions.tsv"
    predictions.write_text("".join(f"{ids[a]}\t{ids[b]}\n" for a, b, _ in found))
    command = [sys.executable, str(folder.parent / "score.py"), str(folder), str(predictions)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["f1"]


@pytest.mark.parametrize("name", SETS)
def test_minhash_at_its_best_threshold_is_as_good_as_exact_jaccard(labeled, tmp_path, name):
    ids, texts, folder = labeled(name)
    exact, _ = naive(folder)
    found = found_by(texts, MINHASH)
    f1, threshold = best_f1(found, ids, folder)
    assert f1 >= exact - 0.01
    # The labels are read as the scorer reads them.
    at_best = [pair for pair in found if pair[2] >= threshold]
    assert scored(tmp_path, ids, folder, at_best) == pytest.approx(f1, abs=1e-4)


@pytest.mark.parametrize("name", SETS)
def test_distance_only_at_its_best_radius_is_as_good_as_naive_simhash(labeled, name):
    ids, texts, folder = labeled(name)
    _, fingerprints = naive(folder)
    assert best_f1(found_by(texts, DISTANCE), ids, folder)[0] >= fingerprints - 0.01


@pytest.mark.parametrize("name", SETS)
def test_verified_simhash_closes_half_of_the_gap_to_exact_jaccard(labeled, name):
    ids, texts, folder = labeled(name)
    exact, fingerprints = naive(folder)
    assert best_f1(found_by(texts, VERIFIED), ids, folder)[0] >= (exact + fingerprints) / 2
