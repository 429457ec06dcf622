"""Python examples of the documentation run and give the results shown, and its commands do what it states."""

import ast
import contextlib
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
from tests.structure.pages import blocks, pages
from tests.structure.test_rules import ROOT

TEXTS = [
    "one fine day in may we went to the river and came back late",
    "one fine day in may we went to the river and came home late",
    "something else entirely, of which nobody has heard a word so far",
]
# Names that a page assumes, separate for each page, so that a name it fails to define is not found by accident.
GIVEN = {
    "docs/concepts/families.md": lambda: {"vectors": np.eye(64), "queries": np.eye(64)[:2] + 0.01},
    "docs/developers/plans.md": lambda: {
        "fingerprints": np.arange(50, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15),
        "fingerprint": 0x9E3779B97F4A7C15,
    },
}


TUTORIAL = "docs/tutorial.md"
# Pages whose blocks are run in order, as a reader would.
TOGETHER = ("docs/zh/keywords.md", "docs/zh/tune.md")
WHOLE_PAGES = (TUTORIAL, "README.md", *TOGETHER)
PYTHON_PAGES = [page for page in pages() if page not in WHOLE_PAGES and blocks(page, "python", marked=False)]
COMMAND_PAGES = [
    page
    for page in pages()
    if page not in WHOLE_PAGES and any(blocks(page, language, marked=False) for language in ("console", "bash"))
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{text} {i}" for i in range(20) for text in TEXTS]
    for name in ("articles", "archive", "today", "news", "notes", "pages"):
        Path(f"{name}.jsonl").write_bytes(jsonl(rows))
    for name in ("a", "b"):
        Path(f"{name}.txt").write_text(TEXTS[name == "b"])
    labels = [f"{i},{j},{int(i % 3 == j % 3)}" for i in range(3, 33, 3) for j in (i + 1, i + 3)]
    Path("pairs.csv").write_text("\n".join(["doc_id_a,doc_id_b,label", *labels]) + "\n")
    sketches = likewise.sketch(TEXTS, likewise.Recipe.simhash(within=3))
    for name in ("today.parquet", "archive.parquet", "archive.npy"):
        sketches.write(name)
    return tmp_path


def evaluated(source, names):
    """Run a block; an expression whose comment is a value must equal it, to the digits shown.

    The comment may follow the expression or be alone on the next line, the expression within a `with`.
    """
    tree, lines = ast.parse(source), source.splitlines()
    for statement in [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]:
        behind = lines[statement.end_lineno - 1][statement.end_col_offset :]
        below = lines[statement.end_lineno] if statement.end_lineno < len(lines) else ""
        comment = behind if behind.strip() else below
        is_comment, shown = comment.strip().startswith("#"), comment.strip().removeprefix("#").strip()
        try:
            ast.literal_eval(shown)
        except (SyntaxError, ValueError):
            continue
        if is_comment:
            code = ast.Constant(ast.get_source_segment(source, statement))
            statement.value = ast.Call(ast.Name("_shows", ast.Load()), [statement.value, ast.Constant(shown), code], [])
    names["_shows"] = shows
    exec(compile(ast.fix_missing_locations(tree), "page", "exec"), names)


def shows(value, shown, code):
    """Check a value against the one shown on the page, and return it."""
    places = max([len(digits) for digits in re.findall(r"\.(\d+)", shown)], default=0)
    assert same(value, ast.literal_eval(shown), 0.5 * 10**-places + 1e-12), f"{code}\nis {value!r}, and not {shown}"
    return value


def same(value, shown, error):
    """Return whether values, or lists or dictionaries of them, are equal, with numbers within an error."""
    if isinstance(shown, dict):
        return value.keys() == shown.keys() and all(same(value[key], shown[key], error) for key in shown)
    if isinstance(shown, list | tuple):
        return len(value) == len(shown) and all(same(a, b, error) for a, b in zip(value, shown, strict=True))
    if isinstance(shown, int | float) and not isinstance(shown, bool):
        return abs(value - shown) <= error
    return value == shown


@contextlib.contextmanager
def skipped_without_its_library(page):
    """Skip an integration's page if its library is not installed; tools/try_integrations.py runs it where it is."""
    try:
        yield
    except ImportError as error:
        module = Path(page).stem.replace("-", "_")
        if not any(path.stem == module for path in (ROOT / "python/likewise/integrations").iterdir()):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_python_runs(page, folder):
    (folder / "out").mkdir()
    pq.write_table(likewise.dedup(TEXTS, likewise.Recipe.minhash(0.6)).removed, "out/removed.parquet")
    names = GIVEN.get(page, dict)()
    for block in blocks(page, "python", marked=False):
        with skipped_without_its_library(page):
            evaluated(block, names)


def test_a_value_that_a_page_gets_wrong_is_seen():
    evaluated("x = 1\nx / 3  # 0.3333", {})
    with pytest.raises(AssertionError):
        evaluated("x = 1\nx / 3  # 0.3334", {})
    with pytest.raises(AssertionError):
        evaluated("import io\nwith io.StringIO() as file:\n    [file.write('a')]\n    # [2]", {})


def modules():
    """Yield every module of the package; those of extras only if their packages are installed."""
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
