"""Directories and globs that contain outputs of runs, and broken links."""

import json

import pytest

from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput
from likewise.io.inputs import find_inputs
from likewise.io.source.source import ReadRules
from tests.command import jsonl, likewise_command

TEXTS = ["one fine day in the spring of the year", "a text about something else altogether"]
RULES = ReadRules(("text",), None, (), 1_000_000, 1_000_000, 250, False)


@pytest.fixture
def data(tmp_path):
    """Return inputs with a finished and an unfinished output among them."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(jsonl(TEXTS))
    (folder / "b.jsonl").write_bytes(jsonl([TEXTS[0] + " again", "no words of those above"], ids=False) + b"broken\n")
    from likewise.job.reading import FileRun

    dedup_files(folder, folder / "first", run=FileRun(on_error="skip"))
    (folder / "killed" / ".unfinished" / "parts").mkdir(parents=True)
    (folder / "killed" / ".unfinished" / "identity.json").write_text("{}")
    (folder / "killed" / "kept").mkdir()
    (folder / "killed" / "kept" / "a.jsonl").write_bytes(jsonl(TEXTS))
    return folder


def names(*inputs, **options):
    found = find_inputs(list(inputs), RULES, **options)
    return [file.name for file in found.files], sorted(found.skipped)


def test_a_second_run_does_not_read_the_output_of_the_first(data):
    assert names(data) == (["a.jsonl", "b.jsonl"], ["first/", "killed/"])
    summary = dedup_files(data, data / "second", run=_skip())
    assert [entry["path"] for entry in summary["inputs"]] == ["a.jsonl", "b.jsonl"]
    assert summary["skipped_files"] == ["first/", "killed/"]
    # The same from the directory above, and if all files are wanted.
    assert names(data.parent)[0] == ["data/a.jsonl", "data/b.jsonl"]
    assert names(data, file_format="binary")[0] == ["a.jsonl", "b.jsonl"]


def _skip():
    from likewise.job.reading import FileRun

    return FileRun(on_error="skip")


def test_globs_find_no_output_but_where_they_name_it(data):
    everything = f"{data}/**/*.jsonl"
    assert names(everything)[0] == ["a.jsonl", "b.jsonl"]
    # No file of a run was requested.
    found, skipped = names(f"{data}/*.jsonl", f"{data}/*/*.jsonl")
    assert found == ["a.jsonl", "b.jsonl"]
    assert skipped == ["errors.jsonl"]
    assert names(f"{data}/*/kept/a.jsonl")[0] == ["first/kept/a.jsonl", "killed/kept/a.jsonl"]
    assert names(f"{data}/first/**/*.jsonl")[0] == ["a.jsonl", "b.jsonl"]
    assert names(data / "first" / "kept")[0] == ["a.jsonl", "b.jsonl"]
    assert names(data / "first" / "errors.jsonl")[0] == ["errors.jsonl"]


def test_outputs_by_themselves_are_refused(data):
    for name in ("first", "killed"):
        with pytest.raises(InvalidInput, match=r"this is the output of a run; give its kept/ directory"):
            names(data / name)
    for path in ("a.jsonl", "b.jsonl"):
        (data / path).unlink()
    with pytest.raises(InvalidInput, match=r"skipped: first/, killed/.*such as OUT/kept"):
        names(data)


def test_a_link_that_leads_nowhere(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    (tmp_path / "b.jsonl").symlink_to("gone.jsonl")
    ran = likewise_command("dedup", "b.jsonl", "-o", "out", cwd=tmp_path)
    assert ran.status == 2
    assert ran.err == "error: b.jsonl: broken link to gone.jsonl; fix or delete it\n"
    for name in (tmp_path, f"{tmp_path}/*.jsonl"):
        assert names(name) == (["a.jsonl"], ["b.jsonl"])


def test_the_direction_of_containment_is_told(tmp_path):
    item = "when a bucket holds more than sixty four members the next one goes to another level of the same band"
    (tmp_path / "ref.jsonl").write_bytes(jsonl([item]))
    page = f"{' '.join(f'before{i}' for i in range(300))} {item} {' '.join(f'behind{i}' for i in range(300))}"
    (tmp_path / "new.jsonl").write_bytes(jsonl([page, "a text about something else altogether"]))
    common = ["dedup", "new.jsonl", "--against", "ref.jsonl", "--threshold", "0.8"]
    ran = likewise_command(*common, "--measure", "containment", "-o", "one", cwd=tmp_path)
    assert ran.status == 0
    told = "note: with containment, a new document is removed if a document of --against contains it"
    assert told in ran.err
    assert "use --measure overlap against a run or files" in ran.err
    assert json.loads((tmp_path / "one" / "summary.json").read_text())["num_removed"] == 0
    ran = likewise_command(*common, "--measure", "overlap", "-o", "two", cwd=tmp_path)
    assert "note: with containment" not in ran.err
    assert json.loads((tmp_path / "two" / "summary.json").read_text())["num_removed"] == 1
    ran = likewise_command(*common, "--measure", "containment", "-o", "-", cwd=tmp_path)
    assert told in ran.err
    # Without reference documents there is no other direction.
    assert (
        told not in likewise_command("dedup", "new.jsonl", "-o", "three", "--measure", "containment", cwd=tmp_path).err
    )
