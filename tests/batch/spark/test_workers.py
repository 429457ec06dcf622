"""Functions of the workers, without Spark: buckets, cells, keys that sort like values."""

import copy
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import likewise
from likewise.batch.read.columns import field_value
from likewise.errors import InvalidInput
from likewise.io.inputs import find_inputs
from likewise.io.source.source import ReadRules
from likewise.recipe.methods import NUM_LEVELS
from likewise.stages.sketch import open_buckets

pytest.importorskip("pyspark", reason='PySpark is missing: pip install "likewise[spark]"')

from likewise.batch.spark.rows.arrow_columns import binary_column, bytes_of, numbers_of, starts_of
from likewise.batch.spark.rows.buckets import band_keys, look, matches, measure_cells
from likewise.batch.spark.sketching import sort_key
from likewise.batch.spark.stages import spark_failures


def cut(table, sizes):
    """Yield the rows of a table in batches, cycling through these sizes."""
    start, number = 0, 0
    while start < table.num_rows:
        size = sizes[number % len(sizes)]
        yield from table.slice(start, size).combine_chunks().to_batches()
        start, number = start + size, number + 1


def shuffled_pairs(signatures, recipe, sizes):
    """Return the pairs and the number of capped documents, as Spark's shuffles bring them together."""
    schema = {"rank": pa.int64(), "sketch": pa.binary()}
    columns = [pa.array(np.arange(len(signatures))), binary_column(signatures.view(np.uint8))]
    everyone = pa.table(columns, schema=pa.schema(list(schema.items())))
    pairs, entries, full = set(), everyone, []
    for level in range(NUM_LEVELS):
        keyed = pa.Table.from_batches(band_keys(cut(entries, sizes), recipe=recipe, level=level))
        in_order = keyed.sort_by([("band", "ascending"), ("key", "ascending"), ("rank", "ascending")])
        full = []
        for batch in look(cut(in_order, sizes)):
            for later, earlier, rank, band in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if later is None:
                    full.append((rank, band))
                else:
                    pairs.add((later, earlier))
        if not full:
            break
        ranks = sorted({rank for rank, _ in full})
        bands = [[band for other, band in full if other == rank] for rank in ranks]
        entries = everyone.take(ranks).append_column("bands", pa.array(bands, pa.list_(pa.int32())))
    return pairs, len(full)


