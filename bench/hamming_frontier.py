"""The planner's predictions: the frontier of plans for the plot, and the query time of each row."""

import json
from pathlib import Path
from typing import Any

import likewise
from hamming_rows import Row
from rivals.hamming_protocol import NotDone

FAMILIES = {
    "scan": "scan", "probed neighbors": "all neighbors probed", "stored neighbors": "all neighbors stored",
}  # fmt: skip


# Beyond these the index adapts to the bits of the data (crates/hamming/src/index/set/choice.rs).
SKEW, DEPENDENCE = 0.1, 0.0005


def _words(search: Any) -> list[tuple[int, int]]:
    return [(key.mask, key.radius) for key in search.keys]


def costs(work: Path) -> Any:
    """Return the costs of this machine, measured once per work folder."""
    try:
        from likewise.hamming.costs import Costs
    except ImportError as reason:
        raise NotDone("this version has no planner of Hamming search") from reason
    path = work / "costs.json"
    try:
        return Costs.read(path)
    except (OSError, likewise.LikewiseError):  # none yet, or those of another version
        work.mkdir(parents=True, exist_ok=True)
        measured = Costs.measure()
        measured.write(path)
        return measured


def predicted(row: Row, within: int, work: Path, codes: Any = None, keys: list | None = None) -> dict[str, object]:
    """Return microseconds per query, batched on one core, for the plan that has `keys`, or for the chosen one."""
    from likewise.hamming.plan import bit_statistics, plan_hamming

    memory = None if row.bytes_a_fingerprint is None else int(row.bytes_a_fingerprint * row.n)
    known: dict[str, Any] = {}
    if codes is not None:
        shares, dependence = bit_statistics(codes[:: max(1, len(codes) // 10_000)])
        if max(abs(shares - 0.5)) > SKEW or dependence > DEPENDENCE:
            known = {"bit_frequencies": shares, "bit_dependence": dependence}
    # By this machine's costs; if these exclude the plan, by the built-in ones, which the index uses.
    searches = []
    for used in (costs(work), None):
        plan = plan_hamming(
            row.n, bits=row.bits, within=within, memory_bytes=memory, costs=used, with_ids=row.with_rows, **known
        )
        wanted = None if keys is None else sorted(keys)
        searches += [s for s in plan.searches if wanted is None or sorted(_words(s)) == wanted]
        if wanted is None:
            searches = [plan.chosen]
    search = searches[0] if searches else None
    if search is None:
        return {}
    return {
        "plan": search.name,
        "predicted_us": search.batch_us,
        "predicted_single_us": search.single_us,
        "predicted_bytes_a_fingerprint": search.num_bytes / row.n,
    }


def frontier(row: Row, make: object, codes: Any) -> dict[int, dict[str, object]]:
    """Return every plan of the frontier and every search of the literature, in the form of the plot."""
    from hamming_measures import say

    measured = costs(codes.work)
    from likewise.hamming.plan import plan_hamming

    made: dict[int, dict[str, object]] = {}
    for within in row.within:
        plan = plan_hamming(row.n, bits=row.bits, within=within, costs=measured)
        made[within] = {
            "plans": [
                {
                    "name": FAMILIES.get(search.family, search.name),
                    "bytes_a_fingerprint": search.num_bytes / row.n,
                    "predicted_us": search.batch_us,
                    "is_historical": search.is_historical,
                    "is_on_frontier": search.is_on_frontier,
                }
                for search in plan.searches
            ],
            "costs": json.loads((codes.work / "costs.json").read_text(encoding="utf-8")),
        }
        say(row, make(), within, made[within])
    return made
