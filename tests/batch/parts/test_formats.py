"""Parts of documents in every format: the same texts result, and everything else is unchanged."""

import csv
import gzip
import io
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise import _native
from likewise.batch.parts import BoilerplateRules, PartRules, dedup_parts, remove_boilerplate
from likewise.corpus import decontaminate_files
from likewise.errors import InvalidInput
from likewise.io.source.source import Cut
from likewise.job.reading import FileRun
from likewise.runs.audit.parts import audit_parts
from tests.batch.parts.naive import lines, without_units
from tests.batch.parts.test_parts import mixed
from tests.command import likewise_command

UNITS = [PartRules("line"), PartRules("paragraph"), PartRules("sentence"), PartRules("span", 8)]
BOM = b"\xef\xbb\xbf"


def jsonl(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def rows_of(texts):
    return [{"id": f"d{i}", "n": i, "text": text, "b": f'x "{i}", y\n'} for i, text in enumerate(texts)]


def nested(rows):
    fields = [pa.field("text", pa.string()), pa.field("n", pa.int64())]
    return pa.table({"id": [row["id"] for row in rows], "doc": pa.array(rows, pa.struct(fields))})


def table(rows, kind=None):
    made = pa.Table.from_pylist(rows)
    schema = made.schema if kind is None else made.schema.set(2, pa.field("text", kind, metadata={"a": "b"}))
    return made.cast(schema.with_metadata({"of": "a test"}))


def write_csv(path, rows, delimiter=",", **options):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter, **options)
        writer.writeheader()
        writer.writerows(rows)


def write_arrow(path, made, *, is_file):
    make = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with path.open("wb") as sink, make(sink, made.schema) as writer:
        for batch in made.to_batches(max_chunksize=7):
            writer.write_batch(batch)


def read_arrow(path, *, is_file):
    with path.open("rb") as source:
        return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source).read_all()


def read_csv(path, delimiter=","):
    with path.open(newline="", encoding="utf-8") as file:
        return [row | {"n": int(row["n"])} for row in csv.DictReader(file, delimiter=delimiter)]


#: Of each format: file name, how to write rows, how to read them.
FORMATS = {
    "jsonl": ("in.jsonl", lambda p, r: p.write_bytes(jsonl(r)), None),
    "jsonl.gz": ("in.jsonl.gz", lambda p, r: p.write_bytes(gzip.compress(jsonl(r))), None),
    "csv": ("in.csv", write_csv, read_csv),
    "csv, all quoted": ("in.csv", lambda p, r: write_csv(p, r, quoting=csv.QUOTE_ALL, lineterminator="\n"), read_csv),
    "tsv": ("in.tsv", lambda p, r: write_csv(p, r, "\t", quoting=csv.QUOTE_ALL), lambda p: read_csv(p, "\t")),
    "parquet": ("in.parquet", lambda p, r: pq.write_table(table(r), p, row_group_size=9), None),
    "parquet, large": ("in.parquet", lambda p, r: pq.write_table(table(r, pa.large_string()), p), None),
    "arrow": ("in.arrow", lambda p, r: write_arrow(p, table(r), is_file=True), None),
    "arrow, views": ("in.arrow", lambda p, r: write_arrow(p, table(r, pa.string_view()), is_file=False), None),
}


def read(path, name):
    if name.startswith("jsonl"):
        data = path.read_bytes()
        return [json.loads(line) for line in (gzip.decompress(data) if name.endswith("gz") else data).splitlines()]
    if name.startswith("parquet"):
        return pq.read_table(path).to_pylist()
    return read_arrow(path, is_file=name == "arrow").to_pylist()


@pytest.mark.parametrize("rules", UNITS, ids=lambda rules: rules.unit)
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "jsonl"])
def test_every_format_gives_the_same_texts(tmp_path, name, rules):
    # Python's CSV reader may change carriage returns; other tests cover them.
    texts = [text.replace("\r\n", "\n") for text in mixed(3)]
    rows = rows_of([*texts, texts[7], texts[3], " \n", *texts[10:20]])
    expected, evidence = None, None
    for number, one in enumerate(["jsonl", name]):
        place = tmp_path / str(number)
        place.mkdir()
        file, write, own = FORMATS[one]
        write(place / file, rows)
        summary = dedup_parts(place / file, place / "out", rules)
        again = dedup_parts(place / file, place / "dry", rules, dry_run=True)
        found = (own or (lambda path, one=one: read(path, one)))(place / "out" / "kept" / file)
        gone = pq.read_table(place / "out" / "removed.parquet").drop(["file", "offset", "length"]).to_pylist()
        gone = [{name: value for name, value in row.items() if not name.startswith("kept_file")} for row in gone]
        gone = [{name: value for name, value in row.items() if name != "kept_offset"} for row in gone]
        facts = [summary[key] for key in ("num_documents", "num_kept", "num_emptied", "num_removed_bytes")]
        assert facts == [again[key] for key in ("num_documents", "num_kept", "num_emptied", "num_removed_bytes")]
        assert summary["most_removed"] == again["most_removed"]
        if expected is None:
            expected, evidence, of_first = found, gone, facts
            assert summary["num_emptied"] > 0
            assert summary["num_changed"] > 10
            continue
        assert found == expected
        assert gone == evidence
        assert facts == of_first
        audit = audit_parts(place / "out")
        assert audit.passed, audit.checks