@given(
    distinct=st.integers(1, 6),
    num=st.integers(1, 300),
    sizes=st.lists(st.integers(1, 90), min_size=1, max_size=4),
    bands=st.integers(1, 4),
    rows=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_buckets_by_shuffle_are_those_of_a_local_run(distinct, num, sizes, bands, rows, seed):
    random = np.random.default_rng(seed)
    signatures = random.integers(0, distinct, (num, 6), np.uint16)
    recipe = likewise.Recipe.minhash(0.5, num_slots=6, bands=min(bands, 6 // rows), rows=rows).resolve()
    buckets = open_buckets(signatures, recipe.sketch, np.arange(num, dtype=np.uint32), threads=1)
    found = buckets.candidates(0, num)
    wanted = set(zip(np.asarray(found.later).tolist(), np.asarray(found.earlier).tolist(), strict=True))
    assert shuffled_pairs(signatures, recipe, sizes) == (wanted, buckets.num_capped)


WRITTEN = st.sampled_from(["1.0", "1", "-0", "0", "100", "1e2"])
NUMBERS = st.one_of(st.decimals(allow_nan=False), st.integers().map(Decimal), WRITTEN.map(Decimal))
DATES = st.datetimes().map(lambda moment: json.dumps(moment.isoformat()))


@example(
    values=[Decimal(text) for text in ("1.0", "1", "100", "1e2", "-3", "-30", "1e-7", "-0", "0")], largest_first=True
)
@given(values=st.lists(NUMBERS, min_size=2, max_size=9), largest_first=st.booleans())
def test_keys_sort_as_numbers_do(values, largest_first):
    keys = [sort_key(value, largest_first=largest_first) for value in values]
    for a, key_a in zip(values, keys, strict=True):
        for b, key_b in zip(values, keys, strict=True):
            assert (key_a < key_b) == (a > b if largest_first else a < b)
            assert (key_a == key_b) == (a == b)


@given(texts=st.lists(DATES, min_size=2, max_size=6), rest=st.sampled_from(["", "7", "70", "71", "007"]))
def test_keys_sort_as_dates_do(texts, rest):
    texts = [*texts, f'"2020-02-02T10:00:00.123456{rest}+01:00"', '"2020-02-02T09:00:00.1234567"']
    dates = [field_value("when", text) for text in texts]
    keys = [sort_key(date, largest_first=False) for date in dates]
    for a, key_a in zip(dates, keys, strict=True):
        for b, key_b in zip(dates, keys, strict=True):
            assert (key_a < key_b) == (a < b)


def test_a_value_without_a_key_has_none():
    assert sort_key(None, largest_first=True) is None


@pytest.mark.parametrize("size", [1, 3, 50])
def test_cells_measure_as_a_local_run(size):
    texts = [f"the same words in every text but number {i} {'and more ' * (i % 3)}" for i in range(12)]
    recipe = likewise.Recipe.minhash(0.6).resolve()
    rows = []
    wanted = set()
    for cell, ranks in enumerate(([3, 1, 7], [4], [11, 0, 2, 5])):
        rows += [(cell, 0, 10 * rank, None, None, texts[rank]) for rank in ranks]
        pairs = [(a, b) for a in ranks for b in ranks if a > b]
        rows += [(cell, 1, 10 * a, 10 * b, cell, None) for a, b in pairs]
        similarity = likewise.stages.verify.verify_pairs(texts, np.array(pairs or np.zeros((0, 2)), np.int64), recipe)
        wanted |= {(10 * a, 10 * b, cell, s) for (a, b), s in zip(pairs, similarity, strict=True) if s >= 0.6}
    kinds = (pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.int32(), pa.string())
    names = ("cell", "kind", "later", "earlier", "distance", "payload")
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    batches = cut(pa.table(columns, names=list(names)), [size])
    measured = list(measure_cells(batches, recipe=recipe, measure=matches))
    # A cell is freed before the next one is read; the middle one has no pairs.
    assert len(measured) == 2
    found = [row for batch in measured for row in batch.to_pylist()]
    assert {tuple(row.values()) for row in found} == wanted
    assert 0 < len(wanted) < 9


def test_columns_of_bytes_come_back():
    matrix = np.random.default_rng(1).integers(0, 256, (7, 5), np.uint8)
    column = binary_column(matrix)
    assert (bytes_of(column.slice(2, 3), 5) == matrix[2:5]).all()
    assert (bytes_of(pa.chunked_array([column, column.slice(6)]), 5) == matrix[[*range(7), 6]]).all()
    assert bytes_of(column.slice(7), 5).shape == (0, 5)
    assert numbers_of(pa.chunked_array([pa.array([1]), pa.array([2, 3])])).tolist() == [1, 2, 3]


def test_starts_leave_out_empty_parts():
    assert starts_of([(4, 2), (0, 3), (2, 0)]) == {"starts": [[0, 0], [2, 3], [4, 3]], "num_rows": 5}


def test_files_that_were_read_can_go_to_workers(tmp_path):
    """Weights by rarity are counted on the driver before the same sources are sent."""
    (tmp_path / "a.jsonl").write_text('{"id": "a", "text": "one two"}\n')
    pq.write_table(pa.table({"id": ["a"], "text": ["one two"]}), tmp_path / "b.parquet")
    (tmp_path / "c.csv").write_text("id,text\na,one two\n")
    for file in find_inputs([tmp_path], ReadRules()).files:

        def texts(source):
            return [text for job in source.jobs(1 << 20, tmp_path) for piece in job.read() for text in piece.texts]

        assert texts(file) == ["one two"]
        assert texts(copy.deepcopy(file)) == ["one two"]


JOB = """An error occurred while calling o82.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent
\tat org.apache.spark.Somewhere
Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
\t... 15 more
Caused by: java.io.EOFException: nothing more
\tat java.base/java.io"""


def test_what_spark_gave_up_for_is_told_in_a_sentence():
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    def raised(error):
        with pytest.raises(likewise.errors.EngineFailed) as caught, spark_failures("hdfs:///tmp/run"):
            raise error
        return str(caught.value)

    assert raised(Py4JError(JOB)) == (
        "Spark failed: java.io.EOFException: nothing more (org.apache.spark.SparkException: Python worker exited "
        "unexpectedly (crashed)); repeat the command to continue after the finished stages in hdfs:///tmp/run"
    )
    assert "Spark failed: no room left; repeat" in raised(PySparkException("no room left\n\tat somewhere"))
    assert "Spark failed: Answer from Java side is empty; repeat" in raised(
        Py4JNetworkError("Answer from Java side is empty")
    )
    # Errors of this package, and of the system about our own files, are not errors of Spark.
    for other in (InvalidInput("bad"), FileNotFoundError("gone"), ConnectionResetError("a store"), ValueError("bug")):
        with pytest.raises(type(other)) as caught, spark_failures("stages"):
            raise other
        assert caught.value is other
