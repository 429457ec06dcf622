"""LangChain documents; skipped without it."""

import asyncio

import pytest

from tests.integrations import chunks

pytest.importorskip("langchain_core", reason="needs likewise[langchain]")

from langchain_core.documents import Document

from likewise.integrations.langchain import LikewiseCompressor, LikewiseTransformer


def transformed(texts, ids, **rules):
    documents = [Document(text, id=name, metadata={"n": name}) for text, name in zip(texts, ids, strict=True)]
    found = LikewiseTransformer(**rules).transform_documents(documents)
    assert all(document.metadata == {"n": document.id} for document in documents)
    assert all(document.metadata["n"] == document.id for document in found)
    return [(document.id, document.metadata) for document in found]


def test_a_batch():
    chunks.check_batch(transformed)


def test_an_index(tmp_path):
    chunks.check_index(transformed, tmp_path)


def test_arguments():
    chunks.check_arguments(LikewiseTransformer)
    chunks.check_arguments(LikewiseCompressor)


def test_retrieved_documents():
    ranked = [Document(text) for text in ("b b b c", "one fine day in may", "One fine day in May!")]
    compressor = LikewiseCompressor(recipe="online")
    assert compressor.compress_documents(ranked, "a question") == ranked[:2]
    assert asyncio.run(compressor.acompress_documents(ranked, "a question")) == ranked[:2]
    assert asyncio.run(LikewiseTransformer(recipe="online").atransform_documents(ranked)) == ranked[:2]
    tagged = LikewiseCompressor(recipe="online", action="tag").compress_documents(ranked, "a question")
    assert tagged[2].metadata["likewise_kept_id"] == "1"


def test_documents_without_ids_get_their_own(tmp_path):
    documents = [Document("one fine day in may"), Document("one fine day in may"), Document("another")]
    transformer = LikewiseTransformer(index=tmp_path / "seen.lw")
    assert transformer.transform_documents(documents) == [documents[0], documents[2]]
    assert transformer.transform_documents(documents) == []
