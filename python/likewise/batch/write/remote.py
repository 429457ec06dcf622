"""Runs with remote output: written to a local directory, then copied, the summary last."""

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
    """Run with a local output, copy it to a store, and return the summary."""
    for name in [inputs] if isinstance(inputs, str | Path) else inputs:
        if f"{output.rstrip('/')}/".startswith(f"{str(name).rstrip('/')}/"):
            raise InvalidInput("the output is inside this input; choose another directory", str(name))
    target = RemoteDirectory(output, FINAL_NAMES, overwrite=overwrite)
    with scratch_directory() as place:
        summary = run(place / "out")
        target.write(place / "out")
    return summary
