"""Write the tables of docs/compare.md from benchmark results: `python bench/compare.py`. Nothing is measured.

Run it after `make bench` and `bench/pipelines.py`.
"""

import json
from pathlib import Path

from rivals import table

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "compare.md"
PACKAGES = ("likewise", "gaoya", "rensa", "datasketch", "text-dedup")
PIPELINES = ("likewise", "datatrove, words by regex", "text-dedup", "datatrove")
HAMMING = ("likewise", "faiss IndexBinaryMultiHash", "faiss IndexBinaryFlat")
RADII = ("3", "6", "10")
CHECKS = {"on the text": "on the text", "by estimate": "by estimate", "no": "no", "no; closure": "no; chains"}


def read(name: str) -> dict:
    """Return the results of a benchmark."""
    return json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))


def made(results: dict) -> str:
    """Return a line with the machine and the date."""
    machine = results["machine"]
    rounds = results.get("repeats")
    said = f"{machine['cpu']}, {machine['num_cores']} cores, Python {machine['python']}, {machine['date'][:10]}"
    return said + (f", rounds: {rounds}" if rounds else "") + "."


def files(rows: list[dict], tools: tuple[str, ...], versions: dict[str, str]) -> list[str]:
    """Return a table of the tools' runs from files to kept documents, by seconds."""
    lines = [
        "| tool | seconds | peak memory | found | removed without a match | checks pairs |",
        "|---|---|---|---|---|---|",
    ]
    chosen = [row for row in rows if row["method"] == "minhash" and row["tool"] in tools]
    for row in sorted(chosen, key=lambda row: row["seconds"]):
        tool, _, way = row["tool"].partition(", ")
        name = "Likewise" if tool == "likewise" else f"{tool} {row.get('version') or versions[tool]}"
        name += f", {way}" if way else ""
        found = f"{row['recall_0.8']:.3f}".removeprefix("0")
        lines.append(
            f"| {name} | {row['seconds']:.2f} | {row['peak_anonymous_mb']:,.0f} MB | {found} "
            f"| {row['num_removed_without_kept_0.8']:,} | {CHECKS[row['verified']]} |"
        )
    num_documents, num_pairs = chosen[0]["num_documents"], chosen[0]["num_pairs_0.8"]
    return [*lines, "", f"{num_documents:,} documents; {num_pairs:,} pairs reach an exact Jaccard similarity of 0.8."]


def packages() -> str:
    """Return the table of MinHash compared with libraries."""
    results = read("rivals")
    rows = [row for row in results["files"] if row["corpus"] == "English" and row["num_documents"] == 100_000]
    return "\n".join([*files(rows, PACKAGES, results["versions"]), made(results)])


def pipelines() -> str:
    """Return the table of MinHash compared with pipelines, on the largest collection of the run."""
    results = read("pipelines")
    rows = max(results["corpora"], key=lambda rows: rows[0]["num_documents"])
    return "\n".join([*files(rows, PIPELINES, {}), made(results)])


def hamming() -> str:
    """Return the table of queries per second on one core, with a million uniform fingerprints."""
    results = read("hamming")
    tools = results["rows"]["queries-1e6-uniform"]["tools"]
    lines = ["| tool | k = 3 | k = 6 | k = 10 | bytes per fingerprint | smallest recall |", "|---|---|---|---|---|---|"]
    for tool in HAMMING:
        within = [tools[tool]["within"][radius] for radius in RADII]
        rates = " | ".join(f"{row['queries_per_s']:,.0f}" for row in within)
        size = max(row["bytes_a_fingerprint"] for row in within)
        name = "Likewise" if tool == "likewise" else f"{tool} {tools[tool]['version']}"
        lines.append(f"| {name} | {rates} | {size:,.1f} | {min(row['recall'] for row in within):.3f} |")
    return "\n".join([*lines, "", made(results)])


def main() -> None:
    """Write the tables between their markers."""
    for name, text in (("packages", packages()), ("pipelines", pipelines()), ("hamming", hamming())):
        table.insert(PAGE, name, text + "\n")


if __name__ == "__main__":
    main()
