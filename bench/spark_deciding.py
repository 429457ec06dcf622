"""Two ways to decide graphs on a Spark cluster: in rounds, as Likewise does, and by connected component.

    python bench/spark_deciding.py [--graphs "random 1e5,chain 1e5"] [--work FOLDER]

Graphs of N documents: `random` has N/2 random pairs, `dense` 2N; in `chain`, each document matches the one before;
`versions` are chains of 10; `stars` are 100 documents each, one of which matches the others. Documents are in order of
priority.

Connected components are found with DataFrames only, by large-star and small-star (Kiveris, Lattanzi, Mirrokni, Rastogi,
Vassilvitskii, "Connected Components in MapReduce and Beyond", SoCC 2014), one stage per iteration. The pairs are then
grouped by component, and each component is decided on a worker by the local rule. Rounds run with memory for 10,000
pairs on the driver, and with the default memory. After MOST_ROUNDS rounds the run is stopped.

The verdicts of finished runs are compared with those of the local rule. Spark broadcasts no table, so that the shuffled
bytes of small graphs are those of large ones. The cluster and the count of shuffled bytes are those of spark_driver.py.

Needs ``pip install "likewise[spark]"`` and Java; writes results/spark_deciding.json.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import machine
import spark_driver

RESULTS = HERE / "results" / "spark_deciding.json"
GRAPHS = "random 1e5,random 1e6,dense 1e5,chain 1e5,versions 1e5,stars 1e5"
# Memory for 10,000 pairs of 200 bytes each.
SMALL = "2MB"
MOST_ROUNDS = 10
SEED = 5


class Stopped(Exception):
    """A run needs more rounds than MOST_ROUNDS."""

    def __init__(self, num_open: int) -> None:
        super().__init__(num_open)
        self.num_open = num_open


def graph(spark: Any, kind: str, num: int) -> Any:
    """Return the pairs of a graph: later, earlier, similarity, distance."""
    from pyspark.sql import functions as F

    def drawn(seed: int, most: int) -> Any:
        return F.pmod(F.xxhash64(F.col("id"), F.lit(seed)), F.lit(most))

    rows = spark.range(num)
    if kind in ("random", "dense"):
        num_pairs = num // 2 if kind == "random" else 2 * num
        rows, one, other = spark.range(num_pairs), drawn(1, num), drawn(2, num)
    elif kind == "chain":
        one, other = F.col("id"), F.greatest(F.col("id") - 1, F.lit(0))
    elif kind == "versions":
        one, other = F.col("id"), F.when(F.col("id") % 10 > 0, F.col("id") - 1).otherwise(F.col("id"))
    elif kind == "stars":
        # The center is any of the hundred.
        first = F.col("id") - F.col("id") % 100
        one, other = F.col("id"), first + F.pmod(F.xxhash64(first, F.lit(SEED)), F.lit(100))
    else:
        raise SystemExit(f"no graph is called {kind}")
    pairs = rows.select(
        F.greatest(one, other).alias("later"),
        F.least(one, other).alias("earlier"),
        (drawn(3, 50) / 100 + 0.5).alias("similarity"),
        F.lit(None).cast("int").alias("distance"),
    )
    return pairs.where("later > earlier").dropDuplicates(["later", "earlier"])


def by_rounds(edges: Any, saved: Any, num: int, memory: str) -> dict[str, int]:
    """Decide in rounds, and return counts."""
    from likewise.batch.spark.deciding import leader_verdicts, removed_ranks
    from likewise.errors import parse_size

    memory_bytes = parse_size("driver_memory", memory)
    removed, counts = removed_ranks(edges, saved, num, memory_bytes=memory_bytes, progress=lambda event: None)
    saved.frame("verdicts", lambda: leader_verdicts(edges, removed))
    return {"num_rounds": counts["num_rounds"], "num_pairs_on_driver": counts["num_pairs_on_driver"]}


def by_components(edges: Any, saved: Any) -> dict[str, int]:
    """Decide by connected component, and return counts."""
    joined, before, num_iterations = edges.select("later", "earlier"), None, 0
    while True:
        num_iterations += 1
        joined, facts = saved.frame(f"joined-{num_iterations}", lambda pairs=joined: joined_closer(pairs), fingerprint)
        if facts == before:
            break
        before = facts
    # No first document of a component is later than another of it.
    roots = joined.withColumnRenamed("earlier", "root")
    ours = edges.select("later", "earlier", "similarity").join(roots, "later").repartition("root")
    ours = ours.sortWithinPartitions("root")
    saved.frame("verdicts", lambda: ours.mapInArrow(decided, "rank long, kept_rank long, similarity double"))
    return {"num_rounds": num_iterations, "num_pairs_on_driver": 0}


def joined_closer(pairs: Any) -> Any:
    """Return pairs that connect the same documents, after one large-star and one small-star.

    Both rounds return at most as many pairs as they take. At the end, all documents of a component but the first are
    paired with the first one.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    both = pairs.union(pairs.select(F.col("earlier").alias("later"), F.col("later").alias("earlier")))
    of_document = Window.partitionBy("later")
    large = both.select("later", "earlier", F.min("earlier").over(of_document).alias("least")).where("earlier > later")
    large = large.select(F.col("earlier").alias("later"), F.least("later", "least").alias("earlier"))
    small = large.select("later", "earlier", F.min("earlier").over(of_document).alias("least"))
    is_least = F.col("earlier") == F.col("least")
    return small.select(
        F.when(is_least, F.col("later")).otherwise(F.col("earlier")).alias("later"), F.col("least").alias("earlier")
    ).distinct()


