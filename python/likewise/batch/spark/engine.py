"""Spark as the engine of ``likewise dedup``: files in, an output directory as of a local run out.

Only reading to deciding runs on Spark. Inputs, the output directory, evidence and kept files are those of a local run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise._native import Texts
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.batch.read.fields import check_documents, check_has_field, refusal
from likewise.batch.read.priority import keep_needs
from likewise.batch.run import RunContext, RunRules
from likewise.batch.spark.file_input import PIECE_BYTES, FileInput
from likewise.batch.spark.results import removed_rows
from likewise.batch.spark.rows.arrow_columns import bytes_of, numbers_of, texts_of
from likewise.batch.spark.rows.gathering import sorted_slices
from likewise.batch.spark.run import BAD, TALLY, Run, check_recipe
from likewise.batch.spark.session import open_session
from likewise.batch.spark.sketching import DIGEST_BYTES
from likewise.batch.spark.stages import Stages, spark_failures
from likewise.checks import parse_size
from likewise.io.output.directory import ENGINE_STAGES, PARTS
from likewise.io.source.bad_rows import BadRowTally
from likewise.io.source.source import BadRow, Source
from likewise.progress import Planned, Warned
from likewise.recipe.methods import SimHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.text import BYTE_TOKENS
from likewise.stages.sketch import EMPTY, SHORT


class SparkEngine:
    """Runs deduplication of files on Spark.

    Parameters
    ----------
    master : str
        Where Spark runs: ``local[4]``, ``spark://HOST:7077``, ``yarn``, ``sc://HOST``. A session that already exists in
        this process is used instead.
    checkpoint_dir : str, optional
        A path or URL to which driver and workers can write. Finished stages are stored there so that a run can
        continue. If None, the directory of the run, from which they are deleted at the end.
    driver_memory : str
        Memory limit for SimHash on the driver.

    Notes
    -----
    All workers must see the files under the same paths. The driver needs about 100 bytes of memory per document and
    writes the results.
    """

    def __init__(self, master: str, *, checkpoint_dir: str | None = None, driver_memory: str = "4GB") -> None:
        self._master = master
        self._checkpoint_dir = checkpoint_dir
        self._memory_bytes = parse_size("driver_memory", driver_memory)

    def check(self, recipe: Recipe) -> None:
        """Raise InvalidParameter if a recipe is not supported on Spark."""
        check_recipe(recipe)

    @contextmanager
    def decided(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        context: RunContext,
        *,
        work: Path,
    ) -> Iterator[tuple[Documents, Decision]]:
        """Return documents without sketches, and the verdicts on them (see :class:`likewise.batch.engine.Engine`).

        Raises
        ------
        InvalidInput
            As for a local run.
        InvalidParameter
            If Spark is not installed.
        EngineFailed
            If Spark failed; the error gives the reason.
        """
        directory = self._checkpoint_dir or str((work / PARTS / ENGINE_STAGES).absolute())
        # Java starts for many seconds, in which nothing else can be told.
        context.progress(Planned((f"Spark on {self._master} is starting; finished stages are saved in {directory}",)))
        with spark_failures(directory):
            with context.timing.wall("starting_spark"):
                spark = open_session(self._master)
            yield self._decided(Stages(spark, directory), sources, recipe, context, work)

    def _decided(
        self,
        stages: Stages,
        sources: Sequence[Source],
        recipe: Recipe,
        context: RunContext,
        work: Path,
    ) -> tuple[Documents, Decision]:
        source = FileInput(
            stages.spark,
            sources,
            [_stamp(one) for one in sources],
            fields=keep_needs(recipe.keep)[1],
            has_bytes=recipe.tokens in BYTE_TOKENS,
        )
        run = _Run(
            source,
            recipe,
            stages,
            memory_bytes=self._memory_bytes,
            threads=context.threads,
            progress=context.progress,
            timing=context.timing,
            sources=sources,
            rules=context.rules,
        )
        decision = run.decision()
        for one in sources:
            # What workers unpacked is theirs; kept lines are copied from what is unpacked here.
            for _ in one.unpacking(PIECE_BYTES, work):
                pass
        return run.gathered, decision


class _Run(Run):
    """A run of files, whose documents are gathered on the driver before they are sketched."""

    def __init__(self, *args: Any, sources: Sequence[Source], rules: RunRules, **options: Any) -> None:  # noqa: ANN401
        self._sources = sources
        self._rules = rules
        self._gathered: Documents | None = None
        super().__init__(*args, **options)

    @property
    def gathered(self) -> Documents:
        """The documents on the driver."""
        assert self._gathered is not None
        return self._gathered

    def check_documents(self, frame: DataFrame, documents: DataFrame) -> None:
        """Refuse bad rows and ids that come twice, as a local run does."""
        bad_rows, num_blank = self._others(frame)
        starts = np.zeros(len(self._sources) + 1, np.int64)
        of_part = dict(self.document_facts["starts"])
        starts[-1] = self.num_documents
        for number in range(len(self._sources) - 1, -1, -1):
            starts[number] = of_part.get(number, starts[number + 1])
        self._gathered = self._places(documents, starts, bad_rows, num_blank)
        check_documents(self._gathered)
        tally = BadRowTally(self._rules.max_bad_rows)
        for number, (source, bad) in enumerate(zip(self._sources, bad_rows, strict=True)):
            num_good = int(starts[number + 1] - starts[number])
            tally.add_rows(source.name, num_good, sum(row.num_lines for row in bad), bad[0] if bad else None)
        if (told := tally.finish()) is not None:
            self._progress(Warned(told))
        for number, field in enumerate(keep_needs(self.recipe.keep)[1]):
            if self.num_documents and not documents.where(F.col(f"field{number}") != "").limit(1).count():
                check_has_field(self._gathered, field)
        if self._rules.duplicate_ids == "fail":
            self._gathered.check_ids()

    def decision(self) -> Decision:
        """Return the verdicts in the form of a local run."""
        verdicts, facts = self.verdicts()
        removed, _ = self.stages.frame("removed", lambda: removed_rows(self, verdicts))
        shapes = self.gathered.shapes
        num_features = self.gathered.num_features
        digests = np.zeros((self.num_documents, 2), np.uint64)
        facts_of_rows = self.sketches.select("row", "shape", "num_features", "digest")
        for _, _, table in sorted_slices(facts_of_rows, "row", self.num_documents):
            rows = numbers_of(table.column("row"))
            shapes[rows] = numbers_of(table.column("shape"))
            num_features[rows] = numbers_of(table.column("num_features"))
            digests[rows] = bytes_of(table.column("digest"), DIGEST_BYTES).view("<u8")
        counts = {"num_empty": int((shapes == EMPTY).sum()), "num_short": int((shapes == SHORT).sum())}
        assert counts.items() <= self.sketch_facts.items()
        without = self.sketch_facts.get("num_without_field", {})
        self._gathered = replace(self.gathered, num_without_field=without, digests=digests.reshape(-1))
        parts: list[tuple[NDArray[Any], ...]] = []
        names = ("row", "kept_row", "similarity", "below_threshold")
        is_near = isinstance(self.recipe.sketch, SimHash)
        for _, _, table in sorted_slices(removed, "row", self.num_documents):
            distance = numbers_of(table.column("distance")) if is_near else np.zeros(0, np.int32)
            parts.append((*(numbers_of(table.column(name)) for name in names), distance))
        rows, kept_rows, similarity, below, distance = (
            np.concatenate([np.zeros(0, kind), *(part[place] for part in parts)])
            for place, kind in enumerate((np.int64, np.int64, np.float64, np.bool_, np.int32))
        )
        kept = np.ones(self.num_documents, bool)
        kept[rows] = False
        return Decision(
            kept=kept,
            removed_rows=rows,
            kept_rows=kept_rows,
            similarity=similarity,
            distance=distance if is_near else None,
            below_threshold=below.astype(bool) if self.recipe.group == "components" else None,
            num_candidates=facts.get("num_candidates"),
            num_measured=facts["num_measured"],
            num_capped=facts["num_capped"],
            num_crowded=facts["num_crowded"],
        )

    def _others(self, frame: DataFrame) -> tuple[list[list[BadRow]], int]:
        """Return the bad rows of each source, and the number of blank lines."""
        num_blank = frame.where(F.col("kind") == TALLY).agg(F.sum("offset")).collect()[0][0] or 0
        bad_rows: list[list[BadRow]] = [[] for _ in self._sources]
        rows = frame.where(F.col("kind") == BAD).select("part", "line", "offset", "length", "reason", "number")
        if self._rules.on_error == "fail":
            rows = rows.orderBy("part", "line").limit(1)
        for row in rows.orderBy("part", "line").collect():
            found = BadRow(row["line"], row["offset"], row["length"], row["reason"], row["number"])
            bad_rows[row["part"]].append(found)
        if self._rules.on_error == "fail":
            for source, bad in zip(self._sources, bad_rows, strict=True):
                for first in bad:
                    raise refusal(source, first)
        return bad_rows, int(num_blank)

    def _places(
        self, documents: DataFrame, starts: NDArray[np.int64], bad_rows: list[list[BadRow]], num_blank: int
    ) -> Documents:
        num = self.num_documents
        offsets, lengths, lines = np.zeros(num, np.uint64), np.zeros(num, np.uint32), np.zeros(num, np.uint32)
        has_id, ids = np.zeros(num, bool), [Texts.from_list([])]
        names = ("row", "offset", "length", "line", "has_id", "doc_id")
        for _, _, table in sorted_slices(documents.select(*names), "row", num):
            rows = numbers_of(table.column("row"))
            for name, column in (("offset", offsets), ("length", lengths), ("line", lines), ("has_id", has_id)):
                column[rows] = numbers_of(table.column(name))
            ids += [texts_of(chunk) for chunk in table.column("doc_id").chunks]
        return Documents(
            sources=self._sources,
            starts=starts,
            sketches=np.zeros(0, np.uint8),
            shapes=np.zeros(num, np.uint8),
            num_features=np.zeros(num, np.uint32),
            digests=np.zeros(0, np.uint64),
            offsets=offsets,
            lengths=lengths,
            lines=lines,
            ids=Texts.concat(ids),
            has_id=has_id,
            text_lengths=None,
            fields={},
            bad_rows=bad_rows,
            num_blank=num_blank,
            spool=None,
            spooled=[],
        )


def _stamp(source: Any) -> dict[str, Any]:  # noqa: ANN401 - any file
    """Return what tells whether a file, and what is read of it, is still the same."""
    stat = source.path.stat()
    return {
        "path": str(source.path),
        "num_bytes": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "reader": type(source).__name__,
        "delimiter": getattr(source, "delimiter", None),
        "rules": asdict(source.rules),
    }
