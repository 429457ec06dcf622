"""P8: memory stays below its limit, and the answer equals that of an unlimited run (P4)."""

import importlib
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.arrays import ArraySpace
from likewise.batch import memory as plan_memory
from likewise.batch.budget.room import Room
from likewise.batch.decide import verification
from likewise.batch.files import dedup_files
from likewise.batch.pair_files import pair_files
from likewise.job.reading import FileRun
from likewise.progress import Planned, StageStarted
from tests.batch.memory.sampling import peak_of
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up
from tests.quality.test_promises import planted
from tests.recipes import RECIPES

NAMES = ["minhash", "simhash-cosine"]
LONGER = ["minhash-containment", "minhash-log-count", "simhash", "components-hamming", "exact"]
EXTRA = {
    "components": RECIPES["minhash"].replace(group="components"),
    "components-hamming": RECIPES["simhash"].replace(group="components"),
    "exact": likewise.Recipe.exact(),
    "auto": likewise.Recipe.minhash("auto", weights="idf"),
    "auto-cosine": likewise.Recipe.simhash(threshold="auto"),
    "full-buckets": likewise.Recipe.minhash(0.5, shingle=1, num_slots=32, slot_bits=8),
}
BOUNDED = FileRun(memory_bytes="256MB")


@pytest.fixture
def little(monkeypatch):
    """Return a function that, once called, makes parts so small that a few hundred documents are split into many."""

    def room(self, work):
        return Room(
            ArraySpace(work),
            sets_bytes=30_000,
            max_pairs=50,
            rows_at_once=7,
            buckets_bytes=5_000,
            tables_bytes=20_000,
        )

    small = {
        "arrays": {"_AT_ONCE": 64, "_KEYS_AT_ONCE": 50},
        "io.lines.lines": {"_LINES_AT_ONCE": 33},
        **{f"batch.{name}": {"_AT_ONCE": 50} for name in ("read.columns", "decide.pairing", "write.kept_rows")},
        "batch.read.documents": {"_AT_ONCE": 50, "_COLLAPSED_AT_ONCE": 50},
        "batch.search.distance": {"_LEAST_POSITIONS": 1, "_AT_ONCE": 30},
        "batch.decide.decision": {"_ROWS_AT_ONCE": 30, "_PAIRS_AT_ONCE": 10},
    }

    def make():
        monkeypatch.setattr(plan_memory.MemoryPlan, "room", room)
        for module, names in small.items():
            for name, value in names.items():
                monkeypatch.setattr(importlib.import_module(f"likewise.{module}"), name, value)

    return make


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    texts = planted()
    lines = jsonl(texts).splitlines(keepends=True)
    (folder / "a.jsonl").write_bytes(b"".join(lines[:111]))
    (folder / "b.jsonl").write_bytes(b"".join([*lines[111:200], b"\n", b"no JSON\n", *lines[200:]]).rstrip(b"\n"))
    return folder


def answers(corpus, tmp_path, recipe, little):
    """Return the evidence and kept bytes of a run without a limit, and of a limited run in small parts."""
    found = []
    for memory in (None, "256MB"):
        if memory is not None:
            little()
        out = tmp_path / str(memory)
        run = FileRun(memory_bytes=memory, on_error="keep")
        summary = dedup_files(corpus, out, recipe, run=run)
        kept = [path.read_bytes() for path in sorted((out / "kept").iterdir())]
        counts = {k: v for k, v in summary.items() if k not in ("timings", "num_measured", "memory")}
        found.append((kept, pq.read_table(out / "removed.parquet"), counts))
        assert ("memory" in summary) == (memory is not None)
    return found


@pytest.mark.parametrize(
    "name",
    [
        *NAMES,
        *(name for name in EXTRA if name not in LONGER),
        *(pytest.param(name, marks=pytest.mark.slow) for name in LONGER),
    ],
)
def test_little_memory_changes_no_answer(name, corpus, tmp_path, little):
    recipe = EXTRA[name] if name in EXTRA else RECIPES[name]
    whole, bounded = answers(corpus, tmp_path, recipe, little)
    assert bounded[0] == whole[0]
    assert bounded[1].equals(whole[1])
    assert bounded[2] == whole[2]
    assert whole[1].num_rows > 20


