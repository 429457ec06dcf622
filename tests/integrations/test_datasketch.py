"""The classes with the names of datasketch: the same program on both, and results that are exact."""

import random

import pytest

from likewise import InvalidParameter
from likewise.integrations import datasketch as ours

THRESHOLD = 0.6


def sets(num, seed=1):
    """Return sets of words in families of similar ones, and small ones."""
    draw = random.Random(seed)
    found = []
    for family in range(num // 5):
        base = [f"w{family}x{draw.randrange(60)}" for _ in range(30)]
        found += [{*base[: 30 - 3 * part], *(f"own{len(found)}y{i}" for i in range(part))} for part in range(5)]
    return [*found, {"one"}, {"one"}, {"one", "two"}, set()]


def filled(module, documents, **options):
    lsh = module.MinHashLSH(threshold=THRESHOLD, num_perm=128, **options)
    minhashes = []
    for number, words in enumerate(documents):
        minhash = module.MinHash(num_perm=128)
        for word in sorted(words):
            minhash.update(word.encode())
        minhashes.append(minhash)
        lsh.insert(("key", number), minhash)
    return lsh, minhashes


def test_a_query_returns_all_sets_that_reach_the_threshold():
    documents = sets(200)
    lsh, minhashes = filled(ours, documents)
    for number, minhash in enumerate(minhashes):
        expected = {
            ("key", other)
            for other, words in enumerate(documents)
            if (len(words & documents[number]) / len(words | documents[number]) if words | documents[number] else 1)
            >= THRESHOLD
        }
        found = lsh.query(minhash)
        assert set(found) == expected
        assert len(found) == len(expected)


def test_many_copies_are_all_found():
    lsh, minhashes = filled(ours, [{"a", "b", "c"}] * 100)
    assert len(lsh.query(minhashes[0])) == 100


def test_keys_are_removed_and_replaced():
    lsh, (a, b) = filled(ours, [{"a", "b"}, {"a", "b", "c"}])
    assert ("key", 0) in lsh
    with pytest.raises(ValueError, match="already exists"):
        lsh.insert(("key", 0), b)
    lsh.insert(("key", 0), b, check_duplication=False)
    lsh.remove(("key", 0))
    assert ("key", 0) not in lsh
    assert lsh.query(a) == [("key", 1)]
    with pytest.raises(ValueError, match="does not exist"):
        lsh.remove("nobody")
    lsh.remove(("key", 1))
    assert lsh.is_empty()
    assert lsh.query(a) == []
    with lsh.insertion_session() as session:
        session.insert("again", a)
    assert lsh.query(b) == ["again"]


def test_what_has_no_counterpart_is_an_error():
    with pytest.raises(InvalidParameter, match="RedisIndex"):
        ours.MinHashLSH(storage_config={"type": "redis"})
    with pytest.raises(InvalidParameter, match="import MinHash from"):
        ours.MinHashLSH().insert("a", object())
    with pytest.raises(ValueError, match="length 128, got 64"):
        ours.MinHashLSH().query(ours.MinHash(64))
    assert ours.MinHashLSH(params=(32, 4)).is_empty()


def test_sets_are_sets():
    a, b = ours.MinHash(), ours.MinHash()
    a.update_batch([b"\xff\x00", b"x"])
    b.update(b"\xff\x00")
    assert a.jaccard(b) == 0.5
    c = b.copy()
    c.merge(a)
    assert c == a != b
    assert ours.MinHash().is_empty()
    # As in datasketch 2.0.0: an empty set equals an empty set, and nothing else.
    assert ours.MinHash().jaccard(ours.MinHash()) == 1
    assert ours.MinHash().jaccard(a) == 0
    lsh = ours.MinHashLSH(threshold=0.5)
    for key, minhash in {"empty": ours.MinHash(), "a": a}.items():
        lsh.insert(key, minhash)
    assert lsh.query(ours.MinHash()) == ["empty"]
    assert lsh.query(a) == ["a"]


def test_the_program_runs_on_both():
    theirs = pytest.importorskip("datasketch", reason="datasketch is not installed")
    documents = sets(200)
    (one, minhashes), (two, others) = filled(ours, documents), filled(theirs, documents)
    for minhash, other, words in zip(minhashes, others, documents, strict=True):
        exact = {
            key
            for key in two.query(other)
            if len(words & documents[key[1]]) >= THRESHOLD * len(words | documents[key[1]])
        }
        assert exact <= set(one.query(minhash))
