"""Write the pages on Hamming search from the results: a short table in the summary, all tables on a separate page.

Tables are written between two markers; the surrounding text is written by hand and left alone.
"""

import json
from pathlib import Path
from typing import Any

import hamming_plot
import hamming_rows
from hamming_rows import DATA, OURS
from rivals import table

MARK = "hamming"
RAW = "hamming-tables.md"
# Rows of the short table: queries on one core.
SHORT = (("1e6", 64), ("1e7", 64))
EXACT = Path(__file__).parent / "results" / "hamming_exact.json"
# How a figure is printed: label, divisor, format.
FIGURES = {
    "queries_per_s": ("queries/s", 1, "{:,.0f}"),
    "seconds": ("s", 1, "{:,.3g}"),
    "bytes_a_fingerprint": ("B per fingerprint", 1, "{:.2f}"),
    "peak_anonymous_bytes": ("GB of anonymous memory", 1e9, "{:.2f}"),
    "single_p50_us": ("us a single query, median", 1, "{:.1f}"),
    "single_p99_us": ("us a single query, 99th percentile", 1, "{:.1f}"),
    "open_s": ("s to open", 1, "{:.3f}"),
    "file_build_s": ("s to build", 1, "{:.0f}"),
    "peak_build_bytes": ("GB of anonymous memory to build it", 1e9, "{:.2f}"),
    "cold_p50_us": ("us a single query when nothing of the file is in memory, median", 1, "{:.0f}"),
    "cold_p99_us": ("us the same, 99th percentile", 1, "{:.0f}"),
    "recall_upper": ("recall of pairs at the radius, upper end of the interval of 95%", 1, "{:.4f}"),
}
# Rates from fewer queries than this show the number.
FEW_QUERIES = 1000
Row = dict[str, Any]


def figures_of(result: Row, row: hamming_rows.Row, tool: str, within: int) -> Row:
    """Return the figures of one cell; `not_run` if there are none."""
    entry = result["rows"].get(row.id, {}).get("tools", {}).get(tool, {})
    missing = "not measured yet" if within in row.radii_of(tool) else "-"
    return entry.get("within", {}).get(str(within), {"not_run": missing})


def say(figure: str, value: float) -> str:
    """Return a value with its unit."""
    label, unit, form = FIGURES[figure]
    return f"{form.format(value / unit)} {label}"


def cell(text: object) -> str:
    """Return text that fits a table cell."""
    return str(text).replace("|", "/").replace("\n", " ")


