"""Indexes with a past, and what must be equal after a move."""

import random

import likewise
from tests.recipes import RECIPES

ODD_IDS = ["", "a\tb\nc", "识别", "x" * 300, "nul\0x", "é", "e\u0301", '"quoted"', " space "]
_WEIGHTED = RECIPES["simhash"]
# SimHash by distance with a table of weights, MinHash, equal feature sets, weighted MinHash.
SCENES = {
    "distance": _WEIGHTED.replace(keep="first"),
    "minhash": RECIPES["minhash-default"].replace(keep="first"),
    "exact": likewise.Recipe.minhash(threshold=1.0, keep="first"),
    "cosine": RECIPES["simhash-cosine"].replace(keep="first"),
}
# Large radii have plans only for few documents.
EXPECTED = 2000
_WORDS = [f"word{i}" for i in range(60)]


def texts(num, seed):
    """Return documents, many of which are near-duplicates or copies of others, with some short and empty ones."""
    rng = random.Random(seed)
    found = []
    for _ in range(num):
        document = list(_WORDS)
        for _ in range(rng.choice([0, 0, 1, 2, 3, 8, 20])):
            document[rng.randrange(60)] = f"other{rng.randrange(2000)}"
        found.append(rng.choice([" ".join(document)] * 12 + ["", "cat", f"short {rng.randrange(5)}"]))
    return found


def fill(index, num=400, seed=1):
    """Add documents in batches, and remove kept ones, so that others are promoted and reassigned."""
    rng = random.Random(seed)
    ids = [*ODD_IDS, *(f"doc-{i}" for i in range(num - len(ODD_IDS)))]
    rng.shuffle(ids)
    documents = texts(num, seed)
    for start in range(0, num, 90):
        index.add_batch(ids[start : start + 90], documents[start : start + 90])
        present = list(index.ids())
        leaders = [doc_id for doc_id in present if index.get(doc_id).is_new and index.group(doc_id).member_ids]
        num_changed = 0
        for doc_id in [*leaders[:3], *rng.sample(present, 8)]:
            if doc_id in index:
                removal = index.remove(doc_id)
                num_changed += len(removal.promoted) + len(removal.moved)
        assert num_changed > 0
    # Repetitions of one template fill buckets.
    index.add_batch([f"template-{i}" for i in range(90)], [" ".join([*_WORDS[:50], f"page{i}"]) for i in range(90)])
    for i in range(0, 60, 7):
        index.remove(f"template-{i}")


def assert_same(first, second, *, since=None):
    """Check that two indexes give the same answers about their documents; those added since may differ in arrival."""
    ids = list(first.ids())
    assert ids == list(second.ids())
    assert len(first) == len(second)
    numbers = []
    for doc_id in ids:
        one, other = first.get(doc_id), second.get(doc_id)
        later = {"arrival_s": 0} if since is not None and doc_id not in since else {}
        assert one._replace(seq=0, **later) == other._replace(seq=0, **later)
        numbers.append((one.seq, other.seq))
        assert first.group(doc_id) == second.group(doc_id)
    # The same relative order, in the copy without gaps.
    assert numbers == sorted(numbers)


def said(verdicts):
    return [(v.is_new, v.kept_id, v.similarity, v.distance, v.added) for v in verdicts]


def assert_goes_on(first, second, num=500, seed=2):
    """Check that two indexes decide alike from now on."""
    assert_same(first, second)
    moved = set(first.ids())
    documents = texts(num, seed)
    found, expected = (one.neighbors_batch(documents[:30], 5, among="candidates") for one in (first, second))
    assert found == expected
    assert said(first.check_batch(documents)) == said(second.check_batch(documents))
    ids = [f"new-{i}" for i in range(num)]
    assert said(first.add_batch(ids, documents)) == said(second.add_batch(ids, documents))
    for doc_id in random.Random(seed).sample(list(first.ids()), 20):
        assert (doc_id in first) == (doc_id in second)
        if doc_id in first:
            assert first.remove(doc_id) == second.remove(doc_id)
    assert_same(first, second, since=moved)
    assert second.verify(full=True) == []
