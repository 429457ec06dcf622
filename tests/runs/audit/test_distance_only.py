"""Runs by Hamming distance alone: a warning where unrelated texts are near, and audits that read the texts."""

import itertools
import random

import pytest

from likewise import Recipe, dedup, pairs
from likewise.progress import Warned
from likewise.runs.audit import audit
from tests.command import likewise_command
from tests.golden.texts import made_up
from tests.runs.audit.corpora import graded, run_of, write

COUNTED = Recipe.simhash(bits=64, tokens="word", shingle=1, weights="count", within=3)
ONCE = COUNTED.replace(weights="none")


def zipf_texts(num, length, seed=1):
    """Return unrelated texts; word i of the vocabulary is 1/i as frequent as the first."""
    chosen = random.Random(seed)
    frequencies = list(itertools.accumulate(1 / (i + 1) for i in range(5000)))
    words = [f"w{i}" for i in range(5000)]
    return [" ".join(chosen.choices(words, cum_weights=frequencies, k=length)) for _ in range(num)]


@pytest.fixture(scope="module")
def unrelated():
    return zipf_texts(300, 1000)


def jaccard(one, other):
    a, b = set(one.split()), set(other.split())
    return len(a & b) / len(a | b)


def warnings_of(call, *args):
    said = []
    call(*args, progress=lambda event: said.append(event.message) if isinstance(event, Warned) else None)
    return [line for line in said if "drawn at random" in line]


def test_a_run_warns_where_unrelated_texts_are_near_the_radius(unrelated):
    for call in (dedup, pairs):
        (line,) = warnings_of(call, unrelated, COUNTED)
        assert "differ in 6 of 64 bits (median; a tenth of the pairs in at most 3)" in line
        assert not warnings_of(call, unrelated, ONCE)
    # Short texts of counted words are far apart, and a few documents are too few to tell.
    assert not warnings_of(dedup, [made_up(20, i) for i in range(300)], COUNTED)
    assert not warnings_of(dedup, unrelated[:10], COUNTED)
    # Copies are a small share of the pairs.
    assert not warnings_of(dedup, graded(240, 3), Recipe.simhash())


def test_an_audit_reads_the_texts_that_the_run_did_not_compare(tmp_path, unrelated):
    out = run_of(tmp_path, unrelated, COUNTED)
    found = audit(out, num_sampled=1000)
    assert found.passed
    assert found.precision is None
    assert found.certificate["removal_precision"] is None
    assert found.within_radius.value == 1.0
    facts = found.certificate["text_similarity"]
    number = {f"d{i}": text for i, text in enumerate(unrelated)}
    removals = [(row["doc_id"], row["kept_id"]) for row in dedup_rows(out)]
    alike = sorted(jaccard(number[a], number[b]) for a, b in removals)
    assert len(alike) > 200
    assert found.text_similarity.jaccard.tolist() == pytest.approx([jaccard(number[a], number[b]) for a, b in removals])
    assert (facts["low"], facts["high"]) == pytest.approx((alike[0], alike[-1]))
    assert facts["high"] < 0.3
    assert facts["num_below_half"] == len(alike)
    worst = facts["least_similar"][0]
    assert worst["jaccard"] == facts["low"] == pytest.approx(jaccard(number[worst["doc_id"]], number[worst["kept_id"]]))


def dedup_rows(out):
    import pyarrow.parquet as pq

    return pq.read_table(out / "removed.parquet").to_pylist()


def test_the_commands_call_it_within_the_radius(tmp_path, unrelated):
    path = write(tmp_path / "in.jsonl", unrelated)
    options = ["--method", "simhash", "--bits", "64", "--within", "3", "--tokens", "word", "--shingle", "1"]
    options += ["--weights", "count"]
    ran = likewise_command("dedup", path, "-o", tmp_path / "out", *options)
    assert "drawn at random differ in 6 of 64 bits" in ran.err
    ran = likewise_command("audit", tmp_path / "out")
    assert ran.status == 0
    said = ran.out.decode()
    assert "precision" not in said
    assert "removals within the radius           1.0000" in said
    assert "removals below 0.5; least similar:" in said


def test_a_run_that_compares_texts_keeps_its_precision(tmp_path):
    found = audit(run_of(tmp_path, graded(60, 2), Recipe.minhash(0.6)), num_sampled=100)
    assert found.precision.value == 1.0
    assert (found.within_radius, found.text_similarity) == (None, None)
    assert "text_similarity" not in found.certificate


def test_a_distance_run_that_removes_nothing_has_no_similarity(tmp_path):
    found = audit(run_of(tmp_path, [made_up(40, i) for i in range(5)], Recipe.simhash(within=3)), num_sampled=100)
    assert found.text_similarity is None
    assert found.within_radius.is_exact
