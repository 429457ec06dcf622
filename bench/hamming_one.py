"""Measure one row with one tool in this process and print its figures as the last line, for hamming.py.

hamming_one.py ROW TOOL RADII WORK REPEATS
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import hamming_frontier
import hamming_mapped
import hamming_measures
import hamming_rows
from hamming_data import Codes
from rivals import hamming_registry
from rivals.hamming_protocol import NotDone, Searcher

MEASURES = {
    "queries": hamming_measures.queries,
    "build": hamming_measures.build,
    "pairs": hamming_measures.pairs,
    "written": hamming_measures.written,
    "stream": hamming_measures.stream,
    "mapped": hamming_mapped.mapped,
    "frontier": hamming_frontier.frontier,
}


def maker(tool: str, row: hamming_rows.Row) -> Callable[[], Searcher]:
    """Return a factory of searchers of that name."""
    if tool != hamming_rows.OURS:
        return hamming_registry.find(tool)
    from hamming_ours import Likewise

    memory = None if row.bytes_a_fingerprint is None else int(row.bytes_a_fingerprint * row.n)
    return lambda: Likewise(memory_bytes=memory, with_rows=row.with_rows)


def main() -> None:
    """Measure the row, and print its figures."""
    row_id, tool, radii, work, repeats = sys.argv[1:]
    row = hamming_rows.find(row_id)
    row = replace(row, repeats=min(row.repeats, int(repeats)), within=tuple(map(int, radii.split(","))))
    make = maker(tool, row)
    searcher = make()
    result: dict[str, object] = {}
    if row.n > searcher.largest:
        result["not_run"] = f"{row.n:.0e} is too many for it: {searcher.why_not_larger}"
    else:
        try:
            found = MEASURES[row.measure](row, make, Codes(row.data, row.bits, work=Path(work)))
            result["within"] = {str(within): figures for within, figures in found.items()}
        except NotDone as reason:
            result["not_run"] = str(reason)
        except ModuleNotFoundError as reason:
            result["not_run"] = f"not installed: {reason}"
    print(json.dumps(result))


if __name__ == "__main__":
    main()
