"""Compare with datatrove and text-dedup, which clean corpora by MinHash: cost per document, recall of the exact pairs.

    pipelines.py run [--sizes 10000,100000] [--repeats 1] [--limit-s 900]
    pipelines.py page       the tables of docs/benchmarks/pipelines.md from results/pipelines.json

Ours runs before and after each of theirs, so that a slowdown of the machine affects all.
"""

import argparse
import json
import os
from pathlib import Path

import machine
from rivals import corpora, registry, run, table

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "pipelines.json"
PAGE = HERE.parent / "docs" / "benchmarks" / "pipelines.md"
METHOD = "minhash"
OURS = run.OUR_RECIPES["likewise", METHOD]
# Theirs decide by bands, which reach below the threshold; so ours also runs with a lower threshold.
LOWER = [option if option != "0.8" else "0.75" for option in OURS]


def measure(corpus: corpora.Corpus, repeats: int, limit_s: float) -> list[dict]:
    """Return a row for ours and for each way of using theirs."""
    judge = run.Judge.of(corpus)
    ours = judge.row("likewise", METHOD, recipe=OURS)
    others = [judge.row("likewise, threshold .75", METHOD, recipe=LOWER)]
    others += [judge.row(rival.name, METHOD, rival) for rival in registry.PIPELINES]
    for _ in range(repeats):
        judge.run(ours, limit_s)
        for row in others:
            judge.run(row, limit_s)
            judge.run(ours, limit_s)
            run.show(row)
    run.show(ours)
    return [ours, *others]


def _name(row: dict) -> str:
    """Return the tool, with the version after its package."""
    if not row.get("version"):
        return row["tool"]
    return row["tool"].replace(row["package"], f"{row['package']} {row['version']}", 1)


def _table(rows: list[dict]) -> list[str]:
    ours = rows[0]
    lines = [
        "",
        f"**{ours['num_documents']:,} documents** ({ours['num_pairs_0.8']:,} pairs with J >= .8)",
        "",
        "| tool | seconds | per document | ratio to Likewise | CPU time, s | ratio to Likewise | peak MB "
        "| found, J >= .8 | J >= .9 | removed, no match kept at .8 | at .7 |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        name = _name(row)
        if "seconds" not in row:
            lines.append(f"| {name} | {row['not_run'].replace('|', '/')} | | | | | | | | | |")
            continue
        lines.append(
            f"| {name} | {row['seconds']:,.2f} | {row['seconds'] / row['num_documents'] * 1e6:,.1f} us "
            f"| {row['seconds'] / ours['seconds']:,.0f} | {row['processor_s']:,.1f} "
            f"| {row['processor_s'] / ours['processor_s']:,.0f} | {row['peak_anonymous_mb']:,.0f} "
            f"| {row['recall_0.8']:.4f} | {row['recall_0.9']:.4f} | {row['num_removed_without_kept_0.8']:,} "
            f"| {row['num_removed_without_kept_0.7']:,} |"
        )
    return lines


def _growth(corpora_rows: list[list[dict]]) -> list[str]:
    """Return the cost of a further document: the difference between smallest and largest corpus, excluding startup."""
    few, many = corpora_rows[0], corpora_rows[-1]
    num_more = many[0]["num_documents"] - few[0]["num_documents"]
    if not num_more:
        return []
    costs = [
        (before["tool"], *((after[of] - before[of]) / num_more * 1e6 for of in ("seconds", "processor_s")))
        for before, after in zip(few, many, strict=True)
        if "seconds" in before and "seconds" in after
    ]
    _, wall, processor = costs[0]
    lines = [
        "",
        f"**Each additional document**, from {few[0]['num_documents']:,} to {many[0]['num_documents']:,} "
        "(startup excluded)",
        "",
        "| tool | per document | ratio to Likewise | CPU time per document | ratio to Likewise |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {tool} | {clock:,.1f} us | {clock / wall:,.0f} | {used:,.1f} us | {used / processor:,.0f} |"
        for tool, clock, used in costs
    ]
    return lines


def markdown(result: dict) -> str:
    """Return all tables, with the machine above and the settings below."""
    facts = result["machine"]
    turns = "once" if result["repeats"] == 1 else f"{result['repeats']} times"
    lines = [
        f"{facts['cpu']}, {facts['num_cores']} cores, {facts['isa']}, Python {facts['python']}, {facts['date']}.",
        f"Each of the other tools ran {turns}, with Likewise before and after each (medians).",
        f"Load average at the start {facts['load_average'][0]:.1f}, at the end {result['load_average_at_end'][0]:.1f}.",
    ]
    for rows in result["corpora"]:
        lines += _table(rows)
    lines += _growth(result["corpora"])
    lines += ["", "Settings:", "", *(f"- {row['tool']}: `{row['settings']}`" for row in result["corpora"][0])]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Read the arguments and run the action."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "page"])
    parser.add_argument("--sizes", default="10000,100000", help="documents of the English corpus")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=900, help="a run that takes longer is ended and said so")
    parser.add_argument("--data", type=Path, default=HERE / "data")
    options = parser.parse_args()
    if options.action == "run":
        result: dict = {
            "machine": machine.facts(),
            "repeats": options.repeats,
            "limit_s": options.limit_s,
            "corpora": [],
        }
        sizes = sorted(int(size) for size in options.sizes.split(","))
        for corpus in corpora.corpora(options.data, sizes):
            if corpus.tokens == "word":
                result["corpora"].append(measure(corpus, options.repeats, options.limit_s))
                result["load_average_at_end"] = os.getloadavg()
                RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    table.insert(PAGE, "pipelines", markdown(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
