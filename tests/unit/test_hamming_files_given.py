"""Input files of Hamming search that change, have gaps or are not regular files, and targets with several writers."""

import os
import threading
import types

import numpy as np
import pytest

import likewise
from likewise import HammingIndex, InvalidInput, Recipe, Sketches
from likewise.hamming.stream import hamming_stream
from likewise.progress import StageAdvanced

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_file_that_changes_between_passes_is_refused(tmp_path, step):
    codes = np.random.default_rng(9).integers(0, 2**64, 30_000, np.uint64)
    source = tmp_path / "codes.npy"
    np.save(source, codes)
    status = source.stat()
    num_steps = 0

    def progress(event):
        nonlocal num_steps
        if isinstance(event, StageAdvanced):
            num_steps += 1
            if num_steps == step:
                mapped = np.load(source, mmap_mode="r+")
                mapped[:] = mapped[:] ^ np.uint64(0xF0F0F0F0F0F0F0F0)
                mapped.flush()
                # Only the bytes read differ.
                os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))

    with pytest.raises(InvalidInput, match="the file changed while it was in use"):
        HammingIndex.build(source, tmp_path / "built", 3, progress=progress)
    assert [file.name for file in tmp_path.iterdir()] == ["codes.npy"]


def sketches():
    return likewise.sketch([f"a b c {i}" for i in range(50)], Recipe.simhash(bits=64))


def with_gap(tmp_path, bits, *, in_a_word=False):
    """Return a Parquet file of sketches in which row 3, or one of its words, is null."""
    texts = [f"a b c {i}" for i in range(50)]
    path = tmp_path / "gap.parquet"
    likewise.sketch(texts, Recipe.simhash(bits=bits)).write(path)
    table = pq.read_table(path)
    place, values = table.schema.get_field_index("sketch"), table.column("sketch").to_pylist()
    values[3] = [values[3][0], None] if in_a_word else None
    column = pa.array(values, table.schema.field("sketch").type)
    changed = table.set_column(place, table.schema.field("sketch"), column)
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    return path


READERS = [
    lambda path, tmp_path: HammingIndex.build(path, tmp_path / "built", 3),
    lambda path, tmp_path: likewise.hamming_pairs(path, within=3),
    lambda path, tmp_path: likewise.hamming_pairs(path, within=3, out=tmp_path / "pairs.parquet"),
    lambda path, tmp_path: Sketches.read(path),
]


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("in_a_word", [False, True])
@pytest.mark.parametrize("read", READERS, ids=["build", "pairs", "pairs to a file", "sketches"])
def test_a_null_sketch_is_named_by_column_and_row(tmp_path, read, bits, in_a_word):
    if bits == 64 and in_a_word:
        return
    with pytest.raises(InvalidInput, match="column sketch") as caught:
        read(with_gap(tmp_path, bits, in_a_word=in_a_word), tmp_path)
    assert caught.value.row == 3
    assert not (tmp_path / "built").exists()


def test_a_null_sketch_of_an_archive_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="column sketch") as caught:
        hamming_stream(sketches(), with_gap(tmp_path, 64), 3)
    assert caught.value.row == 3


@pytest.mark.parametrize("read", READERS, ids=["build", "pairs", "pairs to a file", "sketches"])
def test_a_column_that_is_missing_is_named(tmp_path, read):
    path = tmp_path / "missing.parquet"
    sketches().write(path)
    pq.write_table(pq.read_table(path).drop_columns(["is_empty"]), path)
    with pytest.raises(InvalidInput, match="no column is_empty in the file"):
        read(path, tmp_path)


