"""HammingIndex against the definition: any width, any radius, any kind of data, every instruction set."""

import gc
import itertools
import weakref

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise import HammingIndex, InvalidParameter, Recipe, RecipeMismatch, _native
from likewise.hamming.index import Matches
from tests.oracle import hamming as oracle

KINDS = ["random", "clustered", "templated", "constant", "few"]


def codes_of(kind: str, n: int, bits: int, seed: int = 1) -> list[int]:
    """Return fingerprints as integers: uniform, near few centers, with few free bits, low bits only, or few values."""
    random = np.random.default_rng(seed)

    def number() -> int:
        return int.from_bytes(random.bytes(bits // 8), "little")

    if kind == "random":
        return [number() for _ in range(n)]
    if kind == "clustered":
        centers = [number() for _ in range(23)]
        codes = []
        for i in range(n):
            code = centers[i % len(centers)]
            for bit in random.integers(0, bits, random.integers(0, 9)):
                code ^= 1 << int(bit)
            codes.append(code)
        return codes
    if kind == "templated":
        frame, free = number(), number() & number() & number()
        return [frame ^ (number() & free) for _ in range(n)]
    if kind == "constant":
        return [number() & 0xFFF for _ in range(n)]
    values = [number() for _ in range(7)]
    return [values[int(i)] for i in random.integers(0, 7, n)]


def as_words(codes: list[int], bits: int) -> np.ndarray:
    num_words = -(-bits // 64)
    flat = np.frombuffer(b"".join(code.to_bytes(8 * num_words, "little") for code in codes), np.uint64)
    return flat if num_words == 1 else flat.reshape(-1, num_words)


def lists(found) -> list[list[tuple[int, int]]]:
    offsets = found.offsets.tolist()
    pairs = list(zip(found.rows.tolist(), found.distances.tolist(), strict=True))
    return [pairs[a:b] for a, b in itertools.pairwise(offsets)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", [32, 64, 96, 128, 256])
def test_chosen_plan_finds_what_comparing_everything_finds(bits, kind):
    codes = codes_of(kind, 1200, bits)
    held = dict(enumerate(codes))
    queries = codes[:60] + codes_of("random", 20, bits, 2)
    for within in range(17) if bits == 64 and kind == "clustered" else [0, 3, 5, 16]:
        index = HammingIndex(as_words(codes, bits), within=within, bits=bits, threads=2)
        expected = [oracle.matches(held, query, within) for query in queries]
        assert lists(index.query_batch(as_words(queries, bits))) == expected, (within, index.stats["keys"])


@pytest.mark.parametrize("n", [0, 1, 2, 9, 70])
def test_few_fingerprints(n):
    codes = codes_of("clustered", n, 64)
    queries = [*codes, 5]
    for within in (0, 3, 10):
        index = HammingIndex(as_words(codes, 64), within=within)
        expected = [oracle.matches(dict(enumerate(codes)), query, within) for query in queries]
        assert lists(index.query_batch(as_words(queries, 64))) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_size_of_plan_and_smaller_radii(kind):
    codes = codes_of(kind, 1200, 64)
    held = dict(enumerate(codes))
    queries = codes[:40] + codes_of("random", 10, 64, 2)
    sizes = set()
    for within, memory in itertools.product([3, 6, 10, 16], [10**6, 2 * 10**6, 3 * 10**6, 6 * 10**6]):
        index = HammingIndex(as_words(codes, 64), within=within, memory=memory)
        sizes.add(len(index.stats["keys"]))
        for smaller in {0, 1, within - 1, within}:
            expected = [oracle.matches(held, query, smaller) for query in queries]
            assert lists(index.query_batch(as_words(queries, 64), smaller)) == expected, (within, memory, smaller)
    assert len(sizes) >= 3 or kind in ("templated", "constant"), sizes


def test_every_instruction_set(isa):
    for bits, kind in [(64, "clustered"), (64, "templated"), (128, "clustered"), (32, "few")]:
        codes = codes_of(kind, 3000, bits)
        words = as_words(codes, bits).reshape(-1)
        for scan in (False, True):
            native = _native.HammingSet(words, bits, within=5, scan=scan)
            found = native.search(words[: 50 * -(-bits // 64)], 5)
            matches = Matches(*(np.asarray(found[i]) for i in (0, 1, 3)))
            held = dict(enumerate(codes))
            assert lists(matches) == [oracle.matches(held, query, 5) for query in codes[:50]]


def test_nearest_grows_to_everything():
    for bits, kind in [(64, "clustered"), (128, "random")]:
        codes = codes_of(kind, 400, bits)
        index = HammingIndex(as_words(codes, bits))
        index.remove([5, 6])
        held = {row: code for row, code in enumerate(codes) if row not in (5, 6)}
        for num in [1, 3, 50, 398, 1000]:
            rows, distances = index.nearest(codes[0], num)
            assert list(zip(distances.tolist(), rows.tolist(), strict=True)) == oracle.nearest(held, codes[0], num)


def test_the_nearest_of_many_are_those_of_each():
    for bits, kind in [(64, "clustered"), (128, "random")]:
        codes = codes_of(kind, 400, bits)
        index = HammingIndex(as_words(codes, bits), threads=2)
        held = dict(enumerate(codes))
        for k in [1, 7, 500]:
            offsets, rows, distances = index.nearest_batch(as_words(codes[:60], bits), k)
            found = list(zip(distances.tolist(), rows.tolist(), strict=True))
            of_each = [found[start:end] for start, end in itertools.pairwise(offsets)]
            assert of_each == [oracle.nearest(held, code, k) for code in codes[:60]]
    assert index.nearest_batch(np.zeros((0, 2), np.uint64), 3).offsets.tolist() == [0]


def test_nothing_is_near_an_empty_text():
    recipe = likewise.Recipe.simhash(bits=128)
    sketches = likewise.sketch(["some text of a few words", "", "other words are here", ""], recipe)
    for ids in (None, list("abcd")):
        offsets, rows, _ = HammingIndex(sketches, ids=ids).nearest_batch(sketches, 1)
        assert offsets.tolist() == [0, 1, 1, 2, 2]
        assert rows.tolist() == ([0, 2] if ids is None else ["a", "c"])
    of_codes = HammingIndex(sketches.array[[0, 2]], ids=False).nearest_batch(sketches, 1)
    assert of_codes.offsets.tolist() == [0, 1, 1, 2, 2]


@pytest.mark.parametrize("num_bytes", [4, 8, 12, 16, 20, 24, 28, 32])
def test_codes_of_bytes_are_those_of_faiss(num_bytes):
    random = np.random.default_rng(num_bytes)
    codes = random.integers(0, 256, (300, num_bytes), np.uint8)
    queries = codes[:20] ^ (random.integers(0, 40, (20, num_bytes)) == 0).astype(np.uint8)
    index = HammingIndex(codes, within=4)
    assert index.bits == 8 * num_bytes
    bits_of = [int.from_bytes(row.tobytes(), "little") for row in codes]
    for query in queries:
        rows, distances = index.query(query)
        expected = [
            (i, (code ^ int.from_bytes(query.tobytes(), "little")).bit_count()) for i, code in enumerate(bits_of)
        ]
        assert list(zip(rows.tolist(), distances.tolist(), strict=True)) == [(i, d) for i, d in expected if d <= 4]
    assert likewise.hamming.hamming_pairs(codes, 3) is not None
    other = np.zeros((1, num_bytes + 4 if num_bytes < 32 else 28), np.uint8)
    with pytest.raises(InvalidParameter):
        index.query_batch(other)


def test_bytes_of_another_shape_are_refused():
    for shape in [(3,), (3, 6), (3, 36), (2, 2, 8)]:
        with pytest.raises(InvalidParameter, match="uint8"):
            HammingIndex(np.zeros(shape, np.uint8))


def test_without_rows_each_fingerprint_comes_once():
    codes = codes_of("few", 500, 64) + codes_of("clustered", 500, 64)
    index = HammingIndex(as_words(codes, 64), ids=False)
    assert len(index) == len(set(codes))
    found = index.query_batch(as_words(codes[:600], 64))
    for query, part in zip(codes[:600], lists(found), strict=True):
        expected = {(code, (code ^ query).bit_count()) for code in codes if (code ^ query).bit_count() <= 3}
        assert part == sorted(expected)
    with pytest.raises(InvalidParameter, match="without rows"):
        index.add(np.zeros(1, np.uint64))
    with pytest.raises(InvalidParameter, match="without rows"):
        index.remove(0)


def test_ids_of_text_and_numbers():
    codes = codes_of("clustered", 300, 64)
    for ids in ([f"doc-{i}" for i in range(300)], list(range(1000, 1300)), pa.array([f"é{i}" for i in range(300)])):
        index = HammingIndex(as_words(codes[:200], 64), ids=ids[:200])
        assert index.add(as_words(codes[200:], 64), ids=ids[200:]).tolist() == list(range(200, 300))
        plain = [i.as_py() if isinstance(i, pa.Scalar) else i for i in ids]
        found, distances = index.query(codes[7])
        expected = oracle.matches(dict(enumerate(codes)), codes[7], 3)
        assert list(zip(found.tolist(), distances.tolist(), strict=True)) == [(plain[r], d) for r, d in expected]
        assert index.remove(plain[7]) == 1
        assert index.remove([plain[7], plain[250]]) == 1
        assert plain[7] not in index.query(codes[7])[0].tolist()
        assert len(index) == 298
        with pytest.raises(InvalidParameter, match="has ids"):
            index.add(np.zeros(1, np.uint64))
    with pytest.raises(InvalidParameter, match="299 ids for 300"):
        HammingIndex(as_words(codes, 64), ids=list(range(299)))
    with pytest.raises(InvalidParameter, match="has no ids"):
        HammingIndex(as_words(codes, 64)).add(np.zeros(1, np.uint64), ids=["x"])


def test_arrow_in_and_the_join():
    codes = codes_of("clustered", 200, 64)
    words = as_words(codes, 64)
    index = HammingIndex(pa.array(words))
    signed = HammingIndex(pa.array(words.view(np.int64)))
    table = HammingIndex(pa.chunked_array([words[:90], words[90:]]))
    wide = as_words(codes_of("clustered", 60, 128), 128)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(wide.reshape(-1).view(np.int64)), 2)
    assert HammingIndex(fixed).query(wide[3])[0].tolist() == HammingIndex(wide).query(wide[3])[0].tolist()
    others, rows, distances = index.join(words)
    held = dict(enumerate(codes))
    expected = [(i, r, d) for i, code in enumerate(codes) for r, d in oracle.matches(held, code, 3)]
    assert list(zip(others.tolist(), rows.tolist(), distances.tolist(), strict=True)) == expected
    for other in (signed, table):
        assert lists(other.query_batch(words)) == lists(index.query_batch(words))


def test_empty_texts_match_empty_texts_only_and_recipes_do_not_mix():
    texts = ["a cat sat on the mat", "", "a cat sat on the mat", " ", "dogs bark at night"]
    recipe = Recipe.simhash(bits=64)
    sketches = likewise.sketch(texts, recipe)
    index = HammingIndex(sketches)
    assert len(index) == 5
    assert [rows for rows in map(list, map(np.ndarray.tolist, np.split(*_parts(index.query_batch(sketches)))))] == [
        [0, 2],
        [1, 3],
        [0, 2],
        [1, 3],
        [4],
    ]
    assert index.add(likewise.sketch(["", "dogs bark at night"], recipe)).tolist() == [5, 6]
    assert index.query_batch(sketches).rows.tolist() == [0, 2, 1, 3, 5, 0, 2, 1, 3, 5, 4, 6]
    assert index.remove([1, 6, 1]) == 2
    assert index.query_batch(sketches).rows.tolist() == [0, 2, 3, 5, 0, 2, 3, 5, 4]
    assert index.query(0)[0].size == 0
    with pytest.raises(RecipeMismatch, match="seed"):
        index.query_batch(likewise.sketch(texts, Recipe.simhash(bits=64, seed=9)))
    with pytest.raises(RecipeMismatch, match="bits is 64 here and 128 there"):
        index.add(likewise.sketch(texts, Recipe.simhash(bits=128)))
    with pytest.raises(InvalidParameter, match="128 bits"):
        HammingIndex(np.zeros(1, np.uint64)).add(likewise.sketch(texts, Recipe.simhash(bits=128)))


def _parts(found):
    return found.rows, found.offsets[1:-1]


def test_refusals():
    words = np.arange(10, dtype=np.uint64)
    index = HammingIndex(words)
    for call, name in [
        (lambda: index.query(3, within=4), "within"),
        (lambda: index.query(-1), "fingerprint"),
        (lambda: index.query(1 << 64), "fingerprint"),
        (lambda: index.query_batch(np.zeros((2, 2), np.uint64)), "fingerprints"),
        (lambda: index.query_batch([1.5]), "fingerprints"),
        (lambda: index.nearest(3, 0), "k"),
        (lambda: HammingIndex(words, within=65), "within"),
        (lambda: HammingIndex(words, bits=48), "bits"),
        (lambda: HammingIndex(words + np.uint64(1 << 32), bits=32), "fingerprints"),
        (lambda: HammingIndex(words, memory=10), "memory"),
        (lambda: HammingIndex(words, threads=0), "threads"),
    ]:
        with pytest.raises(InvalidParameter) as caught:
            call()
        assert caught.value.name == name


def test_most_candidates_of_a_query():
    """Two tables of 32 bits, each with a directory over its first nine bits."""
    words = np.arange(512, dtype=np.uint64) << np.uint64(55)
    words[:300] |= np.arange(300, dtype=np.uint64) << np.uint64(23)
    index = HammingIndex(words, within=1, threads=1)
    assert index.stats["keys"] == [(0xFFFFFFFF, 0), (0xFFFFFFFF << 32, 0)]
    assert index.stats["most_candidates"] == 0
    # One agrees in the first bits of either key.
    index.query_batch(np.array([(7 << 55) | (5 << 23), 511 << 23], np.uint64))
    assert index.stats["most_candidates"] == 2
    # The first and the last 212 agree in the low bits, one in the high bits.
    index.query(1 << 63)
    assert index.stats["most_candidates"] == 1 + 213
    index.query(5 << 23)
    assert index.stats["most_candidates"] == 1 + 213
    index.add(words[:100])
    index.query(1 << 63)
    assert index.stats["most_candidates"] == 1 + 213 + 100


def test_oversize_buckets_are_refined():
    """Half of the fingerprints agree in two keys: their bucket is large, but few of its members are compared."""
    random = np.random.default_rng(3)
    words = random.integers(0, 1 << 64, 60_000, np.uint64)
    words[::2] = words[::2] & np.uint64((1 << 32) - 1) | np.uint64(0x1234_5678 << 32)
    # So few that the plan takes them for uniform.
    index = HammingIndex(words[:10])
    index.add(words[10:])
    assert index.stats["largest_bucket"] > 29_000
    queries = words[:400] ^ np.uint64(1 << 20)
    index.query_batch(queries, within=1)
    assert index.stats["most_candidates"] < 15_000
    found = index.query_batch(queries)
    for query, part in zip(queries.tolist()[:50], lists(found), strict=False):
        distances = np.bitwise_count(words ^ np.uint64(query))
        rows = np.flatnonzero(distances <= 3)
        assert part == list(zip(rows.tolist(), distances[rows].tolist(), strict=True))


def test_an_index_is_gone_when_nobody_holds_it():
    index = HammingIndex(np.arange(1000, dtype=np.uint64), ids=[str(row) for row in range(1000)])
    index.query(5)
    held = weakref.ref(index)
    gc.disable()
    try:
        del index
        assert held() is None
    finally:
        gc.enable()


def test_mapped_fingerprints_are_those_of_their_file(tmp_path):
    codes = np.random.default_rng(4).integers(0, 2**64, 60_000, np.uint64)
    codes.tofile(tmp_path / "codes.u64")
    mapped = np.memmap(tmp_path / "codes.u64", np.uint64, "r").reshape(-1, 1)[1000:, 0]
    expected = HammingIndex(codes[1000:], within=3)
    index = HammingIndex(mapped, within=3)
    assert len(index) == 59_000
    for made, wanted in zip(index.query_batch(codes, 3), expected.query_batch(codes, 3), strict=True):
        assert np.array_equal(made, wanted)
    assert index.stats["keys"] == expected.stats["keys"]
