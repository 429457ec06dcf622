"""The online index: rates, latencies, memory and disk as it grows.

    index.py grow --to 1e7 [--work FOLDER] [--kind real|uniform] [--seconds 140]
    index.py single|open|memory|texts|minhash [--work FOLDER]
    index.py page|plot

`grow` adds 64-bit fingerprints with ids of 32 characters, and stops to measure at 1e5, 3e5, 1e6, ...: durable
batches of 1,000 with `check_and_add_batch`, batches of 1,000 unseen ones with `check_batch`, and batches in which
every second document is near a stored one. It continues where it stopped, so that a large index is built in slices of
`--seconds`. The other steps use the index at its current size. Each writes its
figures into results/index.json; `page` writes the tables of docs/benchmarks/index.md, `plot` its picture (with
matplotlib).
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import hamming_data
import index_page
import likewise
import machine

HERE = Path(__file__).parent
WORK = Path(tempfile.gettempdir()) / "likewise-index"
RESULTS = HERE / "results" / "index.json"
RECIPE = likewise.Recipe.simhash(within=3)
FILL, BATCH, NUM_BATCHES = 50_000, 1_000, 200
CHECKPOINTS = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000]
# Rows from here on are never stored.
UNSEEN = 900 * hamming_data.CHUNK_ROWS


class Arrivals:
    """Fingerprints in order of arrival, as sketches with ids of 32 characters."""

    def __init__(self, kind: str, work: Path) -> None:
        self._codes = hamming_data.Codes(kind, 64, work=work)
        self._number, self._chunk = -1, np.zeros((0, 1), np.uint64)

    def sketches(self, array: np.ndarray) -> likewise.Sketches:
        return likewise.Sketches(
            array, RECIPE.resolve(), np.zeros(len(array), bool), np.full(len(array), 1_000, np.uint32)
        )

    def half_seen(self, num: int) -> list[likewise.Sketches]:
        """Return batches in which every second document is near a stored one: 0 to 3 bits changed."""
        held = self.take(0, hamming_data.CHUNK_ROWS // 10)[1].array
        chance = np.random.default_rng(9)
        batches = []
        for i in range(num):
            array = self.take(UNSEEN + i * BATCH, BATCH)[1].array.copy()
            copied = held[chance.integers(0, len(held), BATCH // 2), None]
            array[::2] = hamming_data.flip(copied, chance.integers(0, 4, len(copied)), 64, chance)[:, 0]
            batches.append(self.sketches(array))
        return batches

    def take(self, row: int, count: int) -> tuple[list[str], likewise.Sketches]:
        """Return up to `count` of them from `row` on, within one chunk."""
        number, start = divmod(row, hamming_data.CHUNK_ROWS)
        if number != self._number:
            self._chunk, self._number = self._codes.chunk(number)[0], number
        array = self._chunk[start : start + count, 0]
        return [f"{i:032x}" for i in range(row, row + len(array))], self.sketches(array)


def save(name: str, figures: dict) -> None:
    """Add the figures of a step to the results."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"steps": {}}
    results["machine"] = machine.facts()
    results["steps"].setdefault(name, {})
    results["steps"][name].update(figures)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(name, json.dumps(figures))


def disk_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def resident(kind: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(kind))


def percentiles(seconds: list[float]) -> dict:
    return {f"p{p}_us": float(np.percentile(seconds, p) * 1e6) for p in (50, 99)}


def batches_per_second(index: likewise.Index, given: list) -> dict:
    """Return documents per second of durable batches, and the percentiles of a batch."""
    took = []
    for ids, sketches in given:
        began = time.perf_counter()
        index.check_and_add_batch(ids, sketches)
        took.append(time.perf_counter() - began)
    return {"documents_per_s": BATCH * len(took) / sum(took), "batch": percentiles(took)}


def unseen(arrivals: Arrivals, num: int) -> list[likewise.Sketches]:
    return [arrivals.take(UNSEEN + i * BATCH, BATCH)[1] for i in range(num)]


