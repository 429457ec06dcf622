"""The planner's predictions: the frontier of plans for the plot, and the query time of each row."""

from typing import Any

from hamming_rows import Row

FAMILIES = {"scan": "scan", "probed neighbors": "all neighbors probed"}

# Beyond these the index adapts to the bits of the data (crates/hamming/src/index/set/choice.rs).
SKEW, DEPENDENCE = 0.1, 0.0005


def _words(search: Any) -> list[tuple[int, int]]:
    return [(key.mask, key.radius) for key in search.keys]


def predicted(row: Row, within: int, codes: Any = None, keys: list | None = None) -> dict[str, object]:
    """Return microseconds per query, batched on one core, for the plan that has `keys`, or for the chosen one."""
    from likewise.hamming.plan import bit_statistics, plan_hamming

    memory = None if row.bytes_a_fingerprint is None else int(row.bytes_a_fingerprint * row.n)
    known: dict[str, Any] = {}
    if codes is not None:
        shares, dependence = bit_statistics(codes[:: max(1, len(codes) // 10_000)])
        if max(abs(shares - 0.5)) > SKEW or dependence > DEPENDENCE:
            known = {"bit_frequencies": shares, "bit_dependence": dependence}
    plan = plan_hamming(row.n, bits=row.bits, within=within, memory_bytes=memory, with_ids=row.with_rows, **known)
    searches = [plan.chosen] if keys is None else [s for s in plan.searches if sorted(_words(s)) == sorted(keys)]
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
    """Return every plan of the frontier, in the form of the plot."""
    from hamming_measures import say
    from likewise.hamming.plan import plan_hamming

    made: dict[int, dict[str, object]] = {}
    for within in row.within:
        plan = plan_hamming(row.n, bits=row.bits, within=within)
        made[within] = {
            "plans": [
                {
                    "name": FAMILIES.get(search.family, search.name),
                    "bytes_a_fingerprint": search.num_bytes / row.n,
                    "predicted_us": search.batch_us,
                    "is_historical": False,
                    "is_on_frontier": True,
                }
                for search in plan.searches
            ],
        }
        say(row, make(), within, made[within])
    return made
