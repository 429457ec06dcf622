"""The table of docs/howto/64-bits.md: what each tool makes of fingerprints, computed again by the tool."""

import csv
import io
import json
import sqlite3

import pytest

from tests.structure.test_rules import ROOT

np = pytest.importorskip("numpy")
PAGE = ROOT / "docs" / "howto" / "64-bits.md"
# One below 2**63 that no double holds, and two that a signed type shows as negative.
BITS = [2**53 + 1, 2**63, 2**64 - 1]
COLUMNS = (
    "list of integers",
    "unsigned column with a missing value",
    "XOR of unsigned and signed",
    "unsigned = signed, same bits",
    "join of 2^53 and 2^53 + 1",
    "CSV and back",
    "JSON Lines and back",
)


def signed(bits):
    """Return the same 64 bits as Python integers of a signed type."""
    return [value - 2**64 if value >= 2**63 else value for value in bits]


def state(read, kind, wanted=BITS):
    """Return the type, and whether the values are the written ones."""
    kept = all(value is None or value == want for value, want in zip(read, wanted, strict=True))
    return str(kind) if kept else f"{kind}, **bits lost**"


def csv_text():
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["f"], *([value] for value in BITS)])
    return text.getvalue().encode()


def json_lines():
    return "".join(json.dumps({"f": value}) + "\n" for value in BITS).encode()


def tried(call):
    """Return what a call returns, or that the tool rejects it."""
    try:
        return call()
    except (TypeError, ValueError, OverflowError, ArithmeticError, sqlite3.Error) as error:
        return f"{type(error).__name__}"
    except Exception as error:
        if type(error).__module__.split(".")[0] in ("polars", "duckdb", "pyarrow", "pyspark"):
            return f"{type(error).__name__}"
        raise


def with_numpy():
    unsigned, same = np.array(BITS, np.uint64), np.array(signed(BITS), np.int64)

    def parsed(rows):
        made = np.array(rows)
        return state(map(int, made), made.dtype)

    text = csv_text().decode().split()[1:]
    return (
        parsed(BITS),
        "-",
        tried(lambda: str((unsigned ^ same).dtype)),
        str((unsigned == same).tolist()),
        str(len(np.intersect1d(np.array([2**53], np.uint64), np.array([2**53 + 1], np.int64)))),
        tried(lambda: parsed(np.loadtxt(text, ndmin=1))),
        tried(lambda: parsed([json.loads(line)["f"] for line in json_lines().splitlines()])),
    )


def with_pandas():
    pandas = pytest.importorskip("pandas", "3")
    unsigned = pandas.Series(np.array(BITS, np.uint64))
    same = pandas.Series(np.array(signed(BITS), np.int64))
    left = pandas.DataFrame({"k": np.array([2**53], np.uint64)})
    gap = unsigned.reindex([0, 1, 2, 3])
    listed = pandas.Series(BITS)
    xor = unsigned ^ same
    table = pandas.read_csv(io.BytesIO(csv_text())).f
    lines = pandas.read_json(io.BytesIO(json_lines()), lines=True).f
    return (
        state(map(int, listed), listed.dtype),
        state(map(int, gap[:3]), gap.dtype),
        state([value % 2**64 for value in xor], xor.dtype, [0, 0, 0]),
        str((unsigned == same).tolist()),
        str(len(left.merge(pandas.DataFrame({"k": [2**53 + 1]}), on="k"))),
        state(map(int, table), table.dtype),
        state(map(int, lines), lines.dtype),
    )


def with_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"u": np.array(BITS, np.uint64), "s": np.array(signed(BITS), np.int64)})
    xor = frame.select(polars.col("u") ^ polars.col("s")).to_series()
    left = polars.DataFrame({"k": np.array([2**53], np.uint64)})
    gap = polars.Series([*BITS, None], dtype=polars.UInt64)
    table, lines = polars.read_csv(csv_text())["f"], polars.read_ndjson(json_lines())["f"]
    listed = polars.Series(BITS)
    return (
        state(listed, listed.dtype),
        state(gap[:3], gap.dtype),
        state(xor, xor.dtype, [0, 0, 0]),
        str((frame["u"] == frame["s"]).to_list()),
        tried(lambda: str(len(left.join(polars.DataFrame({"k": [2**53 + 1]}), on="k")))),
        state(table, table.dtype),
        state(lines, lines.dtype),
    )


def with_duckdb(folder):
    duckdb = pytest.importorskip("duckdb")
    arrow = pytest.importorskip("pyarrow")
    database = duckdb.connect()
    table = arrow.table({"u": arrow.array(BITS, arrow.uint64()), "s": arrow.array(signed(BITS), arrow.int64())})
    database.register("fingerprints", table)
    (folder / "f.csv").write_bytes(csv_text())
    (folder / "f.jsonl").write_bytes(json_lines())

    def read(query, wanted=BITS):
        rows = database.execute(query).fetchall()
        return state([row[1] for row in rows], rows[0][0], wanted)

    listed = " union all ".join(f"select {value} f" for value in BITS)
    return (
        read(f"select typeof(f), f from ({listed})"),
        read("select typeof(nullif(u, 7)), nullif(u, 7) from fingerprints"),
        read("select typeof(xor(u, s)), xor(u, s) from fingerprints", [0, 0, 0]),
        str([row[0] for row in database.execute("select u = s from fingerprints").fetchall()]),
        str(
            database.execute(
                "select count(*) from (select 9007199254740992::ubigint k) "
                "join (select 9007199254740993::bigint k) using (k)"
            ).fetchone()[0]
        ),
        read(f"select typeof(f), f from '{folder}/f.csv'"),
        read(f"select typeof(f), f from '{folder}/f.jsonl'"),
    )