def rare_words(num_documents, copies):
    """Return documents of rare words, all with large weights; each has several copies with a few words changed."""
    random = np.random.default_rng(4)
    words = [f"w{number:x}" for number in range(60_000)]
    texts = []
    for _ in range(num_documents // copies):
        picked = random.integers(0, len(words), 250)
        for _ in range(copies):
            changed = picked.copy()
            changed[random.integers(0, 250, 5)] = random.integers(0, len(words))
            texts.append(" ".join(words[number] for number in changed))
    return texts


@pytest.mark.parametrize(
    "recipe", [likewise.Recipe.minhash(weights="idf"), likewise.Recipe.minhash()], ids=["weighted", "plain"]
)
def test_feature_sets_stay_within_their_budget(recipe, tmp_path, little, monkeypatch):
    (tmp_path / "a.jsonl").write_bytes(jsonl(rare_words(400, 5)))
    held, plain = [], verification.Verifier._load

    def load(self, positions, num_pairs):
        plain(self, positions, num_pairs)
        # Each set has a slot, used or not, which does not count toward the budget.
        held.append((self._sets.num_bytes - 64 * len(self._position_of)) / self._budget)

    monkeypatch.setattr(verification.Verifier, "_load", load)
    little()
    monkeypatch.setattr(plan_memory.MemoryPlan, "room", lambda _, work: Room(ArraySpace(work), sets_bytes=600_000))
    dedup_files(tmp_path / "a.jsonl", tmp_path / "out", recipe, run=BOUNDED)
    assert held
    assert 0.25 < max(held) <= 1


@pytest.mark.parametrize("keep", ["shortest,first", "max:rank,longest"])
def test_priority_is_the_same_in_parts(keep, tmp_path, little):
    corpus = tmp_path / "ranked.jsonl"
    rows = ({"id": i, "text": text, "rank": i * 7 % 5} for i, text in enumerate(planted()))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole, bounded = answers(corpus, tmp_path, RECIPES["minhash"].replace(keep=keep), little)
    assert bounded[1].equals(whole[1])
    assert bounded[0] == whole[0]


@pytest.mark.parametrize("name", ["minhash-containment", pytest.param("minhash", marks=pytest.mark.slow), "simhash"])
def test_pairs_are_the_same(name, corpus, tmp_path, little):
    written = []
    for memory in (None, "256MB"):
        if memory is not None:
            little()
        out = tmp_path / f"{memory}.tsv"
        pair_files(corpus, out, RECIPES[name], run=FileRun(memory_bytes=memory, on_error="skip"))
        written.append(out.read_bytes())
    assert len(written[0].splitlines()) > 500
    assert sorted(written[0].splitlines()) == sorted(written[1].splitlines())


def test_a_double_id_is_found_in_parts(tmp_path, little):
    little()
    texts = [made_up(20, i) for i in range(200)]
    lines = [json.dumps({"id": f"n{i if i != 180 else 3}", "text": text}) for i, text in enumerate(texts)]
    lines[150] = json.dumps({"text": texts[150]})
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.raises(likewise.InvalidInput, match=r"a\.jsonl:181.*'n3'.*a\.jsonl:4"):
        dedup_files(tmp_path / "a.jsonl", tmp_path / "out", run=BOUNDED)


def test_the_plan_is_told_and_written_down(corpus, tmp_path):
    events = []
    summary = dedup_files(
        corpus, tmp_path / "out", run=FileRun(memory_bytes=300_000_000, on_error="skip"), progress=events.append
    )
    assert isinstance(events[0], Planned)
    assert "300 MB" in " ".join(events[0].lines)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["memory"] == summary["memory"]
    assert summary["memory"]["memory_bytes"] == 300_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("options", [{}, {"decisions": {"n1": "keep"}}, {"keep_sketches": True}])
def test_the_search_leaves_no_sketches_on_the_disk(options, tmp_path):
    texts = [made_up(8, seed) for seed in range(5_000)]
    rows = [json.dumps({"id": f"n{row}", "text": text}) for row, text in enumerate(texts)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    recipe = likewise.Recipe.minhash(weights="none")
    sketch_bytes = recipe.resolve().sketch.num_bytes * len(texts)
    sizes = {}

    def nameless_bytes(event):
        # Deleted files that are still mapped.
        files = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        places = [file for file in files if file.is_symlink() and os.readlink(file).endswith("(deleted)")]
        if isinstance(event, StageStarted):
            sizes[event.stage] = sum(file.stat().st_size for file in places if "column-" in os.readlink(file))

    run = FileRun(memory_bytes="256MB")
    dedup_files(tmp_path / "a.jsonl", tmp_path / "out", recipe, run=run, progress=nameless_bytes, **options)
    assert sizes["deciding"] >= sketch_bytes
    assert (sizes["writing"] >= sketch_bytes) == ("keep_sketches" in options)


def test_the_plan_counts_the_disk_space_of_the_larger_of_search_and_output():
    recipe, num = likewise.Recipe.minhash(0.55).resolve(), 1_000_000
    sketches = recipe.sketch.num_bytes * num

    def disk_bytes(copied, **options):
        task = plan_memory._Task(recipe, 10**9, 2, 1, 10**9, copied, 0.0, 0, **options)
        return task.plan(num, is_estimated=False).disk_bytes

    assert disk_bytes(0) == disk_bytes(sketches) > 2 * sketches
    assert disk_bytes(10**10) - disk_bytes(10**9) == 9 * 10**9
    assert disk_bytes(10**9, keeps_sketches=True) - disk_bytes(10**9) == 2 * sketches
    assert disk_bytes(10**9, unpacked_bytes=10**9) - disk_bytes(10**9) == 10**9


@pytest.mark.parametrize(
    ("recipe", "run", "words"),
    [
        (None, {"memory_bytes": "255MB"}, "256000000"),
        (None, {"memory_bytes": "lots"}, "lots"),
        (likewise.Recipe.shingles(), {"memory_bytes": "1GB"}, "method shingles"),
        (likewise.Recipe.bloom(), {"memory_bytes": "1GB"}, "method bloom"),
    ],
)
def test_what_cannot_be_bounded_is_refused(recipe, run, words, corpus, tmp_path):
    with pytest.raises(likewise.InvalidParameter, match=words):
        dedup_files(corpus, tmp_path / "out", recipe, run=FileRun(on_error="skip", **run))
    assert not (tmp_path / "out").exists()


def test_a_disk_that_is_too_small_is_refused(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(plan_memory.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(likewise.InvalidParameter, match="of disk"):
        dedup_files(corpus, tmp_path / "out", run=FileRun(memory_bytes="1GB", on_error="skip"))
    assert not (tmp_path / "out").exists()


def test_more_documents_than_memory_holds_are_refused_with_the_figure(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(plan_memory, "_BYTES_A_FIELD", 10**9)
    recipe = likewise.Recipe.minhash(keep="max:rank")
    with pytest.raises(likewise.InvalidParameter, match=r"documents with this recipe need [\d,]+ MB.*--keep"):
        dedup_files(corpus, tmp_path / "out", recipe, run=FileRun(memory_bytes="1GB", on_error="skip"))


def test_joins_that_memory_does_not_hold_come_block_by_block():
    recipe = likewise.Recipe.simhash(bits=64, within=3).resolve()
    task = plan_memory._Task(recipe, 256_000_000, 2, 1, 10**9, 0, 0.0, 0)
    few, many = (task.plan(num, is_estimated=False) for num in (100_000, 10**7))
    assert few.tables_bytes is None
    assert few.num_passes == 1
    # A join has two blocks, at 44 bytes a fingerprint.
    assert many.num_passes == -(-(10**7) // (many.tables_bytes // (2 * 44))) > 4
    assert many.held_bytes + 64_000_000 <= 256_000_000
    assert many.room(None).tables_bytes == many.tables_bytes
    assert f"{many.num_passes} passes" in " ".join(many.lines())
    with pytest.raises(likewise.InvalidParameter, match=r"44 bytes per fingerprint for joins"):
        plan_memory._Task(recipe, 256_000_000, 2, 1, 10**9, 0, 0.0, 0).plan(10**9, is_estimated=False)


def test_the_command_says_its_plan_and_is_quiet_when_told(corpus, tmp_path):
    for quiet in (False, True):
        arguments = ["dedup", corpus, "-o", tmp_path / str(quiet), "--memory", "256MB", "--on-error", "skip"]
        done = likewise_command(*arguments, *(["--quiet"] if quiet else []))
        assert done.status == 0, done.err
        assert ("plan: memory: at most 256 MB" in done.err) != quiet
    done = likewise_command("pairs", corpus, "-o", "-", "--memory", "256MB", "--on-error", "skip", "--quiet")
    assert done.status == 0
    done = likewise_command("dedup", corpus, "-o", tmp_path / "i", "--memory", "1GB", "--index", tmp_path / "x")
    assert done.status == 2
    assert "memory" in done.err


def corpus_of(path, num_documents):
    """Write documents of about a kilobyte, a tenth of them copies of others with one word changed."""
    words = np.array(made_up(3000, 1).split())
    random = np.random.default_rng(3)
    with path.open("w") as file:
        before = ""
        for row in range(num_documents):
            if row % 10 != 9:
                before = " ".join(words[random.integers(0, len(words), 150)].tolist())
            file.write(json.dumps({"id": f"document-{row}", "text": f"{before} {row}"}) + "\n")


def test_the_sample_that_is_counted_is_part_of_the_plan():
    recipe = likewise.Recipe.minhash(weights="idf").resolve()
    task = plan_memory._Task(recipe, 256_000_000, 2, 1, 10**9, 0, 0.0, 0)
    plan = task.plan(3_000_000, is_estimated=False)
    assert plan.threads == 2
    assert plan.room(None).weighing_bytes + 90 * 2**20 == plan.work_bytes
    with pytest.raises(likewise.InvalidParameter, match=r"need \d+ MB: .*126 MB for counting features"):
        task._replace(memory_bytes=180_000_000).plan(100_000, is_estimated=False)
    # Counted in a separate run.
    counted = likewise.Recipe.minhash(weights=likewise.Weights.from_terms({"one": 2})).resolve()
    assert plan_memory._Task(counted, 180_000_000, 2, 1, 10**9, 0, 0.0, 0).plan(100_000, is_estimated=False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.slow
@pytest.mark.parametrize("memory", [256, 512])
def test_memory_of_weighted_pairs_stays_below_its_bound(memory, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(jsonl(rare_words(200_000, 5)))
    command = [sys.executable, "-m", "likewise", "dedup", tmp_path / "a.jsonl", "--quiet", "--weights", "idf"]
    peak = peak_of([*command, "-o", tmp_path / "out", "--memory", f"{memory}MB"])
    assert peak < memory * 1e6, f"{peak / 1e6:.0f} MB"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--method", "simhash", "--within", "3"),
        ("--method", "simhash", "--within", "3", "--bits", "256"),
        ("--weights", "idf"),
    ],
)
def test_memory_stays_below_its_bound(options, tmp_path):
    corpus_of(tmp_path / "a.jsonl", 200_000 if "--bits" in options else 100_000)
    command = [sys.executable, "-m", "likewise", "dedup", tmp_path / "a.jsonl", "--quiet"]
    for memory, bound in (("256MB", 256e6), ("512MB", 512e6)):
        peak = peak_of([*command, "-o", tmp_path / memory, "--memory", memory, *options])
        assert peak < bound, f"{peak / 1e6:.0f} MB"
    peak_of([*command, "-o", tmp_path / "whole", *options])
    for memory in ("256MB", "512MB"):
        assert likewise_command("diff", tmp_path / "whole", tmp_path / memory).status == 0
