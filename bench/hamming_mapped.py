"""An index larger than the memory it is built in: one file, built from a flat file and opened by another process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import hamming_measures
import hamming_truth
import machine
from hamming_data import Codes
from hamming_rows import Row
from rivals.hamming_protocol import Searcher

NUM_BATCH = 100_000
NUM_COLD = 300
WARM_S = 120


def mapped(row: Row, make: Callable[[], Searcher], codes: Codes) -> dict[int, dict[str, object]]:
    """Return seconds, memory and bytes of the file; seconds to open it; single queries cold and warm, warm batches."""
    (within,) = row.within
    source, path = codes.path(row.n), codes.work / f"{row.id}.index"
    built = codes.work / f"{row.id}.built.json"
    searcher = make()
    if not path.exists():
        start = time.perf_counter()
        with machine.AnonymousMemory(os.getpid()) as memory:
            searcher.build_file(source, path, row.bits, within, row.threads, row.memory_bytes)
        seconds = time.perf_counter() - start
        built.write_text(json.dumps({"file_build_s": seconds, "peak_build_bytes": memory.peak_bytes}))
    figures = json.loads(built.read_text())
    searcher.index = None
    figures["bytes_a_fingerprint"] = path.stat().st_size / row.n
    command = [sys.executable, __file__, str(path), row.id, str(codes.work), str(within)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures |= json.loads(done.stdout.splitlines()[-1])
    hamming_measures.say(row, searcher, within, figures)
    return {within: figures}


def _forget(path: Path) -> None:
    """Ask the system to drop its cache of a file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _open(path: Path, row: Row, work: Path, within: int) -> dict[str, object]:
    """In a separate process: open, one cold query, warm up, measure, check."""
    from hamming_ours import Likewise

    codes = Codes(row.data, row.bits, work=work)
    asked, known = codes.queries_and_rows(NUM_BATCH, row.n, within)
    searcher = Likewise(with_rows=row.with_rows)
    _forget(path)
    start = time.perf_counter()
    searcher.open(path, row.threads)
    figures: dict[str, object] = {"open_s": time.perf_counter() - start}
    cold = []
    for query in asked[:NUM_COLD, 0]:
        start = time.perf_counter()
        searcher.query_one(query, within)
        cold.append((time.perf_counter() - start) * 1e6)
    figures["first_query_us"] = cold[0]
    figures["cold_p50_us"], figures["cold_p99_us"] = map(float, np.percentile(cold, (50, 99)))
    warming, rates = time.perf_counter(), []
    while time.perf_counter() - warming < WARM_S:  # until a batch is no faster than the previous one
        start = time.perf_counter()
        found = searcher.query(asked, within, row.threads)
        rates.append(len(asked) / (time.perf_counter() - start))
        if len(rates) > 2 and rates[-1] < rates[-2] * 1.1:
            break
    figures |= {"queries_per_s": max(rates), "first_batch_queries_per_s": rates[0]}
    figures |= hamming_measures.singles(searcher, asked[: hamming_measures.NUM_SINGLES], within)
    figures["anonymous_bytes_when_open"] = hamming_measures.anonymous_bytes()
    figures |= hamming_truth.score_known(codes.mapped(row.n), asked, known, within, found)
    sample = asked[: hamming_measures.num_checked(row)]
    found = searcher.query(sample, within, row.threads)
    true = hamming_measures.truth(codes, codes.mapped(row.n), sample, within, "mapped")
    return figures | hamming_truth.score_found(codes.mapped(row.n), true, found).to_dict()


if __name__ == "__main__":
    import hamming_rows

    print(json.dumps(_open(Path(sys.argv[1]), hamming_rows.find(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))))
