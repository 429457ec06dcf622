"""What the documentation shows: its Python runs and comes to what it says, its commands do what they say."""

import ast
import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from tests.command import jsonl
from tests.house.pages import blocks, pages

TEXTS = [
    "one fine day in may we went to the river and came back late",
    "one fine day in may we went to the river and came home late",
    "something else entirely, of which nobody has heard a word so far",
]
# What a page takes as given: each is a page's own, so that a name one page forgets to make is not found by accident.
GIVEN = {
    "docs/concepts/families.md": lambda: {"vectors": np.eye(64), "queries": np.eye(64)[:2] + 0.01},
    "docs/concepts/plans.md": lambda: {
        "fingerprints": np.arange(50, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15),
        "fingerprint": 0x9E3779B97F4A7C15,
    },
}


TUTORIAL = "docs/tutorial.md"
PYTHON_PAGES = [page for page in pages() if page != TUTORIAL and blocks(page, "python", marked=False)]
COMMAND_PAGES = [
    page
    for page in pages()
    if page != TUTORIAL and any(blocks(page, language, marked=False) for language in ("console", "bash"))
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the pages name, as the current one."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{text} {i}" for i in range(20) for text in TEXTS]
    for name in ("articles", "archive", "today", "news", "notes", "pages"):
        Path(f"{name}.jsonl").write_bytes(jsonl(rows))
    for name in ("a", "b"):
        Path(f"{name}.txt").write_text(TEXTS[name == "b"])
    sketches = likewise.sketch(TEXTS, likewise.Recipe.simhash(within=3))
    for name in ("today.parquet", "archive.parquet", "archive.npy"):
        sketches.write(name)
    return tmp_path


def evaluated(source, names):
    """Run a block; an expression whose comment is a value must be it, to the digits that the page shows."""
    for statement in ast.parse(source).body:
        code = ast.get_source_segment(source, statement)
        if not isinstance(statement, ast.Expr):
            exec(compile(code, "page", "exec"), names)
            continue
        value = eval(compile(code, "page", "eval"), names)
        comment = source.splitlines()[statement.end_lineno - 1][statement.end_col_offset :].partition("#")[2].strip()
        try:
            shown = ast.literal_eval(comment)
        except (SyntaxError, ValueError):
            continue
        places = max([len(digits) for digits in re.findall(r"\.(\d+)", comment)], default=0)
        assert value == pytest.approx(shown, abs=0.5 * 10**-places + 1e-12), code


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_python_runs(page, folder):
    (folder / "out").mkdir()
    pq.write_table(likewise.dedup(TEXTS, likewise.Recipe.minhash(0.6)).removed, "out/removed.parquet")
    names = GIVEN.get(page, dict)()
    for block in blocks(page, "python", marked=False):
        evaluated(block, names)


def test_the_first_example_keeps_what_it_says():
    (block,) = blocks("README.md", "python")
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    assert names["result"].kept.tolist() == [True, False, True]


def test_a_value_that_a_page_gets_wrong_is_seen():
    evaluated("x = 1\nx / 3  # 0.3333", {})
    with pytest.raises(AssertionError):
        evaluated("x = 1\nx / 3  # 0.3334", {})


def modules():
    """Every module of the package; those of extras only where their packages are."""
    for module in pkgutil.walk_packages(likewise.__path__, "likewise."):
        if not module.name.endswith("__main__"):
            yield module.name


@pytest.mark.parametrize("name", ["likewise", *modules()])
def test_examples_of_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))
    names = {"likewise": likewise, "np": np, **vars(module)}
    found = doctest.testmod(module, globs=names, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert not found.failed
