"""The calls of docs/howto/notebooks.md in a notebook: each in long and short form, with the type of the result."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.structure.pages import blocks

PAGE = "docs/howto/notebooks.md"
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


def calls():
    """Yield the task of each row, the long call (None if it is not Python), the short call, and the type."""
    for line in Path(PAGE).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if len(cells) == 4 and cells[0] != "to":
            full, short, kind = (re.fullmatch(r"`([^`]*)`(.*)", cell) for cell in cells[1:])
            yield cells[0], None if full[2] else full[1], short[1], kind[1]


def notebook(cells):
    import nbformat

    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


def in_kernel(cells, folder, monkeypatch):
    """Run cells in a kernel of this Python, with a directory; return the notebook with their outputs."""
    made = notebook(cells)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("IPYTHONDIR", str(folder))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    resources = {"metadata": {"path": folder}}
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3", resources=resources).execute()
    return made


def of_stream(cell, name):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == name)


SAME = """
def same(a, b):
    if hasattr(a, "summary"):
        return a.kept.tolist() == b.kept.tolist() and a.removed.equals(b.removed)
    if hasattr(a, "doc_ids"):
        return a.recipe == b.recipe and (a.array == b.array).all()
    if isinstance(a, list) and isinstance(a[0], dict):
        return {round(pair["similarity"], 9) for pair in a} == {round(pair["similarity"], 9) for pair in b}
    return a.equals(b) if hasattr(a, "equals") else a == b
"""


def test_each_short_call_does_what_the_long_one_does(tmp_path, monkeypatch):
    rows = list(calls())
    assert len(rows) >= 11
    setup, *_ = blocks(PAGE, "python")
    cells = [setup, SAME]
    for _, full, short, _ in rows:
        lines = [f"short = {short}", "kind = type(short)"]
        lines += [f"full = {full}", "assert same(full, short)"] if full else []
        cells.append("\n".join([*lines, "print(f'{kind.__module__}.{kind.__qualname__}')"]))
    shown = ["result", "likewise.compare(first[0], second[0])", "likewise.sketch(texts, within=3)"]
    made = in_kernel([*cells, *shown], tmp_path, monkeypatch)
    for (task, _, _, kind), cell in zip(rows, made.cells[2:], strict=False):
        last = of_stream(cell, "stdout").splitlines()[-1]
        assert last == kind or last.endswith(f".{kind}"), (task, last)
    (bar,) = (cell for (task, *_), cell in zip(rows, made.cells[2:], strict=False) if task == "show a progress bar")
    # The line of HTML was displayed, and is empty at the end.
    assert [output.data["text/html"] for output in bar.outputs if output.output_type == "display_data"] == [""]
    for cell in made.cells[-len(shown) :]:
        (output,) = cell.outputs
        assert output.data["text/html"].startswith("<p><strong>")
