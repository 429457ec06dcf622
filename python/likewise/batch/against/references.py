"""Reference documents, from earlier runs or plain files, that new documents are compared with, and their counts.

Reference documents are the first rows and the first positions, so buckets, collapsing and the decision treat them like
others. Only the search starts after their positions, and the outputs omit them. Stored sketches of an earlier run have
the format of the parts of a resumed run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.batch.read.ingest import Reference, References
from likewise.batch.read.resume import open_kept_sketches, recipe_of_run
from likewise.batch.write.groups import EarlierGroups
from likewise.errors import InvalidInput, InvalidParameter, counted
from likewise.io.inputs import find_inputs
from likewise.io.output.directory import GROUPS, KEPT, SUMMARY
from likewise.io.output.evidence import INPUT
from likewise.io.output.summaries import check_single_rows, read_summary
from likewise.io.source.source import InputFile
from likewise.io.tables.columns import open_parquet
from likewise.job.reading import FileRun
from likewise.progress import Progress, Warned
from likewise.recipe.fields import RecipeFields
from likewise.recipe.recipe import Recipe, as_recipe
from likewise.recipe.rules import keep_needs
from likewise.stages.sketch import EMPTY

if TYPE_CHECKING:
    from likewise.batch.against.index import IndexUse
    from likewise.batch.spark.files.engine import SparkEngine


def is_finished_run(path: Path) -> bool:
    """Return whether a directory looks like the output of a finished run."""
    return (path / SUMMARY).is_file()


def recipe_of_references(index: Path | None, against: Sequence[str | Path]) -> Recipe | None:
    """Return the recipe of an index, or of the first finished run; None if there is neither."""
    if index is not None:
        from likewise.index import Index

        with Index(index, read_only=True) as opened:
            return opened.recipe
    run = next((Path(path) for path in against if is_finished_run(Path(path))), None)
    return None if run is None else recipe_of_run(run)


def recipe_of_files(
    recipe: object,
    fields: RecipeFields,
    *,
    index: IndexUse | None = None,
    against: Sequence[str | Path] = (),
    engine: SparkEngine | None = None,
) -> Recipe:
    """Return the recipe of a run over files: the given one, that of a preset, or that of fields.

    If none is given, that of the index or finished run `against`, otherwise the preset ``default``; or ``online`` with
    an engine, which cannot count weights or choose a threshold.
    """
    if recipe is None and fields.keys() <= {"keep"}:
        recipe = recipe_of_references(None if index is None else index.against, against)
    return as_recipe(recipe, fields, base="default" if engine is None else "online")


def find_references(
    against: Sequence[str | Path], recipe: Recipe, run: FileRun, output: Path | None, progress: Progress
) -> References:
    """Return the reference documents at some paths."""
    return References(tuple(_reference(Path(name), recipe, run, output, progress) for name in against))


def kept_files(
    path: Path, recipe: Recipe, run: FileRun, output: Path | None = None
) -> tuple[tuple[InputFile, ...], dict[str, Any]]:
    """Return the kept files of a finished run, with its reading options, and its summary."""
    summary = read_summary(path)
    check_single_rows(summary, path)
    options = summary["options"]
    if options.get("write") != "kept" or not (path / KEPT).is_dir():
        raise InvalidInput(
            f"this run wrote no kept documents (--write {options.get('write')}), so its documents cannot be read",
            str(path),
        )
    as_then = FileRun(
        text_fields=tuple(options["text_field"]),
        tokens_field=options.get("tokens_field"),
        id_field=options["id_field"],
        max_document_bytes=options["max_document"],
        file_format=options["format"],
        delimiter=options["delimiter"],
        quote=options["quote"],
        fields=run.fields,
        max_unpacked_bytes=run.max_unpacked_bytes,
        max_unpack_ratio=run.max_unpack_ratio,
    )
    if not any(entry["num_kept"] for entry in summary["inputs"]):
        return (), summary
    for name in (entry["path"] for entry in summary["inputs"] if entry["num_kept"]):
        if not (path / KEPT / name).exists():
            raise InvalidInput("a kept file of this run is missing; repeat the run", str(path / KEPT / name))
    found = find_inputs(
        [path / KEPT],
        as_then.read_rules(recipe),
        file_format=as_then.format_for(recipe),
        delimiter=as_then.delimiter,
        output=output,
    )
    from likewise.io.lines.csv import take_quotes

    take_quotes(found.files, summary["inputs"])
    return found.files, summary


def check_references(recipe: Recipe) -> None:
    """Raise InvalidParameter if a recipe does not apply to reference documents."""
    if recipe.group != "leaders":
        raise InvalidParameter("against", "reference documents cannot be members of groups; remove --group components")


def tell_direction(recipe: Recipe, progress: Progress) -> None:
    """Warn about the direction in which containment is measured."""
    if recipe.measure == "containment":
        progress(
            Warned(
                "with containment, a new document is removed if a document of --against contains it. A new document "
                "that itself contains a document of --against, such as a quoted text or a test question, is kept. "
                "To remove those too, use --measure overlap against a run or files"
            )
        )


def about_references(
    against: Sequence[str | Path], documents: Documents, decision: Decision
) -> dict[str, dict[str, object]]:
    """Return the summary fields about reference documents."""
    num_removed = int(np.count_nonzero(decision.kept_rows < documents.num_references))
    return {
        "against": {
            "paths": [str(path) for path in against],
            "num_documents": documents.num_references,
            "num_removed": num_removed,
        }
    }


def reference_files(
    path: Path, recipe: Recipe, run: FileRun, output: Path | None
) -> tuple[tuple[InputFile, ...], dict[str, Any] | None]:
    """Return the files of reference documents; for a finished run, its kept files and its summary."""
    if output is not None and path.exists() and path.resolve().is_relative_to(output.resolve()):
        raise InvalidInput(
            "the run would overwrite its --against documents; choose another directory with -o", str(path)
        )
    if is_finished_run(path):
        return kept_files(path, recipe, run, output)
    rules, form = run.read_rules(recipe), run.format_for(recipe)
    return find_inputs([path], rules, file_format=form, delimiter=run.delimiter, output=output).files, None


def _reference(path: Path, recipe: Recipe, run: FileRun, output: Path | None, progress: Progress) -> Reference:
    files, summary = reference_files(path, recipe, run, output)
    if summary is None:
        return Reference(files)
    if not files:
        return Reference((), run=path)
    sketches = open_kept_sketches(path, files, recipe)
    if sketches is None:
        progress(
            Warned(
                f"{path} has no stored sketches (--keep-sketches), so its kept documents are read and sketched again"
            )
        )
    return Reference(files, sketches, keep_needs(summary["recipe"].get("keep", "first"))[1], path)


_NEEDED = ("kept_source", "kept_run", "kept_position", "group_size")
_TAKEN = ("group_size", "first_seen", "last_seen", "new_values")


def earlier_groups(
    references: References,
    documents: Documents,
    date_field: str | None,
    count_by: str | None,
    progress: Progress,
) -> EarlierGroups | None:
    """Return the counts of the runs among the references, or None; without groups, each kept document counts once."""
    if all(part.run is None for part in references.parts):
        return None
    num = documents.num_references
    run_of, positions = np.full(num, -1, np.int64), np.zeros(num, np.int64)
    keys: list[str] = []
    found: list[tuple[int, Path, Any]] = []
    # Run -> rows in this run of the documents that it kept.
    rows_of: dict[str, NDArray[np.int64]] = {}
    for first_source, part in references.starts():
        if part.run is None:
            continue
        key = key_of_run(part.run)
        if key in rows_of:
            raise InvalidInput("this run is given twice with --against", str(part.run))
        rows = _rows_of_run(part, first_source, documents)
        run_of[rows], positions[rows] = len(keys), np.arange(len(rows))
        rows_of[key] = rows
        if (part.run / GROUPS).is_file():
            found.append((len(keys), part.run, _groups(part.run, date_field, count_by)))
        else:
            told = f"{part.run} wrote no groups, so the copies that it removed are not counted; repeat it with --write "
            progress(Warned(f"{told}kept,groups to count them"))
        keys.append(key)
    tables = list(_counted(found, keys, rows_of, progress))
    _tell_shared(documents, run_of, progress)
    rows = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in tables)])
    order = np.argsort(rows, kind="stable")
    return EarlierGroups(keys, run_of, positions, rows[order], _joined([table for _, table in tables]).take(order))


def key_of_run(run: Path) -> str:
    """Return the identity of a finished run, which does not depend on its directory."""
    return hashlib.blake2b((run / SUMMARY).read_bytes(), digest_size=8).hexdigest()


def _rows_of_run(part: Reference, first_source: int, documents: Documents) -> NDArray[np.int64]:
    """Return the rows in this run of the documents that a run kept, in its order, which may differ from its files'."""
    assert part.run is not None
    numbers = {file.name: first_source + number for number, file in enumerate(part.files)}
    rows = [np.zeros(0, np.int64)]
    for entry in read_summary(part.run)["inputs"]:
        if not entry["num_kept"]:
            continue
        first, end = (int(documents.starts[numbers[entry["path"]] + behind]) for behind in (0, 1))
        if end - first != entry["num_kept"]:
            raise InvalidInput(
                f"the kept files have {end - first:,} documents of {entry['path']}, but the run kept "
                f"{entry['num_kept']:,}; repeat the run",
                str(part.run),
            )
        rows.append(np.arange(first, end))
    return np.concatenate(rows)


