"""Zstandard files of one or many frames give the same lines, decompressed in parallel or sequentially."""

import json
import struct

import pyarrow.parquet as pq
import pytest

from likewise.batch.files import dedup_files
from likewise.errors import LikewiseError
from likewise.job.reading import FileRun
from tests.golden.texts import made_up
from tests.io.files import unpacked
from tests.recipes import RECIPES

zstandard = pytest.importorskip("backports.zstd")

LINES = b"".join(
    json.dumps({"id": i, "text": made_up(60, i % 400) + " " + made_up(3, i)}).encode() + b"\n" for i in range(1200)
)
SKIPPED = struct.pack("<II", 0x184D2A53, 5) + b"notes"
CHECKSUM = {zstandard.CompressionParameter.checksum_flag: 1}


def parts(size):
    """Return the lines cut every `size` bytes."""
    return [LINES[at : at + size] for at in range(0, len(LINES), size)]


def frames(size):
    """Return a frame for each part, with size and checksum."""
    return [zstandard.compress(part, options=CHECKSUM) for part in parts(size)]


def of_unknown_size(part):
    """Return a frame that does not state its content size."""
    compressor = zstandard.ZstdCompressor()
    return compressor.compress(part) + compressor.flush()


def kinds():
    """Return names and bytes of files that contain the same lines."""
    many, empty = frames(7001), zstandard.compress(b"")
    return {
        "one frame": zstandard.compress(LINES),
        "one frame of unknown size": of_unknown_size(LINES),
        "many frames": b"".join(many),
        "frames of a few bytes": b"".join(frames(97)),
        "frames, skipped and empty ones": SKIPPED + (SKIPPED + empty).join(many) + SKIPPED,
        "the second of unknown size": many[0] + of_unknown_size(LINES[7001:20000]) + zstandard.compress(LINES[20000:]),
        "the last of unknown size": b"".join(many[:-1]) + of_unknown_size(parts(7001)[-1]),
    }


def answer(path, out, threads):
    """Return the kept bytes, and which documents were removed for which others."""
    dedup_files(path, out, RECIPES["minhash"], run=FileRun(threads=threads))
    rows = pq.read_table(out / "removed.parquet", columns=["doc_id", "kept_id", "offset", "similarity"]).to_pylist()
    return unpacked(out / "kept" / path.name), rows


@pytest.mark.parametrize("kind", kinds())
def test_however_it_is_cut_into_frames(tmp_path, kind):
    plain, packed = tmp_path / "in.jsonl", tmp_path / "in.jsonl.zst"
    plain.write_bytes(LINES)
    packed.write_bytes(kinds()[kind])
    expected = answer(plain, tmp_path / "plain", 1)
    assert len(expected[1]) > 100
    for threads in (1, 3):
        assert answer(packed, tmp_path / str(threads), threads) == expected


@pytest.mark.parametrize("kind", kinds())
def test_a_cut_anywhere_is_told(tmp_path, kind):
    data = kinds()[kind]
    path = tmp_path / "in.jsonl.zst"
    # Inside the last frame, inside a header, in the middle; cut at the end of a frame, the file is just a shorter one.
    ends = {len(data) - 1, len(data) * 2 // 3, len(data) // 3 + 1} - {len(SKIPPED)}
    for end in sorted(ends):
        path.write_bytes(data[:end])
        with pytest.raises(LikewiseError, match=r"the file is cut|JSON"):
            dedup_files(path, tmp_path / "out", run=FileRun(threads=3))
        assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.parametrize("number", [0, 3, -1])
def test_damage_in_any_frame_is_told(tmp_path, number):
    many = frames(7001)
    at = len(many[number]) // 2
    many[number] = many[number][:at] + bytes([many[number][at] ^ 4]) + many[number][at + 1 :]
    path = tmp_path / "in.jsonl.zst"
    path.write_bytes(b"".join(many))
    with pytest.raises(LikewiseError, match="damaged"):
        dedup_files(path, tmp_path / "out", run=FileRun(threads=3))


def test_a_bound_of_memory_bounds_the_threads_that_unpack():
    recipe = RECIPES["minhash"].resolve()
    threads = [FileRun(threads=16, memory_bytes=m).read_rules(recipe).threads for m in (None, "256MB", "1GB", "64GB")]
    assert threads == [16, 2, 7, 16]
