"""Measure the index on one Redis server or on three: processor time of servers and clients, candidates, and memory.

    redis_index.py grow --folder FOLDER [--nodes 1|3] [--documents 1000000,20000000] [--clients 1,8] [--expected N]
    redis_index.py datasketch --folder FOLDER [--documents 50000]

`grow` fills an index in batches of 1,000 with uniform fingerprints of 64 bits and ids of 24 characters. Each document
is new, which is the worst case for time and space. At each number of documents, each number of client processes adds
more, one client checks batches, and one adds single documents; the times of these parts are noted. Times are CPU
seconds, which depend less on other work on the machine than wall times: those of the servers as they report them, and
those of the calls in the client processes.

`datasketch` adds the same texts to this index and to datasketch's MinHashLSH with its Redis storage, on separate
servers, with one client on one thread. Both make 128 values from word 3-grams, and the times include this. datasketch
stores no signatures and no features, so it does not verify its candidates.

Writes results/redis_index.json.
"""

import argparse
import json
import multiprocessing
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import redis

sys.path.insert(0, str(Path(__file__).parent))

import likewise
import machine
from likewise.redis import RedisIndex
from rivals.protocol import shingles

RESULTS = Path(__file__).parent / "results" / "redis_index.json"
BATCH = 1000
# Documents added by all clients together for one measurement.
MEASURED = 100_000
NUM_OF_CALL = {"add": BATCH, "check": BATCH, "add one": 1}
# Of the comparison with datasketch.
TEXTS = Path(__file__).parent / "data" / "plain.parquet"
NUM_SLOTS, SHINGLE, THRESHOLD = 128, 3, 0.8


