"""A rejected command deletes nothing that an earlier run left."""

import shutil
import signal
from pathlib import Path

import pytest

import likewise
from likewise.batch import memory as plan_memory
from likewise.batch.against.index import IndexUse
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.io.output.directory import PARTS, UNFINISHED
from likewise.job.reading import FileRun
from tests.batch.resume.test_resume import continued, forker, parts_of, same, write_inputs  # noqa: F401 - a fixture
from tests.quality.test_promises import planted
from tests.recipes import RECIPES


def bytes_below(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def killed(tmp_path, forker):  # noqa: F811
    """Return inputs, and the directory of a run on them that was killed after sketching."""
    inputs = write_inputs(tmp_path / "in", planted(), "jsonl")
    assert forker.run(tmp_path / "out", inputs, moment="decided", calls=1) == -signal.SIGKILL
    assert len(parts_of(tmp_path / "out")) > 3
    return inputs, tmp_path / "out"


def full_disk(monkeypatch):
    monkeypatch.setattr(plan_memory.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))


def many_documents(monkeypatch):
    monkeypatch.setattr(plan_memory, "_BASE_BYTES", 10**9)


def nothing(_):
    pass


REFUSED = {
    "disk": (full_disk, {"run": FileRun(memory_bytes="256MB")}, InvalidParameter),
    "memory": (many_documents, {"run": FileRun(memory_bytes="256MB")}, InvalidParameter),
    "size": (nothing, {"run": FileRun(memory_bytes="255MB")}, InvalidParameter),
    "index": (nothing, {"index": IndexUse(against=Path("none")), "run": FileRun()}, InvalidInput),
    "pairs": (nothing, {"store_pairs": 2.0}, InvalidParameter),
    "against": (nothing, {"against": ["nothing-here"]}, FileNotFoundError),
    "recipe": (nothing, {"recipe": RECIPES["simhash"]}, RecipeMismatch),
}


@pytest.mark.parametrize("why", REFUSED)
def test_parts_of_a_killed_run_stay(why, killed, monkeypatch, tmp_path, forker):  # noqa: F811
    inputs, out = killed
    before = bytes_below(out)
    change, options, error = REFUSED[why]
    recipe = options.get("recipe", RECIPES["minhash"])
    options = {name: value for name, value in options.items() if name != "recipe"}
    for fresh in (False, True):
        if fresh and why == "recipe":
            continue
        with monkeypatch.context() as during:
            change(during)
            with pytest.raises(error):
                likewise.dedup_files(inputs, out, recipe, fresh=fresh, **options)
        assert bytes_below(out) == before
    assert forker.run(out, inputs) == 0
    assert continued(out) > 3
    assert forker.run(tmp_path / "plain", inputs) == 0
    assert same(tmp_path / "plain", out)


def test_parts_stay_where_memory_does_not_hold_the_documents_that_were_read(killed, monkeypatch):
    inputs, out = killed
    below = bytes_below(out / UNFINISHED / PARTS)
    # A file that the killed run had not finished is not a part.
    parts = {path: content for path, content in below.items() if path.suffix != ".unfinished"}

    def refused(*_):
        raise InvalidParameter("memory", "there are more documents than memory holds")

    with monkeypatch.context() as during:
        during.setattr(plan_memory.BoundedRun, "settle", refused)
        with pytest.raises(InvalidParameter):
            likewise.dedup_files(inputs, out, RECIPES["minhash"], run=FileRun(memory_bytes="256MB"))
    assert bytes_below(out / UNFINISHED / PARTS).items() >= parts.items()
    likewise.dedup_files(inputs, out, RECIPES["minhash"])
    assert continued(out) > 3


def test_parts_count_as_room_on_the_disk(killed, monkeypatch):
    inputs, out = killed
    held = sum(map(len, bytes_below(out).values()))
    plans = []
    plain = plan_memory._Task.plan

    def plan(self, *arguments, **options):
        plans.append(plain(self, *arguments, **options))
        return plans[-1]

    monkeypatch.setattr(plan_memory._Task, "plan", plan)
    for free, is_enough in ((0, False), (1, True)):

        def usage(_, free=free):
            # What the plan needs beyond the killed run's output, minus one byte, plus `free`.
            return shutil._ntuple_diskusage(10**12, 0, plans[-1].disk_bytes - held + free - 1)

        monkeypatch.setattr(plan_memory.shutil, "disk_usage", usage)
        if is_enough:
            likewise.dedup_files(inputs, out, RECIPES["minhash"], run=FileRun(memory_bytes="256MB"))
        else:
            with pytest.raises(InvalidParameter, match="of disk"):
                likewise.dedup_files(inputs, out, RECIPES["minhash"], run=FileRun(memory_bytes="256MB"))
    assert continued(out) > 3


@pytest.mark.parametrize("content", [b"", b"[]", None])
def test_parts_without_an_identity_are_not_deleted_unasked(killed, content):
    inputs, out = killed
    identity = out / UNFINISHED / "identity.json"
    identity.unlink()
    if content is not None:
        identity.write_bytes(content)
    before = bytes_below(out)
    with pytest.raises(InvalidInput, match=r"identity\.json is missing or damaged; start over with --fresh"):
        likewise.dedup_files(inputs, out, RECIPES["minhash"])
    assert bytes_below(out) == before
    likewise.dedup_files(inputs, out, RECIPES["minhash"], fresh=True)
    assert continued(out) == 0


def test_a_finished_run_stays_where_its_replacement_is_refused(tmp_path, monkeypatch):
    inputs = write_inputs(tmp_path / "in", planted(), "jsonl")
    out = tmp_path / "out"
    likewise.dedup_files(inputs, out, RECIPES["minhash"])
    before = bytes_below(out)
    for change, options, error in REFUSED.values():
        if "recipe" in options:
            continue
        with monkeypatch.context() as during:
            change(during)
            with pytest.raises(error):
                likewise.dedup_files(inputs, out, RECIPES["minhash"], overwrite=True, fresh=True, **options)
        assert bytes_below(out) == before
