"""Reading options of files, which are not part of the recipe."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Literal, NamedTuple, Self, get_args

from likewise.errors import InvalidParameter, check_choice, check_integer, num_threads, take_bytes
from likewise.io.source.source import DEFAULT_MAX_BAD_ROWS, NO_LIMIT, BadRowLimit, ReadRules, TokenRules, bad_row_limit
from likewise.progress import Progress, StageFinished, StageStarted, no_progress
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import BYTE_TOKENS, USER_TOKENS, fields_read, role_names

DuplicateIds = Literal["fail", "allow"]
DUPLICATE_IDS: tuple[DuplicateIds, ...] = get_args(DuplicateIds)
OnError = Literal["fail", "skip", "keep"]
ON_ERROR: tuple[OnError, ...] = get_args(OnError)
MIN_MEMORY_BYTES = 256_000_000
# Memory limit per thread that decompresses: it holds a compressed frame and up to 8 MB of decompressed bytes.
_MEMORY_AN_UNPACKER = 128_000_000
Quote = Literal["none", "double"]
QUOTES: tuple[Quote, ...] = get_args(Quote)

WALL_STAGES = (
    *("starting_spark", "reading_items", "scanning", "weighing", "sizing", "reading_and_sketching"),
    *("choosing_the_threshold", "ordering", "candidates"),
    *("verification", "deciding", "writing"),
)
THREAD_STAGES = ("reading", "tokenizing", "sketching", "spooling", "reading_again", "making_sets")


class RunRules(NamedTuple):
    """The rules of a run in addition to its recipe."""

    threads: int
    on_error: str = "fail"
    duplicate_ids: str = "fail"
    # Maximum number of bad rows among the documents, and among the reference documents
    max_bad_rows: BadRowLimit = NO_LIMIT
    # Fields to read from each row, in addition to those of `keep`
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileRun:
    """Reading options of files."""

    # Names of the text fields, with dots for nested fields; several are joined with a newline
    text_fields: tuple[str, ...] = ("text",)
    # Field with a list of tokens or [token, weight] pairs, for tokens ``user``; text counts where it is empty.
    tokens_field: str | None = None
    # The id field; rows without it are bad. None: ``id`` if there, else ``file:line``; ``"none"``: always that.
    id_field: str | None = None
    # Field whose value names a document; rows with the same value are joined. Only for `dedup`.
    document_by: str | None = None
    on_error: OnError = "fail"
    duplicate_ids: DuplicateIds = "fail"
    # Longer documents are bad rows
    max_document_bytes: int = 64_000_000
    # Number of threads; all processors if None
    threads: int | None = None
    # The stream for ``-`` among the inputs
    stdin: BinaryIO | None = None
    # Format of the inputs whatever their names; binary for tokens ``bytes`` or ``chunks`` if None.
    file_format: str | None = None
    # Field separator of CSV
    delimiter: str | None = None
    # Whether a quote at the start of a CSV field opens a quoted field. If None: yes in CSV; in TSV only if all names
    # of its header are quoted, or its first megabyte has fields with doubled quotes and every quote that opens a
    # field is closed.
    quote: Quote | None = None
    # Maximum of bad rows with ``skip`` or ``keep``: a count (``"100"``) or a share of all (0 to 1, ``"1%"``).
    max_bad_rows: float | str = DEFAULT_MAX_BAD_ROWS
    # Gzip and zstd files that decompress to more bytes, or to more bytes per compressed byte, are rejected
    max_unpacked_bytes: int = 1_000_000_000_000
    max_unpack_ratio: int = 250
    # Fields to read from each row for the outputs of a run, in addition to those of `keep`
    fields: tuple[str, ...] = ()
    # Limit of anonymous memory (at least 256 MB) of runs that decide documents and of pairs; others go to disk.
    memory_bytes: float | str | None = None

    def read_rules(self, recipe: Recipe, *, joins_rows: bool = False) -> ReadRules:
        """Return the rules for reading each file; `joins_rows` if the caller can join rows into documents."""
        if self.document_by is not None and not joins_rows:
            raise InvalidParameter("document_by", "applies only to likewise dedup with an output directory (-o OUT)")
        self._check_tokens(recipe)
        if not isinstance(self.id_field, str | None):
            raise InvalidParameter("id_field", f"{self.id_field!r} is not the name of a field")
        if self.quote is not None:
            check_choice("quote", self.quote, QUOTES)
        check_integer("max_document", self.max_document_bytes, 1, 2**32 - 1)
        check_integer("max_unpacked", self.max_unpacked_bytes, 1, 2**63 - 1)
        check_integer("max_unpack_ratio", self.max_unpack_ratio, 1, 2**31 - 1)
        text_fields = self.text_fields if self.tokens_field is None else (self.tokens_field,)
        # Those that decompress one file: their memory is a small part of the limit.
        bound, threads = self.memory_bound(), num_threads(self.threads)
        fields, roles = fields_read(recipe.keep, self.fields), role_names(recipe.roles)
        return ReadRules(
            text_fields if recipe.only_within is None else (recipe.only_within, *text_fields),
            self.document_by or self.id_field,
            fields,
            self.max_document_bytes,
            self.max_unpacked_bytes,
            self.max_unpack_ratio,
            recipe.markup is not None,
            threads=threads if bound is None else min(threads, bound // _MEMORY_AN_UNPACKER),
            quote=self.quote,
            passes_damage=self.on_error != "fail",
            tokens=TokenRules.of(recipe),
            only_within=recipe.only_within,
            text_without_tokens=self.text_fields,
            roles=roles,
        ).checked()

    def _check_tokens(self, recipe: Recipe) -> None:
        if recipe.takes_tokens and self.tokens_field is None:
            raise InvalidParameter(
                "tokens_field",
                f"required for tokens {USER_TOKENS} and weights own; give the name of the field with the tokens",
            )
        if self.tokens_field is None:
            return
        if not recipe.takes_tokens:
            raise InvalidParameter(
                "tokens_field", f"requires tokens {USER_TOKENS}; the recipe uses tokens {recipe.tokens}"
            )

    def format_for(self, recipe: Recipe) -> str | None:
        """Return the format of the inputs, given these options and the tokens of the recipe."""
        if recipe.tokens in BYTE_TOKENS:
            return self.file_format or "binary"
        if self.file_format == "binary":
            raise InvalidParameter("format", "binary files require --tokens bytes or --tokens chunks")
        return self.file_format

    def memory_bound(self) -> int | None:
        """Return the memory limit in bytes, or None."""
        return None if self.memory_bytes is None else take_bytes("memory", self.memory_bytes, MIN_MEMORY_BYTES)

    def run_rules(self) -> RunRules:
        """Return the other rules of the run."""
        check_choice("on_error", self.on_error, ON_ERROR)
        check_choice("duplicate_ids", self.duplicate_ids, DUPLICATE_IDS)
        threads, limit = num_threads(self.threads), bad_row_limit(self.max_bad_rows)
        return RunRules(threads, self.on_error, self.duplicate_ids, limit, self.fields)

    def identity(self) -> dict[str, object]:
        """Return the options that determine what is read, as JSON values."""
        return {
            "text_field": list(self.text_fields),
            **({} if self.tokens_field is None else {"tokens_field": self.tokens_field}),
            "id_field": self.id_field,
            **({} if self.document_by is None else {"document_by": self.document_by}),
            "on_error": self.on_error,
            "duplicate_ids": self.duplicate_ids,
            "max_document": self.max_document_bytes,
            "format": self.file_format,
            "delimiter": self.delimiter,
            "quote": self.quote,
            **({"fields": list(self.fields)} if self.fields else {}),
        }


class Timing:
    """Sums of seconds by stage. Thread-safe."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._lock = threading.Lock()
        self._wall: dict[str, float] = {}
        self._thread: dict[str, float] = {}

    def add_thread(self, **seconds: float) -> None:
        """Add seconds of one thread by stage."""
        with self._lock:
            for stage, some in seconds.items():
                self._thread[stage] = self._thread.get(stage, 0.0) + some

    @contextmanager
    def wall(self, stage: str) -> Iterator[None]:
        """Measure the body as wall clock time of a stage that does not overlap others."""
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self._wall[stage] = self._wall.get(stage, 0.0) + time.perf_counter() - began

    def to_dict(self) -> dict[str, object]:
        """Return ``total_s``, ``wall_s`` by stage (summing to about the total), ``thread_s`` (sums over threads)."""
        return {
            "total_s": round(time.perf_counter() - self._began, 4),
            "wall_s": {stage: round(self._wall[stage], 4) for stage in WALL_STAGES if stage in self._wall},
            "thread_s": {stage: round(self._thread[stage], 4) for stage in THREAD_STAGES if stage in self._thread},
        }


class RunContext:
    """The shared context of all steps of a run: rules in addition to the recipe; timing and progress receive events."""

    def __init__(self, rules: RunRules, timing: Timing | None = None, progress: Progress = no_progress) -> None:
        self.rules, self.timing, self.progress = rules, timing or Timing(), progress
        self.threads = rules.threads

    def with_rules(self, rules: RunRules) -> Self:
        """Return the same context with other rules."""
        return type(self)(rules, self.timing, self.progress)

    @contextmanager
    def stage(self, name: str, wall: str, unit: str) -> Iterator[None]:
        """Report and measure the body as a stage of unknown size, as a context."""
        began = time.perf_counter()
        self.progress(StageStarted(name, 0, unit))
        with self.timing.wall(wall):
            yield
        self.progress(StageFinished(name, time.perf_counter() - began))
