"""Costs: the time of each step of a Hamming search on this machine, measured once and stored."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter

_FORMAT = "likewise costs 1"
# Working sets, from cache sizes to far beyond them. The sizes match the built-in costs so that both can be compared.
_SIZES = (32 << 10, 256 << 10, 2 << 20, 8 << 20, 32 << 20, 256 << 20)
_PASSES = 5
_NUM_READS = 20_000


def _number(value: object) -> float:
    """Return a number above zero, or raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"{value!r} is not a number above 0")
    return float(value)


@dataclass(frozen=True)
class Costs:
    """Costs of the steps of a Hamming search on one core, in nanoseconds.

    Parameters
    ----------
    memory : tuple of (float, float, float)
        Random reads by size of the working set, in ascending order: size in bytes, nanoseconds of a read that the next
        read depends on, nanoseconds of a read among many prefetched ones.
    query_ns : float
        Additional cost of a single query, compared with a query in a batch.
    table_ns, wide_ns : float
        Querying one table, and the additional cost for fingerprints of several words.
    bucket_ns, compare_ns : float
        Finding the bucket of a value near the query's, and comparing one word of a fingerprint in it, without the read.
    scan_ns, stream_ns : float
        Comparing one word of a fingerprint with one of many queries, and with a single query.
    sort_ns : float
        Sorting: one word of a fingerprint in one pass.
    """

    memory: tuple[tuple[float, float, float], ...]
    query_ns: float
    table_ns: float
    wide_ns: float
    bucket_ns: float
    compare_ns: float
    scan_ns: float
    stream_ns: float
    sort_ns: float

    @classmethod
    def default(cls) -> "Costs":
        """Return the built-in costs, measured on a server core of 2023."""
        memory, steps = _native.default_costs()
        return cls(memory=tuple(memory), **steps)

    @classmethod
    def measure(cls) -> "Costs":
        """Measure the costs of this machine in about a second, with 300 MB of memory, and return them.

        Notes
        -----
        Reads and scans are timed several times, in passes over all of them, and the minimum of each is used. A
        disturbance can only increase a time, and lasts longer than one measurement. The other costs are the built-in
        ones, scaled by the time of reads from the first-level cache.
        """
        default = cls.default()
        exercises = [_native.Exercise(size) for size in _SIZES]
        small, large = exercises[0], exercises[-1]
        waited, asked = [float("inf")] * len(_SIZES), [float("inf")] * len(_SIZES)
        scan_ns = stream_ns = float("inf")
        for seed in range(_PASSES):
            for place, exercise in enumerate(exercises):
                exercise.ask(exercise.num_bytes // 64, seed + _PASSES)  # warm: pages, caches, clock
                waited[place] = min(waited[place], _ns(partial(exercise.wait, _NUM_READS), seed) / _NUM_READS)
                asked[place] = min(asked[place], _ns(partial(exercise.ask, 5 * _NUM_READS), seed) / (5 * _NUM_READS))
            # The seed is also used as the radius, which does not affect the time.
            scan_ns = min(scan_ns, _ns(partial(small.scan, 4096), seed) / 4096 / (small.num_bytes // 8))
            stream_ns = min(stream_ns, _ns(large.stream, seed) / (large.num_bytes // 8))
        sizes = [float(exercise.num_bytes) for exercise in exercises]
        memory = list(zip(sizes, waited, asked, strict=True))
        # Beyond the measured sizes, costs grow in proportion to the built-in ones.
        known = {num_bytes: (latency_ns, overlapped_ns) for num_bytes, latency_ns, overlapped_ns in default.memory}
        largest = known[float(_SIZES[-1])]
        for num_bytes in sorted(num_bytes for num_bytes in known if num_bytes > _SIZES[-1]):
            latency_ns, overlapped_ns = known[num_bytes]
            memory.append((num_bytes, waited[-1] * latency_ns / largest[0], asked[-1] * overlapped_ns / largest[1]))
        speed = memory[0][1] / known[float(_SIZES[0])][0]
        steps = ("query_ns", "table_ns", "wide_ns", "bucket_ns", "compare_ns", "sort_ns")
        scaled = {name: getattr(default, name) * speed for name in steps}
        return cls(memory=tuple(memory), scan_ns=scan_ns, stream_ns=stream_ns, **scaled)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Costs":
        """Return costs from the output of :meth:`to_dict`.

        Raises
        ------
        InvalidParameter
            If a field is missing, unknown or not a number.
        """
        if not isinstance(values, Mapping):
            raise InvalidParameter("costs", f"{type(values).__name__} is not the output of to_dict")
        names = {field.name for field in fields(cls)}
        given = set(values) - {"format"}
        if values.get("format") != _FORMAT or given != names:
            raise InvalidParameter(
                "costs",
                f"not a cost table: format {values.get('format')!r}, differing fields {sorted(given ^ names)}",
            )
        try:
            memory = tuple(
                (_number(read["num_bytes"]), _number(read["latency_ns"]), _number(read["overlapped_ns"]))
                for read in values["memory"]
            )
            steps = {name: _number(values[name]) for name in names - {"memory"}}
        except (TypeError, KeyError, ValueError) as error:
            raise InvalidParameter("costs", f"a value has changed since it was written: {error}") from error
        if not memory:
            raise InvalidParameter("costs", "no memory size is given")
        return cls(memory=memory, **steps)

    @classmethod
    def read(cls, path: Path) -> "Costs":
        """Read a JSON file written by :meth:`write`. Raises InvalidInput if it is not JSON, or as :meth:`from_dict`."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"not JSON: {error}", str(path)) from error
        return cls.from_dict(values if isinstance(values, dict) else {})

    def to_dict(self) -> dict[str, object]:
        """Return the costs as JSON values."""
        steps = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "memory"}
        memory = [
            {"num_bytes": num_bytes, "latency_ns": latency_ns, "overlapped_ns": overlapped_ns}
            for num_bytes, latency_ns, overlapped_ns in self.memory
        ]
        return {"format": _FORMAT, "memory": memory, **steps}

    def write(self, path: Path) -> None:
        """Write the costs to a JSON file."""
        path.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8", newline="\n")

    def to_native(self) -> tuple[list[tuple[float, float, float]], dict[str, float]]:
        """Return the costs in the form that the native module accepts."""
        steps = {field.name: float(getattr(self, field.name)) for field in fields(self) if field.name != "memory"}
        return list(self.memory), steps


def _ns(work: Callable[[int], object], seed: int) -> float:
    """Return the nanoseconds of a run. Each seed reads different locations."""
    start = time.perf_counter_ns()
    work(seed)
    return float(time.perf_counter_ns() - start)
