"""Compare the speed of this tree with an older one. Both run the same work in turn, so that a busy machine slows both.

    tree_ratios.py --old FOLDER [--new FOLDER] [--only NAMES] [--repeats 5] [--work FOLDER]
    tree_ratios.py --page-only

FOLDER is a checkout in which the native module is built (`python/likewise`). By default, the new one is this checkout.
Each round runs a row once on each tree, in new processes, in alternating order. The answers are compared by `likewise
diff`, tuned recipes byte by byte. Each tree audits its own run, since an older one may not know the recipe. The first
round is not counted, except for the largest collection: it fills caches, and each tree fills its own index with 1e7
fingerprints in it. The index of 1e8 fingerprints is made once. Rows are merged into results/speed.json, so that they
can be measured in several runs; the tables are written to docs/benchmarks/scale.md.
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

import hamming_data
import large_corpus
import machine
from rivals import table

HERE = Path(__file__).parent
DATA = HERE / "data"
RESULTS = HERE / "results" / "speed.json"
PAGE = HERE.parent / "docs" / "benchmarks" / "scale.md"
ROLES = ("old", "new")
NUM_SHORT, SHORT_CHARACTERS = 1_000, 200
PLAIN = ["--weights", "none", "--threshold", "0.55"]
LARGE = ["--memory", "2GB", *PLAIN]
# Programs get an input, and a folder of the tree that remains from round to round.
COLD = """
import json, sys
import likewise
likewise.dedup([json.loads(line)["text"] for line in open(sys.argv[1], encoding="utf-8")])
"""
INDEX = """
import sys
from pathlib import Path
import numpy as np
import likewise
recipe = likewise.Recipe.simhash(within=3)
resolved = recipe.resolve()
path = Path(sys.argv[2]) / "index"
is_new = not path.exists()
with likewise.Index(path, recipe) as index:
    random = np.random.default_rng(len(index))
    for _ in range(200 if is_new else 500):
        num = 50_000 if is_new else 1_000
        words = random.integers(0, 2**64, num, np.uint64)
        ids = [f"{number:032x}" for number in range(len(index), len(index) + num)]
        index.check_and_add_batch(
            ids, likewise.Sketches(words, resolved, np.zeros(num, bool), np.full(num, 1_000, np.uint32))
        )
"""
HAMMING = """
import sys
from pathlib import Path
import numpy as np
import likewise
folder = Path(sys.argv[2])
path = folder.parent / "fingerprints.index"
if not path.exists():
    likewise.HammingIndex.build(sys.argv[1], path, 3, bits=64, memory=10**10, table_memory=26 * 10**8)
index = likewise.HammingIndex.open(path)
queries = np.fromfile(sys.argv[1], np.uint64, 10**6) ^ np.uint64(1 << 40)
index.query_batch(queries[:1000], 3)
for _ in range(4):
    index.query_batch(queries, 3)
"""


# They print their own measurement, which excludes building the index.
IN_MEMORY = """
import sys, time
import numpy as np
import likewise
codes = np.fromfile(sys.argv[1], np.uint64)
index = likewise.HammingIndex(codes, within=3, memory=26 * len(codes))
queries = codes[:10**6] ^ np.uint64(1 << 40)
index.query_batch(queries[:1000], 3)
"""
BATCHES = f"""{IN_MEMORY}
began = time.perf_counter()
for _ in range(4):
    index.query_batch(queries, 3)
print(time.perf_counter() - began)
"""
SINGLES = f"""{IN_MEMORY}
seconds = []
for query in queries[::50].tolist():
    began = time.perf_counter()
    index.query(query, 3)
    seconds.append(time.perf_counter() - began)
