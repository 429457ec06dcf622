"""Neighbors by brute force in plain NumPy, independent of all measured packages, and what a result misses."""

from dataclasses import dataclass

import numpy as np

from rivals.hamming_protocol import Found

BLOCK_ROWS = 1 << 16  # of one word: half a megabyte, so that a block fits the cache for all queries
MOST_LOOKED_AT = 1_000_000


@dataclass(frozen=True)
class Score:
    """`missed` and `extra` matches, compared with `num_true` matches of `num_queries` queries."""

    num_queries: int
    num_true: int
    missed: int
    extra: int

    def to_dict(self) -> dict[str, float]:
        """Return the fields of the results; recall is 1 if there was nothing to find."""
        recall = 1 - self.missed / self.num_true if self.num_true else 1.0
        return {
            "num_checked": self.num_queries,
            "num_true": self.num_true,
            "missed": self.missed,
            "extra": self.extra,
            "recall": recall,
        }


def neighbors(codes: np.ndarray, queries: np.ndarray, within: int) -> list[np.ndarray]:
    """Return for each query the sorted rows within distance `within`; codes and queries are (n, words)."""
    found: list[list[np.ndarray]] = [[] for _ in queries]
    for low in range(0, len(codes), BLOCK_ROWS):
        columns = np.ascontiguousarray(codes[low : low + BLOCK_ROWS].T)
        for number, query in enumerate(queries):
            distance = np.bitwise_count(columns[0] ^ query[0]).astype(np.uint16)
            for word in range(1, len(query)):
                distance += np.bitwise_count(columns[word] ^ query[word])
            near = np.flatnonzero(distance <= within)
            if len(near):
                found[number].append(near + low)
    return [np.concatenate(parts) if parts else np.zeros(0, np.int64) for parts in found]


def score(truth: list[np.ndarray], offsets: np.ndarray, rows: np.ndarray) -> Score:
    """Score a result of offsets and rows against the truth of the same queries; a row given twice is extra."""
    missed = extra = 0
    for number, true in enumerate(truth):
        given = rows[offsets[number] : offsets[number + 1]]
        right = len(np.intersect1d(given, true))
        missed += len(true) - right
        extra += len(given) - right
    return Score(len(truth), sum(map(len, truth)), missed, extra)


def score_found(codes: np.ndarray, truth: list[np.ndarray], found: Found) -> Score:
    """Score like `score`; if fingerprints were found instead of rows, score the distinct fingerprints."""
    if found.are_codes:
        truth = [np.unique(codes[rows, 0]) for rows in truth]
    return score(truth, found.offsets, found.rows)


def score_known(codes: np.ndarray, queries: np.ndarray, known: np.ndarray, within: int, found: Found) -> dict[str, int]:
    """Return how many planted matches (-1: none) are missed, and how many results are too far away."""
    of_query = np.repeat(np.arange(len(queries)), np.diff(found.offsets))
    asked = np.flatnonzero(known >= 0)
    wanted, given = known[asked].astype(np.uint64), found.rows.astype(np.uint64)
    if found.are_codes:
        by_row = np.argsort(known[asked])  # a mapped file is read in order
        wanted[by_row] = codes[known[asked][by_row], 0]
    # Query and match as one number: the product spreads queries so that two such numbers are never equal by chance.
    spread = np.uint64(0x9E3779B97F4A7C15)
    is_found = np.isin(asked.astype(np.uint64) * spread ^ wanted, of_query.astype(np.uint64) * spread ^ given)
    looked_at = np.argsort(found.rows)[:MOST_LOOKED_AT]  # in row order, for a mapped file
    matches = found.rows[looked_at]
    near = matches.reshape(-1, 1) if found.are_codes else codes[np.asarray(matches, np.int64)]
    distance = np.bitwise_count(near ^ queries[of_query[looked_at]]).sum(axis=1)
    return {
        "num_known": len(asked),
        "known_missed": int((~is_found).sum()),
        "num_looked_at": len(looked_at),
        "too_far": int((distance > within).sum()),
    }


def score_pairs(truth: list[np.ndarray], rows: np.ndarray, pairs: np.ndarray) -> Score:
    """Score pairs (m, 2) against the truth of the queries `rows`, which are rows of the set themselves."""
    order = np.argsort(rows)
    touching = pairs[np.isin(pairs, rows).any(axis=1)]
    both = np.concatenate([touching, touching[:, ::-1]])
    place = np.searchsorted(rows[order], both[:, 0])
    place[place == len(rows)] = 0
    ours = rows[order][place] == both[:, 0]
    query, other = order[place[ours]], both[ours, 1]
    sorting = np.argsort(query, kind="stable")
    offsets = np.searchsorted(query[sorting], np.arange(len(rows) + 1))
    without_self = [true[true != row] for true, row in zip(truth, rows, strict=True)]
    return score(without_self, offsets, other[sorting])
