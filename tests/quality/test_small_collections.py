"""Small collections are decided by the same rule as large ones, and a group of more than half of them is reported."""

import random

import numpy as np
import pytest

import likewise
from likewise import Recipe
from likewise.batch.files import dedup_files
from likewise.job.reading import FileRun
from likewise.progress import Warned
from likewise.stages.weights import count_weights
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up
from tests.oracle import features as oracle
from tests.oracle import weights

NOTICE = made_up(300, 1)


def poems(number):
    """Return different texts of 40 words, each followed by the same long notice."""
    return [f"{made_up(40, 1000 + seed)} {NOTICE}" for seed in range(number)]


def contracts(number):
    """Return one form with 24 places, filled differently in each."""
    draw = random.Random(number)
    form = made_up(288, 2).split()
    found = []
    for _ in range(number):
        words = list(form)
        for place in range(0, 288, 12):
            words[place] = f"name{draw.randrange(10_000)}"
        found.append(" ".join(words))
    return found


def edited(text, seed, count=4):
    """Return the text with some words changed, behind its first ones."""
    draw = random.Random(seed)
    words = text.split()
    for place in draw.sample(range(20, 60), count):
        words[place] = f"other{draw.randrange(1000)}"
    return " ".join(words)


@pytest.mark.parametrize("number", [20, 60, 99, 100, 150])
@pytest.mark.parametrize("kind", [poems, contracts])
def test_texts_that_share_a_notice_or_a_form_are_kept(kind, number):
    assert likewise.dedup(kind(number)).kept.all()


@pytest.mark.parametrize("number", [1, 5, 9, 20, 60, 99, 100])
def test_changed_copies_go_in_collections_of_any_size(number):
    texts = [made_up(100, seed) for seed in range(number)]
    copies = [edited(text, seed) for seed, text in enumerate(texts)]
    kept = likewise.dedup([*texts, *copies]).kept
    assert kept[:number].all()
    # The same word replaced in three places looks like another name in a form.
    assert kept[number:].sum() <= number / 10


def test_two_documents_are_weighed_as_if_there_were_twenty():
    table = count_weights(["a b c d", "a b c e"], Recipe.minhash(weights="idf", shingle=1))
    keys = np.array([oracle.xxh3(word.encode(), 0) for word in "abde"], np.uint64)
    assert table.weigh(keys).tolist() == [weights.idf(2, df) for df in (2, 2, 1, 1)] == [12, 12, 15, 15]
    one, other = (made_up(60, 5), edited(made_up(60, 5), 5, 2))
    assert likewise.dedup([one, other]).kept.tolist() == [True, False]


def alike(number, others):
    """Return nearly equal texts, and others."""
    base = made_up(100, 7)
    return [edited(base, seed, 2) for seed in range(number)] + [made_up(100, 100 + seed) for seed in range(others)]


RECIPES = [
    Recipe.minhash(0.5),
    Recipe.simhash(within=24, bits=128),
    Recipe.minhash(0.5, group="components"),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=["minhash", "hamming", "components"])
@pytest.mark.parametrize(("number", "others", "is_told"), [(12, 11, True), (12, 12, False), (9, 1, False)])
def test_a_group_of_more_than_half_is_reported(tmp_path, recipe, number, others, is_told):
    texts = alike(number, others)
    told = []
    result = likewise.dedup(texts, recipe, progress=told.append)
    assert len(result.removed) == number - 1
    # Few texts of the same words are near each other by distance, which is reported too.
    warnings = [event.message for event in told if isinstance(event, Warned)]
    assert is_told == any(f"one group holds {number} of {number + others} documents" in text for text in warnings)
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts))
    for run in (FileRun(), FileRun(memory_bytes="300MB")):
        told = []
        dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe, run=run, overwrite=True, progress=told.append)
        assert [event.message for event in told if isinstance(event, Warned)] == warnings


def test_a_list_warns_without_a_callback():
    texts = alike(12, 3)
    with pytest.warns(RuntimeWarning, match="one group holds 12 of 15 documents"):
        likewise.dedup(texts, Recipe.minhash(0.5))


def test_equal_texts_are_copies_in_any_number():
    for texts in (["the same text"] * 20, [*["the same text"] * 20, "another text"]):
        for recipe in (Recipe.exact(), Recipe.minhash(0.5)):
            told = []
            likewise.dedup(texts, recipe, progress=told.append)
            assert not [event for event in told if isinstance(event, Warned)]


def test_commands_print_the_warning(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(jsonl(alike(12, 3)))
    for out in ("out", "-"):
        ran = likewise_command("dedup", "in.jsonl", "-o", out, "--threshold", "0.5", cwd=tmp_path)
        assert ran.status == 0
        assert "one group holds 12 of 15 documents" in ran.err


def test_reference_documents_are_in_no_group(tmp_path):
    texts = alike(12, 3)
    (tmp_path / "old.jsonl").write_bytes(jsonl(texts))
    (tmp_path / "new.jsonl").write_bytes(jsonl(texts))
    told = []
    dedup_files(
        tmp_path / "new.jsonl", tmp_path / "out", Recipe.minhash(0.5), against=[tmp_path / "old.jsonl"],
        progress=told.append,
    )  # fmt: skip
    assert not [event for event in told if isinstance(event, Warned) and "one group" in event.message]