def test_lines_as_by_hand(tmp_path):
    texts = mixed(4)
    left, _ = without_units(texts, lines)
    pq.write_table(table(rows_of(texts)), tmp_path / "in.parquet", row_group_size=11)
    dedup_parts(tmp_path / "in.parquet", tmp_path / "out", PartRules("line"))
    found = {row["n"]: row["text"] for row in pq.read_table(tmp_path / "out" / "kept" / "in.parquet").to_pylist()}
    assert found == {i: text for i, text in enumerate(left) if text.strip() or text == texts[i]}


def test_schema_metadata_and_other_columns_stay(tmp_path):
    rows = rows_of(mixed(5))
    pq.write_table(table(rows, pa.large_string()), tmp_path / "in.parquet", compression="zstd", row_group_size=20)
    dedup_parts(tmp_path / "in.parquet", tmp_path / "out", PartRules("paragraph"))
    before, after = (pq.ParquetFile(tmp_path / name) for name in ("in.parquet", "out/kept/in.parquet"))
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    assert after.metadata.row_group(0).column(0).compression == "ZSTD"
    kept = after.read()
    stays = np.isin(np.arange(len(rows)), kept.column("n").to_numpy())
    assert kept.drop(["text"]).equals(before.read().filter(pa.array(stays)).drop(["text"]))


def test_a_text_inside_a_struct(tmp_path):
    rows = rows_of(["same line\nown a\n", "same line\nown b\n", "same line\n", "other\n"])
    made = nested(rows)
    mask = pa.array([False, False, False, True])
    made = made.set_column(
        1,
        "doc",
        pa.array([None if m else d for m, d in zip(mask.to_pylist(), rows, strict=True)], made.column("doc").type),
    )
    pq.write_table(made, tmp_path / "in.parquet")
    write_arrow(tmp_path / "in.arrow", made, is_file=True)
    run = FileRun(text_fields=("doc.text",), on_error="keep")
    expected = [
        {"id": "d0", "doc": {"text": "same line\nown a\n", "n": 0}},
        {"id": "d1", "doc": {"text": "own b\n", "n": 1}},
        {"id": "d3", "doc": None},
    ]
    for name in ("in.parquet", "in.arrow"):
        out = tmp_path / f"{name}.out"
        summary = dedup_parts(tmp_path / name, out, PartRules("line"), run=run)
        assert (summary["num_bad_rows"], summary["num_emptied"]) == (1, 1)
        kept = out / "kept" / name
        found = pq.read_table(kept) if name.endswith("parquet") else read_arrow(kept, is_file=True)
        assert found.schema.equals(made.schema)
        assert found.to_pylist() == expected


def test_bad_rows_stay_between_rewritten_ones(tmp_path):
    texts = ["s x\na\n", None, "s x\nb\n", None, None, "s x\n", "s x\nc\n", None]
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet", row_group_size=3)
    (tmp_path / "in.jsonl").write_bytes(jsonl([row if row["text"] else {"id": row["id"]} for row in rows]))
    run = FileRun(on_error="keep")
    for name in ("in.parquet", "in.jsonl"):
        dedup_parts(tmp_path / name, tmp_path / f"{name}.out", PartRules("line"), run=run)
    found = pq.read_table(tmp_path / "in.parquet.out" / "kept" / "in.parquet").to_pylist()
    expected = [(0, "s x\na\n"), (1, None), (2, "b\n"), (3, None), (4, None), (6, "c\n"), (7, None)]
    assert [(row["id"], row["text"]) for row in found] == expected
    kept = (tmp_path / "in.jsonl.out" / "kept" / "in.jsonl").read_text().splitlines()
    assert [(row["id"], row.get("text")) for row in map(json.loads, kept)] == expected


