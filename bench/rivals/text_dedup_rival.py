"""text-dedup (ChenghaoMou): its two scripts, run as its users run them, on files."""

import runpy
import sys
import tempfile
from pathlib import Path

from rivals.protocol import Rival, make_importable


def _run(module: str, options: list[str], path: Path, out: Path) -> list[str]:
    make_importable("text-dedup")
    import multiprocessing
    import os

    # Its worker processes import it by name.
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
    multiprocessing.set_start_method("fork", force=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as cache:
        command = ["--path", "json", "--data_files", str(path), "--split", "train", "--column", "text"]
        command += ["--cache_dir", cache, "--output", str(out), "--num_proc", "2", *options]
        sys.argv = [module, *command]
        try:
            runpy.run_module(module, run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        from datasets import load_from_disk

        return list(load_from_disk(str(out))["id"])


def dedup_minhash(path: Path, out: Path, tokens: str) -> list[str]:
    """Its own tokens: runs of word characters, so a Chinese sentence is one token."""
    return _run("text_dedup.minhash", ["--threshold", "0.8", "--ngram", "3", "--hash_func", "xxh3"], path, out)


def dedup_simhash(path: Path, out: Path, tokens: str) -> list[str]:
    """Its own features: three characters."""
    return _run("text_dedup.simhash", ["--bit_diff", "3", "--num_bucket", "4"], path, out)


RIVALS = [
    Rival(
        name="text-dedup",
        package="text-dedup",
        method="minhash",
        settings="minhash --threshold 0.8 --ngram 3 --hash_func xxh3, else its defaults (250 permutations), 2 processes",
        verified="no; closure",
        dedup_jsonl=dedup_minhash,
    ),
    Rival(
        name="text-dedup",
        package="text-dedup",
        method="simhash",
        settings="simhash, its defaults: 3 characters, 64 bits, bit_diff 3, 4 buckets, 2 processes",
        verified="distance; closure",
        dedup_jsonl=dedup_simhash,
        largest=20_000,
        why_not_larger="many minutes",
    ),
]
