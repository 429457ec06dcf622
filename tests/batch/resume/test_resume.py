"""P9: the same call continues a run killed at any moment, and ends with the same answer."""

import contextlib
import gzip
import io
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.errors import RecipeMismatch
from likewise.io.output.directory import PARTS, UNFINISHED
from likewise.progress import Warned
from likewise.runs.diff import run_differences
from tests.forking import forking
from tests.quality.test_promises import planted
from tests.recipes import quick_first

pytestmark = pytest.mark.rounds


class Forker:
    """Starts runs in processes of their own."""

    def __init__(self, process, folder):
        self.process, self.folder = process, folder

    def run(self, out, inputs, *, after_s=None, recipe="minhash", **job):
        """Return the exit status of a run, which is killed after `after_s` seconds if it is still alive."""
        job |= {"inputs": [str(path) for path in inputs], "out": str(out), "recipe": recipe}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline())
        if after_s is not None:
            time.sleep(after_s)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def forker(tmp_path_factory):
    with forking("tests.batch.resume.child") as process:
        yield Forker(process, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def texts():
    return planted()


def write_inputs(folder, texts, kind):
    """Write two files of one kind."""
    folder.mkdir(exist_ok=True)
    half = 2 * len(texts) // 3
    paths = []
    for name, part, first in (("a", texts[:half], 0), ("b", texts[half:], half)):
        known = [text.encode("utf-8", "replace").decode() for text in part]
        path = folder / f"{name}.{kind}"
        rows = [{"id": f"d{first + i}", "text": text} for i, text in enumerate(known)]
        lines = "".join(json.dumps(row) + ("\n\n" if i % 9 == 0 else "\n") for i, row in enumerate(rows)).encode()
        if kind == "jsonl":
            path.write_bytes(lines)
        elif kind == "jsonl.gz":
            path.write_bytes(gzip.compress(lines, 1))
        elif kind == "csv":
            quoted = "".join('"{}","{}"\r\n'.format(row["id"], row["text"].replace('"', '""')) for row in rows)
            path.write_bytes(b"id,text\r\n" + quoted.encode())
        else:
            table = pa.table({"id": [row["id"] for row in rows], "text": known})
            pq.write_table(table, path, row_group_size=25)
        paths.append(path)
    return paths


def same(one, two):
    return run_differences(Path(one), Path(two)) == ([], "recipe, evidence, kept documents")


def continued(out):
    return json.loads((out / "summary.json").read_text()).get("continued", {"num_parts": 0})["num_parts"]


def parts_of(out):
    folder = out / UNFINISHED / PARTS
    return sorted(path for path in folder.iterdir() if path.suffix == ".arrow") if folder.is_dir() else []


# Compressed bytes count; and gzip is decompressed a megabyte at a time, so that each file is one part.
@pytest.mark.parametrize(
    ("kind", "part_bytes", "calls"),
    [
        ("jsonl", 24_000, 3),
        pytest.param("jsonl.gz", 1, 1, marks=pytest.mark.slow),
        pytest.param("csv", 24_000, 2, marks=pytest.mark.slow),
        ("parquet", 8_000, 3),
    ],
)
def test_a_killed_run_reads_what_it_had_sketched(tmp_path, forker, texts, kind, part_bytes, calls):
    inputs = write_inputs(tmp_path / "in", texts, kind)
    plain, out = tmp_path / "plain", tmp_path / "out"
    assert forker.run(plain, inputs) == 0
    assert forker.run(out, inputs, moment="part", calls=calls, part_bytes=part_bytes) == -signal.SIGKILL
    assert len(parts_of(out)) == calls
    assert forker.run(out, inputs, moment="decided", calls=1, part_bytes=part_bytes) == -signal.SIGKILL
    num_parts = len(parts_of(out))
    assert num_parts >= calls
    assert forker.run(out, inputs, threads=1) == 0
    assert continued(out) == num_parts
    assert sorted(os.listdir(out)) == ["kept", "removed.parquet", "summary.json"]
    assert same(plain, out)


@pytest.mark.parametrize("recipe", ["simhash", "exact", "bloom"])
def test_every_kind_of_sketch_is_read_again(tmp_path, forker, texts, recipe):
    inputs = write_inputs(tmp_path / "in", texts, "jsonl")
    assert forker.run(tmp_path / "plain", inputs, recipe=recipe) == 0
    assert forker.run(tmp_path / "out", inputs, recipe=recipe, moment="summed", calls=1) == -signal.SIGKILL
    assert forker.run(tmp_path / "out", inputs, recipe=recipe) == 0
    assert continued(tmp_path / "out") >= 5
    assert same(tmp_path / "plain", tmp_path / "out")


def test_what_keep_asks_for_is_in_the_parts(tmp_path, forker, texts):
    path = tmp_path / "a.jsonl"
    rows = ({"text": text.encode("utf-8", "replace").decode(), "date": i % 17} for i, text in enumerate(texts))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "broken\n" * 3)
    options = {"recipe": "keep", "run": {"on_error": "keep"}}
    assert forker.run(tmp_path / "plain", [path], **options) == 0
    assert forker.run(tmp_path / "out", [path], moment="summed", calls=1, **options) == -signal.SIGKILL
    assert forker.run(tmp_path / "out", [path], **options) == 0
    assert continued(tmp_path / "out") >= 5
    assert same(tmp_path / "plain", tmp_path / "out")
    assert (tmp_path / "plain" / "errors.jsonl").read_bytes() == (tmp_path / "out" / "errors.jsonl").read_bytes()


