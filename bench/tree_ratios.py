"""Compare the speed of this tree with an older one. Both run the same work in turn, so that a busy machine slows both.

    tree_ratios.py --old FOLDER [--new FOLDER] [--only NAMES] [--repeats 5] [--work FOLDER]
    tree_ratios.py --page-only

FOLDER is a checkout in which the native module is built (`python/likewise`). By default, the new one is this checkout.
Each round runs a row once on each tree, in new processes, in alternating order. The answers are compared by `likewise
diff`, tuned recipes byte by byte, and audits of the same run must pass on both trees. Rows are merged into
results/speed.json, so that they can be measured in several runs; the table is written to docs/benchmarks/scale.md.
Goals were set before the work, in seconds on a quiet machine; for MinHash on templates, as a multiple of the time
without templates.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
from rivals import table

HERE = Path(__file__).parent
DATA = HERE / "data"
RESULTS = HERE / "results" / "speed.json"
PAGE = HERE.parent / "docs" / "benchmarks" / "scale.md"
ROLES = ("old", "new")
NUM_SHORT, SHORT_CHARACTERS = 1_000, 200
PLAIN = ["--weights", "none", "--threshold", "0.55"]
PYTHON = """
import json, sys
import likewise
likewise.dedup([json.loads(line)["text"] for line in open(sys.argv[1], encoding="utf-8")])
"""


@dataclass(frozen=True)
class Row:
    """Work of both trees: `command` with `arguments` on a file, or Python if there are none.

    For an audit, `arguments` are those of the run, which is not timed.
    """

    title: str
    file: str
    arguments: list[str] | None
    # Time before the work, and goal, if they were set.
    goal: tuple[float, float] | None
    command: str = "dedup"


ROWS = {
    "short": Row("1,000 short documents, command line", "short.jsonl", PLAIN, (0.29, 0.15)),
    "cold": Row("1,000 short documents, `import likewise; likewise.dedup(list)`", "short.jsonl", None, (0.29, 0.15)),
    "exact": Row("`--method shingles`, 100,000 documents", "plain.jsonl", ["--method", "shingles", *PLAIN], (3.9, 2.0)),
    "exact-templates": Row(
        "`--method shingles`, templates", "templates.jsonl", ["--method", "shingles", *PLAIN], (10, 4)
    ),
    "exact-forms": Row("`--method shingles`, forms", "forms.jsonl", ["--method", "shingles", *PLAIN], (9, 4)),
    "templates": Row("MinHash, templates", "templates.jsonl", PLAIN, (2.2, 1.5)),
    "forms": Row("MinHash, forms", "forms.jsonl", PLAIN, None),
    "default": Row("the default recipe", "plain.jsonl", [], None),
    "idf": Row("`--weights idf`", "plain.jsonl", ["--weights", "idf", "--threshold", "0.55"], (3.5, 1.73)),
    "plain": Row("JSON Lines, threshold 0.55", "plain.jsonl", PLAIN, (1.15, 0.8)),
    "plain-0.8": Row(
        "JSON Lines, threshold 0.8", "plain.jsonl", ["--weights", "none", "--threshold", "0.8"], (1.01, 0.7)
    ),
    "parquet": Row("Parquet, threshold 0.8", "plain.parquet", ["--weights", "none", "--threshold", "0.8"], (1.7, 1.1)),
    "zst": Row(
        "`.jsonl.zst`, threshold 0.8", "plain.jsonl.zst", ["--weights", "none", "--threshold", "0.8"], (1.5, 1.1)
    ),
    "spans": Row("`repeats --unit span`", "plain.jsonl", ["--unit", "span"], (3.84, 2.05), "repeats"),
    "paragraphs": Row("`repeats --unit paragraph`", "plain.jsonl", ["--unit", "paragraph"], (2.67, 1.37), "repeats"),
    "audit": Row("`audit` of a run with the default recipe", "plain.jsonl", [], (12.9, 4.4), "audit"),
    "audit-simhash": Row(
        "`audit` of `--method simhash --within 3`",
        "plain.jsonl",
        ["--method", "simhash", "--within", "3"],
        None,
        "audit",
    ),
    "audit-shingles": Row("`audit` of `--method shingles`", "plain.jsonl", ["--method", "shingles"], None, "audit"),
    "audit-exact": Row("`audit` of `--method exact`", "plain.jsonl", ["--method", "exact"], None, "audit"),
    "tune": Row("`tune` with 60 labels", "plain.jsonl", [], None, "tune"),
}


def made(name: str, data: Path, work: Path) -> Path:
    """Return an input, which is made in `work` if it is not among the corpora."""
    path = data / name
    if name == "short.jsonl":
        path = work / name
        with (data / "plain.jsonl").open(encoding="utf-8") as lines, path.open("w", encoding="utf-8") as out:
            for _, line in zip(range(NUM_SHORT), lines, strict=False):
                row = json.loads(line)
                out.write(json.dumps(row | {"text": row["text"][:SHORT_CHARACTERS]}) + "\n")
    elif not path.exists():
        import pyarrow as pa

        path = work / name
        path.write_bytes(pa.Codec("zstd").compress((data / name.removesuffix(".zst")).read_bytes(), asbytes=True))
    return path


def labels(data: Path, work: Path) -> Path:
    """Return a file with 30 planted pairs of `plain.jsonl` and 30 pairs of their first documents."""
    planted = [line.split("\t")[:2] for line in (data / "plain.planted.tsv").read_text().splitlines()[1:61]]
    others = [(one[0], other[0]) for one, other in zip(planted[:30], planted[30:], strict=True)]
    rows = [f"{a},{b},1" for a, b in planted[:30]] + [f"{a},{b},0" for a, b in others]
    path = work / "labels.csv"
    path.write_text("doc_id_a,doc_id_b,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def seconds(tree: Path, command: list[str]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of a command of a tree."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(tree / "python")
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - began
    if status:
        assert process.stderr is not None
        raise SystemExit(process.stderr.read().decode())
    return elapsed, usage.ru_utime + usage.ru_stime


def measure(row: Row, trees: dict[str, Path], repeats: int, data: Path, work: Path) -> dict[str, Any]:
    """Run a row on both trees in turn, and compare their answers."""
    path = made(row.file, data, work)
    outs = {name: work / name for name in trees}

    def command(name: str) -> list[str]:
        if row.arguments is None:
            return [sys.executable, "-c", PYTHON, str(path)]
        likewise = [sys.executable, "-m", "likewise", row.command]
        if row.command == "audit":
            return [*likewise, str(work / "run"), "-o", str(outs[name]), "--quiet"]
        if row.command == "tune":
            return [*likewise, str(path), "--labels", str(labels(data, work)), "-o", str(outs[name]), "--quiet"]
        shutil.rmtree(outs[name], ignore_errors=True)
        return [*likewise, str(path), "-o", str(outs[name]), "--quiet", *row.arguments]

    if row.command == "audit":
        run = [sys.executable, "-m", "likewise", "dedup", str(path), "-o", str(work / "run"), "--quiet"]
        seconds(trees["new"], [*run, *(row.arguments or [])])
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in trees}
    for round_ in range(repeats + 1):
        for name in sorted(trees, reverse=bool(round_ % 2)):
            run = seconds(trees[name], command(name))
            # The first round fills caches.
            if round_:
                runs[name].append(run)
    if row.command == "tune" and len({out.read_bytes() for out in outs.values()}) > 1:
        raise SystemExit("the trees propose different recipes")
    if row.command == "dedup" and row.arguments is not None:
        seconds(trees["new"], [sys.executable, "-m", "likewise", "diff", *map(str, outs.values())])
    result: dict[str, Any] = {"title": row.title, "goal": row.goal and list(row.goal), "repeats": repeats}
    for which, unit in enumerate(("seconds", "processor_seconds")):
        for name in trees:
            values = sorted(run[which] for run in runs[name])
            result[f"{name}_{unit}"] = [round(value, 3) for value in (statistics.median(values), values[0], values[-1])]
        ratios = [new[which] / old[which] for new, old in zip(runs["new"], runs["old"], strict=True)]
        result[f"ratio_{unit}"] = round(statistics.median(ratios), 3)
    return result


def markdown(results: dict[str, Any]) -> str:
    """Return the table of the page, with seconds only for rows that were measured while the cores were free."""
    lines = [
        "| work | before, s | now, s | now / before | CPU time: now / before | goal |",
        "|---|---|---|---|---|---|",
    ]
    for name in ROWS:
        if name not in results["rows"]:
            continue
        row = results["rows"][name]
        is_busy = row["load_average"][0] > results["machine"]["num_cores"]
        old, new = ("busy" if is_busy else "{:.2f} ({:.2f}-{:.2f})".format(*row[f"{tree}_seconds"]) for tree in ROLES)
        goal = "-" if row["goal"] is None else "{:.2f}".format(row["goal"][1] / row["goal"][0])
        ratios = f"{row['ratio_seconds']:.2f} | {row['ratio_processor_seconds']:.2f} | {goal}"
        lines.append(f"| {row['title']} | {old} | {new} | {ratios} |")
    facts = results["machine"]
    lines += ["", f"Measured on {facts['num_cores']} cores with {facts['isa'].upper()}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the requested rows, and write the results and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--new", type=Path, default=HERE.parent)
    parser.add_argument("--only", default=",".join(ROWS), help="names of rows, with commas between")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", type=Path, default=DATA, help="the corpora, if not those of this checkout")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--page-only", action="store_true")
    given = parser.parse_args()
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else {}
    if not given.page_only:
        if given.old is None:
            parser.error("--old is required")
        trees = dict(zip(ROLES, (given.old.resolve(), given.new.resolve()), strict=True))
        for name in given.only.split(","):
            with tempfile.TemporaryDirectory(prefix="bench-trees-", dir=given.work) as folder:
                row = measure(ROWS[name], trees, given.repeats, given.data, Path(folder))
            print(name, row, flush=True)
            rows[name] = row | {"date": machine.facts()["date"], "load_average": os.getloadavg()}
            machine.write_results(RESULTS, rows=rows)
    table.insert(PAGE, "speed", markdown(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
