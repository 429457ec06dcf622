"""At least thirty broken inputs of each format: exit 2, one clear line with the file, no file under a final name.

Each row of a table is (bytes of the file, row that the message names or None, further arguments).
"""

import contextlib
import json
import random
import resource
import struct
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise import _native
from likewise.cli import main
from tests.io.files import ROWS, arrow, csv_bytes, gzipped, jsonl, parquet, table, zstd

GOOD = jsonl(ROWS)
RANDOM = random.Random(3).randbytes(3000)
BAD_UTF8 = [b"\xff", b"\xc0\x80", b"\xe7\x8c", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xf0\x9f\x98", b"\xfe"]
LIMIT = ("--max-document", "1000")


def cuts(data, num_cuts, first=1):
    """Return the file cut at `num_cuts` places."""
    return [data[: first + (len(data) - first - 1) * i // num_cuts] for i in range(num_cuts)]


def flips(data, num_flips, low, high):
    """Return the file with one bit flipped, at `num_flips` places from `low` to `high`."""
    made = []
    for i in range(num_flips):
        at = low + (high - low - 1) * i // num_flips
        made.append(data[:at] + bytes([data[at] ^ (1 << i % 8)]) + data[at + 1 :])
    return made


def broken_jsonl():
    last = GOOD.rindex(b"\n", 0, len(GOOD) - 1) + 1
    yield from ((data, len(ROWS), ()) for data in cuts(GOOD[:-2], 8, last + 1))
    lines = [
        '{"id":"x"}',
        '{"id":"x","text":null}',
        '{"text":5}',
        '{"text":[1]}',
        '{"text":[]}',
        '{"text":{"a":"b"}}',
        '{"text":true}',
    ]
    lines += [
        '["text"]',
        '"text"',
        "5",
        "text",
        "{'text':'a'}",
        '{"text":"a",}',
        '{"text":"a"}{"text":"b"}',
        '{"text":"\\x"}',
    ]
    lines += [
        '{"text":"\\ud8"}',
        '{"text":"a","id":1.5}',
        '{"text":"a","id":[]}',
        '{"text":"a","id":false}',
        "[" * 100_000,
    ]
    lines += ["\0", '{"text":"' + "long " * 1000 + '"}']
    yield from ((GOOD + line.encode() + b"\n" + GOOD[:0], len(ROWS) + 1, LIMIT) for line in lines)
    yield from ((GOOD + b'{"text":"a' + bad + b'b"}\n', len(ROWS) + 1, ()) for bad in BAD_UTF8)
    yield GOOD + GOOD[: GOOD.index(b"\n")], len(ROWS) + 1, ()
    yield GOOD.decode().encode("utf-16"), 1, ()
    yield RANDOM.replace(b"\n", b""), 1, ()
    yield csv_bytes(ROWS), 1, ()
    yield GOOD, 1, ("--text-field", "text.inner")
    yield GOOD, 1, ("--id-field", "url")


def broken_packed(pack):
    many = jsonl([{"id": str(i), "text": random.Random(i).randbytes(20).hex()} for i in range(300)])
    packed = pack(many)
    yield from ((data, None, ()) for data in cuts(packed, 14))
    yield b"", None, ()
    yield packed + b"garbage", None, ()
    yield packed + RANDOM, None, ()
    yield packed + GOOD, None, ()
    yield many, None, ()
    yield RANDOM, None, ()
    yield pack(many), None, ("--max-unpacked", "1000")
    for line in (b"{", b'{"text":5}', b"\xff", b'{"text":null}', b'{"text":"' + b"x" * 2000 + b'"}'):
        yield pack(GOOD + line + b"\n"), len(ROWS) + 1, LIMIT
    yield pack(GOOD + GOOD), len(ROWS) + 1, ()


def broken_gzip():
    yield from broken_packed(gzipped)
    packed = gzipped(GOOD)
    yield from ((data, None, ()) for data in flips(packed, 12, 12, len(packed) // 3))
    yield packed[:-1] + bytes([packed[-1] ^ 1]), None, ()


def broken_zstd(tmp_path):
    yield from broken_packed(zstd)
    # With the checksum that Likewise writes, every flipped bit of the data is detected.
    (tmp_path / "plain").write_bytes(GOOD * 20)
    size = np.array([len(GOOD) * 20], np.uint64)
    _native.pack_lines(
        str(tmp_path / "plain"), str(tmp_path / "packed"), np.zeros(1, np.uint64), size, codec="zstd", threads=1
    )
    packed = (tmp_path / "packed").read_bytes()
    yield from ((data, None, ("--duplicate-ids", "allow")) for data in flips(packed, 12, 8, len(packed)))
    # A frame that claims a window of 2 GB.
    yield b"\x28\xb5\x2f\xfd\x00\xa8" + RANDOM, None, ()


def broken_csv(delimiter=","):
    good = csv_bytes(ROWS, delimiter)
    mark = delimiter.encode()
    row = len(ROWS) + 2
    last = csv_bytes([{"id": "z", "text": 'the "last", one\nof all', "n": "1"}], delimiter).split(b"\r\n", 1)[1]
    yield from ((good + data, row, ()) for data in cuts(last[:-4], 12, 1))
    head = mark.join([b"id", b"text", b"n"]) + b"\n"
    for record in (b"1", mark.join([b"1", b"2"]), mark * 3, mark.join([b"1", b'"a"" open', b"n"]), b'"'):
        yield good + record + b"\n", row, ()
    yield from ((good + mark.join([b"x", b"a" + bad, b"n"]) + b"\r\n", row, ()) for bad in BAD_UTF8)
    yield good + mark.join([b"\xff", b"a", b"n"]), row, ()
    yield good + mark.join([b"x", b"long " * 1000, b"n"]), row, LIMIT
    yield good + mark.join([b"x", b'"' + b"never closed\n" * 1000]), row, LIMIT
    yield good + mark.join([b"", b"a", b"n"]), row, ("--id-field", "id")
    yield good + mark.join([b"a", b"again", b"n"]), row, ()
    yield good, 1, ("--text-field", "body")
    yield good, 1, ("--id-field", "url")
    yield good, 1, ("--delimiter", ";")
    yield head.replace(b"n\n", b"text\n") + good, 1, ()
    yield b'"id' + mark + b"text\n" * 100, None, ()
    yield good.decode().encode("utf-16"), 1, ()
    yield RANDOM, None, ()
    yield GOOD, 1, ()
    yield b"\0" * 1000, 1, ()


def tables():
    """Yield invalid tables: (table, row or None, further arguments)."""
    good = table(ROWS)
    size = len(ROWS)

    def column(values, name="text"):
        return good.set_column(good.schema.get_field_index(name), name, values)

    yield good.drop(["text"]), None, ()
    yield column(pa.array(range(size))), None, ()
    yield column(pa.array([[x] for x in range(size)])), None, ()
    yield column(pa.array([x.encode() for x in "abcdef"])), None, ()
    yield column(pa.array([1.5] * size)), None, ()
    yield column(pa.array([True] * size)), None, ()
    yield column(pa.nulls(size)), None, ()
    for row in (0, 3, 5):
        yield column(pa.array([None if i == row else str(i) for i in range(size)])), row + 1, ()
    yield column(pa.array([None if i == 4 else str(i) for i in range(size)]).dictionary_encode()), 5, ()
    for row, bad in enumerate(BAD_UTF8[:6]):
        values = [b"a" + bad if i == row else b"fine" for i in range(size)]
        yield column(pa.array(values, pa.binary()).view(pa.string())), row + 1, ()
    yield column(pa.array(["long " * 1000 if i == 2 else str(i) for i in range(size)])), 3, LIMIT
    yield column(pa.array([1.5] * size), "id"), None, ()
    yield column(pa.array([["x"]] * size), "id"), None, ()
    yield column(pa.array([None, *"bcdef"]), "id"), 1, ("--id-field", "id")
    yield column(pa.array(list("abcdea")), "id"), 6, ()
    yield good, None, ("--text-field", "extra.inner")
    yield good, None, ("--id-field", "url")


def broken_parquet():
    good = parquet(ROWS, write_page_checksum=True)
    yield from ((data, None, ()) for data in cuts(good, 12, 0))
    yield RANDOM, None, ()
    yield good[:-4] + b"PAR2", None, ()
    yield good[:-8] + struct.pack("<I", 2**31) + b"PAR1", None, ()
    yield good[:-8] + struct.pack("<I", 3) + b"PAR1", None, ()
    column = pq.ParquetFile(pa.BufferReader(good)).metadata.row_group(0).column(1)
    start = column.dictionary_page_offset or column.data_page_offset
    end = start + column.total_compressed_size
    yield good[: end - 20] + RANDOM[:20] + good[end:], None, ()
    for made, row, arguments in tables():
        sink = pa.BufferOutputStream()
        pq.write_table(made, sink)
        yield sink.getvalue().to_pybytes(), row, arguments


def broken_arrow(make):
    good = arrow(ROWS, make)
    yield from ((data, None, ()) for data in cuts(good[:-8], 13, 1))
    yield RANDOM, None, ()
    yield b"ARROW1\0\0" + RANDOM, None, ()
    yield b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + RANDOM, None, ()
    yield b"\xff\xff\xff\xff" + struct.pack("<i", -5) + RANDOM, None, ()
    yield b"FEA1" + RANDOM, None, ()
    for made, row, arguments in tables():
        sink = pa.BufferOutputStream()
        with make(sink, made.schema) as writer:
            writer.write_table(made, max_chunksize=4)
        yield sink.getvalue().to_pybytes(), row, arguments


def broken_text():
    for bad in BAD_UTF8:
        for data in (bad, b"some words " + bad, b"line\n" * 3000 + bad + b" more"):
            yield data, 1, ()
    yield from ((data, 1, ()) for data in (b"\0", b"a\0b", b"words\n" * 9999 + b"\0", RANDOM, "text".encode("utf-16")))
    yield "text".encode("utf-16-be"), 1, ()
    yield b"long " * 1000, 1, LIMIT


CASES = {
    "in.jsonl": lambda _: broken_jsonl(),
    "in.jsonl.gz": lambda _: broken_gzip(),
    "in.jsonl.zst": broken_zstd,
    "in.csv": lambda _: broken_csv(),
    "in.tsv": lambda _: broken_csv("\t"),
    "in.parquet": lambda _: broken_parquet(),
    "stream.arrow": lambda _: broken_arrow(pa.ipc.new_stream),
    "file.feather": lambda _: broken_arrow(pa.ipc.new_file),
    "in.txt": lambda _: broken_text(),
}


def resident_peak():
    """Return the peak resident memory since :func:`forget_peak`, in bytes; None if the system does not report it."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


def forget_peak():
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


@pytest.mark.parametrize("name", CASES)
def test_broken_inputs_are_refused(tmp_path, capfd, name):
    (tmp_path / "scratch").mkdir()
    num_cases = 0
    forget_peak()
    before = resident_peak()
    for number, (data, row, arguments) in enumerate(CASES[name](tmp_path / "scratch")):
        num_cases += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).write_bytes(data)
        with pytest.raises(SystemExit) as done:
            main(["dedup", str(folder / name), "-o", str(folder / "out"), *arguments])
        said = capfd.readouterr()
        where = f"case {number} of {name} {arguments} {data[:60]!r}: {said.err[-800:]}"
        assert (done.value.code, said.out) == (2, ""), where
        first = said.err.splitlines()[0]
        assert first.startswith("error: "), where
        assert name in first, where
        assert row is None or f"{name}:{row}: " in first, where
        assert not (folder / "out").exists(), where
    assert num_cases >= 30, num_cases
    # All inputs are small, whatever sizes they claim; libraries loaded on the way are counted too.
    assert before is None or resident_peak() - before < 150 << 20


@pytest.mark.parametrize("name", ["in.parquet", "stream.arrow", "file.feather"])
def test_turned_bits_never_crash(tmp_path, capfd, name):
    """Without checksums some flips are harmless: the run succeeds, or rejects the file with the proper error."""
    make = {"in.parquet": parquet, "stream.arrow": arrow, "file.feather": lambda rows: arrow(rows, pa.ipc.new_file)}[
        name
    ]
    good = make(ROWS)
    refused = 0
    for number, data in enumerate(flips(good, 60, 0, len(good))):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).write_bytes(data)
        with pytest.raises(SystemExit) as done:
            main(["dedup", str(folder / name), "-o", str(folder / "out"), "--quiet"])
        said = capfd.readouterr().err
        assert done.value.code in (0, 2), (number, said[-800:])
        assert "Traceback" not in said
        assert (folder / "out").exists() == (done.value.code == 0)
        refused += done.value.code == 2
    assert refused > 6


@pytest.mark.parametrize("name", ["bomb.jsonl.gz", "bomb.jsonl.zst"])
def test_bombs_are_refused_with_the_figure(tmp_path, capfd, name):
    codec = pa.Codec("gzip" if name.endswith("gz") else "zstd")
    # Ten members or frames of 20 MiB: 200 MiB from data compressed once.
    (tmp_path / name).write_bytes(10 * codec.compress(bytes(20 << 20), asbytes=True))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    with pytest.raises(SystemExit) as done:
        main(["dedup", str(tmp_path / name), "-o", str(tmp_path / "out")])
    said = capfd.readouterr().err
    assert done.value.code == 2
    assert "over 250 times" in said
    assert not (tmp_path / "out").exists()
    assert time.process_time() - began < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    # If allowed, it is read as one line that is not a document.
    with pytest.raises(SystemExit):
        main(["dedup", str(tmp_path / name), "-o", str(tmp_path / "out"), "--max-unpack-ratio", "100000"])
    assert f"{name}:1: " in capfd.readouterr().err


def test_a_cut_file_says_what_was_read(tmp_path, capfd):
    data = zstd(b"".join(json.dumps({"text": f"row {i}"}).encode() + b"\n" for i in range(1000)))
    (tmp_path / "in.jsonl.zst").write_bytes(data[:-10])
    with pytest.raises(SystemExit):
        main(["dedup", str(tmp_path / "in.jsonl.zst"), "-o", str(tmp_path / "out")])
    said = capfd.readouterr().err
    assert "cut" in said
    assert f"at byte {len(data) - 10}; " in said


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--format", "xml"], "xml"),
        (["--delimiter", ";;"], "delimiter"),
        (["--delimiter", '"'], "delimiter"),
        (["--max-unpack-ratio", "0"], "--max-unpack-ratio"),
        (["--max-unpacked", "many"], "--max-unpacked"),
    ],
)
def test_options_are_checked(tmp_path, capfd, arguments, word):
    (tmp_path / "in.jsonl").write_bytes(GOOD)
    with pytest.raises(SystemExit) as done:
        main(["dedup", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out"), *arguments])
    assert done.value.code == 2
    assert word in capfd.readouterr().err
