"""Plans for finding pairs on Spark, with predicted costs: shuffled bytes, core-seconds, rounds, memory."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import comb

from likewise.errors import InvalidParameter, counted
from likewise.recipe.methods import Exact, MinHash, SimHash
from likewise.recipe.recipe import Recipe
from likewise.stages.bands import sketch_bytes

# Core-nanoseconds of stages in bench/results/spark.json, "minhash 100000", on two busy cores: per byte of text; per
# document ordered; per document and band; per document verified; per document decided.
SKETCHING_NS = 2 * 16.2634e9 / 239_907_809
ORDERING_NS = 2 * 2.7001e9 / 100_000
BAND_NS = 2 * 10.9619e9 / 100_000 / 32
VERIFYING_NS = 2 * 4.2353e9 / 100_000
DECIDED_NS = 2 * 0.7072e9 / 100_000
# Bytes of written stages per byte of text in the same run.
STORED_SHARE = 196_169_141 / 239_907_809
# Shuffled bytes per document in addition to its text or sketch, and per document and band.
SHUFFLED_ROW_BYTES, BAND_BYTES = 48, 20
# Share of documents sent again as candidates. An assumption: twice the share of removed documents.
CANDIDATES = 0.28
# Nanoseconds of one core: per key value looked up, per word of a candidate, and per word if all pairs are compared.
PROBE_NS = 24.0
CANDIDATE_NS = 0.5
SCAN_NS = 0.1
# Per row from Spark to Python, without its search; measured with busy cores, so probably too high.
ROW_NS = 300.0
# Per fingerprint of a slab, and in the tables of a worker; fitted to one run on 5,000,000 fingerprints.
STORING_NS, BUILDING_NS = 1300.0, 220.0
# Minimum fingerprints of a slab that a task streams, about a second of work within 3 bits, and tasks per core.
LEAST_PIECE, TASKS_A_CORE = 1 << 18, 4
# Core-seconds to start the Spark jobs of a search for pairs, on 20,000 documents.
PAIRS_JOBS_S = 10.0
# Per row shuffled and sorted into its cell, and its bytes in addition to the fingerprint: cell and number.
SHUFFLED_ROW_NS = 1500.0
CELL_BYTES = 12
# Memory factor of building tables, which holds a part twice.
BUILDING = 1.5
# Maximum bytes of a slab of a run in a worker.
SLAB_BYTES = 1_000_000_000
# Time of deciding a slab, relative to streaming it past its own tables.
DECIDING = 2.5
# Overhead of a round in seconds: two Spark stages and their markers.
ROUND_S = 2.0

# Maximum radius for splitting: each further bit adds a copy of all fingerprints.
MOST_SPLIT = 3
# Approximate rows per cell.
_CELL_ROWS = 1 << 20
# Above the first, a warning states the duration; above the second, that the search is impractical.
LONG_CORE_S, IMPRACTICAL_CORE_S = 1e6, 1e7


@dataclass(frozen=True)
class Keys:
    """Blocks of bits used as lookup keys."""

    # Number of blocks; 0 if all pairs are compared
    num_keys: int
    query_ns: float
    table_bytes: int


def best_keys(num: float, bits: int, within: int) -> Keys:
    """Return the cheapest blocks for tables of `num` uniform fingerprints."""
    words = -(-bits // 64)
    best = Keys(0, SCAN_NS * words * num, 8 * words)
    for num_keys in range(1, min(within + 1, bits) + 1):
        width = bits / num_keys
        small, num_larger = divmod(within + 1, num_keys)
        probes = num_keys * _ball(width, small - 1)
        probes += num_larger * (_ball(width, small) - _ball(width, small - 1))
        candidates = probes * num / 2.0 ** min(width, 1000.0)
        query_ns = PROBE_NS * probes + CANDIDATE_NS * words * candidates
        if query_ns < best.query_ns:
            best = Keys(num_keys, query_ns, 8 * words * (num_keys + 1))
    return best


def _ball(width: float, radius: int) -> float:
    """Return the number of values within a radius of a value; as a float, since it is used for fractional widths."""
    return float(sum(comb(max(1, round(width)), errors) for errors in range(min(radius, round(width)) + 1)))


def most_in_tables(bits: int, within: int, memory_bytes: int) -> int:
    """Return the maximum number of fingerprints in the tables of a worker."""
    # The number of keys hardly depends on the number of fingerprints, so a second iteration suffices.
    num = 1e6
    for _ in range(2):
        num = max(1.0, memory_bytes / (BUILDING * best_keys(num, bits, within).table_bytes))
    return max(1, int(num))


def run_bytes(bits: int) -> int:
    """Return the bytes per distinct document in a worker that decides its slab."""
    words = -(-bits // 64)
    # Rank, features, order, verdict and evidence; fingerprints twice; tables as measured for 64, 128 and 256 bits.
    return 64 + 16 * words + 43 * words + 32 * words**2


@dataclass(frozen=True)
class HammingPairsPlan:
    """A plan for finding all pairs of fingerprints on Spark, with predicted costs.

    Parameters
    ----------
    name : {"slabs", "splitting"}
        The method.
    num_fingerprints, bits, within : int
        Number of fingerprints, their width, and the radius.
    slab_rows : int
        Fingerprints per slab.
    prefix_bits : int
        Bits that determine a cell of the splitting.
    shuffle_bytes, core_s, worker_bytes : float
        Shuffled bytes, seconds of one core, and memory of the tables of one Python worker.
    num_rounds : int
        Number of consecutive Spark stages.
    """

    name: str
    num_fingerprints: int
    bits: int
    within: int
    slab_rows: int
    prefix_bits: int
    shuffle_bytes: float
    core_s: float
    worker_bytes: float
    num_rounds: int

    @property
    def warning(self) -> str | None:
        """Warning about a search that takes very long, otherwise None."""
        return _warning(self.num_fingerprints, self.bits, self.within, self.core_s)

    @property
    def lines(self) -> tuple[str, ...]:
        """Description of the plan."""
        if self.name == "slabs":
            num_slabs = max(1, -(-self.num_fingerprints // self.slab_rows))
            how = f"slabs: {num_slabs:,} of up to {self.slab_rows:,} fingerprints, each compared with all"
        else:
            how = f"splitting: each fingerprint in {self.within + 1} of {(self.within + 1) << self.prefix_bits:,} cells"
        return (
            how,
            f"{self.shuffle_bytes / 1e9:,.2f} GB shuffled, about {self.core_s:,.0f} core-seconds, "
            f"{self.num_rounds} rounds, {self.worker_bytes / 1e9:.2f} GB in each worker",
        )

    def to_dict(self) -> dict[str, object]:
        """Return the plan as JSON values."""
        return asdict(self)


def plan_pairs(
    num: int,
    bits: int,
    within: int,
    memory_bytes: int,
    *,
    plan: str | None = None,
    slab_rows: int | None = None,
    num_cores: int = 2,
) -> HammingPairsPlan:
    """Return the cheaper plan for finding all pairs within a radius, or the requested one."""
    by_slabs = _slabs(num, bits, within, slab_rows or most_in_tables(bits, within, memory_bytes), num_cores)
    if plan == "slabs" or within > MOST_SPLIT:
        if plan == "splitting":
            raise InvalidParameter("plan", f"splitting is for within up to {MOST_SPLIT}; use slabs")
        return by_slabs
    by_splitting = _splitting(num, bits, within)
    if plan == "splitting":
        return by_splitting
    return min(by_slabs, by_splitting, key=lambda one: one.core_s)


def _slabs(num: int, bits: int, within: int, slab_rows: int, num_cores: int) -> HammingPairsPlan:
    rows = max(1, min(num, slab_rows))
    keys = best_keys(rows, bits, within)
    num_slabs = max(1, -(-num // rows))
    # A slab is compared with itself and all later ones.
    streamed = num * (num_slabs + 1) / 2
    # Workers take consecutive tasks and hold the tables of one slab.
    piece = max(LEAST_PIECE, -(-num // (TASKS_A_CORE * num_cores)))
    num_tasks = num_slabs * (num_slabs + 1) // 2 * -(-rows // piece)
    built = rows * min(num_tasks, num_slabs * num_cores, num_slabs + TASKS_A_CORE * num_cores)
    return HammingPairsPlan(
        name="slabs",
        num_fingerprints=num,
        bits=bits,
        within=within,
        slab_rows=slab_rows,
        prefix_bits=0,
        shuffle_bytes=0.0,
        core_s=PAIRS_JOBS_S + (streamed * keys.query_ns + num * (ROW_NS + STORING_NS) + built * BUILDING_NS) / 1e9,
        worker_bytes=float(rows * keys.table_bytes),
        num_rounds=3,
    )


def _splitting(num: int, bits: int, within: int) -> HammingPairsPlan:
    copies, words = within + 1, -(-bits // 64)
    prefix_bits = min(bits // copies, 24, max(0, (num // _CELL_ROWS).bit_length()))
    in_cell = max(1.0, num / 2.0**prefix_bits)
    keys = best_keys(in_cell, bits, within)
    return HammingPairsPlan(
        name="splitting",
        num_fingerprints=num,
        bits=bits,
        within=within,
        slab_rows=0,
        prefix_bits=prefix_bits,
        shuffle_bytes=float(copies * num * (CELL_BYTES + 8 * words)),
        core_s=PAIRS_JOBS_S + copies * num * (keys.query_ns + SHUFFLED_ROW_NS) / 1e9,
        worker_bytes=in_cell * (keys.table_bytes + 3.0 * (8 * words + 8)),
        num_rounds=3,
    )


@dataclass(frozen=True)
class RoundsPlan:
    """A plan for the search of a SimHash run on Spark, with predicted costs."""

    # Number of distinct documents, width of fingerprints, and radius
    num_documents: int
    bits: int
    within: int
    # Number of slabs, which are decided one after another
    num_slabs: int
    # Bytes shuffled into slabs (without texts of short documents), seconds of one core, memory of one Python worker
    shuffle_bytes: float
    core_s: float
    worker_bytes: float
    # Seconds during which only one worker is busy
    serial_s: float

    @property
    def warning(self) -> str | None:
        """Warning about a search that takes very long, otherwise None."""
        return _warning(self.num_documents, self.bits, self.within, self.core_s)

    @property
    def lines(self) -> tuple[str, ...]:
        """Description of the plan."""
        return (
            f"{self.num_documents:,} distinct fingerprints within {self.within} of {self.bits} bits: "
            f"{counted(self.num_slabs, 'slab')}, {self.shuffle_bytes / 1e9:,.2f} GB shuffled, "
            f"about {self.core_s:,.0f} core-seconds ({self.serial_s:,.0f} s on one worker), "
            f"{self.worker_bytes / 1e9:.2f} GB in each worker",
        )


def plan_rounds(num: int, bits: int, within: int, num_cores: int, *, one_round: bool = False) -> RoundsPlan:
    """Return the plan whose number of slabs gives the shortest run."""
    most = max(1, SLAB_BYTES // run_bytes(bits))
    fewest = max(1, -(-num // most))
    best: tuple[float, RoundsPlan] | None = None
    # Try increasing numbers of slabs until the overhead of rounds alone exceeds the best time.
    num_slabs = fewest
    while True:
        rows = max(1, -(-num // num_slabs))
        keys = best_keys(rows, bits, within)
        crossing = num * (num_slabs - 1) / 2 * keys.query_ns / 1e9
        inside = num * keys.query_ns * DECIDING / 1e9
        serial_s = num_slabs * ROUND_S + (0.0 if one_round else inside)
        seconds = serial_s + (crossing + (inside if one_round else 0.0)) / num_cores
        plan = RoundsPlan(
            num_documents=num,
            bits=bits,
            within=within,
            num_slabs=num_slabs,
            shuffle_bytes=float(num * (24 + 8 * -(-bits // 64))),
            core_s=crossing + inside,
            worker_bytes=float(rows * run_bytes(bits)),
            serial_s=serial_s,
        )
        if best is None or seconds < best[0]:
            best = seconds, plan
        if num_slabs * ROUND_S > best[0] or num_slabs >= max(fewest, num):
            return best[1]
        num_slabs = -(-num_slabs * 5 // 4)


# Memory of a Python worker with its libraries, one Arrow batch, and a cell of pairs with their texts.
_WORKER_BYTES = 500_000_000.0


@dataclass(frozen=True)
class StagePlan:
    """Predicted costs of one stage of a run, for all workers together."""

    name: str
    # Bytes sent between machines, and bytes written to the checkpoint directory
    shuffle_bytes: float
    stored_bytes: float
    core_s: float
    # Memory of one Python worker
    worker_bytes: float


@dataclass(frozen=True)
class RunPlan:
    """Predicted costs of a run on Spark, by stage."""

    # Number of documents, and of cores that run tasks
    num_documents: int
    workers: int
    document_bytes: float
    stages: tuple[StagePlan, ...]
    # Seconds during which only one worker decides (SimHash)
    serial_s: float
    # Warning about a run that takes very long
    warning: str | None

    @property
    def core_s(self) -> float:
        """Seconds of one core."""
        return sum(stage.core_s for stage in self.stages)

    @property
    def hours(self) -> float:
        """Predicted hours if all workers are busy."""
        return (self.core_s / self.workers + self.serial_s) / 3600

    def to_dict(self) -> dict[str, object]:
        """Return the plan as JSON values."""
        return asdict(self) | {"core_s": self.core_s, "hours": self.hours}


def plan_run(recipe: Recipe, num: int, workers: int, document_bytes: float) -> RunPlan:
    """Return the predicted costs of a run on Spark.

    Extrapolated from 100,000 documents of 2.4 kB on two cores.
    """
    method = recipe.sketch
    if not isinstance(method, MinHash | SimHash | Exact):
        raise InvalidParameter(
            "method", f"{recipe.method} requires all documents on one machine; use minhash, simhash or exact"
        )
    text = num * document_bytes
    rows = float(num * (SHUFFLED_ROW_BYTES + sketch_bytes(recipe)))
    stages = [
        StagePlan(
            "read and sketch",
            text + num * SHUFFLED_ROW_BYTES,
            text * STORED_SHARE + rows,
            text * SKETCHING_NS / 1e9,
            _WORKER_BYTES,
        ),
        StagePlan("collapse", rows, rows, num * ORDERING_NS / 1e9, _WORKER_BYTES),
    ]
    serial_s, warning = 0.0, None
    verified = StagePlan("verify", CANDIDATES * text, num * 8.0, num * VERIFYING_NS / 1e9, _WORKER_BYTES)
    decided = StagePlan("decide", num * 64.0 * CANDIDATES, num * 8.0, num * DECIDED_NS / 1e9, _WORKER_BYTES)
    if isinstance(method, MinHash):
        bands, _ = method.banding
        sent = float(num * bands * BAND_BYTES)
        stages += [StagePlan("bands", sent, num * 8.0, num * bands * BAND_NS / 1e9, _WORKER_BYTES), verified, decided]
    elif isinstance(method, SimHash):
        search = plan_rounds(num, method.bits, method.radius, workers, one_round=not recipe.is_distance_only)
        stages.append(
            StagePlan("search slabs", search.shuffle_bytes, rows, search.core_s, _WORKER_BYTES + search.worker_bytes)
        )
        serial_s, warning = (search.serial_s if recipe.is_distance_only else 0.0), search.warning
        if not recipe.is_distance_only:
            stages += [verified, decided]
    return RunPlan(num, workers, document_bytes, tuple(stages), serial_s, warning)


def _warning(num: int, bits: int, within: int, core_s: float) -> str | None:
    if core_s < LONG_CORE_S:
        return None
    task = f"all pairs within {within} of {bits} bits among {num:,} fingerprints"
    hours = f"about {core_s / 3600:,.0f} core-hours"
    if core_s < IMPRACTICAL_CORE_S:
        return f"{task} take {hours}"
    return f"{task} are impractical: {hours}. Use a smaller radius, or method minhash"
