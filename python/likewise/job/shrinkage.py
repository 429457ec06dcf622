"""The folders, files or values of a field that lost the largest share of their documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.checks import counted

_NUM_SLICES = 3
_NUM_REASONS = 3
# Of fewer documents, a large share is no finding, unless all slices are as small.
_LEAST_DOCUMENTS = 10
_WARNED_SHARE = 0.5
BY_PATH = "path"


@dataclass(frozen=True)
class Slice:
    """The documents with one value, and those of them that were removed."""

    value: str | None
    num_documents: int
    num_removed: int
    # Where the documents are from that the removed ones match, the most frequent first
    kept: Sequence[Mapping[str, object]] = field(default=())

    @property
    def share(self) -> float:
        """Share of the documents that were removed."""
        return self.num_removed / self.num_documents


def path_slices(paths: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the topmost folders of paths, or the files that are in none, and the number of that of each path."""
    tops = [path.partition("/")[0] + "/" * ("/" in path) for path in paths]
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(top, len(numbers)) for top in tops]
    return list(numbers), np.array(places, np.int64)


def shrinkage(by: str, slices: Sequence[Slice]) -> dict[str, Any]:
    """Return the summary field about the slices that lost the largest share; no field if none lost a document."""
    large = [one for one in slices if one.num_documents >= _LEAST_DOCUMENTS]
    small = [one for one in slices if one.num_documents > 1]
    some = [one for one in (large or small) if one.num_removed]
    some.sort(key=lambda one: (-one.share, -one.num_removed, one.value or ""))
    if len(slices) < 2 or not some:
        return {}
    entries = [
        {"value": one.value, "num_documents": one.num_documents, "num_removed": one.num_removed}
        | {"kept": list(one.kept[:_NUM_REASONS])}
        for one in some[:_NUM_SLICES]
    ]
    return {"shrunk": {"by": by, "slices": entries}}


def add_shrinkage(summary: dict[str, Any]) -> str | None:
    """Add this field to the summary of a run over several files; return a warning if a slice lost most documents."""
    inputs = summary.get("inputs", ())
    if "shrunk" not in summary and len(inputs) > 1 and all("num_kept" in entry for entry in inputs):
        names, numbers = path_slices([entry["path"] for entry in inputs])
        sizes, kept = (
            np.bincount(numbers, [entry[name] for entry in inputs]).astype(int)
            for name in ("num_documents", "num_kept")
        )
        slices = [Slice(*of) for of in zip(names, sizes.tolist(), (sizes - kept).tolist(), strict=True)]
        summary |= shrinkage(BY_PATH, slices)
    lost = summary.get("shrunk", {"slices": ()})["slices"]
    most = next((one for one in lost if one["num_removed"] > _WARNED_SHARE * one["num_documents"]), None)
    if most is None or most["num_documents"] < _LEAST_DOCUMENTS:
        return None
    return f"{shrinkage_line(most)}; read some of these pairs before you use the rest"


def shrinkage_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return a line for each slice that the summary names."""
    return [shrinkage_line(one) for one in summary.get("shrunk", {"slices": ()})["slices"]]


def shrinkage_line(one: Mapping[str, Any]) -> str:
    """Return how much of a slice was removed, and as copies of what."""
    name, removed, num = _name(one["value"]), one["num_removed"], one["num_documents"]
    # Rounding must not turn some into none or all.
    rounded = {0: "under 1%", 100: "over 99%"}.get(round(100 * removed / num)) if removed < num else None
    line = f"{rounded or f'{removed / num:.0%}'} of {name} removed ({removed:,} of {counted(num, 'document')})"
    if not one["kept"]:
        return line
    first = one["kept"][0]
    how = "mostly" if 2 * first["num_removed"] > removed else "most often"
    if first["kept_source"] != "input":
        where = "as copies of --against documents"
    elif first["value"] == one["value"]:
        where = "as copies within it"
    else:
        where = f"as copies of {_name(first['value'])}"
    return f"{line}, {how} {where}"


def _name(value: str | None) -> str:
    return "(none)" if value is None else value
