"""Hugging Face ``datasets``: a dataset in, the same dataset without near-duplicates out.

Requires ``pip install "likewise[datasets]"``. :func:`likewise.dedup`, :func:`likewise.pairs` and the batches of an
index accept datasets directly. This module adds a function that returns a dataset.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import likewise
from likewise.errors import InvalidParameter, needs

with needs("datasets", "likewise.integrations.datasets"):
    from datasets import Dataset, DatasetDict, IterableDataset


def dedup(
    dataset: Any,
    recipe: Any = None,
    *,
    splits: list[str] | None = None,
    **options: Any,
) -> Any:
    """Return a dataset without its near-duplicates.

    Parameters
    ----------
    dataset : Dataset, DatasetDict or IterableDataset
        The documents. The splits of a dictionary are one collection: a document is removed if it matches a kept one
        of any split.
    recipe : Recipe or str, optional
        Determines when two documents match; or the name of a preset, as for :func:`likewise.dedup`.
    splits : list of str, optional
        All splits of a dictionary, in the order in which they are read; the order of the dictionary if None. The first
        of several copies is kept: ``["test", "train"]`` removes only copies within test from test, and removes from
        train the documents that are in test.
    **options
        As for :func:`likewise.dedup`: `text_field`, `ids`, `nulls`, `duplicate_ids`, fields of a recipe.

    Returns
    -------
    Dataset, DatasetDict or IterableDataset
        The kept rows, in their order, as the same type as `dataset`. A Dataset becomes a selection of rows
        (``Dataset.select``), without copying the data. An IterableDataset becomes a filter by row number. Its
        stream is read once by this call, and again whenever the result is read. It must yield the same rows in the same
        order.

    Raises
    ------
    InvalidInput
        As for :func:`likewise.dedup`. The ids of all splits must be distinct, or set ``duplicate_ids="allow"``.
    InvalidParameter
        If `splits` are not those of the dictionary, or `dataset` is not a dataset.

    Examples
    --------
    >>> from datasets import Dataset
    >>> from likewise.integrations.datasets import dedup
    >>> dataset = Dataset.from_dict({"text": ["one fine day", "One  fine day!", "another"]})
    >>> dedup(dataset, threshold=0.8).to_dict()
    {'text': ['one fine day', 'another']}
    """
    if isinstance(dataset, DatasetDict):
        names = list(dataset) if splits is None else splits
        if sorted(names) != sorted(dataset):
            raise InvalidParameter("splits", f"{names!r} are not the splits of the dataset: {', '.join(dataset)}")
        parts = {name: dataset[name] for name in names}
        kept = likewise.dedup(parts, recipe, **options).kept
        ends = np.cumsum([len(part) for part in parts.values()])
        masks = dict(zip(names, np.split(kept, ends[:-1]), strict=True))
        return DatasetDict({name: _selected(dataset[name], masks[name]) for name in dataset})
    if splits is not None:
        raise InvalidParameter("splits", "only a dictionary of datasets has splits")
    if not isinstance(dataset, Dataset | IterableDataset):
        raise InvalidParameter(
            "dataset", f"{type(dataset).__name__} is not a Dataset, DatasetDict or IterableDataset; use likewise.dedup"
        )
    return _selected(dataset, likewise.dedup(dataset, recipe, **options).kept)


def _selected(dataset: Any, kept: NDArray[np.bool_]) -> Any:
    if isinstance(dataset, Dataset):
        return dataset.select(np.flatnonzero(kept))
    return dataset.filter(lambda _, row: bool(kept[row]), with_indices=True)
