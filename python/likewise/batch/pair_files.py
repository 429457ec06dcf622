"""Pairs and sketches of files, and pairs stored to compute what another threshold would have decided.

These are a second search. The pairs that the deciding search compares, and the measurements that estimates save, depend
on the threshold, so a search that also looked below it would decide differently. A separate one cannot change a
verdict. At or above the threshold, it stores the pairs that the run compared, so deciding the stored pairs gives the
run's counts.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Unpack

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowSchema, ArrowTable
from likewise.batch.against.references import check_references, find_references, recipe_of_files
from likewise.batch.decide.pairing import MAX_PAIRS, PairCounts, verified_pairs
from likewise.batch.decide.verification import Verifier, measured
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.run import bounded_run, opened_run, ordered
from likewise.batch.search.opening import open_search
from likewise.batch.search.search import Candidates, Splits
from likewise.errors import InvalidParameter, check_integer
from likewise.io.output.evidence import PAIR_FACTS, NearPairFacts, Places
from likewise.io.output.row_files import PairWriter
from likewise.io.remote import file_for
from likewise.io.tables.columns import number_column
from likewise.job.output import Job
from likewise.job.reading import FileRun, RunContext
from likewise.progress import Progress, shows_progress, stage, taken
from likewise.recipe.fields import RecipeFields
from likewise.recipe.methods import Exact, SimHashDistance
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.recipe.valley import lowest_threshold
from likewise.stages.sketch import Sketches, check_has_sketch, min_equal_slots, shaped

# Pairs whose slots are compared at once.
_PAIRS_AT_ONCE = 1 << 16


def check_floor(floor: float | None, recipe: Recipe, *, is_against: bool = False) -> None:
    """Raise InvalidParameter if pairs from this similarity on cannot be stored in a run of this recipe."""
    if floor is None:
        return
    if isinstance(recipe.sketch, Exact):
        raise InvalidParameter("store_pairs", "method exact measures no similarity; choose another method")
    if is_against:
        raise InvalidParameter(
            "store_pairs",
            "cannot be combined with --against: reference documents are compared only at the run's threshold",
        )
    # A threshold that is not chosen yet may be this low.
    threshold = lowest_threshold(recipe.measure) if recipe.needs_threshold else recipe.least_similarity
    if not 0.0 < floor <= threshold:
        what = "the lowest threshold that auto chooses" if recipe.needs_threshold else "the threshold of the run"
        raise InvalidParameter("store_pairs", f"{floor} given; it must be above 0 and at most {what}, {threshold:g}")


def write_near_pairs(
    documents: Documents,
    recipe: Recipe,
    floor: float,
    path: Path,
    context: RunContext,
) -> dict[str, object]:
    """Write every verified pair with at least this similarity, and return the summary fields about them.

    This is a separate search, so it cannot change a verdict. It uses the bands, or for cosine the radius, of the run,
    which find pairs below the threshold with a lower probability than at it. Hamming-only recipes find all pairs. At or
    above the threshold, the pairs are those that the run compared (with Bloom filters, a few more).
    """
    import pyarrow.parquet as pq

    collapsed = ordered(documents, recipe, context)
    num_distinct = len(collapsed.order) + int(documents.num_empty > 0)
    schema = _pair_schema(
        NearPairFacts(floor, recipe.measure, recipe.group, len(documents), num_distinct, recipe.recipe_id)
    )
    near, lowest = recipe.sketch, {"threshold": floor}
    if isinstance(near, SimHashDistance):
        lowest = {"within": max(d for d in range(near.bits + 1) if near.similarity(d) >= floor)}
    lowered = recipe.replace(**lowest)
    num_pairs = 0
    with (
        stage(context.progress, "storing pairs", len(collapsed.order), "documents") as advance,
        pq.ParquetWriter(path, schema, compression="zstd") as writer,
    ):
        for pairs, similarity, penalty in _found(collapsed, recipe, lowered, context, advance):
            sides = [side.astype(np.int64) for side in (pairs.later, pairs.earlier)]
            places = [documents.places(collapsed.order[side].astype(np.int64)) for side in sides]
            distance = None if pairs.distance is None else pairs.distance.astype(np.int32)
            sizes = np.minimum(*(documents.num_features[collapsed.order[side]] for side in sides)).astype(np.int64)
            writer.write_table(
                _pair_table(schema, (sides[0], sides[1]), (places[0], places[1]), similarity, distance, sizes, penalty)
            )
            num_pairs += len(similarity)
    return {"stored_pairs": {"floor": floor, "num_pairs": num_pairs}}


def _pair_schema(facts: NearPairFacts) -> ArrowSchema:
    """Return the schema of a file of stored pairs, with its facts, which the required similarity needs, as metadata."""
    import pyarrow as pa

    fields = []
    for side in "ab":
        fields += [
            (f"rank_{side}", pa.int64()),
            (f"row_{side}", pa.int64()),
            (f"doc_id_{side}", pa.string()),
            (f"file_{side}", pa.string()),
            (f"offset_{side}", pa.int64()),
            (f"length_{side}", pa.int64()),
        ]
    fields += [("similarity", pa.float64()), ("distance", pa.int32())]
    fields += [("num_features", pa.int64()), ("penalty", pa.float64())]
    return pa.schema(fields, metadata={PAIR_FACTS: json.dumps(facts._asdict(), sort_keys=True).encode()})


def _pair_table(
    schema: ArrowSchema,
    ranks: tuple[NDArray[np.int64], NDArray[np.int64]],
    places: tuple[Places, Places],
    similarity: NDArray[np.float64],
    distance: NDArray[np.int32] | None,
    sizes: NDArray[np.int64],
    penalty: NDArray[np.float64],
) -> ArrowTable:
    """Return stored pairs as an Arrow table: first the document that would be removed, then the one that is kept."""
    import pyarrow as pa

    columns: list[Any] = []
    for rank, place in zip(ranks, places, strict=True):
        columns += [number_column(rank), number_column(place.rows), place.doc_ids, place.files]
        columns += [number_column(place.offsets), number_column(place.lengths)]
    distances = pa.nulls(len(similarity), pa.int32()) if distance is None else number_column(distance)
    columns += [number_column(similarity), distances, number_column(sizes), number_column(penalty)]
    return pa.table(columns, schema=schema)


def _found(
    collapsed: Collapsed,
    recipe: Recipe,
    lowered: Recipe,
    context: RunContext,
    advance: Callable[[int], None],
) -> Iterator[tuple[Candidates, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield matching pairs of positions in order of the later one, with their similarities and penalties."""
    timing = context.timing
    with timing.wall("storing_pairs"):
        # Below the threshold of the run, nearly all pairs of documents with full buckets may match.
        exact_from = None if recipe.threshold is None else recipe.similarity_threshold
        search = open_search(collapsed, lowered, context, exact_from=exact_from)
        crowd = np.zeros(len(collapsed.order), bool)
        crowd[search.joined] = True
    with Verifier(collapsed, lowered, context) as verifier:
        num_positions, max_pairs = len(collapsed.order), collapsed.documents.room.max_pairs
        for found in measured(search, verifier, num_positions, timing, max_pairs, stage="storing_pairs"):
            for block in found.blocks:
                with timing.wall("storing_pairs"):
                    pairs, similarity = block.matching()
                    compared = _were_compared(collapsed, recipe, pairs, similarity)
                    compared |= crowd[pairs.later] & crowd[pairs.earlier]
                if compared.any():
                    pairs = pairs.select(compared)
                    penalty, _ = verifier.differences(pairs.later, pairs.earlier, penalties_only=True)
                    yield pairs, similarity[compared], penalty
            advance(found.high)


