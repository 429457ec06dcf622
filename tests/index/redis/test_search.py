"""The tables find every kept fingerprint within the radius, of every width, and nothing else."""

import numpy as np
import pytest

import likewise
from likewise.errors import InvalidParameter


def planted(bits, within, seed):
    """Return fingerprints and, for each, others at all distances around the radius, errors spread or in one block."""
    rng = np.random.default_rng(seed)
    num_words = -(-bits // 64)
    base = rng.integers(0, 2**64, (12, num_words), dtype=np.uint64)
    if bits % 64:
        base[:, -1] >>= np.uint64(64 - bits % 64)
    flat = [base]
    for distance in range(within + 3):
        near = base.copy()
        for row in near:
            places = rng.choice(bits, distance, replace=False) if rng.random() < 0.7 else np.arange(distance) + 16
            for place in places.tolist():
                row[place // 64] ^= np.uint64(1 << place % 64)
        flat.append(near)
    return np.concatenate(flat)


def sketches(words, recipe):
    array = words[:, 0] if words.shape[1] == 1 else words
    return likewise.Sketches(array, recipe, np.zeros(len(words), bool), np.full(len(words), 1000, np.uint32))


@pytest.mark.parametrize(
    ("bits", "within"),
    [(64, 0), (64, 3), (64, 7), (64, 12), (32, 2), (32, 7), (96, 5), (128, 7), (256, 4)],
)
def test_every_neighbor_is_found(open_index, bits, within):
    recipe = likewise.Recipe.simhash(within=within, bits=bits)
    words = planted(bits, within, seed=bits + within)
    index = open_index(recipe, partitions=5, expected=10_000)
    verdicts = index.add_batch([str(i) for i in range(len(words))], sketches(words, recipe))
    # The log does not show them, so they are read from the tables.
    index.compact()
    kept = np.flatnonzero(verdicts.is_new)
    found = index.neighbors_batch(sketches(words, recipe), 1000)
    distances = np.bitwise_count(words[:, None, :] ^ words[None, kept, :]).sum(axis=2)
    for of_query, near in zip(distances, found, strict=True):
        expected = {str(kept[i]): int(of_query[i]) for i in np.flatnonzero(of_query <= within)}
        assert {one.doc_id: one.distance for one in near} == expected
    duplicates = np.flatnonzero(~verdicts.is_new)
    assert len(duplicates)
    assert all(verdicts.distance[i] <= within for i in duplicates)


def test_a_radius_without_a_plan_is_refused(open_index):
    with pytest.raises(InvalidParameter, match="smaller distance"):
        open_index(likewise.Recipe.simhash(within=40))


def test_only_documents_of_the_same_value_match(open_index):
    index = open_index(likewise.Recipe.simhash(within=3, only_within="site"))
    text = " ".join(f"word{number}" for number in range(60))
    found = index.add_batch(["a", "b", "c"], [("x", text), ("y", text), ("y", text.upper())])
    assert found.kept_ids == [None, None, "b"]
    assert index.check(("z", text)).is_new
    assert [near.doc_id for near in index.neighbors(("x", text))] == ["a"]


def test_what_collapses_takes_the_evidence_of_who_came_first(open_index):
    """The second is a duplicate of the first; the third is nearer to the second but arrived later."""
    recipe = likewise.Recipe.simhash(within=3)
    words = np.array([[0b0], [0b111], [0b1111], [0b111]], np.uint64)
    index = open_index(recipe)
    last = list(index.check_and_add_batch(["0", "1", "2", "3"], sketches(words, recipe)))[3]
    assert (last.kept_id, last.distance) == ("0", 3)
    assert index.get("2").is_new
    assert [(other.doc_id, other.distance) for other in index.neighbors(sketches(words[3:], recipe))] == [
        ("2", 1),
        ("0", 3),
    ]
    # What was removed represents nothing any more.
    index.remove("1")
    index.remove("3")
    again = index.check_and_add("a", sketches(words[3:], recipe))
    assert (again.kept_id, again.distance) == ("2", 1)
