"""Mistakes that must be rejected with an error that names them."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise.batch.parts.run import dedup_parts
from likewise.batch.parts.units import PartRules
from likewise.batch.read.ingest import weigh_files
from likewise.errors import check_positive
from likewise.measures import similarity
from likewise.stages.sets import sample


def test_a_mapping_is_no_list_of_texts():
    with pytest.raises(likewise.InvalidInput, match="values"):
        likewise.dedup({"a": 1})


def test_keep_names_nothing_after_first():
    with pytest.raises(likewise.InvalidParameter, match="after first"):
        likewise.Recipe.minhash(keep="first,longest")
    assert likewise.Recipe.minhash(keep="longest,first").keep == "longest,first"


def test_unknown_fields_are_the_recipe_s_fault():
    with pytest.raises(likewise.InvalidParameter, match="recipe: unknown fields foo"):
        likewise.Recipe.from_json('{"method": "minhash", "foo": 1}')


WRONG_RECIPES = ["minhash", 0.8, 0, {"method": "minhash"}, likewise.Recipe.minhash, ["a text"]]


@pytest.mark.parametrize("recipe", WRONG_RECIPES, ids=range(len(WRONG_RECIPES)))
def test_what_is_no_recipe_is_refused_by_every_door(recipe, tmp_path):
    texts = ["a text", "another"]
    for call in (
        lambda: likewise.dedup(texts, recipe),
        lambda: likewise.pairs(texts, recipe),
        lambda: likewise.sketch(texts, recipe),
        lambda: likewise.compare(*texts, recipe),
        lambda: similarity(*texts, "hamming", recipe=recipe),
        lambda: sample(texts, recipe),
        lambda: weigh_files(tmp_path / "none.jsonl", recipe),
        lambda: dedup_parts(tmp_path / "none.jsonl", tmp_path / "out", PartRules("line"), recipe),
        lambda: likewise.Sketches(np.zeros(2, np.uint64), recipe, np.zeros(2, bool), np.zeros(2, np.uint32)),
        lambda: likewise.dedup_files(tmp_path / "none.jsonl", tmp_path / "out", recipe),
        lambda: likewise.Index(tmp_path / "seen.lw", recipe),
    ):
        with pytest.raises(likewise.InvalidParameter, match=r"recipe: .* is not a recipe such as"):
            call()


def stored_signatures(dtype, num_slots=128):
    return np.zeros((3, num_slots), dtype)


def test_arrays_of_another_type_or_shape_are_no_sketches_of_a_recipe():
    signatures = likewise.Recipe.minhash(hash="datasketch", weights="own")
    fingerprints = likewise.Recipe.simhash(bits=128)
    columns = (np.zeros(3, bool), np.full(3, 100, np.uint32))
    for recipe, array in (
        (signatures, stored_signatures(np.uint64)),
        (signatures, stored_signatures(np.uint32, 64)),
        (signatures, stored_signatures(np.uint32).tolist()),
        (fingerprints, np.zeros(3, np.uint64)),
        (fingerprints, np.zeros((3, 2), np.int64)),
    ):
        with pytest.raises(likewise.InvalidParameter, match=r"array: .* does not match this recipe, which needs"):
            likewise.Sketches(array, recipe, *columns)
    assert len(likewise.Sketches(stored_signatures(np.uint32), signatures, *columns)) == 3
    with pytest.raises(likewise.InvalidParameter, match="is_empty: 2 values for 3 sketches"):
        likewise.Sketches(stored_signatures(np.uint32), signatures, columns[0][:2], columns[1])


def test_exact_has_no_sketches():
    with pytest.raises(likewise.InvalidParameter, match="method"):
        likewise.Sketches(
            np.zeros(1, np.uint64), likewise.Recipe.exact(), is_empty=np.zeros(1, bool), num_features=np.ones(1)
        )


def test_a_row_number_is_no_choice_of_sketches():
    sketches = likewise.sketch(["a text", "another"])
    for row in (0, np.int64(0)):
        with pytest.raises(TypeError, match="rows must be a slice"):
            sketches[row]
    assert len(sketches[:1]) == len(sketches[np.array([1])]) == len(sketches[[True, False]]) == 1


def test_columns_of_ids_are_told_from_those_of_texts(tmp_path):
    # A column of whole numbers with one missing, as tables store it.
    missing = pa.array([1.0, None])
    with likewise.Index(tmp_path / "seen.lw") as index:
        for call in (lambda ids: likewise.dedup(["a", "b"], ids=ids), lambda ids: index.add_batch(ids, ["a", "b"])):
            with pytest.raises(likewise.InvalidInput, match="the id is null") as caught:
                call(missing)
            assert caught.value.row == 1
            with pytest.raises(likewise.InvalidInput, match="the id column has type double"):
                call(missing.fill_null(2.0))
            with pytest.raises(likewise.InvalidInput, match="ids have type int; expected"):
                call(5)
        # A method for one document, called with the ids of many
        with pytest.raises(likewise.InvalidInput, match="ids must be text or integers") as caught:
            index.check_and_add([str(number) for number in range(1000)], "a")
        assert len(str(caught.value)) < 200


def test_ids_that_come_twice_name_the_option_of_the_door(tmp_path):
    with pytest.raises(likewise.InvalidInput, match='duplicate_ids="allow"'):
        likewise.dedup(["a", "b"], ids=["x", "x"])
    path = tmp_path / "twice.jsonl"
    path.write_text('{"id": "x", "text": "a"}\n{"id": "x", "text": "b"}\n', encoding="utf-8")
    with pytest.raises(likewise.InvalidInput, match="--duplicate-ids allow"):
        likewise.dedup_files(path, tmp_path / "out")


def test_a_misspelt_field_is_named_by_replace_as_by_a_new_recipe():
    for made in (likewise.Recipe.minhash, likewise.Recipe.minhash().replace):
        with pytest.raises(likewise.InvalidParameter, match="treshold: not a recipe option"):
            made(treshold=0.8)


def test_times_to_wait_are_numbers_of_any_kind():
    for value in (5, 0.5, np.int64(5), np.float32(0.5), Fraction(1, 2)):
        assert check_positive("timeout_s", value) == float(value)
    for value in (0, True, "5", float("inf"), np.float32("nan"), 1j):
        with pytest.raises(likewise.InvalidParameter, match="is not a number above 0"):
            check_positive("timeout_s", value)


def test_bands_are_of_sketches():
    with pytest.raises(likewise.InvalidParameter, match="sketches: list is not Sketches"):
        likewise.band_pairs(["a text"])
