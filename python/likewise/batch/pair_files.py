"""Pairs and sketches of files, as written by `likewise pairs` and `likewise sketch`."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Unpack

import numpy as np

from likewise.batch.against.references import check_references, find_references
from likewise.batch.budget.timing import Timing
from likewise.batch.decide.pairing import MAX_PAIRS, PairCounts, verified_pairs
from likewise.batch.opening import bounded_run, found_inputs, opened_run, recipe_of_files
from likewise.batch.options import FileRun
from likewise.batch.read.documents import Documents
from likewise.batch.run import RunContext, ordered
from likewise.batch.search.splits import Splits
from likewise.checks import check_integer
from likewise.io.output.pair_files import PairWriter
from likewise.io.output.scratch import scratch_directory
from likewise.io.remote import file_for
from likewise.io.stamps import Watch
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.given import GivenRecipe, RecipeFields, as_recipe
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
    run, report = run or FileRun(), taken(progress)
    check_references(against, recipe, keep_sketches=False)
    rules, timing = run.run_rules(), Timing()
    counts = PairCounts(check_integer("max_pairs", max_pairs, 0, 2**63))
    with ExitStack() as stack:
        is_stream = output == "-" and stdout is not None
        local = None if is_stream else stack.enter_context(file_for(output))
        writer = stack.enter_context(PairWriter(str(local or output), stdout))
        found = stack.enter_context(found_inputs(inputs, recipe, run, local, report))
        work = stack.enter_context(scratch_directory())
        references = find_references(against, recipe, run, local, report)
        found = replace(found, files=(*references.files, *found.files))
        watch = Watch(found.files)
        bounded = bounded_run(found, recipe, run, rules, work, report, writes_copies=False)
        context = RunContext(rules, timing, report)
        opened = stack.enter_context(
            opened_run(found.files, recipe, context, work=work, bounded=bounded, references=references)
        )
        documents, recipe = opened.documents, opened.recipe
        collapsed, threads = ordered(documents, recipe, timing), opened.context.threads
        for batch in verified_pairs(
            documents,
            collapsed,
            recipe,
            threads=threads,
            timing=timing,
            progress=report,
            counts=counts,
            splits=Splits((0, documents.num_references, len(documents))) if against else None,
        ):
            with timing.wall("writing"):
                ids = documents.doc_ids(batch.row_a), documents.doc_ids(batch.row_b)
                writer.write(*ids, batch.similarity, batch.distance)
        watch.check()
        writer.finish()
        return {
            "num_documents": len(documents) - documents.num_references,
            **({"against": _about(against, documents)} if against else {}),
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
            "timings": timing.to_dict(),
        }


def _about(against: Sequence[str | Path], documents: Documents) -> dict[str, object]:
    return {"paths": [str(path) for path in against], "num_documents": documents.num_references}


def sketch_files(
    inputs: Sequence[str | Path] | str | Path,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    output: Path | None = None,
    progress: Progress | bool | None = None,
) -> Sketches:
    """Return the sketches of the documents in files, with their ids."""
    recipe, run, report = as_recipe(recipe), run or FileRun(), taken(progress)
    check_has_sketch(recipe)
    rules, timing = run.run_rules(), Timing()
    with ExitStack() as stack:
        found = stack.enter_context(found_inputs(inputs, recipe, run, output, report))
        context, work = RunContext(rules, timing, report), stack.enter_context(scratch_directory())
        opened = stack.enter_context(opened_run(found.files, recipe, context, work=work, is_compared=False))
        documents = opened.documents
        return Sketches(
            shaped(documents.sketches, opened.recipe),
            opened.recipe,
            documents.is_empty,
            documents.num_features,
            tuple(documents.doc_ids(np.arange(len(documents))).to_pylist()),
        )
