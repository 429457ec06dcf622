"""Hamming search in other packages: neighbors omitted silently, a radius that is ignored."""

import sys

import numpy as np
from evidence import make_importable, tell

import hamming_truth
from hamming_exact import flip_up_to

NUM_CODES, NUM_QUERIES = 50_000, 500


def make(within: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return uniform codes, queries within the radius of stored codes, and the truth."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2**64, (NUM_CODES, 1), dtype=np.uint64)
    queries = flip_up_to(codes[:NUM_QUERIES], within, 64, rng)
    return codes, queries, hamming_truth.neighbors(codes, queries, within)


def multi_hash() -> None:
    """Search with the defaults: four tables of 16 bits, no bits flipped."""
    import faiss

    seen, lost = [], 0
    for within in (3, 4, 6, 8, 10):
        codes, queries, true = make(within)
        index = faiss.IndexBinaryMultiHash(64, 4, 16)
        index.add(codes.view(np.uint8))
        offsets, _, rows = index.range_search(queries.view(np.uint8), within + 1)
        score = hamming_truth.score(true, offsets, rows)
        lost += score.missed
        seen.append(f"within {within}: {score.num_true - score.missed} of {score.num_true} found")
    tell(
        "IndexBinaryMultiHash accepts any radius, but silently omits neighbors beyond nhash - 1 bits "
        "(nflip is 0 unless the user sets the value that the radius requires)",
        "faiss-cpu",
        seen,
        reproduced=lost > 0,
    )


def radius() -> None:
    """Call search(radius=3) on uniform codes, which are about 17 bits away."""
    from usearch.index import Index, MetricKind, ScalarKind

    codes, queries, _ = make(3)
    index = Index(ndim=64, metric=MetricKind.Hamming, dtype=ScalarKind.B1)
    index.add(np.arange(2000), codes[:2000].view(np.uint8))
    found = index.search(queries[:100].view(np.uint8), 10, radius=3)
    distances = np.asarray(found.distances)
    num_far = int((distances > 3).sum())
    tell(
        "Index.search accepts a radius but returns matches outside it",
        "usearch",
        [f"radius=3: {num_far} of {distances.size} matches are farther, up to {distances.max():.0f} bits"],
        reproduced=num_far > 0,
    )


def crowded() -> None:
    """Search pages of templates: equal and close codes, which defeat a graph of near neighbors."""
    from usearch.index import Index, MetricKind, ScalarKind

    rng = np.random.default_rng(1)
    templates = rng.integers(0, 2**64, (20, 1), dtype=np.uint64)
    codes = rng.integers(0, 2**64, (20_000, 1), dtype=np.uint64)
    codes[:10_000] = flip_up_to(templates[rng.integers(0, 20, 10_000)], 3, 64, rng)
    queries = flip_up_to(codes[15_000:15_500], 3, 64, rng)  # codes that belong to no template
    true = hamming_truth.neighbors(codes, queries, 3)
    index = Index(ndim=64, metric=MetricKind.Hamming, dtype=ScalarKind.B1)
    index.add(np.arange(len(codes)), codes.view(np.uint8), threads=1)
    found = index.search(queries.view(np.uint8), 10, threads=1)
    num_found = sum(len(np.intersect1d(rows, keys)) for rows, keys in zip(true, np.asarray(found.keys), strict=True))
    num_true = sum(map(len, true))
    tell(
        "Neighbors within 3 bits are missed if half of the collection consists of copies of templates",
        "usearch",
        [f"{num_found} of {num_true} found, with {index.expansion_search} candidates looked at"],
        reproduced=num_found < num_true,
    )


def more_than_asked() -> None:
    """Search by a radius, which should not limit the number of matches; only ten are returned."""
    from usearch.index import MetricKind, search

    rng = np.random.default_rng(2)
    codes = flip_up_to(np.zeros((200, 1), np.uint64), 3, 64, rng)
    (true,) = hamming_truth.neighbors(codes, codes[:1], 3)
    found = search(codes.view(np.uint8), codes[:1].view(np.uint8), 10, MetricKind.Hamming, exact=True)
    given = np.intersect1d(true, np.asarray(found.keys).reshape(-1))
    tell(
        "There is no search by distance: a query with more near neighbors than requested loses the rest",
        "usearch",
        [f"{len(given)} of {len(true)} rows within 3 bits returned by search(count=10, exact=True)"],
        reproduced=len(given) < len(true),
    )


def find_all() -> None:
    """Find all pairs of a clustered set, for every number of blocks that it accepts."""
    make_importable("simhash-pybind")
    sys.modules.pop("simhash", None)
    import simhash

    rng = np.random.default_rng(3)
    codes = np.unique(flip_up_to(rng.integers(0, 2**64, (300, 1), dtype=np.uint64).repeat(20, 0), 4, 64, rng), axis=0)
    true = hamming_truth.neighbors(codes, codes, 3)
    rows = np.arange(len(codes))
    seen, wrong = [], 0
    for blocks in (4, 5, 6):
        found = np.array(list(simhash.find_all(set(codes[:, 0].tolist()), blocks, 3)), np.uint64).reshape(-1, 2)
        score = hamming_truth.score_pairs(true, rows, np.searchsorted(codes[:, 0], found))
        wrong += score.missed + score.extra
        seen.append(f"{blocks} blocks: {score.missed} missed, {score.extra} extra of {score.num_true}")
    tell("find_all misses pairs or returns them twice", "simhash-pybind", seen, reproduced=wrong > 0)


if __name__ == "__main__":
    multi_hash()
    radius()
    crowded()
    more_than_asked()
    find_all()
