"""Add to and remove from an index that holds a fixed number of documents: its sizes must stay constant.

    index_churn.py [--pattern oldest random mixed ttl] [--operations 1e6] [--live 20000] [--samples 40] [--work FOLDER]

Patterns select the document removed when another is added: the oldest, a random one, a random one except for a half
that is never removed and is added in the first tenth of the run (mixed), or those that expire
after 5 s (ttl). An operation is an addition or a removal. Fingerprints are uniform, so that hardly any document is a
duplicate; every 20th is, and is added within 10 documents of its original.

At intervals it records the bytes of the database, the log and the segments, the anonymous memory of the process, and
the time to open the index for reading next to the writer. results/index_churn.json gets the slope of each over the
second half of the run, with its 95% interval, as a share of the mean per million operations.
"""

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import likewise
import machine

RESULTS = Path(__file__).parent / "results" / "index_churn.json"
RECIPE = likewise.Recipe.simhash(within=3)
PATTERNS = ("oldest", "random", "mixed", "ttl")
BATCH, TTL_S = 500, 5


def sketches(first: int, num: int) -> likewise.Sketches:
    """Return fingerprints of consecutive numbers; every 20th is that of the number 10 before."""
    numbers = np.arange(first, first + num, dtype=np.uint64)
    numbers -= np.where(numbers % 20 == 19, 10, 0).astype(np.uint64)
    # The mixing function of splitmix64.
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return likewise.Sketches(mixed, RECIPE.resolve(), np.zeros(num, bool), np.full(num, 1_000, np.uint32))


def anonymous_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def open_ms(path: Path) -> float:
    """Return the median milliseconds of five openings for reading."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        with likewise.Index(path, read_only=True):
            times.append(1_000 * (time.perf_counter() - began))
    return statistics.median(times)


def slope(samples: list[dict], name: str) -> dict:
    """Return the change per million operations as a share of the mean, by least squares over the second half."""
    part = samples[len(samples) // 2 :]
    x = np.array([sample["operations"] for sample in part]) / 1e6
    y = np.array([sample[name] for sample in part], float)
    centered = x - x.mean()
    found = (centered * (y - y.mean())).sum() / (centered**2).sum()
    rest = y - y.mean() - found * centered
    error = np.sqrt((rest**2).sum() / max(1, len(y) - 2) / (centered**2).sum())
    # From Student's distribution for 10 and more degrees of freedom.
    reach = 2.1 * error
    mean = max(y.mean(), 1e-9)
    return {
        "mean": float(y.mean()),
        "slope": found / mean,
        "low": (found - reach) / mean,
        "high": (found + reach) / mean,
    }


class Churn:
    """An index, and the documents in it."""

    def __init__(self, pattern: str, num_live: int, num_operations: int, index: likewise.Index) -> None:
        self.pattern, self.num_live, self.index = pattern, num_live, index
        self.chance = random.Random(1)
        self.live: list[int] = []
        self.num_stay = num_live // 2 if pattern == "mixed" else 0
        # Documents that are never removed are spread over the first tenth of the run.
        self.stay_every = max(2, num_operations // 20 // max(1, self.num_stay))
        self.num_staying = self.next = self.oldest = self.num_operations = 0

    def add(self) -> None:
        first, self.next = self.next, self.next + BATCH
        self.index.add_batch([f"document-{number:012d}" for number in range(first, self.next)], sketches(first, BATCH))
        self.num_operations += BATCH
        if self.pattern == "ttl":
            return
        for number in range(first, self.next):
            if self.num_staying < self.num_stay and number % self.stay_every == 0:
                self.num_staying += 1
            else:
                self.live.append(number)

    def remove(self) -> None:
        if self.pattern == "ttl":
            return
        while len(self.live) - self.oldest + self.num_staying > self.num_live:
            if self.pattern == "oldest":
                number = self.live[self.oldest]
                self.oldest += 1
                if self.oldest > len(self.live) // 2:
                    del self.live[: self.oldest]
                    self.oldest = 0
            else:
                at = self.chance.randrange(len(self.live))
                self.live[at], self.live[-1] = self.live[-1], self.live[at]
                number = self.live.pop()
            self.index.remove(f"document-{number:012d}")
            self.num_operations += 1


def sample(path: Path, churn: Churn) -> dict:
    files = {name: (path / name).stat().st_size for name in ("documents.sqlite", "documents.sqlite-wal")}
    segments = sum(file.stat().st_size for file in (path / "segments").glob("*"))
    return {
        "operations": churn.num_operations,
        "num_documents": len(churn.index),
        "database_bytes": files["documents.sqlite"],
        "log_bytes": files["documents.sqlite-wal"],
        "segment_bytes": segments,
        "anonymous_bytes": anonymous_bytes(),
        "open_ms": open_ms(path),
    }


def run(pattern: str, num_live: int, num_operations: int, num_samples: int, work: Path) -> dict:
    path = work / pattern
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    began, samples = time.monotonic(), []
    options = {"ttl": TTL_S} if pattern == "ttl" else {}
    with likewise.Index(path, RECIPE, durability="interval:200ms", **options) as index:
        churn = Churn(pattern, num_live, num_operations, index)
        while churn.num_operations < num_operations:
            churn.add()
            churn.remove()
            if churn.num_operations >= num_operations * (len(samples) + 1) / num_samples:
                samples.append(sample(path, churn))
                print(pattern, json.dumps(samples[-1]), flush=True)
        findings = [str(finding) for finding in index.verify(full=True)]
        index.compact()
    left = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    names = ("database_bytes", "log_bytes", "segment_bytes", "anonymous_bytes", "open_ms")
    shutil.rmtree(path)
    return {
        "num_operations": churn.num_operations,
        "num_live": num_live,
        "seconds": time.monotonic() - began,
        "findings": findings,
        "bytes_when_compacted_and_closed": left,
        "slopes_per_million_operations": {name: slope(samples, name) for name in names},
        "samples": samples,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", nargs="+", choices=PATTERNS, default=PATTERNS)
    parser.add_argument("--operations", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--live", type=int, default=20_000)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "likewise-churn")
    given = parser.parse_args()
    for pattern in given.pattern:
        figures = run(pattern, given.live, given.operations, given.samples, given.work)
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results |= {"machine": machine.facts(), pattern: figures}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        print(pattern, json.dumps({name: value for name, value in figures.items() if name != "samples"}))


if __name__ == "__main__":
    main()
