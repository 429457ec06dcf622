"""Measure the kernels of this processor with each of its instruction sets, on one thread.

    instruction_sets.py [--repeats 5] [--only KERNEL,...]

Builds `crates/hamming/examples/count_work.rs`, whose kernels `aarch64.py` counts in an emulator, and runs it with each
instruction set in turn. The CPU time of a short run is subtracted from that of a long one, so that the program's
startup cancels out. Writes results/instruction_sets.json and a table of docs/benchmarks/components.md; sets that this
processor lacks are left out.
"""

import argparse
import json
import resource
import statistics
import subprocess
from pathlib import Path

import machine
from aarch64 import KERNELS, PAGE, ROOT, TEXT
from rivals import table

RESULTS = Path(__file__).parent / "results" / "instruction_sets.json"
NAMES = {"plain": "plain", "avx2": "AVX2", "avx512": "AVX-512", "neon": "NEON"}
# CPU seconds of a long run.
LEAST_S = 0.4


def build() -> Path:
    """Build the program."""
    command = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "--quiet",
        "-p",
        "likewise-hamming",
        "--example",
        "count_work",
    ]
    subprocess.run(command, check=True, cwd=ROOT)
    return ROOT / "target" / "release" / "examples" / "count_work"


def run(program: Path, kernel: str, isa: str, num_rounds: int) -> tuple[float, int, str]:
    """Return the CPU seconds of some rounds, the number of items in one, and the kind of item."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, kernel, isa, str(num_rounds), TEXT], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    num_items, item = done.stdout.strip().split(" ", 1)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(num_items), item


def measured(program: Path, kernel: str, isas: list[str], repeats: int) -> dict[str, object]:
    """Return nanoseconds per item with each instruction set: the median, the fastest and the slowest run."""
    num_rounds = 4
    while run(program, kernel, isas[-1], num_rounds)[0] < LEAST_S:
        num_rounds *= 2
    found: dict[str, list[float]] = {isa: [] for isa in isas}
    item = ""
    for _ in range(repeats):
        for isa in isas:
            few, _, _ = run(program, kernel, isa, 1)
            many, num_items, item = run(program, kernel, isa, num_rounds)
            found[isa].append(1e9 * (many - few) / (num_rounds - 1) / num_items)
    ns = {
        isa: [round(value, 4) for value in (statistics.median(all_), min(all_), max(all_))]
        for isa, all_ in found.items()
    }
    return {"item": item, "ns": ns}


def markdown(results: dict) -> str:
    """Return the table: nanoseconds with scalar code, and the share of them that each instruction set takes."""
    isas = results["isas"]
    head = " | ".join(f"{NAMES[isa]} / plain" for isa in isas[1:])
    lines = [f"| work | item | ns per item, plain | {head} |", "|---|---|---|" + "---|" * (len(isas) - 1)]
    for kernel, row in results["kernels"].items():
        plain = row["ns"]["plain"][0]
        shares = " | ".join(f"{row['ns'][isa][0] / plain:.2f}" for isa in isas[1:])
        lines.append(f"| {KERNELS[kernel]} | {row['item']} | {plain:,.2f} | {shares} |")
    facts = results["machine"]
    lines += ["", f"Measured on {facts['cpu']}, load average {facts['load_average'][0]:.0f}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the results and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", help="kernels, separated by commas; writes nothing")
    given = parser.parse_args()
    facts = machine.facts()
    order = list(NAMES)[:3] if facts["isa"] != "neon" else ["plain", "neon"]
    isas = order[: order.index(facts["isa"]) + 1]
    program = build()
    kernels: dict[str, dict[str, object]] = {}
    for kernel in given.only.split(",") if given.only else KERNELS:
        kernels[kernel] = row = measured(program, kernel, isas, given.repeats)
        print(kernel, json.dumps(row), flush=True)
    if given.only is None:
        machine.write_results(RESULTS, isas=isas, kernels=kernels)
        table.insert(PAGE, "instruction sets", markdown(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
