"""Hugging Face datasets: accepted by the plain functions, and returned without near-duplicates."""

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.io.tables.offered import as_arrow
from tests.integrations.documents import RECIPE, plain

datasets = pytest.importorskip("datasets", reason="datasets is not installed")

from datasets import Dataset, DatasetDict, Features, IterableDataset, Value  # noqa: E402

from likewise.integrations.datasets import dedup  # noqa: E402

A, B, C = "one fine day in may by the sea", "One fine day in May, by the sea!", "another text of which nobody knows"
TEXTS = [A, None, C, B, None]
NUMBERS = [9, 8, 7, 6, 5]


def small(texts=(A, C, B), **columns):
    return Dataset.from_dict({"text": list(texts), **columns})


def shuffled(dataset):
    """Return the same rows in the same order, by an indices mapping."""
    backwards = list(range(len(dataset)))[::-1]
    mapped = dataset.select(backwards).select(backwards)
    assert mapped._indices is not None
    return mapped


def generated(texts, features=None):
    return IterableDataset.from_generator(lambda: ({"text": text} for text in texts), features=features)


def forms(texts, saved):
    """Return the same documents in all kinds of datasets."""
    whole = small(texts)
    whole.save_to_disk(saved)
    half = len(texts) // 2
    splits = {"train": whole.select(range(half)), "test": whole.select(range(half, len(texts)))}
    return {
        "dataset": whole,
        "on disk": datasets.load_from_disk(saved),
        "mapped": shuffled(whole),
        "numpy format": whole.with_format("numpy"),
        "splits": DatasetDict(splits),
        "mapped splits": DatasetDict({name: shuffled(split) for name, split in splits.items()}),
        "a dictionary": splits,
        "stream": whole.to_iterable_dataset(num_shards=3),
        "stream of splits": datasets.IterableDatasetDict(
            {name: split.to_iterable_dataset() for name, split in splits.items()}
        ),
        "generated": generated(texts),
        "generated with features": generated(texts, Features({"text": Value("string")})),
    }


def test_all_kinds_give_the_verdicts_of_the_plain_call(tmp_path):
    texts, expected = plain()
    for name, dataset in forms(texts, tmp_path / "saved").items():
        result = likewise.dedup(dataset, RECIPE)
        assert np.array_equal(result.kept, expected.kept), name
        assert result.removed.equals(expected.removed), name


def test_pairs_of_all_kinds(tmp_path):
    texts = plain()[0][:500]
    expected = likewise.pairs(texts, RECIPE)
    assert expected.num_rows > 100
    for name, dataset in forms(texts, tmp_path / "saved").items():
        assert likewise.pairs(dataset, RECIPE).equals(expected), name
    across = likewise.pairs(texts[:100], RECIPE, against=texts[100:])
    assert across.num_rows > 10
    whole = small(texts)
    assert likewise.pairs(whole.select(range(100)), RECIPE, against=shuffled(whole.skip(100))).equals(across)


def test_indexes_take_datasets_and_their_columns(tmp_path):
    texts = plain()[0][:500]
    ids = [f"d{number}" for number in range(500)]
    with likewise.Index.in_memory(RECIPE) as index:
        expected = index.check_and_add_batch(ids, texts).is_new.tolist()
    for name, dataset in forms(texts, tmp_path / "saved").items():
        with likewise.Index.in_memory(RECIPE) as index:
            assert index.check_and_add_batch(ids, dataset).is_new.tolist() == expected, name
            assert not index.check_batch(dataset).is_new.any(), name
    for dataset in (small(texts, id=ids), shuffled(small(texts, id=ids)), small(texts, id=ids).to_iterable_dataset()):
        with likewise.Index.in_memory(RECIPE) as index:
            assert index.add_batch(dataset["id"], dataset["text"]).is_new.tolist() == expected
            assert list(index.ids()) == ids


def test_texts_of_a_dataset_are_not_copied(tmp_path):
    small(["x" * 100_000] * 500, id=list(range(500))).save_to_disk(tmp_path / "big")
    dataset = datasets.load_from_disk(tmp_path / "big")
    before = pa.total_allocated_bytes()
    result = likewise.dedup(dataset, method="exact")
    assert result.kept.sum() == 1
    table = as_arrow(dataset, ["text"], ["id"])
    assert pa.total_allocated_bytes() - before < 1_000_000
    ours, theirs = (table.column("text").chunk(0) for table in (table, dataset.data.table))
    assert ours.buffers()[2].address == theirs.buffers()[2].address


def test_rows_of_many_chunks_are_gathered_in_their_order():
    parts = [small([f"text {number}" for number in range(first, first + 50)]) for first in range(0, 2500, 50)]
    order = np.random.default_rng(1).permutation(2500)
    mapped = datasets.concatenate_datasets(parts).select(order)
    found = as_arrow(mapped, ["text"]).read_all()
    assert found.column("text").to_pylist() == [f"text {number}" for number in order]


def test_only_the_columns_that_are_needed_are_read():
    dataset = small(n=[3, 1, 2], other=["left out"] * 3)
    for one in (dataset, shuffled(dataset), dataset.to_iterable_dataset()):
        assert likewise.dedup(one, threshold=0.8, keep="min:n").kept.tolist() == [False, True, True]


