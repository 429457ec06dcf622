"""An index as large as the memory: written to one file, and opened by another process."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hamming_measures
import hamming_truth
from hamming_data import Codes
from hamming_rows import Row
from rivals.hamming_protocol import NotDone, Searcher

NUM_BATCH = 100_000
WARM_S = 120


def mapped(row: Row, make: Callable[[], Searcher], codes: Codes) -> dict[int, dict[str, object]]:
    """Seconds and bytes of the file; seconds to open it; single queries and batches once warm."""
    (within,) = row.within
    stored, path = codes.mapped(row.n), codes.work / f"{row.id}.index"
    searcher = make()
    import likewise

    if not hasattr(getattr(likewise, "HammingIndex", None), "save"):
        raise NotDone("this version has no index file")
    if not path.exists():
        start = time.perf_counter()
        searcher.build(stored, row.bits, within, row.threads)
        searcher.save(path)
        written = {"build_s": time.perf_counter() - start, "peak_build_bytes": _peak_bytes()}
        (codes.work / f"{row.id}.built.json").write_text(json.dumps(written))
    figures = json.loads((codes.work / f"{row.id}.built.json").read_text())
    del searcher
    figures["bytes_a_fingerprint"] = path.stat().st_size / row.n
    command = [sys.executable, __file__, str(path), row.id, str(codes.work), str(within)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {within: figures | json.loads(done.stdout.splitlines()[-1])}


def _peak_bytes() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _open(path: Path, row: Row, work: Path, within: int) -> dict[str, object]:
    """In a process of its own: open, one cold query, warm up, measure, check."""
    from hamming_ours import Likewise

    codes = Codes(row.data, row.bits, work=work)
    asked, known = codes.queries_and_rows(NUM_BATCH, row.n, within)
    searcher = Likewise(with_rows=row.with_rows)
    start = time.perf_counter()
    searcher.open(path, row.threads)
    figures: dict[str, object] = {"open_s": time.perf_counter() - start}
    start = time.perf_counter()
    searcher.query_one(asked[0, 0], within)
    figures["first_query_us"] = (time.perf_counter() - start) * 1e6
    warming, rates = time.perf_counter(), []
    while time.perf_counter() - warming < WARM_S:  # until a batch is no faster than the one before it
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
