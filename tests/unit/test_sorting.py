"""Orders computed in parts equal those of one sort."""

import tracemalloc

import numpy as np
import pytest

from likewise import arrays as sorting
from likewise._native import Texts
from likewise.arrays import ArraySpace, GrowingTexts, frozen

RANDOM = np.random.default_rng(5)
KEYS = {
    "random": RANDOM.integers(0, 2**64, 5000, np.uint64),
    "equal": np.full(1000, 2**64 - 1, np.uint64),
    "few": RANDOM.integers(0, 3, 3000).astype(np.uint64),
    "heavy": np.where(RANDOM.random(4000) < 0.6, 77, RANDOM.integers(0, 10**6, 4000)).astype(np.int64),
    "negative": -RANDOM.integers(0, 900, 3000),
    "ends": np.array([0, 2**64 - 1, 0, 2**64 - 1, 5] * 300, np.uint64),
    "empty": np.zeros(0, np.uint64),
    "one": np.zeros(1, np.uint64),
}


@pytest.mark.parametrize("name", KEYS)
def test_orders_in_parts_are_stable_sorts(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sorting, "_AT_ONCE", 100)
    keys = KEYS[name]
    expected = np.argsort(keys, kind="stable")
    assert np.array_equal(sorting.stable_order(keys, ArraySpace(tmp_path)), expected)
    assert np.array_equal(sorting.stable_order(keys, ArraySpace()), expected)


@pytest.mark.parametrize("most_bytes", [None, 50_000, 5_000])
@pytest.mark.parametrize("num_words", [1, 3])
def test_repeated_keys_name_the_first_entry_with_the_key(num_words, most_bytes, monkeypatch):
    monkeypatch.setattr(sorting, "_KEYS_AT_ONCE", 300)
    keys = RANDOM.integers(0, 12, (2000, num_words)).astype(np.uint64)
    firsts: dict[tuple[int, ...], int] = {}
    expected = {}
    for entry, key in enumerate(map(tuple, keys.tolist())):
        if firsts.setdefault(key, entry) != entry:
            expected[entry] = firsts[key]
    found = list(sorting.repeated_keys(lambda part: keys[part], len(keys), num_words, most_bytes))
    num_parts = -(-len(keys) // 300) + 1
    assert (len(found) > num_parts) == (most_bytes is not None)
    pairs = [pair for later, first in found for pair in zip(later.tolist(), first.tolist(), strict=True)]
    assert len(pairs) == len(expected)
    assert dict(pairs) == expected


def test_the_first_double_id_is_found():
    ids = ["a", "b", "", "c", "b", "a", "b", ""]
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 0])

    def ids_of(part):
        return Texts.from_list(ids[part])

    space = ArraySpace()
    for most_bytes in (None, 1):
        assert sorting.double_id(ids_of, len(ids), space, most_bytes=most_bytes) == (4, 1)
        assert sorting.double_id(ids_of, len(ids), space, lambda part: groups[part], most_bytes) == (6, 4)
        assert sorting.double_id(ids_of, 4, space, most_bytes=most_bytes) is None
    assert sorting.double_id(ids_of, 0, space) is None


def test_different_ids_with_equal_hashes_are_no_double(monkeypatch):
    class Ids(list):
        def hashes(self, seed):
            return np.full(len(self), seed, np.uint64)

    ids = ["a", "b", "c", "a"]
    for count, double in [(3, None), (4, (3, 0))]:
        assert sorting.double_id(lambda part: Ids(ids[part]), count, ArraySpace()) == double


def test_arrays_in_files_leave_nothing_and_grow_as_those_in_memory(tmp_path):
    space = ArraySpace(tmp_path)
    parts = [np.arange(n, dtype=np.uint32) for n in (0, 1, 5, 100_000, 0, 3)]
    growing = space.growing(np.uint32)
    for part in parts:
        growing.append(part)
    assert len(growing) == sum(map(len, parts))
    taken = growing.take()
    assert np.array_equal(taken, np.concatenate(parts))
    assert not taken.flags.writeable
    assert len(growing.take()) == 0
    zeros = space.zeros(1000, np.int64)
    zeros[7] = 3
    assert zeros.sum() == 3
    assert not frozen(zeros).flags.writeable
    assert len(space.zeros(0, np.uint8)) == 0
    # Files of open arrays have no name.
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("in_files", [False, True])
def test_texts_grow_in_memory_and_in_files(in_files, tmp_path):
    growing = GrowingTexts(ArraySpace(tmp_path if in_files else None))
    parts = [["a", "", "猫"], [], ["long " * 1000], [""]]
    for part in parts:
        growing.append(Texts.from_list(part))
    growing.append(Texts.from_list(["x", "y", "z"]).take(np.array([2, 0])))
    assert growing.take().to_list() == [*parts[0], *parts[2], "", "z", "x"]
    assert GrowingTexts(ArraySpace(tmp_path)).take().to_list() == []


def test_places_among_many_keys_are_found_without_a_copy():
    keys = np.arange(0, 2_000_000, 2, dtype=np.uint32)
    tracemalloc.start()
    places = sorting.places_of([0, 3, 1_999_998, 2_000_000], keys).tolist()
    first = int(sorting.places_of(8, keys))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (places, first) == ([0, 2, 999_999, 1_000_000], 4)
    assert peak < 100_000
