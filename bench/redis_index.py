"""Measure the index on one Redis server or on three: processor time of servers and clients, candidates, and memory.

    redis_index.py grow --folder FOLDER [--nodes 1,3] [--documents 1000000,20000000] [--clients 1,8]
    redis_index.py log --folder FOLDER [--documents 200000] [--clients 1,8]
    redis_index.py datasketch --folder FOLDER [--documents 50000]

`grow` fills an index of each number of documents, planned for this number, with uniform fingerprints of 64 bits and ids
of 24 characters. Each document is new, which is the worst case for time and space. The index is filled as by a move,
which reads no tables, and which is not measured. Then each number of client processes adds more in batches of 1,000,
one client checks batches, and one adds single documents; the costs of these parts are noted. Times are CPU seconds,
which depend less on other work on the machine than wall times: those of the servers as they report them, and those of
the calls in the client processes.

`log` sends what clients send to the log alone, with operations and verdicts of the same size, and reports the costs of
its server. Each other client reads each operation twice, as one that waits for a verdict does.

`datasketch` adds the same texts to this index and to datasketch's MinHashLSH with its Redis storage, on separate
servers, with one client on one thread. Both make 128 values from word 3-grams, and the times include this. datasketch
stores no signatures and no features, so it does not verify its candidates.

Writes results/redis_index.json.
"""

import argparse
import json
import multiprocessing
import secrets
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
import pyarrow as pa
import pyarrow.parquet as pq
import redis

sys.path.insert(0, str(Path(__file__).parent))

import likewise
import machine
from likewise import _native
from likewise.index.redis.description import ServerDestination, parts_of
from likewise.index.redis.log import LogServer
from likewise.index.redis.nodes import Nodes
from likewise.index.stored import About
from likewise.redis import RedisIndex
from rivals.protocol import shingles

RESULTS = Path(__file__).parent / "results" / "redis_index.json"
BATCH = 1000
# Documents added by all clients together for one measurement.
MEASURED = 100_000
# Partitions whose marks an operation has, in the measurement of the log alone.
PARTITIONS = 16
PLAN_FACTS = ("partitions", "num_tables", "num_probes", "planned_candidates_per_document", "table_bytes_per_document")
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


class Uniform:
    """Documents with uniform fingerprints, each kept, as the source of a move."""

    def __init__(self, recipe: likewise.Recipe, num: int) -> None:
        self.about = About(recipe, "sketch", None, "memory")
        self.began = ["uniform", num]
        self._num = num

    def __len__(self) -> int:
        return self._num

    def batches(self) -> Iterator[_native.MovedDocuments]:
        """Yield the documents in batches."""
        parts = parts_of(self.about.recipe)
        schema = pa.record_batch(_native.MovedDocuments.none(parts)).schema
        rng = np.random.default_rng(0)
        for first in range(0, self._num, BATCH):
            num = min(BATCH, self._num - first)
            fingerprints = rng.integers(0, 2**64, num, dtype=np.uint64)
            nothing = {name: pa.nulls(num) for name in schema.names}
            columns = nothing | {
                "doc_id": [f"{0:08x}-{first + i:015d}" for i in range(num)],
                "seq": np.arange(first + 1, first + num + 1),
                "arrival_s": np.full(num, int(time.time())),
                "num_features": np.full(num, 500),
                "shape": np.zeros(num, np.int8),
                "is_collapsed": np.zeros(num, bool),
                "sketch": pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), num, [None, pa.py_buffer(fingerprints)]),
                "feature_digest": [bytes(16)] * num,
                "levels": [[]] * num,
            }
            arrays = [pa.array(columns[field.name], field.type) for field in schema]
            yield _native.MovedDocuments.from_arrow(pa.RecordBatch.from_arrays(arrays, schema=schema), parts)


def fill(running: Servers, recipe: likewise.Recipe, num: int) -> None:
    """Create an index with so many documents, and plan it for their number."""
    source = Uniform(recipe, num)
    with ServerDestination(running.url, "likewise", source, expected=num) as destination:
        for documents in source.batches():
            destination.add(documents)
        destination.finish()


