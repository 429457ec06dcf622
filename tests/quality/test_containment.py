"""Excerpts inside longer documents."""

import json
import random

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.errors import InvalidParameter
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up

WHOLE = [made_up(1000, seed) for seed in range(20)]
EXCERPTS = [" ".join(text.split()[450:550]) for text in WHOLE]
MEASURES = ("containment", "overlap")


@pytest.mark.parametrize("measure", MEASURES)
def test_the_measure_alone_finds_every_excerpt(measure, tmp_path):
    """20 excerpts of 100 words in documents of 1,000: each command finds all of them without --method."""
    (tmp_path / "whole.jsonl").write_bytes(jsonl(WHOLE))
    (tmp_path / "excerpts.jsonl").write_bytes(jsonl(EXCERPTS))
    (tmp_path / "all.jsonl").write_bytes(jsonl([*EXCERPTS, *WHOLE]))

    def summary(*arguments):
        done = likewise_command(*arguments, "--measure", measure, "--json", cwd=tmp_path)
        assert done.status == 0, done.err
        return json.loads(done.out)

    assert summary("dedup", "all.jsonl", "-o", "out")["num_removed"] == 20
    assert pq.read_table(tmp_path / "out" / "removed.parquet")["row"].to_pylist() == list(range(20))
    assert summary("dedup", "excerpts.jsonl", "-o", "new", "--against", "whole.jsonl")["num_removed"] == 20
    assert summary("pairs", "all.jsonl", "-o", "pairs.tsv")["num_pairs"] == 20
    leaks = summary("leaks", "train=whole.jsonl", "test=excerpts.jsonl")
    assert leaks["splits"]["test"]["num_dropped"] == 20
    assert leaks["recipe"]["method"] == "shingles"

    assert np.count_nonzero(~likewise.dedup([*EXCERPTS, *WHOLE], measure=measure).kept) == 20
    assert likewise.pairs([*EXCERPTS, *WHOLE], measure=measure).num_rows == 20
    found = likewise.leaks({"train": WHOLE, "test": EXCERPTS}, measure=measure)
    assert not found.kept["test"].any()
    assert dedup_files(tmp_path / "all.jsonl", tmp_path / "python", measure=measure)["num_removed"] == 20


@pytest.mark.parametrize("measure", MEASURES)
def test_a_preset_with_bands_leaves_the_search_to_the_measure(measure):
    assert likewise.Recipe.preset("strict", measure=measure) == likewise.Recipe.shingles(
        0.8, shingle=3, weights="none", measure=measure
    )
    # Fields of MinHash select it.
    assert likewise.Recipe.preset("strict", measure=measure, num_slots=64).method == "minhash"
    with pytest.raises(InvalidParameter, match="method shingles, which finds every pair"):
        likewise.pairs(WHOLE[:2], measure=measure, recall=0.99)


@pytest.mark.parametrize("measure", MEASURES)
def test_bands_that_were_asked_for_say_that_they_miss_excerpts(measure, tmp_path):
    (tmp_path / "all.jsonl").write_bytes(jsonl([*EXCERPTS[:2], *WHOLE[:2]]))
    run = ("pairs", "all.jsonl", "-o", "-", "--measure", measure)
    note = f"most pairs by {measure} are missed; method shingles finds all of them"
    assert note in likewise_command(*run, "--method", "minhash", cwd=tmp_path).err
    assert note not in likewise_command(*run, cwd=tmp_path).err


@pytest.mark.parametrize("measure", MEASURES)
def test_an_index_refuses_measures_of_excerpts(measure, tmp_path):
    with pytest.raises(InvalidParameter, match=f"an index cannot search by {measure}"):
        likewise.Index(tmp_path / "seen", measure=measure)
    done = likewise_command("index", "create", tmp_path / "seen", "--measure", measure)
    assert done.status == 2
    assert f"an index cannot search by {measure}" in done.err
    assert not (tmp_path / "seen").exists()
    with pytest.raises(InvalidParameter, match=f"an index cannot search by {measure}"):
        likewise.Index(tmp_path / "seen", {"overlap": "names", "containment": "threads"}[measure])


@pytest.mark.slow
def test_excerpts_of_a_third_are_found_among_twenty_thousand():
    """30% of a document with one word in fifty changed: recall and precision of the pairs are at least 0.95."""
    rng = random.Random(11)
    # Words as frequent as in a language (Zipf), so that texts share common shingles by chance.
    words = [f"w{i}" for i in range(20_000)]
    weights = [1 / (i + 2) for i in range(20_000)]
    texts = [" ".join(rng.choices(words, weights, k=rng.randint(40, 120))) for _ in range(20_000)]
    sources = rng.sample([row for row, text in enumerate(texts) if text.count(" ") >= 79], 200)
    excerpts = []
    for row in sources:
        own = texts[row].split()
        length = round(0.3 * len(own))
        start = rng.randrange(len(own) - length + 1)
        chosen = own[start : start + length]
        chosen[rng.randrange(length)] = "changed"
        excerpts.append(" ".join(chosen))
    found = likewise.pairs([*texts, *excerpts], likewise.Recipe.shingles(0.7, measure="containment"))
    pairs = set(zip(found["row_a"].to_pylist(), found["row_b"].to_pylist(), strict=True))
    planted = {(len(texts) + i, row) for i, row in enumerate(sources)}
    assert len(pairs & planted) >= 0.95 * len(planted)
    assert len(pairs & planted) >= 0.95 * len(pairs)
