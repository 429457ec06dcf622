"""Measure time and memory of a run over pages that share a template just below the threshold, and of its audit.

    templated_audit.py FOLDER [--pages 200000] [--revisions 10000] [--sample N]

Any two pages have a Jaccard similarity of .533 by their word 3-grams, each revision .64 with the page that it revises.
Prints a line of JSON. Each command is a process of its own; its peak memory is the one reported by the system.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import machine

THRESHOLD = 0.55
NUM_WORDS = 202
NUM_COMMON = 141


def write(path: Path, num_pages: int, num_revisions: int) -> None:
    """Write the pages, followed by the revisions, as JSON Lines."""
    menu = " ".join(f"menu{i}" for i in range(NUM_COMMON))
    with path.open("w") as file:
        for number in range(num_pages + num_revisions):
            is_revision = number >= num_pages
            page = (number - num_pages) * max(1, num_pages // max(1, num_revisions)) if is_revision else number
            words = [f"p{page}w{i}" for i in range(NUM_WORDS - NUM_COMMON)]
            # A revision keeps the first of its own words, so that more 3-grams are shared.
            changed = range(17, len(words)) if is_revision else ()
            for i in changed:
                words[i] = f"r{number}w{i}"
            file.write(json.dumps({"id": str(number), "text": f"{menu} {' '.join(words)}"}) + "\n")


def run(command: list[str]) -> dict[str, float]:
    """Run a command; return its seconds, processor seconds and peak memory."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, command
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / 1024),
    }


def main() -> None:
    """Write the pages, run and audit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--revisions", type=int, default=10_000)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--method", default="minhash")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    source, out = options.folder / "pages.jsonl", options.folder / "out"
    if not source.exists():
        write(source, options.pages, options.revisions)
    likewise = [sys.executable, "-m", "likewise"]
    dedup = ["dedup", str(source), "-o", str(out), "--overwrite", "--method", options.method]
    figures = {"run": run([*likewise, *dedup, "--threshold", str(THRESHOLD), "--weights", "none", "--quiet"])}
    sample = [] if options.sample is None else ["--sample", str(options.sample)]
    certificate = options.folder / "audit.json"
    figures["audit"] = run([*likewise, "audit", str(out), "-o", str(certificate), "--quiet", *sample])
    found = json.loads(certificate.read_text())
    names = ("num_documents", "num_removed", "sample", "pair_recall", "removal_recall", "estimated")
    print(json.dumps({"machine": machine.facts(), **figures, **{name: found[name] for name in names}}))


if __name__ == "__main__":
    main()
