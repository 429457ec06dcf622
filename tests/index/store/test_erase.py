"""Erasure: no byte of an erased document is left, other documents follow the rules of removal, and it is atomic."""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import threading
import time
import warnings
from unittest import mock

import pytest

import likewise
from likewise import _native
from likewise.errors import InvalidParameter, StoreError
from likewise.index import erasing
from tests.command import likewise_command
from tests.forking import forking
from tests.index.store.clocks import clocked
from tests.index.store.crash_child import make_text
from tests.index.store.crash_index import open_small
from tests.index.store.model import ModelIndex
from tests.oracle import decide, features
from tests.oracle.xxh3 import xxh3
from tests.recipes import RECIPES, oracle_recipe
from tests.waiting import wait_until

pytestmark = pytest.mark.rounds

KINDS = [("simhash", "sketch"), ("simhash-wide", "text"), ("minhash", "shingles"), ("minhash", "text")]
KEY = b"a key of the test, 16 bytes or more"


def words(number, count=5):
    """Return words that no other document has, so few that packing them alone would save nothing."""
    chance = random.Random(number)
    return " ".join("".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=9)) for _ in range(count))


def documents(first, count):
    return {f"{'secret' if first else 'document'}-{first + i}-id": words(first + i) for i in range(count)}


def needles(recipe, doc_id, text, store):
    """Return the bytes that must be in no file, by name: the id, the text, and hashes of both."""
    sketch = likewise.sketch([text], recipe).array.tobytes()
    found = {"id": [doc_id.encode()], "hash of the id": hashes(xxh3(doc_id.encode())), "sketch": [sketch, sketch[::-1]]}
    found["hash of the text"] = hashes(xxh3(text.encode()))
    weights = decide.Online(oracle_recipe(recipe)).document(-1, text).weights
    found["features"] = [needle for feature in weights for needle in hashes(feature)]
    low, high = (half.to_bytes(8, "little") for half in features.digest(weights))
    found["digest of the features"] = [low + high, (low + high)[::-1], low, high, low[::-1], high[::-1]]
    if store == "text":
        found["text"] = [word.encode() for word in text.split()]
    return found


def hashes(number):
    return [number.to_bytes(8, "little"), number.to_bytes(8, "big")]