def checks_per_second(index: likewise.Index, given: list[likewise.Sketches]) -> float:
    """Return documents per second of batches of 1,000, from one Python thread."""
    began = time.perf_counter()
    for sketches in given:
        index.check_batch(sketches)
    return BATCH * len(given) / (time.perf_counter() - began)


def grow(work: Path, kind: str, target: int, seconds: float) -> None:
    arrivals, began = Arrivals(kind, work), time.monotonic()
    path = work / f"grow-{kind}"
    with likewise.Index(path, RECIPE) as index:
        while len(index) < target and time.monotonic() - began < seconds:
            held = len(index)
            checkpoint = next((n for n in CHECKPOINTS if n > held), target)
            count = min(FILL, min(checkpoint, target) - held, hamming_data.CHUNK_ROWS - held % hamming_data.CHUNK_ROWS)
            index.check_and_add_batch(*arrivals.take(held, count))
            if len(index) not in CHECKPOINTS:
                continue
            held = len(index)
            size = disk_bytes(path)
            given = [arrivals.take(held + i * BATCH, BATCH) for i in range(NUM_BATCHES)]
            figures = batches_per_second(index, given)
            figures["checks_per_s"] = checks_per_second(index, unseen(arrivals, NUM_BATCHES))
            figures["half_seen_checks_per_s"] = checks_per_second(index, arrivals.half_seen(NUM_BATCHES))
            figures |= {"disk_bytes_a_document": size / held, "anonymous_bytes": resident("RssAnon")}
            save("grow", {f"{kind}-{held}": figures})
        print(f"{len(index):,} documents held after {time.monotonic() - began:.0f} s")


def timed(call: object, given: list) -> list[float]:
    took = []
    for arguments in given:
        began = time.perf_counter()
        call(*arguments)
        took.append(time.perf_counter() - began)
    return took


