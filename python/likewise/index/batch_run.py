"""A batch run that adds documents to an index: a rerun distinguishes its own documents from others."""

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ColumnData
from likewise.errors import InvalidParameter
from likewise.index.ids import all_ids, too_long
from likewise.index.online import Index
from likewise.index.verdicts import Verdicts


class BatchRun:
    """An index as one batch run sees it: without rows added after its first check. A rerun has the same identity."""

    def __init__(self, index: Index, identity: bytes) -> None:
        self._index, self._identity = index, identity
        self._native, self._threads = index._native, index._threads
        self._first_row = self._native.first_row_of_run(identity)

    def check_batch(self, texts: _native.Texts) -> Verdicts:
        """Return the verdict that each text got, or would have gotten, at the run's first check."""
        columns = self._native.check(texts, end=self._first_row, threads=self._threads)
        return Verdicts.of_columns(columns, self._index.recipe.measure, None)

    def known(self, ids: ColumnData) -> NDArray[np.bool_]:
        """Return, for each id, whether the index has a document with this id."""
        return np.asarray(self._native.are_known(all_ids(ids)), bool)

    def first_of_other_text(self, ids: ColumnData, texts: _native.Texts) -> int | None:
        """Return the position of the first text whose id belongs to a different text in the index, or None."""
        return self._native.first_of_other_text(all_ids(ids), texts, threads=self._threads)

    def add_batch(self, ids: ColumnData, texts: _native.Texts) -> None:
        """Add documents in one transaction. Documents that already exist do not change."""
        names, run = all_ids(ids), (self._identity, self._first_row)
        try:
            self._native.add(names, texts, run=run, threads=self._threads)
        except InvalidParameter as error:
            raise too_long(error, names) from error
