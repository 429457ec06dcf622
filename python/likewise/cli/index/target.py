"""The index that a command opens, and the documents that it is given; lines of verdicts."""

import importlib
import json
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from likewise.cli.options.commands import option
from likewise.cli.options.recipe import take_run
from likewise.cli.options.terminal import skipped_lines
from likewise.errors import InvalidInput, InvalidParameter, counted

if TYPE_CHECKING:
    from likewise._native import Texts
    from likewise.io.lines.jsonl import JsonlStream
    from likewise.io.source.source import BadRowTally, Piece, Source
    from likewise.job.reading import FileRun
    from likewise.recipe.recipe import Recipe

URL = option(
    "--url URL",
    "URL of a Redis or Valkey server, or of a node of a cluster, redis://HOST:PORT/DATABASE, instead of PATH.",
)
PREFIX = option("--prefix NAME", "With --url: prefix of the keys of this index.  [default: likewise]")
DURABILITY = option(
    "--durability RULE",
    "commit: print a verdict after its document is synced to disk; interval:200ms: sync that often, so that a "
    "power failure may lose the last documents. Not with --url: see index create --durability.  [default: commit]",
)


def target_options(command: Any) -> Any:
    """Add --url and --prefix."""
    return URL(PREFIX(command))


class Target(NamedTuple):
    """The index that a command works on: PATH, empty if there is a URL; and the arguments after PATH."""

    path: str
    rest: tuple[str, ...]
    url: str | None
    prefix: str | None

    def check(self, wanted: str) -> None:
        """Raise UsageError without arguments of this name after PATH, or with some if it is empty."""
        if wanted and not self.rest:
            raise click.UsageError(f"Missing argument '{wanted}...'.")
        if not wanted and self.rest:
            raise click.UsageError(f"Got unexpected extra argument ({self.rest[0]})")

    def open(self, recipe: "Recipe | None" = None, **options: Any) -> Any:
        """Open the index."""
        options = {name: value for name, value in options.items() if value is not None}
        if self.url is not None:
            if options.pop("store", None) is not None:
                raise InvalidParameter(
                    "store",
                    "does not apply to --url: a server stores sketches, and the features that the recipe compares",
                )
            if self.prefix is not None:
                options["prefix"] = self.prefix
            # Imported only when a URL is given: it needs an extra.
            return importlib.import_module("likewise.redis").RedisIndex(self.url, recipe, **options)
        if self.prefix is not None:
            raise InvalidParameter("prefix", "requires --url")
        from likewise.index import Index
        from likewise.index.erasing import unfinished_warning
        from likewise.index.opening import is_there
        from likewise.io.places import check_place

        check_place(self.path)
        if recipe is None and not is_there(Path(self.path)):
            raise InvalidInput("no index here; create one with `likewise index create`", self.path)
        with warnings.catch_warnings():
            # The warning is printed below, without its code location.
            warnings.simplefilter("ignore", RuntimeWarning)
            index = Index(self.path, recipe, **options)
        if (warning := unfinished_warning(index.path)) is not None:
            click.echo(f"note: {warning}", err=True)
        return index


def on_index(command: Any, shown: str = "PATH", wanted: str | None = "") -> Any:
    """Add PATH, --url and --prefix, of which a command gets `on`, a :class:`Target`; None checks no other arguments."""

    @wraps(command)
    def run(places: tuple[str, ...], url: str | None, prefix: str | None, **options: Any) -> Any:
        path, rest = ("", places) if url is not None else (places[0] if places else "", places[1:])
        if url is None and not path:
            raise click.UsageError("Missing argument 'PATH' (or --url).")
        on = Target(path, rest, url, prefix)
        if wanted is not None:
            on.check(wanted)
        return command(on=on, **options)

    return click.argument("places", nargs=-1, metavar=shown)(target_options(run))


# Maximum number of documents per transaction.
MOST_AT_ONCE = 10_000


@dataclass
class Tally:
    """Counts of the documents read."""

    num_documents: int = 0
    num_new: int = 0
    num_added: int = 0
    num_bad_rows: int = 0
    # Files of directories and globs that were not read
    skipped: tuple[str, ...] = ()
    # Checks the number of bad rows against its limit
    bad_rows: "BadRowTally | None" = None
    # Note about the bad rows for the user
    note: str | None = None


@dataclass(frozen=True)
class GivenDocuments:
    """Consecutive documents of an input."""

    texts: "Texts"
    ids: list[str | None]
    name: str
    # Line or row of each document, from 0
    lines: list[int]

    def part(self, rows: slice) -> "GivenDocuments":
        """Return the documents of a slice of rows."""
        import numpy as np

        texts = self.texts.take(np.arange(len(self.ids))[rows])
        return GivenDocuments(texts, self.ids[rows], self.name, self.lines[rows])


