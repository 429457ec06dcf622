"""What type checkers and completion show for the public names."""

import importlib.util
import json
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import likewise

# Each line with the checker's error: "" for none.
LINES = [
    ("import likewise", ""),
    ("from likewise import hamming, measures", ""),
    ("result = likewise.dedup(['a'], threshold=0.8, nulls='drop', text_field=['a', 'b'], progress=True)", ""),
    ("result = likewise.dedup(['a'], 'strict', keep='longest')", ""),
    ("table = likewise.pairs(['a'], method='simhash', within=3)", ""),
    # A text in place of a recipe may also name the column of the text.
    ("likewise.dedup(['a'], 'no such preset')", ""),
    ("likewise.dedup(['a'], nulls='never')", "nulls"),
    ("likewise.dedup(['a'], method='no such method')", "method"),
    ("likewise.dedup(['a'], measure='no such measure')", "measure"),
    ("likewise.dedup(['a'], treshold=0.8)", "treshold"),
    ("likewise.Index('path', store='no such store')", "store"),
    ("found: float = measures.similarity('a', 'b', 'jaccard')", ""),
    ("measures.similarity('a', 'b', 'no such measure')", "measure"),
    ("number: int = likewise.dedup", "function"),
]


def errors_of(reported, path):
    return {int(line.removeprefix(f"{path}:").partition(":")[0]) for line in reported if line.startswith(f"{path}:")}


@pytest.fixture
def snippet(tmp_path):
    path = tmp_path / "snippet.py"
    path.write_text("".join(f"{line}\n" for line, _ in LINES))
    return path


EXPECTED = {number for number, (_, wrong) in enumerate(LINES, 1) if wrong}


@pytest.mark.slow
def test_mypy_agrees(snippet):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--ignore-missing-imports", "--no-incremental"]
    done = subprocess.run([*command, str(snippet)], capture_output=True, text=True, cwd=snippet.parent, check=False)
    lines = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert errors_of(lines, str(snippet)) == EXPECTED or errors_of(lines, snippet.name) == EXPECTED, done.stdout
    assert "-> Deduplication" in done.stdout


@pytest.mark.slow
def test_pyright_agrees(snippet):
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    command = [sys.executable, "-m", "basedpyright", "--level", "error", "--pythonpath", sys.executable, "--outputjson"]
    (snippet.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    done = subprocess.run([*command, str(snippet)], capture_output=True, text=True, cwd=snippet.parent, check=False)
    found = [one for one in json.loads(done.stdout)["generalDiagnostics"] if Path(one["file"]) == snippet]
    assert {one["range"]["start"]["line"] + 1 for one in found} == EXPECTED, done.stdout


def test_completion_lists_public_names_alone():
    extras = {"redis": "redis", "spark": "pyspark"}
    installed = {name for name, package in extras.items() if importlib.util.find_spec(package) is not None}
    public = {*likewise.__all__, "hamming", "measures", *installed}
    assert set(dir(likewise)) == public
    importlib.import_module("likewise.batch.texts")
    assert set(dir(likewise)) == public
    for module in (likewise.hamming, likewise.measures):
        assert dir(module) == sorted(module.__all__)
        assert all(getattr(module, name) is not None for name in dir(module))
    for name in likewise.__all__:
        assert getattr(likewise, name) is not None


def test_help_lists_what_there_is_and_names_no_file_that_a_wheel_lacks():
    # Loads each name that dir() lists.
    told = pydoc.render_doc(likewise, renderer=pydoc.plaintext)
    for name in (*likewise.__all__, "hamming", "measures", "redis", "spark"):
        assert f"`{name}`" in likewise.__doc__ or f"likewise.{name}" in likewise.__doc__, name
    assert "docs/" not in told


def test_importing_it_loads_no_module_of_its_own():
    code = "import sys, likewise; dir(likewise); print([name for name in sys.modules if name.startswith('likewise.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
