"""No row is lost silently: each input line is kept, removed, bad or blank, and many bad rows are an error."""

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import random

import pandas as pd
import pytest

from likewise import Recipe, dedup_files
from likewise.batch.pair_files import pair_files
from likewise.batch.parts import PartRules, dedup_parts
from likewise.batch.read import ingest
from likewise.batch.read.ingest import weigh_files
from likewise.cli.dedup import summary_lines
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.lines import packed as packed_files
from likewise.io.lines.csv import shows_quotes
from likewise.io.source.source import bad_row_limit
from likewise.job.reading import FileRun
from tests.command import likewise_command
from tests.io.files import jsonl, zstd
from tests.io.files import unpacked as unpacked_file


def bzip2(data):
    """Return data compressed in blocks of 100 KB."""
    return bz2.compress(data, 1)


# How files are compressed, and their extensions.
PACKS = {gzip.compress: "gz", zstd: "zst", bzip2: "bz2", lzma.compress: "xz"}

ROWS = 10_000


def text(i):
    return f"row {i} of its own {i * 7919 % 10007} {i * 104729 % 99991}"


def errors(out):
    path = out / "errors.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def summary_of(tmp_path, name, data, on_error="skip", **options):
    (tmp_path / name).write_bytes(data)
    run = FileRun(on_error=on_error, **options)
    return dedup_files(tmp_path / name, tmp_path / "out", Recipe.exact(), run=run, overwrite=True)


def test_an_xz_dictionary_above_the_limit_is_not_called_damage(tmp_path, monkeypatch):
    monkeypatch.setattr(packed_files, "_MOST_MEMORY", 1 << 20)
    for on_error in ("fail", "skip"):
        with pytest.raises(InvalidInput, match=r"a\.jsonl\.xz: decompression needs more than 1 MiB .*; compress"):
            summary_of(tmp_path, "a.jsonl.xz", lzma.compress(jsonl([text(1)])), on_error)


def csv_rows(*bad, between=","):
    lines = [f"{i}{between}{text(i)}\n" for i in range(ROWS)]
    for i in bad:
        lines[i] = f'{i}{between}"{text(i)}\n'
    return f"id{between}text\n{''.join(lines)}".encode()


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
@pytest.mark.parametrize("piece_bytes", [500, 1 << 20])
def test_a_stray_quote_loses_its_line_alone(tmp_path, monkeypatch, threads, pack, piece_bytes):
    monkeypatch.setattr(ingest, "PIECE_BYTES", piece_bytes)
    data = csv_rows(3, 4, 7000, ROWS - 1)
    name = "in.csv" + {bytes: "", gzip.compress: ".gz", zstd: ".zst"}[pack]
    summary = summary_of(tmp_path, name, pack(data), threads=threads)
    assert (summary["num_documents"], summary["num_bad_rows"], summary["num_bad_lines"]) == (ROWS - 4, 4, 4)
    # The header is row 1.
    assert [row["row"] for row in errors(tmp_path / "out")] == [5, 6, 7002, ROWS + 1]


def test_a_record_of_many_lines_that_ends_the_file_is_reported_at_its_start(tmp_path):
    data = b'id,text\n1,one\n2,"open\n3,three\n4,four'
    summary = summary_of(tmp_path, "in.csv", data)
    assert (summary["num_documents"], [row["row"] for row in errors(tmp_path / "out")]) == (3, [3])
    with pytest.raises(
        InvalidInput, match=r"in\.csv:3: a field begins with a quote that is not properly closed.*--quote none"
    ):
        summary_of(tmp_path, "in.csv", data, "fail")


def test_kept_bad_lines_are_those_of_the_file(tmp_path):
    data = csv_rows(3, 7000)
    summary_of(tmp_path, "in.csv", data, "keep")
    assert (tmp_path / "out" / "kept" / "in.csv").read_bytes() == data


