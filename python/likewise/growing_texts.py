"""Texts that grow at their end, in memory or in files."""

import numpy as np

from likewise._native import Texts
from likewise.growing import ArraySpace


class GrowingTexts:
    """A column of texts to whose end others are appended; :meth:`take` gives it away.

    Parameters
    ----------
    space : ArraySpace
        Where their bytes lie.
    """

    def __init__(self, space: ArraySpace) -> None:
        self._parts: list[Texts] = []
        self._in_files = space.folder is not None
        self._data = space.growing(np.uint8)
        self._ends = space.growing(np.int64)

    def append(self, texts: Texts) -> None:
        """Take texts to the end; where they are in memory nothing is copied."""
        if not self._in_files:
            self._parts.append(texts)
            return
        import pyarrow as pa

        if not len(texts):
            return
        if not len(self._ends):
            self._ends.append(np.zeros(1, np.int64))
        column = pa.array(texts)
        _, offset_buffer, data = column.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
        self._ends.append(offsets[1:] - offsets[0] + len(self._data))
        if data is not None:
            self._data.append(np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]])

    def take(self) -> Texts:
        """Return all texts."""
        if not self._in_files or not len(self._ends):
            parts, self._parts = self._parts, []
            return Texts.concat(parts)
        import pyarrow as pa

        num_texts = len(self._ends) - 1
        buffers = [None, pa.py_buffer(self._ends.take()), pa.py_buffer(self._data.take())]
        return Texts.from_arrow(pa.LargeStringArray.from_buffers(num_texts, *buffers[1:]))