def given_documents(
    inputs: tuple[str, ...],
    recipe: "Recipe",
    options: dict[str, Any],
    tally: Tally,
    *,
    needs_ids: bool,
    most_at_once: int = MOST_AT_ONCE,
) -> Iterator[GivenDocuments]:
    """Yield the documents of all inputs in order; lines of standard input as soon as they arrive."""
    from likewise.io.inputs import find_inputs
    from likewise.io.lines.jsonl import JsonlStream
    from likewise.io.output.whole import scratch_directory
    from likewise.io.places import Watch
    from likewise.io.source.source import BadRowTally, each_piece

    run = take_run(options | {"duplicate_ids": "allow"})
    rules = run.read_rules(recipe)
    tally.bad_rows = BadRowTally(run.run_rules().max_bad_rows)
    with scratch_directory() as work:
        if inputs == ("-",) and run.format_for(recipe) in (None, "jsonl"):
            stream = JsonlStream(sys.stdin.buffer, "stdin", rules)
            for piece in stream.pieces(work):
                yield from _checked(piece, stream, 0, run, tally, most_at_once, needs_ids=needs_ids)
            tally.note = tally.bad_rows.finish()
            return
        found = find_inputs(
            list(inputs),
            rules,
            file_format=run.format_for(recipe),
            delimiter=run.delimiter,
            stdin=run.stdin,
            spool_directory=work,
        )
        watch = Watch(found.files)
        tally.skipped = found.skipped
        for file in found.files:
            for first_line, piece in each_piece(file, _PIECE_BYTES, work):
                yield from _checked(piece, file, first_line, run, tally, most_at_once, needs_ids=needs_ids)
        watch.check()
        tally.note = tally.bad_rows.finish()


_PIECE_BYTES = 1 << 20


def _checked(
    piece: "Piece",
    source: "Source | JsonlStream",
    first_line: int,
    run: "FileRun",
    tally: Tally,
    most_at_once: int,
    *,
    needs_ids: bool,
) -> Iterator[GivenDocuments]:
    """Yield the documents of a piece in parts of at most `most_at_once`; raise at a bad row after those before it."""
    import numpy as np

    from likewise.io.source.source import BadRow
    from likewise.job.reading import refusal

    lines = piece.lines.astype(np.int64) + first_line
    bad_line = None
    if piece.bad_rows and run.on_error == "fail":
        bad_line = piece.bad_rows[0].line + first_line
    chosen = np.arange(len(lines))
    if needs_ids and run.on_error == "skip":
        chosen = np.flatnonzero(piece.has_id)
        tally.num_bad_rows += len(lines) - len(chosen)
    elif needs_ids and not piece.has_id.all():
        without = int(lines[int(np.argmin(piece.has_id))])
        bad_line = without if bad_line is None else min(bad_line, without)
    end = len(lines) if bad_line is None else int(np.searchsorted(lines, bad_line))
    ids: list[str | None] = list(piece.ids.to_list())
    chosen = chosen[chosen < end]
    for start in range(0, len(chosen), most_at_once):
        rows = chosen[start : start + most_at_once]
        own = [ids[row] if piece.has_id[row] else None for row in rows.tolist()]
        yield GivenDocuments(piece.texts.take(rows), own, str(source.name), lines[rows].tolist())
    tally.num_bad_rows += len(piece.bad_rows)
    if tally.bad_rows is not None:
        num_without_id = len(lines) - len(chosen) if needs_ids and run.on_error == "skip" else 0
        first = piece.bad_rows[0] if piece.bad_rows else None
        if first is None and num_without_id:
            first = BadRow(int(np.flatnonzero(piece.has_id == 0)[0]), 0, 0, "the row has no id")
        first = None if first is None else first._replace(line=first.line + first_line)
        num_bad = sum(bad.num_lines for bad in piece.bad_rows) + num_without_id
        if bad_line is None:
            tally.bad_rows.add_rows(source.name, len(chosen), num_bad, first)
    if bad_line is not None:
        bad = next((bad for bad in piece.bad_rows if bad.line + first_line == bad_line), None)
        if bad is not None:
            raise refusal(source, bad._replace(line=bad_line))
        reason = "the row has no id; choose its field with --id-field, or skip such rows with --on-error skip"
        raise InvalidInput(reason, source.name, bad_line + 1)


def say_tally(tally: Tally, *, quiet: bool) -> None:
    """Print the counts to stderr."""
    if quiet:
        return
    added = f", {tally.num_added:,} added" if tally.num_added else ""
    bad = f"; {counted(tally.num_bad_rows, 'bad row')} skipped" if tally.num_bad_rows else ""
    click.echo(f"{counted(tally.num_documents, 'document')}: {tally.num_new:,} new{added}{bad}", err=True)
    if tally.note is not None:
        click.echo(f"note: {tally.note}", err=True)
    for line in skipped_lines(tally.skipped):
        click.echo(line, err=True)


def write_lines(rows: Iterable[dict[str, Any]]) -> None:
    """Write each row as a line of JSON, then flush."""
    # Ids from other sources than files may contain surrogates, which are written as escapes.
    lines = [json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") for row in rows]
    if lines:
        sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
        sys.stdout.buffer.flush()


def write_verdicts(verdicts: Any, ids: list[str | None], tally: Tally) -> None:
    """Write verdicts, each with the id of its document (null if it has none), and count them."""
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


def ids_in(name: str) -> list[str]:
    """Return the ids in a file, one per line; - is standard input."""
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        # Accepts the byte order mark that some editors write.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput("the ids are not UTF-8", "stdin" if name == "-" else name, line) from error
    return [line for line in (line.rstrip("\r") for line in text.split("\n")) if line]
