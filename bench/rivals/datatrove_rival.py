"""datatrove (Hugging Face): its four-stage MinHash pipeline, as in its own example, on two processes."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rivals.protocol import TOKEN, Rival, make_importable

NUM_PROCESSES = 2
# As Likewise at threshold .8: 18 bands of 7 rows, token 3-grams.
NUM_BUCKETS, HASHES_PER_BUCKET, SHINGLE = 18, 7, 3


def _split(path: Path, folder: Path) -> None:
    """Split into one file per process, since a task of datatrove reads whole files; lines keep their order."""
    lines = path.read_bytes().splitlines(keepends=True)
    folder.mkdir()
    for part in range(NUM_PROCESSES):
        low, high = (len(lines) * at // NUM_PROCESSES for at in (part, part + 1))
        (folder / f"{part:05d}.jsonl").write_bytes(b"".join(lines[low:high]))


def _word_tokenizer(pattern: re.Pattern[str]) -> object:
    """Return a datatrove tokenizer with the tokens of the other rivals; its text is already lowercase."""
    from datatrove.utils.word_tokenizers import WordTokenizer

    class Pattern(WordTokenizer):
        def word_tokenize(self, text: str) -> list[str]:
            return pattern.findall(text)

        def sent_tokenize(self, text: str) -> list[str]:
            raise NotImplementedError

        def span_tokenize(self, text: str) -> list[tuple[int, int]]:
            raise NotImplementedError

    return Pattern()


def dedup_minhash(path: Path, out: Path, tokens: str, *, tokenizer: Callable[[str], object] | None = None) -> list[str]:
    """Run signatures, buckets, clusters, filter; write the kept documents as uncompressed JSON Lines."""
    os.environ["DATATROVE_COLORIZE_LOGS"] = "0"
    make_importable("datatrove")
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.logging import logger
    from datatrove.utils.typeshelper import Languages

    logger.remove()
    logger.add(sys.stderr, level="ERROR")
    config = MinhashConfig(
        n_grams=SHINGLE,
        num_buckets=NUM_BUCKETS,
        hashes_per_bucket=HASHES_PER_BUCKET,
        hash_config=HashConfig(precision=64),
    )
    language = Languages.english if tokenizer is None else tokenizer(tokens)
    with tempfile.TemporaryDirectory(dir=out.parent) as name:
        work = Path(name)
        _split(path, work / "in")
        sign = MinhashDedupSignature(str(work / "signatures"), config, language)
        stages = [
            (NUM_PROCESSES, [JsonlReader(str(work / "in")), sign]),
            (NUM_BUCKETS, [MinhashDedupBuckets(str(work / "signatures"), str(work / "buckets"), config=config)]),
            (1, [MinhashDedupCluster(str(work / "buckets"), str(work / "remove"), config=config)]),
            (
                NUM_PROCESSES,
                [
                    JsonlReader(str(work / "in")),
                    MinhashDedupFilter(str(work / "remove")),
                    JsonlWriter(str(out), output_filename="${rank}.jsonl", compression=None),
                ],
            ),
        ]
        for number, (num_tasks, pipeline) in enumerate(stages):
            LocalPipelineExecutor(
                pipeline,
                tasks=num_tasks,
                workers=min(num_tasks, NUM_PROCESSES),
                logging_dir=str(work / f"logs-{number}"),
                start_method="fork",
            ).run()
    ids = []
    for file in sorted(out.glob("*.jsonl")):
        with file.open("rb") as lines:
            ids += [json.loads(line)["id"] for line in lines]
    return ids


def _pattern_tokenizer(tokens: str) -> object:
    return _word_tokenizer(TOKEN[tokens])


SETTINGS = (
    f"MinhashConfig(n_grams={SHINGLE}, num_buckets={NUM_BUCKETS}, hashes_per_bucket={HASHES_PER_BUCKET}, 64-bit xxhash)"
    f", four stages, {NUM_PROCESSES} processes, default lines_to_buffer"
)
PIPELINES = [
    Rival(
        name="datatrove",
        package="datatrove",
        method="minhash",
        settings=f"{SETTINGS}; its English words (spaCy), numbers replaced by 0, no punctuation",
        verified="no; closure",
        dedup_jsonl=dedup_minhash,
        tokens=("word",),
    ),
    Rival(
        name="datatrove, words by regex",
        package="datatrove",
        method="minhash",
        settings=f"{SETTINGS}; the same with words from a regular expression instead of spaCy",
        verified="no; closure",
        dedup_jsonl=partial(dedup_minhash, tokenizer=_pattern_tokenizer),
    ),
]
