"""Rows of the Hamming search benchmark: what is searched, within what radius, by which tools, and the goal."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

OURS = "likewise"
QUERY_RIVALS = (
    "faiss IndexBinaryMultiHash", "faiss IndexBinaryHash", "faiss IndexBinaryFlat", "usearch Index",
    "usearch search(exact=True)", "simhash SimhashIndex",
)  # fmt: skip
PAIR_RIVALS = ("simhash-pybind find_all", "faiss IndexBinaryMultiHash", "faiss IndexBinaryFlat")
RIVAL_WITHIN = (3, 6, 10)
RIVAL_SIZES = (10**6, 10**7)
RIVAL_LIMIT_S = {10**6: 45.0, 10**7: 75.0}  # for one process of a rival: read data, make the index, query
KINDS = ("uniform", "real")
DATA = {"uniform": "uniform", "real": "real paragraphs"}


@dataclass(frozen=True)
class Goal:
    """A figure of the results that must be at least or at most `value`."""

    figure: str
    relation: str  # ">=" or "<="
    value: float

    def is_met(self, found: float) -> bool:
        """Return whether the figure reaches it."""
        return found >= self.value if self.relation == ">=" else found <= self.value


@dataclass(frozen=True)
class Row:
    """One line of work; `measure` names the function of hamming_measures.py for it."""

    id: str
    measure: str  # queries, build, pairs, written, stream, mapped, frontier
    title: str
    data: str
    n: int
    bits: int = 64
    within: tuple[int, ...] = (3,)
    threads: int = 2
    tools: tuple[str, ...] = (OURS,)
    goals: dict[int, tuple[Goal, ...]] = field(default_factory=dict)  # by radius
    repeats: int = 3
    num_queries: int | None = None  # None: as many as fill a second
    bytes_a_fingerprint: float | None = None  # memory given to our planner
    memory_bytes: int | None = None  # limit for the whole call
    with_rows: bool = True  # otherwise the index returns fingerprints and stores no rows
    limit_s: float = 280

    def radii_of(self, tool: str) -> tuple[int, ...]:
        """Return the radii for the tool, the quick ones first."""
        return self.within if tool == OURS or len(self.within) == 1 else RIVAL_WITHIN

    def limit_of(self, tool: str) -> float:
        """Return the seconds that one process of the tool may take."""
        return self.limit_s if tool == OURS else RIVAL_LIMIT_S[self.n]


def short(n: float) -> str:
    """Return 1000000 as 1e6."""
    return f"{n:.0e}".replace("e+0", "e")


def _rate(value: float) -> tuple[Goal, ...]:
    return (Goal("queries_per_s", ">=", value),)


def rows() -> list[Row]:
    """Return all rows, from quick to large ones."""
    made = [
        Row("frontier-1e8", "frontier", "plans for 1e8", "uniform", 10**8),
    ]
    rates = {
        10**6: {3: 2e6, 6: 150e3, 10: 20e3},
        10**7: {3: 1e6, 6: 60e3, 8: 25e3, 10: 10e3},
    }
    for n, by_radius in rates.items():
        for data in KINDS:
            made.append(
                Row(
                    f"queries-{short(n)}-{data}", "queries", f"queries in {short(n)} fingerprints, one core", data, n,
                    within=(3, 6, 8, 10), threads=1, tools=(OURS, *QUERY_RIVALS),
                    goals={k: _rate(value) for k, value in by_radius.items()},
                )
            )  # fmt: skip
    for data in KINDS:
        made.append(
            Row(
                f"queries-1e6-128-{data}",
                "queries",
                "queries in 1e6 fingerprints of 128 bits, one core",
                data,
                10**6,
                bits=128,
                within=(32,),
                threads=1,
                tools=(OURS, "faiss IndexBinaryFlat", "usearch Index"),
            )
        )
    for data in KINDS:
        made.append(
            Row(
                f"build-1e7-{data}", "build", "index of 1e7 made, 2 cores", data, 10**7,
                tools=(OURS, "faiss IndexBinaryMultiHash"), goals={3: (Goal("seconds", "<=", 1.5),)},
            )
        )  # fmt: skip
    for n, seconds in ((10**6, 0.05), (10**7, 0.6), (10**8, 15.0)):
        for data in KINDS:
            made.append(
                Row(
                    f"pairs-{short(n)}-{data}", "pairs", f"all pairs of {short(n)}, 2 cores", data, n,
                    tools=(OURS, *PAIR_RIVALS) if n in RIVAL_SIZES else (OURS,),
                    goals={3: (Goal("seconds", "<=", seconds),)},
                )
            )  # fmt: skip
    made.append(
        Row(
            "written-1e8-uniform", "written", "all pairs of a flat file of 1e8 to Parquet, memory=2e9, 2 cores",
            "uniform", 10**8, memory_bytes=2 * 10**9, repeats=1, limit_s=580,
            goals={3: (Goal("peak_anonymous_bytes", "<=", 2e9),)},
        )
    )  # fmt: skip
    for data in KINDS:
        made.append(
            Row(
                f"wide-scan-1e6-{data}", "pairs", "all pairs of 1e6, 128 bits, exact, 2 cores", data, 10**6, bits=128,
                within=(32,), tools=(OURS, "faiss IndexBinaryFlat"),
                goals={32: (Goal("seconds", "<=", 60),)}, limit_s=580,
            ),
        )  # fmt: skip
    for name, budget, rate, rows_kept in (("small", 12.5, 500e3, "no rows"), ("fast", 26.0, 1e6, "rows")):
        for data in KINDS:
            made.append(
                Row(
                    f"{name}-1e8-{data}", "queries",
                    f"queries in 1e8, plan of {budget:g} B per fingerprint, {rows_kept} kept, 2 cores",
                    data, 10**8, bytes_a_fingerprint=budget, with_rows=name == "fast", limit_s=580,
                    goals={
                        3: (*_rate(rate), Goal("bytes_a_fingerprint", "<=", budget), Goal("single_p99_us", "<=", 20))
                    },
                )
            )  # fmt: skip
    for data in KINDS:
        made.append(
            Row(
                f"batch-5e8-{data}", "queries", "1e6 queries against an index of 5e8, 2 cores", data, 5 * 10**8,
                num_queries=10**6, bytes_a_fingerprint=15, limit_s=900,
                goals={3: (Goal("seconds", "<=", 4), Goal("peak_anonymous_bytes", "<=", 10e9))},
            )
        )  # fmt: skip
    made += [
        Row(
            "stream-5e8-uniform", "stream", "1e6 queries against the flat file of 5e8, one pass, 2 cores", "uniform",
            5 * 10**8, num_queries=10**6, limit_s=580,
        ),
        Row(
            "stream-1e9-uniform", "stream", "1e6 queries against the flat file of 1e9, one pass, 2 cores", "uniform",
            10**9, num_queries=10**6, repeats=1, limit_s=580,
            goals={3: (Goal("seconds", "<=", 60), Goal("peak_anonymous_bytes", "<=", 4e9))},
        ),
        Row(
            "mapped-1e8-uniform", "mapped", "1e8 in one mapped index file, no rows kept", "uniform", 10**8,
            repeats=1, bytes_a_fingerprint=12.5, with_rows=False, memory_bytes=10**9,
            goals={3: (Goal("bytes_a_fingerprint", "<=", 12.5), Goal("open_s", "<=", 1))},
        ),
        Row(
            "mapped-1e9-uniform", "mapped", "1e9 in one mapped index file, no rows kept", "uniform", 10**9,
            repeats=1, bytes_a_fingerprint=12.5, with_rows=False, memory_bytes=2 * 10**9, limit_s=1800,
            goals={
                3: (
                    Goal("bytes_a_fingerprint", "<=", 12.5), Goal("open_s", "<=", 1), Goal("single_p50_us", "<=", 1000),
                )
            },
        ),
    ]  # fmt: skip
    return made


def chosen(only: str | None, sizes: str | None) -> list[Row]:
    """Return rows whose id matches one of the patterns in `only`, and whose n is one of `sizes` (comma lists)."""
    found = rows()
    if only:
        found = [row for row in found if any(fnmatchcase(row.id, pattern) for pattern in only.split(","))]
    if sizes:
        found = [row for row in found if row.n in {int(float(size)) for size in sizes.split(",")}]
    return found


def find(row_id: str) -> Row:
    """Return the row of that id."""
    return next(row for row in rows() if row.id == row_id)