def test_plain_text(tmp_path):
    (tmp_path / "in").mkdir()
    for name, data in [
        ("a.txt", b"same line\nown a\n"),
        ("b.txt", BOM + "same line\r\nöwn b\r\n".encode()),
        ("c.txt", b"same line\n"),
        ("d.md", b"no repeat\n"),
    ]:
        (tmp_path / "in" / name).write_bytes(data)
    summary = dedup_parts(tmp_path / "in", tmp_path / "out", PartRules("line"))
    assert summary["num_emptied"] == 1
    found = {path.name: path.read_bytes() for path in (tmp_path / "out" / "kept").iterdir()}
    assert found == {
        "a.txt": b"same line\nown a\n",
        "b.txt": BOM + "öwn b\r\n".encode(),
        "d.md": b"no repeat\n",
    }
    assert audit_parts(tmp_path / "out").passed
    (tmp_path / "out" / "kept" / "b.txt").write_bytes("öwn\r\n".encode())
    assert not audit_parts(tmp_path / "out").passed


def test_several_formats_are_one_collection(tmp_path):
    rows = rows_of(["one line\nowna\n", "one line\nownb\n", "one line\nownc\n"])
    (tmp_path / "a.jsonl").write_bytes(jsonl(rows[:1]))
    pq.write_table(table(rows[1:2]), tmp_path / "b.parquet")
    write_csv(tmp_path / "c.csv", rows[2:])
    inputs = [tmp_path / name for name in ("a.jsonl", "b.parquet", "c.csv")]
    for rules in (PartRules("line"), PartRules("span", 8)):
        dedup_parts(inputs, tmp_path / rules.unit, rules)
    kept = tmp_path / "line" / "kept"
    assert read(kept / "a.jsonl", "jsonl")[0]["text"] == "one line\nowna\n"
    assert pq.read_table(kept / "b.parquet").column("text").to_pylist() == ["ownb\n"]
    assert read_csv(kept / "c.csv")[0]["text"] == "ownc\n"
    gone = pq.read_table(tmp_path / "line" / "removed.parquet").to_pylist()
    assert [(row["file"], row["kept_file"]) for row in gone] == [("b.parquet", "a.jsonl"), ("c.csv", "a.jsonl")]


