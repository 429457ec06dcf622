"""What all commands over files have in common: one suite that each of them must pass."""

import io
import json
import os
from itertools import cycle

import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.files import dedup_files, stream_dedup
from likewise.batch.pair_files import pair_files, sketch_files
from likewise.batch.parts import BoilerplateRules, PartRules, dedup_parts, remove_boilerplate
from likewise.batch.read.ingest import weigh_files
from likewise.corpus import decontaminate_files, find_copies, leak_files
from likewise.corpus.matching import match_files
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.io.output.directory import IDENTITY, UNFINISHED
from likewise.io.output.row_files import RowWriter
from likewise.job.output import Job
from likewise.job.reading import FileRun
from likewise.progress import StageFinished, StageStarted
from likewise.tuning.labels import as_labels
from likewise.tuning.tuning import tune_files
from tests.golden.texts import made_up
from tests.io.files import jsonl

RECIPE = likewise.Recipe.minhash(0.8)
LINES = "\n".join(made_up(12, number) for number in range(6))
ROWS = [{"id": str(number), "site": "s", "text": f"{made_up(30, number // 2)}\n{LINES}"} for number in range(40)]
OTHERS = [{**row, "id": f"b{row['id']}"} for row in ROWS[:20]]
LABELS = [(str(n), str(n + 1), n % 2 == 0) for n in range(0, 30)]
SITES = BoilerplateRules("site")


class Changes:
    """Progress that changes a file once, when the first stage is finished."""

    def __init__(self, path):
        self.path, self.is_done = path, False

    def __call__(self, event):
        if isinstance(event, StageFinished) and not self.is_done:
            self.is_done = True
            with self.path.open("ab") as file:
                file.write(b"\n")


# Commands that write a directory -> what each does with an input, another one, an output, and further arguments.
WRITING = {
    "dedup": lambda a, b, out, **more: dedup_files([a, b], out, RECIPE, **more),
    "dedup annotated": lambda a, b, out, **more: dedup_files([a, b], out, RECIPE, write="annotated,groups", **more),
    "dedup --against": lambda a, b, out, **more: dedup_files(b, out, RECIPE, against=[a], **more),
    "leaks": lambda a, b, out, **more: leak_files({"x": a, "y": b}, out, RECIPE, write="kept", **more),
    "decontaminate": lambda a, b, out, **more: decontaminate_files(a, {"x": b}, out, **more),
    "decontaminate cut": lambda a, b, out, **more: decontaminate_files(a, {"x": b}, out, write="cut", **more),
    "copies": lambda a, b, out, **more: find_copies([b, a], texts=[ROWS[0]["text"]], output=out, **more).summary,
    "repeats": lambda a, b, out, **more: dedup_parts([a, b], out, PartRules("line"), **more),
    "repeats span": lambda a, b, out, **more: dedup_parts([a, b], out, PartRules("span"), **more),
    "repeats --against": lambda a, b, out, **more: dedup_parts(b, out, PartRules("line"), against=[a], **more),
    "boilerplate": lambda a, b, out, **more: remove_boilerplate([a, b], out, SITES, **more),
}
# Further commands, and further ways to read the first input.
COMMANDS = {
    **WRITING,
    "dedup -o -": lambda a, b, out, **more: stream_dedup([a, b], io.BytesIO(), RECIPE, **more),
    "pairs": lambda a, b, out, **more: pair_files([a, b], f"{out}.parquet", RECIPE, **more),
    "pairs --against": lambda a, b, out, **more: pair_files(b, f"{out}.tsv", RECIPE, against=[a], **more),
    "sketch": lambda a, b, out, **more: sketch_files([b, a], RECIPE, **more),
    "weights": lambda a, b, out, **more: weigh_files([b, a], **more),
    "decontaminate --against": lambda a, b, out, **more: decontaminate_files(b, {"x": a}, out, **more),
    "copies FILE": lambda a, b, out, **more: find_copies([b], files=[a], output=out, **more).summary,
    "match": lambda a, b, out, **more: match_files(a, b, f"{out}.parquet", **more),
    "match --in": lambda a, b, out, **more: match_files(b, a, f"{out}.parquet", **more),
    "tune": lambda a, b, out, **more: tune_files([a, b], as_labels(LABELS), **more),
}
# Commands that do not take a memory limit.
UNBOUNDED = {"decontaminate", "decontaminate cut", "boilerplate"}
# Rows that are not documents.
BAD = [b"{", b"[]", b'{"id": "x"}', b'{"id": "x", "text": null}', b'{"id": "x", "text": 7}', b'{"text": "\xff"}']
# Texts that are documents, and hard to write or to compare.
HOSTILE = ["", " ", "\x00", "\ud800 lone", "\u0301", "a" * 5000, "\r\n\u2028", "\U0001f600" * 40, '"', "\ufeff"]


