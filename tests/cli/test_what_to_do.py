"""Errors that name what to do instead."""

import gzip
import json
import os
import tarfile

import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.inputs import find_inputs
from likewise.io.source.source import ReadRules
from tests.command import jsonl, likewise_command

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["dedup", "a.jsonl", "--id", "x", "-o", "out"], "No such option '--id'. Did you mean '--id-field'?"),
        (["dedup", "a.jsonl", "--column", "x", "-o", "out"], "No such option '--column'. Did you mean '--text-field'?"),
        (["pairs", "a.jsonl", "--output", "x"], "No such option '--output'. Did you mean '--out'?"),
        (["sketch", "a.jsonl", "-o", "s.npy", "--within", "3"], "'--within'. It applies to commands that compare"),
        (["dedupe", "a.jsonl"], "No such command 'dedupe'. Did you mean 'dedup'?"),
        (["index", "delete", "a.lw"], "No such command 'delete'."),
        (["dedup", "a.jsonl", "-o", "out.csv"], "out.csv is the name of a file; choose a name such as out"),
        (["repeats", "a.jsonl", "-o", "out.jsonl.gz", "--unit", "line"], "out.jsonl.gz is the name of a file"),
        (["plan", "--documents", "1e9", "--workers", "5"], "requires --engine spark; to plan a search, give --n"),
        (["deduplicate", "a.jsonl"], "No such command 'deduplicate'. Did you mean 'dedup'?"),
        (["add", "seen.lw"], "No such command 'add'. Did you mean 'index add'?"),
        (
            ["plan", "--documents", "1e9", "--engine", "spark", "--memory", "64GB"],
            "--memory: applies only to a search (--n), not to a run on Spark (--documents); remove it",
        ),
        (["tune", "a.jsonl", "--labels", "s3://bucket/labels.csv"], "this must be a local path: copy the file"),
    ],
)
def test_commands(tmp_path, arguments, told):
    (tmp_path / "a.jsonl").write_bytes(jsonl(["one text", "another text"]))
    done = likewise_command(*arguments, cwd=tmp_path)
    assert done.status == 2
    assert told in " ".join(done.err.split())
    assert os.listdir(tmp_path) == ["a.jsonl"]


@pytest.mark.parametrize("command", ["audit", "report"])
def test_commands_over_runs_name_what_is_no_run(tmp_path, command):
    (tmp_path / "a.jsonl").write_bytes(jsonl(["one text", "another text"]))
    for given in ("a.jsonl", ".", "nothing"):
        done = likewise_command(command, given, cwd=tmp_path)
        assert (done.status, "no finished run here (no summary.json)" in done.err) == (2, True), done.err


def test_folders_of_files_that_are_not_read(tmp_path):
    (tmp_path / "a.jsonl.lz4").write_bytes(b"\x04\x22\x4d\x18")
    with pytest.raises(InvalidInput, match=r"a\.jsonl\.lz4 was skipped: the file is lz4; decompress it first"):
        find_inputs([tmp_path], ReadRules())
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.jsonl.lz4", "a")
    (tmp_path / "a.jsonl.lz4").unlink()
    with pytest.raises(
        InvalidInput, match=r"b\.tar\.gz was skipped: the file is a tar archive, compressed with gzip; extr"
    ):
        find_inputs([tmp_path], ReadRules())
    (tmp_path / "b.tar.gz").rename(tmp_path / "c.json.gz")
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(jsonl(["a text"])))
    with pytest.raises(InvalidInput, match=r"c\.json\.gz was skipped: .* specify its format with"):
        find_inputs([tmp_path], ReadRules())
    with pytest.raises(InvalidInput, match=r"--format jsonl reads files with its extensions; give others by name or"):
        find_inputs([tmp_path], ReadRules(), file_format="jsonl")
    for way in ("c.json.gz", "*"):
        assert len(find_inputs([f"{tmp_path}/{way}"], ReadRules(), file_format="jsonl").files) == 1


def test_a_saved_dataset_without_rows(tmp_path):
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [], "_fingerprint": "0"}))
    with pytest.raises(InvalidInput, match=f"the dataset {tmp_path} has no rows"):
        find_inputs([tmp_path], ReadRules())


def test_columns_that_are_not_text():
    table = pa.table({"text": ["one text", "another"], "site": [1, 2]})
    recipe = likewise.Recipe.minhash(0.8, only_within="site")
    for given in (table, table.to_reader()):
        with pytest.raises(InvalidInput, match="column 'site' has type int64, not text; c") as caught:
            likewise.dedup(given, recipe)
        assert "text_field" not in str(caught.value)
    with pytest.raises(InvalidInput, match="column 'site' has type int64, not text; convert it to text, or choose"):
        likewise.dedup(table, text_field="site")


def test_a_function_is_not_a_name():
    with pytest.raises(InvalidParameter, match="not text; give its name and version, and lists of tokens as documents"):
        likewise.Recipe.minhash(0.8, tokens="user", tokenizer=str.split)


def test_each_command_lists_the_fields_of_a_row_without_a_text(tmp_path):
    file, index, out = tmp_path / "in.jsonl", tmp_path / "seen.lw", tmp_path / "out"
    file.write_text(json.dumps({"id": "a", "body": "one two three"}) + "\n")
    likewise.Index(index).close()
    wanted = 'in.jsonl:1: no field "text" (found: id, body); choose a field with --text-field, or skip such rows'
    for command in (
        ["dedup", file, "-o", out],
        ["repeats", file, "--unit", "line", "-o", out],
        ["boilerplate", file, "--site", "id", "-o", out],
        ["weights", file, "-o", out],
        ["index", "add", index, file],
        ["index", "check", index, file],
    ):
        ran = likewise_command(*command)
        # Weights are counted on several threads, which do not know the lines before theirs.
        assert wanted.replace(":1:", ":" if command[0] == "weights" else ":1:") in ran.err, ran.err
        assert ran.status == 2
