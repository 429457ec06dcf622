"""Haystack documents; skipped without it."""

import pytest

import likewise
from likewise.errors import InvalidParameter
from tests.integrations import chunks

pytest.importorskip("haystack", reason="needs likewise[haystack]")

from haystack import Document, Pipeline

from likewise.integrations.haystack import LikewiseDeduplicator


def deduplicated(texts, ids, **rules):
    documents = [Document(content=text, id=name, meta={"n": name}) for text, name in zip(texts, ids, strict=True)]
    found = LikewiseDeduplicator(**rules).run(documents=documents)
    assert all(document.meta == {"n": document.id} for document in documents)
    duplicates = [document for document in found["duplicates"] if document.meta["likewise_kept_id"]]
    if rules.get("action") != "tag":
        assert len(found["documents"]) + len(duplicates) == len(texts)
    return [(document.id, document.meta) for document in found["documents"]]


def test_a_batch():
    chunks.check_batch(deduplicated)


def test_an_index(tmp_path):
    chunks.check_index(deduplicated, tmp_path)


def test_arguments():
    chunks.check_arguments(LikewiseDeduplicator)


def test_a_pipeline_is_stored_and_loaded(tmp_path):
    recipe = likewise.Recipe.minhash(0.5, shingle=2)
    pipeline = Pipeline()
    pipeline.add_component("dedup", LikewiseDeduplicator(recipe=recipe, index=tmp_path / "seen.lw"))
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["likewise.integrations.haystack"])
    documents = [Document(content=text) for text in ("one fine day in may", "One fine day in May!")] + [Document()]
    found = loaded.run({"dedup": {"documents": documents}})["dedup"]
    assert [document.content for document in found["documents"]] == ["one fine day in may", None]
    assert found["duplicates"][0].meta["likewise_kept_id"] == documents[0].id
    with likewise.Index(tmp_path / "seen.lw") as index:
        assert (index.recipe.threshold, index.recipe.shingle) == (0.5, 2)
    with pytest.raises(InvalidParameter, match="API key"):
        LikewiseDeduplicator(index="http://127.0.0.1:1", key="k").to_dict()
