"""Outputs in places where nothing can be created are rejected before any work."""

import os
from pathlib import Path

import pytest

import likewise
from likewise.cli.options.terminal import explain
from likewise.errors import InvalidInput
from likewise.io.places import check_place
from tests.command import jsonl, likewise_command

TEXTS = ["one two three four five six", "one two three four five SIX", "something else"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    assert likewise_command("index", "create", "own.lw", cwd=tmp_path).status == 0
    return tmp_path


COMMANDS = [
    ("index", "create", "{}"),
    ("index", "add", "{}", "a.jsonl"),
    ("index", "stats", "{}"),
    ("index", "snapshot", "own.lw", "{}"),
    ("dedup", "a.jsonl", "-o", "out", "--index", "{}"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_index_is_no_object_and_stands_behind_no_dead_link(home, command):
    before = sorted(os.listdir(home))
    for place, told in [
        ("s3://bucket/seen", "s3://bucket/seen: an index is a local directory or is stored on a Redis server"),
        ("link", "link: broken link to nowhere; delete the link"),
        ("link/seen.lw", "link: broken link to"),
        ("loop", "loop: broken link to loop"),
        ("file:///seen", "give the path without file://"),
    ]:
        ran = likewise_command(*(word.format(place) for word in command), cwd=home)
        assert (ran.status, ran.out) == (2, b""), ran.err
        assert told in ran.err
        assert sorted(os.listdir(home)) == before


def test_references_are_of_this_machine(home):
    ran = likewise_command("dedup", "a.jsonl", "-o", "out", "--against", "s3://bucket/run", cwd=home)
    assert ran.status == 2
    assert ran.err.startswith("error: s3://bucket/run: --against supports local indexes, runs and files only")


def test_the_library_says_the_same(home):
    for place in ("s3://bucket/seen", Path("s3://bucket/seen")):
        with pytest.raises(InvalidInput, match="s3://bucket/seen: an index is a local directory"):
            likewise.Index(place)
    with pytest.raises(InvalidInput, match="broken link"):
        likewise.Index("link")


def test_links_and_names_that_are_good_stay_so(home):
    (home / "c:").mkdir()
    (home / "s3:").mkdir()
    (home / "to").symlink_to("own.lw")
    for place in ("own.lw", "to", "to/deeper", "c:/x", "s3:/x", "a:b/c", "new/deep"):
        check_place(place)
    with likewise.Index("s3:/x") as index:
        assert index.check_and_add("a", "one two").is_new
    assert (home / "s3:" / "x").is_dir()


def test_a_missing_directory_is_the_hint(home):
    """Rejected before a weight table is counted; errors on files that are read give another hint."""
    ran = likewise_command("weights", "a.jsonl", "-o", "absent/deep/w.lw", cwd=home)
    assert ran.status == 2
    assert (
        ran.err == "error: absent/deep/w.lw: directory absent/deep does not exist; create it, or choose another file\n"
    )
    for name, hint in [
        ("absent/b.jsonl", "hint: no directory absent: create it first, or check the path."),
        ("a.jsonl/b.jsonl", "hint: a.jsonl is not a directory: choose another path."),
        ("b.jsonl", "hint: check the name."),
        ("/proc/b.jsonl", "hint: check the name."),
        ("own.l*/*/b.jsonl", "hint: check the pattern; quote it so that likewise expands it."),
    ]:
        ran = likewise_command("dedup", name, "-o", "out", cwd=home)
        assert ran.status == 2
        assert ran.err.splitlines()[-1] == hint


def test_what_has_no_name_has_a_hint_too(capsys):
    for name in (None, 7, b"absent/x"):
        assert explain(FileNotFoundError(2, "No such file or directory", name)) == 2
    hints = [line for line in capsys.readouterr().err.splitlines() if line.startswith("hint: ")]
    assert ["create it first" in hint for hint in hints] == [False, False, True]


@pytest.mark.parametrize("place", ["s3:/bucket/run", Path("s3://bucket/run")], ids=["one slash", "a path"])
def test_an_output_with_one_slash_is_rejected(home, place):
    before = sorted(os.listdir(home))
    with pytest.raises(InvalidInput, match="s3:/bucket/run: an address has two slashes; give the str s3://bucket/run"):
        likewise.dedup_files("a.jsonl", place)
    assert sorted(os.listdir(home)) == before
