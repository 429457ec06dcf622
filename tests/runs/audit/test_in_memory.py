"""Audits of results in memory equal those of the same runs over files."""

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise import InvalidParameter, Recipe, RecipeMismatch
from likewise.stages.weights import count_weights
from tests.runs.audit.corpora import SABOTAGED, failed, graded, run_of


@pytest.fixture(scope="module")
def texts():
    return graded(240, 3)


SAME = ("num_documents", "num_removed", "pair_recall", "removal_recall", "removal_precision", "estimated", "sample")


def test_a_result_is_audited_as_a_run(tmp_path, texts):
    of_files = likewise.audit(run_of(tmp_path, texts), num_sampled=1000).certificate
    table = pa.table({"id": [str(number) for number in range(len(texts))], "text": texts})
    for given in (texts, table, table.to_reader(50)):
        result = likewise.dedup(table, SABOTAGED)
        found = likewise.audit(result, given, num_sampled=1000)
        assert found.passed, [check for check in found.checks if not check.passed]
        assert {name: found.certificate[name] for name in SAME} == {name: of_files[name] for name in SAME}
        assert found.certificate["num_missed_seen"] == of_files["num_missed_seen"]
        assert (found.certificate["inputs"], found.certificate["outputs"]) == ([], [])
        json.dumps(found.certificate)


def test_nulls_counted_weights_and_tables(texts):
    with_nulls = [None, *texts[:120], None, *texts[120:]]
    for nulls in ("keep", "drop"):
        result = likewise.dedup(with_nulls, weights="idf", threshold=0.5, nulls=nulls)
        found = likewise.audit(result, with_nulls)
        assert found.passed, failed(found)
    recipe = Recipe.minhash(0.5, weights=count_weights(texts[:50]))
    result = likewise.dedup(texts, recipe)
    assert likewise.audit(result, texts, recipe).passed
    with pytest.raises(RecipeMismatch):
        likewise.audit(result, texts)
    assert likewise.audit(likewise.dedup(texts, within=3), texts).passed
    assert likewise.audit(likewise.dedup(texts, method="exact"), texts).passed


def test_other_documents_and_tampered_results_fail(texts):
    result = likewise.dedup(texts, SABOTAGED)
    assert len(result.removed) > 2
    assert not likewise.audit(result, texts[:-1]).passed
    assert not likewise.audit(result, [*texts[1:], texts[0]]).passed
    similarity = np.array(result.removed.column("similarity").to_pylist())
    similarity[1] = 0.99
    number = result.removed.schema.get_field_index("similarity")
    removed = result.removed.set_column(number, "similarity", pa.array(similarity))
    assert not likewise.audit(dataclasses.replace(result, _make_removed=lambda: removed), texts).passed
    fewer = dataclasses.replace(result, _make_removed=lambda: result.removed.slice(1))
    assert not likewise.audit(fewer, texts).passed
    with pytest.raises(InvalidParameter, match="pass them again"):
        likewise.audit(result)
    with pytest.raises(InvalidParameter, match="reads its inputs again"):
        likewise.audit("out", texts)
