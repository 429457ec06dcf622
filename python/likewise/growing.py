"""Arrays that grow at their end without being held twice."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Room is made a sixteenth at a time: enough that appending stays linear where memory must be moved to grow.
_SPARE = 16


class GrowingArray:
    """A flat array to whose end others are appended; :meth:`take` gives it away.

    Parameters
    ----------
    dtype : dtype
        Of every entry.
    """

    def __init__(self, dtype: Any) -> None:  # noqa: ANN401
        self._array: NDArray[Any] = np.empty(0, dtype)
        self._length = 0

    def append(self, values: NDArray[Any]) -> None:
        """Copy values to the end."""
        length = self._length + len(values)
        if length > len(self._array):
            # In place: the system moves the pages of a large array rather than their bytes.
            self._array.resize(length + length // _SPARE, refcheck=False)
        self._array[self._length : length] = values
        self._length = length

    def take(self) -> NDArray[Any]:
        """Return the array, read-only: the core shares such a buffer, and copies one that somebody might write to."""
        self._array.resize(self._length, refcheck=False)
        array, self._array, self._length = self._array, np.empty(0, self._array.dtype), 0
        array.flags.writeable = False
        return array