def with_pyarrow():
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.compute as arrow_compute
    import pyarrow.csv as arrow_csv
    import pyarrow.json as arrow_json

    unsigned, same = arrow.array(BITS, arrow.uint64()), arrow.array(signed(BITS), arrow.int64())
    gap = arrow.array([*BITS, None], arrow.uint64())
    table = arrow_csv.read_csv(io.BytesIO(csv_text()))["f"]
    lines = arrow_json.read_json(io.BytesIO(json_lines()))["f"]
    left, right = arrow.table({"k": arrow.array([2**53], arrow.uint64())}), arrow.table({"k": [2**53 + 1]})
    return (
        tried(lambda: str(arrow.array(BITS).type)),
        state(gap.to_pylist()[:3], gap.type),
        tried(lambda: str(arrow_compute.bit_wise_xor(unsigned, same).type)),
        tried(lambda: str(arrow_compute.equal(unsigned, same).to_pylist())),
        tried(lambda: str(left.join(right, "k", join_type="inner").num_rows)),
        state(map(int, table.to_pylist()), table.type),
        state(map(int, lines.to_pylist()), lines.type),
    )


def with_sqlite():
    database = sqlite3.connect(":memory:")
    database.execute("create table fingerprints (f integer)")

    def read(query, values):
        rows = [database.execute(query, (value,)).fetchone() for value in values]
        return state([int(row[1]) for row in rows], rows[-1][0])

    return (
        tried(lambda: str(database.executemany("insert into fingerprints values (?)", [(value,) for value in BITS]))),
        "-",
        "-",
        "-",
        "-",
        read("select typeof(cast(?1 as numeric)), cast(?1 as numeric)", map(str, BITS)),
        read("select typeof(json_extract(?1, '$.f')), json_extract(?1, '$.f')", json_lines().decode().splitlines()),
    )


def with_datasets(folder):
    datasets = pytest.importorskip("datasets")
    import pyarrow as pa

    def read(dataset):
        return state([-1 if value is None else value for value in dataset["f"]], dataset.features["f"].dtype)

    def of_file(kind, name, content):
        (folder / name).write_bytes(content)
        return read(getattr(datasets.Dataset, kind)(str(folder / name), cache_dir=str(folder / "cache")))

    gap = datasets.Dataset(pa.table({"f": pa.array([*BITS, None], pa.uint64())})).with_format("numpy")["f"][:]
    return (
        tried(lambda: read(datasets.Dataset.from_dict({"f": BITS}))),
        state(map(int, gap[:3]), gap.dtype),
        "-",
        "-",
        "-",
        of_file("from_csv", "f.csv", csv_text()),
        of_file("from_json", "f.jsonl", json_lines()),
    )


def with_spark(folder):
    sql = pytest.importorskip("pyspark.sql")
    import pyarrow as pa
    import pyarrow.parquet as pq

    unsigned = pa.array([*BITS, None], pa.uint64())
    pq.write_table(pa.table({"u": unsigned, "s": pa.array([*signed(BITS), 0], pa.int64())}), folder / "f.parquet")
    (folder / "f.csv").write_bytes(csv_text())
    (folder / "f.jsonl").write_bytes(json_lines())
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        table = spark.read.parquet(str(folder / "f.parquet"))

        def read(frame):
            (_, kind), *_ = frame.dtypes
            values = [row[0] for row in frame.collect()]
            return state([-1 if value is None else int(value) for value in values[:3]], kind)

        joined = "select 1 from (select u k from t) a join (select 9007199254740992L k) b using (k)"
        table.createOrReplaceTempView("t")
        return (
            read(spark.createDataFrame([(value,) for value in BITS], ["f"])),
            read(table.select("u")),
            tried(lambda: read(table.select(table.u.bitwiseXOR(table.s)))),
            str([row[0] for row in table.select(table.u == table.s).collect()[:3]]),
            str(spark.sql(joined).count()),
            read(spark.read.csv(str(folder / "f.csv"), header=True, inferSchema=True)),
            read(spark.read.json(str(folder / "f.jsonl"))),
        )
    finally:
        spark.stop()


TOOLS = {
    "NumPy": with_numpy,
    "pandas": with_pandas,
    "Polars": with_polars,
    "DuckDB": with_duckdb,
    "PyArrow": with_pyarrow,
    "SQLite": with_sqlite,
    "datasets": with_datasets,
    "Spark": with_spark,
}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_page_states_what_the_tool_does(tool, tmp_path):
    call = TOOLS[tool]
    cells = call(tmp_path) if tool in ("DuckDB", "datasets", "Spark") else call()
    row = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {tool} |"))
    assert [cell.strip() for cell in row.split("|")[2:-1]] == list(cells)


def test_the_table_has_these_columns():
    assert f"| tool | {' | '.join(COLUMNS)} |" in PAGE.read_text(encoding="utf-8")
