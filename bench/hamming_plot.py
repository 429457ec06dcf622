"""Plot the frontier of plans as SVG: bytes per fingerprint against microseconds per query, predicted and measured."""

from pathlib import Path
from typing import Any

import hamming_rows

NAME = "hamming-frontier.svg"
ROW = "frontier-1e8"
MEASURED = ("small-1e8-uniform", "fast-1e8-uniform")
INK, GRAY, ORANGE = "#1f5fa8", "#777777", "#c8501e"
# Storing every neighbor would need an axis of its own; it is omitted from the plot, not from the table.
MOST_BYTES = 1000


def _plans(result: dict[str, Any]) -> list[dict[str, Any]]:
    entry = result["rows"].get(ROW, {}).get("tools", {}).get(hamming_rows.OURS, {})
    within = str(hamming_rows.find(ROW).within[0])
    return entry.get("within", {}).get(within, {}).get("plans", [])


def _measured(result: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Return (tool, bytes per fingerprint, microseconds of one core) of the rows of this size."""
    points = []
    for row_id in MEASURED:
        row = hamming_rows.find(row_id)
        for tool, entry in result["rows"].get(row_id, {}).get("tools", {}).items():
            found = entry.get("within", {}).get(str(row.within[0]), {})
            if "queries_per_s" in found:
                points.append((tool, found["bytes_a_fingerprint"], row.threads * 1e6 / found["queries_per_s"]))
    return points


def lines(result: dict[str, Any]) -> list[str]:
    """Return the Markdown lines of the plot and its figures."""
    plans = _plans(result)
    if not plans:
        return []
    row = hamming_rows.find(ROW)
    title = f"{hamming_rows.short(row.n)} fingerprints of {row.bits} bits within {row.within[0]}"
    made = [
        "### The frontier of plans",
        "",
        f"![Bytes per fingerprint against microseconds per query: {title}]({NAME})",
        "",
        f"{title}, one core; bytes with the row of each fingerprint.", "",
        "| plan | B per fingerprint | predicted us | |", "|---|---|---|---|",
    ]  # fmt: skip
    for plan in plans:
        marks = ["frontier"] * plan["is_on_frontier"] + ["of the literature"] * plan["is_historical"]
        made.append(
            f"| {plan['name']} | {plan['bytes_a_fingerprint']:,.1f} | {plan['predicted_us']:,.2f} "
            f"| {', '.join(marks)} |"
        )
    made += [f"| measured: {tool} | {size:,.1f} | {us:,.2f} | |" for tool, size, us in _measured(result)]
    return made


def draw(result: dict[str, Any], folder: Path) -> None:
    """Write the SVG next to the page; nothing if there is no frontier."""
    plans = [plan for plan in _plans(result) if plan["bytes_a_fingerprint"] <= MOST_BYTES]
    if not plans:
        return
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "likewise"  # the same figures give the same bytes
    row = hamming_rows.find(ROW)
    figure, axes = pyplot.subplots(figsize=(8, 5))
    on = [plan for plan in plans if plan["is_on_frontier"]]
    axes.step(
        [plan["bytes_a_fingerprint"] for plan in on], [plan["predicted_us"] for plan in on], "o-", where="post",
        color=INK, markersize=5, label="frontier, predicted",
    )  # fmt: skip
    rest = [plan for plan in plans if not plan["is_on_frontier"]]
    axes.plot(
        [plan["bytes_a_fingerprint"] for plan in rest], [plan["predicted_us"] for plan in rest], "x", color=GRAY,
        label="searches of the literature, predicted",
    )  # fmt: skip
    for plan in plans:
        name = plan["name"].split(":")[0]
        point = (plan["bytes_a_fingerprint"], plan["predicted_us"])
        axes.annotate(name, point, fontsize=7, color="#444444", xytext=(5, 4), textcoords="offset points")
    for tool, size, us in _measured(result):
        axes.plot(size, us, "D", color=ORANGE, label="measured" if tool == hamming_rows.OURS else None)
        axes.annotate(tool, (size, us), fontsize=7, color=ORANGE, xytext=(5, -9), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.12)
    axes.set_xticks(ticks := [8, 10, 15, 20, 30, 50, 100], labels=map(str, ticks))
    axes.minorticks_off()
    axes.set_xlabel("bytes per fingerprint")
    axes.set_ylabel("microseconds per query, one core")
    axes.set_title(f"{hamming_rows.short(row.n)} fingerprints of {row.bits} bits, within {row.within[0]}")
    axes.grid(visible=True, which="major", linewidth=0.3)
    by_label = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.legend(by_label.values(), by_label.keys(), fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / NAME, metadata={"Date": None})
    pyplot.close(figure)
