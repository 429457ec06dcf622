"""Counts by a field, folder or file: removed documents of each value, and values of the documents that they match."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import slices
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.batch.read.ingest import NO_VALUE
from likewise.io.output.evidence import AGAINST, INPUT
from likewise.io.tables.columns import nullable_text_column
from likewise.job.output import Slice, path_slices, shrinkage

_AT_ONCE = 1 << 18
_MOST_VALUES = 100
_MOST_PAIRS = 1000


class _Counts(NamedTuple):
    """Removed documents by their value, and by the value of the kept document."""

    names: Sequence[str | None]
    of_documents: NDArray[np.int64]
    of_removed: NDArray[np.int64]
    # Number of removed documents by value, value of the kept one, and where that one is from; the most frequent first
    ranked: list[tuple[tuple[int, int, str], int]]

    def shrinkage(self, by: str) -> dict[str, Any]:
        """Return the summary field about the values that lost the largest share."""
        kept: dict[int, list[dict[str, object]]] = {}
        for (one, other, source), number in self.ranked:
            entry: dict[str, object] = {"value": self.names[other], "kept_source": source, "num_removed": number}
            kept.setdefault(one, []).append(entry)
        return shrinkage(
            by,
            [
                Slice(name, int(num), int(self.of_removed[code]), kept.get(code, []))
                for code, (name, num) in enumerate(zip(self.names, self.of_documents, strict=True))
                if num
            ],
        )


def _counted(
    decision: Decision,
    first: int,
    names: Sequence[str | None],
    of_documents: NDArray[np.int64],
    codes_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> _Counts:
    """Count the removals of a run whose references have rows below `first`; documents of an index have value 0."""
    of_removed = np.zeros(len(names), np.int64)
    pairs: Counter[tuple[int, int, str]] = Counter()
    for part in slices(len(decision.removed_rows), _AT_ONCE):
        removed, kept_rows = codes_of(decision.removed_rows[part]), decision.kept_rows[part]
        of_removed += np.bincount(removed, minlength=len(names))
        kept = np.where(kept_rows < 0, 0, codes_of(np.maximum(kept_rows, 0)))
        found, numbers = np.unique(np.stack([removed, kept, kept_rows < first], 1), axis=0, return_counts=True)
        for (one, other, is_reference), number in zip(found.tolist(), numbers.tolist(), strict=True):
            pairs[one, other, AGAINST if is_reference else INPUT] += number
    ranked = sorted(
        pairs.items(), key=lambda item: (-item[1], names[item[0][0]] or "", names[item[0][1]] or "", item[0][2])
    )
    return _Counts(names, of_documents, of_removed, ranked)


def shrinkage_by_path(documents: Documents, decision: Decision) -> dict[str, Any]:
    """Return the summary field about the folders and files that lost the largest share."""
    first = documents.num_reference_sources
    names, of_sources = path_slices([source.name or "" for source in documents.sources[first:]])
    # References come first, and are no slice of the inputs.
    of_sources = np.concatenate([np.zeros(first, np.int64), 1 + of_sources])
    sizes = np.bincount(of_sources, np.diff(documents.starts) * (of_sources > 0), len(names) + 1).astype(np.int64)
    counted = _counted(
        decision,
        documents.num_references,
        (None, *names),
        sizes,
        lambda rows: of_sources[documents.sources_of(rows)],
    )
    return counted.shrinkage("path")


def counts_by(documents: Documents, decision: Decision, field: str) -> dict[str, Any]:
    """Return the summary fields about the values of a field."""
    codes, names = value_codes(documents, field)
    of_documents = np.bincount(codes[documents.num_references :], minlength=len(names))
    counted = _counted(decision, documents.num_references, names, of_documents, lambda rows: codes[rows])
    of_removed, ranked = counted.of_removed, counted.ranked
    values = [code for code in range(len(names)) if of_documents[code]]
    values.sort(key=lambda code: (-int(of_documents[code]), names[code] or ""))
    by_field = {
        "field": field,
        "num_values": len(values),
        "values": [
            {"value": names[code], "num_documents": int(of_documents[code]), "num_removed": int(of_removed[code])}
            for code in values[:_MOST_VALUES]
        ],
        "num_pairs": len(ranked),
        "pairs": [
            {"removed": names[one], "kept": names[other], "kept_source": source, "num_removed": number}
            for (one, other, source), number in ranked[:_MOST_PAIRS]
        ],
    }
    return {"counts_by": by_field, **counted.shrinkage(field)}


def with_values(tables: Iterable[Any], documents: Documents, decision: Decision, field: str) -> Iterator[Any]:
    """Yield tables of evidence with the columns ``value`` and ``kept_value``, a field of both documents."""
    codes, names = value_codes(documents, field)
    start = 0
    for table in tables:
        part = slice(start, start + len(table))
        start = part.stop
        kept_rows = decision.kept_rows[part]
        # Fields of the documents of an index are not stored.
        kept = np.where(kept_rows < 0, 0, codes[np.maximum(kept_rows, 0)])
        for name, numbers in (("value", codes[decision.removed_rows[part]]), ("kept_value", kept)):
            table = table.append_column(name, nullable_text_column([names[number] for number in numbers.tolist()]))
        yield table


def value_codes(documents: Documents, field: str) -> tuple[NDArray[np.int64], list[str | None]]:
    """Return the number of each document's value, and the values."""
    numbers: dict[str | None, int] = {None: 0}
    codes = documents.room.space.growing(np.int64)
    of_json: dict[str, int] = {}
    for texts in documents.fields[field]:
        some = np.zeros(len(texts), np.int64)
        for row, text in enumerate(texts.to_list()):
            code = of_json.get(text)
            if code is None:
                code = of_json[text] = numbers.setdefault(value_name(text), len(numbers))
            some[row] = code
        codes.append(some)
    return codes.take(), list(numbers)


def value_name(text: str) -> str | None:
    """Return the displayed form of a value: a string unchanged, but for lone surrogates, anything else as JSON."""
    from likewise.index.ids import as_stored

    if text in NO_VALUE:
        return None
    return as_stored(json.loads(text)) if text.startswith('"') else text