@pytest.mark.parametrize("recipe", quick_first(["minhash", "simhash", "bloom-bands"]))
def test_verdicts_are_not_found_again(tmp_path, forker, texts, recipe):
    inputs = write_inputs(tmp_path / "in", texts, "jsonl")
    assert forker.run(tmp_path / "plain", inputs, recipe=recipe) == 0
    often = {"seconds_between": 0, "range": 16, "recipe": recipe}
    out = tmp_path / "out"
    assert forker.run(out, inputs, moment="verdicts", calls=3, **often) == -signal.SIGKILL
    decided = [path for path in parts_of(out) if "decided" in path.name]
    assert len(decided) == 3
    shutil.copytree(out, tmp_path / "gap")
    assert forker.run(out, inputs, moment="verdicts", calls=1, **often) == -signal.SIGKILL
    assert len([path for path in parts_of(out) if "decided" in path.name]) == 4
    assert forker.run(out, inputs, recipe=recipe) == 0
    summaries = [json.loads((folder / "summary.json").read_text()) for folder in (tmp_path / "plain", out)]
    assert summaries[1]["continued"]["num_decided"] == 64
    for name in ("num_candidates", "num_capped", "num_kept"):
        assert summaries[0][name] == summaries[1][name]
    assert same(tmp_path / "plain", out)
    # Parts after a damaged one are computed again.
    gap = [path for path in parts_of(tmp_path / "gap") if "decided" in path.name]
    gap[1].write_bytes(gap[1].read_bytes()[:-1])
    assert forker.run(tmp_path / "gap", inputs, recipe=recipe) == 0
    assert json.loads((tmp_path / "gap" / "summary.json").read_text())["continued"]["num_decided"] == 16
    assert same(tmp_path / "plain", tmp_path / "gap")


def test_counted_weights_are_not_counted_again(tmp_path, texts, monkeypatch):
    from likewise.batch import files
    from likewise.batch.read import ingest, resume

    inputs = write_inputs(tmp_path / "in", texts, "jsonl")
    recipe = likewise.Recipe.minhash(0.6, shingle=2, weights="idf")
    likewise.dedup_files(inputs, tmp_path / "plain", recipe)
    monkeypatch.setattr(resume, "PART_BYTES", 1)
    with monkeypatch.context() as during:
        during.setattr(files, "write_evidence", interrupt)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup_files(inputs, tmp_path / "out", recipe)
    monkeypatch.setattr(ingest, "count_sources", refuse)
    shutil.copytree(tmp_path / "out", tmp_path / "damaged")
    told = []
    summary = likewise.dedup_files(inputs, tmp_path / "out", recipe, progress=told.append)
    assert {name: value for name, value in summary["continued"].items() if value} == {"has_counts": True}
    messages = [event.message for event in told if isinstance(event, Warned)]
    assert "continuing an unfinished run: its document counts are complete" in messages
    assert same(tmp_path / "plain", tmp_path / "out")
    table = tmp_path / "damaged" / UNFINISHED / PARTS / "weights.lww"
    table.write_bytes(table.read_bytes()[:-5] + b"12345")
    with pytest.raises(likewise.InvalidInput, match="no"):
        likewise.dedup_files(inputs, tmp_path / "damaged", recipe)