def summary(result: Row) -> str:
    """Return the table of our queries per second, the fastest exact search of another package, and goals reached."""
    lines = [
        _machine(result),
        "",
        "| fingerprints of 64 bits | data | k | likewise, queries/s | fastest exact other | queries/s | times |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in hamming_rows.rows():
        if row.measure != "queries" or row.threads != 1 or (hamming_rows.short(row.n), row.bits) not in SHORT:
            continue
        for within in row.within:
            ours = figures_of(result, row, OURS, within)
            others = {tool: figures_of(result, row, tool, within) for tool in row.tools if tool != OURS}
            exact = {
                tool: found
                for tool, found in others.items()
                if "queries_per_s" in found and _exactness(found).startswith("exact")
            }
            if "queries_per_s" not in ours or not exact:
                continue
            best = max(exact, key=lambda tool: exact[tool]["queries_per_s"])
            times = ours["queries_per_s"] / exact[best]["queries_per_s"]
            lines.append(
                f"| {hamming_rows.short(row.n)} | {DATA[row.data]} | {within} | {rate(ours)} "
                f"| {_name(result, row, best)} | {rate(exact[best])} | {times:,.0f} |"
            )
    verdicts = [line for line in goals(result) if line.endswith(("| yes |", "| **no** |"))]
    reached = sum(line.endswith("| yes |") for line in verdicts)
    return "\n".join([*lines, "", f"{reached} of {len(verdicts)} goals are reached."]) + "\n"


def _machine(result: Row) -> str:
    facts = result["machine"]
    return (
        f"{facts['cpu']}, {facts['num_cores']} cores, {facts['isa']}, {facts['memory']}, Python {facts['python']}, "
        f"{facts['date']}."
    )


def goals(result: Row) -> list[str]:
    """Return every goal of the design, with the figure measured for it."""
    lines = ["## Goals", "", "| work | data | k | goal | measured | reached |", "|---|---|---|---|---|---|"]
    for row in hamming_rows.rows():
        for within, wanted in row.goals.items():
            found = figures_of(result, row, OURS, within)
            for goal in wanted:
                head = f"| {row.title} | {DATA[row.data]} | {within} | {goal.relation} {say(goal.figure, goal.value)} |"
                if goal.figure not in found:
                    lines.append(f"{head} {cell(found.get('not_run', 'not measured'))} | |")
                    continue
                value = found[goal.figure]
                verdict = "yes" if goal.is_met(value) else "**no**"
                lines.append(f"{head} {say(goal.figure, value)} | {verdict} |")
    return lines


def _name(result: Row, row: hamming_rows.Row, tool: str) -> str:
    version = result["rows"].get(row.id, {}).get("tools", {}).get(tool, {}).get("version")
    return f"{tool} ({version})" if version else tool


def _exactness(found: Row) -> str:
    if "num_true" not in found:
        return ""
    wrong = found["missed"] + found["extra"] + found.get("known_missed", 0) + found.get("too_far", 0)
    if not wrong:
        return f"exact ({found['num_true'] + found.get('num_known', 0):,})"
    said = f"recall {found['recall']:.4f} of {found['num_true']:,}, {found['extra']:,} extra"
    if "recall_lower" in found:
        low, high = found["recall_lower"], found["recall_upper"]
        said += f"; {found['recall_at_radius']:.4f} of {found['num_planted']:,} at the radius ({low:.4f} to {high:.4f})"
    return said


def rate(found: Row) -> str:
    """Return queries per second; with their number if few were asked, since the figure is then an extrapolation."""
    if "queries_per_s" not in found:
        return cell(found["not_run"])
    few = f" ({found['num_queries']:,} asked)" if found["num_queries"] < FEW_QUERIES else ""
    value = found["queries_per_s"]
    return f"{value:,.0f}{few}" if value >= 10 else f"{value:.2g}{few}"


def query_tables(result: Row) -> list[str]:
    """Return a table of queries per second and share found, for each size and data."""
    lines = ["## Queries, one core"]
    for row in hamming_rows.rows():
        if row.measure != "queries" or row.threads != 1:
            continue
        head = " | ".join(f"k={within}" for within in row.within)
        lines += [
            "",
            f"**{hamming_rows.short(row.n)} fingerprints of {row.bits} bits, {DATA[row.data]}: queries per second**",
            "",
        ]
        lines += [f"| tool | {head} | build s | B per fingerprint | against brute force |"]
        lines += ["|---" * (len(row.within) + 4) + "|"]
        for tool in row.tools:
            cells = [figures_of(result, row, tool, within) for within in row.within]
            done = [found for found in cells if "queries_per_s" in found]
            if not done:
                lines.append(f"| {tool} | {cell(cells[0].get('not_run'))}" + " |" * (len(row.within) + 3))
                continue
            rates = " | ".join(rate(found) for found in cells)
            if not all(_exactness(found).startswith("exact") for found in done):
                judged = ", ".join(
                    f"k={k}: {found['recall']:.3f}" for k, found in zip(row.within, cells, strict=True) if found in done
                )
                judged = f"recall {judged}"
            else:
                judged = f"exact ({sum(found['num_true'] + found['num_known'] for found in done):,})"
            build = max(found["build_s"] for found in done)
            size = max(found["bytes_a_fingerprint"] for found in done)
            lines.append(f"| {_name(result, row, tool)} | {rates} | {build:.2f} | {size:.1f} | {judged} |")
    return lines


def work_table(result: Row, measures: tuple[str, ...], title: str) -> list[str]:
    """Return a table of rows measured in seconds, or with a few figures of a large set."""
    lines = [
        f"## {title}",
        "",
        "| work | data | tool | result | peak GB | against brute force |",
        "|---|---|---|---|---|---|",
    ]
    for row in hamming_rows.rows():
        if row.measure not in measures or row.threads == 1:
            continue
        for tool in row.tools:
            for within in row.within:
                found = figures_of(result, row, tool, within)
                head = f"| {row.title} (k={within}) | {DATA[row.data]} | {_name(result, row, tool)} |"
                if "not_run" in found:
                    lines.append(f"{head} {cell(found['not_run'])} | | |")
                    continue
                said = [say(figure, found[figure]) for figure in FIGURES if figure in found and _shown(row, figure)]
                if "num_pairs" in found:
                    said.append(f"{found['num_pairs']:,} pairs")
                if "pairs_per_s" in found:
                    said.append(f"{found['pairs_per_s']:.1e} compared pairs/s")
                peak = f"{found['peak_anonymous_bytes'] / 1e9:.2f}"
                lines.append(f"{head} {'; '.join(said)} | {peak} | {_exactness(found)} |")
    return lines


def _shown(row: hamming_rows.Row, figure: str) -> bool:
    if figure in ("peak_anonymous_bytes", "recall_upper"):
        return False
    # Seconds of a pass are meaningful only if the number of queries was given.
    return figure != "seconds" or row.measure != "queries" or row.num_queries is not None


def predictions(result: Row) -> list[str]:
    """Return the planner's predictions and the measurements, one core."""
    lines = [
        "## Predicted and measured", "",
        "| fingerprints | data | k | plan | predicted us | measured us | measured / predicted |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in hamming_rows.rows():
        for within in row.within:
            found = figures_of(result, row, OURS, within)
            if "predicted_us" in found and "queries_per_s" in found:
                measured = row.threads * 1e6 / found["queries_per_s"]
                ratio = measured / found["predicted_us"]
                shown = f"{ratio:.2f}" if 0.5 <= ratio <= 2 else f"**{ratio:.2f}**"
                lines.append(
                    f"| {hamming_rows.short(row.n)} | {DATA[row.data]} | {within} | {cell(found.get('plan', ''))} "
                    f"| {found['predicted_us']:.2f} | {measured:.2f} | {shown} |"
                )
    return lines if len(lines) > 4 else []


def exactness() -> list[str]:
    """Return the table of hamming_exact.py."""
    if not EXACT.exists():
        return []
    found = json.loads(EXACT.read_text(encoding="utf-8"))
    lines = [
        "## Exactness",
        "",
        "| function | queries | settings | true matches | missed | extra |",
        "|---|---|---|---|---|---|",
    ]
    for door, row in found["doors"].items():
        if "not_run" in row:
            lines.append(f"| {door} | {cell(row['not_run'])} | | | | |")
        else:
            lines.append(
                f"| {door} | {row['num_queries']:,} | {row['num_settings']} | {row['num_true']:,} "
                f"| {row['missed']} | {row['extra']} |"
            )
            lines += [f"| {door} | | | {cell(reason)} | | |" for reason in row["refused"][:5]]
    return [*lines, "", found["what"]]


def settings(result: Row) -> list[str]:
    """Return how each tool was used."""
    said = {
        tool: entry["settings"]
        for row in result["rows"].values()
        for tool, entry in row["tools"].items()
        if entry.get("settings")
    }
    return ["## Settings", "", *(f"- {tool}: `{text}`" for tool, text in said.items())] if said else []


def _either(numbers: list[int]) -> str:
    *others, last = map(str, numbers or [5])
    return f"{', '.join(others)} or {last}" if others else last


def markdown(result: Row) -> str:
    """Return all tables, with the machine above them."""
    repeats = sorted({entry["repeats"] for row in result["rows"].values() for entry in row["tools"].values()})
    lines = [
        _machine(result),
        f"Medians of {_either(repeats)} runs; rows with 1e9 were run once.",
        "",
    ]
    parts = [
        goals(result), query_tables(result),
        work_table(result, ("build", "pairs", "written"), "Building, and all pairs"),
        work_table(result, ("queries", "stream", "mapped"), "Large sets"), predictions(result),
        hamming_plot.lines(result), exactness(), settings(result),
    ]  # fmt: skip
    for part in parts:
        lines += [*part, ""] if part else []
    return "\n".join(lines)


def write(result: Row, page: Path, *, with_plot: bool = True) -> None:
    """Write the short table into the summary, and all tables and the plot into the page next to it."""
    if with_plot:
        hamming_plot.draw(result, page.parent)
    table.insert(page, MARK, summary(result))
    table.insert(page.with_name(RAW), MARK, markdown(result))
