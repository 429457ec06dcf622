"""Write the page that compares the methods: tables between two markers, and the plot; its text is written by hand."""

from pathlib import Path
from typing import Any

BEGIN = "<!-- tables: begin (written by bench/methods.py) -->"
END = "<!-- tables: end -->"
PLOT = "methods.svg"
COLORS = ("#1f5fa8", "#c8501e", "#3a8f4d", "#8a4fa3", "#777777")
MARKS = ("o", "s", "^", "D")

Row = dict[str, Any]


def write(results: Row, page: Path) -> None:
    """Write the tables between their markers on the page."""
    text = page.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    page.write_text("\n\n".join([before, *tables(results), after.rstrip()]) + "\n", encoding="utf-8")


def tables(results: Row) -> list[str]:
    """Return every table, with its heading."""
    facts = results["facts"]
    parts = [f"One thread of {facts['cpu']}, {facts['isa']}, {facts['date'][:10]}."]
    parts.append(f"![F1 against bytes per document, a mark per method and set]({PLOT})")
    for name, entry in results["sets"].items():
        parts += [f"## {name}", _sizes(entry), _table(entry, ("precision", "recall", "f1"))]
    if "large" in results:
        entry = results["large"]
        note = (
            "Precision and recall are relative to the exact join, which finds every pair with a Jaccard similarity of "
            "0.55 or more."
        )
        parts += ["## 10,000 English documents", f"{_sizes(entry)} {note}"]
        parts.append(_table(entry, ("precision", "recall"), with_pairs=True))
    if results["skipped"]:
        parts.append(f"Not measured, since they are not at ../shared/data: {', '.join(results['skipped'])}.")
    return parts


def _sizes(entry: Row) -> str:
    return f"{entry['num_documents']:,} documents, {entry['num_bytes'] / 1e6:.1f} MB."


def _table(entry: Row, figures: tuple[str, ...], *, with_pairs: bool = False) -> str:
    pairs = ["pairs"] if with_pairs else []
    rows = [["method", "bytes per document", "seconds", *pairs, *(figure.replace("f1", "F1") for figure in figures)]]
    rows.append(["---"] * len(rows[0]))
    for name, row in entry["methods"].items():
        count = [f"{row['num_pairs']:,}"] if with_pairs else []
        shown = [f"{row[figure]:.3f}" for figure in figures]
        rows.append([name, f"{row['bytes_a_document']:,.0f}", f"{row['seconds']:.3f}", *count, *shown])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def draw(results: Row, folder: Path) -> None:
    """Write the plot: bytes per document across, F1 up, a color per method, a mark per set."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "likewise"  # the same figures give the same bytes
    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    for (name, entry), mark in zip(results["sets"].items(), MARKS, strict=False):
        for (method, row), color in zip(entry["methods"].items(), COLORS, strict=False):
            axes.plot(row["bytes_a_document"], row["f1"], mark, color=color, label=method if mark == MARKS[0] else None)
        axes.plot([], [], mark, color="black", markerfacecolor="none", label=name)
    axes.set_xscale("log")
    axes.set_xlabel("bytes per document")
    axes.set_ylabel("F1, defaults untouched")
    axes.grid(visible=True, which="major", linewidth=0.3)
    axes.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(folder / PLOT, metadata={"Date": None})
    pyplot.close(figure)
