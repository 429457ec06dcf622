"""What engines that compute a run of files elsewhere return, and the options that they do not support."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from likewise.batch.against.index import IndexUse
from likewise.batch.write.summary import InputCounts, RunCounts
from likewise.errors import InvalidParameter


@dataclass(frozen=True)
class EngineRun:
    """The result of a run whose outputs an engine wrote."""

    counts: RunCounts
    inputs: Sequence[InputCounts]
    # Number of rows in the kept file of each input; empty if there are no kept files
    num_written: Sequence[int]


def check_engine(index: IndexUse | None, against: Sequence[object], others: Mapping[str, bool]) -> None:
    """Raise InvalidParameter for options that require the local engine."""
    asked = {"index": index is not None and index.create is not None, **others}
    asked["against"] = bool(against) or (index is not None and index.against is not None)
    for name, is_given in asked.items():
        if is_given:
            raise InvalidParameter(name, "requires the local engine")
