"""Measurements of one row with one tool in one process: each function returns the figures of each radius."""

import ctypes
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import hamming_frontier
import hamming_truth
from hamming_data import Codes
from hamming_rows import OURS, Row
from likewise import LikewiseError
from rivals.hamming_protocol import Found, NotDone, Searcher

Figures = dict[str, object]
SECOND = 1.0
MOST_QUERIES = 1_000_000
MOST_WARMING = 200_000
CHECK_PAIRS_OF_WORDS = 4e9  # compares that a brute-force check may cost
CHECK_S = 5.0
RIVAL_S = 10.0  # of queries by a rival, including all repetitions and the check
RIVAL_SHARES = 5  # parts of that: finding the rate, three repetitions, the check
NUM_SINGLES = 20_000


def anonymous_bytes() -> int:
    """Return the anonymous memory of this process, after returning what the allocator holds back."""
    ctypes.CDLL(None).malloc_trim(0)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise LookupError("no RssAnon in /proc/self/status")


def truth(codes: Codes, stored: np.ndarray, queries: np.ndarray, within: int, name: str) -> list[np.ndarray]:
    """Return matches by brute force, cached in the work folder for the row's next tool."""
    # The name identifies queries and data: the truth of other queries would make every tool look wrong.
    asked = hashlib.blake2b(np.ascontiguousarray(queries).tobytes(), digest_size=8)
    asked.update(np.ascontiguousarray(stored[:: max(1, len(stored) // 1000)]).tobytes())
    path = codes.work / f"truth-{codes.kind}-{codes.bits}-{len(stored)}-{within}-{name}-{asked.hexdigest()}.npz"
    if not path.exists():
        found = hamming_truth.neighbors(stored, queries, within)
        offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in found])])
        np.savez(path, offsets=offsets, rows=np.concatenate([*found, np.zeros(0, np.int64)]))
    kept = np.load(path)
    return np.split(kept["rows"], kept["offsets"][1:-1])


def num_checked(row: Row) -> int:
    """Return the number of queries whose answer is compared with brute force."""
    return int(min(500, max(10, CHECK_PAIRS_OF_WORDS / (row.n * row.bits / 64))))


def queries(row: Row, make: Callable[[], Searcher], codes: Codes) -> dict[int, Figures]:
    """Return queries per second, bytes per fingerprint, time of single queries, and misses, at each radius."""
    searcher, large = make(), row.n > 10**8
    stored = codes.mapped(row.n) if large else codes.array(row.n)
    made: dict[int, Figures] = {}
    before = anonymous_bytes()
    for within in row.within:
        try:
            made[within] = _queries_within(row, searcher, codes, stored, within, before)
        except NotDone as reason:
            made[within] = {"not_run": str(reason)}
        say(row, searcher, within, made[within])
    return made


def _queries_within(
    row: Row, searcher: Searcher, codes: Codes, stored: np.ndarray, within: int, before: int
) -> Figures:
    start = time.perf_counter()
    searcher.build(stored, row.bits, within, row.threads)
    figures: Figures = {"build_s": time.perf_counter() - start}
    figures["bytes_a_fingerprint"] = max(0, anonymous_bytes() - before) / row.n
    if searcher.name == OURS:
        figures |= searcher.facts()
        try:
            figures |= hamming_frontier.predicted(row, within, stored, searcher.keys())
        except (NotDone, LikewiseError) as reason:
            figures["not_predicted"] = str(reason)

    sample = codes.queries(num_checked(row), row.n, within, seed=3)
    true = truth(codes, stored, sample, within, "queries")
    is_ours = searcher.name == OURS
    second, check_s = (SECOND, CHECK_S) if is_ours else (min(SECOND, RIVAL_S / RIVAL_SHARES), RIVAL_S / RIVAL_SHARES)
    rate = _rate(searcher, codes.queries(MOST_WARMING, row.n, within, seed=4), within, row.threads)
    sample = sample[: max(1, min(len(sample), int(rate * check_s)))]
    if row.num_queries:
        batch, num = row.num_queries, row.num_queries
    else:
        batch = int(min(MOST_QUERIES, max(10 if is_ours else 1, rate * second)))
        num = min(2 * MOST_QUERIES, batch * row.repeats)
    asked, known = codes.queries_and_rows(num, row.n, within)
    seconds = []
    for repeat in range(row.repeats):
        low = repeat * batch % max(1, num - batch + 1)
        start = time.perf_counter()
        found = searcher.query(asked[low : low + batch], within, row.threads)
        seconds.append(time.perf_counter() - start)
        if not is_ours and sum(seconds) > RIVAL_S / RIVAL_SHARES * 3:
            break
    middle = statistics.median(seconds)
    part = slice(low, low + batch)
    figures |= hamming_truth.score_known(stored, asked[part], known[part], within, found)
    figures |= {
        "seconds": middle,
        "all_seconds": seconds,
        "num_queries": batch * len(seconds),
        "queries_per_s": batch / middle,
        "matches_a_query": len(found.rows) / batch,
    }
    if hasattr(searcher, "query_one"):
        figures |= singles(searcher, asked[:NUM_SINGLES], within)
    found = searcher.query(sample, within, row.threads)
    return figures | hamming_truth.score_found(stored, true[: len(sample)], found).to_dict()


