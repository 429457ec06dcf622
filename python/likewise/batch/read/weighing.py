"""The first of two passes: data about all documents that a recipe needs before sketching."""

import contextlib
import json
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from likewise import checks as counts
from likewise._native import Texts
from likewise.batch.budget.timing import Timing
from likewise.batch.read import ingest
from likewise.batch.read.priority import keep_needs
from likewise.batch.read.resume import PART_BYTES
from likewise.batch.read.sketched import HeldDocuments, HeldPiece
from likewise.errors import InvalidInput, LikewiseError
from likewise.io.output.scratch import scratch_for
from likewise.io.source.bad_rows import NO_LIMIT, BadRowLimit, BadRowTally
from likewise.io.source.source import Job, Source
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted, Warned
from likewise.recipe.methods import Bloom
from likewise.recipe.recipe import Recipe
from likewise.stages.filter_size import FilterSize
from likewise.stages.weights import DEFAULT_MEMORY_BYTES, Counter, Weights

# With fewer documents, all features are equally rare.
_LEAST_DOCUMENTS = 2
_JOBS_A_THREAD = 3
_COUNTED, _TABLE = "counted.json", "weights.lww"


def weighed(
    sources: Sequence[Source],
    recipe: Recipe,
    *,
    threads: int,
    timing: Timing,
    progress: Progress,
    work: Path,
    held: HeldDocuments | None = None,
) -> tuple[Sequence[Source], Recipe]:
    """Return sources that can be read again, and the recipe with its weights."""
    if recipe.needs_counting or recipe.needs_filter_bits:
        sources = [source.put_aside(work) for source in sources]
    return sources, counted(sources, recipe, threads=threads, timing=timing, progress=progress, held=held)


def counted(
    sources: Sequence[Source],
    recipe: Recipe,
    *,
    threads: int,
    timing: Timing,
    progress: Progress,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    held: HeldDocuments | None = None,
) -> Recipe:
    """Return the recipe with the data about all documents that it needs: weights, then the size of filters.

    Parameters, Raises
        As for :func:`weighed`; every source must be readable again. `memory_bytes` is the memory limit for counts.
    """
    if recipe.needs_counting:
        table = count_sources(
            sources, recipe, threads=threads, timing=timing, progress=progress, memory_bytes=memory_bytes, held=held
        )
        recipe = recipe.with_table(table)
    if isinstance(recipe.sketch, Bloom) and recipe.sketch.filter_bits is None:
        size = FilterSize(recipe, recipe.sketch)
        _read_into(size, sources, "sizing", threads=threads, timing=timing, progress=progress, on_error="skip")
        recipe = recipe.replace(filter_bits=size.finish())
    return recipe


def count_sources(
    sources: Sequence[Source],
    recipe: Recipe,
    *,
    threads: int,
    timing: Timing,
    progress: Progress,
    memory_bytes: float | str = DEFAULT_MEMORY_BYTES,
    on_error: str = "skip",
    max_bad_rows: BadRowLimit = NO_LIMIT,
    held: HeldDocuments | None = None,
    among: Texts | None = None,
) -> Weights:
    """Return the weights of features by their rarity in all documents."""
    counter = Counter(recipe, memory_bytes, among=among)
    tally = BadRowTally(max_bad_rows)
    held = held if held is not None and held.begin(recipe, needs_lengths=keep_needs(recipe.keep)[0]) else None
    _read_into(
        counter,
        sources,
        "weighing",
        threads=threads,
        timing=timing,
        progress=progress,
        on_error=on_error,
        tally=tally,
        held=held,
    )
    if max_bad_rows is not NO_LIMIT and (told := tally.finish()) is not None:
        progress(Warned(told))
    with timing.wall("weighing"):
        table = counter.finish(held=[] if held is None else held.all_features(), threads=threads)
    # A run on one document has nothing to compare.
    for doubt in doubts_of(table) if not recipe.needs_threshold or table.num_documents >= _LEAST_DOCUMENTS else []:
        progress(Warned(doubt))
    return table


