"""Audit what datasketch, text-dedup and datatrove kept, and compare with the exact pairs of all documents.

    audit_others.py [--num-documents 20000] [--draws 25] [--only TOOL] [--out results/audit_others.json]

Rows of other tools, numbers of documents and numbers of draws are kept in the file.
The documents are those of data/plain.jsonl (corpus.py), reduced to words of a to z, which Likewise and
truth.py cut into the same tokens. What each tool removed without a kept match at .8, and what it left, is counted from
all pairs (truth.py, which shares no code with Likewise), and estimated by `likewise audit --inputs --kept`: once with
all documents, and in draws of a sample, whose intervals should contain the truth.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import machine
import truth
from rivals.corpora import part
from rivals.protocol import read_rows
from rivals.registry import find

HERE = Path(__file__).parent
THRESHOLD = 0.8
RIVALS = (("datasketch", "minhash"), ("text-dedup", "minhash"), ("text-dedup", "simhash"), ("datatrove", "minhash"))
WORDS = re.compile(r"[a-z]+")
NUM_SAMPLED = 2000


def reduced(source: Path, target: Path) -> Path:
    """Write the documents of at least three words, reduced to words of a to z."""
    _, ids, texts = read_rows(source)
    with target.open("w", encoding="utf-8") as out:
        for doc_id, text in zip(ids, texts, strict=True):
            words = WORDS.findall(text.lower())
            if len(words) >= 3:
                out.write(json.dumps({"id": doc_id, "text": " ".join(words)}) + "\n")
    return target


def counted(ids: list[str], kept_ids: list[str], pairs: np.ndarray, similarity: np.ndarray) -> dict[str, float]:
    """Return what a tool removed without a kept match, and what it left, from all pairs."""
    kept = np.isin(np.array(ids), np.array(kept_ids))
    a, b = pairs[similarity >= THRESHOLD].T
    has_match = np.zeros(len(ids), bool)
    has_match[a[kept[b]]] = True
    has_match[b[kept[a]]] = True
    is_left = kept[a] & kept[b]
    num_left = len(np.unique(np.maximum(a[is_left], b[is_left])))
    num_right = int((~kept & has_match).sum())
    return {
        "num_removed": int((~kept).sum()),
        "num_unmatched": int((~kept & ~has_match).sum()),
        "num_left_pairs": int(is_left.sum()),
        "num_left_documents": num_left,
        "removal_recall": num_right / (num_right + num_left) if num_right + num_left else 1.0,
    }


def audited(inputs: Path, kept: list[Path], num_sampled: int, seed: int) -> dict:
    """Return the certificate of an audit by the command, with its seconds."""
    command = [sys.executable, "-m", "likewise", "audit", "--inputs", str(inputs), "--threshold", str(THRESHOLD)]
    command += [part for path in kept for part in ("--kept", str(path))]
    command += ["--sample", str(num_sampled), "--seed", str(seed), "--json", "--quiet"]
    command += ["-o", str(inputs.with_name("audit.json"))]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout) | {"seconds": round(time.perf_counter() - began, 1)}


def holds(share: dict, value: float) -> bool:
    """Return whether an interval contains a value."""
    return share["low"] - 1e-9 <= value <= share["high"] + 1e-9


def merged(path: Path, rows: list[dict]) -> list[dict]:
    """Return these rows and those of earlier calls with other tools, numbers of documents or draws."""
    earlier = json.loads(path.read_text(encoding="utf-8"))["tools"] if path.exists() else []
    names = ("tool", "method", "num_documents", "num_draws")
    done = {tuple(row[name] for name in names) for row in rows}
    return [row for row in earlier if tuple(row[name] for name in names) not in done] + rows


def measured(name: str, method: str, corpus: Path, work: Path, draws: int) -> dict:
    """Run a tool and audit what it kept."""
    rival = find(name, method)
    out = work / f"{name}-{method}"
    began = time.perf_counter()
    kept_ids = rival.dedup_jsonl(corpus, out, "word")
    seconds = time.perf_counter() - began
    lines, ids, _ = read_rows(corpus)
    # Each tool writes its own format; the kept input lines are the same for all.
    kept, chosen = work / f"{name}-{method}.kept.jsonl", set(kept_ids)
    kept.write_bytes(b"".join(line for line, doc_id in zip(lines, ids, strict=True) if doc_id in chosen))
    true = counted(ids, kept_ids, *truth.truth(corpus, "word"))
    whole = audited(corpus, [kept], len(ids), 0)
    found = {
        "num_removed": whole["num_removed"],
        "num_unmatched": whole["num_unmatched_seen"],
        "num_left_pairs": whole["estimated"]["num_left_pairs"],
        "num_left_documents": whole["estimated"]["num_left_documents"],
        "removal_recall": whole["removal_recall"]["value"],
    }
    held = {"unmatched_removals": 0, "removal_recall": 0}
    wanted = {
        "unmatched_removals": true["num_unmatched"] / max(1, true["num_removed"]),
        "removal_recall": true["removal_recall"],
    }
    sampled = [audited(corpus, [kept], NUM_SAMPLED, seed) for seed in range(draws)]
    for one in sampled:
        for figure, value in wanted.items():
            held[figure] += holds(one[figure], value)
    return {
        "tool": name,
        "method": method,
        "num_documents": len(ids),
        "seconds_of_the_tool": round(seconds, 1),
        "counted": true,
        "audited": found,
        "is_equal": {key: abs(true[key] - found[key]) < 1e-9 for key in true},
        "worst_removal": whole["worst_removals"][:1],
        "seconds_of_the_audit": whole["seconds"],
        "num_draws": draws,
        "num_sampled": NUM_SAMPLED,
        "held": held,
        "first_draw": {figure: sampled[0][figure] for figure in wanted} if sampled else None,
        "seconds_of_a_draw": sampled[0]["seconds"] if sampled else None,
    }


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--num-documents", type=int, default=20_000)
    parser.add_argument("--draws", type=int, default=25)
    parser.add_argument("--only", help="name of one tool")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "audit_others.json")
    options = parser.parse_args()
    work = options.data / "audit_others"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    corpus = reduced(part(options.data, options.num_documents), work / "in.jsonl")
    rows = []
    for name, method in RIVALS:
        if options.only not in (None, name):
            continue
        try:
            rows.append(measured(name, method, corpus, work, options.draws))
        except (ImportError, SystemExit) as error:
            print(f"{name} {method}: {error}", file=sys.stderr)
            continue
        print(json.dumps(rows[-1]), flush=True)
    facts = {"machine": machine.facts(), "threshold": THRESHOLD, "tools": merged(options.out, rows)}
    options.out.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
