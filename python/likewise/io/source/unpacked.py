"""Files that were decompressed whole, for a run that continues; each has its identity stored next to it."""

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from likewise._native import checksum, range_checksum
from likewise.errors import LikewiseError

# Offset and length in the decompressed file, and compressed bytes.
Pieces = Sequence[tuple[int, int, int]]
# Smaller files are quickly decompressed again.
_LEAST_BYTES = 16 << 20


def unpacked_path(directory: Path, path: Path) -> Path:
    """Return the path of the decompressed copy of an input."""
    return directory / f"unpacked-{checksum(np.frombuffer(os.fsencode(path), np.uint8)):016x}"


def tell_unpacked(path: Path, piece_bytes: int, pieces: Pieces) -> None:
    """Record that a file is decompressed whole. Nothing is synced, since its checksum is verified later."""
    num_bytes = path.stat().st_size
    if num_bytes < _LEAST_BYTES:
        return
    facts = {
        "num_bytes": num_bytes,
        "checksum": range_checksum(path, 0, num_bytes),
        "piece_bytes": piece_bytes,
        "pieces": list(pieces),
    }
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(facts), encoding="utf-8", newline="\n")
    unfinished.replace(path.with_suffix(".json"))


def unpacked_pieces(path: Path, piece_bytes: int) -> Pieces | None:
    """Return the pieces of a file that an earlier run decompressed; None if the copy is incomplete or missing."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, LikewiseError):
        facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        is_same = facts["num_bytes"] == path.stat().st_size and facts["piece_bytes"] == piece_bytes
        if is_same and range_checksum(path, 0, facts["num_bytes"]) == facts["checksum"]:
            return [(offset, length, num_packed) for offset, length, num_packed in facts["pieces"]]
    return None
