"""Near-duplicates between splits in files, as found by `likewise leaks`."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any, Unpack

import numpy as np

from likewise._native import __version__
from likewise.batch.about_inputs import told_if_left
from likewise.batch.budget.timing import Timing
from likewise.batch.decide.pairing import MAX_PAIRS, PairCounts
from likewise.batch.opening import OpenedRun, bounded_run, found_inputs, opened_run
from likewise.batch.options import FileRun
from likewise.batch.read.resume import PARTS_VERSION
from likewise.batch.run import RunContext
from likewise.batch.write.kept_rows import kept_places, kept_texts, write_bad_rows
from likewise.batch.write.remote import run_to_store
from likewise.batch.write.summary import store_recipe, write_summary
from likewise.checks import check_choice, check_integer
from likewise.corpus.leaking import LeakedRows, checked_names, tell_containment
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.inputs import Inputs
from likewise.io.kept import write_descriptions, write_kept
from likewise.io.output.directory import ERRORS, KEPT, LEAKS, OutputDirectory, check_free
from likewise.io.output.row_files import RowWriter
from likewise.io.output.scratch import scratch_directory
from likewise.io.remote import is_remote, local_path
from likewise.io.source.files import Kept
from likewise.io.stamps import check_unchanged, stamps
from likewise.io.tables.datasets import SPLITS
from likewise.progress import Progress, StageFinished, StageStarted, shows_progress, taken
from likewise.recipe.given import GivenRecipe, RecipeFields, as_recipe
from likewise.recipe.recipe import Recipe

WRITES = ("evidence", "kept")
_NAMED = re.compile(r"([^/=]+)=(.+)", re.DOTALL)


def splits_named(arguments: Sequence[str], option: str = "splits", what: str = "splits") -> dict[str, list[str]]:
    """Return the paths of each split, from arguments of a command line.

    Parameters
    ----------
    arguments : sequence of str
        Each is ``NAME=PATH``, or a path whose file name without extensions is the name of the split. Paths with the
        same NAME form one split. The directory of a DatasetDict without a NAME means all its splits.
    option, what : str
        The option, and the noun for its values, in errors.

    Raises
    ------
    InvalidParameter
        If two paths without a NAME have the same file name.
    InvalidInput
        If the list of splits of a dataset cannot be read.
    """
    splits: dict[str, list[str]] = {}
    by_file_name: set[str] = set()
    for argument in arguments:
        named = None if Path(argument).exists() else _NAMED.fullmatch(argument)
        if named is not None:
            if named[1] in by_file_name:
                raise InvalidParameter(option, f"the name {named[1]!r} is given twice; choose another NAME=PATH")
            splits.setdefault(named[1], []).append(named[2])
            continue
        of_dataset = _splits_of_dataset(Path(argument))
        found = of_dataset or {_stem(argument): argument}
        for name, path in found.items():
            if name in splits:
                raise InvalidParameter(
                    option, f"two {what} are named {name!r}; name them with NAME=PATH, such as test={path}"
                )
            by_file_name.add(name)
            splits[name] = [path]
    return splits


def _stem(argument: str) -> str:
    if argument == "-":
        return "stdin"
    name = PurePosixPath(argument).name or argument
    return name.split(".")[0] or name


def _splits_of_dataset(path: Path) -> dict[str, str]:
    """Return the directory of each split of a DatasetDict; empty for other paths."""
    if not (path / SPLITS).is_file():
        return {}
    try:
        names = json.loads((path / SPLITS).read_bytes())["splits"]
        if not isinstance(names, list) or not all(isinstance(name, str) and (path / name).is_dir() for name in names):
            raise InvalidInput("it lists splits that are not directories next to it", str(path / SPLITS))
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InvalidInput(f"cannot read the names of the splits: {error}", str(path / SPLITS)) from error
    return {name: str(path / name) for name in names}


@dataclass(frozen=True, eq=False)
class _Splits:
    """The files of all splits, in order."""

    names: list[str]
    inputs: list[Inputs]

    @property
    def all(self) -> Inputs:
        """All files, as the inputs of one run."""
        return replace(
            self.inputs[0],
            files=tuple(file for one in self.inputs for file in one.files),
            skipped=tuple(name for one in self.inputs for name in one.skipped),
            copies=tuple(path for one in self.inputs for path in one.copies),
        )

    def check(self) -> None:
        """Raise InvalidInput if a file is in two splits."""
        seen: dict[Path, str] = {}
        for name, one in zip(self.names, self.inputs, strict=True):
            for file in one.files:
                path = file.path.resolve()
                if seen.setdefault(path, name) != name:
                    raise InvalidInput(
                        f"this file is in the splits {seen[path]} and {name}; give it to one of them", str(path)
                    )

    def first_files(self) -> list[int]:
        """Return the number of the first file of each split, and the total number of files."""
        return list(accumulate((len(one.files) for one in self.inputs), initial=0))


@shows_progress
def leak_files(
    splits: Mapping[str, Sequence[str | Path] | str | Path],
    output: str | Path | None = None,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    write: str = "evidence",
    max_pairs: int = MAX_PAIRS,
    overwrite: bool = False,
    fresh: bool = False,
    progress: Progress | bool | None = None,
    **fields: Unpack[RecipeFields],
) -> dict[str, Any]:
    """Find near-duplicates between splits in files.

    Parameters
    ----------
    splits : mapping of str to path or sequence of paths
        Files, directories or globs of each split. The first split is the training set.
    output : path, optional
        Directory for ``leaks.parquet`` (the pairs) and ``summary.json``. Nothing is written if None.
    recipe, run, progress, **fields
        As for :func:`likewise.dedup_files`.
    write : {"evidence", "kept"}
        With ``kept``, the splits after the first are also written without their leaking documents, in
        ``kept/SPLIT/``.
    max_pairs : int
        Maximum number of pairs; more raise an error.
    overwrite, fresh : bool
        As for :func:`likewise.dedup_files`.

    Returns
    -------
    dict
        The summary: counts of each split, recipe and seconds.

    Raises
    ------
    InvalidInput
        As for :func:`likewise.dedup_files`, and if a file is in two splits.
    InvalidParameter
        If there are fewer than two splits, or more pairs than allowed.
    """
    recipe = as_recipe(recipe, fields, base="default").resolve()
    run, report = run or FileRun(), taken(progress)
    check_choice("write", write, WRITES)
    if output is None and write == "kept":
        raise InvalidParameter("write", "requires an output directory; give one with -o")
    if write != "kept" and run.on_error == "keep":
        raise InvalidParameter("on_error", "keep copies bad rows to the output; it requires --write kept")
    if output is not None and is_remote(output):
        return run_to_store(
            str(output),
            [path for given in splits.values() for path in ([given] if isinstance(given, str | Path) else given)],
            lambda local: leak_files(
                splits, local, recipe, run=run, write=write, max_pairs=max_pairs, progress=progress
            ),
            overwrite=overwrite,
        )
    target = None if output is None else Path(local_path(output))
    names = checked_names(splits)
    if write == "kept" and any(name in (".", "..") or "\0" in name for name in names):
        raise InvalidParameter("splits", "names of splits become names of directories; choose others with NAME=PATH")
    if target is not None:
        check_free(target, overwrite=overwrite)
    tell_containment(recipe, report)
    rules = replace(run.run_rules(), duplicate_ids="allow")
    context = RunContext(rules, Timing(), report)
    with ExitStack() as stack:
        lists = [[given] if isinstance(given, str | Path) else list(given) for given in splits.values()]
        if sum(name == "-" for given in lists for name in given) > 1:
            raise InvalidInput("standard input (-) is given twice; give it once")
        inputs = [stack.enter_context(found_inputs(given, recipe, run, target, report)) for given in lists]
        found = _Splits(names, inputs)
        found.check()
        before = stamps(found.all)
        directory = None
        if target is not None:
            identity = _identity(recipe, run, found, before, write)
            directory = OutputDirectory(target, identity, overwrite=overwrite, fresh=fresh)
        work = stack.enter_context(scratch_directory()) if directory is None else directory.work
        # Make all checks before entering the directory, which deletes existing content.
        bounded = bounded_run(found.all, recipe, run, rules, work, report, writes_copies=write == "kept")
        if directory is not None:
            stack.enter_context(told_if_left(directory, report))
        parts = None if directory is None else directory.parts
        opened = stack.enter_context(
            opened_run(found.all.files, recipe, context, work=work, bounded=bounded, parts=parts)
        )
        documents, first_files = opened.documents, found.first_files()
        leaked = LeakedRows(documents, names, documents.starts[first_files].tolist(), documents.room.space)
        if run.duplicate_ids == "fail":
            leaked.check_ids()
        counts = PairCounts(check_integer("max_pairs", max_pairs, 0, 2**63))
        tables = leaked.tables(opened.recipe, opened.context, counts)
        if directory is None:
            for _ in tables:
                pass
        else:
            with RowWriter(str(work / LEAKS), "leaks", leaked.schema) as writer:
                for table in tables:
                    writer.write_table(table)
                writer.finish()
            directory.check_own()
            report(StageStarted("writing", 0, "bytes"))
            began = Timing.now()
            with context.timing.wall("writing"):
                write_bad_rows(documents, work / ERRORS)
                store_recipe(opened.recipe, found.all, work)
                if write == "kept":
                    _write_kept(found, opened, leaked, run, work / KEPT)
            report(StageFinished("writing", Timing.now() - began))
        check_unchanged(found.all, before)
        summary = leaked.summary(opened.recipe, counts) | _about(found, opened, run, write) | opened.facts
        if opened.parts is not None:
            summary |= opened.parts.summary(0)
        summary["timings"] = context.timing.to_dict()
        if directory is not None:
            write_summary(work, summary)
            directory.finish()
    return summary


def _identity(
    recipe: Recipe, run: FileRun, found: _Splits, stamps_now: list[dict[str, object]], write: str
) -> dict[str, Any]:
    return {
        "command": "leaks",
        "recipe_id": recipe.recipe_id,
        "recipe": recipe.to_dict(),
        "splits": dict(zip(found.names, np.diff(found.first_files()).tolist(), strict=True)),
        # Files of two splits may have the same name.
        "inputs": [{**stamp, "path": str(number)} for number, stamp in enumerate(stamps_now)],
        "write": write,
        "version": __version__,
        "parts": PARTS_VERSION,
        **run.identity(),
        **found.all.provenance(),
    }


def _about(found: _Splits, opened: OpenedRun, run: FileRun, write: str) -> dict[str, Any]:
    """Return the summary's entries about the files."""
    documents, inputs, number = opened.documents, [], 0
    for name, one in zip(found.names, found.inputs, strict=True):
        for file in one.files:
            inputs.append(
                {
                    "split": name,
                    "path": file.name,
                    "num_bytes": file.num_bytes,
                    "num_documents": int(documents.starts[number + 1] - documents.starts[number]),
                    "num_bad_rows": len(documents.bad_rows[number]),
                    **file.facts(),
                }
            )
            number += 1
    return {
        "inputs": inputs,
        "skipped_files": list(found.all.skipped),
        "options": {**run.identity(), "write": write},
        "version": __version__,
        **found.all.provenance(),
    }


def _write_kept(found: _Splits, opened: OpenedRun, leaked: LeakedRows, run: FileRun, target: Path) -> None:
    """Write the splits after the first without their leaking documents, each to its own directory."""
    documents, recipe = opened.documents, opened.recipe
    first_files = found.first_files()
    target.mkdir()
    for name, one, first in list(zip(found.names, found.inputs, first_files[:-1], strict=True))[1:]:
        place, num_written = target / name, []
        place.mkdir()
        for number, file in enumerate(one.files, first):
            offsets, lengths = kept_places(documents, leaked.kept, number, run.on_error)
            texts = kept_texts(documents, leaked.kept, number, run.on_error)
            write_kept(file, place / file.name, Kept(offsets, lengths, opened.context.threads, texts, None))
            num_written.append(len(offsets))
        write_descriptions(one, place, num_written, recipe.recipe_id)