def single(work: Path, kind: str, num: int = 5_000) -> None:
    """Measure single documents: short texts, since texts of 2.4 kB would measure sketching alone."""
    path = work / f"grow-{kind}"
    chance = np.random.default_rng(5)
    words = [f"word{i}" for i in range(5_000)]

    def made(num: int, name: str) -> list[tuple[str, str]]:
        run = f"{name}-{time.time_ns()}"
        return [(f"{run}-{i}", " ".join(words[j] for j in chance.integers(0, 5_000, 100))) for i in range(num)]

    figures = {}
    for durability, count in (("interval:1000s", num), ("commit", num // 5)):
        with likewise.Index(path, RECIPE, durability=durability) as index:
            given = made(count, durability)
            figures |= {
                "num_held": len(index),
                f"check_and_add {durability}": percentiles(timed(index.check_and_add, given)),
            }
            if durability != "commit":
                figures["check"] = percentiles(timed(index.check, [(text,) for _, text in made(num, "x")]))
    save("single", {kind: figures})


def opening(work: Path, kind: str) -> None:
    """Measure the seconds until a new process has its first answer: after a clean stop, and after a kill."""
    path = work / f"grow-{kind}"
    figures = {"after_close_s": [], "after_kill_s": []}
    code = (
        "import sys, time, likewise, likewise.index\nbegan = time.perf_counter()\n"
        "index = likewise.Index(sys.argv[1])\nindex.check('a text that nobody has seen')\n"
        "print(time.perf_counter() - began, len(index), flush=True)\n"
    )
    adds = (
        "import os, signal\nfor i in range(100):\n"
        "    index.check_and_add_batch([f'{os.getpid()}-{i}-{j}' for j in range(1000)],"
        " [f'{os.getpid()} {i} {j} ' * 20 for j in range(1000)])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for name in ("after_close_s", "after_kill_s") * 3:
        if name == "after_kill_s":
            killed = subprocess.run([sys.executable, "-c", code + adds, path], capture_output=True, check=False)
            assert killed.returncode == -signal.SIGKILL, killed.stderr
        end = "index.close()\n"
        ran = subprocess.run([sys.executable, "-c", code + end, path], capture_output=True, text=True, check=True)
        seconds, held = ran.stdout.split()
        figures[name].append(float(seconds))
    save("open", {kind: {"num_held": int(held)} | {name: float(np.median(took)) for name, took in figures.items()}})


def memory(work: Path, kind: str) -> None:
    """Measure the memory of a process that opened the index and queried it a hundred thousand times."""
    arrivals = Arrivals(kind, work)
    arrivals.take(UNSEEN, BATCH)
    before, mapped = resident("RssAnon"), resident("RssFile")
    with likewise.Index(work / f"grow-{kind}") as index:
        checks_per_second(index, unseen(arrivals, 100))
        held = len(index)
        anonymous = resident("RssAnon") - before
        figures = {"num_held": held, "anonymous_bytes_a_document": anonymous / held}
        figures["mapped_bytes_a_document"] = (resident("RssFile") - mapped) / held
        stats = index.stats
    figures["disk_bytes_a_document"] = disk_bytes(work / f"grow-{kind}") / held
    save("memory", {kind: figures | {"stats": stats}})


def corpus_texts() -> list[str]:
    import pyarrow.parquet as pq

    return pq.read_table(HERE / "data" / "plain.parquet", columns=["text"]).column("text").to_pylist()


def texts(work: Path, kind: str) -> None:
    """Add real documents of 2.4 kB in durable batches of 1,000 to the existing index."""
    given = corpus_texts()
    num_bytes = sum(len(text.encode()) for text in given) / len(given)
    with likewise.Index(work / f"grow-{kind}", RECIPE) as index:
        run, held = time.time_ns(), len(index)
        batches = [
            ([f"{run}-{i}" for i in range(start, start + BATCH)], given[start : start + BATCH])
            for start in range(0, len(given) - BATCH + 1, BATCH)
        ]
        figures = batches_per_second(index, batches)
    save("texts", {kind: {"num_held": held, "bytes_a_text": num_bytes} | figures})


def minhash(work: Path) -> None:
    """Add the same documents by MinHash, verified on stored feature sets, to a new index."""
    given = corpus_texts()
    plain = likewise.Recipe.minhash(0.55)
    named = {"0.55": plain, "0.8": likewise.Recipe.minhash(0.8), "0.55, siblings": plain.replace(siblings="keep")}
    for name, recipe in named.items():
        path = work / "minhash"
        shutil.rmtree(path, ignore_errors=True)
        with likewise.Index(path, recipe) as index:
            batches = [
                ([f"{i:024x}" for i in range(start, start + BATCH)], given[start : start + BATCH])
                for start in range(0, len(given) - BATCH + 1, BATCH)
            ]
            figures = batches_per_second(index, batches)
            held = len(index)
            index.compact()
            stats = index.stats
        figures |= {"num_held": held, "disk_bytes_a_document": disk_bytes(path) / held, "stats": stats}
        save("minhash", {name: figures})
        shutil.rmtree(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["grow", "single", "open", "memory", "texts", "minhash", "page", "plot"])
    parser.add_argument("--to", type=float, default=1e7)
    parser.add_argument("--kind", choices=["real", "uniform"], default="real")
    parser.add_argument("--seconds", type=float, default=140)
    parser.add_argument("--work", type=Path, default=WORK)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    steps = {"single": single, "open": opening, "memory": memory, "texts": texts}
    if given.step == "grow":
        grow(given.work, given.kind, int(given.to), given.seconds)
    elif given.step == "page":
        index_page.write(json.loads(RESULTS.read_text()))
    elif given.step == "plot":
        index_page.plot(json.loads(RESULTS.read_text()))
    elif given.step == "minhash":
        minhash(given.work)
    else:
        steps[given.step](given.work, given.kind)


if __name__ == "__main__":
    main()