@pytest.fixture
def paths(tmp_path):
    """Two inputs."""
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, rows in zip(paths, (ROWS, OTHERS), strict=True):
        path.write_bytes(jsonl(rows))
        os.utime(path, (1, 1))
    return paths


def result(out):
    """Return everything in an output directory but times, by name."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.name == "summary.json":
            found[name] = json.loads(path.read_text()) | {"timings": None, "memory": None}
        elif path.suffix == ".parquet":
            found[name] = pq.read_table(path).to_pylist()
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_of_a_file_that_changes_nothing_is_published(paths, tmp_path, command):
    changes = Changes(paths[0])
    with pytest.raises(InvalidInput, match=r"a\.jsonl: the file changed during reading; run again"):
        COMMANDS[command](*paths, tmp_path / "out", progress=changes)
    assert changes.is_done
    assert names(tmp_path) == ["a.jsonl", "b.jsonl"]
    # The same command succeeds once the file no longer changes.
    COMMANDS[command](*paths, tmp_path / "out")


@pytest.mark.parametrize("command", [*WRITING, "pairs", "pairs --against", "match"])
def test_a_file_that_changes_after_results_are_published_is_no_error(paths, tmp_path, command, monkeypatch):
    owner, name = (Job, "publish") if command in WRITING else (RowWriter, "finish")
    publish, changes = getattr(owner, name), Changes(paths[0])

    def published(*args):
        publish(*args)
        changes(StageFinished("writing", 0.0))

    monkeypatch.setattr(owner, name, published)
    COMMANDS[command](*paths, tmp_path / "out")
    assert changes.is_done


@pytest.mark.parametrize(("command", "bad"), list(zip(COMMANDS, cycle(BAD), strict=False)))
def test_a_bad_row_is_an_error_that_names_it_or_is_counted(paths, tmp_path, command, bad):
    paths[0].write_bytes(jsonl(ROWS[:3]) + bad + b"\n" + jsonl(ROWS[3:]))
    with pytest.raises(InvalidInput) as caught:
        COMMANDS[command](*paths, tmp_path / "out")
    assert caught.value.file.endswith("a.jsonl")
    assert command == "weights" or caught.value.row == 4
    assert names(tmp_path) == ["a.jsonl", "b.jsonl"]
    summary = COMMANDS[command](*paths, tmp_path / "out", run=FileRun(on_error="skip"))
    if command == "decontaminate --against":
        assert summary["num_bad_item_rows"] == 1
    elif isinstance(summary, dict) and "--against" not in command and command != "copies FILE":
        assert summary["num_bad_rows"] == 1
    if command in WRITING and "--against" not in command:
        listed = json.loads((tmp_path / "out" / "errors.jsonl").read_text())
        assert (listed["file"].endswith("a.jsonl"), listed["row"]) == (True, 4)


@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_texts_are_documents(paths, tmp_path, command):
    # A given document must have a word.
    texts = [text for text in HOSTILE if text.strip() or command != "copies FILE"]
    rows = [{"id": f"h{number}", "site": "s", "text": text} for number, text in enumerate(texts)]
    # ASCII, since JSON can contain lone surrogates that UTF-8 cannot.
    paths[0].write_bytes(jsonl(ROWS) + "".join(json.dumps(row) + "\n" for row in rows).encode())
    summary = COMMANDS[command](*paths, tmp_path / "out", run=FileRun(on_error="skip"))
    assert not isinstance(summary, dict) or not summary.get("num_bad_rows")


@pytest.mark.parametrize("command", WRITING)
def test_threads_and_memory_change_no_answer(paths, tmp_path, command):
    WRITING[command](*paths, tmp_path / "one", run=FileRun(threads=1))
    expected = result(tmp_path / "one")
    WRITING[command](*paths, tmp_path / "more", run=FileRun(threads=3))
    assert result(tmp_path / "more") == expected
    bounded = FileRun(threads=1, memory_bytes="256MB")
    if command in UNBOUNDED:
        with pytest.raises(InvalidParameter, match="memory"):
            WRITING[command](*paths, tmp_path / "bounded", run=bounded)
        return
    WRITING[command](*paths, tmp_path / "bounded", run=bounded)
    assert result(tmp_path / "bounded") == expected


@pytest.mark.parametrize("command", WRITING)
def test_an_interrupted_command_is_continued_by_the_same_one(paths, tmp_path, command):
    """It leaves no output, and the same command ends in the same answer."""

    def interrupt(event):
        if isinstance(event, StageStarted) and event.stage == ("scanning" if command == "copies" else "writing"):
            raise KeyboardInterrupt

    WRITING[command](*paths, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        WRITING[command](*paths, tmp_path / "out", progress=interrupt)
    assert not (tmp_path / "out").exists() or names(tmp_path / "out") == [UNFINISHED]
    WRITING[command](*paths, tmp_path / "out")
    assert result(tmp_path / "out") == result(tmp_path / "whole")


@pytest.mark.parametrize("command", WRITING)
def test_an_unfinished_run_of_another_identity_is_kept(paths, tmp_path, command):
    if command == "copies":
        pytest.skip("copies does not continue a search")
    parts = tmp_path / "out" / UNFINISHED / "parts"
    parts.mkdir(parents=True)
    (tmp_path / "out" / UNFINISHED / IDENTITY).write_text('{"version": "another"}')
    (parts / "1.arrow").write_bytes(b"")
    with pytest.raises(RecipeMismatch, match="unfinished run with different settings"):
        WRITING[command](*paths, tmp_path / "out")
    assert (parts / "1.arrow").exists()
    WRITING[command](*paths, tmp_path / "out", fresh=True)
    assert names(tmp_path / "out") != [UNFINISHED]


@pytest.mark.parametrize("command", WRITING)
def test_outputs_are_replaced_only_when_asked(paths, tmp_path, command):
    out = tmp_path / "out"
    WRITING[command](*paths, out)
    expected = result(out)
    with pytest.raises(InvalidInput, match="finished run; replace it with --overwrite"):
        WRITING[command](*paths, out)
    WRITING[command](*paths, out, overwrite=True)
    assert result(out) == expected
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mine.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="other files"):
        WRITING[command](*paths, tmp_path / "foreign", overwrite=True)
    assert names(tmp_path / "foreign") == ["mine.txt"]


@pytest.mark.parametrize("command", WRITING)
def test_a_folder_that_cannot_be_written_is_named(paths, tmp_path, command):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file") as caught:
        WRITING[command](*paths, tmp_path / "file" / "out")
    assert "file" in str(caught.value.filename)
    assert names(tmp_path) == ["a.jsonl", "b.jsonl", "file"]


@pytest.mark.parametrize("command", WRITING)
def test_an_output_in_a_store_is_that_of_a_local_run(paths, tmp_path, command):
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    url = f"memory://over-files/{tmp_path.name}/out"
    WRITING[command](*paths, tmp_path / "out")
    WRITING[command](*paths, url)
    (tmp_path / "copy").mkdir()
    store.get(url, str(tmp_path / "copy"), recursive=True)
    assert result(tmp_path / "copy" / "out") == result(tmp_path / "out")
    with pytest.raises(InvalidInput, match="finished run"):
        WRITING[command](*paths, url)
    WRITING[command](*paths, url, overwrite=True)