@pytest.mark.parametrize("change", [lambda dataset: dataset, shuffled, Dataset.to_iterable_dataset])
def test_ids_of_a_column_keep_their_type(change):
    result = likewise.dedup(change(small(id=[7, 8, 9])), threshold=0.8)
    assert result.groups.to_pylist() == [7, 8, 7]
    named = likewise.dedup(change(small(name=["x", "y", "z"])), threshold=0.8, ids="name")
    assert named.groups.to_pylist() == ["x", "y", "x"]


def test_a_dataset_comes_back_as_what_it_was(tmp_path):
    texts, expected = plain()
    kept = [text for text, stays in zip(texts, expected.kept, strict=True) if stays]
    given = forms(texts, tmp_path / "saved")
    for name in ("dataset", "on disk", "mapped"):
        found = dedup(given[name], RECIPE)
        assert type(found) is Dataset
        assert found["text"][:] == kept, name
    for name in ("stream", "generated"):
        found = dedup(given[name], RECIPE)
        assert type(found) is IterableDataset
        assert [row["text"] for row in found] == kept, name
    for name in ("splits", "mapped splits"):
        found = dedup(given[name], RECIPE)
        assert type(found) is DatasetDict
        assert list(found) == ["train", "test"]
        assert found["train"]["text"][:] + found["test"]["text"][:] == kept, name


def test_the_order_of_the_splits_is_which_copy_stays():
    splits = DatasetDict(train=small([A, C]), test=small([B, "a third text that is like none of these"]))
    assert {name: len(split) for name, split in dedup(splits, threshold=0.8).items()} == {"train": 2, "test": 1}
    found = dedup(splits, threshold=0.8, splits=["test", "train"])
    assert list(found) == ["train", "test"]
    assert found["train"]["text"][:] == [C]
    assert found["test"].num_rows == 2
    with pytest.raises(InvalidParameter, match=r"'dev'.*train, test"):
        dedup(splits, splits=["test", "dev"])
    with pytest.raises(InvalidParameter, match="only a dictionary"):
        dedup(splits["test"], splits=["test"])
    with pytest.raises(InvalidParameter, match="list is not a Dataset"):
        dedup([A, B])


def test_splits_of_different_columns_and_types():
    first, second = small([A, C], id=[1, 2]), small([B])
    assert likewise.dedup({"a": first, "b": second}, threshold=0.8).groups.to_pylist() == [0, 1, 0]
    large = second.cast(Features({"text": Value("large_string")}))
    for splits in ({"a": first, "b": large}, {"a": shuffled(first), "b": large}, {"a": large, "b": shuffled(first)}):
        assert likewise.dedup(splits, threshold=0.8).kept.sum() == 2


def test_nulls_follow_their_option():
    for dataset in (small(TEXTS), shuffled(small(TEXTS)), generated(TEXTS), small(TEXTS).to_iterable_dataset()):
        with pytest.raises(InvalidInput, match=r"the text is null.*nulls="):
            dedup(dataset, RECIPE)
        assert [row["text"] for row in dedup(dataset, RECIPE, nulls="keep")] == [A, None, C, None]
        assert [row["text"] for row in dedup(dataset, RECIPE, nulls="drop")] == [A, C]


def test_a_stream_that_begins_with_nulls():
    texts = [None] * 3 + [A, B]
    features = Features({"text": Value("string")})
    assert likewise.dedup(generated(texts, features), RECIPE, nulls="keep").kept.tolist() == [True] * 4 + [False]
    assert likewise.dedup(generated([None] * 1000 + [A, B], features), RECIPE, nulls="keep").kept.sum() == 1001


@pytest.mark.parametrize("num_before", [1, 1000])
def test_types_that_change_within_a_stream(num_before):
    rows = [{"text": A, "id": 1}] * num_before + [{"text": B, "id": "x"}]
    with pytest.raises(InvalidInput, match=r"differ in their columns or types.*features"):
        likewise.dedup(IterableDataset.from_generator(lambda: iter(rows)), RECIPE, duplicate_ids="allow")


def test_datasets_without_rows():
    for dataset in (
        small([]).cast(Features({"text": Value("string")})),
        generated([], Features({"text": Value("string")})),
    ):
        assert likewise.dedup(dataset, RECIPE).kept.tolist() == []


def test_a_missing_column_names_those_that_are_there():
    dataset = small(body=["x"] * 3)
    for one in (dataset, shuffled(dataset), dataset.to_iterable_dataset(), DatasetDict(a=dataset)):
        with pytest.raises(InvalidInput, match=r"no column 'words'.*found: 'text', 'body'.*text_field"):
            likewise.dedup(one, text_field="words")
        with pytest.raises(InvalidInput, match="no column 'name'"):
            likewise.dedup(one, ids="name")


def test_another_recipe_is_the_same_error_as_everywhere(tmp_path):
    likewise.Index(tmp_path / "index", RECIPE).close()
    with pytest.raises(RecipeMismatch), likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)):
        pass
