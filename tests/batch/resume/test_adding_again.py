"""A run that adds to an index and is repeated, or killed and continued, gives the answer of the first run."""

import shutil
import signal

import pyarrow.parquet as pq
import pytest

import likewise
from likewise import _native
from likewise.batch.against.index import IndexUse
from likewise.batch.files import stream_dedup
from likewise.errors import InvalidInput
from likewise.job.reading import FileRun
from tests.batch.resume.test_resume import forker, same, write_inputs  # noqa: F401 - a fixture
from tests.command import jsonl
from tests.index.store.clocks import clocked
from tests.quality.test_promises import planted

pytestmark = pytest.mark.rounds

RECIPES = {
    "minhash": likewise.Recipe.minhash(0.6, shingle=2),
    # More documents share a bucket than one level holds.
    "full-buckets": likewise.Recipe.minhash(0.5, shingle=1, num_slots=32, slot_bits=8),
    "simhash": likewise.Recipe.simhash(within=6, shingle=2),
}


@pytest.fixture(scope="module")
def texts():
    return [text.encode("utf-8", "replace").decode() for text in planted()]


def index_of(path, texts, recipe):
    with likewise.Index(path, recipe) as index:
        index.add_batch([f"old-{number}" for number in range(len(texts))], texts)
    return path


def run(inputs, out, index, **options):
    with likewise.Index(index, read_only=True) as opened:
        recipe = opened.recipe
    return likewise.dedup_files(inputs, out, recipe, index=IndexUse(against=index, add=True), **options)


def ids_in(index):
    with likewise.Index(index, read_only=True) as opened:
        assert opened.verify(full=True) == []
        return len(opened)


@pytest.mark.parametrize("name", RECIPES)
def test_a_rerun_has_the_answer_of_the_first_run(name, tmp_path, texts):
    half = len(texts) // 2
    index = index_of(tmp_path / "seen", texts[:half], RECIPES[name])
    inputs = write_inputs(tmp_path / "in", texts[half:], "jsonl")
    first = run(inputs, tmp_path / "first", index)
    assert 20 < first["num_kept"] < first["num_documents"] - first["against"]["num_removed"]
    assert first["against"]["num_removed"] > 20
    num_documents = ids_in(index)
    assert num_documents == half + first["num_kept"]
    # A requeued job, on a machine where the inputs have other modification times and another directory.
    moved = shutil.copytree(tmp_path / "in", tmp_path / "elsewhere", copy_function=shutil.copyfile)
    for again, files in ((tmp_path / "first", inputs), (tmp_path / "again", sorted(moved.iterdir()))):
        if again.name == "first":
            shutil.copytree(again, tmp_path / "before")
        summary = run(files, again, index, overwrite=True)
        assert {key: summary[key] for key in ("num_kept", "num_removed")} == {
            key: first[key] for key in ("num_kept", "num_removed")
        }
        assert same(tmp_path / "before", again)
        assert ids_in(index) == num_documents


def test_a_rerun_of_a_stream_writes_the_same_lines(tmp_path, texts):
    import io

    index = index_of(tmp_path / "seen", texts[:50], RECIPES["minhash"])
    written = []
    for _ in range(2):
        out = io.BytesIO()
        run_of = FileRun(stdin=io.BytesIO(jsonl(texts[50:])))
        stream_dedup("-", out, RECIPES["minhash"], run=run_of, index=IndexUse(against=index, add=True))
        written.append(out.getvalue())
    assert written[0] == written[1]
    assert len(written[0].splitlines()) == ids_in(index) - 50


@pytest.mark.parametrize(
    ("moment", "calls"), [("decided", 1), ("added", 1), ("added", 3), ("all added", 1), ("named", 1)]
)
def test_a_run_killed_while_it_adds_is_continued(moment, calls, tmp_path, texts, forker):  # noqa: F811
    half = len(texts) // 2
    inputs = write_inputs(tmp_path / "in", texts[half:], "jsonl")
    plain = index_of(tmp_path / "plain.lw", texts[:half], RECIPES["minhash"])
    index = index_of(tmp_path / "seen.lw", texts[:half], RECIPES["minhash"])
    run(inputs, tmp_path / "plain", plain)
    job = {"index": str(index), "added_at_once": 4, "overwrite": True}
    out = tmp_path / "out"
    assert forker.run(out, inputs, moment=moment, calls=calls, **job) == -signal.SIGKILL
    assert (out / "summary.json").exists() == (moment == "named")
    if moment == "added":
        assert half < ids_in(index) < ids_in(plain)
    # Documents that somebody else added, some similar to those that the run keeps.
    with likewise.Index(index) as opened:
        opened.add_batch(
            [f"other-{number}" for number in range(half)], [text + " more" for text in texts[half:]][:half]
        )
    if moment == "decided":
        # The run was killed before it added anything, so the other documents precede its own.
        assert forker.run(out, inputs, **job) == 0
        assert not same(tmp_path / "plain", out)
        return
    assert forker.run(out, inputs, **job) == 0
    assert same(tmp_path / "plain", out)
    assert ids_in(index) == ids_in(plain) + half


