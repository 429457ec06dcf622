"""Joins and pairs of fingerprints on Spark are those that NumPy finds by comparing all pairs."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from tests.structure.pages import blocks

RESULTS = Path(__file__).parents[3] / "bench" / "results" / "spark_hamming.json"
pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]


def clustered(num, bits, within, seed):
    """Return fingerprints as words (num, words). Most differ in a few bits from one of some centers; some are equal."""
    random = np.random.default_rng(seed)
    words = bits // 64
    centers = random.integers(0, 2**64, (max(1, num // 20), words), np.uint64)
    codes = centers[random.integers(0, len(centers), num)]
    for _ in range(max(1, within // 2 + 1)):
        which = random.random(num) < 0.6
        place = random.integers(0, bits, num)
        flips = np.zeros((num, words), np.uint64)
        flips[np.arange(num), place // 64] = np.uint64(1) << (place % 64).astype(np.uint64)
        codes = np.where(which[:, None], codes ^ flips, codes)
    return codes


def brute(left, right, within):
    """Return (i, j, distance) of all pairs of rows within the radius."""
    found = set()
    for i, code in enumerate(left):
        distance = np.bitwise_count(right ^ code).sum(axis=1)
        found |= {(i, int(j), int(distance[j])) for j in np.flatnonzero(distance <= within)}
    return found


def fingerprint_column(words, kind):
    if kind == "bigint":
        return pa.array(words[:, 0].view(np.int64))
    if kind == "words":
        return pa.array([row.view(np.int64).tolist() for row in words], pa.list_(pa.int64()))
    return pa.array([row.tobytes() for row in words], pa.binary())


def fingerprints(spark, words, kind="bigint", ids=None, partitions=3):
    if not len(words):
        types = {"bigint": "bigint", "words": "array<bigint>", "binary": "binary"}
        return spark.createDataFrame([], f"doc_id string, sketch {types[kind]}")
    ids = [f"d{row}" for row in range(len(words))] if ids is None else ids
    table = pa.table({"doc_id": ids, "sketch": fingerprint_column(words, kind)})
    return spark.createDataFrame(table).repartition(partitions)


def triples(frame):
    return sorted(tuple(row.values()) for row in frame.toArrow().to_pylist())


@pytest.mark.parametrize(
    ("bits", "within", "kind"),
    [
        (64, 3, "bigint"),
        pytest.param(64, 0, "bigint", marks=pytest.mark.slow),
        pytest.param(64, 8, "binary", marks=pytest.mark.slow),
        (128, 20, "words"),
        pytest.param(128, 3, "binary", marks=pytest.mark.slow),
    ],
)
def test_a_join_finds_what_numpy_finds(spark, tmp_path, bits, within, kind):
    from likewise.spark import hamming_join

    words = clustered(700, bits, within, 7)
    left, right = words[:120], words[120:]
    frames = [fingerprints(spark, left, kind), fingerprints(spark, right, kind)]
    wanted = sorted((f"d{i}", f"d{j}", distance) for i, j, distance in brute(left, right, within))
    assert len({distance for *_, distance in wanted}) > within // 3
    assert triples(hamming_join(*frames, within, bits=bits, checkpoint_dir=str(tmp_path))) == wanted
    if kind == "words":
        # The other side is stored if it is declared the small one.
        found = hamming_join(*frames, within, bits=bits, small="right", checkpoint_dir=str(tmp_path / "right"))
        assert triples(found) == wanted


def test_stored_fingerprints_are_used_again_at_another_radius(spark, tmp_path):
    from likewise.spark import hamming_join

    words = clustered(300, 64, 3, 3)
    frames = [fingerprints(spark, words[:50]), fingerprints(spark, words[50:])]
    hamming_join(*frames, 1, small="left", checkpoint_dir=str(tmp_path))
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("fingerprints-*")}
    assert len(files) == 2
    # The same files are used at another radius.
    found = hamming_join(*frames, 3, small="left", checkpoint_dir=str(tmp_path))
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.glob("fingerprints-*")}
    assert len(triples(found)) == len(brute(words[:50], words[50:], 3))
    with pytest.raises(InvalidInput, match="not those of the small side"):
        hamming_join(*frames[::-1], 3, small="left", checkpoint_dir=str(tmp_path))
    wide = fingerprints(spark, clustered(9, 128, 3, 3), "binary")
    with pytest.raises(RecipeMismatch, match="bits"):
        hamming_join(wide, wide, 3, bits=128, checkpoint_dir=str(tmp_path))


def test_the_plan_of_a_join_names_the_option_that_makes_it_faster(spark, tmp_path, monkeypatch):
    from likewise.batch.spark.hamming import joining
    from likewise.progress import Planned
    from likewise.spark import hamming_join

    frame = fingerprints(spark, clustered(20, 64, 3, 3))
    name = "spark.sql.execution.arrow.maxBytesPerBatch"

    def lines():
        events = []
        hamming_join(frame, frame, 3, small="left", checkpoint_dir=str(tmp_path), progress=events.append)
        return [line for event in events if isinstance(event, Planned) for line in event.lines]

    advised = lines()
    option = next(line for line in advised if name in line)
    try:
        # Follow the advice of the line.
        exec(option.partition(" saves")[0], {"spark": spark})
        assert lines() == [line for line in advised if line != option]
    finally:
        spark.conf.unset(name)
    # Like a version of Spark without this option.
    monkeypatch.setattr(joining, "_BATCH_BYTES", "spark.sql.no.such.option")
    assert lines() == [line for line in advised if line != option]


def test_equal_fingerprints_are_searched_once_and_spread_out(spark):
    from likewise.spark import hamming_join

    words = np.zeros((100_003, 1), np.uint64)
    words[100_000:, 0] = [1, 2**63, 2**64 - 1]
    # Ids need not be unique, and may be numbers.
    left = fingerprints(spark, words, ids=np.r_[np.arange(100_000), 5, 5, 6])
    right = fingerprints(spark, np.array([[0], [3]], np.uint64))
    table = hamming_join(left, right, 1, small="left").toArrow()
    assert table.num_rows == 100_003
    by_right = table.group_by("doc_id_b").aggregate([("doc_id_a", "count"), ("distance", "sum")]).to_pylist()
    found = {row["doc_id_b"]: (row["doc_id_a_count"], row["distance_sum"]) for row in by_right}
    # d0 matches all zeros, and two numbers with one bit, both with id 5. d1 matches the number 1.
    assert found == {"d0": (100_002, 2), "d1": (1, 1)}
    assert table.schema.field("doc_id_a").type == pa.int64()


@pytest.mark.slow
def test_a_join_with_nothing(spark):
    from likewise.spark import hamming_join

    some, none = fingerprints(spark, clustered(9, 64, 3, 3)), fingerprints(spark, np.zeros((0, 1), np.uint64))
    for sides, small in (((some, none), None), ((some, none), "left"), ((none, none), None)):
        found = hamming_join(*sides, 3, small=small)
        assert found.count() == 0
        assert found.columns == ["doc_id_a", "doc_id_b", "distance"]


@pytest.mark.parametrize(
    ("bits", "within", "plan"),
    [
        (64, 3, "slabs"),
        (64, 3, "splitting"),
        pytest.param(64, 0, "slabs", marks=pytest.mark.slow),
        pytest.param(64, 8, "slabs", marks=pytest.mark.slow),
        pytest.param(64, 1, "splitting", marks=pytest.mark.slow),
        pytest.param(128, 20, "slabs", marks=pytest.mark.slow),
        pytest.param(128, 2, "splitting", marks=pytest.mark.slow),
    ],
)
def test_pairs_are_those_that_numpy_finds(spark, tmp_path, monkeypatch, bits, within, plan):
    from likewise.batch.budget import cluster_plans as planning
    from likewise.batch.spark.hamming import pairing
    from likewise.spark import hamming_pairs

    # Small enough for several tasks per slab, and several cells.
    monkeypatch.setattr(pairing, "LEAST_PIECE", 60)
    monkeypatch.setattr(planning, "_CELL_ROWS", 100)
    words = clustered(600, bits, within, 11)
    # Ids need not be unique.
    ids = [f"d{row % 590:03d}" for row in range(600)]
    frame = fingerprints(spark, words, "bigint" if bits == 64 else "words", ids).repartition(5)
    options = {"bits": bits, "plan": plan, "slab_rows": 250, "checkpoint_dir": str(tmp_path)}
    found = hamming_pairs(frame, within, **options)
    # All tasks of the frame store their rows, even if fewer tasks write slabs.
    assert len(list((tmp_path / "rows").glob("*.parquet"))) == 5
    wanted = sorted((*sorted((ids[i], ids[j])), distance) for i, j, distance in brute(words, words, within) if i < j)
    assert triples(found.expanded()) == wanted
    assert (found.plan.name, found.members.count()) == (plan, 600)
    groups = found.members.toArrow().column("group")
    num_groups = len(groups.unique())
    distinct = len(np.unique(words, axis=0))
    assert num_groups == distinct if plan == "splitting" else distinct <= num_groups <= 600
    if plan == "splitting":
        assert found.plan.shuffle_bytes > 0
        return
    # Finished stages are read instead of written again.
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert triples(hamming_pairs(frame, within, **options).pairs) == triples(found.pairs)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(RecipeMismatch, match="fingerprints"):
        hamming_pairs(frame.limit(100), within, **options)


@pytest.mark.parametrize("plan", ["slabs", pytest.param("splitting", marks=pytest.mark.slow)])
def test_equal_fingerprints_are_not_paired_with_each_other(spark, plan):
    from likewise.spark import hamming_pairs

    words = np.full((100_002, 1), 2**63 + 5, np.uint64)
    words[-2:, 0] = [2**63 + 4, 2**40 * 255]
    found = hamming_pairs(fingerprints(spark, words), 3, plan=plan, slab_rows=40_000)
    sizes = sorted(found.members.groupBy("group").count().toArrow().column("count").to_pylist())
    assert sum(sizes) == 100_002
    if plan == "splitting":
        assert (sizes, found.pairs.count()) == ([1, 1, 100_000], 1)
    else:
        # One group of equal fingerprints for each of three slabs.
        assert (len(sizes), sizes[:2], found.pairs.count()) == (5, [1, 1], 6)


@pytest.mark.slow
def test_pairs_of_nothing_and_too_many(spark):
    from likewise.spark import hamming_pairs

    none = fingerprints(spark, np.zeros((0, 1), np.uint64))
    for plan in ("slabs", "splitting"):
        found = hamming_pairs(none, 3, plan=plan)
        assert found.pairs.count() == found.members.count() == found.expanded().count() == 0
        near = fingerprints(spark, np.arange(16, dtype=np.uint64).reshape(-1, 1))
        assert hamming_pairs(near, 3, plan=plan, max_pairs=112).pairs.count() == 112
        with pytest.raises(InvalidInput, match="more than 111"):
            hamming_pairs(near, 3, plan=plan, max_pairs=111)
    with pytest.raises(InvalidParameter, match="splitting is for within up to 3"):
        hamming_pairs(none, 4, plan="splitting")


def test_the_planner_says_what_is_out_of_reach():
    from likewise.batch.budget.cluster_plans import plan_pairs

    few, many = plan_pairs(10**6, 64, 3, 10**9), plan_pairs(2 * 10**9, 64, 3, 10**9)
    assert (few.name, few.shuffle_bytes, few.warning) == ("slabs", 0, None)
    assert (many.name, many.warning) == ("splitting", None)
    assert many.shuffle_bytes == 2 * 10**9 * 4 * 20
    assert many.worker_bytes < 10**9
    wide = plan_pairs(10**9, 128, 24, 10**9)
    assert "impractical" in wide.warning
    assert "core-hours" in wide.warning
    assert plan_pairs(10**6, 128, 20, 10**9).warning is None
    assert plan_pairs(10**9, 128, 12, 10**9).warning is None


def test_many_cores_build_tables_more_often():
    from likewise.batch.budget.cluster_plans import plan_pairs

    two, many = (plan_pairs(10**8, 64, 3, 10**9, num_cores=num_cores) for num_cores in (2, 200))
    assert (two.name, many.name) == ("slabs", "splitting")
    again = plan_pairs(10**8, 64, 3, 10**9, plan="slabs", num_cores=200)
    assert again.core_s > 3 * many.core_s
    # One piece is one task, on one core.
    few = (plan_pairs(10**5, 64, 3, 10**9, num_cores=num_cores).core_s for num_cores in (1, 1000))
    assert len({*few}) == 1


def test_the_planner_is_within_twice_what_was_measured():
    """Measured by bench/spark_hamming.py on large sets, since small ones are dominated by the start of jobs."""
    from likewise.batch.budget.cluster_plans import ROW_NS, best_keys, plan_pairs

    tasks = set()
    for name, entry in json.loads(RESULTS.read_text()).items():
        task, num, bits, within, *_ = name.split()
        if task == "dedup":
            continue
        tasks.add(task)
        if task == "join":
            planned = int(num) * (best_keys(entry["queries"], int(bits), int(within)).query_ns + ROW_NS) / 1e9
        else:
            # With the shuffle partitions of the benchmark, as hamming_pairs plans.
            how = entry["plan"]["name"]
            planned = plan_pairs(int(num), int(bits), int(within), 10**9, plan=how, num_cores=8).core_s
        assert 0.5 < entry["core_s"] / planned < 2, name
    assert "join" in tasks


@pytest.mark.usefixtures("pyspark_installed")
@pytest.mark.parametrize("scheme", ["", "file://", "local://"])
def test_stored_tables_come_back(tmp_path, scheme):
    """Tables are read by path, and with fsspec if the directory is a URL."""
    from likewise.batch.spark.hamming.stored import grouped, read_groups, write_groups

    if scheme == "local://":
        pytest.importorskip("fsspec")
    words = clustered(50, 128, 3, 5)
    directory = f"{scheme}{tmp_path}/shared"
    for _ in range(2):
        write_groups(directory, "name", grouped(words, pa.array(range(50))))
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == ["name.codes", "name.ids"]
    groups = read_groups(directory, "name")
    assert len(groups.words) == len(np.unique(words, axis=0)) < 50
    of_ids = np.repeat(groups.words, np.diff(groups.starts), axis=0)
    assert (of_ids == words[np.asarray(groups.ids)]).all()
    with pytest.raises(InvalidInput, match="all machines share"):
        read_groups(directory, "other")


@pytest.mark.slow
def test_what_cannot_be_joined_is_refused(spark, tmp_path):
    from likewise.spark import hamming_join

    good = fingerprints(spark, clustered(9, 64, 3, 3))
    wide = fingerprints(spark, clustered(9, 128, 3, 3), "words")
    for options, name in (
        ({"within": 65}, "within"),
        ({"bits": 65}, "bits"),
        ({"bits": 128}, "bits"),
        ({"fingerprint_field": "code"}, "fingerprint_field"),
        ({"fingerprint_field": "doc_id"}, "fingerprint_field"),
        ({"id_field": "id"}, "id_field"),
        ({"small": "both"}, "small"),
        ({"worker_memory": "100"}, "worker_memory"),
    ):
        with pytest.raises(InvalidParameter) as caught:
            hamming_join(good, good, **{"within": 3, **options})
        assert caught.value.name == name
    with pytest.raises(InvalidInput, match="expected a Spark DataFrame"):
        hamming_join(good.toArrow(), good, 3)
    for rows, kind, message in (
        ([("a", None)], "bigint", "1 fingerprint is null"),
        ([(None, 3)], "bigint", "1 id is null"),
        ([("a", [1, None])], "array<bigint>", "1 word of fingerprints is null"),
        ([("a", b"1234567")], "binary", "has 7 bytes; 128 bits take 16"),
    ):
        broken = spark.createDataFrame(rows, f"doc_id string, sketch {kind}")
        bits = 64 if kind == "bigint" else 128
        with pytest.raises(InvalidInput, match=message):
            hamming_join(broken, wide if bits == 128 else good, 3, bits=bits, small="left")
    with pytest.raises(InvalidInput, match="has 2 words; 64 bits take 1"):
        hamming_join(wide, wide, 3)


@pytest.mark.parametrize("plan", [pytest.param("slabs", marks=pytest.mark.slow), "splitting"])
def test_a_null_is_refused_by_both_plans(spark, plan):
    from likewise.spark import hamming_pairs

    for rows, message in (
        ([("a", 1), (None, 3), (None, 4)], "2 ids are null"),
        ([("a", 1), ("b", None)], "1 fingerprint is null"),
    ):
        with pytest.raises(InvalidInput, match=message):
            hamming_pairs(spark.createDataFrame(rows, "doc_id string, sketch bigint"), 3, plan=plan)


def test_columns_that_spark_cannot_tell_apart_are_refused(spark):
    from likewise.spark import dedup, hamming_join, hamming_pairs

    good = spark.createDataFrame([("a", 1), ("b", 3)], "doc_id string, sketch bigint")
    for name in ("sketch", "Sketch"):
        twice = spark.sql(f"select 'a' as doc_id, 1L as sketch, 2L as {name}")
        for search in (lambda frame: hamming_pairs(frame, 3), lambda frame: hamming_join(good, frame, 3)):
            with pytest.raises(
                InvalidParameter, match=f"several columns are called 'sketch': sketch, {name}"
            ) as caught:
                search(twice)
            assert caught.value.name == "fingerprint_field"
    with pytest.raises(InvalidParameter, match="several columns are called 'text'"):
        dedup(spark.sql("select 'a' as id, 'x' as text, 'y' as text"), "online")
    # A backtick in a name is part of the name.
    odd = good.withColumnRenamed("doc_id", "doc`id")
    assert hamming_join(odd, odd, 0, id_field="doc`id").columns == ["doc_id_a", "doc_id_b", "distance"]


def test_a_checkpoint_directory_that_cannot_be_written_is_refused(spark, tmp_path):
    from likewise.spark import hamming_pairs

    frame = spark.createDataFrame([("a", 1)], "doc_id string, sketch bigint")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameter, match=r"Spark cannot write to .*/file: .*not a directory") as caught:
        hamming_pairs(frame, 3, checkpoint_dir=str(tmp_path / "file"))
    assert caught.value.name == "checkpoint_dir"
    # Paths are taken as well as strings.
    assert hamming_pairs(frame, 3, checkpoint_dir=tmp_path / "stages").pairs.count() == 0


@pytest.mark.slow
def test_the_page_runs(spark, tmp_path):
    join, pairs, *_ = blocks("docs/howto/spark.md", "python")[1:]
    block = f"{join}\n{pairs}"
    words = clustered(200, 64, 3, 2)
    for name, some in (("queries", words[:20]), ("crawl-sketches", words[20:])):
        fingerprints(spark, some).write.parquet(f"{tmp_path}/{name}.parquet")
    for name in (
        "queries.parquet",
        "crawl-sketches.parquet",
        "/shared/queries",
        "/shared/pairs",
        "/shared/crawl",
        "/shared/crawl-pairs",
    ):
        block = block.replace(f'"{name}"', f'"{tmp_path}/{name.strip("/")}"')
    exec(compile(block, "page", "exec"), {"spark": spark})
    found = spark.read.parquet(f"{tmp_path}/shared/pairs")
    assert found.count() == len(brute(words[:20], words[20:], 3)) > 0
    wanted = {(i, j) for i, j, _ in brute(words[20:], words[20:], 3) if i < j}
    assert spark.read.parquet(f"{tmp_path}/shared/crawl-pairs").count() == len(wanted) > 0
