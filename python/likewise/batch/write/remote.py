"""Runs with remote output: made in a local directory, then copied, the summary last."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from likewise.errors import InvalidInput
from likewise.io.output.directory import FINAL_NAMES
from likewise.io.output.scratch import scratch_directory
from likewise.io.remote import RemoteDirectory


def run_to_store(
    output: str,
    inputs: Sequence[str | Path] | str | Path,
    run: Callable[[Path], dict[str, Any]],
    *,
    overwrite: bool,
) -> dict[str, Any]:
    """Return the summary of a run whose output was copied to a store.

    Parameters
    ----------
    output : str
        The directory in the store.
    inputs : path or sequence of paths
        What is read.
    run : callable
        Makes the output in a local directory, which is absent.
    overwrite : bool
        Whether a finished run there is replaced, once the new one is made.

    Raises
    ------
    InvalidInput
        If the directory is not free, lies inside an input, or the store refuses.
    """
    for name in [inputs] if isinstance(inputs, str | Path) else inputs:
        if f"{output.rstrip('/')}/".startswith(f"{str(name).rstrip('/')}/"):
            raise InvalidInput("the output is inside this input; choose another directory", str(name))
    target = RemoteDirectory(output, FINAL_NAMES, overwrite=overwrite)
    with scratch_directory() as place:
        summary = run(place / "out")
        target.write(place / "out")
    return summary
