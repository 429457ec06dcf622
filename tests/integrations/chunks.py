"""Requirements of every integration of chunks, in terms of `likewise.dedup` and `likewise.Index`."""

import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter
from likewise.integrations.chunks import TAGS
from tests.integrations.texts import half_copies

RECIPE = likewise.Recipe.minhash(0.5)
TEXTS = half_copies(200)
IDS = [f"chunk-{number}" for number in range(len(TEXTS))]


def check_batch(run):
    """Check that `run(texts, ids, **rules)` returns (id, metadata) of the kept chunks."""
    expected = likewise.dedup(TEXTS, RECIPE, ids=IDS)
    kept = [name for name, is_kept in zip(IDS, expected.kept.tolist(), strict=True) if is_kept]
    assert 0 < len(kept) < len(IDS)
    found = run(TEXTS, IDS, recipe=RECIPE)
    assert [name for name, _ in found] == kept
    assert not any(name.startswith("likewise") for _, metadata in found for name in metadata)
    tagged = dict(run(TEXTS, IDS, recipe=RECIPE, action="tag"))
    assert list(tagged) == IDS
    assert [name for name in IDS if tagged[name]["likewise_is_new"]] == kept
    for row in expected.removed.to_pylist():
        tags = tagged[row["doc_id"]]
        assert (tags["likewise_kept_id"], tags["likewise_similarity"]) == (row["kept_id"], row["similarity"])
        assert tags["likewise_measure"] == "jaccard"
        assert set(tags) <= {*TAGS, "n"}
    assert run([], []) == []
    assert len(run(["", ""], ["a", "b"], recipe=RECIPE)) == 1


def check_index(run, folder):
    """Check that chunks are compared with those of earlier batches."""
    place = folder / "seen.lw"
    half = len(TEXTS) // 2
    with likewise.Index.in_memory(RECIPE) as index:
        verdicts = index.add_batch(IDS, TEXTS)
    kept = [name for name, verdict in zip(IDS, verdicts, strict=True) if verdict.is_new]
    first = run(TEXTS[:half], IDS[:half], recipe=RECIPE, index=place)
    second = run(TEXTS[half:], IDS[half:], recipe=RECIPE, index=str(place))
    assert [name for name, _ in [*first, *second]] == kept
    # Repeated chunks are kept, since they were new before: the work after the index may have been interrupted.
    assert [name for name, _ in run(TEXTS[:half], IDS[:half], index=place)] == [name for name, _ in first]
    tagged = dict(run(TEXTS[half:], [f"new {name}" for name in IDS[half:]], index=place, add=False, action="tag"))
    with likewise.Index(place, read_only=True) as index:
        assert len(index) == len(TEXTS)
        for text, tags in zip(TEXTS[half:], tagged.values(), strict=True):
            assert tags["likewise_kept_id"] == index.check(text).kept_id
    with pytest.raises(InvalidInput, match="chunk-0"):
        run(["another text of this id"], ["chunk-0"], index=place)


def check_arguments(make):
    """Check the arguments of `make(**rules)`, which makes the component."""
    with pytest.raises(InvalidParameter, match="drop"):
        make(action="remove")
    with pytest.raises(InvalidParameter, match="only with an index"):
        make(add=False)
    with pytest.raises(TypeError, match="thresold"):
        make(thresold=0.5)
