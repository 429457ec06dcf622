"""Write the tables of docs/benchmarks/index.md between two markers, from the results; other text is left alone."""

from pathlib import Path
from typing import Any

import growth_plot
from rivals import table

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "index.md"
PLOT = PAGE.with_name("index-growth.svg")
MARK = "index"
GROWN = "{kind}-10000000"
KINDS = ("uniform", "real")
# Goals: description, path of the figure, relation, value, unit.
GOALS = [
    (
        "durable batches of 1,000 fingerprints, 1e7 held",
        ("grow", GROWN, "documents_per_s"),
        ">=",
        200_000,
        "/s",
    ),
    ("durable batches of 1,000 texts of 2.4 kB", ("texts", "{kind}", "documents_per_s"), ">=", 40_000, "/s"),
    ("one document, no sync, median", ("single", "{kind}", "check_and_add interval:1000s", "p50_us"), "<", 30, "us"),
    ("the same, 99th percentile", ("single", "{kind}", "check_and_add interval:1000s", "p99_us"), "<", 1_000, "us"),
    (
        "one document, synced, 99th percentile",
        ("single", "{kind}", "check_and_add commit", "p99_us"),
        "<",
        20_000,
        "us",
    ),
    ("check in batches of 1,000, 1e7 held", ("grow", GROWN, "checks_per_s"), ">=", 300_000, "/s"),
    ("one check, 99th percentile", ("single", "{kind}", "check", "p99_us"), "<", 50, "us"),
    ("open after a clean stop", ("open", "{kind}", "after_close_s"), "<", 0.5, "s"),
    ("open after a kill", ("open", "{kind}", "after_kill_s"), "<", 2.0, "s"),
    ("anonymous memory per document", ("memory", "{kind}", "anonymous_bytes_a_document"), "<=", 24, "B"),
    ("disk per document, ids of 32 characters", ("memory", "{kind}", "disk_bytes_a_document"), "<=", 72, "B"),
]


def found(results: dict[str, Any], path: tuple[str, ...]) -> float | None:
    """Return the figure at a path, None if it was not measured."""
    at: Any = results["steps"]
    for name in path:
        at = at.get(name, {}) if isinstance(at, dict) else {}
    return at if isinstance(at, int | float) else None


def said(value: float, unit: str) -> str:
    """Return a value with its unit."""
    return f"{value:,.0f}{unit}" if value >= 100 else f"{value:,.3g} {unit}"


def _cell(value: float | None, relation: str, goal: float, unit: str) -> str:
    """Return the measured value, in bold if it misses the goal."""
    if value is None:
        return "not measured"
    reached = value >= goal if relation == ">=" else value <= goal
    return said(value, unit) if reached else f"**{said(value, unit)}**"


def markdown(results: dict[str, Any]) -> str:
    """Return all tables."""
    facts = results["machine"]
    lines = [
        f"{facts['cpu']}, {facts['num_cores']} cores, {facts['isa']}, Python {facts['python']}, {facts['date']}, "
        f"load average at the start {facts['load_average'][0]:.1f}."
    ]
    held = {kind: found(results, ("single", kind, "num_held")) or 0 for kind in KINDS}
    names = [f"{kind}, {number:,.0f} held" for kind, number in held.items()]
    lines += ["", f"| work | goal | {' | '.join(names)} |", f"|---|---|{'---|' * len(KINDS)}"]
    for words, path, relation, goal, unit in GOALS:
        paths = [tuple(name.format(kind=kind) for name in path) for kind in KINDS]
        cells = [_cell(found(results, path), relation, goal, unit) for path in paths]
        lines.append(f"| {words} | {relation} {said(goal, unit)} | {' | '.join(cells)} |")
    lines += ["", "**Growth** (fingerprints of 64 bits within 3, ids of 32 characters)", ""]
    lines += ["| data | held | added/s | batch p99 | checks/s | checks/s, half already present | disk per document |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for name, row in results["steps"].get("grow", {}).items():
        kind, held = name.split("-")
        cells = [f"{row['documents_per_s']:,.0f}", f"{row['batch']['p99_us'] / 1000:.1f} ms"]
        cells += [f"{row['checks_per_s']:,.0f}", f"{row['half_seen_checks_per_s']:,.0f}"]
        cells += [f"{row['disk_bytes_a_document']:.1f} B"]
        lines.append(f"| {kind} | {int(held):,} | {' | '.join(cells)} |")
    if "minhash" in results["steps"]:
        lines += ["", "**MinHash, 100,000 documents of 2.4 kB, features kept**", ""]
        lines += ["| threshold | added/s | disk per document |", "|---|---|---|"]
        for name, row in results["steps"]["minhash"].items():
            lines.append(f"| {name} | {row['documents_per_s']:,.0f} | {row['disk_bytes_a_document']:,.0f} B |")
    return "\n".join(lines) + "\n"


def write(results: dict[str, Any]) -> None:
    """Write the tables into the page."""
    table.insert(PAGE, MARK, markdown(results))


def plot(results: dict[str, Any]) -> None:
    """Plot the cost per document as the index grows."""
    looks = {
        "microseconds an addition,\ndurable batches of 1,000": lambda row: 1e6 / row["documents_per_s"],
        "microseconds a check,\nbatches of 1,000": lambda row: 1e6 / row["checks_per_s"],
        "bytes of disk per document": lambda row: row["disk_bytes_a_document"],
    }
    panels: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for name, value in looks.items():
        lines = panels.setdefault(name, {})
        for step, row in results["steps"]["grow"].items():
            kind, held = step.split("-")
            lines.setdefault(kind, []).append((int(held), value(row)))
    growth_plot.draw(PLOT, panels)
