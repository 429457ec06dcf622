"""Space is reclaimed: for a fixed number of documents, sizes are bounded, however many were added and removed."""

import contextlib
import random
import time

import pytest

import likewise
from likewise import _native
from tests.index.store.clocks import clocked

pytestmark = pytest.mark.rounds

RECIPE = likewise.Recipe.simhash(within=3)
FLUSH_ROWS = 100
NUM_LIVE, NUM_ADDED, NUM_CYCLES = 200, 100, 30


@pytest.fixture(autouse=True)
def clock():
    """Make every index build tables of few documents, and use this clock."""
    with clocked(_native.ManualClock(1000), flush_rows=FLUSH_ROWS) as clock:
        yield clock


def opened(path, **options):
    return likewise.Index(path, RECIPE, **options)


def text_of(number):
    chance = random.Random(number)
    return " ".join(f"w{chance.randrange(10**6)}" for _ in range(20))


def rested(index):
    """Wait until no background work is left."""
    limit = time.monotonic() + 120
    while index.stats["is_building"]:
        assert time.monotonic() < limit
        time.sleep(0.002)
    assert index.stats["build_error"] is None


def sizes(path, index):
    """Return the sizes of everything that could grow, as numbers that do not depend on when threads ran."""
    stats = index.stats
    return {
        "database": stats["database_bytes"],
        "segments": sum(file.stat().st_size for file in (path / "segments").glob("*")),
        "num_segments": len(stats["segment_rows"]),
        "rows_of_segments": sum(stats["segment_rows"]),
        "in_memory": stats["num_in_memory"],
        "chunks": stats["num_chunks"],
    }


