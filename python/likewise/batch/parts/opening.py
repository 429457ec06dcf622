"""Runs over parts of documents: the steps before parts are found, and the writing of results."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArraySpace
from likewise.batch.against.references import reference_files
from likewise.batch.parts.collection import Collection
from likewise.batch.parts.writing import bad_rows_of, emptied, num_kept, write_documents, write_emptied
from likewise.errors import InvalidParameter
from likewise.io.inputs import Inputs
from likewise.io.output.directory import EMPTIED, ERRORS, KEPT
from likewise.io.output.evidence import write_evidence
from likewise.io.places import check_place
from likewise.io.source.bad_rows import write_errors
from likewise.io.source.source import Cut
from likewise.job.options import FileRun
from likewise.job.output import Job, about_files
from likewise.recipe.recipe import Recipe


def check_rewriting(run: FileRun) -> None:
    """Raise InvalidParameter for reading options with which texts cannot be rewritten."""
    if run.tokens_field is not None:
        raise InvalidParameter("tokens_field", "does not apply: parts of texts are removed, and tokens are not text")
    if len(run.text_fields) != 1:
        raise InvalidParameter("text_field", "must be a single field, since its text is rewritten")


class PartsJob(Job):
    """A run over parts of documents; `answer` distinguishes its result from others, for descriptions of datasets."""

    answer: str
    # The inputs, and the documents in them and in the references
    found: Inputs
    collection: Collection

    def open_parts(
        self,
        inputs: Sequence[str | Path] | str | Path,
        recipe: Recipe,
        identity: Mapping[str, object],
        answer: str,
        *,
        needs_texts: bool,
        against: Sequence[str | Path] = (),
    ) -> Collection:
        """Find the inputs, and claim the output directory."""
        _check_references(against)
        self.answer, self.found = answer, self.find(inputs, recipe)
        references = tuple(
            file for path in against for file in reference_files(Path(path), recipe, self.options, self.target)[0]
        )
        found = replace(self.found, files=(*references, *self.found.files))
        self.claim(inputs=self.stamp(found), **self.found.provenance(), **identity)
        memory_bytes = self.options.memory_bound()
        self.collection = Collection(
            found.files,
            self.work,
            num_reference_files=len(references),
            space=ArraySpace(None if memory_bytes is None else self.work),
            needs_texts=needs_texts,
            most_key_bytes=None if memory_bytes is None else memory_bytes // 4,
        )
        self.enter(closing(self.collection))
        return self.collection

    def write_parts(
        self, cut: Cut, tables: Mapping[str, Iterable[Any]], may_be_empty: NDArray[np.bool_] | None = None
    ) -> dict[str, Any]:
        """Write tables by name, and the documents without the removed parts; return the summary fields about documents.

        Only rows of the cut in `may_be_empty` are checked for having only whitespace left.
        """
        collection = self.collection
        with self.writing() as work:
            dropped = emptied(collection, cut, may_be_empty)
            if self.is_written:
                for name, table in tables.items():
                    write_evidence(table, work / name)
                write_documents(
                    collection,
                    self.found,
                    cut,
                    dropped,
                    work / KEPT,
                    keeps_bad=self.options.on_error == "keep",
                    threads=self.context.threads,
                    answer=self.answer,
                )
                write_emptied(collection, dropped, work / EMPTIED)
                write_errors(bad_rows_of(collection), work / ERRORS)
        first, num_own = collection.num_reference_files, len(collection) - collection.num_references
        bad_rows = [len(bad) for bad in collection.bad_rows[first:]]
        return {
            "num_documents": num_own,
            "num_kept": num_own - len(dropped),
            "num_changed": len(cut.rows) - len(dropped),
            "num_emptied": len(dropped),
            "num_removed_parts": len(cut.starts),
            "num_removed_bytes": cut.num_bytes(),
            "num_bad_rows": sum(bad_rows),
            "num_blank_lines": collection.num_blank,
            "version": _native.__version__,
            "inputs": about_files(
                self.found.files,
                num_documents=np.diff(collection.starts[first:]).tolist(),
                num_kept=num_kept(collection, dropped),
                num_bad_rows=bad_rows,
            ),
            "input_directory": None if self.found.parent is None else str(self.found.parent),
            "skipped_files": list(self.found.skipped),
            **self.found.provenance(),
        }

    def finish_parts(self, summary: dict[str, Any], options: Mapping[str, object]) -> dict[str, Any]:
        """Complete the summary of a run whose results are written, and rename the outputs into place."""
        summary |= {
            "options": {**self.options.identity(), "write": "kept", **options},
            "is_dry_run": not self.is_written,
        }
        return self.finish(summary)


def _check_references(against: Sequence[str | Path]) -> None:
    from likewise.index.opening import exists

    for path in against:
        check_place(path, elsewhere="--against supports local runs and files only; copy it to this machine")
        if exists(Path(path)):
            raise InvalidParameter(
                "against", f"{path} is an index, which does not contain texts; give the output of a run, or files"
            )
