"""`verify` while other clients write: it reports what is wrong, and nothing else."""

import secrets

import pytest

import likewise
from likewise.index.redis import upkeep
from likewise.index.redis.index import RedisIndex
from likewise.index.redis.log import Partitions

RECIPE = likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5)


def text(number):
    return " ".join(f"page{number}word{i}" for i in range(30))


@pytest.fixture
def indexes(running):
    """Return two clients of one index."""
    prefix = secrets.token_hex(4)
    both = [RedisIndex(running.url, RECIPE, prefix=prefix, partitions=3, threads=1) for _ in range(2)]
    yield both
    for index in both:
        index.close()


def add(index, *numbers):
    return index.check_and_add_batch([str(number) for number in numbers], [text(number) for number in numbers])


def test_operations_that_are_folded_meanwhile_are_no_finding(indexes, monkeypatch):
    index, other = indexes
    add(index, 0)
    call, is_done = Partitions.call, []

    def overtaken(self, requests):
        if not is_done and requests and requests[0].arguments[1] == "verify" and self is not other._client._partitions:
            is_done.append(True)
            for i in range(1, 12):
                add(other, i)
            # The partitions are final beyond the end of the log that was read.
            for _ in range(2):
                other.compact()
        return call(self, requests)

    monkeypatch.setattr(Partitions, "call", overtaken)
    assert index.verify() == []
    assert is_done


def test_writes_that_are_restored_meanwhile_are_no_finding(indexes, running, monkeypatch):
    index, other = indexes
    tag = f"{{{index._prefix.decode()}.0}}.*"
    add(index, 0)
    kept = {key: running.client.dump(key) for key in running.client.keys(tag)}
    for i in range(1, 6):
        add(index, i)
    call, is_done = Partitions.call, []

    def overtaken(self, requests):
        replies = call(self, requests)
        if not is_done and requests and requests[0].arguments[1] == "verify" and self is not other._client._partitions:
            is_done.append(True)
            other.compact()
        return replies

    running.client.delete(*running.client.keys(tag))
    for key, value in kept.items():
        running.client.restore(key, 0, value)
    monkeypatch.setattr(Partitions, "call", overtaken)
    assert index.verify() == []
    assert index.verify(full=True) == []


def test_counts_are_of_one_moment(indexes, monkeypatch):
    """An operation is pending when the documents are read, and gets its verdict after the counts were."""
    index, other = indexes
    add(index, 0, 1)
    ask, counts, left = other._client._log.ask, upkeep._counts, []

    class Stopped(Exception):
        pass

    def stopping(verb, *arguments, writes=False):
        if verb == "store" and left:
            raise Stopped
        return ask(verb, *arguments, writes=writes)

    def pending(fields):
        left.append(True)
        if len(left) == 1:
            found = counts(fields)
            other._client._log.ask = ask
            # Only the verdict, so that W stays.
            log = other._client._again()
            other._client._decide_next(log, log.end - 1)
            return found
        return counts(fields)

    read = upkeep.Verification._read

    def appended(self):
        # The documents are read with the log that is read third.
        left_reads.append(True)
        if len(left_reads) == 3:
            other._client._log.ask = stopping
            left.append(True)
            with pytest.raises(Stopped):
                add(other, 2)
            left.clear()
        return read(self)

    left_reads = []
    monkeypatch.setattr(upkeep, "_counts", pending)
    monkeypatch.setattr(upkeep.Verification, "_read", appended)
    assert index.verify(full=True) == []
    assert len(left_reads) == 4
    assert left
