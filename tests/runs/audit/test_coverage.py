"""Deliberately sabotaged bands: the interval of an audit contains the true recall, computed by plain sets."""

import dataclasses
import importlib

import pytest

import likewise
from likewise import Recipe, dedup_files
from likewise.runs.audit import audit
from likewise.runs.audit.truth import matches as truth_module
from tests.runs.audit.corpora import graded, resembling, write

NUM_CORPORA = 5
NUM_REPETITIONS = 100
LEAST_HELD = 93
THRESHOLD = 0.5
# Nearly everything is found, half of it, or hardly anything.
SABOTAGED = {
    "a few bands too few": Recipe.minhash(THRESHOLD, bands=14, rows=4),
    "few bands": Recipe.minhash(THRESHOLD, bands=4, rows=6),
    "one band of twelve rows": Recipe.minhash(THRESHOLD, bands=1, rows=12),
}


def truth_of(texts, recipe, folder):
    """Return a sabotaged run, and its true recall of pairs and of removals by plain sets."""
    summary = dedup_files(write(folder / "in.jsonl", texts), folder / "out", recipe)
    true = set(resembling(texts, THRESHOLD))
    table = likewise.pairs(texts, recipe)
    found = set(zip(*(table.column(name).to_pylist() for name in ("row_a", "row_b")), strict=True))
    evidence = importlib.import_module("pyarrow.parquet").read_table(folder / "out" / "removed.parquet")
    kept = set(range(len(texts))) - set(evidence.column("row").to_pylist())
    ought = {b for a, b in true if a in kept and b in kept}
    num_removed = summary["num_removed"]
    return len(found & true) / len(true), num_removed / (num_removed + len(ought))


def holds(share, truth):
    """Return whether an interval contains the truth, up to rounding."""
    return share.low - 1e-12 <= truth <= share.high + 1e-12


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SABOTAGED)
def test_the_interval_holds_the_true_recall(tmp_path, name):
    held = {"pairs": 0, "removals": 0}
    for corpus in range(NUM_CORPORA):
        folder = tmp_path / str(corpus)
        folder.mkdir()
        pairs, removals = truth_of(graded(700, 100 + corpus, 0.4), SABOTAGED[name], folder)
        for repetition in range(NUM_REPETITIONS // NUM_CORPORA):
            found = audit(folder / "out", num_sampled=200, seed=repetition)
            assert not found.recall.pairs.is_exact
            held["pairs"] += holds(found.recall.pairs, pairs)
            held["removals"] += holds(found.recall.removals, removals)
        print(f"{name}, corpus {corpus}: {pairs:.3f}, {removals:.3f}, last {found.recall.pairs}")
    print(name, held)
    assert min(held.values()) >= LEAST_HELD


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_interval_of_a_sample_that_was_made_smaller_holds_it_too(tmp_path, monkeypatch):
    """Pages of one template, whose rarest features are in many others."""
    monkeypatch.setattr(truth_module, "_ENTRIES_A_MEASUREMENT", 3)
    monkeypatch.setattr(truth_module, "_MEASURED_EACH", 60)
    monkeypatch.setattr(truth_module, "_FEW_PAIRS", 1)
    menu = " ".join(f"menu{i}" for i in range(50))
    pages = [f"{menu} {text}" for text in graded(500, 7, 0.4)]
    pairs, removals = truth_of(pages, SABOTAGED["few bands"], tmp_path)
    held = {"pairs": 0, "removals": 0}
    for repetition in range(NUM_REPETITIONS):
        found = audit(tmp_path / "out", num_sampled=300, seed=repetition)
        assert sum(map(len, found.strata)) < 200
        held["pairs"] += holds(found.recall.pairs, pairs)
        held["removals"] += holds(found.recall.removals, removals)
    print(held, pairs, removals, found.recall)
    assert min(held.values()) >= LEAST_HELD


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_interval_holds_where_the_run_did_less_than_its_recipe_says(tmp_path, monkeypatch):
    candidates = importlib.import_module("likewise.batch.search.opening")
    honest = candidates.open_buckets

    def fewer_bands(signatures, method, order, **options):
        return honest(signatures, dataclasses.replace(method, bands=2), order, **options)

    with monkeypatch.context() as patched:
        patched.setattr(candidates, "open_buckets", fewer_bands)
        _, removals = truth_of(graded(700, 9, 0.4), Recipe.minhash(THRESHOLD), tmp_path)
    num_held = 0
    for repetition in range(NUM_REPETITIONS):
        found = audit(tmp_path / "out", num_sampled=200, seed=repetition)
        assert not found.passed
        num_held += holds(found.recall.removals, removals)
    print(f"{removals:.3f}: {num_held}")
    assert num_held >= LEAST_HELD