@pytest.mark.parametrize("has_quotes", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_records_without_parts_of_a_field(tmp_path, seed, has_quotes):
    """Each record is what Python's csv module reads, with the text cut; other fields are unchanged byte for byte."""
    rng = random.Random(seed)
    pieces = ["a", "bc ", "é", "猫", "😀", " "] + (['"', '""', ",", "\n", "\r\n", "'"] if has_quotes else ['"', "\\"])
    raw, texts = [], []
    for i in range(300):
        text = "".join(rng.choices(pieces, k=rng.randint(1, 12)))
        written = text
        if has_quotes and (rng.random() < 0.4 or text.startswith('"') or any(c in text for c in ",\n\r")):
            quoted = text.replace('"', '""')
            written = f'"{quoted}"'
            if rng.random() < 0.2:
                written, text = f"{written}tail", f"{text}tail"
        elif text.startswith('"') and has_quotes:
            raise AssertionError
        raw.append((f"{i}", written, '"o,""' + f'{i}"' if has_quotes else f'"{i}'))
        texts.append(text)
    end = rng.choice(["\n", "\r\n"])
    data = f"id,text,o{end}" + "".join(",".join(row) + end for row in raw)
    (tmp_path / "in.csv").write_bytes(data.encode())
    reader = _native.CsvReader(
        tmp_path / "in.csv",
        delimiter=ord(","),
        has_quotes=has_quotes,
        text_columns=[1],
        id_column=0,
        id_required=False,
        field_columns=[],
        max_document=1 << 20,
    )
    head = len(f"id,text,o{end}")
    piece = reader.read(head, len(data.encode()) - head, [])
    assert piece.texts.to_list() == texts
    spans = []
    for text in texts:
        places = np.cumsum([0, *(len(c.encode()) for c in text)]).tolist()
        spans.append(sorted(sorted(rng.choices(places, k=2)) for _ in range(rng.randint(0, 3))))
    counts = np.array([len(of_one) for of_one in spans], np.uint32)
    starts, ends = (np.array([span[i] for of_one in spans for span in of_one], np.uint32) for i in (0, 1))
    cut = Cut(np.arange(len(texts)), counts, starts, ends, keeps_words_apart=False)
    lines_, stops, num_removed = _native.rewrite_csv_rows(reader, piece.offsets, piece.lengths, cut, threads=2)
    left = []
    for text, of_one in zip(texts, spans, strict=True):
        kept, at = b"", 0
        for start, stop in of_one:
            kept += text.encode()[at : max(at, start)]
            at = max(at, stop)
        left.append((kept + text.encode()[at:]).decode())
    whole_texts, is_blank, num_cut = _native.cut_texts(piece.texts, cut)
    assert whole_texts.to_list() == left
    assert np.asarray(is_blank).tolist() == [int(not text.strip()) for text in left]
    assert num_cut == num_removed == sum(len(a.encode()) - len(b.encode()) for a, b in zip(texts, left, strict=True))
    whole, start = np.asarray(lines_).tobytes(), 0
    quoting = csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE
    for row, text, stop in zip(raw, left, np.asarray(stops).tolist(), strict=True):
        record, start = whole[start:stop].decode(), stop
        assert next(csv.reader(io.StringIO(record, newline=""), quoting=quoting)) == [
            row[0],
            text,
            next(csv.reader([row[2]], quoting=quoting))[0],
        ]
        assert record.startswith(f"{row[0]},")
        assert record.rstrip("\r\n").endswith(f",{row[2]}")


def test_a_field_that_would_begin_with_a_quote_gets_quotes(tmp_path):
    (tmp_path / "in.csv").write_bytes(b'id,text\n1,one two\n2,"one two\nx"\n3,a "b" c\n')
    reader = _native.CsvReader(
        tmp_path / "in.csv",
        delimiter=44,
        has_quotes=True,
        text_columns=[1],
        id_column=None,
        id_required=False,
        field_columns=[],
        max_document=1000,
    )
    offset = (tmp_path / "in.csv").read_bytes().index(b"3,a")
    ones = np.ones(1, np.uint32)
    cut = Cut(np.zeros(1, np.int64), ones, 0 * ones, 2 * ones, keeps_words_apart=False)
    found, _, _ = _native.rewrite_csv_rows(reader, np.array([offset], np.uint64), 9 * ones, cut)
    assert np.asarray(found).tobytes() == b'3,"""b"" c"\n'


def test_boilerplate_and_contamination_in_tables(tmp_path):
    rows = [
        {"id": i, "n": i, "url": "http://a.b/c", "text": f"menu of the site\nown words {i} of page {i}\n"}
        for i in range(12)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    remove_boilerplate(tmp_path / "in.parquet", tmp_path / "site", BoilerplateRules("url"))
    found = pq.read_table(tmp_path / "site" / "kept" / "in.parquet").to_pylist()
    assert [row["text"] for row in found] == [f"own words {i} of page {i}\n" for i in range(12)]
    item = "which of these seven rivers of the north reaches the cold sea first in spring"
    rows[5]["text"] = f"Before it.\n{item}\nAfter it.\n"
    rows[7]["text"] = item
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    write_csv(tmp_path / "in.csv", rows)
    (tmp_path / "items.jsonl").write_bytes(jsonl([{"question": item}]))
    for name in ("in.parquet", "in.csv"):
        out = tmp_path / f"{name}.cut"
        summary = decontaminate_files(tmp_path / name, {"s": tmp_path / "items.jsonl"}, out, write="cut")
        assert (summary["num_contaminated"], summary["num_emptied"]) == (2, 1)
        kept = out / "kept" / name
        left = pq.read_table(kept).to_pylist() if name == "in.parquet" else read_csv(kept)
        texts = {int(row["id"]): row["text"] for row in left}
        assert 7 not in texts
        assert texts[5].split() == ["Before", "it.", "After", "it."]
        assert texts[3] == rows[3]["text"]


def test_what_has_no_text_of_its_own_is_refused(tmp_path):
    pq.write_table(table(rows_of(["a"]), pa.dictionary(pa.int8(), pa.string())), tmp_path / "in.parquet")
    (tmp_path / "in.warc").write_bytes(b"WARC/1.0\r\n\r\n")
    for name, message in [
        ("in.parquet", "dictionary-encoded column 'text'"),
        ("in.warc", "web archives"),
    ]:
        done = likewise_command("repeats", tmp_path / name, "-o", tmp_path / "out")
        assert done.status == 2
        assert message in done.err
        assert name in done.err
        assert not (tmp_path / "out").exists()
    with pytest.raises(InvalidInput, match="web archives"):
        remove_boilerplate(tmp_path / "in.warc", tmp_path / "out", BoilerplateRules("url"))
