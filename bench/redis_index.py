"""Measure the index on a Redis server: throughput of several client processes, CPU times, and memory per document.

redis_index.py fill|measure|all --folder FOLDER [--documents 5000000] [--within 3] [--clients 4]

`fill` starts a separate server on a socket and adds documents. `measure` measures this server, writes
bench/results/redis_index.json and stops the server. `all` does both. Documents are uniform fingerprints with ids of 24
characters (fill) or 32, so that each is new: the worst case for time and space.
"""

import argparse
import json
import multiprocessing
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import likewise
import machine
from likewise.redis import RedisIndex

RESULTS = Path(__file__).parent / "results" / "redis_index.json"
BATCH = 1000
FILL_BATCH = 2000


def sketches(recipe: likewise.Recipe, seed: int, num: int) -> likewise.Sketches:
    """Return uniform fingerprints of documents that are not short."""
    fingerprints = np.random.default_rng(seed).integers(0, 2**64, num, dtype=np.uint64)
    return likewise.Sketches(fingerprints, recipe, np.zeros(num, bool), np.full(num, 500, np.uint32))


def names(length: int, client: int, start: int, num: int) -> list[str]:
    """Return ids of `length` characters."""
    return [f"crawl-{client:02d}-{start + i:0{length - 9}d}" for i in range(num)]


def opened(url: str, within: int, expected: int | None = None) -> RedisIndex:
    """Open the index of this measurement."""
    return RedisIndex(url, likewise.Recipe.simhash(within=within), expected=expected, threads=1, timeout_s=60)


def server_cpu_s(index: RedisIndex) -> float:
    """Return the CPU time of the server so far."""
    return sum(float(info["used_cpu_user"]) + float(info["used_cpu_sys"]) for _, info in index._nodes.infos("cpu"))


def client(url: str, within: int, work: str, number: int, amount: float, ready: Any, answer: Any) -> None:
    """Run one client with some work for some seconds, and report its count and its times."""
    index = opened(url, within)
    recipe = index.recipe
    words = " ".join(f"word{i}" for i in range(400))
    seconds: list[float] = []
    count = 0
    ready.wait()
    start, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < amount:
        seed = time.time_ns() + number
        if work == "add_batch":
            given = sketches(recipe, seed, BATCH)
            ids = names(32, number, seed % 10**15, BATCH)
            began = time.perf_counter()
            verdicts = index.check_and_add_batch(ids, given)
            assert verdicts.added.all()
            count += BATCH
        elif work == "check_batch":
            given = sketches(recipe, seed, BATCH)
            began = time.perf_counter()
            index.check_batch(given)
            count += BATCH
        elif work == "add_texts":
            texts = [f"{seed + i} {words} {seed - i}" for i in range(BATCH)]
            began = time.perf_counter()
            index.check_and_add_batch(names(32, number, seed % 10**15, BATCH), texts)
            count += BATCH
        else:
            given = sketches(recipe, seed, 1)
            began = time.perf_counter()
            index.check_and_add_batch(names(32, number, seed % 10**15, 1), given)
            count += 1
        seconds.append(time.perf_counter() - began)
    answer.put((count, time.perf_counter() - start, seconds, time.process_time() - cpu))


def run(url: str, within: int, work: str, clients: int, amount: float) -> dict[str, float]:
    """Return the throughput of all clients together, and quantiles of the times of a call."""
    context = multiprocessing.get_context("spawn")
    ready, answer = context.Barrier(clients), context.Queue()
    processes = [
        context.Process(target=client, args=(url, within, work, number, amount, ready, answer))
        for number in range(clients)
    ]
    with opened(url, within) as index:
        before = server_cpu_s(index)
        for process in processes:
            process.start()
        answers = [answer.get() for _ in processes]
        for process in processes:
            process.join()
        server = server_cpu_s(index) - before
    times = np.concatenate([times for _, _, times, _ in answers])
    num = sum(count for count, *_ in answers)
    return {
        "documents_per_s": round(sum(count / seconds for count, seconds, *_ in answers)),
        "server_us_per_document": round(server / num * 1e6, 1),
        "client_us_per_document": round(sum(cpu for *_, cpu in answers) / num * 1e6, 1),
        "calls": len(times),
        "p50_ms": round(float(np.quantile(times, 0.5)) * 1e3, 3),
        "p99_ms": round(float(np.quantile(times, 0.99)) * 1e3, 3),
    }


def fill(url: str, within: int, num: int) -> None:
    """Add `num` documents, each of which is new."""
    with opened(url, within) as index:
        for start in range(0, num, FILL_BATCH):
            some = min(FILL_BATCH, num - start)
            index.add_batch(names(24, 0, start, some), sketches(index.recipe, start, some))
        index.compact()


def memory(url: str, within: int) -> dict[str, float]:
    """Return the server's memory, in total and per document."""
    with opened(url, within) as index:
        stats = index.stats
    used = sum(server["memory_bytes"] for server in stats["servers"])
    return {
        "num_documents": stats["num_documents"],
        "server_memory_bytes": used,
        "bytes_a_document": round(used / max(1, stats["num_documents"]), 1),
    }


def start_server(folder: Path, options: list[str]) -> str:
    """Start a server that saves no files, and return its URL."""
    folder.mkdir(parents=True, exist_ok=True)
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program, "no redis-server is installed"
    socket = folder / "socket"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", "", *options],
            stdout=log,
            start_new_session=True,
        )
    (folder / "process").write_text(str(process.pid))
    while not socket.exists():
        time.sleep(0.05)
    return f"unix://{socket}"


def main() -> None:
    """Run the requested stages."""
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=("fill", "measure", "all"))
    parser.add_argument("--documents", type=int, default=5_000_000)
    parser.add_argument("--within", type=int, default=3)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--name", help="of these figures in the results")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--option", action="append", default=[], help="of the server")
    options = parser.parse_args()
    url = f"unix://{options.folder / 'socket'}"
    filled = options.folder / "filled.json"
    if options.stage in ("fill", "all"):
        url = start_server(options.folder, options.option)
        opened(url, options.within, options.documents).close()
        began = time.perf_counter()
        fill(url, options.within, options.documents)
        figures = {"fill_seconds": round(time.perf_counter() - began), "filled": memory(url, options.within)}
        filled.write_text(json.dumps(figures))
        print(filled.read_text())
    if options.stage in ("measure", "all"):
        figures = json.loads(filled.read_text())
        for work in ("add_batch", "add_texts", "check_batch", "add_one"):
            figures[work] = run(url, options.within, work, options.clients, options.seconds)
            print(work, figures[work], flush=True)
        figures["add_one_alone"] = run(url, options.within, "add_one", 1, options.seconds / 2)
        with opened(url, options.within) as index:
            began = time.perf_counter()
            index.compact()
            figures["compact_seconds"] = round(time.perf_counter() - began, 1)
            figures["server"] = index.stats["servers"][0]["server_version"]
        figures["memory_after_compact"] = memory(url, options.within)
        name = options.name or f"within {options.within}, {options.documents} documents"
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results["machine"] = machine.facts()
        results.setdefault("runs", {})[name] = figures
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        print(json.dumps(figures, indent=1))
        subprocess.run(["kill", (options.folder / "process").read_text()], check=True)


if __name__ == "__main__":
    main()
