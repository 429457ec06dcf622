"""Polars: a namespace ``likewise`` for data frames, lazy frames, series and expressions.

Requires ``pip install "likewise[polars]"``. Importing the module registers the namespaces.
"""

from typing import Any

import numpy as np

import likewise
from likewise.arrays import ArrowColumn, ArrowTable, TextData
from likewise.errors import needs
from likewise.stages.features import tokens

with needs("polars", "likewise.integrations.polars"):
    import polars as pl


@pl.api.register_dataframe_namespace("likewise")
class FrameMethods:
    """Methods of ``frame.likewise``.

    Parameters
    ----------
    frame : polars.DataFrame
        One document per row.

    Notes
    -----
    Each method takes the name of the text column as `text` (a list of names joins columns with a newline), a recipe or
    the name of a preset, and the options of :func:`likewise.dedup`. Polars copies the text column once, as Arrow data.

    Examples
    --------
    >>> import polars as pl
    >>> import likewise.integrations.polars
    >>> frame = pl.DataFrame({"text": ["one fine day", "One  fine day!", "another"]})
    >>> frame.likewise.dedup("text", threshold=0.8)["text"].to_list()
    ['one fine day', 'another']
    >>> frame.likewise.groups("text", threshold=0.8).to_list()
    [0, 0, 2]
    """

    def __init__(self, frame: ArrowTable) -> None:
        self._frame = frame

    def dedup(self, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
        """Return the kept rows as a polars.DataFrame."""
        result = likewise.dedup(self._frame, recipe, text_field=text, **options)
        return self._frame.filter(pl.Series(result.kept))

    def groups(self, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
        """Return the group of each row as a polars.Series: the id of the kept row, or its number if there is no id."""
        return self.labels(text, recipe, **options)["group"]

    def labels(self, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
        """Return ``Deduplication.table()`` as a polars.DataFrame: one row per row of the frame."""
        return pl.from_arrow(likewise.dedup(self._frame, recipe, text_field=text, **options).table())


@pl.api.register_lazyframe_namespace("likewise")
class LazyFrameMethods:
    """Methods of ``lazy_frame.likewise``, with the arguments of those of ``frame.likewise``."""

    def __init__(self, frame: ArrowTable) -> None:
        self._frame = frame

    def dedup(self, text: TextData = "text", recipe: Any = None, **options: Any) -> Any:
        """Return the kept rows as a polars.LazyFrame.

        When the result is collected, all rows up to this step are in memory at once; later filters apply to the kept
        rows.
        """
        return self._frame.map_batches(
            lambda frame: FrameMethods(frame).dedup(text, recipe, **options),
            predicate_pushdown=False,
            projection_pushdown=False,
            slice_pushdown=False,
        )


@pl.api.register_series_namespace("likewise")
class SeriesMethods:
    """Methods of ``series.likewise``, a series of texts; ``expression.likewise`` applies them to whole columns."""

    def __init__(self, series: Any) -> None:
        self._series = series

    def dedup(self, recipe: Any = None, **options: Any) -> Any:
        """Return the kept texts as a polars.Series; arguments as for :func:`likewise.dedup`."""
        return self._series.filter(self.is_kept(recipe, **options))

    def is_kept(self, recipe: Any = None, **options: Any) -> Any:
        """Return whether each text is kept, as a polars.Series; arguments as for :func:`likewise.dedup`."""
        return pl.Series(self._series.name, likewise.dedup(self._series, recipe, **options).kept)

    def groups(self, recipe: Any = None, **options: Any) -> Any:
        """Return for each text the row of the kept text of its group; arguments as for :func:`likewise.dedup`."""
        groups = likewise.dedup(self._series, recipe, **options).groups
        return pl.Series(self._series.name, groups)

    def sketch(self, recipe: Any = None, **fields: Any) -> Any:
        """Return the sketch of each text; arguments as for :func:`likewise.sketch`. A null remains null.

        The type is Int64 for SimHash of up to 64 bits, and otherwise an Array. Words of 64 bits are signed integers
        with the same bits, as in files of sketches: Polars considers Int64 and UInt64 of the same bits to differ.
        """
        sketches = likewise.sketch(self._series.drop_nulls(), recipe, **fields)
        values = pl.Series(self._series.name, _signed(sketches), dtype=_sketch_type(sketches))
        is_text = self._series.is_not_null()
        return (
            values
            if is_text.all()
            else values.gather(pl.select(pl.when(is_text).then(is_text.cum_sum() - 1)).to_series())
        )

    def hamming(self, other: Any) -> Any:
        """Return the number of bits in which fingerprints differ from those of `other`, of types Int64 or UInt64."""
        return (_bits(self._series) ^ _bits(other)).bitwise_count_ones()

    def tokens(self, recipe: Any = None) -> Any:
        """Return the normalized tokens of each text under a recipe, as a List of String. A null remains null."""
        lists = [None if text is None else tokens(text, recipe) for text in self._series]
        return pl.Series(self._series.name, lists, dtype=pl.List(pl.String))


@pl.api.register_expr_namespace("likewise")
class ExpressionMethods:
    """Methods of ``expression.likewise``, an expression of texts, with the same names as the methods of series.

    `is_kept`, `groups` and `sketch` are computed on the whole column, or on each group in ``group_by`` and ``over``.

    Examples
    --------
    >>> import polars as pl
    >>> import likewise.integrations.polars
    >>> frame = pl.DataFrame({"text": ["one fine day", "One  fine day!", "another"]})
    >>> frame.filter(pl.col("text").likewise.is_kept(threshold=0.8)).height
    2
    """

    def __init__(self, expression: Any) -> None:
        self._expression = expression

    def is_kept(self, recipe: Any = None, **options: Any) -> Any:
        """Return whether each text is kept, as a Boolean; arguments as for :func:`likewise.dedup`."""
        return self._mapped("is_kept", pl.Boolean, recipe, options)

    def groups(self, recipe: Any = None, **options: Any) -> Any:
        """Return for each text the row of the kept text of its group; arguments as for :func:`likewise.dedup`."""
        return self._mapped("groups", pl.Int64, recipe, options)

    def sketch(self, recipe: Any = None, **fields: Any) -> Any:
        """Return the sketch of each text, as ``Series.likewise.sketch``."""
        return self._mapped("sketch", _sketch_type(likewise.sketch([], recipe, **fields)), recipe, fields)

    def hamming(self, other: Any) -> Any:
        """Return the number of bits in which fingerprints differ from `other`, an expression or a column name."""
        return (_bits(self._expression) ^ _bits(other)).bitwise_count_ones()

    def tokens(self, recipe: Any = None) -> Any:
        """Return the normalized tokens of each text under a recipe, as a List of String."""
        return self._mapped("tokens", pl.List(pl.String), recipe, {})

    def _mapped(self, name: str, kind: Any, recipe: Any, options: dict[str, Any]) -> Any:
        return self._expression.map_batches(
            lambda series: getattr(SeriesMethods(series), name)(recipe, **options), return_dtype=kind
        )


def _bits(column: ArrowColumn) -> Any:
    """Return a series or expression of fingerprints as signed integers of the same bits."""
    return (pl.col(column) if isinstance(column, str) else column).reinterpret(signed=True)


def _signed(sketches: "likewise.Sketches") -> Any:
    array = sketches.array
    return array.view(np.int64) if array.dtype == np.uint64 else array


def _sketch_type(sketches: "likewise.Sketches") -> Any:
    array = _signed(sketches)
    kind = pl.Series(array.ravel()[:0]).dtype
    return kind if array.ndim == 1 else pl.Array(kind, array.shape[1])