print(1e6 * float(np.percentile(seconds[2_000:], 99)))
"""


@dataclass(frozen=True)
class Row:
    """Work of both trees: `command` with `arguments` on a file or folder, or a Python program.

    For an audit, `arguments` are those of the run, which is not timed.
    """

    title: str
    file: str
    arguments: list[str] | str
    # The time to reach, as a share of the time before, if it was set.
    goal: float | None
    command: str = "dedup"
    has_warm_up: bool = True
    # Whether the program prints the number to compare, in place of its time.
    prints: bool = False


ROWS = {
    "short": Row("1,000 short documents, command line", "short.jsonl", PLAIN, 0.5),
    "cold": Row("1,000 short documents, `import likewise; likewise.dedup(list)`", "short.jsonl", COLD, 0.5),
    "exact": Row("`--method shingles`, 100,000 documents", "plain.jsonl", ["--method", "shingles", *PLAIN], None),
    "exact-templates": Row("`--method shingles`, templates", "templates.jsonl", ["--method", "shingles", *PLAIN], None),
    "exact-forms": Row("`--method shingles`, forms", "forms.jsonl", ["--method", "shingles", *PLAIN], None),
    "templates": Row("MinHash, templates", "templates.jsonl", PLAIN, None),
    "forms": Row("MinHash, forms", "forms.jsonl", PLAIN, None),
    "default": Row("the default recipe", "plain.jsonl", [], 0.52),
    "idf": Row("`--weights idf`", "plain.jsonl", ["--weights", "idf", "--threshold", "0.55"], None),
    "plain": Row("JSON Lines, threshold 0.55", "plain.jsonl", PLAIN, None),
    "plain-0.8": Row("JSON Lines, threshold 0.8", "plain.jsonl", ["--weights", "none", "--threshold", "0.8"], None),
    "parquet": Row("Parquet, threshold 0.8", "plain.parquet", ["--weights", "none", "--threshold", "0.8"], 0.62),
    "zst": Row("`.jsonl.zst`, threshold 0.8", "plain.jsonl.zst", ["--weights", "none", "--threshold", "0.8"], 0.7),
    "spans": Row("`repeats --unit span`", "plain.jsonl", ["--unit", "span"], None, "repeats"),
    "paragraphs": Row("`repeats --unit paragraph`", "plain.jsonl", ["--unit", "paragraph"], None, "repeats"),
    "audit": Row("`audit` of a run with the default recipe", "plain.jsonl", [], None, "audit"),
    "audit-simhash": Row(
        "`audit` of `--method simhash --within 3`",
        "plain.jsonl",
        ["--method", "simhash", "--within", "3"],
        None,
        "audit",
    ),
    "audit-shingles": Row("`audit` of `--method shingles`", "plain.jsonl", ["--method", "shingles"], None, "audit"),
    "audit-exact": Row("`audit` of `--method exact`", "plain.jsonl", ["--method", "exact"], None, "audit"),
    "tune": Row("`tune` with 60 labels", "plain.jsonl", [], 0.5, "tune"),
    "large-1e5": Row("100,000 documents of 1.2 kB, `--memory 2GB`", "large-plain-100000", LARGE, None),
    "large-1e6": Row("1,000,000 documents, `--memory 2GB`", "large-plain-1000000", LARGE, None),
    "large-1e7": Row("10,000,000 documents, `--memory 2GB`", "large-plain-10000000", LARGE, 0.6, has_warm_up=False),
    "large-default-1e6": Row(
        "1,000,000 documents, the default recipe, `--memory 2GB`", "large-plain-1000000", ["--memory", "2GB"], 0.50
    ),
    "large-default-1e7": Row(
        "10,000,000 documents, the default recipe, `--memory 2GB`",
        "large-plain-10000000",
        ["--memory", "2GB"],
        None,
        has_warm_up=False,
    ),
    "large-templates": Row(
        "1,000,000 documents, of which 30% come from a template, `--memory 2GB`",
        "large-templates-1000000",
        LARGE,
        None,
    ),
    "large-levels": Row(
        "the same with `--overflow levels`", "large-templates-1000000", [*LARGE, "--overflow", "levels"], None
    ),
    "index": Row("500 durable batches of 1,000 fingerprints, 1e7 to 1.25e7 held, and the start", "", INDEX, 0.62),
    "hamming-memory": Row(
        "4,000,000 queries in 1e8 fingerprints in memory, 26 bytes each",
        "real.u64",
        BATCHES,
        0.76,
        has_warm_up=False,
        prints=True,
    ),
    "hamming-single": Row(
        "single queries in them, 99th percentile, in microseconds",
        "real.u64",
        SINGLES,
        0.6,
        has_warm_up=False,
        prints=True,
    ),
    "hamming": Row("4,000,000 queries in a mapped index of 1e8 fingerprints, and the start", "real.u64", HAMMING, None),
}

# Rows whose stages are shown.
STAGED = ("plain", "idf", "default", "large-1e5", "large-1e6", "large-1e7", "large-default-1e6", "large-default-1e7")
STAGES = (
    "weighing",
    "reading and sketching",
    "choosing the threshold",
    "ordering",
    "candidates",
    "verification",
    "deciding",
    "writing",
)


def made(name: str, data: Path, work: Path) -> Path:
    """Return an input, which is made in `work` if it is not among the corpora."""
    path = data / name
    if not name:
        return work
    if name.startswith("large-"):
        _, variant, num = name.split("-")
        path = work / name
        large_corpus.load_pool(data / "plain.jsonl")
        large_corpus.make(path, variant, int(num), seed=7, processes=2)
    elif name == "real.u64":
        path = hamming_data.Codes("real", 64, work=work).path(10**8)
    elif name == "short.jsonl":
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


def seconds(tree: Path, command: list[str], *, prints: bool = False) -> tuple[float, float]:
    """Return the seconds (or the number that it prints) and the CPU seconds of a command of a tree."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(tree / "python")
    began = time.perf_counter()
    out = subprocess.PIPE if prints else subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - began
    if status:
        assert process.stderr is not None
        raise SystemExit(process.stderr.read().decode())
    if process.stdout is not None:
        elapsed = float(process.stdout.read())
    return elapsed, usage.ru_utime + usage.ru_stime


