"""Load-test the HTTP service with wrk on the same machine: bench/results/server.json.

server.py [--documents 1000000] [--method simhash|minhash] [--seconds 10] [--folder FOLDER]

Fills an index with texts of 2.4 kB (words of real prose by frequency, so that nearly all are new), serves it,
and measures single `check_and_add` of new documents, the same at half the goal's rate, single `check`, batches of 500,
and the wait of others alongside 2,000 silent connections and 200 that send a byte a second. wrk is a
system package (`apt-get install wrk`).
"""

import argparse
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import likewise
import machine

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "server.json"
# Words of prose average 5.9 bytes with their space, so a text has 2.4 kB.
WORDS_A_TEXT = 405
GOAL_SINGLE = 3000
BATCH = 500


class Prose:
    """An endless supply of new texts of words of the corpus."""

    def __init__(self, seed: int) -> None:
        words: Counter[str] = Counter()
        with (HERE / "data" / "plain.jsonl").open(encoding="utf-8") as lines:
            for line, _ in zip(lines, range(2000), strict=False):
                words.update(re.findall(r"[a-z]+", json.loads(line)["text"].lower()))
        self._words = np.array(list(words), object)
        shares = np.array(list(words.values()), float)
        self._sums = np.cumsum(shares / shares.sum())
        self._random = np.random.default_rng(seed)

    def texts(self, num: int) -> list[str]:
        """Return `num` texts."""
        drawn = np.searchsorted(self._sums, self._random.random((num, WORDS_A_TEXT)))
        return [" ".join(row) for row in self._words[np.minimum(drawn, len(self._words) - 1)]]


def fill(path: Path, recipe: likewise.Recipe, num: int) -> dict[str, object]:
    """Fill an index with `num` documents; return rate and size."""
    prose = Prose(0)
    seconds = 0.0
    with likewise.Index(path, recipe) as index:
        for start in range(0, num, 5000):
            texts = prose.texts(5000)
            began = time.perf_counter()
            index.add_batch([f"held-{start + i:012d}" for i in range(5000)], texts)
            seconds += time.perf_counter() - began
        stats = index.stats
    return {
        "num_documents": stats["num_documents"],
        "documents_per_second": num / seconds,
        "bytes_a_document": (stats["database_bytes"] + sum(stats["segment_bytes"])) / num,
    }


class Served:
    """The service as a process, with its defaults but without a log line per request."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", "likewise", "serve", str(path), "--port", "0", "--quiet"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.url = json.loads(self.process.stderr.readline())["url"]
        self.name = path.stem

    def user_seconds(self) -> float:
        """Return the processor seconds used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def stop(self) -> float:
        """Ask it to stop; return the seconds until it has."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return time.perf_counter() - began


def load(served: Served, route: str, bodies: Path, *, connections: int, seconds: float, rate: float | None = None):
    """Run wrk once; return its output, and the server's processor time per request."""
    script = (HERE / "serve.lua").read_text()
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        if rate is not None:
            script += f"\nfunction delay() return {1000 * connections / rate:.0f} end\n"
        file.write(script)
        file.flush()
        path = f"/v1/collections/{served.name}/{route}"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", file.name, served.url, "--"]
        before = served.user_seconds()
        done = subprocess.run([*command, str(bodies), path, "1"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    found["server_us_a_request"] = 1e6 * (served.user_seconds() - before) / found["requests"]
    return {"connections": connections, **found}


def slow_clients(served: Served, idle: int, slow: int) -> dict[str, float]:
    """Return the seconds of a request alongside silent connections, and ones that send a byte now and then."""
    host, _, port = served.url.removeprefix("http://").partition(":")
    sockets = [socket.create_connection((host, int(port))) for _ in range(idle + slow)]
    waits = []
    for turn in range(30):
        for one in sockets[:slow]:
            try:
                one.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"[turn : turn + 1])
            except OSError:
                continue
        began = time.perf_counter()
        urllib.request.urlopen(f"{served.url}/v1/collections").read()
        waits.append(time.perf_counter() - began)
        time.sleep(0.1)
    for one in sockets:
        one.close()
    return {"idle": idle, "slow": slow, "median_ms": 1e3 * float(np.median(waits)), "max_ms": 1e3 * max(waits)}


def main() -> None:
    """Fill, serve, load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--method", choices=["simhash", "minhash"], default="simhash")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "likewise-bench-server")
    given = parser.parse_args()
    recipe = likewise.Recipe.simhash(within=3) if given.method == "simhash" else likewise.Recipe.minhash(0.55)
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    row: dict[str, object] = {"method": given.method, "recipe_id": recipe.resolve().recipe_id}
    row["held"] = fill(given.folder / "held", recipe, given.documents)
    print(row["held"], flush=True)
    prose = Prose(int(time.time()))
    singles, batches = given.folder / "singles", given.folder / "batches"
    with singles.open("w") as file:
        for i, text in enumerate(prose.texts(int(given.seconds * 8000))):
            file.write(json.dumps({"doc_id": f"single-{i}", "text": text}) + "\n")
    with batches.open("w") as file:
        for b in range(int(given.seconds * 100)):
            documents = [{"doc_id": f"batch-{b}-{i}", "text": text} for i, text in enumerate(prose.texts(BATCH))]
            file.write(json.dumps({"documents": documents}) + "\n")
    half = given.folder / "half"
    with half.open("w") as file:
        for i, text in enumerate(prose.texts(int(given.seconds * GOAL_SINGLE))):
            file.write(json.dumps({"doc_id": f"half-{i}", "text": text}) + "\n")
    checks = given.folder / "checks"
    with checks.open("w") as file:
        for text in prose.texts(int(given.seconds * 8000)):
            file.write(json.dumps({"text": text}) + "\n")
    served = Served(given.folder / "held")
    try:
        seconds = given.seconds
        row["single"] = load(served, "check-and-add", singles, connections=48, seconds=seconds)
        print(row["single"], flush=True)
        # A connection also waits for answers between its requests: the target is higher so that half is reached.
        row["half"] = load(served, "check-and-add", half, connections=32, seconds=seconds, rate=0.7 * GOAL_SINGLE)
        print(row["half"], flush=True)
        row["check"] = load(served, "check", checks, connections=48, seconds=seconds)
        print(row["check"], flush=True)
        found = load(served, "check-and-add/batch", batches, connections=4, seconds=seconds)
        row["batch"] = {**found, "documents_per_second": found["per_second"] * BATCH}
        print(row["batch"], flush=True)
        row["beside_slow_clients"] = slow_clients(served, 2000, 200)
        print(row["beside_slow_clients"], flush=True)
    finally:
        row["seconds_to_end"] = served.stop()
    shutil.rmtree(given.folder)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[given.method] = {**row, "machine": machine.facts()}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
