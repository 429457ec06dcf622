"""Plot the cost per document as a collection grows: line panels over the number of documents, as one small SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

COLORS = ("#1f5fa8", "#c8501e", "#3a8f4d")

# (documents, value), in any order.
Points = Sequence[tuple[int, float]]


def draw(path: Path, panels: Mapping[str, Mapping[str, Points]]) -> None:
    """Draw a panel for each name of a vertical axis, with a line for each series; all axes begin at 0."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "likewise"  # the same figures give the same bytes
    matplotlib.rcParams["svg.fonttype"] = "none"  # letters as text: a tenth of the size
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.2), squeeze=False)
    for axes, (name, lines) in zip(all_axes[0], panels.items(), strict=True):
        for (label, points), color in zip(lines.items(), COLORS, strict=False):
            across, up = zip(*sorted(points), strict=True)
            axes.plot(across, up, "o-", color=color, markersize=4, label=label)
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_ylim(0, 1.1 * max(value for points in lines.values() for _, value in points))
        axes.margins(x=0.1)
        axes.set_xlabel("documents")
        axes.set_ylabel(name)
        axes.grid(visible=True, linewidth=0.3)
    all_axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