def measure(row: Row, trees: dict[str, Path], repeats: int, data: Path, work: Path) -> dict[str, Any]:
    """Run a row on both trees in turn, and compare their answers."""
    path = made(row.file, data, work)
    outs = {name: work / name for name in trees}

    def command(name: str) -> list[str]:
        if isinstance(row.arguments, str):
            outs[name].mkdir(exist_ok=True)
            return [sys.executable, "-c", row.arguments, str(path), str(outs[name])]
        likewise = [sys.executable, "-m", "likewise", row.command]
        if row.command == "audit":
            return [*likewise, str(work / f"{name}-run"), "-o", str(outs[name]), "--quiet"]
        if row.command == "tune":
            return [*likewise, str(path), "--labels", str(labels(data, work)), "-o", str(outs[name]), "--quiet"]
        shutil.rmtree(outs[name], ignore_errors=True)
        return [*likewise, str(path), "-o", str(outs[name]), "--quiet", *row.arguments]

    if row.command == "audit":
        for name, tree in trees.items():
            run = [sys.executable, "-m", "likewise", "dedup", str(path), "-o", str(work / f"{name}-run"), "--quiet"]
            seconds(tree, [*run, *row.arguments])
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in trees}
    stages: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    is_run = row.command == "dedup" and not isinstance(row.arguments, str)
    disk = dict.fromkeys(trees, 0)
    for round_ in range(0 if row.has_warm_up else 1, repeats + 1):
        for name in sorted(trees, reverse=bool(round_ % 2)):
            given = command(name)
            with machine.FreeDisk(work) as used:
                run = seconds(trees[name], given, prints=row.prints)
            if round_:
                runs[name].append(run)
                disk[name] = max(disk[name], used.peak_bytes)
                if is_run:
                    summary = json.loads((outs[name] / "summary.json").read_text(encoding="utf-8"))
                    stages[name].append(summary["timings"]["wall_s"])
    if row.command == "tune" and len({out.read_bytes() for out in outs.values()}) > 1:
        raise SystemExit("the trees propose different recipes")
    if is_run:
        try:
            seconds(trees["new"], [sys.executable, "-m", "likewise", "diff", *map(str, outs.values())])
        except SystemExit as error:
            # An older tree may write other summaries.
            print(f"{row.title}: the answers differ, or cannot be compared: {error}", flush=True)
    result: dict[str, Any] = {"title": row.title, "repeats": repeats}
    for name, walls in stages.items():
        if walls:
            names = sorted({stage for wall in walls for stage in wall})
            result[f"{name}_stages_s"] = {
                stage: round(statistics.median(wall.get(stage, 0.0) for wall in walls), 2) for stage in names
            }
            result[f"{name}_peak_disk_bytes"] = disk[name]
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
        # The run itself loads all cores.
        is_busy = row["load_average"][0] > results["machine"]["num_cores"] + 1
        old, new = ("busy" if is_busy else "{:.2f} ({:.2f}-{:.2f})".format(*row[f"{tree}_seconds"]) for tree in ROLES)
        goal = "-" if ROWS[name].goal is None else f"{ROWS[name].goal:.2f}"
        of_processor = "-" if ROWS[name].prints else f"{row['ratio_processor_seconds']:.2f}"
        ratios = f"{row['ratio_seconds']:.2f} | {of_processor} | {goal}"
        lines.append(f"| {row['title']} | {old} | {new} | {ratios} |")
    facts = results["machine"]
    lines += ["", f"Measured on {facts['num_cores']} cores with {facts['isa'].upper()}."]
    return "\n".join(lines) + "\n"


def stages_table(results: dict[str, Any]) -> str:
    """Return the seconds of the stages of some rows, on both trees."""
    rows = {name: results["rows"][name] for name in STAGED if "new_stages_s" in results["rows"].get(name, {})}
    lines = ["| work | " + " | ".join(STAGES) + " | disk, peak |", "|---|" + "---|" * (len(STAGES) + 1)]
    for row in rows.values():
        for tree, when in zip(ROLES, ("before", "now"), strict=True):
            walls = row[f"{tree}_stages_s"]
            values = " | ".join(f"{walls.get(stage.replace(' ', '_'), 0.0):.2f}" for stage in STAGES)
            lines.append(f"| {row['title']}, {when} | {values} | {row[f'{tree}_peak_disk_bytes'] / 1e9:.1f} GB |")
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
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    table.insert(PAGE, "speed", markdown(results))
    table.insert(PAGE, "stages", stages_table(results))


if __name__ == "__main__":
    main()