@pytest.mark.parametrize("pattern", ["oldest", "random", "mixed", "ttl"])
@pytest.mark.parametrize("store", ["sketch", "text"])
def test_sizes_stay_under_fixed_bounds_in_thirty_cycles(tmp_path, clock, pattern, store):
    path, chance, live, number = tmp_path / "index", random.Random(3), [], 0
    seen = []
    index = opened(path, durability="interval:1000s", store=store, ttl=NUM_LIVE if pattern == "ttl" else None)
    for cycle in range(NUM_CYCLES):
        for _ in range(NUM_ADDED // 10):
            new = [f"document-{number + i}" for i in range(10)]
            index.add_batch(new, [text_of(number + i) for i in range(10)])
            live += new
            number += 10
            clock.pass_time(10)
            while pattern != "ttl" and len(live) > NUM_LIVE:
                # In the mixed pattern, the first half is never removed.
                first = NUM_LIVE // 2 if pattern == "mixed" else 0
                index.remove(live.pop(0 if pattern == "oldest" else chance.randrange(first, len(live))))
        rested(index)
        seen.append(sizes(path, index))
        if cycle % 10 == 9:
            index.close()
            index = opened(path, durability="interval:1000s")
    if pattern == "ttl":
        live = live[-len(index) :]
    assert len(live) == pytest.approx(NUM_LIVE, abs=10)
    assert all(index.get(doc_id).doc_id == doc_id for doc_id in live)
    assert not index.verify(full=True)
    index.compact()
    assert all(index.get(doc_id).doc_id == doc_id for doc_id in live)
    assert not index.verify(full=True)
    least = sizes(path, index)
    index.close()
    late = {name: max(sample[name] for sample in seen[NUM_CYCLES // 2 :]) for name in least}
    # At most twice the number of live rows are gone, and as many again were added since the last sweep.
    assert late["rows_of_segments"] <= 4 * NUM_LIVE
    assert late["in_memory"] <= 3 * FLUSH_ROWS
    assert late["num_segments"] <= 12
    assert late["chunks"] <= 120
    assert late["database"] <= 600_000
    assert late["segments"] <= 12 * 20_000
    assert least["rows_of_segments"] == NUM_LIVE or pattern == "ttl"
    assert least["num_segments"] == 1
    assert least["chunks"] <= 10
    assert least["database"] <= 300_000


def test_ids_and_texts_that_were_removed_are_in_no_file(tmp_path):
    path = tmp_path / "index"
    texts = {f"document-{number}": f"{text_of(number)} mark{number}" for number in range(400)}
    with opened(path, store="text") as index:
        for doc_id, text in texts.items():
            index.add(doc_id, text)
        secrets = ["secret-id-one", "secret-id-two", "secret-id-three"]
        for number, secret in enumerate(secrets):
            index.add(secret, f"{secret.replace('id', 'text')} {text_of(900 + number)}")
        for secret in secrets:
            index.remove(secret)
        for number in range(100, 200):
            index.remove(f"document-{number}")
        index.compact()
        assert index.get("secret-id-one") is None
    for file in path.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert b"secret-" not in content, file
            # Texts are packed, so the ids of other documents show that the search would find an id.
            assert file.name != "documents.sqlite" or b"document-399" in content
    with opened(path) as index:
        assert len(index) == 300
        assert index.get("document-150") is None
        assert index.add("document-150", texts["document-150"]).added


def test_a_promoted_copy_that_was_removed_stays_gone_when_tables_are_built(tmp_path):
    """It was next to the tables until they were built, and must not reappear."""
    with opened(tmp_path / "index") as index:
        index.add_batch([f"document-{number}" for number in range(50)], [text_of(number) for number in range(50)])
        index.add("one", text_of(900))
        index.add("copy", text_of(900))
        index.add("empty", "")
        index.add("empty copy", "")
        assert index.remove("one").promoted == ("copy",)
        assert index.remove("empty").promoted == ("empty copy",)
        index.remove("copy")
        index.remove("empty copy")
        for _ in range(2):
            index.compact()
            assert (index.get("copy"), index.get("empty copy")) == (None, None)
            assert index.check(text_of(900)).is_new
            assert index.check("").is_new
        assert index.add("later", text_of(900)).is_new
        assert index.add("later copy", text_of(900)).kept_id == "later"


def test_a_reader_far_behind_follows_though_events_were_dropped(tmp_path):
    path = tmp_path / "index"
    with opened(path) as index:
        index.add_batch([f"document-{number}" for number in range(300)], [text_of(number) for number in range(300)])
        with opened(path, read_only=True) as reader:
            assert len(reader) == 300
            for number in range(0, 250):
                index.remove(f"document-{number}")
            index.compact()
            index.add("late", text_of(1000))
            assert len(reader) == 51
            assert reader.get("document-3") is None
            assert reader.check(text_of(260)).kept_id == "document-260"
            assert reader.check(text_of(3)).is_new
            assert reader.check(text_of(1000)).kept_id == "late"


def test_the_document_that_a_duplicate_matched_is_named_while_the_duplicate_lives(tmp_path, clock):
    """Records of expired documents are dropped, except those that other documents name."""
    path = tmp_path / "index"
    with opened(path, ttl=100) as index:
        index.add_batch(["the-original", *(f"a{i}" for i in range(300))], [text_of(0), *map(text_of, range(1, 301))])
        clock.pass_time(90)
        index.add_batch(["copy", *(f"b{i}" for i in range(300))], [text_of(0), *map(text_of, range(1001, 1301))])
        clock.pass_time(50)
        index.add("c", text_of(5000))
        rested(index)
        for _ in range(2):
            assert len(index) == 302
            assert (index.get("the-original"), index.get("copy").kept_id) == (None, "the-original")
            assert index.group("copy").leader_id == "the-original"
            index.compact()
    with opened(path) as index:
        assert index.get("copy").kept_id == "the-original"
        clock.pass_time(200)
        index.add("d", text_of(6000))
        index.compact()
        assert len(index) == 1
        assert not index.verify(full=True)
    assert b"the-original" not in (path / "documents.sqlite").read_bytes()


@pytest.mark.parametrize("has_reader", [False, True])
def test_compacting_shortens_the_files_and_erases_while_the_index_is_open(tmp_path, has_reader):
    path = tmp_path / "index"
    with opened(path, store="text") as index:
        index.add_batch([f"document-{number}" for number in range(600)], [text_of(number) for number in range(600)])
        with opened(path, read_only=True) if has_reader else contextlib.nullcontext():
            for number in range(590):
                index.remove(f"document-{number}")
            rested(index)
            index.compact()
            assert (path / "documents.sqlite-wal").stat().st_size == 0
            assert (path / "documents.sqlite").stat().st_size == index.stats["database_bytes"] < 100_000
            for file in path.rglob("*"):
                if file.is_file():
                    assert b"document-123" not in file.read_bytes()
            assert index.get("document-595").doc_id == "document-595"


def test_few_documents_of_the_default_method_take_little(tmp_path):
    """Sweeps depend on the number of present documents, not on the limit of rows in memory."""
    with (
        clocked(_native.ManualClock(1000), flush_rows=1000) as clock,
        likewise.Index(tmp_path / "index", likewise.Recipe.minhash(), ttl=60) as index,
    ):
        most = 0
        for number in range(0, 8000, 100):
            clock.pass_time(60)
            ids = [f"document-{number + i}" for i in range(100)]
            index.add_batch(ids, [text_of(number + i) for i in range(100)])
            rested(index)
            most = max(most, index.stats["num_in_memory"])
        assert len(index) <= 200
        assert most < 1200
        assert index.stats["num_in_memory"] + sum(index.stats["segment_rows"]) < 1500
