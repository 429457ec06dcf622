"""Write the tables of docs/benchmarks/cluster.md from results/redis_index.json: measured costs and a projection.

    python bench/cluster_page.py

For more documents than were measured, the number of names that a document reads, its tables and their bytes are those
of the plan for that number; the costs of each are those measured with 2e7 documents on three nodes and 8 clients.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import likewise
from likewise import _native
from likewise.index.redis.description import parts_of
from rivals import table

PAGE = HERE.parent / "docs" / "benchmarks" / "cluster.md"
RESULTS = HERE / "results" / "redis_index.json"
NODES = ("1", "3")
LARGEST = 20_000_000
CLIENTS = "8"
# Goals of CPU microseconds and bytes of a document: servers, client by number of clients, memory.
SERVERS_US, CLIENT_US, BYTES = 40, {"1": 10, "8": 20}, 220
# Of the projection: memory of a node for data, share of a core that may be busy, and the most rows of one index.
NODE_BYTES, BUSY, MAX_ROWS = 48 * 2**30, 0.5, 2**32 - 1
# Documents of an index; number of indexes that share them.
PROJECTED = ((1e9, 1), (1e10, 4), (1e10, 16))


def cell(value: float, goal: float) -> str:
    """Return a figure, in bold if it misses its goal."""
    return f"{value:,.0f}" if value <= goal else f"**{value:,.0f}**"


def measured_rows(results: dict[str, Any]) -> list[str]:
    """Return the table of measured costs."""
    lines = [
        "| nodes | documents | call | clients | servers, us | client, us | documents/s | candidates (plan) | bytes |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for nodes in NODES:
        for row in results.get(f"grow, {nodes} nodes", {}).get("sizes", []):
            works = [("add 1,000", number, of) for number, of in row["clients"].items()]
            works += [("check 1,000", "1", row["check"]), ("add 1", "1", row["add one"])]
            for work, number, of in works:
                is_goal = work == "add 1,000"
                servers = cell(of["servers_us_per_document"], SERVERS_US if is_goal else math.inf)
                client = cell(of["client_us_per_document"], CLIENT_US.get(number, math.inf) if is_goal else math.inf)
                planned = of["planned_candidates_per_document"]
                candidates = cell(of["candidates_per_document"], 2 * planned)
                lines.append(
                    f"| {nodes} | {row['num_held']:,} | {work} | {number} | {servers} | {client} "
                    f"| {of['documents_per_s']:,} | {candidates} ({planned:,.0f}) "
                    f"| {cell(row['bytes_per_document'], BYTES)} |"
                )
    return lines


def plan_of(num: float) -> dict[str, float]:
    """Return what the plan for so many documents costs, by its model."""
    recipe = likewise.Recipe.simhash(within=3)
    parts = parts_of(recipe)
    plan = _native.ClusterRule.plan_for(parts, int(num))
    facts = _native.ClusterRule(parts, recipe.feature_rules, plan, partitions=1).plan_facts()
    return {name: float(value) for name, value in facts.items()}


def projected_rows(results: dict[str, Any]) -> list[str]:
    """Return the table of nodes, memory and rates for more documents."""
    sizes = results.get("grow, 3 nodes", {}).get("sizes", [])
    row = next((row for row in sizes if row["num_held"] == LARGEST), None)
    log = results.get("log", {}).get(CLIENTS)
    if row is None or log is None:
        return ["Not measured."]
    add_us, check_us = row["clients"][CLIENTS]["servers_us_per_document"], row["check"]["servers_us_per_document"]
    log_us, before = log["servers_us_per_document"], plan_of(LARGEST)
    lines = [
        f"The log takes {log_us:.1f} us of its server for each document with {CLIENTS} clients "
        f"({results['log']['1']['servers_us_per_document']:.1f} us with one), and at most "
        f"{log['largest_bytes'] / 2**20:.0f} MiB. "
        f"A server that may be busy for {BUSY:.0%} of the time with one log "
        f"takes {BUSY * 1e6 / log_us:,.0f} documents/s.",
        "",
        "| documents | indexes | rows of each | names read | bytes | memory | nodes for the memory | their documents/s "
        "| limit of the logs | nodes that reach it |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for num, indexes in PROJECTED:
        plan = plan_of(num / indexes)
        size = row["bytes_per_document"] - before["table_bytes"] + plan["table_bytes"]
        # Reading is proportional to the names, writing to the tables; the log is counted as writing.
        us = check_us * plan["probes"] / before["probes"] + (add_us - check_us) * plan["tables"] / before["tables"]
        nodes = math.ceil(num * size / NODE_BYTES)
        rate, limit = nodes * BUSY * 1e6 / us, indexes * BUSY * 1e6 / log_us
        lines.append(
            f"| {num:.0e} | {indexes} | {num / indexes:.2g} | {plan['probes']:.0f} | {size:.0f} "
            f"| {num * size / 2**40:.1f} TiB | {nodes} | {min(rate, limit):,.0f} | {limit:,.0f} "
            f"| {math.ceil(limit * us / BUSY / 1e6)} |"
        )
        assert num / indexes <= MAX_ROWS
    return lines


def main() -> None:
    """Write the tables."""
    results = json.loads(RESULTS.read_text())
    facts = results.get("grow, 3 nodes", {}).get("machine")
    lines = measured_rows(results) if facts else ["Not measured."]
    if facts:
        load = facts["load_average"][0]
        lines = [
            f"{facts['cpu']}, {facts['num_cores']} cores, {facts['date'][:10]}, load average {load:.1f}.",
            "",
            *lines,
        ]
    table.insert(PAGE, "measured", "\n".join(lines) + "\n")
    table.insert(PAGE, "projected", "\n".join(projected_rows(results)) + "\n")


if __name__ == "__main__":
    main()
