"""The steps of a run over parts of documents before parts are found, and the writing of results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArraySpace
from likewise.batch.about_inputs import told_if_left
from likewise.batch.against.references import reference_files
from likewise.batch.budget.timing import Timing
from likewise.batch.opening import found_inputs
from likewise.batch.options import FileRun
from likewise.batch.parts.collection import Collection
from likewise.batch.parts.writing import bad_rows_of, emptied, num_kept, write_documents, write_emptied
from likewise.batch.write.summary import write_summary
from likewise.errors import InvalidParameter
from likewise.io.inputs import Inputs
from likewise.io.output.directory import EMPTIED, ERRORS, KEPT, OutputDirectory, check_free
from likewise.io.output.evidence import write_evidence
from likewise.io.output.scratch import scratch_directory
from likewise.io.places import check_place
from likewise.io.remote import local_path
from likewise.io.source.bad_rows import write_errors
from likewise.io.source.cut import Cut
from likewise.io.stamps import check_unchanged, stamps
from likewise.progress import Progress, StageFinished, StageStarted
from likewise.recipe.recipe import Recipe


def check_rewriting(run: FileRun) -> None:
    """Raise InvalidParameter for reading options with which texts cannot be rewritten."""
    if run.tokens_field is not None:
        raise InvalidParameter("tokens_field", "does not apply: parts of texts are removed, and tokens are not text")
    if len(run.text_fields) != 1:
        raise InvalidParameter("text_field", "must be a single field, since its text is rewritten")


@dataclass(frozen=True, eq=False)
class OpenedParts:
    """A run over parts with its inputs."""

    # The inputs
    found: Inputs
    # Receives the documents
    collection: Collection
    # Output directory; None for a dry run
    directory: OutputDirectory | None
    # A directory for temporary files
    work: Path
    # Reading options
    run: FileRun
    # Distinguishes the result from others, for descriptions of datasets
    answer: str
    # Receive seconds and events
    timing: Timing
    progress: Progress
    # Raises InvalidInput if an input or a reference has changed since the run started
    check_unchanged: Callable[[], None]

    def write(
        self, cut: Cut, tables: Mapping[str, Iterable[Any]], may_be_empty: NDArray[np.bool_] | None = None
    ) -> dict[str, Any]:
        """Write tables by name, and the documents without the removed parts; return the summary fields about documents.

        Only rows of the cut in `may_be_empty` are checked for having only whitespace left.
        """
        collection, threads = self.collection, self.run.run_rules().threads
        self.progress(StageStarted("writing", 0, "bytes"))
        began = Timing.now()
        with self.timing.wall("writing"):
            dropped = emptied(collection, cut, may_be_empty)
            if self.directory is not None:
                for name, table in tables.items():
                    write_evidence(table, self.work / name)
                write_documents(
                    collection,
                    self.found,
                    cut,
                    dropped,
                    self.work / KEPT,
                    keeps_bad=self.run.on_error == "keep",
                    threads=threads,
                    answer=self.answer,
                )
                write_emptied(collection, dropped, self.work / EMPTIED)
                write_errors(bad_rows_of(collection), self.work / ERRORS)
        self.progress(StageFinished("writing", Timing.now() - began))
        return {
            "num_documents": len(collection) - collection.num_references,
            "num_kept": len(collection) - collection.num_references - len(dropped),
            "num_changed": len(cut.rows) - len(dropped),
            "num_emptied": len(dropped),
            "num_removed_parts": len(cut.starts),
            "num_removed_bytes": cut.num_bytes(),
            "num_bad_rows": sum(map(len, collection.bad_rows[collection.num_reference_files :])),
            "num_blank_lines": collection.num_blank,
            "version": _native.__version__,
            **self._about_inputs(dropped),
        }

    @property
    def saved(self) -> Path | None:
        """Directory for data that a run that continues this one can reuse."""
        return None if self.directory is None else self.directory.parts

    def _about_inputs(self, dropped: NDArray[np.int64]) -> dict[str, Any]:
        first, kept = self.collection.num_reference_files, num_kept(self.collection, dropped)
        sizes, bad_rows = np.diff(self.collection.starts[first:]).tolist(), self.collection.bad_rows[first:]
        return {
            "inputs": [
                {
                    "path": file.name,
                    "num_bytes": file.num_bytes,
                    "num_documents": sizes[number],
                    "num_kept": kept[number],
                    "num_bad_rows": len(bad_rows[number]),
                    **file.facts(),
                }
                for number, file in enumerate(self.found.files)
            ],
            "input_directory": None if self.found.parent is None else str(self.found.parent),
            "skipped_files": list(self.found.skipped),
            **self.found.provenance(),
        }


@contextmanager
def opened_parts(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    recipe: Recipe,
    run: FileRun,
    identity: Mapping[str, object],
    *,
    answer: str,
    needs_texts: bool,
    against: Sequence[str | Path] = (),
    dry_run: bool,
    overwrite: bool,
    fresh: bool,
    progress: Progress,
) -> Iterator[OpenedParts]:
    """Find the inputs of a run over parts and claim its output directory."""
    target = Path(local_path(output))
    _check_references(against)
    if not dry_run:
        check_free(target, overwrite=overwrite)
    with ExitStack() as stack:
        found = stack.enter_context(found_inputs(inputs, recipe, run, target, progress))
        references = tuple(file for path in against for file in reference_files(Path(path), recipe, run, target)[0])
        found_all = replace(found, files=(*references, *found.files))
        read = stamps(found_all)
        directory = None
        if not dry_run:
            whole = {"inputs": read, "version": _native.__version__, **run.identity(), **found.provenance(), **identity}
            opened = OutputDirectory(target, whole, overwrite=overwrite, fresh=fresh)
            directory = stack.enter_context(told_if_left(opened, progress))
        work = directory.work if directory is not None else stack.enter_context(scratch_directory())
        memory_bytes = run.memory_bound()
        collection = Collection(
            found_all.files,
            work,
            num_reference_files=len(references),
            space=ArraySpace(None if memory_bytes is None else work),
            needs_texts=needs_texts,
            most_key_bytes=None if memory_bytes is None else memory_bytes // 4,
        )
        stack.callback(collection.close)
        yield OpenedParts(
            found,
            collection,
            directory,
            work,
            run,
            answer,
            Timing(),
            progress,
            partial(check_unchanged, found_all, read),
        )


def _check_references(against: Sequence[str | Path]) -> None:
    from likewise.index.opening import exists

    for path in against:
        check_place(path, elsewhere="--against supports local runs and files only; copy it to this machine")
        if exists(Path(path)):
            raise InvalidParameter(
                "against", f"{path} is an index, which does not contain texts; give the output of a run, or files"
            )


def finish_parts(opened: OpenedParts, summary: dict[str, Any], options: Mapping[str, object]) -> dict[str, Any]:
    """Complete the summary of a run whose results are written, and rename the outputs into place."""
    summary |= {"options": {**opened.run.identity(), "write": "kept", **options}}
    summary |= {"is_dry_run": opened.directory is None, "timings": opened.timing.to_dict()}
    opened.check_unchanged()
    if opened.directory is not None:
        write_summary(opened.directory.work, summary)
        opened.directory.finish()
    return summary