def test_a_chosen_threshold_is_not_chosen_again(tmp_path, texts, monkeypatch):
    from likewise.batch import files
    from likewise.batch.decide import auto_threshold

    inputs = write_inputs(tmp_path / "in", texts, "jsonl")
    recipe = likewise.Recipe.minhash("auto")
    facts = likewise.dedup_files(inputs, tmp_path / "plain", recipe)["chosen_threshold"]
    with monkeypatch.context() as during:
        during.setattr(files, "write_evidence", interrupt)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup_files(inputs, tmp_path / "out", recipe)
    shutil.copytree(tmp_path / "out", tmp_path / "damaged")
    with monkeypatch.context() as during:
        during.setattr(auto_threshold, "choose_threshold", refuse)
        summary = likewise.dedup_files(inputs, tmp_path / "out", recipe)
    assert summary["chosen_threshold"] == facts
    # Nothing else was reused.
    assert [name for name, value in summary["continued"].items() if value] == ["has_threshold"]
    assert same(tmp_path / "plain", tmp_path / "out")
    # Damaged choices are made again, with the same result: a truncated file, and JSON with another threshold.
    for number, damage in enumerate(
        (lambda kept: kept[:-5], lambda kept: kept.replace(b'"threshold": 0', b'"threshold": 1'))
    ):
        damaged = tmp_path / f"damaged{number}"
        shutil.copytree(tmp_path / "damaged", damaged)
        choice = damaged / UNFINISHED / PARTS / "threshold.json"
        whole = choice.read_bytes()
        choice.write_bytes(damage(whole))
        assert choice.read_bytes() != whole
        summary = likewise.dedup_files(inputs, damaged, recipe)
        assert summary["chosen_threshold"] == facts
        assert "continued" not in summary
        assert same(tmp_path / "plain", damaged)


