"""Write the tables and the plot of docs/benchmarks/spark.md from the results of the benchmarks of Spark.

    python bench/spark_page.py

Tables: runs stage by stage (spark.py), the driver (spark_driver.py), rounds and components (spark_deciding.py), Hamming
search (spark_hamming.py), and the planner's predictions for 1e9 and 1e10 documents, compared with SEDD. The plot of the
driver needs matplotlib.
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import growth_plot
import likewise
from likewise.batch.budget.cluster_plans import ROW_NS, best_keys, plan_pairs, plan_run
from rivals import table

PAGE = HERE.parent / "docs" / "benchmarks" / "spark.md"
PLOT = PAGE.with_name("spark-driver.svg")
# Assumed price of a core-hour, in dollars.
PRICE = 0.04
WORKERS = 1000
DOCUMENT_BYTES = 1173
BYTES_A_TOKEN = 4.5
# SEDD (arXiv 2501.01046v4): tokens, hours, GPUs (V100).
SEDD = (1.2e12, 3, 32)
RECIPES = {
    "MinHash": likewise.Recipe.minhash(),
    "SimHash, within 3 of 64 bits": likewise.Recipe.simhash(bits=64, within=3),
    "exact": likewise.Recipe.exact(),
}

# spark.sql.shuffle.partitions of bench/spark_hamming.py, which the planner takes for the number of cores.
PARTITIONS = 8


def of(name: str) -> dict[str, Any]:
    """Return the results of a script, or an empty dict if it was not run."""
    path = HERE / "results" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def rows(head: str, lines: list[str]) -> str:
    """Return a Markdown table."""
    return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *lines]) + "\n"


def when(entry: dict[str, Any]) -> str:
    """Return the day of a run, and the load of the machine."""
    facts = entry["machine"]
    return f"{facts['date'][:10]}, load {facts['load_average'][0]:.0f}"


def runs() -> str:
    """Return the table of core-seconds and bytes of each stage, per document."""
    lines = []
    for name, entry in of("spark").items():
        if "core_s_of_stages" not in entry:
            continue
        num = entry["num_documents"]
        for stage, core_s in entry["core_s_of_stages"].items():
            shuffled = entry["shuffle_bytes_of_stages"][stage]
            lines.append(f"| {name} | {stage} | {core_s:.1f} | {1e6 * core_s / num:.0f} us | {shuffled / num:,.0f} |")
        total, shuffled = entry["core_s"], sum(entry["shuffle_bytes_of_stages"].values())
        lines.append(
            f"| {name} | **all** | **{total:.1f}** | **{1e6 * total / num:.0f} us** | **{shuffled / num:,.0f}** |"
        )
    return rows("| run | stage | core-seconds | per document | bytes shuffled per document |", lines)


def driver() -> str:
    """Return the table of the driver's memory and of shuffled bytes."""
    lines = []
    for kind, entries in of("spark_driver").items():
        for num, entry in sorted(entries.items(), key=lambda item: int(item[0])):
            after, before = entry["after"], entry["before"]
            pairs = entry.get("num_pairs", entry.get("num_candidates"))
            counts = ("-" if count is None else f"{count:,}" for count in (pairs, entry["num_rounds"]))
            lines.append(
                f"| {kind} | {int(num):,} | {' | '.join(counts)} "
                f"| {after['python'] / 1e6:.0f} ({before['python'] / 1e6:.0f}) MB "
                f"| {after['java_live'] / 1e6:.0f} ({before['java_live'] / 1e6:.0f}) MB "
                f"| {after['java'] / 1e6:.0f} ({before['java'] / 1e6:.0f}) MB "
                f"| {entry['shuffle_bytes'] / int(num):.0f} | {when(entry)} |"
            )
    head = (
        "| work | documents | pairs | rounds | peak of Python (at the start) | live heap of Java | peak of Java "
        "| bytes shuffled per document | run |"
    )
    return rows(head, lines)


def deciding() -> str:
    """Return the table of rounds and components."""
    lines = []
    for name, entry in of("spark_deciding").items():
        what = (
            f"{name.split()[0]} | {entry['num_documents']:,} | {entry['num_pairs']:,} | {entry['largest_component']:,}"
        )
        for way, found in entry["ways"].items():
            left = found.get("stopped_with_pairs")
            stopped = "" if left is None else f", stopped with {left:,} pairs open"
            on_driver = f"{found['num_pairs_on_driver']:,}" if left is None else ""
            lines.append(
                f"| {what} | {way} | {found['num_rounds']}{stopped} | {on_driver} | {found['seconds']:.0f} "
                f"| {found['shuffle_bytes'] / entry['num_pairs']:,.0f} | {when(entry)} |"
            )
    head = (
        "| graph | documents | pairs | largest component | way | rounds or iterations | pairs decided on the driver "
        "| seconds | bytes shuffled per pair | run |"
    )
    return rows(head, lines)


