"""The output of another tool opened like a run: its inputs, the documents it kept, and the reasons for removals."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.batch.read.columns import priority_order
from likewise.batch.read.documents import collapse
from likewise.batch.run import bounded_run, opened_run
from likewise.errors import InvalidInput
from likewise.io.inputs import Inputs
from likewise.io.source.source import each_piece
from likewise.io.tables.columns import open_parquet
from likewise.job.output import Job
from likewise.job.reading import FileRun
from likewise.progress import Progress
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import BYTE_TOKENS
from likewise.runs.audit.checks import Check
from likewise.runs.audit.opening import Evidence, OpenRun
from likewise.stages.text import normalize

_ID_NAMES = ("id", "doc_id")

_PIECE_BYTES = 4 << 20
_MOST_NAMED = 5
# Kept documents of a cluster with which a removed one is compared, at most.
_KEPT_OF_CLUSTER = 8


def read_columns(path: Path, wanted: Sequence[str], *, optional: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return columns of ids as strings, in file order."""
    rows, names = _rows(path)
    found = {}
    for name in (*wanted, *optional):
        column = next((given for given in (_ID_NAMES if name == "id" else (name,)) if given in names), None)
        if column is None and name in wanted:
            raise InvalidInput(f"no column {name!r} (found: {', '.join(names) or 'none'})", str(path))
        if column is not None:
            found[name] = column
    columns: dict[str, list[str]] = {name: [] for name in found}
    for number, row in enumerate(rows, 1):
        for name, column in found.items():
            value = row.get(column)
            # Integers are ids too; booleans and lists are not.
            if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
                raise InvalidInput(f"{column} is missing or not an id: {value!r}", str(path), number)
            columns[name].append(str(value))
    return columns


