"""A local run refuses more documents than its rows can number."""

import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.batch.read import ingest
from likewise.errors import InvalidParameter
from likewise.recipe.recipe import Recipe

SENTENCE = "4 documents given; the limit of a local run is 3; use --engine spark, or split the inputs"


def test_too_many_documents_are_refused_before_ids_are_compared(tmp_path, monkeypatch):
    assert ingest.MOST_DOCUMENTS == 2**32 - 2
    monkeypatch.setattr(ingest, "MOST_DOCUMENTS", 3)
    # All ids are equal, which is refused later.
    lines = ['{"id": "a", "text": "one two three"}\n'] * 4
    (tmp_path / "in.jsonl").write_text("".join(lines))
    with pytest.raises(InvalidParameter, match=SENTENCE):
        dedup_files([tmp_path / "in.jsonl"], tmp_path / "out", Recipe.minhash(0.8))
    documents = [f"document {number}" for number in range(4)]
    with pytest.raises(InvalidParameter, match=SENTENCE):
        likewise.dedup(documents, Recipe.minhash(0.8))
    assert likewise.dedup(documents[:3], Recipe.minhash(0.8)) is not None
