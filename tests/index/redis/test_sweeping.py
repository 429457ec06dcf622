"""Documents that expired long ago are deleted without a change of answers; numbers are those of a directory."""

import random
import secrets

import pytest

import likewise
from likewise.errors import StoreError
from likewise.index.redis.client import Options
from likewise.redis import RedisIndex
from tests.index.redis.test_conformance import BUSY, EXPECTED
from tests.index.store.conformance import evidence
from tests.recipes import RECIPES

pytestmark = pytest.mark.rounds


class Busy(RedisIndex):
    """An index that folds and trims all the time."""

    _options = BUSY


class Idle(RedisIndex):
    """An index that never folds and trims."""

    _options = Options(tidy_every=10_000)


def planted(num, seed):
    """Return documents, many of which are near-duplicates of others."""
    rng = random.Random(seed)
    words = [f"word{i}" for i in range(60)]
    found = []
    for _ in range(num):
        document = list(words)
        for _ in range(rng.choice([0, 1, 2, 3, 8, 20])):
            document[rng.randrange(60)] = f"other{rng.randrange(2000)}"
        found.append(" ".join(document))
    return found


class Clock:
    """The arrival times of operations, and the time of questions."""

    def __init__(self, *indexes):
        self.second = 2**31
        for index in indexes:
            index._client._log.ask = self.wrapped(index._client._log.ask)

    def wrapped(self, ask):
        def timed(verb, *arguments, writes=False):
            if verb == "append":
                arguments = *arguments[:-3], self.second, *arguments[-2:]
            reply = ask(verb, *arguments, writes=writes)
            log = reply.log._replace(second=max(reply.log.second, self.second))
            reply = reply._replace(log=log)
            return reply

        return timed


def evidence_of(verdicts):
    return [(evidence(verdict), verdict.seq) for verdict in verdicts]


@pytest.mark.parametrize("name", ["simhash", "minhash-default", "simhash-cosine"])
def test_numbers_are_those_of_an_index_in_a_directory(running, name):
    """Repeated ids in a batch and in later ones take no numbers."""
    recipe, texts, rng = RECIPES[name].replace(keep="first"), planted(60, 2), random.Random(3)
    prefix = secrets.token_hex(4)
    with (
        Busy(running.url, recipe, prefix=prefix, expected=EXPECTED, partitions=3) as index,
        likewise.Index.in_memory(recipe, threads=1) as expected,
    ):
        for _ in range(12):
            rows = rng.choices(range(60), k=10)
            batch = [f"doc-{row}" for row in rows], [texts[row] for row in rows]
            assert index.add_batch(*batch).seq.tolist() == expected.add_batch(*batch).seq.tolist()
            gone = f"doc-{rng.choice(rows)}"
            if gone in expected:
                assert index.remove(gone) == expected.remove(gone)
        assert [*index.ids()] == [*expected.ids()]
        assert [index.get(doc_id) for doc_id in index.ids()] == [
            document._replace(arrival_s=index.get(document.doc_id).arrival_s)
            for document in map(expected.get, expected.ids())
        ]


@pytest.mark.parametrize("name", ["simhash", "minhash-default", "simhash-cosine"])
def test_sweeping_changes_no_answer_and_frees_memory(running, name):
    recipe, texts, rng = RECIPES[name].replace(keep="first"), planted(300, 4), random.Random(5)
    prefixes = [secrets.token_hex(4) for _ in range(2)]
    common = {"expected": EXPECTED, "partitions": 3, "ttl": 100}
    with (
        Busy(running.url, recipe, prefix=prefixes[0], **common) as swept,
        Idle(running.url, recipe, prefix=prefixes[1], **common) as kept,
    ):
        clock = Clock(swept, kept)
        for start in range(0, 300, 10):
            clock.second += rng.choice([0, 10, 30])
            rows = [*range(start, start + 10), *rng.choices(range(start + 10), k=3)]
            batch = [f"doc-{row}" for row in rows], [texts[row] for row in rows]
            assert evidence_of(swept.add_batch(*batch)) == evidence_of(kept.add_batch(*batch))
            swept._client.sweep()
            for _ in range(3):
                one = f"doc-{rng.randrange(start + 10)}"
                assert swept.get(one) == kept.get(one)
                if one in kept:
                    assert swept.group(one) == kept.group(one)
                    if rng.random() < 0.3:
                        assert swept.remove(one) == kept.remove(one)
            text = rng.choice(texts)
            assert evidence_of(swept.check_batch([text])) == evidence_of(kept.check_batch([text]))
        clock.second += 1000
        assert evidence_of(swept.add_batch(["last"], ["nothing like it at all"])) is not None
        num = len(swept)
        assert swept._client.sweep() == num - 1
        assert swept._client.sweep() == 0
        assert [*swept.ids()] == ["last"]
        assert len(swept) == 1
        assert swept.losses() == []
        log = swept._client.settle()
        swept._client._fold(log, log.mark)
        found = [key for part in range(3) for key in running.client.keys(f"{{{prefixes[0]}.{part}}}.[rsgi]*")]
        assert sum(running.client.type(key) == b"hash" for key in found if b".r" in key) == 1
        assert sum(len(running.client.get(key)) for key in found if b".i" in key) == 8
        assert not any(b".g" in key for key in found)


def test_documents_are_swept_from_time_to_time(running):
    recipe, prefix = likewise.Recipe.simhash(within=3, weights="none"), secrets.token_hex(4)
    with Busy(running.url, recipe, prefix=prefix, ttl=10) as index:
        clock = Clock(index)
        for i in range(40):
            clock.second += 5
            index.add(f"doc-{i}", f"one fine day number {i} in the spring of the year {i * i}")
        assert len(index) < 15
        assert index.get("doc-38") is not None


def test_sweeping_an_index_that_was_deleted(running):
    prefix = secrets.token_hex(8)
    with RedisIndex(running.url, likewise.Recipe.simhash(within=3), prefix=prefix, ttl=5) as index:
        index.add("a", "some text")
        for key in running.client.scan_iter(f"{{{prefix}*"):
            running.client.delete(key)
        with pytest.raises(StoreError):
            index._client.sweep()
