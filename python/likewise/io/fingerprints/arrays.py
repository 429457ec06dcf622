"""NumPy arrays in files written by other programs."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidInput

_MAGIC = b"\x93NUMPY"


def read_array(path: Path, *, is_mapped: bool) -> NDArray[Any]:
    """Return the array of an ``.npy`` file."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise InvalidInput("not a .npy file", str(path))
    try:
        # Sizes in a header may exceed the integers of the machine.
        with np.errstate(over="ignore"):
            array: NDArray[Any] = np.load(path, mmap_mode="r" if is_mapped else None, allow_pickle=False)
    except Exception as error:
        raise InvalidInput(f"not a NumPy array: {error}", str(path)) from error
    return array
