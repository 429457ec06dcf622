"""The matches that a run missed, one by one, those first that stand in its result."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.audit.opening import OpenRun
from likewise.audit.search import FOUND, STAGES
from likewise.audit.truth import Matches


@dataclass(frozen=True)
class Missed:
    """Missed pairs.

    Parameters
    ----------
    num_seen : int
        How many the sampled documents have; documents that nothing tells apart count as one.
    rows : list of dict
        The first of them as JSON values: doc_id_a, doc_id_b, row_a, row_b, similarity, stage, and whether both stayed.
    """

    num_seen: int
    rows: list[dict[str, Any]]


def missed_pairs(run: OpenRun, matches: Matches, stages: NDArray[np.uint8], most: int) -> Missed:
    """Return the missed pairs of the sample: those of which both stayed first, then by similarity, the highest first.

    Parameters
    ----------
    run : OpenRun
        The run and its documents.
    matches : Matches
        All matches of the sample.
    stages : ndarray of shape (m,), uint8
        What lost each.
    most : int
        Rows that are returned.
    """
    lost = np.flatnonzero(stages != FOUND)
    later, earlier = matches.later[lost].astype(np.int64), matches.earlier[lost].astype(np.int64)
    # A pair of two sampled documents was met from both sides.
    _, once = np.unique(later * len(run.collapsed.order) + earlier, return_index=True)
    lost, later, earlier = lost[once], later[once], earlier[once]
    a, b = (run.collapsed.order[side].astype(np.int64) for side in (earlier, later))
    both_stayed = run.kept[a] & run.kept[b]
    order = np.lexsort((later, earlier, -matches.similarity[lost], ~both_stayed))[:most]
    ids = [run.documents.doc_ids(side[order]).to_pylist() for side in (a, b)]
    rows = [
        {
            "doc_id_a": id_a,
            "doc_id_b": id_b,
            "row_a": int(a[i]),
            "row_b": int(b[i]),
            "similarity": float(matches.similarity[lost[i]]),
            "stage": STAGES[int(stages[lost[i]])],
            "both_stayed": bool(both_stayed[i]),
        }
        for i, id_a, id_b in zip(order.tolist(), *ids, strict=True)
    ]
    return Missed(len(lost), rows)
