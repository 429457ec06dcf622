"""Kept rows of Parquet files equal PyArrow's own filter: nothing of a table is lost, for any threads and sizes."""

import contextlib
import datetime
import decimal
import uuid

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise._native import ParquetJoin
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput
from likewise.io.tables import parquet
from likewise.job.reading import FileRun

NUM_ROWS = 300
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def texts_and_kept():
    """Return texts, every seventh of which repeats an earlier one, and whether each is kept."""
    rng = np.random.default_rng(5)
    texts = [f"{i} 猫 " + " ".join(map(str, rng.integers(0, 10**6, 30))) for i in range(NUM_ROWS)]
    kept = np.ones(NUM_ROWS, bool)
    for i in range(6, NUM_ROWS, 7):
        texts[i] = texts[i - 5] + "!"
        kept[i] = False
    return texts, kept


TEXTS, KEPT = texts_and_kept()


def table_of(text_type, texts=TEXTS):
    """Return a table with columns of every kind next to the texts."""
    rows = range(len(texts))
    day = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    columns = {
        "id": pa.array([f"id-{i}" for i in rows]),
        "list": pa.array([[i] * (i % 3) if i % 5 else None for i in rows], pa.list_(pa.int16())),
        "text": pa.array(texts, pa.string()).cast(text_type),
        "struct": pa.array([{"a": {"b": str(i)}, "c": None} for i in rows]),
        "map": pa.array([[(str(i), i)] for i in rows], pa.map_(pa.string(), pa.int64())),
        "category": pa.array(["ab"[i % 2] for i in rows]).dictionary_encode(),
        "amount": pa.array([decimal.Decimal(i) / 4 for i in rows], pa.decimal128(20, 2)),
        "day": pa.array([day + datetime.timedelta(i) for i in rows], pa.timestamp("us", "Europe/Vienna")),
        "uuid": pa.array([uuid.UUID(int=i).bytes for i in rows], pa.uuid()),
        "nothing": pa.nulls(len(texts)),
        "flag": pa.array([bool(i % 2) for i in rows]),
    }
    return pa.table(columns).replace_schema_metadata({"own": "kept", "other": "猫"})


def written(path, table, **options):
    codecs = {"text": "snappy", "list.list.element": "zstd", "category": "gzip"}
    codecs = {name: codecs.get(name, "none") for name in leaf_names(table)}
    pq.write_table(table, path, **{"row_group_size": 70, "compression": codecs, **options})
    return path


def leaf_names(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table.slice(0, 1), sink)
    return [column.path for column in pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema]


def dedup(path, out, **options):
    run = FileRun(**{"threads": 2, **options})
    dedup_files(path, out, likewise.Recipe.minhash(0.8), run=run)
    return out / "kept" / path.name


def check(kept, source, expected):
    """Check that the kept file contains exactly these rows and has the form of its source."""
    found, original = pq.ParquetFile(kept, page_checksum_verification=True), pq.ParquetFile(source)
    assert found.schema_arrow.equals(original.schema_arrow, check_metadata=True)
    assert found.schema == original.schema
    own, theirs = found.metadata.metadata, original.metadata.metadata
    # PyArrow renames the items of lists there; their meaning was compared above.
    assert own.keys() == theirs.keys()
    assert all(own[key] == theirs[key] for key in own if key != b"ARROW:schema")
    table = found.read()
    table.validate(full=True)
    assert table.equals(expected)
    for i in range(original.metadata.num_columns if found.metadata.num_row_groups else 0):
        chunks = [found.metadata.row_group(group).column(i) for group in range(found.metadata.num_row_groups)]
        assert {chunk.compression for chunk in chunks} == {original.metadata.row_group(0).column(i).compression}
    # Each row group alone, in any order.
    rows = [found.read_row_group(group) for group in reversed(range(found.metadata.num_row_groups))]
    assert not rows or pa.concat_tables(rows[::-1]).equals(expected)
    # Chunks are contiguous and fill the file up to its footer.
    end = 4
    for group in range(found.metadata.num_row_groups):
        for i in range(found.metadata.num_columns):
            chunk = found.metadata.row_group(group).column(i)
            assert end == (chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset)
            end += chunk.total_compressed_size
    assert end + found.metadata.serialized_size + 8 == kept.stat().st_size


def filtered(source, mask):
    """Return the kept rows of a file; PyArrow cannot filter views."""
    table = pq.read_table(source)
    if table.schema.field("text").type != pa.string_view():
        return table.filter(mask)
    place = table.schema.get_field_index("text")
    plain = table.set_column(place, "text", table["text"].cast(pa.string())).filter(mask)
    return plain.set_column(place, "text", plain["text"].cast(pa.string_view())).cast(table.schema)


@pytest.mark.parametrize("text_type", TEXT_TYPES, ids=str)
def test_every_type_comes_back(tmp_path, text_type):
    source = written(tmp_path / "in.parquet", table_of(text_type))
    check(dedup(source, tmp_path / "out"), source, filtered(source, KEPT))


