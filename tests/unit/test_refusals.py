"""Mistakes that once passed in silence or under another name."""

import pytest

import likewise


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
