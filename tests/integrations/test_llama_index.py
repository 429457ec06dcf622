"""LlamaIndex nodes; skipped without it."""

import asyncio

import pytest

from tests.integrations import chunks

pytest.importorskip("llama_index.core", reason="needs likewise[llama-index]")

from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, MetadataMode, TextNode

from likewise.integrations.llama_index import LikewiseTransform


def transformed(texts, ids, **rules):
    nodes = [TextNode(text=text, id_=name, metadata={"n": name}) for text, name in zip(texts, ids, strict=True)]
    found = LikewiseTransform(**rules)(nodes)
    assert all(node.metadata == {"n": node.node_id} for node in nodes)
    return [(node.node_id, node.metadata) for node in found]


def test_a_batch():
    chunks.check_batch(transformed)


def test_an_index(tmp_path):
    chunks.check_index(transformed, tmp_path)


def test_arguments():
    chunks.check_arguments(LikewiseTransform)


def test_marks_are_not_embedded():
    nodes = [TextNode(text="one fine day in may"), TextNode(text="One fine day in May!", metadata={"page": 2})]
    transform = LikewiseTransform(recipe="online", action="tag")
    tagged = transform(nodes)[1]
    assert tagged.metadata["likewise_kept_id"] == nodes[0].node_id
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert tagged.get_content(metadata_mode=mode) == nodes[1].get_content(metadata_mode=mode)
    assert asyncio.run(transform.acall(nodes)) == transform(nodes)


def test_a_pipeline():
    sentences = [f"Sentence {number} tells of {number * 7} other things and a river." for number in range(40)]
    text = " ".join(sentences)
    splitter = SentenceSplitter(chunk_size=60, chunk_overlap=0)
    documents = [Document(text=text), Document(text=text)]
    pipeline = IngestionPipeline(transformations=[splitter, LikewiseTransform(recipe="strict")])
    assert len(pipeline.run(documents=documents)) == len(splitter([documents[0]]))
