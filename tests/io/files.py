"""The same documents in every format, written by libraries other than Likewise."""

import bz2
import csv
import gzip
import io
import json
import lzma

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = [
    {"id": "a", "text": "one two three four five six seven", "n": "7"},
    {"id": "b", "text": "other words 猫 entirely, and a comma", "n": "007"},
    {"id": "c", "text": 'a "quote", and\na line\tend', "n": ""},
    {"id": "d", "text": "ONE two,  three four five six SEVEN!", "n": "x"},
    {"id": "e", "text": "the last one stands alone here", "n": "1e3"},
    {"id": "f", "text": 'a "quote", and a line end', "n": "y"},
]
REMOVED = {"d": "a", "f": "c"}


def jsonl(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def csv_bytes(rows, delimiter=",", end="\r\n"):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end)
    names = list(rows[0]) if rows else ["id", "text", "n"]
    writer.writerow(names)
    writer.writerows([row[name] for name in names] for row in rows)
    return out.getvalue().encode()


def zstd(data):
    """Return two frames with a skippable one between them."""
    codec, half = pa.Codec("zstd"), len(data) // 2
    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0skip"
    return codec.compress(data[:half], asbytes=True) + skippable + codec.compress(data[half:], asbytes=True)


def gzipped(data):
    """Return two gzip members."""
    half = len(data) // 2
    return gzip.compress(data[:half]) + gzip.compress(data[half:])


def unpacked(path):
    codec = {".gz": gzip, ".zst": "zstd", ".bz2": bz2, ".xz": lzma}.get(path.suffix)
    if codec not in (None, "zstd"):
        return codec.decompress(path.read_bytes())
    if codec is None:
        return path.read_bytes()
    with pa.input_stream(str(path), compression="zstd") as stream:
        return stream.read()


def table(rows):
    columns = {name: [row[name] for row in rows] for name in ("id", "text", "n")}
    made = pa.table({**columns, "extra": [[i, None] for i in range(len(rows))]})
    return made.replace_schema_metadata({"huggingface": "{}", "own": "kept"})


def parquet(rows, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table(rows), sink, **{"row_group_size": 4, "compression": "zstd", **options})
    return sink.getvalue().to_pybytes()


def arrow(rows, make=pa.ipc.new_stream, compression=None, batch_rows=2):
    sink = pa.BufferOutputStream()
    data = table(rows)
    with make(sink, data.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(data, max_chunksize=batch_rows)
    return sink.getvalue().to_pybytes()


# File name -> function from rows to bytes.
WRITERS = {
    "in.jsonl": jsonl,
    "in.jsonl.gz": lambda rows: gzipped(jsonl(rows)),
    "in.ndjson.zst": lambda rows: zstd(jsonl(rows)),
    "in.csv": csv_bytes,
    "unix.csv": lambda rows: csv_bytes(rows, end="\n"),
    "mac.csv": lambda rows: csv_bytes(rows, end="\r"),
    "marked.csv": lambda rows: b"\xef\xbb\xbf" + csv_bytes(rows),
    "in.tsv": lambda rows: csv_bytes(rows, "\t"),
    "in.csv.gz": lambda rows: gzipped(csv_bytes(rows)),
    "in.tsv.zst": lambda rows: zstd(csv_bytes(rows, "\t")),
    "in.jsonl.bz2": lambda rows: bz2.compress(jsonl(rows)),
    "in.csv.xz": lambda rows: lzma.compress(csv_bytes(rows)),
    "in.parquet": parquet,
    "stream.arrow": arrow,
    "file.arrow": lambda rows: arrow(rows, pa.ipc.new_file),
    "in.feather": lambda rows: arrow(rows, pa.ipc.new_file, "lz4"),
    "in.ipc": lambda rows: arrow(rows, pa.ipc.new_stream, "zstd"),
}


def write_dataset(path, rows):
    """Write a directory as `save_to_disk` of Hugging Face datasets does."""
    path.mkdir(parents=True)
    half = len(rows) // 2
    names = []
    for number, part in enumerate((rows[:half], rows[half:])):
        names.append(f"data-{number:05}-of-00002.arrow")
        (path / names[-1]).write_bytes(arrow(part))
    state = {
        "_data_files": [{"filename": name} for name in names],
        "_fingerprint": "0123456789abcdef",
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": "train",
    }
    (path / "state.json").write_text(json.dumps(state))
    info = {
        "features": {"text": {"dtype": "string"}},
        "splits": {"train": {"name": "train", "num_examples": len(rows)}},
    }
    (path / "dataset_info.json").write_text(json.dumps(info))
    (path / "cache-1234.arrow").write_bytes(b"what an earlier map() left")