def test_parts_are_cut_where_columns_are_many(tmp_path, forker, texts):
    inputs = write_inputs(tmp_path / "in", texts, "jsonl")
    assert forker.run(tmp_path / "out", inputs, moment="decided", calls=1, column_bytes=2000) == -signal.SIGKILL
    assert len(parts_of(tmp_path / "out")) > 20


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_damaged_parts_are_made_again(tmp_path, forker, texts, kind):
    inputs = write_inputs(tmp_path / "in", texts, kind)
    assert forker.run(tmp_path / "plain", inputs) == 0
    assert forker.run(tmp_path / "left", inputs, moment="decided", calls=1, part_bytes=8_000) == -signal.SIGKILL
    number = len(parts_of(tmp_path / "left"))
    for damage in range(3):
        out = tmp_path / f"out{damage}"
        shutil.copytree(tmp_path / "left", out)
        parts = parts_of(out)
        if damage == 0:
            data = bytearray(parts[1].read_bytes())
            data[len(data) // 2] ^= 4
            parts[1].write_bytes(data)
        elif damage == 1:
            parts[0].write_bytes(parts[0].read_bytes()[:-9])
            parts[3].unlink()
        else:
            # A file that an earlier run was about to write.
            (parts[0].parent / "part.unfinished").write_bytes(b"half")
            parts[2].rename(parts[2].with_name(parts[2].name.replace("arrow", "arrow.bak")))
        assert forker.run(out, inputs, part_bytes=8_000) == 0
        assert continued(out) == number - (1, 2, 1)[damage]
        assert same(tmp_path / "plain", out)


def test_texts_put_aside_are_checked_too(tmp_path, forker, texts):
    inputs = write_inputs(tmp_path / "in", texts, "parquet")
    assert forker.run(tmp_path / "plain", inputs) == 0
    out = tmp_path / "out"
    assert forker.run(out, inputs, moment="decided", calls=1) == -signal.SIGKILL
    number = len(parts_of(out))
    spool = out / UNFINISHED / PARTS / "texts.spool"
    data = bytearray(spool.read_bytes())
    data[10] ^= 1
    spool.write_bytes(data)
    assert forker.run(out, inputs) == 0
    assert continued(out) == number - 1
    assert same(tmp_path / "plain", out)


def test_what_differs_is_refused_and_named(tmp_path, forker, texts):
    inputs = write_inputs(tmp_path / "in", texts, "jsonl")
    out = tmp_path / "out"
    assert forker.run(out, inputs, moment="part", calls=2) == -signal.SIGKILL
    with pytest.raises(RecipeMismatch, match=r"recipe\.threshold.*--fresh|--fresh.*recipe\.threshold"):
        likewise.dedup_files(inputs, out, likewise.Recipe.minhash(0.9))
    lines = inputs[1].read_bytes()
    inputs[1].write_bytes(lines + b"\n")
    with pytest.raises(RecipeMismatch, match=r"inputs\.b\.jsonl\.num_bytes"):
        likewise.dedup_files(inputs, out)
    # The same size and modification time: only the bytes differ.
    inputs[1].write_bytes(lines)
    times = inputs[1].stat()
    assert forker.run(tmp_path / "other", inputs, moment="part", calls=2) == -signal.SIGKILL
    inputs[1].write_bytes(lines[:50] + b" " + lines[51:])
    os.utime(inputs[1], ns=(times.st_atime_ns, times.st_mtime_ns))
    assert forker.run(tmp_path / "other", inputs) == 1
    assert "inputs.b.jsonl.ends" in (tmp_path / "other.error").read_text()
    assert len(parts_of(out)) == 2
    assert forker.run(out, inputs, fresh=True) == 0
    assert continued(out) == 0


def test_control_c_leaves_parts_for_the_same_command(tmp_path, forker, texts, monkeypatch):
    from likewise.batch import files
    from likewise.batch.read import ingest, resume

    inputs = write_inputs(tmp_path / "in", texts, "jsonl")
    out, events = tmp_path / "out", []
    monkeypatch.setattr(ingest, "PIECE_BYTES", 6_000)
    monkeypatch.setattr(resume, "PART_BYTES", 24_000)
    monkeypatch.setattr(resume, "SAVED_AFTER_S", 0.0)
    with monkeypatch.context() as during:
        during.setattr(files, "write_evidence", interrupt)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup_files(inputs, out, progress=events.append)
    assert "repeat the command to continue" in events[-1].message
    assert sorted(os.listdir(out / UNFINISHED)) == ["identity.json", PARTS]
    # An error in the input keeps no progress: it must be fixed, which makes it another input.
    with monkeypatch.context() as during:
        during.setattr(files, "write_evidence", refuse)
        with pytest.raises(likewise.InvalidInput):
            likewise.dedup_files(inputs, out)
    assert not (out / UNFINISHED).exists()


def test_standard_input_is_known_by_all_its_bytes(tmp_path, texts, monkeypatch):
    from likewise.batch import files
    from likewise.batch.read import ingest, resume
    from likewise.job.reading import FileRun

    monkeypatch.setattr(ingest, "PIECE_BYTES", 6_000)
    monkeypatch.setattr(resume, "PART_BYTES", 24_000)
    monkeypatch.setattr(resume, "SAVED_AFTER_S", 0.0)
    (path, _) = write_inputs(tmp_path / "in", texts * 4, "jsonl")
    data, out = path.read_bytes(), tmp_path / "out"

    def run(piped):
        return likewise.dedup_files("-", out, run=FileRun(stdin=io.BytesIO(piped)))

    with monkeypatch.context() as during:
        during.setattr(files, "write_evidence", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(data)
    middle = len(data) // 2
    assert middle > 65536
    with pytest.raises(RecipeMismatch, match=r"inputs\.stdin\.jsonl\.ends"):
        run(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    assert run(data)["continued"]["num_parts"] > 3


def interrupt(*_):
    raise KeyboardInterrupt


def refuse(*_, **__):
    raise likewise.InvalidInput("no")


def killed_at_random(tmp_path, forker, texts, kinds, kills, seed):
    chance = random.Random(seed)
    num_continued = 0
    for kind in kinds:
        inputs = write_inputs(tmp_path / f"in-{kind}", texts, kind)
        plain, out = tmp_path / f"plain-{kind}", tmp_path / f"out-{kind}"
        began = time.monotonic()
        assert forker.run(plain, inputs) == 0
        seconds = time.monotonic() - began
        for number in range(kills):
            if forker.run(out, inputs, after_s=chance.uniform(0, 1.1 * seconds)) == 0 or number == kills - 1:
                if not (out / "summary.json").exists():
                    assert forker.run(out, inputs) == 0
                num_continued += continued(out) > 0
                assert same(plain, out), number
                shutil.rmtree(out)
    return num_continued


def test_killed_at_random_moments(tmp_path, forker, texts):
    killed_at_random(tmp_path, forker, texts, ["jsonl", "parquet"], 3, seed=int(time.time()))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_fifty_random_moments(tmp_path, forker, texts):
    kinds = ["jsonl", "jsonl.gz", "csv", "parquet"]
    assert killed_at_random(tmp_path, forker, texts * 3, kinds, 13, seed=int(time.time())) > 0