def free_ports(num: int) -> list[int]:
    """Return ports that are free, and whose port of the cluster bus, 10,000 higher, is free."""
    ports: list[int] = []
    while len(ports) < num:
        with socket.socket() as taken, socket.socket() as bus:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1] % 20_000 + 10_001
            try:
                bus.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class Servers:
    """Servers that save no files, and form a cluster if there are several."""

    def __init__(self, folder: Path, num: int) -> None:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        assert program, "no redis-server is installed"
        self.ports = free_ports(num)
        self.processes = []
        for port in self.ports:
            place = folder / str(port)
            place.mkdir(parents=True)
            cluster = ["--cluster-enabled", "yes"] if num > 1 else []
            with (place / "log").open("w") as log:
                self.processes.append(
                    subprocess.Popen([program, "--port", str(port), "--dir", place, "--save", "", *cluster], stdout=log)
                )
        self.clients = [redis.Redis("127.0.0.1", port) for port in self.ports]
        for client in self.clients:
            self._wait(client.ping)
        if num > 1:
            addresses = [f"127.0.0.1:{port}" for port in self.ports]
            command = [program.replace("server", "cli"), "--cluster", "create", *addresses, "--cluster-yes"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            for client in self.clients:
                self._wait(
                    lambda client=client: client.info("cluster") and client.cluster("info")["cluster_state"] == "ok"
                )
        self.url = f"redis://127.0.0.1:{self.ports[0]}"

    @staticmethod
    def _wait(condition: Any) -> None:
        for _ in range(600):
            try:
                if condition():
                    return
            except redis.exceptions.RedisError:
                pass
            time.sleep(0.1)
        raise SystemExit("a server does not come up")

    def cpu_s(self) -> float:
        """Return the CPU seconds that all servers have used."""
        infos = [client.info("cpu") for client in self.clients]
        return sum(info["used_cpu_user"] + info["used_cpu_sys"] for info in infos)

    def memory_bytes(self) -> int:
        """Return the memory of all servers, without buffers of clients and of replication."""
        return sum(client.memory_stats()["dataset.bytes"] for client in self.clients)

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for process in self.processes:
            process.kill()
            process.wait()


@contextmanager
def servers(folder: Path, num: int) -> Iterator[Servers]:
    """Run servers in a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    running = Servers(folder, num)
    try:
        yield running
    finally:
        running.close()
        shutil.rmtree(folder, ignore_errors=True)


def sketches(recipe: likewise.Recipe, rng: np.random.Generator, num: int) -> likewise.Sketches:
    """Return uniform fingerprints of documents that are not short."""
    fingerprints = rng.integers(0, 2**64, num, dtype=np.uint64)
    return likewise.Sketches(fingerprints, recipe, np.zeros(num, bool), np.full(num, 500, np.uint32))


def client(url: str, seed: int, work: str, num_calls: int, ready: Any, answers: Any) -> None:
    """Add or check batches or single documents, and report the time of the calls."""
    rng = np.random.default_rng(seed)
    cpu_s = 0.0
    wall_s = []
    with RedisIndex(url, threads=1, timeout_s=120, failover_s=120) as index:
        recipe = index.recipe
        ready.wait()
        num = NUM_OF_CALL[work]
        for number in range(num_calls):
            ids = [f"{seed:08x}-{number * num + i:015d}" for i in range(num)]
            some = sketches(recipe, rng, num)
            began, wall_began = time.process_time(), time.perf_counter()
            verdicts = index.check_batch(some) if work == "check" else index.check_and_add_batch(ids, some)
            cpu_s += time.process_time() - began
            wall_s.append(time.perf_counter() - wall_began)
            assert work == "check" or verdicts.added.all()
        facts = index.stats
    answers.put((cpu_s, wall_s, facts))


def measured(running: Servers, seed: int, num: int, clients: int, work: str = "add") -> dict[str, Any]:
    """Let clients add or check about `num` documents together, and return the costs of a document."""
    context = multiprocessing.get_context("spawn")
    ready, answers = context.Barrier(clients + 1), context.Queue()
    num_calls = max(1, num // NUM_OF_CALL[work] // clients)
    processes = [
        context.Process(target=client, args=(running.url, seed * 1000 + i, work, num_calls, ready, answers))
        for i in range(clients)
    ]
    for process in processes:
        process.start()
    ready.wait()
    before, began = running.cpu_s(), time.perf_counter()
    found = [answers.get() for _ in processes]
    num_documents = num_calls * NUM_OF_CALL[work] * clients
    servers_s, wall_s = running.cpu_s() - before, time.perf_counter() - began
    for process in processes:
        process.join()
    calls = np.concatenate([times for _, times, _ in found])
    return {
        "num_documents": num_documents,
        "servers_us_per_document": round(servers_s / num_documents * 1e6, 1),
        "client_us_per_document": round(sum(cpu_s for cpu_s, _, _ in found) / num_documents * 1e6, 1),
        "documents_per_s": round(num_documents / wall_s),
        "p50_ms_per_call": round(float(np.quantile(calls, 0.5)) * 1e3, 1),
        "p99_ms_per_call": round(float(np.quantile(calls, 0.99)) * 1e3, 1),
        "candidates_per_document": found[0][2]["candidates_per_document"],
        "planned_candidates_per_document": found[0][2].get("planned_candidates_per_document"),
    }


def grow(given: argparse.Namespace) -> dict[str, Any]:
    """Fill one index, and measure at each number of documents."""
    sizes = [int(float(size)) for size in given.documents.split(",")]
    numbers = [int(number) for number in given.clients.split(",")]
    recipe = likewise.Recipe.simhash(within=given.within)
    rows: list[dict[str, Any]] = []
    with servers(given.folder, given.nodes) as running:
        RedisIndex(running.url, recipe, expected=given.expected or sizes[-1]).close()
        empty = running.memory_bytes()
        seed = held = 0
        for size in sizes:
            while held < size:
                seed += 1
                held += measured(running, seed, min(size - held, 1_000_000), given.fillers)["num_documents"]
            row: dict[str, Any] = {"num_held": held, "clients": {}}
            row["bytes_per_document"] = round((running.memory_bytes() - empty) / held, 1)
            for number in numbers:
                seed += 1
                row["clients"][str(number)] = measured(running, seed, MEASURED, number)
                held += row["clients"][str(number)]["num_documents"]
            row["check"] = measured(running, seed + 1, MEASURED, 1, "check")
            row["add one"] = measured(running, seed + 2, MEASURED // 100, 1, "add one")
            seed, held = seed + 2, held + row["add one"]["num_documents"]
            print(row, flush=True)
            rows.append(row)
    return {"nodes": given.nodes, "within": given.within, "sizes": rows}


def datasketch(given: argparse.Namespace) -> dict[str, Any]:
    """Add the same texts to both, and return times and memory of a document."""
    from datasketch import MinHash, MinHashLSH

    num = int(float(given.documents.split(",")[0]))
    texts = pq.read_table(TEXTS, columns=["text"]).slice(0, num).column("text").to_pylist()
    ids = [f"page-{i:019d}" for i in range(len(texts))]
    recipe = likewise.Recipe.minhash(THRESHOLD, num_slots=NUM_SLOTS, tokens="word", shingle=SHINGLE)
    figures: dict[str, Any] = {"num_documents": num, "num_slots": NUM_SLOTS, "threshold": THRESHOLD}
    with servers(given.folder, 1) as running, RedisIndex(running.url, recipe, expected=num, threads=1) as index:
        before, began = running.cpu_s(), time.process_time()
        for start in range(0, num, BATCH):
            index.check_and_add_batch(ids[start : start + BATCH], texts[start : start + BATCH])
        figures["likewise"] = costs(running, num, before, began)
        figures["likewise"] |= {"num_bands": index.stats["num_tables"], "num_found": num - index.stats["num_kept"]}
    with servers(given.folder, 1) as running:
        place = {"type": "redis", "basename": b"bench", "redis": {"host": "127.0.0.1", "port": running.ports[0]}}
        lsh = MinHashLSH(threshold=THRESHOLD, num_perm=NUM_SLOTS, storage_config=place)
        num_found = 0
        before, began = running.cpu_s(), time.process_time()
        sets = ([shingle.encode() for shingle in shingles(text, "word", SHINGLE)] for text in texts)
        for row, made in enumerate(MinHash.generator(sets, num_perm=NUM_SLOTS)):
            num_found += bool(lsh.query(made))
            lsh.insert(ids[row], made, check_duplication=False)
        figures["datasketch"] = costs(running, num, before, began)
        figures["datasketch"] |= {"num_bands": lsh.b, "num_found": num_found}
    return figures


def costs(running: Servers, num: int, before_s: float, began_s: float) -> dict[str, Any]:
    """Return the costs of a document since a moment."""
    return {
        "client_us_per_document": round((time.process_time() - began_s) / num * 1e6, 1),
        "servers_us_per_document": round((running.cpu_s() - before_s) / num * 1e6, 1),
        "bytes_per_document": round(running.memory_bytes() / num, 1),
    }


def main() -> None:
    """Run one task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("grow", "datasketch"))
    parser.add_argument("--documents", default="1000000,20000000", help="numbers of documents at which to measure")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--clients", default="1,8")
    parser.add_argument("--fillers", type=int, default=2, help="clients that fill the index between measurements")
    parser.add_argument(
        "--expected", type=int, help="number of documents that the tables are made for; default: the last"
    )
    parser.add_argument("--within", type=int, default=3)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    figures = {"grow": grow, "datasketch": datasketch}[given.task](given)
    name = (
        f"{given.task}, {given.nodes} nodes, {given.documents}"
        if given.task == "grow"
        else f"datasketch, {given.documents}"
    )
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[name] = {**figures, "machine": machine.facts()}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
