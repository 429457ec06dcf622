"""Segments are derived data: a flipped bit or a truncated file costs time, but changes no answer and loses no index."""

import json
import os
import random
import shutil
import struct
import subprocess
import sys

import pytest

import likewise
from tests.conftest import ROOT
from tests.index.store.crash_index import FLUSH_ROWS, open_small

NUM = 240
HEADER_BYTES = 64


def make_texts():
    """Return texts, a third of which are copies of others, and some are short or empty."""
    chance = random.Random(11)
    texts = []
    for number in range(NUM):
        if number % 3 == 2:
            texts.append(texts[chance.randrange(len(texts))])
        elif number % 20 == 7:
            texts.append(" ".join(f"s{chance.randrange(9)}" for _ in range(chance.randrange(3))))
        else:
            texts.append(" ".join(f"w{chance.randrange(4000)}" for _ in range(30)))
    return texts


def settled(index):
    """Wait until the rows before the last segment are out of memory."""
    while index.stats["is_building"] or index.stats["num_in_memory"] >= FLUSH_ROWS:
        pass


def feed(path, recipe_name, texts, **options):
    """Create an index with segments. Duplicates of its removed documents are promoted."""
    with open_small(path, recipe_name, **options) as index:
        num_promoted = 0
        for start in range(0, NUM, FLUSH_ROWS):
            rows = range(start, start + FLUSH_ROWS)
            index.add_batch([f"d{row}" for row in rows], [texts[row] for row in rows])
            # A segment without some rows lists its rows.
            index.remove(f"d{start + 6}")
            settled(index)
    with open_small(path, recipe_name, **options) as index:
        # After the last segment was built, so its tables do not contain the promoted documents.
        for row in range(0, NUM, 5):
            num_promoted += len(index.remove(f"d{row}").promoted)
        assert num_promoted >= 5


def size(file):
    return file.stat().st_size


def answers(index, texts):
    verdicts = [(v.is_new, v.kept_id, v.similarity, v.distance) for v in index.check_batch(texts)]
    return len(index), verdicts, [index.get(f"d{row}") for row in range(NUM)]


def sections(content):
    """Return name, offset and bytes of each section of a file of tables."""
    offset, num_bytes = struct.unpack("<QQ", content[-HEADER_BYTES + 8 :][:16])
    found = []

    def walk(name, part):
        if isinstance(part, dict):
            if {"offset", "num_bytes", "checksum"} <= part.keys():
                found.append((name, part["offset"], part["num_bytes"]))
            else:
                for key, inner in part.items():
                    walk(f"{name} {key}".strip(), inner)
        elif isinstance(part, list):
            for key, inner in enumerate(part):
                walk(f"{name} {key}", inner)

    walk("", json.loads(content[offset : offset + num_bytes]))
    return found


def places(file, chance):
    """Return offsets of bytes to change: one of each section, one of its checksums, and some others."""
    content = file.read_bytes()
    chosen = [0, 40, len(content) - 1, *(chance.randrange(len(content)) for _ in range(3))]
    if file.suffix == ".lws":
        named = sections(content)
        assert {"found", "kept", "rows", "short"} <= {name for name, _, _ in named}
        # All bands have the same layout, so one suffices.
        for _, offset, num_bytes in [s for s in named if not s[0].startswith("bands") or s[0].startswith("bands 0")]:
            if num_bytes:
                chosen += [offset + chance.randrange(num_bytes), offset + num_bytes]
    return chosen


