"""Periodic texts: the same words are removed as by the plain version, in few evidence rows and bounded memory."""

import json
import sys
from collections import Counter
from itertools import chain, pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.batch.parts import PartRules, dedup_parts
from likewise.batch.parts import run as removal
from tests.batch.memory.sampling import peak_of
from tests.batch.parts.naive import ascii_words, without_spans
from tests.command import jsonl

LEAST = 8
# Single words, repeated blocks, and random words between them.
BLOCKS = st.lists(st.sampled_from(["a", "b", "c", "zero"]), min_size=1, max_size=14)
PERIODIC = st.tuples(BLOCKS, st.integers(0, 40)).map(lambda of: of[0] * of[1])
RANDOM = st.lists(st.sampled_from(["a", "b"]), max_size=60)
DOCUMENTS = st.lists(
    st.lists(PERIODIC | RANDOM, max_size=4).map(lambda parts: [*chain.from_iterable(parts)]), max_size=6
)


def run(folder, texts, num_words, **options):
    (folder / "in.jsonl").write_bytes(jsonl(texts))
    dedup_parts(folder / "in.jsonl", folder / "out", PartRules("span", num_words), overwrite=True, **options)
    rows = [json.loads(row) for row in (folder / "out" / "kept" / "in.jsonl").read_text().splitlines()]
    evidence = pq.read_table(folder / "out" / "removed.parquet").to_pylist()
    return {int(row["id"]): row["text"] for row in rows}, evidence


def check(folder, texts, num_words):
    kept, evidence = run(folder, texts, num_words)
    expected = without_spans(texts, num_words)
    assert kept == {i: text for i, text in enumerate(expected) if text.strip() or text == texts[i]}
    places = [{start: number for number, (start, _, _) in enumerate(ascii_words(text))} for text in texts]
    blocks = Counter()
    for row in evidence:
        begin, other = places[row["row"]][row["span_start"]], places[row["kept_row"]][row["kept_span_start"]]
        words, others = (
            [word for _, _, word in ascii_words(texts[number][row[f"{side}span_start"] : row[f"{side}span_end"]])]
            for number, side in ((row["row"], ""), (row["kept_row"], "kept_"))
        )
        assert words == others
        assert len(words) >= num_words
        assert (row["kept_row"], other) < (row["row"], begin)
        blocks[row["row"], begin // num_words] += 1
    assert max(blocks.values(), default=0) <= min(8, num_words // 2)
    return evidence


@settings(max_examples=25, deadline=None)
@given(DOCUMENTS, st.sampled_from([LEAST, 13, 21]), st.sampled_from([" ", ". ", ",\n", "\t"]))
def test_periodic_texts_as_by_hand(tmp_path_factory, documents, num_words, between):
    check(tmp_path_factory.mktemp("periods"), [between.join(words) for words in documents], num_words)


@pytest.mark.parametrize("num_words", [LEAST, 50])
def test_a_table_a_line_and_a_word(tmp_path, num_words):
    texts = [
        "zero\t" * 700,
        "nil.\n" + "zero\tone\t" * 300,
        "the same line stands here again and again\n" * 90,
        "word " * 500 + "the same line stands here again and again\n" * 50,
        "zero " * 123,
    ]
    evidence = check(tmp_path, texts, num_words)
    # There are over 2000 windows.
    assert len(evidence) < 2600 * 8 // num_words


def test_batches_hold_few_bytes_and_all_stretches(monkeypatch):
    rng = np.random.default_rng(5)
    monkeypatch.setattr(removal, "_STRETCHES_AT_ONCE", 4)
    monkeypatch.setattr(removal, "_BYTES_AT_ONCE", 1000)
    for count in (0, 1, 5, 400):
        sizes = rng.integers(1, 400, 60).astype(np.uint32)
        sizes[7] = 5000
        rows, kept_rows = np.sort(rng.integers(0, 60, count)), rng.integers(0, 60, count)
        bounds = removal._batches(sizes, rows, kept_rows)
        assert bounds[-1:] == [count][: len(bounds)]
        assert bool(bounds) == bool(count)
        for begin, end in pairwise(bounds):
            assert begin < end
            needed = sizes[np.unique([rows[begin:end], kept_rows[begin:end]])].sum()
            first = sizes[np.unique([rows[begin], kept_rows[begin]])].sum()
            assert needed - first <= 1000
            assert end - begin <= max(4, needed // 64)
    # Two long documents that alternate are read once, not for each stretch.
    sizes = np.array([400, 400], np.uint32)
    assert removal._batches(sizes, np.ones(12, np.int64), np.arange(12) % 2) == [0, 12]
    # So are two whose bytes alone exceed the limit.
    sizes = np.array([2000, 2000, 400], np.uint32)
    assert removal._batches(sizes, np.ones(12, np.int64), np.arange(12) // 4) == [0, 12]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["word", "pair", "zeros", "line", "many"])
def test_memory_of_periodic_texts(tmp_path, kind):
    """A periodic text takes about the memory of any text with as many words."""
    texts = {
        "word": ["word " * 1_500_000] * 3,
        "pair": ["ab cd " * 750_000] * 3,
        "zeros": ["0\t0\t0\t0\n" * 400_000] * 3,
        "line": ["a line that stands here again and again\n" * 200_000] * 3,
        "many": ["word " * (100 + 29 * i % 2900) for i in range(3000)],
    }[kind]
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts))
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)); "
        "from likewise.batch.parts import PartRules, dedup_parts; from likewise.job.reading import FileRun; "
        f"dedup_parts({str(tmp_path / 'in.jsonl')!r}, {str(tmp_path / 'out')!r}, PartRules('span'), "
        "run=FileRun(threads=2))"
    )
    assert peak_of([sys.executable, "-c", code]) < 900 << 20
    num_words = sum(len(text.split()) for text in texts)
    assert pq.read_metadata(tmp_path / "out" / "removed.parquet").num_rows <= num_words * 8 // 50