def _rows(path: Path) -> tuple[Iterable[dict[str, Any]], list[str]]:
    """Return the rows of a table, and the names of its columns."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            table = open_parquet(path).read()
            return table.to_pylist(), table.column_names
        if suffix == ".jsonl":
            lines = path.read_text(encoding="utf-8").splitlines()
            rows = [json.loads(line) for line in lines if line.strip()]
            if not all(isinstance(row, dict) for row in rows):
                raise InvalidInput("not every line is a JSON object", str(path))
            return rows, list(dict.fromkeys(name for row in rows for name in row))
        if suffix in (".csv", ".tsv"):
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file, delimiter="\t" if suffix == ".tsv" else ",", strict=True)
                rows = list(reader)
                return rows, list(reader.fieldnames or [])
    except (OSError, InvalidInput):
        raise
    except (ValueError, RecursionError, csv.Error) as error:
        # Errors of Arrow are ValueErrors.
        raise InvalidInput(f"cannot read this table: {error}", str(path)) from error
    raise InvalidInput("the name must end in .csv, .tsv, .jsonl or .parquet", str(path))


@dataclass(frozen=True)
class ToolFiles:
    """Files that another tool read and wrote."""

    # The documents that the tool read, and those that it kept
    inputs: Sequence[str | Path]
    kept: Sequence[str | Path]
    # Table of the removed documents: column id, and optionally kept_id
    removed: Path | None = None
    # Table with the columns id and cluster
    clusters: Path | None = None


@dataclass(frozen=True, eq=False)
class Claims:
    """The kept documents for which documents were removed, according to the tool."""

    # Removed documents, and a kept document recorded for each; a removed document may have several
    rows: NDArray[np.int64]
    kept_rows: NDArray[np.int64]
    # Description of the recorded documents, for messages
    what: str


@dataclass(frozen=True, eq=False)
class OpenOutput:
    """The output of another tool."""

    # The inputs and removals; kept documents come first in order of priority
    run: OpenRun
    kept: Inputs
    # Whether the tool's tables agree with what it kept
    checks: tuple[Check, ...]
    # Recorded reasons, if the tool gives them
    claims: Claims | None
    # How kept documents were found among the inputs
    by: str


@contextmanager
def open_output(given: ToolFiles, recipe: Recipe, run: FileRun, progress: Progress) -> Iterator[OpenOutput]:
    """Open the output of another tool, as a context."""
    if [*map(str, given.inputs), *map(str, given.kept)].count("-") > 1:
        raise InvalidInput("standard input (-) is given twice; give it once")
    run = replace(run, duplicate_ids="allow")
    with Job(None, run, progress) as job:
        found, kept_files, work = job.find(given.inputs, recipe), job.find(given.kept, recipe), job.scratch
        inputs, kept = _Identities.read(found, recipe, run, work), _Identities.read(kept_files, recipe, run, work)
        if not len(inputs):
            raise InvalidInput("the inputs contain no documents", found.files[0].name)
        if not len(kept):
            raise InvalidInput("the kept files contain no documents", kept_files.files[0].name)
        by_id = _are_by_id(inputs, kept)
        is_kept = inputs.kept_by_id(kept) if by_id else inputs.kept_by_text(kept)
        bounded = bounded_run(job, found, recipe, writes_copies=False)
        opened = job.enter(opened_run(found.files, recipe, job.context, work=work, bounded=bounded))
        documents, recipe = opened.documents, opened.recipe
        if len(documents) != len(is_kept):
            raise InvalidInput("the inputs changed during reading; run again once they no longer change")
        checks = [inputs.same_texts(kept)] if by_id else []
        rows = np.flatnonzero(~is_kept)
        names = None if given.removed is None and given.clusters is None else _Names(inputs)
        claims = None
        if given.removed is not None and names is not None:
            check, claims = _removed(given.removed, names, is_kept)
            checks.append(check)
        if given.clusters is not None and names is not None:
            check, claims = _clusters(given.clusters, names, is_kept)
            checks.append(check)
        ranked = priority_order(documents, recipe.keep)
        # Kept documents come first, whatever order the tool preferred.
        collapsed = collapse(documents, recipe, np.concatenate([ranked[is_kept[ranked]], ranked[~is_kept[ranked]]]))
        nothing = np.full(len(rows), -1, np.int64)
        evidence = Evidence(None, rows, nothing, np.full(len(rows), np.nan), nothing, np.zeros(len(rows), bool))
        about = (documents, collapsed, evidence, opened.context.threads, progress)
        audited = OpenRun({}, recipe, run, *about, inputs=found)
        yield OpenOutput(audited, kept_files, tuple(checks), claims, "id" if by_id else "text")


@dataclass(frozen=True, eq=False)
class _Identities:
    """Hashes of the ids and texts of the documents in some files."""

    inputs: Inputs
    ids: NDArray[np.uint64]
    has_id: NDArray[np.bool_]
    texts: NDArray[np.uint64]
    starts: NDArray[np.int64]
    lines: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def read(cls, inputs: Inputs, recipe: Recipe, run: FileRun, work: Path) -> "_Identities":
        """Read the hashes; bad rows are skipped unless the run fails on them."""
        hashed = _hashes if recipe.takes_tokens or recipe.tokens in BYTE_TOKENS else _text_hashes
        ids, has_id, texts, lines, starts = [], [], [], [], [0]
        num = 0
        for file in inputs.files:
            for first_line, piece in each_piece(file, _PIECE_BYTES, work):
                if piece.bad_rows and run.on_error == "fail":
                    bad = piece.bad_rows[0]
                    raise InvalidInput(bad.reason, file.name, first_line + bad.line + 1)
                ids.append(np.asarray(piece.ids.hashes()))
                has_id.append(piece.has_id.astype(bool))
                texts.append(hashed(piece.texts))
                lines.append(piece.lines.astype(np.int64) + first_line)
                num += len(piece.lines)
            starts.append(num)
        return cls(
            inputs,
            np.concatenate([np.zeros(0, np.uint64), *ids]),
            np.concatenate([np.zeros(0, bool), *has_id]),
            np.concatenate([np.zeros(0, np.uint64), *texts]),
            np.array(starts, np.int64),
            np.concatenate([np.zeros(0, np.int64), *lines]),
        )

    def place(self, row: int) -> tuple[str, int]:
        """Return the file of a document and its row there, from 1."""
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.inputs.files[number].name, int(self.lines[row]) + 1

    def places(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the places of the first of these rows, as ``file:line``."""
        return ["{}:{}".format(*self.place(int(row))) for row in rows[:_MOST_NAMED]]

    def error(self, row: int, message: str) -> InvalidInput:
        """Return an error about a document."""
        return InvalidInput(message, *self.place(row))

    def check_ids(self, what: str) -> None:
        """Raise InvalidInput if two documents have the same id."""
        order = np.argsort(self.ids, kind="stable")
        doubles = np.flatnonzero(self.ids[order[1:]] == self.ids[order[:-1]])
        if len(doubles):
            first, second = (int(row) for row in order[doubles[0] : doubles[0] + 2])
            file, line = self.place(first)
            raise self.error(
                second,
                f"two documents of the {what} have this id (the other is {file}:{line}); make ids unique, or compare "
                "texts with --id-field none",
            )

    def rows_of(self, ids: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the row of each id; arbitrary for an id that does not exist."""
        order = np.argsort(self.ids, kind="stable")
        found: NDArray[np.int64] = order[np.minimum(np.searchsorted(self.ids, ids, sorter=order), len(order) - 1)]
        return found

    def kept_by_id(self, kept: "_Identities") -> NDArray[np.bool_]:
        """Return which of these documents were kept."""
        self.check_ids("inputs")
        kept.check_ids("kept files")
        rows = self.rows_of(kept.ids)
        strangers = np.flatnonzero(self.ids[rows] != kept.ids)
        if len(strangers):
            raise kept.error(
                int(strangers[0]),
                f"the inputs have no document with the id of this kept one ({len(strangers):,} in total); give "
                "all documents that the tool read, or compare texts with --id-field none",
            )
        is_kept = np.zeros(len(self), bool)
        is_kept[rows] = True
        return is_kept

    def same_texts(self, kept: "_Identities") -> Check:
        """Check that kept documents, found by id, have the same texts as here."""
        differing = np.flatnonzero(self.texts[self.rows_of(kept.ids)] != kept.texts)
        name = "each kept document has the same text as the input with its id"
        return Check(name, len(kept), len(differing), tuple(kept.places(differing)))

    def kept_by_text(self, kept: "_Identities") -> NDArray[np.bool_]:
        """Return which of these documents were kept; of equal texts the first ones, as many as were kept."""
        order, theirs = np.argsort(self.texts, kind="stable"), np.argsort(kept.texts, kind="stable")
        mine, wanted = self.texts[order], kept.texts[theirs]
        # The n-th kept copy of a text is its n-th copy in the inputs.
        copy = np.arange(len(wanted)) - np.searchsorted(wanted, wanted, side="left")
        place = np.searchsorted(mine, wanted, side="left") + copy
        is_there = place < np.searchsorted(mine, wanted, side="right")
        if not is_there.all():
            missing = theirs[~is_there]
            raise kept.error(
                int(missing.min()),
                f"the text of this kept document is not in the inputs, or occurs fewer times ({len(missing):,} in "
                "total); give all documents that the tool read, or compare ids with --id-field",
            )
        is_kept = np.zeros(len(self), bool)
        is_kept[order[place]] = True
        return is_kept


def _hashes(texts: Texts) -> NDArray[np.uint64]:
    return np.asarray(texts.hashes())


def _text_hashes(texts: Texts) -> NDArray[np.uint64]:
    """Return hashes of normalized texts, so that case and whitespace are ignored."""
    return _hashes(Texts.from_list([normalize(text) for text in texts.to_list()]))


def _are_by_id(inputs: _Identities, kept: _Identities) -> bool:
    """Return whether documents are identified by ids, which requires that all have one; otherwise by text."""
    for what, side in (("inputs", inputs), ("kept files", kept)):
        without = np.flatnonzero(~side.has_id)
        if 0 < len(without) < len(side):
            raise side.error(
                int(without[0]),
                f"this document of the {what} has no id, but others do; give every document an id, or compare texts "
                "with --id-field none",
            )
    return bool(inputs.has_id.all() and kept.has_id.all())


class _Names:
    """Finds the documents that a table names, by id, or by row number if the inputs have no ids."""

    def __init__(self, inputs: _Identities) -> None:
        self._inputs = inputs
        self._has_ids = bool(inputs.has_id.all())
        if self._has_ids:
            inputs.check_ids("inputs")

    def rows(self, names: Sequence[str], path: Path) -> NDArray[np.int64]:
        """Return the rows of the named documents."""
        inputs = self._inputs
        if self._has_ids:
            wanted = np.asarray(Texts.from_list(list(names)).hashes())
            rows = inputs.rows_of(wanted)
            missing = np.flatnonzero(inputs.ids[rows] != wanted)
        else:
            is_number = [name.isascii() and name.isdigit() and len(name) < 18 for name in names]
            numbers = [int(name) if fits else -1 for name, fits in zip(names, is_number, strict=True)]
            rows = np.array(numbers, np.int64).reshape(-1)
            missing = np.flatnonzero((rows < 0) | (rows >= len(inputs)))
        if len(missing):
            first = int(missing[0])
            what = f"document with the id {names[first]!r}" if self._has_ids else f"row {names[first]}"
            hint = "" if self._has_ids else "; rows are numbered from 0, because the documents have no ids"
            more = f" ({len(missing):,} are missing)" if len(missing) > 1 else ""
            raise InvalidInput(f"the inputs have no {what}{more}{hint}", str(path), first + 1)
        return rows

    def distinct_rows(self, names: Sequence[str], path: Path) -> NDArray[np.int64]:
        """Return the rows of the named documents; raise InvalidInput if one is listed twice."""
        rows = self.rows(names, path)
        order = np.argsort(rows, kind="stable")
        doubles = order[1:][rows[order[1:]] == rows[order[:-1]]]
        if len(doubles):
            second = int(doubles.min())
            raise InvalidInput(f"{names[second]!r} is listed twice", str(path), second + 1)
        return rows

    def called(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the places of the first of these documents."""
        return self._inputs.places(rows)


def _removed(path: Path, names: _Names, is_kept: NDArray[np.bool_]) -> tuple[Check, Claims | None]:
    """Compare the table of removed documents with what was kept; return the kept documents that it records."""
    columns = read_columns(path, ("id",), optional=("kept_id",))
    rows = names.distinct_rows(columns["id"], path)
    is_listed = np.zeros(len(is_kept), bool)
    is_listed[rows] = True
    wrong = np.flatnonzero(is_listed == is_kept)
    name = "the documents listed as removed are those that were not kept"
    check = Check(name, len(is_kept), len(wrong), tuple(names.called(wrong)))
    if "kept_id" not in columns:
        return check, None
    kept_rows = names.rows(columns["kept_id"], path)
    removed = ~is_kept[rows]
    return check, Claims(rows[removed], kept_rows[removed], "the kept document listed for it")


def _clusters(path: Path, names: _Names, is_kept: NDArray[np.bool_]) -> tuple[Check, Claims]:
    """Return the kept documents of the cluster of each removed document."""
    columns = read_columns(path, ("id", "cluster"))
    rows = names.distinct_rows(columns["id"], path)
    _, cluster = np.unique(np.array(columns["cluster"], dtype=str), return_inverse=True)
    kept_of: dict[int, list[int]] = {}
    for row, number in zip(rows.tolist(), cluster.tolist(), strict=True):
        if is_kept[row]:
            some = kept_of.setdefault(number, [])
            if len(some) < _KEPT_OF_CLUSTER:
                some.append(row)
    of_removed = [
        (row, number) for row, number in zip(rows.tolist(), cluster.tolist(), strict=True) if not is_kept[row]
    ]
    is_listed = np.zeros(len(is_kept), bool)
    is_listed[[row for row, number in of_removed if number in kept_of]] = True
    alone = np.flatnonzero(~is_kept & ~is_listed)
    name = "every removed document is in a cluster with a kept one"
    check = Check(name, int((~is_kept).sum()), len(alone), tuple(names.called(alone)))
    pairs = [(row, kept) for row, number in of_removed for kept in kept_of.get(number, ())]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return check, Claims(both[:, 0], both[:, 1], "a kept document of its cluster")