def _groups(run: Path, date_field: str | None, count_by: str | None) -> Any:
    """Return the groups of a run that have members in that run."""
    import pyarrow.compute as pc

    path = run / GROUPS
    asked = {"first_seen": ("--date-field", date_field), "new_values": ("--count-by", count_by)}
    wanted = [name for name, (_, field) in asked.items() if field is not None]
    try:
        file = open_parquet(path)
        names = file.schema_arrow.names
        for name in wanted:
            if name not in names:
                option, field = asked[name]
                raise InvalidInput(f"the groups of this run have no {name}; repeat it with {option} {field}", str(run))
        columns = [name for name in (*_NEEDED, *_TAKEN[1:]) if name in names]
        table = file.read(columns=columns)
        return table.filter(pc.greater(table.column("group_size"), 0))
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput(f"cannot read the groups of this run: {error}", str(path)) from error


def _counted(
    found: list[tuple[int, Path, Any]], keys: list[str], rows_of: dict[str, NDArray[np.int64]], progress: Progress
) -> Iterator[tuple[NDArray[np.int64], Any]]:
    """Yield rows in this run, and the counts of each run for them: for its kept documents, and for earlier runs'."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for number, run, table in found:
        is_own = pc.equal(table.column("kept_source"), INPUT)
        own = table.filter(is_own)
        rows = rows_of[keys[number]]
        if len(own) != len(rows):
            raise InvalidInput(
                f"the run has {len(own):,} groups, but kept {len(rows):,} documents; repeat the run", str(run / GROUPS)
            )
        yield rows, own
        of_runs = pc.drop_null(table.filter(pc.invert(is_own)).column("kept_run"))
        num_absent = sum(1 for key in of_runs.to_pylist() if key not in rows_of)
        if num_absent:
            progress(
                Warned(
                    f"{run} counted copies of {counted(num_absent, 'document')} kept by a run that is not given, or "
                    "was replaced since; these copies are not counted: give all earlier runs with --against"
                )
            )
        for key, kept in rows_of.items():
            other = table.filter(pc.fill_null(pc.equal(table.column("kept_run"), pa.scalar(key)), fill_value=False))
            if len(other):
                places = other.column("kept_position").to_numpy()
                if len(places) and not 0 <= places.min() <= places.max() < len(kept):
                    raise InvalidInput("the groups are damaged; repeat the run", str(run / GROUPS))
                yield kept[places], other


def _tell_shared(documents: Documents, run_of: NDArray[np.int64], progress: Progress) -> None:
    """Warn if several runs kept the same documents, which then have a group for each run."""
    rows = np.flatnonzero((run_of >= 0) & (documents.shapes[: len(run_of)] != EMPTY))
    digests = documents.digests.reshape(-1, 2)[rows]
    order = np.lexsort((run_of[rows], digests[:, 1], digests[:, 0]))
    runs, digests = run_of[rows][order], digests[order]
    same = (digests[1:] == digests[:-1]).all(axis=1) & (runs[1:] != runs[:-1])
    if same.any():
        progress(
            Warned(
                f"{counted(int(same.sum()), 'document')} kept by several of the runs given with --against: their "
                "copies are counted in a group for each run. Make each run with --against all earlier runs"
            )
        )


def _joined(tables: list[Any]) -> Any:
    import pyarrow as pa

    taken = [table.select([name for name in _TAKEN if name in table.schema.names]) for table in tables]
    empty = pa.table({"group_size": pa.array([], pa.int64())})
    return pa.concat_tables([empty, *taken], promote_options="default").combine_chunks()
