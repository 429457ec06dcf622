"""Outputs in places where nothing can be created are rejected before any work."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.batch.pair_files import pair_files
from likewise.cli.options.terminal import explain
from likewise.errors import InvalidInput
from likewise.hamming import hamming_stream
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
    (home / "to").symlink_to("own.lw")
    for place in ("own.lw", "to", "to/deeper", "c:/x", "./s3:/x", "a:b/c", "new/deep"):
        check_place(place)
    with likewise.Index("./s3:/x") as index:
        assert index.check_and_add("a", "one two").is_new
    assert (home / "s3:" / "x").is_dir()
    # Also then, an address is recognized by its scheme.
    with pytest.raises(InvalidInput, match="s3://x: an index is a local directory"):
        check_place("s3:/x")


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


WRONG = {
    "s3:/bucket/run.tsv": "s3:/bucket/run.tsv: write the address as s3://bucket/run.tsv (in Python, a str)",
    "file://nowhere/run.tsv": "file://nowhere/run.tsv: write the address as file:///nowhere/run.tsv (in Python, a str)",
    "file:/nowhere/run.tsv": "file:/nowhere/run.tsv: write the address as file:///nowhere/run.tsv (in Python, a str)",
}


@pytest.mark.parametrize(("place", "told"), WRONG.items(), ids=WRONG)
@pytest.mark.parametrize("has_folder", [False, True], ids=["", "a folder of the name"])
def test_an_address_with_too_few_slashes_is_rejected(home, place, told, has_folder):
    if has_folder:
        (home / place).parent.mkdir(parents=True)
    before = sorted(os.listdir(home))
    for call in (
        lambda place: likewise.dedup_files("a.jsonl", place),
        lambda place: likewise.dedup_files(place, "out"),
        lambda place: pair_files("a.jsonl", place),
    ):
        # A Path keeps only one slash.
        for given in (place, Path(place.replace(":/", "://", 1))):
            named = told.replace(place, str(given))
            with pytest.raises(InvalidInput, match=f"^{re.escape(named)}$"):
                call(given)
    for command in (("dedup", place, "-o", "out"), ("pairs", "a.jsonl", "-o", place)):
        ran = likewise_command(*command, cwd=home)
        assert (ran.status, ran.out, ran.err.splitlines()[0]) == (2, b"", f"error: {told}")
    assert sorted(os.listdir(home)) == before


def test_outputs_that_must_be_local_report_so(home):
    for place in ("s3://bucket/w.lww", "s3:/bucket/w.lww"):
        ran = likewise_command("weights", "a.jsonl", "-o", place, cwd=home)
        assert ran.status == 2
        assert ran.err == "error: s3://bucket/w.lww: this output must be a local file; copy it to the store\n"
    result = likewise.dedup(TEXTS)
    for place in ("s3://bucket/run", "memory://run", Path("s3://bucket/run")):
        with pytest.raises(InvalidInput, match=r"://.*run: save writes to a local directory; copy it to the store"):
            result.save(place)
    with pytest.raises(InvalidInput, match="file:///nowhere/run: give the path without file://"):
        result.save("file:///nowhere/run")
    assert sorted(os.listdir(home)) == ["a.jsonl", "link", "loop", "own.lw"]


@pytest.mark.parametrize("place", ["run-10:30", "a:b", "s3:", "./s3:/run"])
def test_an_output_may_have_a_colon(home, place):
    likewise.dedup_files("a.jsonl", place, store_pairs=0.3)
    assert (home / place / "summary.json").is_file()
    for command in (("report", place), ("compare", place, "--ids", "0", "1")):
        ran = likewise_command(*command, cwd=home)
        assert ran.status in (0, 1), ran.err
    likewise.dedup(TEXTS).save(place, overwrite=True)
    assert likewise_command("report", place, cwd=home).status == 0


def test_a_folder_of_output_files_may_have_a_colon(home):
    """PyArrow takes a relative path with a colon for a URL."""
    (home / "run-10:30").mkdir()
    for name in ("run-10:30/p.parquet", "run-10:30/p.tsv"):
        pair_files("a.jsonl", name)
        assert (home / name).is_file()
    sketches = likewise.sketch(TEXTS)
    sketches.write("run-10:30/s.parquet")
    assert np.array_equal(likewise.Sketches.read("run-10:30/s.parquet").array, sketches.array)
    codes = likewise.sketch(TEXTS, likewise.Recipe.simhash(bits=64))
    codes.write("run-10:30/codes.parquet")
    hamming_stream(codes.array, Path("run-10:30/codes.parquet"), 3, bits=64, out=Path("run-10:30/found.parquet"))
    assert (home / "run-10:30/found.parquet").is_file()
