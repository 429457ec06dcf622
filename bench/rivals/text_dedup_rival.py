"""text-dedup (ChenghaoMou): its two scripts, run on files as users run them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rivals.protocol import APART, Rival


def _run(module: str, options: list[str], path: Path, out: Path) -> list[str]:
    import pyarrow as pa

    environment = dict(os.environ, PYTHONPATH=str(APART / "text-dedup"), HF_HUB_OFFLINE="1")
    with tempfile.TemporaryDirectory(dir=out.parent) as cache:
        command = [sys.executable, "-m", module, "--path", "json", "--data_files", str(path), "--split", "train"]
        command += ["--column", "text", "--cache_dir", cache, "--output", str(out), "--num_proc", "2", *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        ids: list[str] = []
        for shard in sorted(out.glob("*.arrow")):
            with pa.memory_map(str(shard)) as source:
                ids += pa.ipc.open_stream(source).read_all().column("id").to_pylist()
        return ids


def dedup_minhash(path: Path, out: Path, tokens: str) -> list[str]:
    """Use its own tokens: runs of word characters, so a Chinese sentence is one token."""
    return _run("text_dedup.minhash", ["--threshold", "0.8", "--ngram", "3", "--hash_func", "xxh3"], path, out)


def dedup_minhash_same_bands(path: Path, out: Path, tokens: str) -> list[str]:
    """Use the permutations, bands and rows that Likewise uses at this threshold."""
    options = [
        "--threshold",
        "0.8",
        "--ngram",
        "3",
        "--hash_func",
        "xxh3",
        "--num_perm",
        "128",
        "--b",
        "18",
        "--r",
        "7",
    ]
    return _run("text_dedup.minhash", options, path, out)


def dedup_simhash(path: Path, out: Path, tokens: str) -> list[str]:
    """Use its own features: three characters."""
    return _run("text_dedup.simhash", ["--bit_diff", "3", "--num_bucket", "4"], path, out)


RIVALS = [
    Rival(
        name="text-dedup",
        package="text-dedup",
        method="minhash",
        settings="minhash --threshold 0.8 --ngram 3 --hash_func xxh3, otherwise the defaults (250 permutations), "
        "2 processes",
        verified="no; closure",
        dedup_jsonl=dedup_minhash,
    ),
    Rival(
        name="text-dedup",
        package="text-dedup",
        method="simhash",
        settings="simhash with its defaults: 3 characters, 64 bits, bit_diff 3, 4 buckets, 2 processes",
        verified="distance; closure",
        dedup_jsonl=dedup_simhash,
        largest=20_000,
        why_not_larger="many minutes",
    ),
]
# MinHash as above, and with Likewise's own bands.
PIPELINES = [
    RIVALS[0],
    Rival(
        name="text-dedup, 18 bands of 7",
        package="text-dedup",
        method="minhash",
        settings="the same with --num_perm 128 --b 18 --r 7, like Likewise",
        verified="no; closure",
        dedup_jsonl=dedup_minhash_same_bands,
    ),
]
