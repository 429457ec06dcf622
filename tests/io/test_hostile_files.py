"""Hostile files in place of everything read besides documents: an answer, or one clear line with the file.

Documents themselves are in test_broken.py and test_web_archives.py.
"""

import contextlib
import json
import random
import shutil
import struct
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.cli import main
from likewise.errors import LikewiseError
from likewise.hamming.stream import hamming_stream
from tests.io.files import ROWS, arrow, gzipped, jsonl, parquet
from tests.io.test_broken import BAD_UTF8, cuts, flips, forget_peak, resident_peak

RANDOM = random.Random(5).randbytes(4000)
NPY = b"\x93NUMPY\x01\x00"
ZIP = b"PK\x03\x04"


def npy(header):
    """Return a NumPy file with this header and little else."""
    text = header.encode() + b"\n"
    return NPY + struct.pack("<H", len(text)) + text + bytes(64)


ANYTHING = {
    "nothing": b"",
    "a zero": b"\0",
    "zeros": bytes(10_000),
    "random": RANDOM,
    "utf-16": "a word\n".encode("utf-16"),
    "utf-32": "a word\n".encode("utf-32"),
    "latin": "größe\t1\n".encode("latin-1"),
    "a long line": b"x" * (1 << 20),
    "many lines": b"a\n" * 30_000,
    "tabs": b"\t" * 10_000,
    "no letters": b"\n\n\r\n \t \n",
    "brackets": b"[" * 1_000_000,
    "braces": b'{"a":' * 200_000,
    "a long number": b'{"version": ' + b"9" * 100_000 + b"}",
    "not a number": b'{"version": NaN, "threshold": Infinity}',
    "an exponent": b'{"threshold": 1e999999999}',
    "a list": b"[1, 2, 3]",
    "a string": b'"text"',
    "null": b"null",
    "two values": b"{}{}",
    "an object": b"{}",
    "keys twice": b'{"a": 1, "a": 2, "method": "minhash", "method": "exact"}',
    "a surrogate": b'{"method": "\\ud800"}',
    "controls": b'{"method": "\x1b[2J\\u001b]0;x\\u0007\\u202e"}',
    "wrong types": b'{"method": [], "threshold": {}, "tokens": 5, "shingle": "x", "seed": -1, "weights": true}',
    "parquet": parquet(ROWS),
    "a claim of parquet": b"PAR1" + RANDOM + struct.pack("<I", 2**31) + b"PAR1",
    "arrow": arrow(ROWS, pa.ipc.new_file),
    "a claim of arrow": b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + RANDOM,
    "numpy, 2**60 rows": npy("{'descr': '<u8', 'fortran_order': False, 'shape': (1152921504606846976,)}"),
    "numpy, fewer than none": npy("{'descr': '<u8', 'fortran_order': False, 'shape': (-5,)}"),
    "numpy, objects": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
    "numpy, deep": npy("(" * 60_000),
    "numpy, cut": NPY + b"\xff\xff{",
    "zip": ZIP + RANDOM,
    "gzip": gzipped(jsonl(ROWS)),
    "lines": jsonl(ROWS),
    "HTML": b"<!doctype html><p>404</p>" * 50,
    **{f"bad UTF-8 {bad.hex()}": b"word " + bad + b" more\n" for bad in BAD_UTF8},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a directory with one valid file of every kind."""
    home = tmp_path_factory.mktemp("good")
    (home / "in.jsonl").write_bytes(jsonl(ROWS))
    (home / "stop.txt").write_text("the\nand\n")
    (home / "words.txt").write_text("中文\n文字 5\n")
    (home / "lexicon.tsv").write_text("one\t3\ntwo\t0\n")
    for arguments in (
        ["weights", "in.jsonl", "-o", "table.lww"],
        ["sketch", "in.jsonl", "-o", "sketches.parquet", *SIMHASH],
        ["sketch", "in.jsonl", "-o", "sketches.npy", *SIMHASH],
        ["dedup", "in.jsonl", "-o", "run", "--keep-sketches", "--threshold", "0.6"],
        ["index", "create", "seen.lw", *SIMHASH, "--within", "3"],
        ["index", "add", "seen.lw", "in.jsonl"],
    ):
        ran(home, arguments)
    (home / "recipe.json").write_text(json.dumps(json.loads((home / "run" / "summary.json").read_text())["recipe"]))
    return home


def ran(home, arguments):
    """Return the exit status of a command in a directory."""
    with contextlib.chdir(home):
        try:
            main(arguments)
        except SystemExit as done:
            return done.code or 0
    return 0


SIMHASH = ["--method", "simhash", "--bits", "64"]
DEDUP = ["dedup", "in.jsonl", "-o", "out", "--overwrite"]
# File to replace -> the command that reads it.
READERS = {
    "recipe.json": [*DEDUP, "--recipe", "recipe.json"],
    "table.lww": [*DEDUP, "--weights", "table.lww"],
    "lexicon.tsv": [*DEDUP, "--weights", "lexicon.tsv"],
    "stop.txt": [*DEDUP, "--stop-words", "stop.txt"],
    "words.txt": [*DEDUP, "--tokens", "chinese", "--dictionary", "words.txt"],
    "sketches.npy": ["plan", "--n", "1000", "--bits", "64", "--within", "3", "--sample", "sketches.npy"],
    "run/summary.json": ["report", "run", "-o", "report.html"],
    "run/removed.parquet": ["report", "run", "-o", "report.html"],
    "run/removed.parquet ": ["diff", "run", "whole"],
    "run/summary.json ": [*DEDUP, "--against", "run"],
    "run/kept/in.jsonl": [*DEDUP, "--against", "run"],
    "in.jsonl": ["compare", "in.jsonl", "stop.txt"],
}


@pytest.mark.parametrize("share", [1, pytest.param(9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_read_beside_documents(tmp_path, capfd, made, reader, share):
    """In the fast tests, every ninth file, different ones for each reader."""
    home = tmp_path / "home"
    shutil.copytree(made, home)
    shutil.copytree(made / "run", home / "whole")
    name, command = reader.strip(), READERS[reader]
    assert ran(home, command) == 0, capfd.readouterr()
    capfd.readouterr()
    good = (home / name).read_bytes()
    hostile = dict(ANYTHING)
    hostile |= {f"cut {i}": data for i, data in enumerate(cuts(good, min(12, len(good) - 2), 0))}
    hostile |= {f"bit {i}": data for i, data in enumerate(flips(good, min(24, len(good)), 0, len(good)))}
    first = list(READERS).index(reader)
    chosen = list(hostile.items()) if share == 9 else list(hostile.items())[first % 9 :: 9]
    forget_peak()
    before, refused = resident_peak(), 0
    for what, data in chosen:
        (home / name).write_bytes(data)
        shutil.rmtree(home / "out", ignore_errors=True)
        began = time.process_time()
        status = ran(home, command)
        said = capfd.readouterr().err
        where = f"{reader} {what}: {status} {said[-900:]}"
        assert time.process_time() - began < 30, where
        assert status in (0, 1 if command[0] == "diff" else 2, 2), where
        assert "Traceback" not in said, where
        if status == 2:
            refused += 1
            first = said.splitlines()[0]
            assert first.startswith("error: "), where
            assert "--" in first or name.rsplit("/", 1)[-1] in first or "run" in first, where
            assert "\x1b" not in said, where
            assert not (home / "out").exists(), where
    assert refused >= share, (reader, refused)
    assert before is None or resident_peak() - before < 300 << 20


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file(tmp_path, capfd, made, reader):
    home = tmp_path / "home"
    shutil.copytree(made, home)
    shutil.copytree(made / "run", home / "whole")
    name, command = reader.strip(), READERS[reader]

    def refused():
        status = ran(home, command)
        said = capfd.readouterr().err
        assert status in (1, 2), said
        assert said.splitlines()[-1].startswith("Error: ") or said.startswith("error: "), said
        assert "Traceback" not in said

    (home / name).unlink()
    refused()
    (home / name).symlink_to(name.rsplit("/", 1)[-1])
    refused()
    (home / name).unlink()
    (home / name).mkdir()
    if reader != "in.jsonl":
        refused()


def test_damaged_indexes(tmp_path, capfd, made):
    """With any file of an index damaged: the answers of before, or one clear line."""
    (tmp_path / "ask.jsonl").write_bytes(jsonl(ROWS[:3]))
    files = sorted(path.relative_to(made) for path in (made / "seen.lw").rglob("*") if path.is_file())
    assert len(files) >= 2
    shutil.copytree(made / "seen.lw", tmp_path / "seen.lw")
    query = ["index", "query", "seen.lw", "ask.jsonl"]
    assert ran(tmp_path, query) == 0
    expected = capfd.readouterr().out
    num_cases = 0
    for name in files:
        good = (made / name).read_bytes()
        hostile = [b"", b"\0" * 5000, RANDOM, ANYTHING["parquet"], *cuts(good, 6, 0)] if good else [RANDOM]
        hostile += flips(good, min(10, len(good)), 0, len(good))
        for data in hostile:
            num_cases += 1
            shutil.rmtree(tmp_path / "seen.lw")
            shutil.copytree(made / "seen.lw", tmp_path / "seen.lw")
            (tmp_path / name).write_bytes(data)
            status = ran(tmp_path, query)
            said = capfd.readouterr()
            where = f"{name} {data[:40]!r} {len(data)} of {len(good)}: {status} {said.err[-900:]}"
            assert "Traceback" not in said.err, where
            if status == 0:
                assert said.out == expected, where
            else:
                assert status in (1, 2), where
                assert said.err.startswith("error: "), where
                assert "seen.lw" in said.err, where
    assert num_cases >= 20


@pytest.mark.parametrize(
    "recipe", [b"", b"\xff", b"[" * 100_000, b"{}", b'{"method": "simhash", "bits": 64, "x": 1}', b"null"]
)
def test_sketches_with_hostile_recipes(tmp_path, recipe):
    path = tmp_path / "in.parquet"
    table = pa.table({"sketch": pa.array([1, 2, 3], pa.int64()), "is_empty": pa.array([False] * 3)})
    pq.write_table(table.replace_schema_metadata({"likewise.recipe": recipe}), path)
    queries = np.zeros(1, np.uint64)
    for read in (
        lambda: likewise.HammingIndex.build(path, tmp_path / "out.lwh", within=3),
        lambda: list(hamming_stream(path, queries, within=3)),
        lambda: likewise.hamming_pairs(path, within=3),
    ):
        with pytest.raises(LikewiseError, match=r"in\.parquet"):
            read()
