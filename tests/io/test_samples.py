"""Tar archives of WebDataset samples: the verdicts of their texts, and kept samples byte for byte."""

import io
import json
import tarfile

import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput
from likewise.job.options import FileRun
from likewise.runs.audit import audit
from tests.files import jsonl
from tests.golden.texts import made_up

RECIPE = likewise.Recipe.minhash(0.8)
ROWS = [{"id": f"a/{number:04}", "text": made_up(30, number % 40), "n": number} for number in range(100)]


def members(row):
    """Return the members of a sample: an image, its text, and what is known about it."""
    about = {"caption": row["text"], "n": row["n"], "more": {"text": row["text"].upper()}}
    return [("seg.PNG", bytes([row["n"]]) * 700), ("txt", row["text"].encode()), ("json", json.dumps(about).encode())]


def write_tar(path, samples, kind=tarfile.USTAR_FORMAT):
    with tarfile.open(path, "w", format=kind) as archive:
        folder = tarfile.TarInfo("a")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for key, contents in samples:
            for ending, content in contents:
                member = tarfile.TarInfo(f"{key}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


def contents(path):
    with tarfile.open(path) as archive:
        return [(member.name, archive.extractfile(member).read()) for member in archive if member.isfile()]


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("field", ["text", "txt", "json.caption", "caption", "more.text"])
def test_samples_are_kept_or_removed_as_their_texts(tmp_path, kind, field):
    rows = [{**row, "id": f"{'long/' * 40}{row['id']}" if kind != tarfile.USTAR_FORMAT else row["id"]} for row in ROWS]
    write_tar(tmp_path / "in.tar", [(row["id"], members(row)) for row in rows], kind)
    dedup_files(jsonl(tmp_path / "in.jsonl", rows), tmp_path / "plain", RECIPE)
    summary = dedup_files(tmp_path / "in.tar", tmp_path / "out", RECIPE, text_field=field)
    kept = {row["id"] for row in map(json.loads, (tmp_path / "plain/kept/in.jsonl").read_text().splitlines())}
    assert summary["num_kept"] == len(kept) == 40
    expected = [(f"{row['id']}.{ending}", body) for row in rows if row["id"] in kept for ending, body in members(row)]
    assert contents(tmp_path / "out" / "kept" / "in.tar") == expected
    assert (tmp_path / "out" / "kept" / "in.tar").stat().st_size % 10240 == 0
    assert audit(tmp_path / "out").passed
    assert dedup_files(tmp_path / "out/kept", tmp_path / "again", RECIPE, text_field=field)["num_kept"] == 40


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_webdataset_reads_the_kept_samples(tmp_path):
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    write_tar(tmp_path / "in.tar", [(row["id"], members(row)) for row in ROWS])
    dedup_files(tmp_path / "in.tar", tmp_path / "out", RECIPE)
    read = list(webdataset.WebDataset(str(tmp_path / "out/kept/in.tar"), shardshuffle=False))
    assert [sample["txt"].decode() for sample in read] == [row["text"] for row in ROWS[:40]]
    assert [set(sample) >= {"seg.png", "txt", "json"} for sample in read] == [True] * 40


def test_samples_without_a_text_are_bad_rows(tmp_path):
    samples = [
        ("one", [("txt", b"one two three four five six")]),
        ("two", [("json", b"{damaged")]),
        ("three", [("txt", b"\xff not text")]),
        ("four", [("png", b"no text")]),
        ("five.d/x", [("json", json.dumps({"text": ["a"]}).encode())]),
        ("six", [("txt", b"another text of six words here"), ("txt", b"one two three four five six")]),
    ]
    write_tar(tmp_path / "in.tar", samples)
    with pytest.raises(InvalidInput, match=r"in.tar:2: text is null"):
        dedup_files(tmp_path / "in.tar", tmp_path / "out", RECIPE, run=FileRun(duplicate_ids="allow"))
    run = FileRun(on_error="keep", max_bad_rows="100%", duplicate_ids="allow")
    summary = dedup_files(tmp_path / "in.tar", tmp_path / "out", RECIPE, run=run)
    assert (summary["num_documents"], summary["num_kept"], summary["num_bad_rows"]) == (3, 2, 4)
    left = [f"{key}.{ending}" for key, contents in samples[:5] for ending, _ in contents]
    assert [name for name, _ in contents(tmp_path / "out/kept/in.tar")] == [*left, "six.txt"]


def test_what_is_no_archive_of_samples_is_told(tmp_path):
    (tmp_path / "in.tar").write_bytes(b"no archive" * 1000)
    with pytest.raises(InvalidInput, match=r"in.tar: not a plain tar archive, or damaged"):
        dedup_files(tmp_path / "in.tar", tmp_path / "out", RECIPE)
    whole = write_tar(tmp_path / "in.tar", [(row["id"], members(row)) for row in ROWS]).read_bytes()
    (tmp_path / "in.tar").write_bytes(whole[:5000])
    with pytest.raises(InvalidInput, match=r"in.tar: not a plain tar archive, or damaged"):
        dedup_files(tmp_path / "in.tar", tmp_path / "out", RECIPE)
    write_tar(tmp_path / "in.tar", [])
    assert dedup_files(tmp_path / "in.tar", tmp_path / "out", RECIPE)["num_documents"] == 0
    with pytest.raises(likewise.InvalidParameter, match=r"in.tar has another format"):
        dedup_files(tmp_path / "in.tar", tmp_path / "flags", RECIPE, write="annotated")