def plot() -> None:
    """Plot the driver's memory over the number of documents."""
    looks = {"Python, peak": "python", "Java, live heap": "java_live", "Java, peak": "java"}
    panels = {
        f"MB of the driver, {kind}": {
            label: [(int(num), entry["after"][name] / 1e6) for num, entry in of("spark_driver")[kind].items()]
            for label, name in looks.items()
        }
        for kind in ("deciding", "simhash")
    }
    growth_plot.draw(PLOT, panels)


def search() -> str:
    """Return the table of joins and pairs of fingerprints, compared with the planner."""
    lines = []
    for name, entry in of("spark_hamming").items():
        task, size, bits, within, *plan = name.split(maxsplit=4)
        if task == "dedup":
            continue
        what = f"{entry['queries']:,} x {int(size):,}" if task == "join" else f"pairs of {int(size):,}"
        what = ", ".join([what, *plan])
        if task == "join":
            planned = int(size) * (best_keys(entry["queries"], int(bits), int(within)).query_ns + ROW_NS) / 1e9
        else:
            how = entry["plan"]["name"]
            planned = plan_pairs(int(size), int(bits), int(within), 10**9, plan=how, num_cores=PARTITIONS).core_s
        lines.append(
            f"| {what} | {within} of {bits} | {entry['num_pairs']:,} | {entry['core_s']:.0f} "
            f"| {int(size) / entry['core_s'] / 1e6:.2f} M | {planned:.0f} | {entry['core_s'] / planned:.2f} "
            f"| {when(entry)} |"
        )
    head = (
        "| fingerprints | radius | pairs | core-seconds | fingerprints per core-second | planned core-seconds "
        "| measured / planned | run |"
    )
    return rows(head, lines)


def small_driver() -> str:
    """Return the table of SimHash runs with a driver of 1 GB."""
    lines = []
    for name, entry in of("spark_hamming").items():
        if name.startswith("dedup"):
            same = {True: "yes", False: "NO", None: "not compared"}[entry["same_as_local"]]
            lines.append(
                f"| {entry['num_documents']:,} | {entry['within']} of {entry['bits']} | {entry['driver_memory']} "
                f"| {entry['num_removed']:,} | {same} | {entry['driver_python_peak_bytes'] / 1e6:.0f} MB "
                f"| {entry['java_peak_bytes'] / 1e6:,.0f} MB | {entry['core_s']:.0f} | {when(entry)} |"
            )
    head = (
        "| documents | radius | heap of Java | removed | same as a local run | peak of Python | peak of Java "
        "| core-seconds | run |"
    )
    return rows(head, lines)


def costs() -> str:
    """Return the table of the planner's predictions for collections of the size of crawls."""
    lines = []
    for title, recipe in RECIPES.items():
        for num in (10**9, 10**10):
            plan = plan_run(recipe.resolve(), num, WORKERS, DOCUMENT_BYTES)
            tokens = num * DOCUMENT_BYTES / BYTES_A_TOKEN
            hours = plan.core_s / 3600
            sent, stored = (
                sum(getattr(stage, name) for stage in plan.stages) / 1e12 for name in ("shuffle_bytes", "stored_bytes")
            )
            lines.append(
                f"| {title} | {num:,} | {tokens / 1e12:.2f} T | {sent:.1f} TB | {stored:.1f} TB | {hours:,.0f} "
                f"| {plan.hours:,.1f} | ${PRICE * hours:,.0f} | {tokens / hours / 1e9:.1f} G |"
            )
    head = (
        f"| method | documents | tokens | shuffled | stored | core-hours | hours on {WORKERS:,} cores "
        f"| price at ${PRICE:.2f} a core-hour | tokens per core-hour |"
    )
    tokens, hours, num_gpus = SEDD
    sedd = (
        f"\nSEDD reports {tokens / 1e12:.1f} T tokens in {hours} h on {num_gpus} V100 GPUs (arXiv 2501.01046v4): "
        f"{hours * num_gpus} GPU-hours, {tokens / (hours * num_gpus) / 1e9:.1f} G tokens per GPU-hour.\n"
    )
    return rows(head, lines) + sedd


def main() -> None:
    """Write all tables and the plot."""
    for name, make in (
        ("spark runs", runs),
        ("spark driver", driver),
        ("spark deciding", deciding),
        ("spark small driver", small_driver),
        ("spark search", search),
        ("spark costs", costs),
    ):
        table.insert(PAGE, name, make())
    plot()


if __name__ == "__main__":
    main()
