"""`make lint` finds phrases that do not belong in documentation, help and messages."""

import subprocess
import sys

import pytest

from tests.structure.test_rules import ROOT

TOOL = ROOT / "tools" / "check_words.py"
PLACES = {
    "page": ("docs/page.md", "# A page\n\nThe runs are held against each other.\n", "docs/page.md:3"),
    "help": ("python/a.py", '"""M."""\nHELP = """Run it.\n\nIt does not act here.\n"""\n', "python/a.py:4"),
    "Python comment": ("python/a.py", '"""M."""\n# Lists, and beside them a tree.\n', "python/a.py:2"),
    "Rust comment": ("crates/a/src/b.rs", "//! M.\n\n/// A list for whoever asks.\n", "crates/a/src/b.rs:3"),
    "message": ("python/b.py", 'raise ValueError(f"the labelled set {1} is missing")\n', "python/b.py:1"),
}
CLEAN = {
    "code": ("docs/page.md", "Use `neighbours` so:\n\n```python\nbeside = 1  # anew and beside\n```\n"),
    "docstring": ("python/a.py", '"""Something anew and beside it."""\nNAME = "beside"\n'),
    "Chinese": ("docs/zh/page.md", "licence 与 licence\n"),
}


def check(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    for command in (["git", "init", "-q"], ["git", "add", "-A"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    return subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("place", PLACES)
def test_a_planted_phrase_is_found(tmp_path, place):
    name, text, where = PLACES[place]
    done = check(tmp_path, name, text)
    assert done.returncode == 1
    assert done.stdout.startswith(where)
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("place", CLEAN)
def test_what_readers_do_not_read_as_prose_is_left_alone(tmp_path, place):
    done = check(tmp_path, *CLEAN[place])
    assert (done.returncode, done.stdout.strip()) == (0, "")


def test_lint_runs_it():
    assert "tools/check_words.py" in (ROOT / "Makefile").read_text(encoding="utf-8")
