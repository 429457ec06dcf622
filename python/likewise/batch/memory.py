"""The plan of a run with a memory limit: memory, disk space and duration."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from likewise.arrays import ArraySpace
from likewise.batch.budget.room import Room
from likewise.errors import InvalidParameter
from likewise.io.source.source import InputFile
from likewise.job.output import Job
from likewise.recipe.methods import Bloom, MinHash, Shingles, SimHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import fields_read
from likewise.recipe.valley import lowest_threshold
from likewise.stages.bands import sketch_bytes
from likewise.stages.weights import MOST_SAMPLED_BYTES

_NUM_LOOKED_AT = 32

# Bytes of the interpreter with NumPy, PyArrow and this package; and per thread that reads and sketches.
_BASE_BYTES = 64_000_000
_BYTES_A_THREAD = 24_000_000
# Additional bytes that verification, candidate search and writing need for reasonable speed.
_LEAST_WORK_BYTES = 64_000_000
# Minimum bytes for the joins of a search by distance that works in limited blocks.
_LEAST_TABLES_BYTES = 8_000_000
_BYTES_A_FILE = 2_500
# Bytes of a pair while it is found, sorted and measured; of a row of evidence with its ids.
_BYTES_A_PAIR = 100
_BYTES_A_ROW = 700
_MOST_SETS_BYTES = 1_000_000_000
_MOST_PAIRS = 1 << 22
_MOST_ROWS = 1 << 20
# Bytes of a field value for `keep`, as text and as a number or date; of a location in the spool.
_BYTES_A_FIELD = 400
_BYTES_A_SPOOLED = 8
# Bytes of the sample that is counted, which is copied once, and minimum bytes for counting.
_SAMPLE_BYTES = 9 * MOST_SAMPLED_BYTES // 4
_LEAST_COUNTING_BYTES = 32_000_000
# Bytes of a document's columns in addition to its sketch, with a typical id; bytes in files for ordering and deciding.
_COLUMN_BYTES = 80
_ORDER_BYTES = 100
# Share of (document, band) entries whose bucket has other documents, and bytes of each on disk.
_MEETING_SHARE = 0.25
_BYTES_A_MEETING = 16
# Bytes of text that a thread reads, sketches, verifies and writes per second; seconds per document and band.
_TEXT_BYTES_A_SECOND = 50e6
_SECONDS_A_BUCKET = 60e-9


def estimated_documents(files: Sequence[InputFile]) -> tuple[int, int]:
    """Return the approximate number of documents and bytes of text, estimated from some files."""
    text_bytes = sum(file.text_bytes() for file in files)
    step = max(1, len(files) // _NUM_LOOKED_AT)
    num_looked, bytes_looked = 0.0, 0.0
    for file in files[::step]:
        num_looked += file.estimated_documents()
        bytes_looked += file.text_bytes()
    return int(num_looked * text_bytes / bytes_looked) if bytes_looked else 0, int(text_bytes)


class MemoryPlan(NamedTuple):
    """Predicted resources of a run with a memory limit."""

    # Limit of anonymous memory
    memory_bytes: int
    # Number of threads; fewer than requested if memory is too small for their buffers
    threads: int
    # Number of documents in all inputs; an estimate until they are read
    num_documents: int
    is_estimated: bool
    # Bytes of the inputs, decompressed
    text_bytes: int
    # Memory used during the whole run: the process, threads, and data of each document
    held_bytes: int
    # Number of passes over the sketches for candidates. SimHash: number of blocks, each joined with earlier ones.
    num_passes: int
    # Maximum bytes in the work directory, including the output
    disk_bytes: int
    # Approximate duration of the whole run, on two current cores
    seconds: float
    # Part of `held_bytes`: the joins of a search by distance that works in limited blocks
    tables_bytes: int | None = None

    @property
    def work_bytes(self) -> int:
        """Memory that stages may use in addition to `held_bytes`."""
        return self.memory_bytes - self.held_bytes

    def room(self, work: Path) -> Room:
        """Return the memory limits of stages, with columns in files of a directory."""
        return Room(
            space=ArraySpace(work),
            sets_bytes=min(_MOST_SETS_BYTES, self.work_bytes * 2 // 5),
            max_pairs=min(_MOST_PAIRS, self.work_bytes // (4 * _BYTES_A_PAIR)),
            rows_at_once=min(_MOST_ROWS, self.work_bytes // (4 * _BYTES_A_ROW)),
            buckets_bytes=self.work_bytes * 4 // 5,
            crowd_bytes=self.work_bytes * 3 // 10,
            tables_bytes=self.tables_bytes,
            weighing_bytes=self.work_bytes - _SAMPLE_BYTES,
            held_bytes=0,
        )

    def lines(self) -> tuple[str, ...]:
        """Return a description of the plan."""
        about = "about " if self.is_estimated else ""
        passes = f"{self.num_passes} passes over the sketches" if self.num_passes > 1 else "one pass over the sketches"
        return (
            f"{about}{self.num_documents:,} documents, {self.text_bytes / 1e6:,.0f} MB of input, "
            f"{self.threads} threads",
            f"memory: at most {self.memory_bytes / 1e6:,.0f} MB, {self.held_bytes / 1e6:,.0f} MB of it for the whole "
            f"run and {self.work_bytes / 1e6:,.0f} MB shared by the stages in turn",
            f"disk: about {self.disk_bytes / 1e6:,.0f} MB in the work directory; {passes}; "
            f"about {max(1, round(self.seconds / 60)):,} min",
        )

    def to_dict(self) -> dict[str, object]:
        """Return the plan as JSON values."""
        return {
            "memory_bytes": self.memory_bytes,
            "threads": self.threads,
            "held_bytes": self.held_bytes,
            "disk_bytes": self.disk_bytes,
            "num_passes": self.num_passes,
            "predicted_s": round(self.seconds, 1),
        }


class _Task(NamedTuple):
    """The inputs and settings that a plan is for."""

    recipe: Recipe
    memory_bytes: int
    threads: int
    num_files: int
    text_bytes: int
    copied_bytes: int
    spooled_share: float
    format_bytes: int
    fields: tuple[str, ...] = ()
    unpacked_bytes: int = 0
    keeps_sketches: bool = False

    def plan(self, num_documents: int, *, is_estimated: bool) -> MemoryPlan:
        """Return the plan for a number of documents, with as many threads as memory allows."""
        threads, held, tables = self._division(num_documents, is_estimated=is_estimated)
        parts = max(1, -(-60 * threads * num_documents // max(1, (self.memory_bytes - held) * 4 // 5)))
        sketches = num_documents * sketch_bytes(self.recipe)
        # Sketches are stored twice, once for a run that continues this one.
        disk = sketches + num_documents * (2 * _COLUMN_BYTES + _ORDER_BYTES) + self.unpacked_bytes
        searched = sketches
        seconds = self.text_bytes / (_TEXT_BYTES_A_SECOND * threads)
        num_passes = self._num_blocks(num_documents, tables)
        if isinstance(self.recipe.sketch, MinHash):
            num_bands = self.recipe.sketch.banding[0]
            num_passes = num_bands * parts
            searched += int(num_documents * num_bands * _MEETING_SHARE * _BYTES_A_MEETING)
            seconds += num_documents * num_bands * parts * _SECONDS_A_BUCKET / threads
        return MemoryPlan(
            memory_bytes=self.memory_bytes,
            threads=threads,
            num_documents=num_documents,
            is_estimated=is_estimated,
            text_bytes=self.text_bytes,
            held_bytes=held,
            num_passes=num_passes,
            # What the search stores is freed before the output is written.
            disk_bytes=disk + max(searched, self.copied_bytes + (2 * sketches if self.keeps_sketches else 0)),
            seconds=seconds,
            tables_bytes=tables,
        )

    def _division(self, num_documents: int, *, is_estimated: bool) -> tuple[int, int, int | None]:
        """Return threads, the memory used throughout, and its part for joins of limited blocks."""
        counting = _SAMPLE_BYTES + _LEAST_COUNTING_BYTES if self.recipe.needs_counting else 0
        held, least = 0, max(_LEAST_WORK_BYTES, counting)
        for threads in range(self.threads, 0, -1):
            held = self._held_bytes(num_documents, threads)
            if held + least <= self.memory_bytes:
                return threads, held, None
        if isinstance(self.recipe.sketch, SimHash):
            tables = int(num_documents * self._join_bytes())
            for threads in range(self.threads, 0, -1):
                held = self._held_bytes(num_documents, threads) - tables
                # Time grows with the square of the number of blocks, so joins get most of the free memory.
                share = (self.memory_bytes - held - least) * 3 // 4
                if share >= _LEAST_TABLES_BYTES:
                    return threads, held + share, share
        raise InvalidParameter(
            "memory",
            f"{self.memory_bytes / 1e6:,.0f} MB is too little; {'about ' if is_estimated else ''}{num_documents:,} "
            f"documents with this recipe need {(held + least) / 1e6:,.0f} MB: {self._why(num_documents)}",
        )

    def _num_blocks(self, num_documents: int, tables_bytes: int | None) -> int:
        near = self.recipe.sketch
        if tables_bytes is None or not isinstance(near, SimHash):
            return 1
        from likewise.batch.search.distance import block_length

        return -(-num_documents // block_length(near, tables_bytes))

    def _held_bytes(self, num_documents: int, threads: int) -> int:
        fixed = _BASE_BYTES + threads * _BYTES_A_THREAD + self.num_files * _BYTES_A_FILE
        fixed += 0 if self.recipe.table is None else self.recipe.table.native.num_bytes
        return fixed + threads * self.format_bytes + int(num_documents * self._bytes_a_document(threads))

    def _bytes_a_document(self, threads: int) -> float:
        # Marks of positions: two bits, in two sets per thread.
        held = 0.5 * threads + _BYTES_A_SPOOLED * self.spooled_share
        held += _BYTES_A_FIELD * len(fields_read(self.recipe.keep, self.fields))
        if self.recipe.group == "components":
            held += 4
        return held + self._join_bytes()

    def _join_bytes(self) -> float:
        near = self.recipe.sketch
        if not isinstance(near, SimHash):
            return 0.0
        from likewise.batch.search.distance import join_bytes

        return join_bytes(near)

    def _why(self, num_documents: int) -> str:
        tables, fields = self._join_bytes(), fields_read(self.recipe.keep, self.fields)
        reasons = [f"{_BASE_BYTES / 1e6:,.0f} MB for the process", f"{_BYTES_A_THREAD / 1e6:,.0f} MB per thread"]
        if tables:
            reasons.append(f"{tables:.0f} bytes per fingerprint for joins")
        if fields:
            reasons.append(f"{_BYTES_A_FIELD} bytes per document for each field of --keep, --date-field and --count-by")
        if self.recipe.needs_counting:
            counting = (_SAMPLE_BYTES + _LEAST_COUNTING_BYTES) / 1e6
            reasons.append(f"{counting:,.0f} MB for counting features (likewise weights counts them in a separate run)")
        if self.format_bytes:
            reasons.append(f"{self.format_bytes / 1e6:,.0f} MB more for Parquet or web archives")
        return ", ".join(reasons)


class BoundedRun:
    """The memory limits of a run."""

    def __init__(
        self, job: Job, files: Sequence[InputFile], recipe: Recipe, *, writes_copies: bool, keeps_sketches: bool
    ) -> None:
        memory_bytes = job.options.memory_bound()
        assert memory_bytes is not None
        self._work = job.work
        _check_can_be_bounded(recipe)
        from likewise.io.tables.parquet import PARQUET_TEXT

        num_documents, text_bytes = estimated_documents(files)
        spooled = sum(file.num_bytes for file in files if not file.can_read_again)
        packed = sum(file.unpacked_bytes() for file in files)
        copied = sum(file.num_bytes for file in files) if writes_copies else 0
        self._task = _Task(
            recipe=_planned(recipe),
            memory_bytes=memory_bytes,
            threads=job.context.threads,
            num_files=len(files),
            text_bytes=text_bytes,
            copied_bytes=copied,
            spooled_share=spooled / max(1, sum(file.num_bytes for file in files)),
            format_bytes=max((file.work_bytes() for file in files), default=0),
            fields=job.options.fields,
            unpacked_bytes=int(packed + PARQUET_TEXT * spooled),
            keeps_sketches=keeps_sketches,
        )
        self.plan = self._task.plan(num_documents, is_estimated=True)
        self._check_disk()

    @property
    def room(self) -> Room:
        """Memory limits of stages, as far as known."""
        return self.plan.room(self._work)

    def settle(self, num_documents: int, recipe: Recipe) -> Room:
        """Return the memory limits for the actual number of documents and the recipe with its weights."""
        task = self._task._replace(recipe=_planned(recipe), threads=self.plan.threads)
        plan = task.plan(num_documents, is_estimated=False)
        # Threads that read are already running.
        self.plan = plan._replace(threads=self.plan.threads)
        return self.room

    def _check_disk(self) -> None:
        # The run creates its directory after this check.
        existing = next(path for path in (self._work, *self._work.absolute().parents) if path.exists())
        # Files of an unfinished run are reused or deleted.
        found = sum(path.stat().st_size for path in self._work.rglob("*") if path.is_file())
        free = shutil.disk_usage(existing).free + found
        if self.plan.disk_bytes > free:
            raise InvalidParameter(
                "memory",
                f"the run needs about {self.plan.disk_bytes / 1e9:,.1f} GB of disk space in {self._work.parent}, but "
                f"only {free / 1e9:,.1f} GB are free; free some space, or choose another output directory",
            )


def plan_of(recipe: Recipe, num_documents: int, document_bytes: int, memory_bytes: int, threads: int) -> MemoryPlan:
    """Return the plan of a run over that many documents in one file of JSON Lines, which writes the kept ones."""
    _check_can_be_bounded(recipe)
    text_bytes = num_documents * document_bytes
    task = _Task(_planned(recipe), memory_bytes, threads, 1, text_bytes, text_bytes, 0.0, 0)
    return task.plan(num_documents, is_estimated=True)


def _check_can_be_bounded(recipe: Recipe) -> None:
    if isinstance(recipe.sketch, Shingles | Bloom):
        raise InvalidParameter(
            "memory",
            f"method {recipe.method} keeps lists of all documents in memory without a limit; remove --memory, or use "
            "method minhash or simhash",
        )


def _planned(recipe: Recipe) -> Recipe:
    """Return the recipe to plan for: the most expensive one, if the threshold is not chosen yet."""
    return recipe.replace(threshold=lowest_threshold(recipe.measure)).resolve() if recipe.needs_threshold else recipe
