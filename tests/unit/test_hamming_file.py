"""The file of a Hamming index: saved fingerprints are found again, and damage is reported, never trusted."""

import contextlib
import json

import numpy as np
import pytest

import likewise
from likewise import HammingIndex, InvalidInput, Recipe
from tests.unit.test_hamming_index import as_words, codes_of, lists


@pytest.mark.parametrize("bits", [32, 64, 128])
def test_everything_comes_back(tmp_path, bits):
    codes = codes_of("clustered", 5000, bits)
    ids = [f"doc {i}" for i in range(5000)]
    index = HammingIndex(as_words(codes[:3000], bits), ids=ids[:3000], bits=bits)
    index.add(as_words(codes[3000:], bits), ids=ids[3000:])
    index.remove(ids[10:20])
    path = tmp_path / "a.lw"
    index.save(path)
    queries = as_words(codes[:100], bits)
    expected = lists(index.query_batch(queries))
    with HammingIndex.open(path) as opened:
        assert len(opened) == len(index)
        assert lists(opened.query_batch(queries)) == expected
        assert opened.stats["keys"] == index.stats["keys"]
        opened.add(queries[:1], ids=["new"])
        opened.save(path)
    again = HammingIndex.open(path, verify=True)
    assert "new" in again.query(codes[0])[0].tolist()
    assert [file.name for file in tmp_path.iterdir()] == ["a.lw"]


def test_scanned_sets_and_sets_without_rows_come_back(tmp_path):
    codes = codes_of("clustered", 700, 64)
    words = as_words(codes, 64)
    for number, index in enumerate(
        [HammingIndex(words, within=40), HammingIndex(words, ids=False), HammingIndex(within=2)]
    ):
        path = tmp_path / f"{number}.lw"
        index.save(path)
        opened = HammingIndex.open(path, verify=True)
        assert (len(opened), opened.within) == (len(index), index.within)
        assert lists(opened.query_batch(words[:50])) == lists(index.query_batch(words[:50]))


def test_recipe_and_empty_texts_come_back(tmp_path):
    recipe = Recipe.simhash(bits=96)
    sketches = likewise.sketch(["one two three", "", "one two three", ""], recipe)
    HammingIndex(sketches).save(tmp_path / "a.lw")
    opened = HammingIndex.open(tmp_path / "a.lw")
    assert opened.recipe == recipe
    assert opened.query_batch(sketches).rows.tolist() == [0, 2, 1, 3, 0, 2, 1, 3]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    codes = codes_of("clustered", 900, 64)
    index = HammingIndex(as_words(codes[:800], 64), ids=[str(i) for i in range(800)])
    index.add(as_words(codes[800:], 64), ids=[str(i) for i in range(800, 900)])
    index.remove(["3"])
    path = tmp_path_factory.mktemp("file") / "small.lw"
    index.save(path)
    queries = as_words(codes[:40], 64)
    return path.read_bytes(), queries, lists(index.query_batch(queries))


