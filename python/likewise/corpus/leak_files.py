"""Near-duplicates between splits in files, as found by `likewise leaks`."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import Path, PurePosixPath
from typing import Any, Unpack

import numpy as np

from likewise._native import __version__
from likewise.batch.decide.pairing import MAX_PAIRS, PairCounts
from likewise.batch.read.documents import Documents
from likewise.batch.read.resume import PARTS_VERSION
from likewise.batch.run import OpenedRun, bounded_run, opened_run
from likewise.batch.write.kept_rows import kept_rows, write_bad_rows, write_files
from likewise.corpus.leaking import LeakedRows, checked_names, tell_containment
from likewise.errors import InvalidInput, InvalidParameter, check_choice, check_integer
from likewise.io.inputs import Inputs
from likewise.io.output.directory import ERRORS, KEPT, LEAKS
from likewise.io.source.source import InputFile, Kept
from likewise.io.tables.datasets import SPLITS
from likewise.job.output import Job, about_files
from likewise.job.reading import FileRun, listed
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.fields import RecipeFields
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.recipe.weights import RECIPE, write_companions

WRITES = ("evidence", "kept")
_NAMED = re.compile(r"([^/=]+)=(.+)", re.DOTALL)


def splits_named(arguments: Sequence[str], option: str = "splits", what: str = "splits") -> dict[str, list[str]]:
    """Return the paths of each split, from arguments NAME=PATH or paths named after their files."""
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
        return self.inputs[0]._replace(
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

    def identity(self, job: Job, recipe: Recipe) -> dict[str, Any]:
        """Return everything about the recipe and the files that must be the same for a run to be continued."""
        # Files of two splits may have the same name.
        inputs = [{**stamp, "path": str(number)} for number, stamp in enumerate(job.stamp(self.all))]
        return {
            "command": "leaks",
            "recipe_id": recipe.recipe_id,
            "recipe": recipe.to_dict(),
            "splits": dict(zip(self.names, np.diff(self.first_files()).tolist(), strict=True)),
            "inputs": inputs,
            "parts": PARTS_VERSION,
            **self.all.provenance(),
        }

    def about(self, documents: Documents) -> list[dict[str, object]]:
        sizes, num_bad = np.diff(documents.starts).tolist(), [len(bad) for bad in documents.bad_rows]
        entries = about_files(self.all.files, num_documents=sizes, num_bad_rows=num_bad)
        splits = [name for name, one in zip(self.names, self.inputs, strict=True) for _ in one.files]
        return [{"split": split, **entry} for split, entry in zip(splits, entries, strict=True)]

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
    """Find near-duplicates between splits in files, and return the summary: counts of each split, recipe and seconds.

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
    names = checked_names(splits)
    if write == "kept" and any(name in (".", "..") or "\0" in name for name in names):
        raise InvalidParameter("splits", "names of splits become names of directories; choose others with NAME=PATH")
    lists = [listed(given) for given in splits.values()]
    if sum(name == "-" for given in lists for name in given) > 1:
        raise InvalidInput("standard input (-) is given twice; give it once")
    with Job(output, run, report, inputs=[*chain(*lists)], overwrite=overwrite, fresh=fresh) as job:
        job.context = job.context.with_rules(job.context.rules._replace(duplicate_ids="allow"))
        tell_containment(recipe, report)
        found = _Splits(names, [job.find(given, recipe) for given in lists])
        found.check()
        bounded = bounded_run(job, found.all, recipe, writes_copies=write == "kept")
        job.claim(**found.identity(job, recipe), write=write)
        opened = job.enter(
            opened_run(found.all.files, recipe, job.context, work=job.work, bounded=bounded, parts=job.parts)
        )
        documents, first_files = opened.documents, found.first_files()
        leaked = LeakedRows(documents, names, documents.starts[first_files].tolist(), documents.room.space)
        if run.duplicate_ids == "fail":
            leaked.check_ids()
        counts = PairCounts(check_integer("max_pairs", max_pairs, 0, 2**63))
        job.table(LEAKS, "leaks", leaked.tables(opened.recipe, opened.context, counts), leaked.schema)
        if job.is_written:
            with job.writing() as work:
                write_bad_rows(documents, work / ERRORS)
                write_companions(opened.recipe, work / RECIPE)
                if write == "kept":
                    _write_kept(found, opened, leaked, run, work / KEPT)
        summary = leaked.summary(opened.recipe, counts)
        summary |= {
            "inputs": found.about(documents),
            "skipped_files": list(found.all.skipped),
            "options": {**run.identity(), "write": write},
            "version": __version__,
            **found.all.provenance(),
            **opened.facts,
        }
        if opened.parts is not None:
            summary |= opened.parts.summary(0)
        return job.finish(summary)


def _write_kept(found: _Splits, opened: OpenedRun, leaked: LeakedRows, run: FileRun, target: Path) -> None:
    """Write the splits after the first without their leaking documents, each to its own directory."""
    documents = opened.documents
    first_files = found.first_files()
    target.mkdir()
    for name, one, first in list(zip(found.names, found.inputs, first_files[:-1], strict=True))[1:]:

        def kept_of(number: int, _: InputFile, *, first: int = first) -> Kept:
            return kept_rows(documents, leaked.kept, first + number, run.on_error, opened.context.threads)

        write_files(one, target / name, kept_of, opened.recipe.recipe_id)