def test_another_reader_finds_the_same_rows(tmp_path):
    kept = dedup(written(tmp_path / "in.parquet", table_of(pa.string())), tmp_path / "out")
    rows = duckdb.sql(f"select id, text, struct.a.b, list from read_parquet('{kept}')").fetchall()
    lists = table_of(pa.string())["list"].to_pylist()
    assert rows == [(f"id-{i}", TEXTS[i], str(i), lists[i]) for i in np.flatnonzero(KEPT)]


def test_a_column_of_texts_alone(tmp_path):
    source = tmp_path / "in.parquet"
    pq.write_table(table_of(pa.string()).select(["text"]), source, row_group_size=41)
    check(dedup(source, tmp_path / "out"), source, pq.read_table(source).filter(KEPT))


@pytest.mark.parametrize("text_type", TEXT_TYPES[:3], ids=str)
def test_bad_rows_stay_where_they_are_kept(tmp_path, text_type):
    texts = list(TEXTS)
    texts[3] = texts[100] = None
    source = written(tmp_path / "in.parquet", table_of(text_type, texts))
    check(dedup(source, tmp_path / "keep", on_error="keep"), source, filtered(source, KEPT))
    valid = np.array([text is not None for text in texts])
    check(dedup(source, tmp_path / "skip", on_error="skip"), source, filtered(source, KEPT & valid))


def test_texts_that_are_no_column_of_their_own(tmp_path):
    table = table_of(pa.string())
    for number, fields in enumerate([("struct.a.b", "text"), ("a.b",)]):
        names = ["a.b" if name == "text" else name for name in table.column_names] if number else table.column_names
        source = written(tmp_path / f"{number}.parquet", table.rename_columns(names))
        kept = dedup(source, tmp_path / f"out-{number}", text_fields=fields)
        check(kept, source, pq.read_table(source).filter(KEPT))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("limit", [2_000, 30_000])
def test_rows_are_the_same_for_any_threads_and_sizes(tmp_path, monkeypatch, threads, limit):
    """Row groups above the limit are cut; below it, several are processed at once."""
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", limit)
    monkeypatch.setattr(parquet, "_DECODED_BYTES", limit // 2)
    source = written(tmp_path / "in.parquet", table_of(pa.string()), row_group_size=33)
    kept = dedup(source, tmp_path / "out", threads=threads)
    check(kept, source, pq.read_table(source).filter(KEPT))
    assert (pq.ParquetFile(kept).num_row_groups > 10) == (limit == 2_000)


def test_two_files_and_what_is_removed_whole(tmp_path):
    table = table_of(pa.string())
    for name in ("a", "b"):
        written(tmp_path / f"{name}.parquet", table)
    run = FileRun(threads=2, duplicate_ids="allow")
    dedup_files(
        [tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "out", likewise.Recipe.minhash(0.8), run=run
    )
    kept = tmp_path / "out" / "kept"
    check(kept / "a.parquet", tmp_path / "a.parquet", pq.read_table(tmp_path / "a.parquet").filter(KEPT))
    check(kept / "b.parquet", tmp_path / "b.parquet", pq.read_table(tmp_path / "b.parquet").slice(0, 0))


def test_a_dictionary_stays_where_one_was_of_use(tmp_path):
    texts = [f"{i} " + "lorem ipsum " * 2_000 for i in range(120)]
    table = pa.table({"text": texts, "kind": ["a", "b"] * 60})
    source = tmp_path / "in.parquet"
    pq.write_table(table, source)
    group = pq.ParquetFile(dedup(source, tmp_path / "out")).metadata.row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(2)] == [False, True]


def encoded(table, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return np.frombuffer(sink.getvalue(), np.uint8)


def test_join_refuses_what_it_would_damage():
    table = table_of(pa.string())
    good = encoded(table)
    with pytest.raises(InvalidInput, match="page index"):
        ParquetJoin().add(encoded(table, write_page_index=True))
    join = ParquetJoin()
    join.add(good)
    with pytest.raises(InvalidInput, match="schema"):
        join.add(encoded(table.select(["text"])))
    with pytest.raises(InvalidInput, match="ends too early"):
        ParquetJoin().finish()
    rng = np.random.default_rng(1)
    length = int(good[-8:-4].view(np.uint32)[0])
    for _ in range(300):
        broken = good.copy()
        broken[len(good) - 8 - int(rng.integers(0, length))] = rng.integers(0, 256)
        # Damage causes an error or another footer, never a crash.
        with contextlib.suppress(InvalidInput):
            ParquetJoin().add(broken)
    for end in [*range(0, 40), *range(len(good) - 60, len(good))]:
        with pytest.raises(InvalidInput):
            ParquetJoin().add(good[:end])


def test_join_numbers_row_groups(tmp_path):
    """More row groups than the format's 16-bit ordinals can count."""
    table = pa.table({"n": [1]})
    part = encoded(table)
    join, bodies = ParquetJoin(), []
    for _ in range(33_000):
        start, stop = join.add(part)
        bodies.append(part[start:stop].tobytes())
    (tmp_path / "many.parquet").write_bytes(b"PAR1" + b"".join(bodies) + join.finish())
    file = pq.ParquetFile(tmp_path / "many.parquet")
    assert file.num_row_groups == 33_000
    assert file.read_row_groups([0, 32_767, 32_999]).equals(pa.concat_tables([table] * 3).combine_chunks())
