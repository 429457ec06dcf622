"""Queries against a file read once: exact for every kind of file, resumable, and bound to its original arguments."""

import itertools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.hamming import fingerprints
from likewise.hamming import stream as module
from likewise.hamming.stream import hamming_stream

KINDS = ("flat", "npy", "parquet")


def codes(rng, num, bits):
    """Return fingerprints near few centers, so that every radius finds some."""
    num_words = -(-bits // 64)
    words = rng.integers(0, 2**64, (num, num_words), dtype=np.uint64)
    centers = rng.integers(0, num, num) % 40
    near = rng.random(num) < 0.5
    words[near] = words[centers[near]]
    for _ in range(10):
        at = rng.integers(0, bits, num)
        flip = rng.random(num) < 0.3
        words[np.arange(num), at // 64] ^= np.where(flip, np.uint64(1) << (at % 64).astype(np.uint64), np.uint64(0))
    if bits % 64:
        words[:, -1] &= np.uint64(2 ** (bits % 64) - 1)
    return words if num_words > 1 else words[:, 0]


def expected(queries, stream, within):
    """Return every (query, row, distance), by comparing all."""
    a, b = queries.reshape(len(queries), -1), stream.reshape(len(stream), -1)
    distances = np.bitwise_count(a[:, None, :] ^ b[None, :, :]).sum(axis=2)
    of_query, row = np.nonzero(distances <= within)
    return list(zip(of_query.tolist(), row.tolist(), distances[of_query, row].tolist(), strict=True))


def listed(matches):
    offsets, rows, distances = matches
    of_query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return list(zip(of_query.tolist(), rows.tolist(), distances.tolist(), strict=True))


def store(stream, kind, folder, bits):
    path = folder / {"flat": "codes.bin", "npy": "codes.npy", "parquet": "codes.parquet"}[kind]
    if kind == "flat":
        stream.astype("<u8").tofile(path)
    elif kind == "npy":
        np.save(path, stream)
    else:
        recipe = likewise.Recipe.simhash(bits=bits)
        likewise.Sketches(stream, recipe, np.zeros(len(stream), bool), np.ones(len(stream), np.uint32)).write(path)
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", [32, 64, 128, 256])
def test_every_file_gives_what_brute_force_gives(tmp_path, kind, bits):
    rng = np.random.default_rng(bits)
    stream = codes(rng, 3000, bits)
    queries = codes(rng, 300, bits)
    queries[:150] = stream[rng.integers(0, 3000, 150)]
    path = store(stream, kind, tmp_path, bits)
    for within in (0, 3, 8, bits // 4):
        matches = expected(queries, stream, within)
        assert len(matches) >= 150
        assert listed(hamming_stream(queries, path, within, bits=bits)) == matches
    out = tmp_path / "pairs.parquet"
    assert hamming_stream(queries, path, 8, bits=bits, out=out, threads=1) == len(expected(queries, stream, 8))
    table = pq.read_table(out)
    found = zip(*(table.column(name).to_pylist() for name in ("query_row", "row", "distance")), strict=True)
    assert sorted(found) == expected(queries, stream, 8)
    assert table.column("row").to_pylist() == sorted(table.column("row").to_pylist())
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def test_empty_texts_match_empty_texts(tmp_path):
    recipe = likewise.Recipe.simhash(shingle=1)
    texts = ["one two three", "", "four five six seven", "", "one two three"]
    likewise.sketch(texts, recipe).write(tmp_path / "s.parquet")
    queries = likewise.sketch(["", "one two three", ""], recipe)
    matches = listed(hamming_stream(queries, tmp_path / "s.parquet", 2))
    assert matches == [(0, 1, 0), (0, 3, 0), (1, 0, 0), (1, 4, 0), (2, 1, 0), (2, 3, 0)]
    out = tmp_path / "out.parquet"
    assert hamming_stream(queries, tmp_path / "s.parquet", 2, out=out, query_ids=["a", "b", "a"]) == 6
    assert pq.read_table(out).column("query_id").to_pylist() == ["b", "a", "a", "a", "a", "b"]


class Stopped(Exception):
    pass


def test_a_stopped_run_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    stream = codes(rng, 20_000, 64)
    queries = stream[:200].copy()
    path = store(stream, "flat", tmp_path, 64)
    monkeypatch.setattr(fingerprints, "BLOCK_ROWS", 500)
    monkeypatch.setattr(module, "_PAIRS_A_STEP", 1000)
    whole, out = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    num_pairs = hamming_stream(queries, path, 4, out=whole)
    attempts = 0
    done = []
    for _ in range(200):
        countdown = itertools.count(int(rng.integers(1, 12)), -1)

        def stop(event, countdown=countdown):
            if isinstance(event, likewise.progress.StageAdvanced):
                done.append(event.done)
                if next(countdown) == 0:
                    raise Stopped

        try:
            assert hamming_stream(queries, path, 4, out=out, progress=stop) == num_pairs
        except Stopped:
            attempts += 1
            # What a kill may leave: a partial part, and partial progress.
            work = tmp_path / ".out.parquet.unfinished"
            (work / "part-009999.parquet").write_bytes(b"half")
            (work / "progress.json.unfinished").write_bytes(b"{")
            continue
        break
    assert attempts > 2
    assert len(done) < 40 * (attempts + 1)
    assert pq.read_table(out).equals(pq.read_table(whole))


def test_other_input_is_refused_by_name(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    stream = codes(rng, 2000, 64)
    path = store(stream, "flat", tmp_path, 64)
    monkeypatch.setattr(fingerprints, "BLOCK_ROWS", 500)
    out = tmp_path / "out.parquet"

    def stop(event):
        if isinstance(event, likewise.progress.StageAdvanced):
            raise Stopped

    with pytest.raises(Stopped):
        hamming_stream(stream[:50], path, 3, out=out, progress=stop)
    with pytest.raises(RecipeMismatch, match="within"):
        hamming_stream(stream[:50], path, 4, out=out)
    with pytest.raises(RecipeMismatch, match="queries"):
        hamming_stream(stream[1:51], path, 3, out=out)
    changed = stream.copy()
    changed[1999] ^= np.uint64(1)
    changed.tofile(path)
    with pytest.raises(RecipeMismatch, match=r"file_digest.*file_modified_ns"):
        hamming_stream(stream[:50], path, 3, out=out)
    out.write_bytes(b"")
    with pytest.raises(InvalidInput, match="already exists"):
        hamming_stream(stream[:50], path, 3, out=out)


def test_what_does_not_fit_is_refused(tmp_path, monkeypatch):
    stream = np.arange(999, dtype=np.uint64)
    path = store(stream, "flat", tmp_path, 64)
    with pytest.raises(InvalidInput, match="not a multiple of the fingerprint size"):
        hamming_stream(np.zeros((2, 2), np.uint64), path, 3)
    with pytest.raises(InvalidParameter, match="within"):
        hamming_stream(stream, path, 65)
    with pytest.raises(InvalidParameter, match="queries"):
        hamming_stream(stream.astype(np.float64), path, 3)
    with pytest.raises(InvalidInput, match="shape"):
        hamming_stream(np.zeros((2, 2), np.uint64), store(stream, "npy", tmp_path, 64), 3)
    with pytest.raises(InvalidInput, match="words"):
        hamming_stream(np.zeros((2, 2), np.uint64), store(stream, "parquet", tmp_path, 64), 3)
    sketches = likewise.sketch(["a b c"], likewise.Recipe.simhash(bits=64, shingle=7))
    with pytest.raises(RecipeMismatch, match="shingle"):
        hamming_stream(sketches, tmp_path / "codes.parquet", 3)
    wide = stream.copy()
    wide[5] = 2**40
    path = store(wide, "flat", tmp_path, 64)
    with pytest.raises(InvalidParameter, match="row 5"):
        hamming_stream(stream, path, 3, bits=32)
    monkeypatch.setattr(module, "_MOST_PAIRS", 5)
    with pytest.raises(InvalidParameter, match="Parquet"):
        hamming_stream(stream, path, 3, bits=64)


_KILLED = """
import sys, numpy as np
from likewise.hamming import fingerprints, stream as module
fingerprints.BLOCK_ROWS = 2000
module._PAIRS_A_STEP = 50
folder = sys.argv[1]
print("begun", flush=True)
module.hamming_stream(np.load(folder + "/queries.npy"), folder + "/codes.bin", 6, out=folder + "/out.parquet")
print("done", flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_time_it_ends_the_same(tmp_path):
    rng = np.random.default_rng(4)
    stream = codes(rng, 400_000, 64)
    queries = stream[::4000].copy()
    store(stream, "flat", tmp_path, 64)
    np.save(tmp_path / "queries.npy", queries)
    num_pairs = hamming_stream(queries, tmp_path / "codes.bin", 6, out=tmp_path / "whole.parquet")
    num_kills = num_attempts = 0
    while True:
        num_attempts += 1
        command = [sys.executable, "-c", _KILLED, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            first = process.stdout.readline()
            time.sleep(float(rng.uniform(0.05, 0.5 + num_attempts / 5)))
            os.kill(process.pid, signal.SIGKILL)
            last = process.stdout.read()
        assert first == "begun\n"
        if "done" in last or (tmp_path / "out.parquet").exists():
            break
        num_kills += 1
    assert num_kills > 0
    table = pq.read_table(tmp_path / "out.parquet")
    assert len(table) == num_pairs
    assert table.equals(pq.read_table(tmp_path / "whole.parquet"))


def test_the_recipe_beside_an_array_counts(tmp_path):
    recipe = likewise.Recipe.simhash(bits=64, shingle=1)
    texts = ["one two three", "", "four five six seven", "", "one two three"]
    sketches = likewise.sketch(texts, recipe)
    path = tmp_path / "s.npy"
    sketches.write(path)
    queries = likewise.sketch(["", "one two three", ""], recipe)
    expected = [(0, 1, 0), (0, 3, 0), (1, 0, 0), (1, 4, 0), (2, 1, 0), (2, 3, 0)]
    assert listed(hamming_stream(queries, path, 2)) == expected
    others = likewise.sketch(["one"], likewise.Recipe.simhash(bits=64, shingle=2))
    with pytest.raises(RecipeMismatch, match="shingle"):
        hamming_stream(others, path, 2)
    narrow = np.zeros(1, np.uint64)
    with pytest.raises(InvalidInput, match="have 64 bits, but the queries have 32"):
        hamming_stream(narrow, path, 2, bits=32)
    beside = tmp_path / "s.npy.recipe.json"
    beside.write_text("{}")
    with pytest.raises(InvalidInput, match=r"recipe\.json"):
        hamming_stream(queries, path, 2)


def test_another_recipe_beside_the_array_begins_anew(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    stream = codes(rng, 3000, 64)
    path, out = tmp_path / "s.npy", tmp_path / "out.parquet"
    is_empty = np.arange(3000) % 100 == 0
    recipe = likewise.Recipe.simhash(bits=64)
    likewise.Sketches(stream, recipe, is_empty, np.ones(3000, np.uint32)).write(path)
    monkeypatch.setattr(fingerprints, "BLOCK_ROWS", 500)

    def stop(event):
        if isinstance(event, likewise.progress.StageAdvanced):
            raise Stopped

    with pytest.raises(Stopped):
        hamming_stream(stream[:9], path, 3, out=out, progress=stop)
    beside = tmp_path / "s.npy.recipe.json"
    kept = beside.read_text()
    beside.unlink()
    with pytest.raises(RecipeMismatch, match="file_empty_rows"):
        hamming_stream(stream[:9], path, 3, out=out)
    beside.write_text(kept)
    assert hamming_stream(stream[:9], path, 3, out=out) > 0


@pytest.mark.parametrize("name", ["pairs.csv", "pairs", "pairs.parquet.gz"])
def test_pairs_are_written_as_parquet_or_not_at_all(tmp_path, name):
    np.arange(9, dtype=np.uint64).tofile(tmp_path / "codes")
    with pytest.raises(InvalidInput, match=r"must end in \.parquet"):
        hamming_stream(np.arange(9, dtype=np.uint64), tmp_path / "codes", 2, out=tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == ["codes"]
