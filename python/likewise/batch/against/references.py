"""Reference documents, from earlier runs or plain files, that new documents are compared with.

Reference documents are the first rows and the first positions, so buckets, collapsing and the decision treat them like
others. Only the search starts after their positions, and the outputs omit them. Stored sketches of an earlier run have
the format of the parts of a resumed run.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.batch.against.index import IndexUse
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents, Reference, References
from likewise.batch.read.kept_sketches import open_kept_sketches, recipe_of_run
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.inputs import find_inputs
from likewise.io.output.directory import KEPT, SUMMARY
from likewise.io.output.summaries import check_single_rows, read_summary
from likewise.io.source.source import InputFile
from likewise.job.options import FileRun
from likewise.progress import Progress, Warned
from likewise.recipe.methods import Shingles
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import keep_needs


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


def check_references(against: Sequence[str | Path], recipe: Recipe, *, keep_sketches: bool) -> None:
    """Raise InvalidParameter if the options cannot be combined."""
    if against and recipe.group != "leaders":
        raise InvalidParameter("against", "reference documents cannot be members of groups; remove --group components")
    if keep_sketches and isinstance(recipe.sketch, Shingles):
        raise InvalidParameter(
            "keep_sketches", "method shingles has no sketches; it counts the shingles of all documents in each run"
        )


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


def check_alone(against: Sequence[str | Path], index: IndexUse | None) -> None:
    """Raise InvalidParameter if an index is used or created in addition to reference documents."""
    if against and index is not None and (index.against is not None or index.create is not None):
        raise InvalidParameter("against", "reference documents cannot be combined with an index, existing or new")


def about_references(
    against: Sequence[str | Path], documents: Documents, decision: Decision
) -> dict[str, dict[str, object]]:
    """Return the summary fields about reference documents."""
    if not against:
        return {}
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