def fingerprint(pairs: Any) -> dict[str, int]:
    """Return the number of pairs and a hash of all of them, which differ if any pair changed."""
    from pyspark.sql import functions as F

    num, total = pairs.agg(F.count("*"), F.sum(F.xxhash64("later", "earlier").cast("decimal(20)"))).collect()[0]
    return {"num": int(num), "total": int(total)}


def decided(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the verdicts of components, from pairs sorted by component. Runs on a worker."""
    import pyarrow as pa

    from likewise.stages.groups import choose_leaders

    def of(held: list[Any]) -> Iterator[Any]:
        table = pa.Table.from_batches(held)
        later, earlier, similarity = (table.column(name).to_numpy() for name in ("later", "earlier", "similarity"))
        ranks, places = np.unique(np.concatenate([later, earlier]), return_inverse=True)
        leaders = choose_leaders(len(ranks), places.reshape(2, -1).T.astype(np.int64), similarity)
        gone = np.flatnonzero(~leaders.kept)
        columns = {
            "rank": ranks[gone],
            "kept_rank": ranks[leaders.leader[gone]],
            "similarity": leaders.similarity[gone],
        }
        yield pa.RecordBatch.from_pydict({name: pa.array(column) for name, column in columns.items()})

    # Pairs whose component may go on in the next batch.
    held: list[Any] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        roots = batch.column("root").to_numpy()
        begin = int(np.searchsorted(roots, roots[-1]))
        whole = batch.slice(0, begin)
        if held and (begin or held[-1].column("root")[0] != batch.column("root")[0]):
            yield from of([*held, whole])
            held = []
        elif begin:
            yield from of([whole])
        held.append(batch.slice(begin))
    if held:
        yield from of(held)


def one(kind: str, num: int, master: str, work: Path) -> None:
    """Run as the driver: decide one graph in all ways, and print costs and times."""
    from pyspark.sql import SparkSession

    from likewise.batch.spark.frames import DRIVER_MEMORY
    from likewise.batch.spark.stages import Stages

    class Limited(Stages):
        """Stops after MOST_ROUNDS rounds."""

        def frame(self, name: str, *given: Any, **more: Any) -> Any:
            found, facts = super().frame(name, *given, **more)
            if name == f"round-{MOST_ROUNDS}" and facts["num_open"] > 0:
                raise Stopped(facts["num_open"])
            return found, facts

    ways: dict[str, Callable[[Any, Any], dict[str, int]]] = {
        f"rounds, {SMALL}": lambda edges, saved: by_rounds(edges, saved, num, SMALL),
        f"rounds, {DRIVER_MEMORY}": lambda edges, saved: by_rounds(edges, saved, num, DRIVER_MEMORY),
        "components": by_components,
    }
    # Small tables are shuffled, as large ones are, and not sent through the driver.
    options = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    spark = SparkSession.builder.master(master).appName("likewise").config(map=options).getOrCreate()
    # Start the workers, and compile what the ways use.
    by_rounds(*stored(Stages(spark, str(work / "first rounds")), "stars", 1000), 1000, "1KB")
    by_components(*stored(Stages(spark, str(work / "first components")), "stars", 1000))
    found: dict[str, Any] = {}
    for name, decide in ways.items():
        edges, saved = stored(Limited(spark, str(work / name)), kind, num)
        began = time.time()
        try:
            counts = decide(edges, saved)
        except Stopped as stop:
            counts = {"num_rounds": MOST_ROUNDS, "stopped_with_pairs": stop.num_open}
        ended = time.time()
        found[name] = {"began": began, "ended": ended, "seconds": ended - began, **counts}
    spark.stop()
    print(json.dumps(found))


def stored(saved: Any, kind: str, num: int) -> tuple[Any, Any]:
    """Return the pairs of a graph, written as the first stage, and the stages."""
    return saved.frame("edges", lambda: graph(saved.spark, kind, num))[0], saved


def facts_of(edges: Path) -> dict[str, int]:
    """Return the number of pairs, and the number of documents of the largest component."""
    from likewise.stages.groups import components

    table = pq.read_table(edges)
    pairs = np.stack([np.asarray(table.column(name)) for name in ("later", "earlier")], axis=1)
    sizes = np.bincount(components(int(pairs.max()) + 1, pairs))
    return {"num_pairs": len(pairs), "largest_component": int(sizes.max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default=GRAPHS, help="kinds and N, commas between them")
    parser.add_argument("--work", type=Path, default=Path("spark-deciding-work"))
    parser.add_argument("--one", nargs=3, metavar=("KIND", "N", "MASTER"), help="used by the program itself")
    given = parser.parse_args()
    if given.one is not None:
        kind, size, master = given.one
        one(kind, int(size), master, given.work)
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for text in given.graphs.split(","):
        kind, size = text.split()
        num, work = int(float(size)), given.work.absolute()
        try:
            found = spark_driver.on_cluster(__file__, [kind, str(num)], work)
            written = list(spark_driver.shuffles(work / "log"))
            for name, entry in found.items():
                began, ended = entry.pop("began"), entry.pop("ended")
                entry["shuffle_bytes"] = sum(num_bytes for end, num_bytes in written if began <= end <= ended)
                if "stopped_with_pairs" not in entry:
                    spark_driver.check(work / name)
            facts = facts_of(work / "components" / "edges")
        finally:
            shutil.rmtree(work, ignore_errors=True)
        results[f"{kind} {num}"] = {"num_documents": num, **facts, "ways": found, "machine": machine.facts()}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        print(text, json.dumps(facts), json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
