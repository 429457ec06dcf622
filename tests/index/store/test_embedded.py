"""The embedded index with threads, other processes, damage, expiry, and every kind of input."""

import os
import random
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import polars
import pyarrow as pa
import pytest

import likewise
from likewise.errors import IndexLocked, StoreError
from tests.conftest import ROOT
from tests.golden.texts import made_up
from tests.index.store.crash_child import make_text
from tests.index.store.crash_index import FLUSH_ROWS, open_small
from tests.recipes import RECIPES
from tests.waiting import wait_until

NEAR = likewise.Recipe.simhash(within=3)


def page(number):
    return made_up(60, number)


def answers(index, texts):
    return [(v.is_new, v.kept_id, v.similarity, v.distance) for v in index.check_batch(texts)]


def test_of_two_threads_with_one_page_one_is_told_that_it_is_new(tmp_path):
    num_threads, num_pages = 6, 60
    verdicts = [[] for _ in range(num_threads)]
    with likewise.Index(tmp_path / "i", NEAR) as index:
        barrier = threading.Barrier(num_threads)

        def crawl(mine):
            for number in range(num_pages):
                barrier.wait()
                verdicts[mine].append(index.check_and_add(f"{mine}-{number}", page(number)))

        threads = [threading.Thread(target=crawl, args=(mine,)) for mine in range(num_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(index) == num_threads * num_pages
        for number in range(num_pages):
            of_page = [verdicts[mine][number] for mine in range(num_threads)]
            new = [verdict for verdict in of_page if verdict.is_new]
            assert len(new) == 1
            # The new document is the first in order of arrival, and the others name it.
            assert new[0].seq == min(verdict.seq for verdict in of_page)
            assert {verdict.kept_id for verdict in of_page if not verdict.is_new} == {new[0].doc_id}
    seqs = sorted(verdict.seq for of_thread in verdicts for verdict in of_thread)
    assert seqs == list(range(1, num_threads * num_pages + 1))


def test_a_second_writer_is_refused_and_readers_follow(tmp_path):
    path = tmp_path / "i"
    with likewise.Index(path, NEAR) as index:
        index.add("a", page(1))
        with pytest.raises(IndexLocked, match="i"):
            likewise.Index(path)
        code = (
            "import sys, likewise\n"
            "with likewise.Index(sys.argv[1], read_only=True) as index:\n"
            "    for line in sys.stdin:\n"
            "        verdict = index.check(line.strip())\n"
            "        print(len(index), verdict.kept_id, flush=True)\n"
            "try:\n    likewise.Index(sys.argv[1])\n"
            "except likewise.LikewiseError as error:\n    print(type(error).__name__)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as reader:
            for number, expected in ((1, "1 a"), (2, "1 None")):
                reader.stdin.write(page(number) + "\n")
                reader.stdin.flush()
                assert reader.stdout.readline().strip() == expected
            index.add("b", page(2))
            index.remove("a")
            for number, expected in ((2, "1 b"), (1, "1 None")):
                reader.stdin.write(page(number) + "\n")
                reader.stdin.flush()
                assert reader.stdout.readline().strip() == expected
            reader.stdin.close()
            assert reader.stdout.read().strip() == "IndexLocked"
    with likewise.Index(path, read_only=True) as reader, pytest.raises(StoreError):
        reader.add("c", page(3))


def test_another_recipe_is_refused_by_name(tmp_path):
    with likewise.Index(tmp_path / "i", NEAR) as index:
        index.add("a", page(1))
    with pytest.raises(likewise.RecipeMismatch, match="within"):
        likewise.Index(tmp_path / "i", likewise.Recipe.simhash(within=4))
    with likewise.Index(tmp_path / "i", NEAR) as index:
        assert index.recipe.recipe_id == NEAR.resolve().recipe_id
        assert len(index) == 1
    for recipe in (likewise.Recipe.shingles(), likewise.Recipe.exact(), likewise.Recipe.minhash(keep="longest")):
        with pytest.raises(likewise.InvalidParameter):
            likewise.Index(tmp_path / "other", recipe)
        assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("store", ["sketch", "shingles", "text"])
def test_every_kind_of_input_says_the_same(tmp_path, store):
    texts = [page(number % 7) + (" more" if number % 2 else "") for number in range(20)]
    ids = [f"doc-{number}" for number in range(20)]
    kinds = {
        "list": (ids, texts),
        "arrow": (pa.array(ids), pa.array(texts)),
        "chunked": (pa.chunked_array([ids[:5], ids[5:]]), pa.chunked_array([texts[:9], texts[9:]])),
        "polars": (polars.Series(ids), polars.Series(texts)),
        "iterators": (iter(ids), (text for text in texts)),
    }
    found = {}
    for name, (given_ids, given) in kinds.items():
        with likewise.Index(tmp_path / name, NEAR, store=store) as index:
            found[name] = list(index.check_and_add_batch(given_ids, given))
            assert len(index.check_batch([])) == 0
    assert len(set(map(str, found.values()))) == 1
    with pytest.raises(likewise.InvalidInput), likewise.Index(tmp_path / "n", NEAR) as index:
        index.add_batch(ids, texts[:3])


def test_sketches_are_taken_as_they_are(tmp_path):
    texts = [made_up(200, number % 7) + (" more" if number % 2 else "") for number in range(20)]
    ids = [f"doc-{number}" for number in range(20)]
    sketches = likewise.sketch(texts, NEAR)
    with likewise.Index(tmp_path / "s", NEAR) as index, likewise.Index(tmp_path / "t", NEAR) as other:
        by_sketch, by_text = index.check_and_add_batch(ids, sketches), other.check_and_add_batch(ids, texts)
        assert list(by_sketch) == list(by_text)
        assert answers(index, sketches) == answers(other, texts)
        assert not index.add_batch(ids, sketches).added.any()
        with pytest.raises(likewise.InvalidInput, match="doc-0"):
            index.add_batch(ids[:1], sketches[1:2])
        with pytest.raises(likewise.RecipeMismatch):
            index.check_batch(likewise.sketch(texts, likewise.Recipe.simhash(bits=128)))


def fed(path, recipe_name, num=300, seed=4):
    """Fill an index with several segments, and return its texts, answers and documents."""
    chance = random.Random(seed)
    texts = [make_text(number, chance) for number in range(num)]
    for start in range(0, num, 60):
        with open_small(path, recipe_name) as index:
            part = range(start, min(start + 60, num))
            index.add_batch([f"doc-{number}" for number in part], [texts[number] for number in part])
            index.remove(f"doc-{start + 3}")
            assert wait_until(lambda index=index: index.stats["num_in_memory"] < FLUSH_ROWS)
    with open_small(path, recipe_name) as index:
        return texts, answers(index, texts), [index.get(f"doc-{number}") for number in range(num)]


@pytest.mark.parametrize("recipe_name", ["simhash-wide", "minhash"])
def test_damaged_and_missing_tables_change_no_answer(tmp_path, recipe_name):
    texts, expected, documents = fed(tmp_path / "whole", recipe_name)
    files = sorted((tmp_path / "whole" / "segments").iterdir())
    assert files
    chance = random.Random(7)
    for number in range(24):
        path = tmp_path / f"broken-{number}"
        shutil.copytree(tmp_path / "whole", path)
        for file in chance.sample(sorted((path / "segments").iterdir()), chance.randint(1, len(files))):
            content = bytearray(file.read_bytes())
            file.chmod(0o644)
            kind = number % 4
            if kind == 0:
                file.unlink()
            elif kind == 1:
                file.write_bytes(content[: chance.randrange(len(content))])
            elif kind == 2:
                at = chance.randrange(len(content))
                content[at] ^= 1 << chance.randrange(8)
                file.write_bytes(content)
            else:
                file.write_bytes(bytes(len(content)))
        with open_small(path, recipe_name) as index:
            assert answers(index, texts) == expected
            assert [index.get(f"doc-{i}") for i in range(len(texts))] == documents
            index.rebuild()
            assert index.verify(full=True) == []
            assert answers(index, texts) == expected
        shutil.rmtree(path)


def test_older_tables_beside_a_newer_database_are_not_believed(tmp_path):
    texts, _, _ = fed(tmp_path / "i", "minhash")
    shutil.copytree(tmp_path / "i" / "segments", tmp_path / "old")
    with open_small(tmp_path / "i", "minhash") as index:
        for number in range(0, 300, 7):
            if index.get(f"doc-{number}"):
                index.remove(f"doc-{number}")
        index.add_batch([f"new-{number}" for number in range(50)], texts[:50])
        index.compact()
        expected = answers(index, texts)
    shutil.rmtree(tmp_path / "i" / "segments")
    shutil.copytree(tmp_path / "old", tmp_path / "i" / "segments")
    with open_small(tmp_path / "i", "minhash") as index:
        assert answers(index, texts) == expected


def test_a_damaged_database_is_an_error_and_nothing_is_served(tmp_path):
    texts, expected, documents = fed(tmp_path / "whole", "simhash-wide", num=60)
    chance = random.Random(3)
    content = (tmp_path / "whole" / "documents.sqlite").read_bytes()
    num_refused = num_found = 0
    for number in range(40):
        path = tmp_path / f"broken-{number}"
        shutil.copytree(tmp_path / "whole", path)
        damaged = bytearray(content)
        at = chance.randrange(len(damaged))
        damaged[at : at + 64] = os.urandom(len(damaged[at : at + 64]))
        (path / "documents.sqlite").write_bytes(damaged)
        try:
            with open_small(path, "simhash-wide") as index:
                num_found += bool(index.verify(full=True))
                assert answers(index, texts) == expected
                assert [index.get(f"doc-{i}") for i in range(60)] == documents
        except StoreError:
            num_refused += 1
        shutil.rmtree(path)
    # The rest of the file is space between rows, which is never read.
    assert num_found >= 4
    assert num_refused >= 4


def test_by_interval_everything_is_there_after_a_close_and_nonsense_is_refused(tmp_path):
    with likewise.Index(tmp_path / "i", NEAR, durability="interval:50ms") as index:
        index.add_batch([str(i) for i in range(100)], [page(i) for i in range(100)])
        time.sleep(0.2)
    with likewise.Index(tmp_path / "i") as index:
        assert len(index) == 100
    for durability in ("never", "interval", "interval:-3ms", "interval:x"):
        with pytest.raises(likewise.InvalidParameter, match="durability"):
            likewise.Index(tmp_path / "i", durability=durability)
    with pytest.raises(likewise.LikewiseError):
        index.check(page(1))


def test_a_snapshot_is_of_one_moment(tmp_path):
    texts, expected, _ = fed(tmp_path / "i", "minhash", num=120)
    with open_small(tmp_path / "i", "minhash") as index:
        index.snapshot(tmp_path / "copy")
        index.add_batch([f"later-{i}" for i in range(60)], [f"another {i} " * 9 for i in range(60)])
        with pytest.raises(likewise.LikewiseError):
            index.snapshot(tmp_path / "copy")
    with open_small(tmp_path / "copy", "minhash") as copy:
        assert answers(copy, texts) == expected
        assert copy.get("later-0") is None


def test_verdicts_are_columns_too(tmp_path):
    with likewise.Index(tmp_path / "i", RECIPES["minhash"]) as index:
        verdicts = index.check_and_add_batch(["a", "b", "c"], [page(1), page(1), page(2)])
        assert verdicts.is_new.tolist() == [True, False, True]
        assert verdicts.kept_ids == [None, "a", None]
        assert np.isnan(verdicts.similarity).tolist() == [True, False, True]
        assert verdicts.seq.tolist() == [1, 2, 3]
        assert verdicts.added.all()
        checked = index.check_batch([page(2)])
        assert checked.seq is None
        assert not checked.added.any()


def test_examples_of_the_documentation_run(tmp_path):
    from tests.structure.pages import blocks

    code = blocks("docs/howto/use-an-index.md", "python")[0]
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "seen.lw" / "documents.sqlite").exists()


FULL_DISK = """
import os, resource, sys
import likewise
from likewise.errors import IndexPoisoned
from tests.conftest import ROOT
from tests.golden.texts import made_up
path = sys.argv[1]
index = likewise.Index(path, likewise.Recipe.simhash(within=3))
told = 0
index.add("first", made_up(60, 0))
size = os.path.getsize(path + "/documents.sqlite-wal")
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, limit[1]))
errors = []
for number in range(1, 2000):
    try:
        index.add(f"doc-{number}", made_up(60, number))
        told = number
    except (likewise.LikewiseError, OSError) as error:
        errors.append(type(error).__name__)
        print(error, file=sys.stderr)
        if len(errors) == 3:
            break
assert errors[0] in ("StoreError", "OSError"), errors
assert errors[1:] == ["IndexPoisoned"] * 2, errors
assert index.check(made_up(60, told)).kept_id == f"doc-{told}"
assert index.get(f"doc-{told + 1}") is None
try:
    index.close()
except IndexPoisoned:
    pass
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
with likewise.Index(path) as index:
    assert len(index) == told + 1, (len(index), told)
    assert index.verify(full=True) == []
    assert index.add("after", made_up(60, 5000)).added
print(told)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes")
def test_where_the_disk_is_full_nothing_told_is_lost(tmp_path):
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "i")]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 3
    assert str(tmp_path / "i") in ran.stderr.splitlines()[0]