def _were_compared(
    collapsed: Collapsed, recipe: Recipe, pairs: Candidates, similarity: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which pairs the run itself measured, or would not have matched."""
    compared = np.ones(len(similarity), bool)
    min_equal = min_equal_slots(recipe)
    if not min_equal:
        return compared
    matching = np.flatnonzero(similarity >= recipe.least_similarity)
    slots, order = shaped(collapsed.documents.sketches, recipe), collapsed.order
    for start in range(0, len(matching), _PAIRS_AT_ONCE):
        part = matching[start : start + _PAIRS_AT_ONCE]
        equal = slots[order[pairs.later[part]]] == slots[order[pairs.earlier[part]]]
        compared[part] = equal.sum(axis=1) >= min_equal
    return compared


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
    if against:
        check_references(recipe)
    counts = PairCounts(check_integer("max_pairs", max_pairs, 0, 2**63))
    with Job(None, run or FileRun(), taken(progress)) as job:
        job.target = None if output == "-" and stdout is not None else job.enter(file_for(output))
        writer = job.enter(PairWriter(str(job.target or output), stdout))
        found = job.find(inputs, recipe)
        references = find_references(against, recipe, job.options, job.target, job.context.progress)
        found = found._replace(files=(*references.files, *found.files))
        job.watch(references.files)
        bounded = bounded_run(job, found, recipe, writes_copies=False)
        opened = job.enter(
            opened_run(found.files, recipe, job.context, work=job.work, bounded=bounded, references=references)
        )
        documents, recipe = opened.documents, opened.recipe
        for batch in verified_pairs(
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
