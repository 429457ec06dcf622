"""Pairs and sketches of files, as written by `likewise pairs` and `likewise sketch`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Unpack

import numpy as np

from likewise.batch.against.references import check_references, find_references
from likewise.batch.decide.pairing import MAX_PAIRS, PairCounts, verified_pairs
from likewise.batch.opening import bounded_run, opened_run, recipe_of_files
from likewise.batch.run import ordered
from likewise.batch.search.search import Splits
from likewise.errors import check_integer
from likewise.io.output.row_files import PairWriter
from likewise.io.remote import file_for
from likewise.job.options import FileRun
from likewise.job.output import Job
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.fields import RecipeFields
from likewise.recipe.recipe import GivenRecipe, as_recipe
from likewise.stages.sketch import Sketches, check_has_sketch, shaped


@shows_progress
def pair_files(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    against: Sequence[str | Path] = (),
    max_pairs: int = MAX_PAIRS,
    progress: Progress | bool | None = None,
    stdout: BinaryIO | None = None,
    **fields: Unpack[RecipeFields],
) -> dict[str, Any]:
    """Write all verified pairs of the documents in files."""
    recipe = recipe_of_files(recipe, fields, against=against).resolve()
    check_references(against, recipe, keep_sketches=False)
    counts = PairCounts(check_integer("max_pairs", max_pairs, 0, 2**63))
    with Job(None, run or FileRun(), taken(progress)) as job:
        job.target = None if output == "-" and stdout is not None else job.enter(file_for(output))
        writer = job.enter(PairWriter(str(job.target or output), stdout))
        found = job.find(inputs, recipe)
        references = find_references(against, recipe, job.options, job.target, job.context.progress)
        found = replace(found, files=(*references.files, *found.files))
        job.watch(references.files)
        bounded = bounded_run(job, found, recipe, writes_copies=False)
        opened = job.enter(
            opened_run(found.files, recipe, job.context, work=job.work, bounded=bounded, references=references)
        )
        documents, recipe = opened.documents, opened.recipe
        for batch in verified_pairs(
            documents,
            ordered(documents, recipe, job.context),
            recipe,
            opened.context,
            counts=counts,
            splits=Splits((0, documents.num_references, len(documents))) if against else None,
        ):
            with job.context.timing.wall("writing"):
                ids = documents.doc_ids(batch.row_a), documents.doc_ids(batch.row_b)
                writer.write(*ids, batch.similarity, batch.distance)
        job.check_unchanged()
        writer.finish()
        about = {"paths": [str(path) for path in against], "num_documents": documents.num_references}
        return job.finish(
            {
                "num_documents": len(documents) - documents.num_references,
                **({"against": about} if against else {}),
                "num_pairs": counts.num_pairs,
                "num_bad_rows": sum(map(len, documents.bad_rows[documents.num_reference_sources :])),
                "num_blank_lines": documents.num_blank,
                "num_crowded": counts.num_crowded,
                "num_capped": counts.num_capped,
                "recall": recipe.recall_with(counts.num_crowded, counts.num_capped),
                "recipe": recipe.to_dict(),
                "recipe_id": recipe.recipe_id,
                "skipped_files": list(found.skipped),
                **opened.facts,
            }
        )


def sketch_files(
    inputs: Sequence[str | Path] | str | Path,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    output: Path | None = None,
    progress: Progress | bool | None = None,
) -> Sketches:
    """Return the sketches of the documents in files, with their ids."""
    recipe = as_recipe(recipe)
    check_has_sketch(recipe)
    with Job(None, run or FileRun(), taken(progress)) as job:
        job.target = output
        found = job.find(inputs, recipe)
        opened = job.enter(opened_run(found.files, recipe, job.context, work=job.work, is_compared=False))
        documents = opened.documents
        return Sketches(
            shaped(documents.sketches, opened.recipe),
            opened.recipe,
            documents.is_empty,
            documents.num_features,
            tuple(documents.doc_ids(np.arange(len(documents))).to_pylist()),
        )
