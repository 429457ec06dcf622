"""What an index stores of itself on the server, and what its clients must have in common."""

import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, StoreError
from likewise.index.redis.client import Options
from likewise.redis import RedisIndex
from tests.index.store.conformance import TEXTS
from tests.recipes import RECIPES

RECIPE = likewise.Recipe.simhash(within=3, shingle=1)


def log_of(index):
    return b"{" + index._prefix + b"}:log"


def test_an_existing_index_decides(open_index):
    with pytest.raises(InvalidInput, match="no index with this prefix"):
        open_index()
    with pytest.raises(InvalidInput, match="no index with this prefix"):
        open_index(RECIPE, read_only=True)
    made = {"ttl": 60, "partitions": 2, "expected": 5000, "durability": "written"}
    open_index(RECIPE, **made).add("a", TEXTS[0])
    assert open_index(RECIPE, **made).check(TEXTS[0]).kept_id == "a"
    with pytest.raises(RecipeMismatch, match="within is 2 here and 3 there"):
        open_index(RECIPE.replace(within=2))
    for name, other in (("ttl", 61), ("partitions", 3), ("expected", 5001), ("durability", "replicated")):
        with pytest.raises(InvalidParameter, match=f"{name}: .* does not match the index on"):
            open_index(**{name: other})
    index = open_index(read_only=True)
    assert index.recipe.recipe_id == RECIPE.recipe_id
    assert index.check(TEXTS[0]).kept_id == "a"
    facts = index.stats
    assert (facts["ttl_s"], facts["partitions"], facts["expected"], facts["durability"]) == (60, 2, 5000, "written")
    for write in (lambda: index.add("b", "b"), lambda: index.remove("a"), index.compact):
        with pytest.raises(StoreError, match="read-only"):
            write()


def test_recipe_fields_instead_of_a_recipe(open_index):
    index = open_index(method="minhash", threshold=0.8, measure="containment")
    assert (index.recipe.method, index.recipe.keep) == ("minhash", "first")
    assert index.add("a", TEXTS[9]).is_new
    assert open_index().check(TEXTS[9]).kept_id == "a"


def test_a_table_of_weights_is_kept_with_the_index(open_index):
    open_index(RECIPES["simhash"].replace(keep="first")).add("a", "one fine day in spring")
    assert open_index().check("one fine day in spring").kept_id == "a"


def test_clients_share_bounds_durability_and_rule(open_index, running, monkeypatch):
    busy = Options(bound=8, horizon=2, advance_every=2, tidy_every=3)
    monkeypatch.setattr(RedisIndex, "_options", busy)
    index = open_index(RECIPE)
    assert index._nodes.replicas == 0
    monkeypatch.setattr(RedisIndex, "_options", Options(tidy_every=1))
    other = open_index()
    assert other._client.options[:3] == busy[:3]
    assert other._client.options.tidy_every == 1
    running.client.hset(log_of(index), "durability", "replicated")
    assert open_index()._nodes.replicas == 1
    running.client.hset(log_of(index), "rule", 0)
    with pytest.raises(StoreError, match="version 0 of the rule"):
        open_index()


def test_keys_that_are_no_index_or_of_another_format(open_index, running):
    running.client.hset("{mine}:log", "name", "value")
    with pytest.raises(StoreError, match="not a Likewise index"):
        open_index(RECIPE, prefix="mine")
    open_index(RECIPE, prefix="later")
    running.client.hset("{later}:log", "format", 0)
    with pytest.raises(StoreError, match=r"has format 0; this version reads \d"):
        open_index(prefix="later")


@pytest.mark.parametrize("prefix", ["", "a{b", "all*", "x" * 101, 7])
def test_prefixes(open_index, prefix):
    with pytest.raises(InvalidParameter, match="prefix"):
        open_index(RECIPE, prefix=prefix)


def test_damaged_records_are_errors_of_the_store(open_index, running):
    index = open_index(RECIPE, partitions=1)
    index.add("a", TEXTS[0])
    running.client.hset(log_of(index), "partitions", "many")
    with pytest.raises(StoreError, match=r"damaged records \(invalid literal .*rebuild the index"):
        open_index()
    running.client.hset(log_of(index), "partitions", 1)
    operations = log_of(index).removesuffix(b"log") + b"operations"
    for position in filter(None, running.client.hkeys(operations)):
        running.client.hset(operations, position, b"short")
    with pytest.raises(StoreError, match="damaged records"):
        open_index().get("a")


def test_a_prefix_can_look_like_a_partition_of_another_index(open_index):
    indexes = [open_index(RECIPE, prefix=f"pages{end}", partitions=2) for end in (".1", "", ".0")]
    for index in indexes:
        assert index.add("a", TEXTS[0]).is_new
        assert index.check(TEXTS[0]).kept_id == "a"
    indexes[1].remove("a")
    assert [index.check(TEXTS[0]).is_new for index in indexes] == [False, True, False]


def test_an_index_that_was_replaced_is_noticed(open_index, running):
    index, reader = open_index(RECIPE), open_index()
    index.add("a", TEXTS[0])
    running.client.flushall()
    for call in (lambda: index.check_and_add("b", TEXTS[1]), lambda: reader.check(TEXTS[1]), lambda: len(index)):
        with pytest.raises(StoreError, match="deleted or replaced"):
            call()
    other = open_index(RECIPE.replace(within=2))
    for call in (lambda: index.check(TEXTS[1]), lambda: reader.check_and_add("c", TEXTS[1])):
        with pytest.raises(StoreError, match="deleted or replaced"):
            call()
    assert len(other) == 0
