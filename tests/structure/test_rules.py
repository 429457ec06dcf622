"""Rules of this project that no linter checks: public names, sizes of files, import costs, documentation."""

import ast
import functools
import importlib.metadata
import inspect
import json
import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest

import likewise
from likewise.cli import group

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "python" / "likewise"
PUBLIC = {
    "AsyncClient", "Client", "Deduplication", "HammingIndex", "Index", "InvalidInput", "InvalidParameter",
    "LikewiseError", "Recipe", "decontaminate", "leaks",
    "RecipeMismatch", "Sketches", "Weights", "__version__", "band_pairs", "compare", "dedup", "dedup_files",
    "hamming_distance", "hamming_join", "hamming_pairs", "match", "pairs", "sketch", "audit", "tune",
}  # fmt: skip


def tracked(*suffixes):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name.endswith(suffixes) and (ROOT / name).is_file()]


def modules_after(code):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; before = set(sys.modules)\n{code}\nprint(*(set(sys.modules) - before))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name.split(".")[0] for name in done.stdout.split()} - set(sys.stdlib_module_names)


# Modules that the smallest run with all defaults need not load: they would slow a short command.
DEDUP_ALONE = """
import likewise
texts = [f"a text of its own {number} words and nine more of them {number * 7}" for number in range(150)]
assert likewise.dedup(texts).kept.sum() > 1
not_needed = {"numpy.ma", "shutil", "tempfile", "decimal", "mmap", "unicodedata", "likewise.hamming", "likewise.index"}
not_needed |= {f"likewise.batch.{name}" for name in ("joined", "memory", "read.resume", "search.crowds")}
not_needed |= {f"likewise.io.{name}" for name in ("html", "inputs", "output.directory", "source.added", "source.spool")}
assert not not_needed & set(sys.modules), not_needed & set(sys.modules)
"""


def test_dedup_of_a_list_loads_no_tables():
    assert modules_after(DEDUP_ALONE) == {"numpy", "likewise"}


# Commands in turn; pandas and its own imports take as long as the rest of a short command.
COMMANDS_ALONE = """
import sys
from likewise.cli import main
for command in (
    "dedup a.jsonl -o out", "audit out", "report out -o report.html", "dedup b.jsonl --against a.jsonl -o more",
    "pairs a.jsonl -o pairs.tsv", "repeats a.jsonl -o parts", "audit parts", "leaks a.jsonl b.jsonl -o leaks",
    "boilerplate a.jsonl --site s -o bare", "decontaminate a.jsonl --against b.jsonl -o clean",
    "match b.jsonl --in a.jsonl -o matches.parquet",
):
    sys.argv = ["likewise", *command.split()]
    try:
        main()
    except SystemExit as error:
        assert error.code in (None, 0), command
    assert "pandas" not in sys.modules, command
    if command == "dedup a.jsonl -o out":
        not_needed = {"likewise.index", "likewise.batch.memory", "likewise.io.lines.csv", "likewise.io.tables.arrow"}
        assert not not_needed & set(sys.modules), not_needed & set(sys.modules)
"""


def test_commands_load_no_pandas(tmp_path):
    pytest.importorskip("pandas")
    texts = [f"words of one text {number % 40} and {number % 40 * 7}" for number in range(99)]
    rows = [json.dumps({"text": text, "s": "x"}) + "\n" for text in texts]
    (tmp_path / "a.jsonl").write_text("".join(rows))
    (tmp_path / "b.jsonl").write_text(rows[3])
    subprocess.run([sys.executable, "-c", COMMANDS_ALONE], cwd=tmp_path, check=True)


def test_public_names():
    assert set(likewise.__all__) == PUBLIC
    assert len(likewise.__all__) <= 30
    for name in PUBLIC:
        assert getattr(likewise, name) is not None
    assert not hasattr(likewise, "nothing_of_this_name")


def test_every_public_name_is_documented():
    for name in PUBLIC - {"__version__"}:
        assert len((getattr(likewise, name).__doc__ or "").splitlines()) >= 1, name


@pytest.mark.parametrize("name", ["Index", "Client", "AsyncClient", "redis.RedisIndex"])
def test_every_method_of_an_index_is_documented(name):
    """Some are documented in a base class only."""
    kind = operator.attrgetter(name)(likewise)
    for method in [method for method in dir(kind) if not method.startswith("_")]:
        assert inspect.getdoc(getattr(kind, method)), f"{name}.{method}"