def grown(given: argparse.Namespace, num_nodes: int, size: int) -> dict[str, Any]:
    """Fill an index with so many documents, and measure."""
    recipe = likewise.Recipe.simhash(within=given.within)
    with servers(given.folder, num_nodes) as running:
        empty, began = running.memory_bytes(), time.perf_counter()
        fill(running, recipe, size)
        row: dict[str, Any] = {
            "num_held": size,
            "bytes_per_document": round((running.memory_bytes() - empty) / size, 1),
            "fill_s": round(time.perf_counter() - began),
            "clients": {},
        }
        seed = 0
        for number in given.clients.split(","):
            seed += 1
            row["clients"][number] = measured(running, seed, MEASURED, int(number))
        row["check"] = measured(running, seed + 1, MEASURED, 1, "check")
        row["add one"] = measured(running, seed + 2, MEASURED // 100, 1, "add one")
        with RedisIndex(running.url) as index:
            row["plan"] = {name: index.stats[name] for name in PLAN_FACTS}
    print(row, flush=True)
    return row


def grow(given: argparse.Namespace) -> dict[str, Any]:
    """Measure indexes of each size on each number of nodes."""
    sizes = [int(float(size)) for size in given.documents.split(",")]
    return {
        nodes: {"within": given.within, "sizes": [grown(given, int(nodes), size) for size in sizes]}
        for nodes in given.nodes.split(",")
    }


def log_alone(running: Servers, num: int, clients: int) -> dict[str, Any]:
    """Return the costs of the log's server for so many documents, without their tables and records."""
    prefix = f"log{clients}"
    with RedisIndex(running.url, likewise.Recipe.simhash(within=3), prefix=prefix) as index:
        recipe = index.recipe
        rule = _native.ClusterRule(
            parts_of(recipe), recipe.feature_rules, _native.ClusterRule.plan_for(parts_of(recipe), num), partitions=1
        )
    nodes = Nodes(running.url)
    logs = [LogServer(nodes, prefix.encode()) for _ in range(clients)]
    rng = np.random.default_rng(0)
    some = sketches(recipe, rng, BATCH)
    columns = some.array.view(np.uint8), some.is_empty.view(np.uint8), some.num_features
    before = running.cpu_s()
    held = 0
    for position in range(num // BATCH):
        log = logs[position % clients]
        ids = [f"{position:08x}-{i:015d}" for i in range(BATCH)]
        payload = rule.add_sketches(_native.Texts.from_list(ids), *columns)
        writer, bounds = b"client%02d" % (position % clients), (4096, 64 << 20)
        given = secrets.token_bytes(8), 0, BATCH, payload, *bounds, 0, *log.known_end
        _, nonce = log.ask("append", b"", b"", writer, position, *given).more
        # One byte a document says that it was added and is kept; the head of the verdict has a few more.
        log.ask("store", position, nonce, position * BATCH, bytes(BATCH + 3), BATCH, BATCH, 0, 0)
        log.ask("written", position, nonce, bytes(26 * PARTITIONS))
        for other in logs:
            if other is not log:
                other.ask("begin", b"", b"")
                other.ask("begin", b"", b"")
        if position % 4 == 3:
            here = log.ask("begin", b"", b"").log
            log.ask("advance", here.mark, position + 1, here.chain(position + 1))
        if position % 64 == 63 and position > 192:
            here = log.ask("begin", b"", b"").log
            log.ask("trim", position - 128, here.chain(position - 128))
        held = max(held, int(log.fields()[b"bytes"])) if position % 64 == 62 else held
    servers_s = running.cpu_s() - before
    nodes.close()
    return {
        "num_documents": num,
        "servers_us_per_document": round(servers_s / num * 1e6, 2),
        "largest_bytes": held,
    }


def log(given: argparse.Namespace) -> dict[str, Any]:
    """Measure the log alone, with each number of clients."""
    num = int(float(given.documents.split(",")[0]))
    with servers(given.folder, 1) as running:
        return {number: log_alone(running, num, int(number)) for number in given.clients.split(",")}


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
    parser.add_argument("task", choices=("grow", "log", "datasketch"))
    parser.add_argument("--documents", default="1000000,20000000", help="numbers of documents at which to measure")
    parser.add_argument("--nodes", default="1,3")
    parser.add_argument("--clients", default="1,8")
    parser.add_argument("--within", type=int, default=3)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    figures = {"grow": grow, "log": log, "datasketch": datasketch}[given.task](given)
    entries = {f"grow, {nodes} nodes": of for nodes, of in figures.items()} if given.task == "grow" else {}
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, entry in (entries or {given.task: figures}).items():
        results[name] = {**entry, "machine": machine.facts()}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
