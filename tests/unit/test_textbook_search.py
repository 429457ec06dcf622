"""The searches from the literature agree with each other, with brute force and with the index."""

import numpy as np
import pytest

from likewise import HammingIndex
from likewise.errors import InvalidParameter
from likewise.theory.textbook import textbook_searches
from likewise.theory.textbook_search import historical_names, historical_search


def neighborly(rng, num, bits):
    """Return fingerprints, some of which are equal and some a few bits apart."""
    codes = rng.integers(0, 2**bits, num, dtype=np.uint64, endpoint=False) if bits < 64 else rng.integers(
        0, 2**64, num, dtype=np.uint64
    )  # fmt: skip
    for row in range(num // 2, num):
        flips = rng.choice(bits, int(rng.integers(0, 6)), replace=False)
        codes[row] = codes[rng.integers(0, num // 2)] ^ np.uint64(sum(1 << int(bit) for bit in flips))
    return codes


def brute_force(codes, query, within):
    return [row for row, code in enumerate(codes.tolist()) if (code ^ query).bit_count() <= within]


@pytest.mark.parametrize(
    ("bits", "within", "num"), [(64, 3, 40), (64, 2, 300), (32, 3, 150), (20, 1, 400), (16, 0, 50)]
)
def test_all_find_the_same(bits, within, num):
    rng = np.random.default_rng(bits + within)
    codes = neighborly(rng, num, bits)
    queries = [*codes[:: num // 20].tolist(), *neighborly(rng, 10, bits).tolist()]
    index = HammingIndex(codes, within=within, bits=bits) if bits in (32, 64) else None
    expected = [brute_force(codes, query, within) for query in queries]
    assert sum(map(len, expected)) > 20
    for name in historical_names(bits, within):
        search = historical_search(name, codes, bits=bits, within=within)
        assert [search.query(query).tolist() for query in queries] == expected, name
    if index is not None:
        assert [sorted(index.query(query)[0].tolist()) for query in queries] == expected


def test_a_key_too_few_is_seen_to_miss():
    # The comparison above can fail: without one of its four tables, the search misses a neighbor.
    codes = np.array([0, 0b111 << 48], np.uint64)
    search = historical_search("4 blocks", codes)
    assert search.query(1 << 20 | 1 << 40).tolist() == [0]
    assert len(search._tables) == 4
    for table in range(4):
        errors = sum(1 << (16 * block) for block in range(4) if block != table)
        whole = historical_search("4 blocks", codes)
        assert whole.query(errors).tolist() == [0]
        del whole._tables[table]
        assert whole.query(errors).tolist() == []


def test_probes_and_candidates_are_those_foretold():
    rng = np.random.default_rng(1)
    bits, within, num = 24, 3, 20_000
    codes = rng.integers(0, 2**bits, num, dtype=np.uint64)
    foretold = {search.name: search for search in textbook_searches(num, bits=32, within=within)}
    assert set(historical_names(32, within)) == set(foretold)
    for name in historical_names(bits, within):
        if name == "all neighbors stored":
            continue
        search = historical_search(name, codes, bits=bits, within=within)
        compared = []
        for query in rng.integers(0, 2**bits, 60, dtype=np.uint64).tolist():
            search.query(query)
            compared.append(search.num_candidates)
        mean = sum(compared) / len(compared)
        # By hand: n / 2^p for a table of p bits, blocks of 6; of 4 or 5; of 6 and 4 or 5; of 4.
        expected = {
            "scan": num,
            "all neighbors probed": num * 2325 / 2**24,
            "4 blocks": 4 * num / 2**6,
            "2 of 5 blocks": 6 * num / 2**10 + 4 * num / 2**9,
            "4 blocks, then 4 of the rest": 8 * num / 2**11 + 8 * num / 2**10,
            "3 of 6 blocks": 20 * num / 2**12,
        }[name]
        assert mean == pytest.approx(expected, rel=0.25), name
        assert search.num_probes == {"scan": 0, "all neighbors probed": 2325}.get(name, foretold[name].num_tables)


def test_the_four_searches_at_the_paper_s_size_of_a_query():
    probed = historical_search("all neighbors probed", np.zeros(1, np.uint64))
    probed.query(0)
    assert probed.num_probes == 41_664 + 2016 + 64 + 1
    tables = {name: len(historical_search(name, np.zeros(1, np.uint64))._tables) for name in historical_names()[3:]}
    assert sorted(tables.values()) == [4, 10, 16, 20]


def test_what_cannot_be_done_is_refused():
    codes = np.zeros(1001, np.uint64)
    with pytest.raises(InvalidParameter, match="at most 1000"):
        historical_search("all neighbors stored", codes, bits=8, within=1)
    with pytest.raises(InvalidParameter, match="is not one of scan, all"):
        historical_search("7 blocks", codes)
    with pytest.raises(InvalidParameter, match="neighbors"):
        historical_search("all neighbors probed", codes, within=6)
    with pytest.raises(InvalidParameter, match="more than 8 bits"):
        historical_search("scan", codes + np.uint64(256), bits=8)
    with pytest.raises(InvalidParameter, match="uint64"):
        historical_search("scan", codes.astype(np.int64))