def contents_of(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def found_in(path, wanted):
    """Return the names of the needles that are in a file of a directory, with the file."""
    files = contents_of(path)
    return {
        (name, file) for name, all_of in wanted.items() for needle in all_of for file in files if needle in files[file]
    }


def held(path, recipe, gone, store):
    """Return the kinds of needles of documents that are in the files, with the file."""
    return {place for doc_id, text in gone.items() for place in found_in(path, needles(recipe, doc_id, text, store))}


@pytest.mark.parametrize(("name", "store"), KINDS)
def test_no_file_has_a_byte_of_an_erased_document(tmp_path, name, store):
    path, recipe = tmp_path / "index", RECIPES[name].replace(keep="first")
    kept, gone = documents(0, 150), documents(1000, 12)
    order = [*kept.items()]
    for place, item in zip(range(5, 150, 12), gone.items(), strict=False):
        order.insert(place, item)
    with open_small(path, name, store=store) as index:
        for doc_id, text in order[:60]:
            index.add(doc_id, text)
        index.add_batch(*map(list, zip(*order[60:], strict=True)))
        before = held(path, recipe, gone, store)
        # The search can find the needles: in the log, the database, or both.
        expected = {"id", "hash of the text", "sketch"}
        expected |= {"text"} if store == "text" else set()
        expected |= {"digest of the features"} if name == "minhash" else set()
        assert {kind for kind, _ in before} >= expected
        assert index.remove(next(iter(gone))).was_kept
        erasure = index.erase(gone)
        assert erasure.erased == tuple(gone)
        assert not erasure.absent
        assert held(path, recipe, gone, store) == set()
        assert (path / "documents.sqlite-wal").stat().st_size == 0
        # Only files of the index exist, and the other documents are present.
        assert {file.name for file in path.iterdir()} <= {
            *("documents.sqlite", "documents.sqlite-wal", "documents.sqlite-shm", "documents.mark", "writer.lock"),
            "segments",
        }
        assert list(index.ids()) == list(kept)
        assert sum(index.stats["segment_rows"]) == len(kept)
        # Row numbers are not reused.
        assert index.add("later", words(5)).seq == len(order) + 1
        assert index.verify(full=True) == []
    assert held(path, recipe, gone, store) == set()
    with open_small(path, name) as index:
        assert list(index.ids()) == [*kept, "later"]
        assert index.verify(full=True) == []


def test_removal_and_compaction_alone_leave_something(tmp_path):
    path, recipe = tmp_path / "index", RECIPES["minhash"].replace(keep="first")
    gone = documents(1000, 3)
    with open_small(path, "minhash") as index:
        index.add_batch(list(gone), list(gone.values()))
        for doc_id in gone:
            index.remove(doc_id)
        assert {kind for kind, _ in held(path, recipe, gone, "shingles")} >= {"id", "sketch"}


PAGE_BYTES = 4096


def comparable(path):
    """Return the files of a closed index, with all random values overwritten."""
    database = sqlite3.connect(f"file:{path}/documents.sqlite?mode=ro&immutable=1", uri=True)
    records = [data for (data,) in database.execute("SELECT data FROM meta WHERE name = 'identity'")]
    # A batch has a random identity, next to the checksum of a chunk.
    records += [data[:16] for (data,) in database.execute("SELECT data FROM chunks")]
    names = [name for (name,) in database.execute("SELECT name FROM segments")]
    database.close()
    files = {}
    for file, data in contents_of(path).items():
        if file == "documents.sqlite":
            for record in records:
                data = data.replace(record, b"?" * len(record))
            # Counters of checkpoints.
            data = data[:24] + b"????" + data[28:92] + b"????" + data[96:]
            pages = [data[begin : begin + PAGE_BYTES] for begin in range(0, len(data), PAGE_BYTES)]
            # One page has the names and checksums of the segments.
            of_segments = [page for page in pages if names[0].encode() in page]
            assert len(of_segments) == 1
            assert len(names) == 1
            files[file] = [None if page == of_segments[0] else page for page in pages]
        elif file.endswith(".lws"):
            # Without the header, which has identities, and the last part, which has its checksum.
            files["segment.lws"] = data[64:-64]
        elif file.endswith(".hamming"):
            files["segment.hamming"] = data
        else:
            assert not data or file == "documents.mark"
    return files


@pytest.mark.parametrize(("name", "store"), KINDS)
def test_files_do_not_depend_on_what_was_erased(tmp_path, name, store):
    """Two indexes that erased different documents are byte-identical, including packed features and tables."""
    made = []
    for which in range(3):
        path = tmp_path / f"index-{which}"
        # The third erases nothing, which shows that the files would differ.
        gone = {f"secret-{which % 2}-{i}": words(1000 * (which + 1) + i) for i in range(9)}
        recipe = RECIPES[name].replace(keep="first")
        with clocked(_native.ManualClock(1000), flush_rows=40), likewise.Index(path, recipe, store=store) as index:
            for i in range(90):
                index.add(f"document-{i}", words(i))
                if i % 10 == 9:
                    doc_id = f"secret-{which % 2}-{i // 10}"
                    index.add(doc_id, gone[doc_id])
            index.erase(gone if which < 2 else [])
        made.append(comparable(path))
    first, second, third = made
    assert first.keys() == second.keys()
    assert [file for file in first if first[file] != second[file]] == []
    assert [file for file in first if first[file] != third.get(file)] != []


def plain(index, model, chance):
    """Return the verdicts of the index and of the model for all documents and for new texts."""
    ours = [(d.doc_id, d.kept_id, d.similarity, d.distance, d.seq) for d in map(index.get, index.ids())]
    theirs = [(doc_id, *model.get(doc_id)[2:6]) for doc_id in model.ids()]
    texts = [make_text(0, chance) for _ in range(10)]
    ours += [(v.is_new, v.kept_id, v.similarity, v.distance) for v in index.check_batch(texts)]
    theirs += [model.check(text)[1:5] for text in texts]
    return ours, theirs


@pytest.mark.parametrize("name", ["simhash-wide", "minhash", "minhash-containment"])
@pytest.mark.parametrize("ttl", [None, 60])
def test_other_documents_follow_the_rules_of_removal(tmp_path, name, ttl):
    path, chance = tmp_path / "index", random.Random(f"{name} {ttl}")
    recipe = RECIPES[name].replace(keep="first")
    clock, now_s, num_named = _native.ManualClock(1000), 1000, 0
    model = ModelIndex(oracle_recipe(recipe), ttl)
    with clocked(clock, flush_rows=40):
        index = likewise.Index(path, recipe, ttl=ttl, store="text")
        number = 0
        for _ in range(40):
            for _ in range(chance.randrange(12)):
                text = make_text(number, chance)
                index.add(f"doc-{number:04}-id", text)
                model.check_and_add(f"doc-{number:04}-id", text, now_s)
                number += 1
            clock.pass_time(3)
            now_s += 3
            if chance.random() < 0.4 and model.row_of:
                doc_id = chance.choice(sorted(model.row_of))
                assert tuple(index.remove(doc_id)) == tuple(model.remove(doc_id))
            # Present, removed, expired and unknown ids.
            gone = [f"doc-{chance.randrange(number + 3):04}-id" for _ in range(chance.randrange(4))]
            named = [row.doc_id for row in model.rows if row.gone and model._members(row.row)]
            gone += chance.sample(named, min(len(named), chance.randrange(2)))
            num_named += len({*named} & {*gone})
            found, expected = index.erase(gone), model.erase(gone)
            assert dict(found.moved) | dict.fromkeys(found.promoted) == expected
            files = contents_of(path)
            assert not [doc_id for doc_id in gone for data in files.values() if doc_id.encode() in data]
            ours, theirs = plain(index, model, chance)
            assert ours == theirs
            if chance.random() < 0.2:
                index.close()
                index = likewise.Index(path)
        assert index.verify(full=True) == []
        index.close()
    # The erased documents include expired ones that duplicates still named.
    assert (num_named > 0) == (ttl is not None)


def test_an_expired_kept_document_leaves_and_its_duplicate_becomes_kept(tmp_path):
    clock, path = _native.ManualClock(1000), tmp_path / "index"
    with clocked(clock), likewise.Index(path, "online", ttl=100) as index:
        text = words(1)
        index.add("leader-of-a-group", text)
        clock.pass_time(60)
        assert index.add("member", text).kept_id == "leader-of-a-group"
        clock.pass_time(60)
        index.add("later", words(2))
        index.compact()
        # Compaction must keep the kept document.
        assert index.group("member").is_leader_gone
        assert found_in(path, {"id": [b"leader-of-a-group"]})
        erasure = index.erase(["leader-of-a-group"])
        assert (erasure.erased, erasure.promoted) == (("leader-of-a-group",), ("member",))
        assert not found_in(path, {"id": [b"leader-of-a-group"]})
        assert index.get("member").is_new
        assert index.check(text).kept_id == "member"


@pytest.fixture
def forker():
    """A process that forks a child for each erasure."""
    with forking("tests.index.store.erase_child") as process:
        yield process


def killed_after(forker, job, seconds):
    """Let a child erase, kill it `seconds` after it opened the index, and return how long it lived after opening it."""
    for name in ("begun", "ended"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(job[name])
    forker.stdin.write(json.dumps(job) + "\n")
    forker.stdin.flush()
    pid = int(forker.stdout.readline())
    wait_until(lambda: os.path.exists(job["begun"]) or not os.path.exists(f"/proc/{pid}"))
    begin = time.monotonic()
    while time.monotonic() < begin + seconds and not os.path.exists(job["ended"]):
        time.sleep(0.0002)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    lasted = time.monotonic() - begin
    assert forker.stdout.readline() == "dead\n"
    return lasted


@pytest.mark.parametrize("name", ["simhash-wide", "minhash"])
def test_killed_50_times_it_is_done_or_told(tmp_path, forker, name):
    chance, path, base = random.Random(name), tmp_path / "index", tmp_path / "base"
    recipe = RECIPES[name].replace(keep="first")
    whole, erased = ModelIndex(oracle_recipe(recipe)), ModelIndex(oracle_recipe(recipe))
    texts = {f"doc-{number:04}-id": make_text(number, chance) for number in range(120)}
    with open_small(base, name) as index:
        for doc_id, text in texts.items():
            for each in (index, whole, erased):
                each.check_and_add(doc_id, text)
    gone = chance.sample(list(texts), 15)
    erased.erase(gone)
    job = {"path": str(path), "recipe": name, "ids": gone, "begun": str(tmp_path / "b"), "ended": str(tmp_path / "e")}
    shutil.copytree(base, path)
    lasts = killed_after(forker, job, 60)
    assert (tmp_path / "e").read_text() == "done"
    outcomes = {"not begun": 0, "told": 0, "done": 0}
    for _ in range(25):
        shutil.rmtree(path)
        shutil.copytree(base, path)
        lasted = killed_after(forker, job, chance.uniform(0, lasts))
        if chance.random() < 0.3 and (path / "erasing.json").exists():
            # The second child is killed while it finishes the erasure of the first.
            lasted = killed_after(forker, job, chance.uniform(0, lasts))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            index = open_small(path, name)
        is_told = index.stats["unfinished_erasure"] is not None
        assert is_told == (len(caught) == 1)
        assert is_told == any("run it again" in finding for finding in index.verify())
        if is_told:
            outcomes["told"] += 1
            assert "an erasure of 15 ids from" in str(caught[0].message)
        else:
            ours, theirs = plain(index, whole if gone[0] in index else erased, chance)
            assert ours == theirs
            outcomes["not begun" if gone[0] in index else "done"] += 1
            if gone[0] not in index:
                # An erasure can be this fast on this machine, so aim the next kills within this time.
                lasts = min(lasts, lasted)
                assert not found_in(path, {"id": [doc_id.encode() for doc_id in gone]})
        # Repeating it finishes it and reports all documents as erased. So does any other erasure.
        again = index.erase(gone if chance.random() < 0.5 or not is_told else ["unknown"])
        if is_told:
            assert sorted(again.erased) == sorted(gone)
        assert not found_in(path, {"id": [doc_id.encode() for doc_id in gone]})
        ours, theirs = plain(index, erased, chance)
        assert ours == theirs
        assert index.stats["unfinished_erasure"] is None
        assert index.verify(full=True) == []
        index.close()
    assert outcomes["told"] > 5, outcomes


def test_it_is_told_wherever_it_stops(tmp_path):
    path, gone = tmp_path / "index", documents(1000, 3)
    with open_small(path, "minhash") as index:
        index.add_batch(list(gone), list(gone.values()))
    steps = ["_remove_all", "_delete_marker"]
    for step in steps:
        index = open_small(path, "minhash")
        with (
            mock.patch(f"likewise.index.erasing.{step}", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            index.erase(gone)
        assert index.stats["unfinished_erasure"] == 3
        index.close()
        with pytest.warns(RuntimeWarning, match="an erasure of 3 ids from .* was interrupted, .* run it again"):
            index = open_small(path, "minhash")
        with open_small(path, "minhash", read_only=True) as reader:
            assert reader.stats["unfinished_erasure"] == 3
            assert [finding.split(" from ")[0] for finding in reader.verify()] == ["an erasure of 3 ids"]
        assert index.erase([]).erased == tuple(gone)
        assert index.stats["unfinished_erasure"] is None
        assert index.verify() == []
        index.add_batch(list(gone), list(gone.values()))
        index.close()


def test_a_reader_that_holds_the_log_is_an_error_and_not_half_a_success(tmp_path):
    path, gone = tmp_path / "index", documents(1000, 3)
    recipe = RECIPES["minhash"].replace(keep="first")
    with open_small(path, "minhash", store="text") as index, open_small(path, "minhash", read_only=True) as reader:
        index.add_batch(["other", *gone], [words(1), *gone.values()])
        reads, may_end = threading.Event(), threading.Event()

        def write(_):
            reads.set()
            assert may_end.wait(60)

        thread = threading.Thread(target=reader._native.export, args=(write,))
        thread.start()
        assert reads.wait(60)
        index.add("later", words(2))
        with pytest.raises(StoreError, match="the erasure is not finished: another process or thread is reading"):
            index.erase(gone)
        assert index.stats["unfinished_erasure"] == 3
        assert held(path, recipe, gone, "text")
        # The index still works.
        assert index.check(words(1)).kept_id == "other"
        may_end.set()
        thread.join()
        assert index.erase(gone).erased == tuple(gone)
        assert held(path, recipe, gone, "text") == set()
        # The reader sees the erasure.
        assert list(reader.ids()) == ["other", "later"]
        assert reader.check(words(1)).kept_id == "other"
        with pytest.raises(StoreError, match="opened for reading only"):
            reader.erase(gone)


def test_absent_ids_and_erasing_twice(tmp_path):
    path, gone = tmp_path / "index", documents(1000, 3)
    with open_small(path, "minhash") as index:
        index.add_batch(["other", *gone], [words(1), *gone.values()])
        erasure = index.erase([*gone, "absent", *gone])
        assert (erasure.erased, erasure.absent) == (tuple(gone), ("absent",))
        erasure = index.erase(gone)
        assert (erasure.erased, erasure.absent) == ((), tuple(gone))
        # A removed document is still stored.
        index.remove("other")
        assert index.erase(["other"]).erased == ("other",)
        assert index.erase(["other"]).absent == ("other",)
        assert len(index) == 0
        # An id can be reused.
        assert index.add(*next(iter(gone.items()))).is_new
        assert index.erase(gone).erased == (next(iter(gone)),)


def test_a_document_that_another_thread_adds_under_an_erased_id_is_an_error(tmp_path):
    path, gone = tmp_path / "index", documents(1000, 2)
    with open_small(path, "minhash") as index:
        index.add_batch(list(gone), list(gone.values()))
        remove_all = erasing._remove_all

        def remove_and_add(*given):
            kept_ids = remove_all(*given)
            index.add(*next(iter(gone.items())))
            return kept_ids

        with (
            mock.patch.object(erasing, "_remove_all", remove_and_add),
            pytest.raises(StoreError, match="not finished: a document was added again under the id of an erased one"),
        ):
            index.erase(gone)
        assert index.stats["unfinished_erasure"] == 2
        assert index.erase(gone).erased == tuple(gone)
        assert len(index) == 0


HOSTILE = [
    "",
    " ",
    "\n",
    "\0",
    "a/../b",
    "x" * 65_535,
    "识别\u200d🜁",
    "lone \ud800 half",
    '{"ids": [',
    "\x1b[2J",
    "e\u0301",
]


def test_hostile_ids(tmp_path):
    path = tmp_path / "index"
    with open_small(path, "minhash") as index:
        index.add_batch(HOSTILE, [words(i) for i in range(len(HOSTILE))])
        with (
            mock.patch("likewise.index.erasing._remove_all", side_effect=KeyboardInterrupt),
            contextlib.suppress(KeyboardInterrupt),
        ):
            index.erase(HOSTILE)
        assert index.stats["unfinished_erasure"] == len(HOSTILE)
        erasure = index.erase([*HOSTILE, "x" * 100_000, 17])
        assert erasure.erased == tuple(doc_id.replace("\ud800", "\ufffd") for doc_id in HOSTILE)
        assert erasure.absent == ("x" * 100_000, "17")
        assert len(index) == 0
        assert index.verify(full=True) == []
        json.dumps(erasure.certificate(KEY)).encode()
    for ids in ("single", [None], [b"bytes"], 7):
        with open_small(path, "minhash") as index, pytest.raises(likewise.InvalidInput):
            index.erase(ids)


def test_other_files_of_the_directory_are_not_passed_over(tmp_path):
    path, gone = tmp_path / "index", documents(1000, 2)
    with open_small(path, "minhash") as index:
        index.add_batch(list(gone), list(gone.values()))
        (path / "copy.jsonl").write_text(json.dumps(gone))
        with pytest.raises(StoreError, match=r"copy\.jsonl is not a file of the index and may hold the documents"):
            index.erase(gone)
        assert len(index) == 2
        (path / "copy.jsonl").unlink()
        (path / "segments").mkdir(exist_ok=True)
        (path / "segments" / "copy").write_text("")
        with pytest.raises(StoreError, match="segments/copy is not a file of the index"):
            index.erase(gone)
        (path / "segments" / "copy").unlink()
        # Left by writers that were killed, or whose database was replaced.
        left = [path / "documents.sqlite-wal.replaced", path / "segments" / ".rows-0-2-00.lws.unfinished"]
        left += [path / "segments" / "rows-0-2-00.lws", path / ".erasing.json.unfinished"]
        for file in left:
            file.write_text(json.dumps(gone))
        assert index.erase(gone).erased == tuple(gone)
        assert not [file for file in left if file.exists()]


def test_a_damaged_marker_is_an_error(tmp_path):
    path = tmp_path / "index"
    with open_small(path, "minhash") as index:
        (path / "erasing.json").write_text("{")
        for call in (lambda: index.erase([]), index.verify, lambda: index.stats):
            with pytest.raises(StoreError, match=r"erasing\.json describes an interrupted erasure and is damaged"):
                call()


def test_the_certificate_has_digests_of_the_key_alone(tmp_path):
    path = tmp_path / "index"
    with open_small(path, "minhash") as index:
        index.add("a-secret-id", words(1))
        erasure = index.erase(["a-secret-id", "an-absent-id"])
    certificate = erasure.certificate(KEY)
    digest = {
        doc_id: hashlib.blake2b(doc_id.encode(), key=KEY, digest_size=32).hexdigest()
        for doc_id in ("a-secret-id", "an-absent-id")
    }
    expected = [(digest["a-secret-id"], "erased"), (digest["an-absent-id"], "absent")]
    assert [(row["digest"], row["status"]) for row in certificate["documents"]] == sorted(expected)
    assert (certificate["num_documents"], certificate["num_erased"], certificate["num_absent"]) == (2, 1, 1)
    assert certificate["index"] == {
        "path": str(path),
        "format": sqlite3.connect(path / "documents.sqlite").execute("PRAGMA user_version").fetchone()[0],
        "recipe_id": RECIPES["minhash"].replace(keep="first").for_index().resolve().recipe_id,
        "store": "shingles",
    }
    assert certificate["not_reached"]
    assert "secret" not in json.dumps(certificate)
    fields = {name: value for name, value in certificate.items() if name != "seal"}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    assert certificate["seal"] == hashlib.blake2b(text.encode(), key=KEY, digest_size=32).hexdigest()
    assert erasure.certificate(KEY[:-1])["documents"] != certificate["documents"]
    for key in (b"", b"x" * 15, b"x" * 65, "a text of 16 characters"):
        with pytest.raises(InvalidParameter, match="key"):
            erasure.certificate(key)


def test_ids_in_a_file_may_begin_with_a_byte_order_mark_but_must_be_utf8(tmp_path):
    with likewise.Index(tmp_path / "seen.lw", "online") as index:
        index.add_batch(["a", "b"], ["one fine day in spring", "something else altogether"])
    ids = tmp_path / "ids.txt"
    ids.write_bytes(b"\xef\xbb\xbfa\r\n\r\n")
    done = likewise_command("index", "erase", tmp_path / "seen.lw", "--ids", ids)
    assert done.status == 0
    assert "1 document erased" in done.err
    assert "not in the index" not in done.err
    ids.write_bytes(b"b\n\xff\n")
    done = likewise_command("index", "erase", tmp_path / "seen.lw", "--ids", ids)
    assert done.status == 2
    assert "ids.txt:2: the ids are not UTF-8" in done.err
    with likewise.Index(tmp_path / "seen.lw", read_only=True) as index:
        assert list(index.ids()) == ["b"]


def test_a_certificate_that_was_not_written_can_be_had_again(tmp_path):
    def fail(erasure):
        raise OSError("no space left")

    with likewise.Index(tmp_path / "seen.lw", "online") as index:
        index.add_batch(["a", "b"], ["one fine day in spring", "something else altogether"])
        with pytest.raises(OSError, match="no space left"):
            index.erase(["a", "x"], on_erased=fail)
        assert list(index.ids()) == ["b"]
        assert index.stats["unfinished_erasure"] == 2
        seen = []
        erasure = index.erase([], on_erased=lambda found: seen.append((found, index.stats["unfinished_erasure"])))
        assert seen == [(erasure, 2)]
        assert (erasure.erased, erasure.absent) == (("a",), ("x",))
        assert not index.stats.get("unfinished_erasure")
