"""Verdicts as JSON Lines on standard output, complete when they are written."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from likewise.cli.index_documents import Tally


def write_lines(rows: Iterable[dict[str, Any]]) -> None:
    """Write each row as a line of JSON, and hand all of them on."""
    # Surrogates of ids that came by other ways than a file stay readable as escapes.
    lines = [json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") for row in rows]
    if lines:
        sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
        sys.stdout.buffer.flush()


def write_verdicts(verdicts: Any, ids: list[str | None], tally: Tally) -> None:  # noqa: ANN401 - of either back end
    """Write verdicts, each with the id of its document (null where it has none), and count them.

    Parameters
    ----------
    verdicts : Verdicts
        Of n documents.
    ids : list of (str or None)
        Theirs.
    tally : Tally
        Takes the counts.
    """
    rows = []
    for doc_id, verdict in zip(ids, verdicts, strict=True):
        row: dict[str, Any] = {"doc_id": doc_id, "is_new": bool(verdict.is_new)}
        if verdict.is_new:
            tally.num_new += 1
        else:
            row |= {
                "kept_id": verdict.kept_id,
                "measure": verdict.measure,
                "similarity": verdict.similarity,
                "distance": verdict.distance,
            }
        if verdict.seq is not None:
            row |= {"seq": int(verdict.seq), "added": bool(verdict.added)}
        tally.num_added += bool(verdict.added)
        rows.append(row)
    tally.num_documents += len(rows)
    write_lines(rows)