def test_every_cut_is_named(small, tmp_path):
    content, _, _ = small
    path = tmp_path / "cut.lw"
    for length in [0, 1, 63, 64, 100, *range(0, len(content), 997), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(InvalidInput, match=r"short|bytes|damaged|no Hamming"):
            HammingIndex.open(path)
    path.write_bytes(content + b"x")
    with pytest.raises(InvalidInput, match="were written"):
        HammingIndex.open(path)


def found_or_named(path, queries):
    """Return the matches without a check beforehand; None if the file is rejected."""
    found = None
    with contextlib.suppress(InvalidInput):
        found = lists(HammingIndex.open(path).query_batch(queries))
    return found


def test_every_flipped_bit_is_found_or_changes_nothing(small, tmp_path):
    content, queries, expected = small
    path = tmp_path / "flipped.lw"
    random = np.random.default_rng(5)
    places = {
        *range(64),
        *range(len(content) - 3000, len(content), 31),
        *random.integers(0, len(content), 300).tolist(),
    }
    num_found = num_met = 0
    for place in sorted(places):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(damaged)
        met = found_or_named(path, queries)
        assert met in (None, expected)
        num_met += met is None
        try:
            opened = HammingIndex.open(path, verify=True)
        except InvalidInput as error:
            num_found += 1
            named = str(error)
        else:
            named = str(path)
            assert met == expected
            assert lists(opened.query_batch(queries)) == expected
        assert str(path) in named
    assert num_found > 120
    assert num_met > 120


def sections_of(content):
    """Yield name, first byte and bytes of every mapped section, from the description at the end of the file."""
    at, length = (int.from_bytes(content[i : i + 8], "little") for i in (16, 24))
    description = json.loads(content[at : at + length])
    for number, segment in enumerate(description["segments"]):
        for table, entry in enumerate(segment["tables"]):
            for name in ("lines", "escapes", "residuals", "rest"):
                yield f"{name} of table {table} of segment {number}", entry[name]
        for name in ("numbers", "group_ends", "group_rows"):
            yield f"{name} of segment {number}", segment["rows"][name]


@pytest.mark.parametrize(("bits", "within"), [(64, 1), (128, 2)])
def test_damage_is_named_by_the_first_query_that_meets_it(tmp_path, bits, within):
    random = np.random.default_rng(7)
    codes = random.integers(0, 1 << 63, (60_000, bits // 64), dtype=np.uint64)
    # Full lines of the directory, and groups of rows.
    codes[:9000, 0] &= np.uint64(0xFFFF << 44)
    codes[20_000:30_000] = codes[30_000:40_000]
    codes = codes[:, 0] if bits == 64 else codes
    path = tmp_path / "index"
    # The plan takes the first few for uniform.
    alone = HammingIndex(codes[:10], within=within)
    alone.add(codes[10:])
    alone.save(path)
    content = path.read_bytes()
    expected = lists(HammingIndex.open(path, verify=True).query_batch(codes[::7]))
    assert found_or_named(path, codes[::7]) == expected
    flip = np.array([1] + [0] * (bits // 64 - 1), np.uint64) if bits > 64 else np.uint64(1)
    num_sections = 0
    for name, section in sections_of(content):
        if not section["num_bytes"]:
            continue
        num_sections += 1
        num_blocks = -(-section["num_bytes"] // 65536)
        for block in {0, num_blocks // 2}:
            at = section["offset"] + 65536 * block
            place = at + min(section["num_bytes"] - 65536 * block, 65536) // 3
            damaged = bytearray(content)
            damaged[place] ^= 4
            path.write_bytes(damaged)
            opened = HammingIndex.open(path)
            named = rf"index: block {block} of {name} is damaged, at byte {at}"
            with pytest.raises(InvalidInput, match=named):
                opened.query_batch(codes)
            with pytest.raises(InvalidInput, match=named):
                opened.save(tmp_path / "copy")
            # Queries that miss the damage get the right answer; others raise an error.
            some = codes[random.integers(0, len(codes), 20)]
            opened = HammingIndex.open(path)
            for code in [*some, *(some ^ flip)]:
                with contextlib.suppress(InvalidInput):
                    assert opened.query(code)[0].tolist() == alone.query(code)[0].tolist()
            # A code found by the second table is looked up in the first.
            with pytest.raises(InvalidInput, match=named):
                HammingIndex.open(path).query_batch(codes ^ flip)
    assert num_sections >= 9
    damaged = bytearray(content)
    damaged[section["offset"] + section["num_bytes"] + 3] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(InvalidInput, match=f"checksums of {name} are damaged"):
        HammingIndex.open(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["index"]


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other"
    path.write_bytes(b"x" * 1000)
    with pytest.raises(InvalidInput, match="not a Hamming index"):
        HammingIndex.open(path)
    with pytest.raises(FileNotFoundError):
        HammingIndex.open(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        HammingIndex(within=1).save(tmp_path / "no" / "directory")