def test_lines_that_a_bad_record_holds_are_counted(tmp_path):
    data = (
        b'id,text\n1,one\n2,"'
        + b"line\n" * 30
        + b'end",too,many\n'
        + b"".join(b"9%d,x %d\n" % (i, i) for i in range(9))
    )
    summary = summary_of(tmp_path, "in.csv", data, max_bad_rows="100%")
    assert (summary["num_documents"], summary["num_bad_rows"], summary["num_bad_lines"]) == (10, 1, 31)
    assert "it spans 31 lines" in errors(tmp_path / "out")[0]["reason"]
    with pytest.raises(InvalidInput, match=r"31 of 41 rows \(75\.6%\) are bad; the first at in\.csv:3: "):
        summary_of(tmp_path, "in.csv", data)


def test_a_quote_in_tsv_is_a_character(tmp_path):
    data = csv_rows(*range(0, ROWS, 50), between="\t")
    summary = summary_of(tmp_path, "in.tsv", data, "fail")
    assert (summary["num_documents"], summary["inputs"][0]["quote"]) == (ROWS, "none")
    summary = summary_of(tmp_path, "in.tsv", data, quote="double")
    assert (summary["num_documents"], summary["num_bad_rows"]) == (ROWS - ROWS // 50, ROWS // 50)


def test_tsv_that_shows_quotes_is_read_with_them(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b"], "text": ['she said "hi" there', "two\nlines"]})
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        data = frame.to_csv(sep="\t", index=False, quoting=quoting).encode()
        for name, packed in (("in.tsv", data), ("in.tsv.gz", gzip.compress(data))):
            summary = summary_of(tmp_path, name, packed, "fail")
            assert (summary["num_documents"], summary["inputs"][0]["quote"]) == (2, "double")


@pytest.mark.parametrize(
    ("start", "shows"),
    [
        ('id\ttext\n1\t"say ""hi"""\n', True),
        ('id\ttext\n1\t"say ""hi"""', True),
        ('\ufeff"id"\t"text"\n1\tx\n', True),
        ('\n\r\n"id"\t"text"\r\n', True),
        ('id\ttext\n1\t"plain"\n', False),
        ('id\ttext\n1\t"two\nlines"\n', False),
        ('id\ttext\n1\t"say ""hi"""\n2\t"so" he said\n', False),
        ('id\t"text"\n1\tx\n', False),
        ('id\ttext\n1\t"say ""hi"""\n2\t"open\n', True),
        ('id\ttext\n1\tsay ""hi""\n', False),
        ("", False),
    ],
)
def test_what_shows_quotes(start, shows):
    assert shows_quotes(start.encode(), "\t") is shows


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv"])
def test_packed_files_are_recognized_by_their_bytes(tmp_path, name):
    plain = csv_rows() if name == "in.csv" else jsonl([{"id": i, "text": text(i)} for i in range(ROWS)])
    for pack in PACKS:
        summary = summary_of(tmp_path, name, pack(plain))
        assert (summary["num_documents"], summary["num_kept"], summary["num_bad_rows"]) == (ROWS, ROWS, 0)
        kept = (tmp_path / "out" / "kept" / name).read_bytes()
        assert kept[:2] == pack(plain)[:2]
        again = dedup_files(tmp_path / "out" / "kept", tmp_path / "again", Recipe.exact(), overwrite=True)
        assert again["num_documents"] == ROWS


@pytest.mark.parametrize("on_error", ["fail", "skip", "keep"])
def test_files_of_other_kinds_under_names_of_lines_are_errors(tmp_path, on_error):
    rows = jsonl([{"id": "a", "text": "words"}])
    for data, told in (
        (rows.decode().encode("utf-16"), "UTF-16, .* convert it to UTF-8"),
        (b"\xfe\xff" + rows.decode().encode("utf-16-be"), "UTF-16, .* convert it to UTF-8"),
        (b"PK\x03\x04" + rows, "a zip archive, .* unzip"),
        (b"PAR1" + rows, "Parquet, .* --format parquet"),
    ):
        for name in ("in.jsonl", "in.csv"):
            with pytest.raises(InvalidInput, match=f"{name}:1: the file is {told}"):
                summary_of(tmp_path, name, data, on_error)


@pytest.mark.parametrize("pack", PACKS, ids=PACKS.values())
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_rows_before_the_cut_of_a_packed_file_are_read(tmp_path, pack, kind):
    rows = [{"id": i, "text": text(i)} for i in range(ROWS)]
    plain = csv_rows() if kind == "csv" else jsonl(rows)
    packed = pack(plain)
    name = f"a.{kind}.{PACKS[pack]}"
    (tmp_path / "b.jsonl").write_bytes(jsonl([{"id": "b", "text": "another file"}]))
    for size in (len(packed) - 1, len(packed) // 2, 20, 0):
        (tmp_path / name).write_bytes(packed[:size])
        files = [tmp_path / name, tmp_path / "b.jsonl"]
        with pytest.raises(InvalidInput, match=r"is cut: .*at byte|is empty"):
            dedup_files(files, tmp_path / "none", Recipe.exact())
        for on_error in ("skip", "keep"):
            run = FileRun(on_error=on_error, max_bad_rows="100%")
            summary = dedup_files(files, tmp_path / "out", Recipe.exact(), run=run, overwrite=True)
            assert summary["num_bad_rows"] == 1
            (told,) = errors(tmp_path / "out")
            num_read = summary["inputs"][0]["num_documents"]
            # Only the rows before the cut: a partial row is not a row.
            unpacked = unpacked_file(tmp_path / "out" / "kept" / name)
            assert plain.startswith(unpacked.rstrip(b"\n"))
            assert told["file"] == name
            assert told["row"] == num_read + 1 + (kind == "csv" and b"\n" in unpacked)
            assert "cut" in told["reason"] or not size
        assert (num_read > ROWS // 4) == (size > 20)


def test_bytes_behind_gzip_data_are_told_by_their_place(tmp_path):
    packed = gzip.compress(jsonl([{"id": "a", "text": "words"}])) + gzip.compress(b'{"id": "b", "text": "more"}')
    (tmp_path / "in.jsonl.gz").write_bytes(packed + b"garbage")
    told = rf"there are trailing bytes after the gzip stream, from byte {len(packed)} on"
    with pytest.raises(InvalidInput, match=told):
        dedup_files(tmp_path / "in.jsonl.gz", tmp_path / "out")
    summary = dedup_files(tmp_path / "in.jsonl.gz", tmp_path / "out", run=FileRun(on_error="keep"))
    # All data were present: the last line needs no newline.
    assert (summary["num_documents"], summary["num_bad_rows"]) == (2, 1)


@pytest.mark.parametrize(
    ("given", "share", "count"),
    [
        ("1%", 0.01, None),
        (" 0.5% ", 0.005, None),
        (0.25, 0.25, None),
        ("100", None, 100),
        (7, None, 7),
        ("100%", 1, None),
    ],
)
def test_limits_of_bad_rows(given, share, count):
    limit = bad_row_limit(given)
    assert (limit.share, limit.num_rows) == (share, count)


@pytest.mark.parametrize("given", ["empty", "-2", "101%", 1.5, -1, True, "2.5", float("nan"), "1%%"])
def test_limits_that_are_none(given):
    with pytest.raises(InvalidParameter, match="max_bad_rows"):
        bad_row_limit(given)


def half_bad(num_good, num_bad):
    return jsonl([{"id": i, "text": text(i)} for i in range(num_good)]) + b"[]\n" * num_bad


def test_too_many_bad_rows_are_an_error_in_every_command(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(half_bad(10, 11))
    likewise_command("index", "create", tmp_path / "seen.lw")
    commands = {
        "dedup": ("dedup", "-o", tmp_path / "out"),
        "parts": ("repeats", "-o", tmp_path / "parts", "--unit", "line"),
        "spans": ("repeats", "-o", tmp_path / "spans", "--unit", "span"),
        "pairs": ("pairs", "-o", tmp_path / "pairs.jsonl"),
        "sketch": ("sketch", "-o", tmp_path / "s.parquet"),
        "weights": ("weights", "-o", tmp_path / "w.lww"),
        "check": ("index", "check", tmp_path / "seen.lw"),
        "add": ("index", "add", tmp_path / "seen.lw"),
        "tune": ("tune", "-o", tmp_path / "recipe.json"),
    }
    for name, command in commands.items():
        options = (tmp_path / "in.jsonl", "--on-error", "skip")
        ran = likewise_command(*command, *options)
        assert ran.status == 2, name
        assert "11 of 21 rows (52.4%) are bad" in ran.err, (name, ran.err)
        assert "The --max-bad-rows limit is 50%" in ran.err
        if name != "tune":
            first = "one of in.jsonl" if name == "weights" else "the first at in.jsonl:11"
            ran = likewise_command(*command, *options, "--max-bad-rows", "11")
            assert ran.status == 0, (name, ran.err)
            # A share of bad rows above 1 % is reported.
            assert f"11 of 21 rows (52.4%) are bad; {first}: " in ran.err, name
    (tmp_path / "in.jsonl").write_bytes(half_bad(1000, 1))
    ran = likewise_command("dedup", "-o", tmp_path / "out", "--overwrite", tmp_path / "in.jsonl", "--on-error", "skip")
    assert ran.status == 0
    assert "note" not in ran.err


def test_bad_reference_rows_are_compared_with_the_limit_too(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(half_bad(10, 0))
    (tmp_path / "old.jsonl").write_bytes(half_bad(1, 2))
    with pytest.raises(InvalidInput, match=r"2 of 3 rows .*old\.jsonl:2"):
        dedup_files(
            tmp_path / "in.jsonl", tmp_path / "out", run=FileRun(on_error="skip"), against=[tmp_path / "old.jsonl"]
        )


def test_the_limit_holds_in_the_functions_of_python(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(half_bad(10, 3))
    run = FileRun(on_error="skip", max_bad_rows=2)
    for act in (
        lambda: dedup_files(tmp_path / "in.jsonl", tmp_path / "out", run=run),
        lambda: dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("line"), run=run),
        lambda: pair_files(tmp_path / "in.jsonl", tmp_path / "p.jsonl", run=run),
        lambda: weigh_files(tmp_path / "in.jsonl", run=run),
    ):
        with pytest.raises(InvalidInput, match="The --max-bad-rows limit is 2"):
            act()
    assert not (tmp_path / "out").exists()


LINES = [
    b"good",
    b'"',
    b'"open',
    b'closed"',
    b'"quoted"',
    b'"dou""bled"',
    b"",
    b"one,more",
    b'"in\nside"',
    b"\xff",
    b'x"y',
    b'"a"b',
]


@pytest.mark.parametrize("on_error", ["skip", "keep"])
@pytest.mark.parametrize("quote", ["none", "double"])
@pytest.mark.parametrize("seed", range(3))
def test_each_line_is_in_one_place(tmp_path, monkeypatch, on_error, quote, seed):
    """Each line of hostile CSV belongs to a document or a bad row, or is blank, for any threads and compression."""
    monkeypatch.setattr(ingest, "PIECE_BYTES", 64)
    rng = random.Random(seed)
    lines = [b"%d,%s" % (i, rng.choice(LINES)) if rng.random() < 0.9 else b"" for i in range(400)]
    data = b"id,text\n" + b"\n".join(lines) + b"\n"
    found = {}
    for threads, suffix in itertools.product((1, 3), ("", ".gz")):
        packed = gzip.compress(data) if suffix else data
        summary = summary_of(
            tmp_path, f"in.csv{suffix}", packed, on_error, quote=quote, max_bad_rows="100%", threads=threads
        )
        kept = (tmp_path / "out" / "kept" / f"in.csv{suffix}").read_bytes()
        kept = gzip.decompress(kept) if suffix else kept
        told = [(row["row"], row["reason"]) for row in errors(tmp_path / "out")]
        found[threads, suffix] = summary["num_documents"], summary["num_removed"], told, kept
        removed_lines = lines_of_removed(tmp_path / "out", data)
        num_lines = kept.count(b"\n") + removed_lines + summary["num_blank_lines"]
        num_lines += summary["num_bad_lines"] if on_error == "skip" else 0
        assert num_lines == data.count(b"\n")
    assert len({repr(answer) for answer in found.values()}) == 1


def lines_of_removed(out, data):
    import pyarrow.parquet as pq

    evidence = pq.read_table(out / "removed.parquet", columns=["offset", "length"]).to_pylist()
    return sum(data[row["offset"] : row["offset"] + row["length"]].count(b"\n") + 1 for row in evidence)


@pytest.mark.parametrize("on_error", ["skip", "keep"])
def test_each_row_of_every_format_is_in_one_place(tmp_path, on_error):
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet as pq

    texts = [None if i % 7 == 0 else "again" if i % 5 == 0 else text(i) for i in range(200)]
    rows = [{"id": str(i), "text": value} for i, value in enumerate(texts)]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "in.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "in.arrow")
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    writer.writerows([["id", "text"], *([row["id"], row["text"], *([] if row["text"] else ["x"])] for row in rows)])
    (tmp_path / "in.tsv").write_text(out.getvalue())
    (tmp_path / "in.csv").write_text(out.getvalue().replace("\t", ","))
    (tmp_path / "in.jsonl").write_bytes(jsonl(rows) + b"\n\n")
    for kind in ("jsonl", "csv", "tsv", "parquet", "arrow"):
        run = FileRun(on_error=on_error)
        summary = dedup_files(tmp_path / f"in.{kind}", tmp_path / kind, Recipe.exact(), run=run)
        counts = [summary[f"num_{name}"] for name in ("kept", "removed", "bad_rows", "blank_lines")]
        assert counts == [summary["num_kept"], 200 - 29 - summary["num_kept"], 29, 2 * (kind == "jsonl")]
        assert summary["num_documents"] == 200 - 29
        assert len(errors(tmp_path / kind)) == 29


def test_documents_without_an_id_among_others_with_one_are_told(tmp_path):
    frame = pd.DataFrame({"id": [1.0, None, 3.0, float("nan")], "text": ["a", "b", "c", "d"]})
    frame.to_parquet(tmp_path / "in.parquet")
    frame.to_csv(tmp_path / "in.csv", index=False)
    (tmp_path / "in.jsonl").write_bytes(
        b'{"id": 1.0, "text": "a"}\n{"id": NaN, "text": "b"}\n{"id": 3.0, "text": "c"}\n{"text": "d"}\n'
    )
    (tmp_path / "none.jsonl").write_bytes(b'{"text": "e"}\n{"id": null, "text": "f"}\n')
    for kind in ("parquet", "csv", "jsonl"):
        summary = dedup_files(
            [tmp_path / f"in.{kind}", tmp_path / "none.jsonl"], tmp_path / f"out-{kind}", Recipe.exact()
        )
        assert summary["num_without_id"] == 2
        assert json.loads((tmp_path / f"out-{kind}" / "summary.json").read_text())["num_without_id"] == 2
        told = [line for line in summary_lines(summary, None) if "no id" in line]
        assert told == [
            "2 documents have no id (missing, null or NaN) although other rows of the file have one; removed.parquet "
            "identifies them by file and line"
        ]
    summary = dedup_files(tmp_path / "none.jsonl", tmp_path / "out-none", Recipe.exact())
    assert "num_without_id" not in summary
    assert not any("no id" in line for line in summary_lines(summary, None))
    # In CSV, any text is a valid id.
    (tmp_path / "in.csv").write_text("id,text\n1.0,a\nNaN,b\nNaN,c\n")
    with pytest.raises(InvalidInput, match="the id 'NaN' is already used in"):
        dedup_files(tmp_path / "in.csv", tmp_path / "out-twice", Recipe.exact())


def test_ids_of_pandas_are_whole_numbers(tmp_path):
    frame = pd.DataFrame({"id": [1.0, 2.0, None, float(2**53)], "text": list("abcd")})
    frame.to_parquet(tmp_path / "in.parquet")
    (tmp_path / "in.jsonl").write_bytes(
        b'{"id": 1.0, "text": "a"}\n{"id": 2.00, "text": "b"}\n{"id": NaN, "text": "c"}\n'
        b'{"id": 9007199254740992.0, "text": "d"}\n'
    )
    for name in ("in.parquet", "in.jsonl"):
        ids = [pair["doc_id_a"] for pair in pairs_with_all(tmp_path, name)]
        assert sorted({*ids}) == ["1", "2", "9007199254740992", f"{name}:3"][: len({*ids})]
        with pytest.raises(InvalidInput, match=r'(id field "id" is NaN|id is (null|NaN))'):
            dedup_files(tmp_path / name, tmp_path / "x", run=FileRun(id_field="id"))
    frame["id"] = [1.5, 2, 3, 4]
    frame.to_parquet(tmp_path / "in.parquet")
    with pytest.raises(InvalidInput, match=r"id is 1\.5, not an integer .*--id-field none"):
        dedup_files(tmp_path / "in.parquet", tmp_path / "x")
    frame["id"] = [[1], [2], [3], [4]]
    frame.to_parquet(tmp_path / "in.parquet")
    with pytest.raises(InvalidInput, match=r"has type list.*--id-field none"):
        dedup_files(tmp_path / "in.parquet", tmp_path / "x")
    for none in ("none", ""):
        summary = dedup_files(tmp_path / "in.parquet", tmp_path / "y", run=FileRun(id_field=none), overwrite=True)
        assert summary["num_documents"] == 4


def pairs_with_all(tmp_path, name):
    """Return each document with an equal one from another file, so that the pairs name all ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = tmp_path / name
    other = tmp_path / "other.jsonl"
    other.write_bytes(jsonl([{"id": f"o{c}", "text": c} for c in "abcd"]))
    pair_files([source, other], tmp_path / "pairs.parquet", Recipe.exact())
    found = pq.read_table(tmp_path / "pairs.parquet")
    assert isinstance(found, pa.Table)
    return found.to_pylist()


def test_ids_can_be_ignored_in_every_format(tmp_path):
    rows = b'{"id": true, "text": "a"}\n{"id": [1], "text": "b"}\n{"id": 1.5, "text": "a"}\n'
    (tmp_path / "in.jsonl").write_bytes(rows)
    for bad, told in ((0, "a boolean"), (1, "a list"), (2, "a number with a fraction")):
        (tmp_path / "one.jsonl").write_bytes(rows.splitlines()[bad])
        with pytest.raises(InvalidInput, match=f'id field "id" is {told}.*--id-field none'):
            dedup_files(tmp_path / "one.jsonl", tmp_path / "x")
    (tmp_path / "in.csv").write_text("id,text\n1,a\n1,b\n1,a\n")
    for name in ("in.jsonl", "in.csv"):
        ran = likewise_command("dedup", tmp_path / name, "-o", tmp_path / "out", "--id-field", "none", "--overwrite")
        assert ran.status == 0, ran.err
        import pyarrow.parquet as pq

        (row,) = pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
        line = 3 + (name == "in.csv")
        assert (row["doc_id"], row["kept_id"]) == (f"{name}:{line}", f"{name}:{line - 2}")


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_zeros_after_a_gzip_member_are_padding(tmp_path, kind):
    plain = csv_rows() if kind == "csv" else jsonl([{"id": i, "text": text(i)} for i in range(ROWS)])
    half = plain.index(b"\n", len(plain) // 2) + 1
    parts = [gzip.compress(plain[:half]), gzip.compress(plain[half:])]
    for between, behind in ((b"", bytes(1)), (b"", bytes(3_000_000)), (bytes(512), bytes(700_000))):
        summary = summary_of(tmp_path, f"a.{kind}.gz", parts[0] + between + parts[1] + behind)
        assert (summary["num_documents"], summary["num_bad_rows"]) == (ROWS, 0)
    for behind in (b"x", bytes(700) + b"x"):
        with pytest.raises(InvalidInput, match="trailing bytes after the gzip stream"):
            summary_of(tmp_path, f"a.{kind}.gz", b"".join(parts) + behind, "fail")