def test_the_version_is_that_of_the_installed_package():
    assert likewise.__version__ == importlib.metadata.version("likewise")


def test_import_is_light():
    assert modules_after("import likewise") <= {"likewise", "numpy"}


HELP = """
import contextlib, likewise.cli
with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
    likewise.cli.main({arguments})
"""


@pytest.mark.parametrize("arguments", [["--help"], ["dedup", "--help"], ["--version"], ["plan", "-h"]], ids=" ".join)
def test_help_loads_nothing_heavy(arguments):
    loaded = modules_after(HELP.format(arguments=arguments))
    assert "click" in loaded
    assert not loaded & {"numpy", "pyarrow", "rich", "pandas", "polars"}


def test_dedup_of_a_list_loads_no_other_package():
    # PyArrow itself looks for pandas.
    assert not modules_after("import likewise; likewise.dedup(['a', 'b', 'a'])") & {"polars", "duckdb", "rich", "click"}


def test_every_command_is_documented():
    pages = [ROOT / "README.md", *(path for path in tracked(".md") if path.is_relative_to(ROOT / "docs"))]
    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    for name in group.list_commands(None):
        assert f"likewise {name}" in text, name


def test_every_option_has_help():
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        for option in command.params:
            if option.param_type_name == "option":
                assert option.help, (name, option.name)


@functools.cache
def modules_of_the_package():
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in PACKAGE.rglob("*.py")]


def test_texts_are_written_alike_on_every_system():
    """Windows would use other line ends and another encoding."""
    for path, tree in modules_of_the_package():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            given = {word.arg for word in node.keywords}
            modes = [part.value for part in node.args if isinstance(part, ast.Constant)]
            is_open = node.func.attr in {"open", "fdopen"} and bool({"w", "a", "x"} & set(map(str, modes)))
            is_help = ast.unparse(node.func.value) == "formatter"
            if is_open or (node.func.attr == "write_text" and not is_help):
                assert {"encoding", "newline"} <= given, f"{path.relative_to(ROOT)}:{node.lineno}"
            if node.func.attr == "read_text" and not node.args:
                assert "encoding" in given, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_the_library_does_not_print():
    for path, tree in modules_of_the_package():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", path
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
                assert not {"pickle", "shelve", "marshal", "dill", "joblib"} & set(names), path


def test_no_vague_module_names():
    for path in tracked(".py", ".rs"):
        assert not {"utils", "util", "helpers", "helper", "misc", "manager"} & {
            part.removesuffix(".py").removesuffix(".rs") for part in path.relative_to(ROOT).parts
        }, path


# Home directories and words that do not belong in published files; written so that this file passes.
BANNED = [
    r"/roo[t]/", r"/wor[k]/", r"/home/[a-z]+/", r"/tmp/[a-z]+_jobs", r"\bto[d]o\b", r"\bfixm[e]\b", r"\bworktre[e]\b",
    r"\bhelper sessio[n]\b", r"\bas an a[i]\b",
]  # fmt: skip


def test_banned_words():
    pattern = re.compile("|".join(BANNED), re.I)
    found = []
    for path in tracked(".rs", ".py", ".pyi", ".md", ".toml", ".json", ".txt", "Makefile", ".ci/run"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []


@pytest.mark.parametrize("crate", ["core", "hamming"])
def test_the_algorithms_read_no_environment_and_print_nothing(crate):
    banned = re.compile(r"std::env|std::fs|println!|eprintln!|Instant::now|SystemTime|\bdbg!")
    for path in (ROOT / "crates" / crate / "src").rglob("*.rs"):
        if path.stem.endswith("tests"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = line.split("//")[0]
            assert not banned.search(code), f"{path.relative_to(ROOT)}:{number}"


def test_every_unsafe_block_says_why():
    for path in (ROOT / "crates").rglob("*.rs"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if re.search(r"\bunsafe (\{|impl)", line.split("//")[0]):
                before = "\n".join(lines[max(0, number - 6) : number + 1])
                assert "SAFETY:" in before, f"{path.relative_to(ROOT)}:{number + 1}"