def test_threads_that_save_to_one_path_leave_a_whole_file(tmp_path):
    rng = np.random.default_rng(1)
    indices = [HammingIndex(rng.integers(0, 2**64, num, np.uint64)) for num in (200_000, 60_000)]
    for _ in range(3):
        threads = [threading.Thread(target=index.save, args=(tmp_path / "same",)) for index in indices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(HammingIndex.open(tmp_path / "same", verify=True)) in (200_000, 60_000)
    assert os.listdir(tmp_path) == ["same"]


def test_long_names_and_what_the_dead_left(tmp_path):
    codes = np.arange(100, dtype=np.uint64)
    np.save(tmp_path / "codes.npy", codes)
    name = "n" * 245
    (tmp_path / ".short.4-0123456789.unfinished").write_bytes(b"left")
    (tmp_path / ".likewise-build-dead").mkdir()
    (tmp_path / ".likewise-build-dead" / "lock").touch()
    HammingIndex(codes).save(tmp_path / name)
    HammingIndex.build(tmp_path / "codes.npy", tmp_path / "short")
    HammingIndex.build(tmp_path / "codes.npy", tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["codes.npy", name, "short"]


def irregular(tmp_path):
    """Return paths of a FIFO, a directory, and a link to a FIFO."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "named")
    os.symlink(tmp_path / "named", tmp_path / "link")
    return [tmp_path / name for name in ("fifo", "directory", "link")]


def test_targets_that_are_no_regular_files_are_refused(tmp_path):
    source = tmp_path / "codes.npy"
    np.save(source, np.arange(100, dtype=np.uint64))
    for path in irregular(tmp_path):
        before = path.lstat().st_ino
        for write in (HammingIndex(np.arange(5, dtype=np.uint64)).save, lambda path: HammingIndex.build(source, path)):
            with pytest.raises(InvalidInput, match="not a regular file"):
                write(path)
        assert path.lstat().st_ino == before
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_of_a_link_the_file_it_names_is_written(tmp_path):
    source, link = tmp_path / "codes.npy", tmp_path / "link"
    np.save(source, np.arange(100, dtype=np.uint64))
    link.symlink_to(tmp_path / "real")
    for write in (HammingIndex(np.arange(5, dtype=np.uint64)).save, lambda path: HammingIndex.build(source, path)):
        write(link)
        assert link.is_symlink()
        assert HammingIndex.open(tmp_path / "real").within == 3


def test_sources_that_are_no_regular_files_are_refused_before_they_are_opened(tmp_path):
    queries = np.arange(5, dtype=np.uint64)
    for path in irregular(tmp_path):
        with pytest.raises(InvalidInput, match="not a regular file"):
            HammingIndex.build(path, tmp_path / "built")
        with pytest.raises(InvalidInput, match="not a regular file"):
            hamming_stream(queries, path, 3)
    for suffix in (".npy", ".parquet"):
        os.mkfifo(tmp_path / f"fifo{suffix}")
        for read in (*READERS, lambda path, _: hamming_stream(queries, path, 3)):
            with pytest.raises(InvalidInput, match="not a regular file"):
                read(tmp_path / f"fifo{suffix}", tmp_path)


@pytest.mark.parametrize(
    ("array", "advice"),
    [
        (np.arange(6).astype(">u8"), r"astype\('<u8'\)"),
        (np.asfortranarray(np.arange(6, dtype=np.uint64).reshape(3, 2)), "ascontiguousarray"),
    ],
)
def test_arrays_in_another_order_are_told_what_to_do(tmp_path, array, advice):
    path = tmp_path / "codes.npy"
    np.save(path, array)
    queries = np.zeros((1, 2) if array.ndim == 2 else 1, np.uint64)
    for read in (
        lambda: HammingIndex.build(path, tmp_path / "built"),
        lambda: likewise.hamming_pairs(path, within=3),
        lambda: hamming_stream(queries, path, 3),
    ):
        with pytest.raises(InvalidInput, match=advice):
            read()


def test_what_goes_wrong_inside_a_room_is_told(monkeypatch):
    monkeypatch.setitem(likewise._HOMES, "sketch", "likewise.broken_room")
    monkeypatch.delitem(vars(likewise), "sketch", raising=False)
    monkeypatch.setattr("importlib.import_module", lambda _: types.SimpleNamespace().inner)
    with pytest.raises(ImportError, match="no attribute 'inner'") as caught:
        likewise.__getattr__("sketch")
    assert isinstance(caught.value.__cause__, AttributeError)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        likewise.__getattr__("nothing")