def _read_into(
    counter: Counter | FilterSize,
    sources: Sequence[Source],
    stage: str,
    *,
    threads: int,
    timing: Timing,
    progress: Progress,
    on_error: str,
    tally: BadRowTally | None = None,
    held: HeldDocuments | None = None,
) -> None:
    """Read all documents once and pass their texts to `counter`."""
    began = time.perf_counter()
    progress(StageStarted(stage, sum(source.num_bytes for source in sources), "bytes"))
    waiting: deque[tuple[int, Future[None]]] = deque()
    done = 0
    pool = ThreadPoolExecutor(threads, thread_name_prefix="likewise-count")

    def gather(most_waiting: int) -> None:
        nonlocal done
        while waiting and (len(waiting) > most_waiting or waiting[0][1].done()):
            num_bytes, future = waiting.popleft()
            future.result()
            done += num_bytes
            progress(StageAdvanced(stage, done))

    try:
        # Files decompressed for this pass are deleted after it.
        with scratch_for(sources) as unpacked:
            for number, source in enumerate(sources):
                inner_threads = threads if 0 < source.num_bytes <= ingest.PIECE_BYTES else 1
                # The second pass finds held features by job number.
                for job_number, job in enumerate(source.jobs(ingest.PIECE_BYTES, unpacked)):
                    hold = held if held is not None and held.has_room(source) else None
                    place = number, job_number
                    future = pool.submit(_count, counter, source, job, inner_threads, on_error, tally, hold, place)
                    waiting.append((job.num_bytes, future))
                    gather(_JOBS_A_THREAD * threads)
                gather(0)
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
    timing.add_wall(stage, time.perf_counter() - began)
    progress(StageFinished(stage, time.perf_counter() - began))


def doubts_of(table: Weights) -> list[str]:
    """Return warnings about the reliability of a counted table, one sentence each."""
    doubts = []
    if not table.is_exact:
        doubts.append(
            "the counts do not fit in memory (48 bytes per distinct feature), so they come from a sketch and may be "
            f"too high, by up to {table.excess:,} for all but {table.excess_probability:.1%} of the features. For "
            "exact counts, run likewise weights with a larger --memory."
        )
    if table.num_documents < _LEAST_DOCUMENTS:
        doubts.append(
            f"only {counts.counted(table.num_documents, 'document')} with distinct feature sets; in so few documents, "
            "all features look equally rare"
        )
    return doubts


def _count(
    counter: Counter | FilterSize,
    source: Source,
    job: Job,
    threads: int,
    on_error: str,
    tally: BadRowTally | None,
    held: HeldDocuments | None,
    place: tuple[int, int],
) -> None:
    pieces: list[HeldPiece] = []
    for piece in job.read():
        if piece.bad_rows and on_error == "fail":
            bad = piece.bad_rows[0]
            raise InvalidInput(f"{bad.reason}; fix the row, or use --on-error skip", source.name)
        if tally is not None:
            tally.add(source.name, None, piece)
        if piece.bad_rows:
            # The second pass decides what to do with bad rows.
            held = None
        if held is None or isinstance(counter, FilterSize):
            counter.add(piece.texts, threads=threads)
        elif (features := counter.add(piece.texts, hold=True, threads=threads)) is not None:
            pieces.append(held.piece(piece, features))
    if isinstance(counter, Counter) and (held is None or not held.add(*place, pieces)):
        for one in pieces:
            counter.add_held(one.features)


def weighed_files(
    files: Sequence[Source],
    recipe: Recipe,
    threads: int,
    timing: Timing,
    progress: Progress,
    parts: Path | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    held: HeldDocuments | None = None,
) -> Recipe:
    """Return the recipe with its weights and filter size, each of which may require an additional pass over the files.

    If a directory for parts is given, it stores the counts for a run that continues this one. `held` receives the
    extracted features.
    """
    needs_reading = recipe.needs_counting or recipe.needs_filter_bits
    if parts is not None and (known := known_counts(parts, recipe)) is not None:
        return known
    found = counted(
        files,
        recipe,
        threads=threads,
        timing=timing,
        progress=progress,
        memory_bytes=memory_bytes,
        held=held,
    )
    if parts is not None and needs_reading and sum(file.num_bytes for file in files) >= PART_BYTES:
        _keep(parts, found)
    return found


def _keep(parts: Path, recipe: Recipe) -> None:
    parts.mkdir(exist_ok=True)
    if recipe.table is not None:
        recipe.table.write(parts / _TABLE)
    facts = json.dumps({"filter_bits": recipe.fields["filter_bits"], "has_table": recipe.table is not None})
    unfinished = parts / "counted.unfinished"
    unfinished.write_text(facts, encoding="utf-8", newline="\n")
    unfinished.replace(parts / _COUNTED)


def known_counts(parts: Path, recipe: Recipe) -> Recipe | None:
    """Return the recipe with the counts of an earlier run, if it needs some, and they are stored and undamaged."""
    if not (recipe.needs_counting or recipe.needs_filter_bits):
        return None
    with contextlib.suppress(OSError, ValueError, RecursionError, KeyError, TypeError, LikewiseError):
        facts = json.loads((parts / _COUNTED).read_text(encoding="utf-8"))
        if facts["has_table"]:
            recipe = recipe.with_table(Weights.read(parts / _TABLE))
        return recipe.replace(filter_bits=facts["filter_bits"]) if recipe.needs_filter_bits else recipe
    return None
