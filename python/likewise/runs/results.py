"""Results in memory as a report, as charts and as pages."""

import atexit
import contextlib
import html
import importlib
import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from likewise.batch.texts import Deduplication
from likewise.errors import LikewiseError
from likewise.io.html import Html, element
from likewise.io.tables.columns import numbers_of
from likewise.recipe.recipe import Recipe
from likewise.runs.drawing.charts import bars, stylesheet
from likewise.runs.report.document import report as report_of_run
from likewise.runs.report.sections import Sizes, similarity_chart, size_chart, size_ranges, threshold_of
from likewise.runs.viewing.catalog import BINS


class Page(Html):
    """A page that a notebook shows in a frame of its own, so that its styles do not affect the notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        source = html.escape(self, quote=True)
        return (
            f'<iframe srcdoc="{source}" title="Likewise" sandbox style="width: 100%; height: 40em; border: 0"></iframe>'
        )


class Served:
    """A service of the pages of one result, in a process of its own; also a context."""

    def __init__(self, result: Deduplication, port: int) -> None:
        # Reports a missing extra.
        importlib.import_module("likewise.service.run")
        self._work = tempfile.TemporaryDirectory(prefix="likewise-")
        self.folder = result.save(Path(self._work.name) / "result")
        command = [sys.executable, "-m", "likewise", "serve", str(self.folder), "--port", str(port), "--quiet"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._drain: threading.Thread | None = None
        atexit.register(self.close)
        assert self._process.stderr is not None
        told, url = "", None
        while url is None and (line := self._process.stderr.readline()):
            told += line
            with contextlib.suppress(ValueError, KeyError, TypeError):
                url = json.loads(line)["url"]
        if url is None:
            self.close()
            raise LikewiseError(told.strip() or "the service did not start")
        self.url = str(url)
        # A full pipe would stop the service.
        self._drain = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._drain.start()

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Served at {self.url}>"

    def _repr_html_(self) -> str:
        return element("a", self.url, href=self.url, target="_blank", rel="noopener")

    def close(self) -> None:
        """Stop the service and delete its directory."""
        atexit.unregister(self.close)
        self._process.terminate()
        self._process.wait()
        if self._drain is not None:
            self._drain.join()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._work.cleanup()


def report(result: Deduplication) -> Page:
    """Return the report of a result."""
    with tempfile.TemporaryDirectory(prefix="likewise-") as name:
        return Page(report_of_run(result.save(Path(name) / "result")))


def serve(result: Deduplication, port: int) -> Served:
    """Start the service of a result."""
    return Served(result, port)


def plot(result: Deduplication) -> Any:
    """Return a figure of a result, or a page of charts without Matplotlib."""
    recipe, summary = Recipe.from_dict(result.summary["recipe"]), result.summary
    similarity = numbers_of(result.removed["similarity"], np.float64, 0)
    sizes = sorted(Counter(num + 1 for num in Counter(result.removed["kept_row"].to_pylist()).values()).items())
    shares = [("kept", summary["num_kept"]), ("removed", summary["num_removed"])]
    with contextlib.suppress(ImportError):
        from matplotlib.figure import Figure

        return _figure(Figure(figsize=(12, 3.5), layout="constrained"), similarity, sizes, shares, recipe)
    counts = np.bincount(np.clip((similarity * BINS).astype(np.int64), 0, BINS - 1), minlength=BINS).tolist()
    charts = [similarity_chart(counts, recipe), size_chart(sizes), bars(shares, label="Documents")]
    body = [element("section", chart, class_="card") for chart in charts]
    return Page(element("style", Html(stylesheet())) + element("main", body, class_="columns"))


def _figure(figure: Any, similarity: Any, sizes: Sizes, shares: list[tuple[str, int]], recipe: Recipe) -> Any:
    similar, groups, documents = figure.subplots(1, 3)
    similar.hist(similarity, bins=BINS, range=(min(similarity, default=0.0), 1.0))
    threshold = threshold_of(recipe)
    if threshold is not None:
        similar.axvline(threshold, color="tab:red", linestyle="--", label=f"threshold {threshold:.4g}")
        similar.legend()
    similar.set(title="Removals", xlabel=f"{recipe.measure} similarity to the kept document")
    ranges = [(name, count) for name, _, count in size_ranges(sizes)]
    for axes, rows, title in ((groups, ranges, "Groups by size"), (documents, shares, "Documents")):
        axes.bar_label(axes.barh([name for name, _ in rows], [number for _, number in rows]), fmt="{:,.0f}", padding=2)
        axes.invert_yaxis()
        axes.set(title=title)
    return figure
