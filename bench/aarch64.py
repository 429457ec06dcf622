"""Count the instructions of the aarch64 kernels, plain and NEON: an estimate of speed without such a processor.

    aarch64.py [--only KERNEL,...]

Builds `crates/hamming/examples/count_work.rs` for aarch64 and runs it in the emulator of Debian's `qemu-user`, with a
plugin that counts (`aarch64_count.c`). Few rounds and many are counted, so that the program's startup cancels out.
Counts are the same on every machine; time is not proportional to them, since instructions differ and wait for each
other. Writes results/aarch64.json and the table of docs/benchmarks/components.md.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rivals import table

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "aarch64.json"
PAGE = ROOT / "docs" / "benchmarks" / "components.md"
TARGET = "aarch64-unknown-linux-gnu"
LIBRARIES = "/usr/aarch64-linux-gnu"
# The same text in every checkout.
TEXT = ROOT / "LICENSE"
KERNELS = {
    "words": "normalize, cut into words, hash them",
    "shingles": "the same, and shingles of five words",
    "simhash": "SimHash, 64 bits",
    "simhash-weighted": "SimHash, 64 bits, weighted",
    "minhash-64": "MinHash, 128 slots, 64 features",
    "minhash-400": "MinHash, 128 slots, 400 features",
    "minhash-4000": "MinHash, 128 slots, 4,000 features",
    "intersection": "intersection, nine of ten features shared",
    "intersection-few": "intersection, one of ten features shared",
    "intersection-weighted": "weighted intersection, nine of ten features shared",
    "bloom": "common bits of two Bloom filters",
    "hamming-one": "Hamming distances, one query",
    "hamming-scan": "Hamming distances, queries in tiles",
    "hamming-join": "Hamming search, a join within 3",
    "hamming-index": "Hamming search, an index within 3",
}
# Those with a version for NEON.
NEON_KERNELS = ("words", "shingles", "bloom")
FEW, MANY = 1, 3


def build(scratch: Path) -> tuple[Path, Path]:
    """Build the program for aarch64 and the plugin of the emulator."""
    variables = {
        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": "aarch64-linux-gnu-gcc",
    }
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target", TARGET]
    command += ["-p", "likewise-hamming", "--example", "count_work"]
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | variables)
    plugin = scratch / "count.so"
    source = HERE / "aarch64_count.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(plugin), str(source)], check=True)
    return ROOT / "target" / TARGET / "release" / "examples" / "count_work", plugin


def count(program: Path, plugin: Path, kernel: str, isa: str, num_rounds: int) -> tuple[int, int, str]:
    """Return the instructions of some rounds, the number of items in one, and the kind of item."""
    command = ["qemu-aarch64", "-L", LIBRARIES, "-plugin", str(plugin), str(program)]
    command += [kernel, isa, str(num_rounds), str(TEXT)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r"^instructions: (\d+)$", ended.stderr, re.M)
    if found is None:
        raise SystemExit(f"the plugin said nothing: {ended.stderr}")
    num_items, item = ended.stdout.strip().split(" ", 1)
    return int(found[1]), int(num_items), item


def measured(program: Path, plugin: Path, kernel: str) -> dict[str, float | str]:
    """Return the instructions per item of a kernel, plain and NEON."""
    row: dict[str, float | str] = {}
    for isa in ("plain", "neon"):
        few, _, _ = count(program, plugin, kernel, isa, FEW)
        many, num_items, item = count(program, plugin, kernel, isa, MANY)
        row["item"] = item
        row[isa] = round((many - few) / (MANY - FEW) / num_items, 3)
    row["ratio"] = round(float(row["neon"]) / float(row["plain"]), 3)
    return row


def version(command: str) -> str:
    """Return the first line of a program's version output."""
    return subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]


def markdown(result: dict) -> str:
    """Return the table."""
    lines = ["| work | item | instructions per item, plain | NEON | NEON / plain |", "|---|---|---|---|---|"]
    for kernel, row in result["kernels"].items():
        counts = f"{row['plain']:,.1f} | {row['neon']:,.1f} | {row['ratio']:.2f}"
        lines.append(f"| {KERNELS[kernel]} | {row['item']} | {counts} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Count, and write the results and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="kernels, separated by commas; writes nothing")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else NEON_KERNELS
    result = {"qemu": version("qemu-aarch64"), "rustc": version("rustc"), "target": TARGET, "kernels": {}}
    with tempfile.TemporaryDirectory() as scratch:
        program, plugin = build(Path(scratch))
        for kernel in names:
            result["kernels"][kernel] = row = measured(program, plugin, kernel)
            print(f"{kernel:22} {row['plain']:>10} {row['neon']:>10} {row['ratio']:>6}  {row['item']}", flush=True)
    if arguments.only is None:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        table.insert(PAGE, "aarch64", markdown(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
