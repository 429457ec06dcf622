"""Rows that are one document: those of all inputs with one id are joined in input order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArraySpace, GrowingTexts, distinct, repeated_keys, slices, stable_order
from likewise.batch.budget.room import Room
from likewise.batch.decide.decision import Decision
from likewise.batch.read.columns import filled
from likewise.batch.read.documents import Documents
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.source.source import BadRow, BadRowTally, Piece, ReadTask, Source
from likewise.io.tables.columns import number_column
from likewise.job.reading import RunContext, in_order, jobs_of, refusal
from likewise.progress import Warned
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import BYTE_TOKENS, fields_read

_PIECE_BYTES = 4 << 20
_AT_ONCE = 1 << 18


def check_joined(recipe: Recipe, others: Mapping[str, bool]) -> None:
    """Raise InvalidParameter if rows cannot be joined by this recipe, or with one of the others that is given."""
    others = {
        **others,
        "only_within": recipe.only_within is not None,
        f"tokens {recipe.tokens}: only texts are joined": recipe.takes_tokens or recipe.tokens in BYTE_TOKENS,
    }
    for name, is_given in others.items():
        if is_given:
            raise InvalidParameter("document_by", f"cannot be combined with {name}")


class JoinedRows:
    """The rows of all inputs, and the documents that they form; a document is at the place of its first row."""

    def __init__(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        context: RunContext,
        room: Room,
        work: Path,
        most_bytes: int = 2**32 - 1,
    ) -> None:
        self._most_bytes = most_bytes
        self.bad_rows: list[list[BadRow]] = [[] for _ in sources]
        self.num_blank = 0
        space = room.space
        self._read(sources, context, space, work, len(fields_read(recipe.keep, context.rules.fields)))
        first = self._first_rows(space, room.buckets_bytes)
        # The first row of each document, ascending, and the document of each row
        num_rows = len(first)
        self.firsts = filled(space, num_rows, lambda part: first[part][first[part] == np.arange(part.start, part.stop)])
        self.document_of = filled(space, num_rows, lambda part: np.searchsorted(self.firsts, first[part]))
        # The rows by document, and where those of each document begin
        self._order = order = stable_order(self.document_of, space)

        def begins(part: slice) -> NDArray[np.int64]:
            numbers = self.document_of[order[max(part.start - 1, 0) : part.stop]]
            found = part.stop - len(numbers) + np.flatnonzero(np.diff(numbers, prepend=-1))
            return np.extract(found >= part.start, found)

        self._bounds = filled(space, num_rows, begins, [num_rows])
        starts = np.searchsorted(self.firsts, self.starts)
        self.sources = [
            _JoinedSource(self, source, int(low), int(high))
            for source, (low, high) in zip(sources, pairwise(starts), strict=True)
        ]

    def __len__(self) -> int:
        return len(self.document_of)

    def _read(
        self, sources: Sequence[Source], context: RunContext, space: ArraySpace, work: Path, num_fields: int
    ) -> None:
        """Read the rows of all sources into columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts, ids, *fields = (GrowingTexts(space) for _ in range(2 + num_fields))
        columns = [space.growing(dtype) for dtype in (np.uint64, np.uint32, np.uint32, np.uint32, np.uint64)]
        num_rows, num_lines = [0] * len(sources), [0] * len(sources)
        tally = BadRowTally(context.rules.max_bad_rows)

        def add(number: int, piece: Piece) -> None:
            bad_rows = [bad._replace(line=num_lines[number] + bad.line) for bad in piece.bad_rows]
            if bad_rows and context.rules.on_error == "fail":
                raise refusal(sources[number], bad_rows[0], {"--id-field": "--document-by"})
            if not piece.has_id.all():
                row = int(piece.lines[np.argmin(piece.has_id)]) + num_lines[number]
                raise InvalidInput("document_by is null; fill it, or leave such rows out", sources[number].name, row)
            tally.add(sources[number].name, num_lines[number], piece)
            self.bad_rows[number] += bad_rows
            hashes = np.stack([np.asarray(piece.ids.hashes(seed)) for seed in (0, 1)], axis=1).reshape(-1)
            lines = piece.lines + np.uint32(num_lines[number])
            sizes = np.asarray(pc.binary_length(pa.array(piece.texts)))
            given: tuple[NDArray[Any], ...] = (piece.offsets, piece.lengths, lines, sizes, hashes)
            for column, values in zip(columns, given, strict=True):
                column.append(values)
            for growing, some in zip((texts, ids, *fields), (piece.texts, piece.ids, *piece.fields), strict=True):
                growing.append(some)
            num_rows[number] += len(lines)
            num_lines[number] += piece.num_lines
            self.num_blank += piece.num_blank

        tasks = jobs_of(sources, _PIECE_BYTES, work, lambda number, _, job: (number, list(job.read())))
        with closing(in_order("joining", tasks, sources, context)) as done:
            for number, pieces in done:
                for piece in pieces:
                    add(number, piece)
        if (told := tally.finish()) is not None:
            context.progress(Warned(told))
        self.starts = np.cumsum([0, *num_rows])
        self.offsets, self.lengths, self.lines, self._sizes, self._hashes = (column.take() for column in columns)
        self._texts, self.ids = texts.take(), ids.take()
        self._fields = [field.take() for field in fields]

    def _first_rows(self, space: ArraySpace, most_bytes: int | None) -> NDArray[np.int64]:
        """Return, for each row, the first row with its id."""
        keys, num_rows = self._hashes.reshape(-1, 2), len(self.offsets)
        first = space.numbers(num_rows)
        for found in repeated_keys(lambda part: keys[part], num_rows, 2, most_bytes):
            later, earlier = (rows.astype(np.int64) for rows in found)
            # Ids can be crafted so that their hashes are equal.
            if self.ids.take(later).to_list() != self.ids.take(earlier).to_list():
                raise InvalidInput("two values of document_by have the same hash; change one of them")
            first[later] = earlier
        return first

    def piece(self, low: int, high: int) -> Piece:
        """Return documents; lines count from the start of their source."""
        import pyarrow as pa
        import pyarrow.compute as pc

        firsts, bounds = self.firsts[low:high], self._bounds[low : high + 1]
        rows, bounds = self._order[bounds[0] : bounds[-1]], bounds - bounds[0]
        sizes = np.add.reduceat(self._sizes[rows], bounds[:-1], dtype=np.int64) if len(rows) else np.zeros(0, np.int64)
        if sizes.max(initial=0) > self._most_bytes:
            longest = int(np.argmax(sizes))
            raise InvalidInput(
                f"the {int(np.diff(bounds)[longest]):,} rows of document {self.ids[int(firsts[longest])]!r} have "
                f"{int(sizes[longest]):,} bytes of text; the --max-document limit is {self._most_bytes:,}, raise it or "
                "choose another field with --document-by"
            )
        joined = pc.binary_join(
            pa.LargeListArray.from_arrays(number_column(bounds), pa.array(self._texts.take(rows))),
            pa.scalar("\n", pa.large_string()),
        )
        return Piece(
            texts=Texts.from_arrow(joined),
            ids=self.ids.take(firsts),
            has_id=np.ones(len(firsts), np.uint8),
            offsets=self.offsets[firsts],
            lengths=self.lengths[firsts],
            lines=self.lines[firsts],
            num_lines=0,
            fields=[field.take(firsts) for field in self._fields],
            bad_rows=[],
        )

    def text_at(self, source: int, offset: int) -> str | None:
        """Return the text of the document with a row at a place; None if there is no such row."""
        low, high = self.starts[source : source + 2]
        row = low + np.searchsorted(self.offsets[low:high], np.uint64(offset))
        if row == high or self.offsets[row] != offset:
            return None
        document = int(self.document_of[row])
        return str(self.piece(document, document + 1).texts[0])

    def cuts(self, low: int, high: int, piece_bytes: int) -> list[int]:
        """Return documents at which to split the documents `low` to `high`, both included, into parts of this size."""
        step = max(1, piece_bytes * len(self) // max(1, self._texts.num_bytes))
        starts = np.arange(self._bounds[low], self._bounds[high], step)
        return [int(cut) for cut in distinct(np.array([low, *np.searchsorted(self._bounds, starts), high]))]

    def rows(self, documents: Documents, kept: NDArray[np.bool_]) -> tuple[Documents, NDArray[np.bool_]]:
        """Return the rows of the documents, as far as their places are needed, and which of them are kept."""
        num_rows = len(self)
        rows = replace(
            documents,
            starts=self.starts,
            shapes=np.zeros(num_rows, np.uint8),
            offsets=self.offsets,
            lengths=self.lengths,
            lines=self.lines,
            ids=self.ids,
            has_id=np.ones(num_rows, np.bool_),
            bad_rows=self.bad_rows,
            spool=None,
        )
        return rows, kept[self.document_of]

    def with_counts(self, tables: Iterable[Any], decision: Decision) -> Iterator[Any]:
        """Yield tables of evidence with the numbers of rows of both documents."""
        start = 0
        for table in tables:
            part = slice(start, start + len(table))
            start = part.stop
            for name, rows in (("num_rows", decision.removed_rows), ("kept_num_rows", decision.kept_rows)):
                counts = self._bounds[rows[part] + 1] - self._bounds[rows[part]]
                table = table.append_column(name, number_column(counts))
            yield table

    def summary(self, kept: NDArray[np.bool_]) -> dict[str, object]:
        """Return the summary fields about rows, given which documents are kept."""
        num_kept = sum(int(kept[self.document_of[part]].sum()) for part in slices(len(self), _AT_ONCE))
        return {"num_rows": len(self), "num_kept_rows": num_kept, "num_blank_lines": self.num_blank}


class _JoinedSource(Source):
    """The documents `low` to `high`, exclusive, whose first rows are in one source."""

    name: str | None
    num_bytes: int

    def __init__(self, joined: JoinedRows, source: Source, low: int, high: int) -> None:
        self._joined, self._source, self._low, self._high = joined, source, low, high
        self.name, self.num_bytes = source.name, source.num_bytes
        self.id_type = getattr(source, "id_type", None)

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the documents into parts of about this size."""
        cuts = self._joined.cuts(self._low, self._high, piece_bytes)
        for low, high in pairwise(cuts):
            size = self.num_bytes * (high - low) // (self._high - self._low)
            yield ReadTask(size, partial(self._read, low, high))

    def _read(self, low: int, high: int) -> Iterator[Piece]:
        yield self._joined.piece(low, high)

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the fields of the row at this position."""
        return self._source.field_names(offset, length)
