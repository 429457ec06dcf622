"""A file gets its name only when complete, even if others write one of that name."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import likewise
from likewise.hamming import pairs as hamming
from likewise.io.output.whole import WholeFile


def test_writers_of_one_target_never_share_a_file(tmp_path):
    target = tmp_path / "pairs.tsv"
    wholes = [WholeFile(target) for _ in range(8)]
    texts = [f"{number}\n" * 10_000 for number in range(8)]

    def write(whole, text):
        whole.unfinished.write_text(text)
        whole.finish()
        whole.discard()

    threads = [threading.Thread(target=write, args=pair) for pair in zip(wholes, texts, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text() in texts
    assert os.listdir(tmp_path) == ["pairs.tsv"]


def test_what_the_dead_left_goes_and_what_the_living_write_stays(tmp_path):
    target = tmp_path / "pairs.tsv"
    code = "import os, sys; from pathlib import Path; from likewise.io.output.whole import WholeFile\n"
    code += "WholeFile(Path(sys.argv[1])).unfinished.write_text('left'); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code, target], check=False).returncode == 9
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".pairs.tsv.")
    assert left.endswith(".unfinished")
    others = [".pairs.tsv.bak.unfinished", ".other.tsv.4-0123456789.unfinished"]
    for name in others:
        (tmp_path / name).touch()
    living = WholeFile(target)
    living.unfinished.write_text("living")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, living.unfinished.name])
    second = WholeFile(target)
    second.unfinished.write_text("second")
    assert living.unfinished.exists()
    second.discard()
    living.finish()
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "pairs.tsv"])
    assert target.read_text() == "living"


@pytest.mark.parametrize("name", ["n" * 245 + ".parquet", "ä" * 120 + ".npy"])
def test_long_names(tmp_path, name):
    sketches = likewise.sketch(["one two three", "four"], likewise.Recipe.simhash())
    if name.endswith(".npy"):
        whole = WholeFile(tmp_path / name)
        whole.unfinished.touch()
        whole.finish()
    else:
        sketches.write(tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_a_file_that_grows_while_it_is_joined_is_told(tmp_path, monkeypatch):
    codes = np.arange(5000, dtype=np.uint64) << np.uint64(8)
    np.save(tmp_path / "codes.npy", codes)
    native = hamming._native

    def growing(*given, **options):
        with (tmp_path / "codes.npy").open("ab") as file:
            file.write(bytes(8))
        return native.stream_joined_files(*given, **options)

    class Growing:
        stream_joined_files = staticmethod(growing)

        def __getattr__(self, name):
            return getattr(native, name)

    out = tmp_path / "pairs.parquet"
    mapped = np.load(tmp_path / "codes.npy", mmap_mode="r")
    assert likewise.hamming_pairs(mapped, within=1, out=out, memory="17MB").num_pairs > 0
    monkeypatch.setattr(hamming, "_native", Growing())
    with pytest.raises(likewise.LikewiseError, match="changed during the read"):
        likewise.hamming_pairs(mapped, within=1, out=tmp_path / "others.parquet", memory="17MB")
    assert sorted(os.listdir(tmp_path)) == ["codes.npy", "pairs.parquet"]


def test_an_interrupt_behind_the_close_closes_nothing_else(tmp_path, monkeypatch):
    whole = WholeFile(tmp_path / "out")
    whole.unfinished.write_bytes(b"complete")
    close, closed = os.close, []

    def interrupted(file):
        close(file)
        closed.append(file)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", interrupted)
        with pytest.raises(KeyboardInterrupt):
            whole.finish()
    # The number is reused for another file.
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    assert other == closed[0]
    whole.discard()
    os.write(other, b"still open")
    os.close(other)
