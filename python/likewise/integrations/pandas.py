"""pandas: an accessor ``likewise`` for data frames.

Requires ``pip install "likewise[pandas]"``. Importing the module registers the accessor.
"""

from typing import Any

import pyarrow as pa

import likewise
from likewise.arrays import ArrowTable, TextData
from likewise.errors import InvalidInput, needs

with needs("pandas", "likewise.integrations.pandas"):
    import pandas as pd

_INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_NULLABLE = {getattr(pa, name.lower())(): pd.api.types.pandas_dtype(name) for name in _INTEGERS}


@pd.api.extensions.register_dataframe_accessor("likewise")
class FrameMethods:
    """Methods of ``frame.likewise``.

    Parameters
    ----------
    frame : pandas.DataFrame
        One document per row.

    Notes
    -----
    Each method takes the name of the text column as `text` (a list of names joins columns with a newline), a recipe or
    the name of a preset, and the options of :func:`likewise.dedup`, or of the function that it names. Only the required
    columns are converted to Arrow, without a copy if their strings are Arrow strings.

    Examples
    --------
    >>> import pandas as pd
    >>> import likewise.integrations.pandas
    >>> frame = pd.DataFrame({"text": ["one fine day", "One  fine day!", "another"]}, index=["x", "y", "z"])
    >>> frame.likewise.dedup("text", threshold=0.8).index.tolist()
    ['x', 'z']
    >>> frame.likewise.groups("text", threshold=0.8).to_dict()
    {'x': 0, 'y': 0, 'z': 2}
    """

    def __init__(self, frame: ArrowTable) -> None:
        self._frame = frame

    def dedup(self, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
        """Return the kept rows, with their index, as a pandas.DataFrame."""
        return self._frame[self.result(text, recipe, **options).kept]

    def groups(self, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
        """Return the group of each row: the id of the kept row, or its number if the frame has no ids.

        The result is a pandas.Series named ``group``, with the index of the frame.
        """
        return self.labels(text, recipe, **options)["group"]

    def labels(self, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
        """Return the columns of ``Deduplication.table()`` with the index of the frame: one row per row of the frame.

        The columns are row, id, is_kept, group, duplicate_of, similarity and group_size.
        """
        table = self.result(text, recipe, **options).table()
        labels = table.to_pandas().set_axis(self._frame.index)
        if pa.types.is_integer(table.schema.field("duplicate_of").type):
            # With nulls, NumPy integers would become floats.
            labels["duplicate_of"] = table.column("duplicate_of").to_pandas(types_mapper=_NULLABLE.get).array
        return labels

    def result(self, text: TextData = "text", recipe: Any = None, **options: Any) -> "likewise.Deduplication":
        """Return the result itself, with `summary`, `sample`, `plot`, `report`, `serve` and `save`."""
        return likewise.dedup(self._frame, recipe, text_field=text, **options)

    def report(self, text: TextData = "text", recipe: Any = None, *, path: Any = None, **options: Any) -> str:
        """Return the page of ``likewise report``, which a notebook shows; with `path`, also write it to a file."""
        return self.result(text, recipe, **options).report(path)

    def pairs(self, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
        """Return all pairs of near-duplicates, as a pandas.DataFrame.

        It has the columns of :func:`likewise.pairs`, and index_a and index_b, the index of both rows.
        """
        pairs = likewise.pairs(self._frame, recipe, text_field=text, **options).to_pandas()
        for side in ("a", "b"):
            pairs[f"index_{side}"] = self._frame.index.take(pairs[f"row_{side}"])
        return pairs

    def leaks(self, split: str, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
        """Find near-duplicates between the splits that a column names, as :func:`likewise.leaks`.

        Parameters
        ----------
        split : str
            Column with the name of the split of each row. The first name that occurs is the training set.
        text, recipe, **options
            As for the other methods.

        Returns
        -------
        Leaks
            Its rows count from 0 in each split.

        Raises
        ------
        InvalidInput
            If the frame has no such column, or a row has no value in it.
        """
        if split not in self._frame:
            raise InvalidInput(f"no column {split!r} in the frame; choose the one that names the splits")
        names = self._frame[split]
        if names.isna().any():
            raise InvalidInput(f"the column {split!r} has missing values; fill them, or leave such rows out")
        splits = dict(tuple(self._frame.groupby(names.astype(str).to_numpy(), sort=False)))
        return likewise.leaks(splits, recipe, text_field=text, **options)
