"""Tables and streams far larger than the memory used: no input is copied as a whole."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise.stages.text import text_batches

# Runs in its own process to measure its memory alone; prints the growth of anonymous memory at its peak, and a count.
SCRIPT = """
import itertools, json, sys, threading, time
import numpy as np, pyarrow as pa
import likewise
from likewise.batch.texts import dedup  # loads what the first call would

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))

what, form, logical = sys.argv[1], sys.argv[2], int(sys.argv[3])
generator = np.random.default_rng(1)
# 512 documents of 32 KB, of which every batch is a slice: buffers are shared, so that the table itself is small.
words = np.array([f"word{i}" for i in range(5000)], object)
texts = [" ".join(words[generator.integers(0, 5000, 4000)]) for _ in range(512)]
block = pa.record_batch({"text": pa.array(texts), "n": pa.array(range(512))})
likewise.dedup(["a b c"]), likewise.pairs(block.slice(0, 2), text_field="text")
num_batches = logical // block.nbytes * 8
batches = (block.slice(64 * (i % 8), 64) for i in range(num_batches))
if form == "stream":
    data = pa.RecordBatchReader.from_batches(block.schema, batches)
else:
    data = pa.Table.from_batches(batches)
before, peak, done = anonymous(), 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.002)
thread = threading.Thread(target=watch)
thread.start()
if what == "sketch":
    count = len(likewise.sketch(data))
elif what == "dedup":
    count = int(likewise.dedup(data, likewise.Recipe.minhash()).kept.sum())
else:
    # Every document has so many copies, so pairs are counted among the first ones.
    count = likewise.pairs(data, likewise.Recipe.minhash(keep="first")).num_rows
done = True
thread.join()
print(json.dumps({"peak": peak - before, "count": count, "num_batches": num_batches}))
"""


def measured(what, form, logical_bytes):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, what, form, str(logical_bytes)], capture_output=True, check=True, timeout=600
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="anonymous memory is read from /proc")
@pytest.mark.parametrize("form", ["stream", "table"])
@pytest.mark.parametrize("what", ["sketch", "dedup", "pairs"])
def test_anonymous_memory_does_not_follow_the_texts(what, form):
    logical = (1 if what == "pairs" else 3) << 30
    ran = measured(what, form, logical)
    num_rows = ran["num_batches"] * 64
    copies = num_rows // 512
    # Every document occurs equally often; a pair is two of its copies.
    expected = {"sketch": num_rows, "dedup": 512, "pairs": 512 * copies * (copies - 1) // 2}
    assert ran["count"] == expected[what]
    # The pairs themselves are 30 MB, and are sorted.
    assert ran["peak"] < (400 << 20 if what == "pairs" else 150 << 20), ran


def test_streams_and_iterators_are_sketched_batch_by_batch():
    texts = [f"document {i} of words" for i in range(20_000)]
    whole = likewise.sketch(texts)
    schema = pa.schema({"text": pa.string(), "n": pa.int64()})
    held = []

    def batches():
        for start in range(0, len(texts), 1000):
            held.append(pa.total_allocated_bytes())
            part = texts[start : start + 1000]
            yield pa.record_batch({"text": part, "n": list(range(len(part)))})

    for recipe in (likewise.Recipe.minhash(), likewise.Recipe.simhash(bits=128)):
        whole = likewise.sketch(texts, recipe)
        for data in (pa.RecordBatchReader.from_batches(schema, batches()), iter(texts), (text for text in texts)):
            found = likewise.sketch(data, recipe)
            assert np.array_equal(found.array, whole.array)
            assert np.array_equal(found.num_features, whole.num_features)
    assert max(held) - held[0] < 200_000
    parts = [len(part) for part in text_batches(iter(texts))]
    assert (sum(parts), len(parts)) == (20_000, 3)


def test_what_is_wrong_in_a_later_batch_is_named_by_its_row():
    schema = pa.schema({"text": pa.string()})
    parts = [pa.record_batch({"text": ["a", "b"]}), pa.record_batch({"text": ["c", None]})]
    for data in (pa.RecordBatchReader.from_batches(schema, parts), (x for x in [*["a"] * 9000, 5])):
        with pytest.raises(likewise.InvalidInput) as error:
            likewise.sketch(data)
        assert error.value.row in (3, 9000)
    with pytest.raises(likewise.InvalidInput, match="body"):
        likewise.sketch(pa.RecordBatchReader.from_batches(schema, []), text_field="body")
    for none in (pa.RecordBatchReader.from_batches(schema, []), iter([]), []):
        assert likewise.sketch(none).array.shape == (0, 128)