def _rate(searcher: Searcher, asked: np.ndarray, within: int, threads: int) -> float:
    """Return queries per second, from batches that grow fourfold until one takes a quarter of a second; warms up."""
    num = 1
    while True:
        start = time.perf_counter()
        searcher.query(asked[:num], within, threads)
        seconds = time.perf_counter() - start
        if seconds > SECOND / 4 or num >= len(asked):
            return min(num, len(asked)) / max(1e-9, seconds)
        num *= 4


def singles(searcher: Searcher, asked: np.ndarray, within: int) -> Figures:
    """Return median and 99th percentile of single calls from Python, in microseconds, after a tenth as warm-up."""
    words = asked[:, 0] if asked.shape[1] == 1 else asked
    for query in words[: len(words) // 10]:
        searcher.query_one(query, within)
    times = np.empty(len(words), np.int64)
    for number, query in enumerate(words):
        start = time.perf_counter_ns()
        searcher.query_one(query, within)
        times[number] = time.perf_counter_ns() - start
    p50, p99 = np.percentile(times, (50, 99)) / 1000
    return {"single_p50_us": float(p50), "single_p99_us": float(p99), "num_singles": len(words)}


def build(row: Row, make: Callable[[], Searcher], codes: Codes) -> dict[int, Figures]:
    """Return the seconds to make the index."""
    stored = codes.array(row.n)
    made: dict[int, Figures] = {}
    for within in row.within:
        seconds = []
        for _ in range(row.repeats):
            searcher = None
            searcher = make()
            start = time.perf_counter()
            searcher.build(stored, row.bits, within, row.threads)
            seconds.append(time.perf_counter() - start)
            if enough(searcher, seconds):
                break
        made[within] = {"seconds": statistics.median(seconds), "all_seconds": seconds}
        say(row, searcher, within, made[within])
    return made


def pairs(row: Row, make: Callable[[], Searcher], codes: Codes) -> dict[int, Figures]:
    """Return the seconds for all pairs; misses among the pairs of sampled rows, and of those planted at the radius."""
    stored = codes.array(row.n)
    made: dict[int, Figures] = {}
    for within in row.within:
        seconds: list[float] = []
        for _ in range(row.repeats):
            searcher, found = make(), None
            start = time.perf_counter()
            found = searcher.pairs(stored, row.bits, within, row.threads)
            seconds.append(time.perf_counter() - start)
            if enough(searcher, seconds):
                break
        made[within] = {"seconds": statistics.median(seconds), "all_seconds": seconds, "num_pairs": len(found)}
        made[within] |= _judged_pairs(row, codes, stored, np.asarray(found), within)
        say(row, searcher, within, made[within])
    return made


def _judged_pairs(row: Row, codes: Codes, stored: np.ndarray, found: np.ndarray, within: int) -> Figures:
    rng = np.random.default_rng(5)
    # Those of a million rows suffice to show a miss.
    planted = codes.planted(min(row.n, 10**6), within)
    # Half of the sample are planted originals, since most random rows have no pair.
    num = num_checked(row)
    sample = np.unique(np.concatenate([rng.integers(0, row.n, num // 2), planted[: num - num // 2, 0]]))
    true = truth(codes, stored, np.ascontiguousarray(stored[sample]), within, "pairs")
    return {
        **hamming_truth.score_pairs(true, sample, found).to_dict(),
        "num_planted": len(planted),
        **_recall_at_radius(_found_share(planted, found), len(planted)),
    }


def _recall_at_radius(share: float, num: int) -> Figures:
    """Return the share found of pairs planted at the radius, with its 95% interval by the score test (Wilson 1927)."""
    if not num:
        return {"recall_at_radius": 1.0}
    z2 = 1.959964**2
    middle = (share + z2 / (2 * num)) / (1 + z2 / num)
    half = (z2 / num * (share * (1 - share) + z2 / (4 * num))) ** 0.5 / (1 + z2 / num)
    low, high = float(middle - half), float(middle + half)
    return {"recall_at_radius": float(share), "recall_lower": low, "recall_upper": high}


def written(row: Row, make: Callable[[], Searcher], codes: Codes) -> dict[int, Figures]:
    """Return the seconds to write all pairs of a flat file to Parquet in bounded memory, and the score of the pairs."""
    import pyarrow.parquet as pq

    stored, out = codes.mapped(row.n), codes.work / f"{row.id}.parquet"
    made: dict[int, Figures] = {}
    for within in row.within:
        seconds = []
        for _ in range(row.repeats):
            out.unlink(missing_ok=True)
            searcher, start = make(), time.perf_counter()
            num_pairs = searcher.write_pairs(stored, out, within, row.threads, row.memory_bytes)
            seconds.append(time.perf_counter() - start)
        table = pq.read_table(out)
        found = np.stack([np.asarray(table.column(place)).astype(np.int64) for place in (0, 1)], axis=1)
        made[within] = {"seconds": statistics.median(seconds), "all_seconds": seconds, "num_pairs": num_pairs}
        made[within] |= _judged_pairs(row, codes, stored, found, within)
        say(row, searcher, within, made[within])
    return made


def enough(searcher: Searcher, seconds: list[float]) -> bool:
    """Return whether a rival has used its time: work of minutes is not repeated five times."""
    return searcher.name != OURS and sum(seconds) > RIVAL_S


def _found_share(planted: np.ndarray, found: np.ndarray) -> float:
    """Return the share of the planted pairs (left < right) that were found."""
    if not len(planted):
        return 1.0
    low = found[(found < planted.max() + 1).all(axis=1)].astype(np.int64)
    keys = low.min(axis=1) << 32 | low.max(axis=1)
    return np.isin(planted[:, 0] << 32 | planted[:, 1], keys).mean()


def stream(row: Row, make: Callable[[], Searcher], codes: Codes) -> dict[int, Figures]:
    """Return the seconds for one pass of the flat file by a set of queries."""
    path, searcher = codes.path(row.n), make()
    made: dict[int, Figures] = {}
    for within in row.within:
        asked, known = codes.queries_and_rows(row.num_queries or MOST_QUERIES, row.n, within)
        seconds = []
        for _ in range(row.repeats):
            start = time.perf_counter()
            found: Found = searcher.stream(asked, path, row.bits, within, row.threads)
            seconds.append(time.perf_counter() - start)
        num = num_checked(row)
        true = truth(codes, codes.mapped(row.n), asked[:num], within, "stream")
        middle = statistics.median(seconds)
        made[within] = {
            "seconds": middle,
            "all_seconds": seconds,
            "pairs_per_s": row.n * len(asked) / middle,
            "num_matches": len(found.rows),
            **hamming_truth.score_known(codes.mapped(row.n), asked, known, within, found),
            **hamming_truth.score(true, found.offsets[: num + 1], found.rows).to_dict(),
        }
        say(row, searcher, within, made[within])
    return made


def say(row: Row, searcher: Searcher, within: int, figures: Figures) -> None:
    """Print one line to stderr, which hamming.py shows, and keeps if the process does not finish."""
    print(f"{row.id} {within} {json.dumps(figures)}", file=sys.stderr, flush=True)