def test_documents_that_others_added_are_known_by_their_ids(tmp_path, texts):
    index = index_of(tmp_path / "seen.lw", texts[:50], RECIPES["minhash"])
    new = tmp_path / "new.jsonl"
    new.write_bytes(jsonl(["one fine day in the spring of the year", "a text about something else altogether"]))
    first = run(new, tmp_path / "first", index)
    assert first["num_kept"] == 2
    with likewise.Index(index) as opened:
        opened.remove("1")
        opened.add("1", "a text about something else altogether")
    # The same id with the same text, added by somebody else: known, and not added twice.
    assert run(new, tmp_path / "again", index)["num_kept"] == 2
    assert ids_in(index) == 52
    with likewise.Index(index) as opened:
        opened.remove("1")
        opened.add("1", "nothing of all this was said before")
    with pytest.raises(InvalidInput, match=r"new\.jsonl:2.*'1' is already in the index .*with a different text"):
        run(new, tmp_path / "refused", index)
    assert not (tmp_path / "refused").exists()


def test_another_run_is_compared_with_what_the_first_added(tmp_path, texts):
    index = index_of(tmp_path / "seen.lw", texts[:50], RECIPES["minhash"])
    inputs = write_inputs(tmp_path / "in", texts[50:], "jsonl")
    first = run(inputs, tmp_path / "first", index)
    others = tmp_path / "others.jsonl"
    others.write_bytes(jsonl(["x " + text for text in texts[50:]]))
    assert run(others, tmp_path / "second", index)["against"]["num_removed"] > first["num_kept"] // 2
    # The same documents in another order are a different run.
    reordered = run(inputs[::-1], tmp_path / "third", index)
    assert reordered["num_kept"] == 0


def test_rows_that_have_expired_are_no_rows_of_the_run(tmp_path, texts):
    with clocked(_native.ManualClock(1_700_000_000)) as clock:
        with likewise.Index(tmp_path / "seen.lw", RECIPES["minhash"], ttl=100) as index:
            index.add("old", texts[0])
        new = tmp_path / "new.jsonl"
        new.write_bytes(jsonl(texts[:20]))
        run(new, tmp_path / "first", tmp_path / "seen.lw")
        clock.pass_time(1000)
        with likewise.Index(tmp_path / "seen.lw") as index:
            index.add_batch([f"other-{number}" for number in range(20)], texts[:20])
        assert run(new, tmp_path / "again", tmp_path / "seen.lw")["num_kept"] == 0


def test_the_run_is_remembered_in_snapshots_and_after_compaction(tmp_path, texts):
    index = index_of(tmp_path / "seen.lw", texts[:50], RECIPES["minhash"])
    inputs = write_inputs(tmp_path / "in", texts[50:], "jsonl")
    run(inputs, tmp_path / "first", index)
    with likewise.Index(index) as opened:
        opened.compact()
        opened.snapshot(tmp_path / "copy.lw")
        opened.rebuild()
    for name in ("seen.lw", "copy.lw"):
        run(inputs, tmp_path / f"out-{name}", tmp_path / name)
        assert same(tmp_path / "first", tmp_path / f"out-{name}")


def test_no_row_of_evidence_names_its_own_document(tmp_path, texts):
    index = index_of(tmp_path / "seen.lw", [], RECIPES["minhash"])
    inputs = write_inputs(tmp_path / "in", texts, "jsonl")
    for _ in range(2):
        run(inputs, tmp_path / "out", index, overwrite=True)
        rows = pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
        assert rows
        assert all(row["doc_id"] != row["kept_id"] for row in rows)
