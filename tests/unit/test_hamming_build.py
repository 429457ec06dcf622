"""An index file built out of core equals the saved file of the same index in memory."""

import errno
import os
import shutil
import signal
from collections import namedtuple

import numpy as np
import pytest

import likewise
from likewise import HammingIndex, InvalidInput, InvalidParameter, Recipe, Sketches
from likewise.progress import StageAdvanced, StageFinished, StageStarted
from tests.unit.test_hamming_index import as_words, codes_of


def saved(tmp_path, *arguments, **options):
    """Return the bytes of an index in memory, saved."""
    path = tmp_path / "saved"
    HammingIndex(*arguments, **options).save(path)
    content = path.read_bytes()
    path.unlink()
    return content


def huge(path, num_rows):
    """Make a sparse file."""
    path.touch()
    os.truncate(path, 8 * num_rows)


@pytest.mark.parametrize(
    ("bits", "ids", "kind"),
    [
        (64, None, "flat"),
        (64, False, "npy"),
        (64, "given", "mapped"),
        (32, "given", "flat"),
        (32, None, "array"),
        (192, False, "flat"),
        (192, None, "npy"),
    ],
)
def test_the_file_is_that_of_the_index_in_memory(tmp_path, bits, ids, kind):
    codes = as_words(codes_of("clustered", 3000, bits), bits)
    ids = [f"doc {i}" for i in range(3000)] if ids == "given" else ids
    source = tmp_path / ("codes.npy" if kind in ("npy", "mapped") else "codes")
    np.save(source, codes) if source.suffix else codes.tofile(source)
    given = {"mapped": np.load, "array": lambda *_: codes}.get(kind, lambda *_: source)(source, "r")
    built = HammingIndex.build(given, tmp_path / "built", 3, ids=ids, bits=bits)
    assert (tmp_path / "built").read_bytes() == saved(tmp_path, codes, ids, 3, bits=bits)
    assert built.query_batch(codes[:50]).offsets[-1] >= 50
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["built", source.name])


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_recipe_and_empty_texts_come_along(tmp_path, suffix):
    recipe = Recipe.simhash(bits=96)
    texts = ["", "one two three", "", "four five six", "one two three", "", ""]
    sketches = likewise.sketch(texts, recipe)
    source = tmp_path / f"s{suffix}"
    sketches.write(source)
    built = HammingIndex.build(source, tmp_path / "built", 2)
    assert (tmp_path / "built").read_bytes() == saved(tmp_path, sketches, within=2)
    assert (built.recipe, len(built)) == (recipe, 7)
    assert built.query_batch(sketches).rows.tolist() == [0, 2, 5, 6, 1, 4, 0, 2, 5, 6, 3, 1, 4, 0, 2, 5, 6, 0, 2, 5, 6]
    with pytest.raises(InvalidParameter, match="empty texts"):
        HammingIndex.build(source, tmp_path / "built", 2, ids=False)
    with pytest.raises(InvalidParameter, match="bits: 64 does not match the fingerprints"):
        HammingIndex.build(source, tmp_path / "built", 2, bits=64)


def test_skewed_fingerprints_get_the_plan_that_they_get_in_memory(tmp_path):
    codes = as_words(codes_of("templated", 30_000, 64), 64)
    codes.tofile(tmp_path / "codes")
    for within in (1, 4):
        HammingIndex.build(tmp_path / "codes", tmp_path / "built", within)
        assert (tmp_path / "built").read_bytes() == saved(tmp_path, codes, within=within)


def test_where_no_table_helps_the_file_is_scanned(tmp_path, monkeypatch):
    codes = as_words(codes_of("clustered", 400, 64), 64)
    np.save(tmp_path / "codes.npy", codes)
    built = HammingIndex.build(tmp_path / "codes.npy", tmp_path / "built", 40, ids=False)
    assert built.stats["keys"] == []
    assert (tmp_path / "built").read_bytes() == saved(tmp_path, codes, False, 40)
    huge(tmp_path / "huge", 1 << 30)
    # However full this machine's disk is.
    monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(1 << 40))
    with pytest.raises(
        InvalidParameter, match="memory: no table reduces the work within 40, and comparing all pairs needs"
    ):
        HammingIndex.build(tmp_path / "huge", tmp_path / "built", 40)


