"""What the documentation shows: its Python runs and comes to what it says, its commands do what they say."""

import ast
import doctest
import gzip
import importlib
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from tests.command import jsonl, likewise_command
from tests.formats import archives
from tests.house.test_house import ROOT

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


def pages():
    """Every page, by its name from the root of the project."""
    return [path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))]


def blocks(page, language):
    """Fenced blocks of a language, and of Python and commands the indented ones."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)
    # A paragraph of code: four spaces before each line, a blank line before the first.
    unfenced = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    indented = [textwrap.dedent(part) for part in re.findall(r"(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)", unfenced)]
    if language == "python":
        found += [part for part in indented if re.match(r"import |from ", part)]
    if language == "console":
        found += [f"$ {line}\n" for part in indented for line in part.splitlines() if line.startswith("likewise ")]
    return found


# tests/redis and tests/server make the same calls, of servers of their own; tests/spark runs its page in a session.
NEED_A_SERVER = {"docs/howto/share-an-index.md", "docs/howto/serve.md", "docs/howto/spark.md"}
PYTHON_PAGES = [page for page in pages() if blocks(page, "python") and page not in NEED_A_SERVER]
COMMAND_PAGES = [
    page for page in pages() if blocks(page, "console") and page not in {"docs/tutorial.md", *NEED_A_SERVER}
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
    for block in blocks(page, "python"):
        evaluated(block, names)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_first_example_keeps_what_it_says(page):
    (block,) = blocks(page, "python")
    names = {}
    exec(compile(block, page, "exec"), names)
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


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_commands_run(page, folder):
    """Every command of a page that begins with `likewise`, in order, by the shell, each into a fresh `out`."""
    Path("names.txt").write_text("小明\n")
    Path("stop.txt").write_text("的\n")
    Path("terms.tsv").write_text("flood\t5\nriver\t3\nthe\t0\n")
    Path("table.csv").write_text("url,body\na,some text\nb,some text\n")
    rows = range(3, 33, 3)
    labels = [f"{i},{j},{int(i % 3 == j % 3)}" for i in rows for j in (i + 1, i + 3)]
    Path("pairs.csv").write_text("\n".join(["doc_id_a,doc_id_b,label", *labels]) + "\n")
    Path("builds").mkdir()
    for name in ("one.so", "two.so"):
        Path("builds", name).write_bytes(bytes(range(256)) * 20 + name.encode())
    Path("crawl").mkdir()
    Path("crawl/a.jsonl").write_bytes(jsonl(TEXTS))
    for first, name in ((0, "crawl/a.warc.gz"), (10, "crawl/a.warc.wet.gz"), (20, "crawl.warc.gz")):
        Path(name).write_bytes(
            archives.by_member(archives.page(number, text) for number, text in enumerate(TEXTS, first))
        )
    Path("notes/deep").mkdir(parents=True)
    Path("notes/deep/a.md").write_text("some words\n")
    zstandard = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    Path("articles.jsonl.zst").write_bytes(zstandard.compress(jsonl(TEXTS)))
    Path("dump.gz").write_bytes(gzip.compress(b"id,text\na,some text\nb,some text\n"))
    for block in blocks(page, "console"):
        for line in block.splitlines():
            command = line.removeprefix("$ ")
            if line.startswith("$ ") and "likewise" in command:
                command = command.replace("KEPT_ID", "1").replace("DOC_ID", "0")
                shutil.rmtree("out", ignore_errors=True)
                bash = f'likewise() {{ {shlex.quote(sys.executable)} -m likewise "$@"; }}; set -o pipefail; {command}'
                ran = subprocess.run(["bash", "-c", bash], capture_output=True, text=True)
                assert ran.returncode == 0, f"{command}\n{ran.stderr}"


def test_the_tutorial_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.jsonl").write_text(blocks("docs/tutorial.md", "json")[0], encoding="utf-8")
    shown = blocks("docs/tutorial.md", "console")
    assert len(shown) == 2
    for block in shown:
        command, *output = block.strip().splitlines()
        ran = likewise_command(*shlex.split(command.removeprefix("$ likewise ")))
        assert ran.status == 0, ran.err
        for line in output:
            assert line in ran.out.decode() + ran.err
