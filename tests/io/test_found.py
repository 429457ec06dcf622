"""Which files directories and globs select, and what is reported about the others."""

import json
from pathlib import Path

import pytest

from likewise import InvalidInput, dedup_files
from likewise.io.inputs import find_inputs
from likewise.io.source.source import ReadRules
from tests.command import likewise_command
from tests.io.files import ROWS, jsonl, write_dataset


def corpus(root):
    """Make a directory with a file, a directory of one file, a dataset, and an empty directory."""
    (root / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a.jsonl").write_bytes(jsonl(ROWS[:2]))
    (root / "deep" / "b.jsonl").write_bytes(jsonl(ROWS[2:3]))
    write_dataset(root / "set", ROWS[3:])


def test_directories_that_a_glob_finds_are_told(tmp_path):
    corpus(tmp_path / "in")
    ran = likewise_command("dedup", tmp_path / "in" / "*", "-o", tmp_path / "out")
    assert ran.status == 0, ran.err
    assert "skipped 2 files of other kinds (or links, or directories matched by a glob): deep/, set/\n" in ran.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["skipped_files"] == ["deep/", "set/"]
    assert summary["num_documents"] == 2
    with pytest.raises(InvalidInput, match="globs match files, not directories; give the directories themselves"):
        dedup_files(f"{tmp_path / 'in'}/*/", tmp_path / "none")


def test_every_command_tells_what_it_did_not_read(tmp_path):
    corpus(tmp_path / "in")
    assert likewise_command("index", "create", tmp_path / "seen.lw").status == 0
    for command in (
        ("pairs", "-o", "-"),
        ("index", "add", tmp_path / "seen.lw"),
        ("index", "check", tmp_path / "seen.lw"),
    ):
        ran = likewise_command(*command, tmp_path / "in" / "*")
        assert ran.status == 0, ran.err
        assert ran.err.endswith(
            "skipped 2 files of other kinds (or links, or directories matched by a glob): deep/, set/\n"
        )


def test_a_directory_that_nobody_may_look_into_is_told(tmp_path, monkeypatch):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "a.jsonl").write_bytes(jsonl([{"id": "a", "text": "one"}]))

    def iterdir(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", iterdir)
    found = find_inputs([str(tmp_path / "*")], ReadRules())
    assert ([file.name for file in found.files], found.skipped) == (["a.jsonl"], ("lost+found/",))


def test_a_glob_of_everything_below_is_the_directory(tmp_path):
    corpus(tmp_path / "in")
    named = dedup_files(tmp_path / "in", tmp_path / "named")
    found = dedup_files(tmp_path / "in" / "**", tmp_path / "found")
    assert found["num_documents"] == len(ROWS)
    assert [file["path"] for file in found["inputs"]] == [file["path"] for file in named["inputs"]]
    # Caches next to the rows of a dataset are not documents, and the kept output of a dataset is a dataset.
    assert (tmp_path / "found" / "kept" / "set" / "state.json").is_file()
    assert not any(name.endswith("/") for name in found["skipped_files"])


def test_the_rows_of_a_dataset_that_are_there_are_read_by_glob(tmp_path):
    write_dataset(tmp_path / "set", ROWS)
    rows = sorted((tmp_path / "set").glob("data-*.arrow"))
    rows[-1].unlink()
    found = dedup_files(tmp_path / "set" / "data-*.arrow", tmp_path / "out")
    assert [file["path"] for file in found["inputs"]] == [path.name for path in rows[:-1]]
    with pytest.raises(InvalidInput, match="which is not a file in the same directory"):
        dedup_files(tmp_path / "set", tmp_path / "none")


def test_links_are_read_by_name_and_by_glob(tmp_path):
    (tmp_path / "blob").write_bytes(jsonl(ROWS))
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "part.jsonl").symlink_to(tmp_path / "blob")
    with pytest.raises(InvalidInput, match=r"skipped: part.jsonl\); links inside a directory are not followed; give"):
        dedup_files(tmp_path / "snapshot", tmp_path / "none")
    for number, name in enumerate(("part.jsonl", "*.jsonl")):
        summary = dedup_files(tmp_path / "snapshot" / name, tmp_path / str(number))
        assert summary["num_documents"] == len(ROWS)