def test_progress_is_told_and_an_error_in_it_leaves_nothing(tmp_path):
    as_words(codes_of("random", 5000, 64), 64).tofile(tmp_path / "codes")
    events = []
    HammingIndex.build(tmp_path / "codes", tmp_path / "built", 2, progress=events.append)
    done = [event.done for event in events if isinstance(event, StageAdvanced)]
    assert isinstance(events[0], StageStarted)
    assert isinstance(events[-1], StageFinished)
    assert (done[0], done[-1]) == (5000, events[0].total)
    assert done == sorted(done)
    before = (tmp_path / "built").read_bytes()

    def stop(event):
        if isinstance(event, StageAdvanced) and event.done > 5000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HammingIndex.build(tmp_path / "codes", tmp_path / "built", 1, progress=stop)
    assert (tmp_path / "built").read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["built", "codes"]


def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path):
    np.random.default_rng(1).integers(0, 1 << 63, 1_500_000, np.uint64).tofile(tmp_path / "codes")

    def interrupt(event):
        if isinstance(event, StageStarted):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        HammingIndex.build(tmp_path / "codes", tmp_path / "built", progress=interrupt)
    assert [file.name for file in tmp_path.iterdir()] == ["codes"]


def test_a_full_disk_is_told_before(tmp_path, monkeypatch):
    np.random.default_rng(1).integers(0, 1 << 63, 200_000, np.uint64).tofile(tmp_path / "codes")
    usage = namedtuple("Usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1_500_000))
    with pytest.raises(OSError, match=r"about \d\.\d\d GB are needed, 0\.00 GB are free") as caught:
        HammingIndex.build(tmp_path / "codes", tmp_path / "built")
    assert caught.value.errno == errno.ENOSPC
    assert [file.name for file in tmp_path.iterdir()] == ["codes"]


def test_what_is_given_wrongly_is_named(tmp_path):
    path, built = tmp_path / "codes", tmp_path / "built"
    np.arange(100, dtype=np.uint64).tofile(path)
    for options, name in [
        ({"within": 65}, "within"),
        ({"bits": 40}, "bits"),
        ({"memory": "1MB"}, "memory"),
        ({"table_memory": 10}, "table_memory"),
        ({"ids": ["a"]}, "ids"),
        ({"threads": 0}, "threads"),
    ]:
        with pytest.raises(InvalidParameter) as caught:
            HammingIndex.build(path, built, **options)
        assert caught.value.name == name
    np.full(10, 1 << 40, np.uint64).tofile(path)
    with pytest.raises(InvalidParameter, match="source: a bit beyond the 32"):
        HammingIndex.build(path, built, bits=32, within=1)
    path.write_bytes(b"x" * 9)
    with pytest.raises(InvalidInput, match="not a multiple of the fingerprint size"):
        HammingIndex.build(path, built)
    with pytest.raises(FileNotFoundError):
        HammingIndex.build(tmp_path / "missing", built)
    with pytest.raises(FileNotFoundError):
        HammingIndex.build(path, tmp_path / "no" / "built")
    assert [file.name for file in tmp_path.iterdir()] == ["codes"]


def test_more_than_an_index_holds_is_told_at_once(tmp_path):
    path = tmp_path / "huge"
    huge(path, 1 << 32)
    with pytest.raises(InvalidParameter, match="at most 4294967294"):
        HammingIndex.build(path, tmp_path / "built")
    with pytest.raises(InvalidParameter, match="limit of an index is 4294967294"):
        HammingIndex(np.memmap(path, np.uint64, "r"))
    with pytest.raises(InvalidParameter, match="limit of an index is 4294967294"):
        HammingIndex().query_batch(np.memmap(path, np.uint64, "r"))


def test_sketches_in_memory_are_taken_too(tmp_path):
    recipe = Recipe.simhash(bits=64)
    array = np.arange(50, dtype=np.uint64)
    sketches = Sketches(array, recipe, array == 3, np.ones(50, np.uint32))
    HammingIndex.build(sketches, tmp_path / "built")
    assert (tmp_path / "built").read_bytes() == saved(tmp_path, sketches)