@pytest.mark.parametrize("num_places", [12, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("recipe_name", "options"), [("simhash-wide", {"ttl": 10**6}), ("minhash", {})])
def test_a_flipped_bit_in_any_section_changes_no_answer(tmp_path, recipe_name, options, num_places):
    texts = make_texts()
    whole = tmp_path / "whole"
    feed(whole, recipe_name, texts, **options)
    with open_small(whole, recipe_name) as index:
        expected = answers(index, texts)
    chance = random.Random(5)
    # The largest segment has the most rows.
    of_kind = [sorted((whole / "segments").glob(f"*.{ending}"), key=size) for ending in ("lws", "hamming")]
    files = [named[-1] for named in of_kind if named]
    tables = files[0]
    tried = [(file.name, at) for file in files for at in places(file, chance)]
    # Each sample includes the section that opening reads to find promoted documents.
    tried = [tried[0], *chance.sample(tried[1:], min(num_places, len(tried)) - 1)]
    found = next(offset for name, offset, _ in sections(tables.read_bytes()) if name == "found")
    tried[0] = (tables.name, found)
    num_rebuilt = 0
    for name, at in tried:
        path = tmp_path / "broken"
        shutil.copytree(whole, path)
        damaged = path / "segments" / name
        content = bytearray(damaged.read_bytes())
        content[at] ^= 1 << chance.randrange(8)
        damaged.chmod(0o644)
        damaged.write_bytes(content)
        with open_small(path, recipe_name, read_only=True) as reader:
            assert answers(reader, texts) == expected, (name, at)
            with open_small(path, recipe_name) as index:
                assert answers(index, texts) == expected, (name, at)
                index.add("one-more", "a text that nobody has added before this one came")
                num_rebuilt += index.stats["num_rebuilt"]
                assert len(reader) == expected[0] + 1
        shutil.rmtree(path)
    # Bytes that no call needs, such as those between sections, are not read.
    assert num_rebuilt > len(tried) // 3


def test_a_removal_whose_tables_turn_out_to_be_damaged_is_told_as_done(tmp_path):
    """The promoted document is looked up after the commit: an error there would deny a removal that is durable."""
    path, pair = tmp_path / "i", make_texts()[0]
    with open_small(path, "minhash") as index:
        index.add("first", pair)
        index.add_batch(
            [f"d{i}" for i in range(FLUSH_ROWS)], [f"{i} other words {i * i} for {i}" for i in range(FLUSH_ROWS)]
        )
        index.add("second", pair)
        index.compact()
    (file,) = (path / "segments").glob("*.lws")
    content = bytearray(file.read_bytes())
    offset = next(offset for name, offset, _ in sections(content) if name == "found")
    content[offset] ^= 1
    file.chmod(0o644)
    file.write_bytes(content)
    with open_small(path, "minhash") as index:
        removal = index.remove("first")
        assert removal.promoted == ("second",)
        assert index.check(pair).kept_id == "second"
        assert index.get("first") is None
        assert index.stats["num_rebuilt"] == 1


TRUNCATE = """
import os, shutil, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import likewise
from tests.index.store.crash_index import open_small
from tests.index.store.test_damaged_sections import answers, make_texts

texts, whole, path = make_texts(), Path(sys.argv[1]), Path(sys.argv[2])

def truncate(mode, share):
    with open_small(path, "RECIPE", read_only=mode == "read") as index:
        expected = answers(index, texts)
        for file in (path / "segments").iterdir():
            os.truncate(file, int(file.stat().st_size * share))
        # Where no page is missing as a whole the change of a file is noticed a little later.
        time.sleep(0.05)
        assert answers(index, texts) == expected
        assert index.stats["num_rebuilt"] > 0
        if mode == "write":
            index.add("one-more", "a text that nobody has added before this one came")
            assert index.remove("d1").was_kept in (True, False)
            assert index.verify(full=True) == []

for mode in ("read", "write"):
    for share in (0.0, 0.5, 0.999):
        print(mode, share, end=": ", flush=True)
        shutil.copytree(whole, path)
        truncate(mode, share)
        shutil.rmtree(path)
        print("survived", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows truncates no mapped file")
@pytest.mark.parametrize("recipe_name", ["simhash-wide", "minhash"])
def test_a_segment_truncated_while_it_is_open_ends_no_process(tmp_path, recipe_name):
    """All blocks were read and verified before, so only the missing pages show the damage."""
    feed(tmp_path / "whole", recipe_name, make_texts())
    script = TRUNCATE.replace("RECIPE", recipe_name)
    command = [sys.executable, "-c", script, str(tmp_path / "whole"), str(tmp_path / "i"), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("survived\n") == 6


FOREIGN = """
import faulthandler, mmap, os, sys
import likewise
if sys.argv[2] == "before":
    faulthandler.enable()
with likewise.Index(sys.argv[1]) as index:
    if sys.argv[2] == "after":
        faulthandler.enable()
        likewise.Index(sys.argv[1], read_only=True).close()
    with open(sys.argv[1] + ".own", "w+b") as file:
        file.truncate(8192)
        mine = mmap.mmap(file.fileno(), 8192)
        file.truncate(0)
        mine[5000]
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signal")
@pytest.mark.parametrize("order", ["before", "after", "never"])
def test_the_mappings_of_others_fail_as_ever(tmp_path, order):
    """A bus error elsewhere in the process still ends it, with a traceback if faulthandler is enabled."""
    feed(tmp_path / "i", "simhash", make_texts())
    command = [sys.executable, "-c", FOREIGN, str(tmp_path / "i"), order]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -7 or done.returncode == -10
    assert ("Fatal Python error: Bus error" in done.stderr) == (order != "never")


HAMMING = """
import os, sys
import numpy as np
import likewise
codes = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
sets = [likewise.HammingIndex.open(sys.argv[1]) for _ in range(2)]
for opened in sets:
    assert len(opened.query_batch(codes, within=3)) > 0
os.truncate(sys.argv[1], int(sys.argv[2]))
for opened in sets:
    try:
        opened.query_batch(codes, within=3)
    except likewise.InvalidInput as error:
        print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows truncates no mapped file")
@pytest.mark.parametrize("num_bytes", [0, 100_000])
def test_a_hamming_file_truncated_while_it_is_open_is_an_error(tmp_path, num_bytes):
    import numpy as np

    codes = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    path = tmp_path / "codes.lwh"
    likewise.HammingIndex(codes, within=3).save(path)
    command = [sys.executable, "-c", HAMMING, str(path), str(num_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("changed while it was in use") == 2
