"""Spark as the engine of ``likewise dedup``: reads files and writes an output directory like a local run.

Workers read the files and write the evidence and the kept files; the driver holds counts. The driver writes groups and
annotated copies, as in a local run, from documents and verdicts that it gathers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise._native import Texts
from likewise.arrays import ArrowTable
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents, id_used_twice
from likewise.batch.read.ingest import check_documents, check_has_field
from likewise.batch.spark.deciding import documents_at
from likewise.batch.spark.files.writing import (
    PIECE_BYTES,
    FileInput,
    content_digests,
    write_evidence_file,
    write_kept_files,
    write_kept_lines,
)
from likewise.batch.spark.results import count_removed, counts_of, evidence, removed_rows
from likewise.batch.spark.rows.arrow_columns import bytes_of, gathered, numbers_of, sorted_slices, texts_of
from likewise.batch.spark.run import BAD, DOCUMENT, TALLY, Run, check_recipe
from likewise.batch.spark.sketching import DIGEST_BYTES
from likewise.batch.spark.stages import Stages, open_session, spark_failures
from likewise.batch.write.evidence import evidence_table, named
from likewise.batch.write.kept_rows import write_errors
from likewise.batch.write.summary import ContentDigest, EngineRun, InputCounts, RunCounts
from likewise.errors import InvalidInput, InvalidParameter, parse_size
from likewise.io.lines.lines import LineFile
from likewise.io.output.directory import ENGINE_STAGES, ERRORS, EVIDENCE, KEPT, PARTS, SUMMARY
from likewise.io.output.evidence import Places
from likewise.io.source.source import BadRow, BadRowTally, InputFile, Source
from likewise.job.reading import RunContext, refusal
from likewise.progress import Planned, Warned
from likewise.recipe.methods import SimHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import BYTE_TOKENS, keep_needs
from likewise.stages.sketch import EMPTY, SHORT

FileRunT = TypeVar("FileRunT", bound="_FileRun")
# Marker of documents whose ids were checked.
_UNIQUE_IDS = "unique-ids"


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
        Memory limit on the driver for pairs that are not decided yet.

    Notes
    -----
    All workers must see the files and the output directory under the same paths. The driver needs no memory per
    document to write kept files and evidence, and about 100 bytes per document for groups and annotated copies. On a
    cluster, output URLs are written by Spark, as directories of text and Parquet.
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
        """Return documents without sketches and the verdicts on them, for outputs that this machine writes."""
        with self._stages(context, self._place_of_stages(work)) as stages:
            run = self._run(_GatheredRun, stages, sources, recipe, context)
            decision = run.decision()
            for one in sources:
                # Workers unpacked files for themselves; kept lines are copied from the files unpacked here.
                for _ in one.unpacking(PIECE_BYTES, work):
                    pass
            yield run.gathered, decision

    def written(
        self,
        sources: Sequence[InputFile],
        recipe: Recipe,
        context: RunContext,
        *,
        work: Path,
        writes_kept: bool,
    ) -> EngineRun:
        """Write evidence, bad rows and kept files to the directory of a run, and return the counts."""
        with self._stages(context, self._place_of_stages(work)) as stages:
            run = self._run(_FileRun, stages, sources, recipe, context)
            return run.written(work.absolute(), writes_kept=writes_kept)

    @property
    def is_on_this_machine(self) -> bool:
        """Whether workers can access all files of this machine."""
        return self._master.startswith("local")

    def stored(
        self,
        sources: Sequence[InputFile],
        recipe: Recipe,
        context: RunContext,
        *,
        url: str,
        writes_kept: bool,
        overwrite: bool,
        summarize: Callable[[EngineRun], dict[str, Any]],
    ) -> dict[str, Any]:
        """Write the outputs below a URL that this machine may not reach, the summary last, and return the summary."""
        if self._checkpoint_dir is None:
            raise InvalidParameter("checkpoint_dir", f"output in {url} requires a checkpoint directory")
        for source in sources if writes_kept else ():
            if not isinstance(source, LineFile) or not source.takes_fields:
                raise InvalidParameter(
                    "output",
                    f"kept rows of {source.name} cannot be written to {url}; use JSON Lines or CSV, --write evidence, "
                    "or an output directory on a disk that all machines share",
                )
        with self._stages(context, self._checkpoint_dir) as stages:
            outputs = Stages(stages.spark, url)
            replaces = outputs.has_lines(SUMMARY)
            if replaces and not overwrite:
                raise InvalidInput(f"{url} contains a finished run; replace it with --overwrite, or choose another URL")
            run = self._run(_FileRun, stages, sources, recipe, context)
            summary = summarize(run.stored(outputs, writes_kept=writes_kept, replaces=replaces))
            outputs.write_lines(SUMMARY, [json.dumps(summary, indent=2, ensure_ascii=False)])
            return summary

    @contextmanager
    def _stages(self, context: RunContext, directory: str) -> Iterator[Stages]:
        """Return the store of finished stages, once Spark has started."""
        # Java takes many seconds to start, during which no other progress can be reported.
        context.progress(Planned((f"Spark on {self._master} is starting; finished stages are saved in {directory}",)))
        with spark_failures(directory):
            with context.timing.wall("starting_spark"):
                spark = open_session(self._master)
            yield Stages(spark, directory)

    def _place_of_stages(self, work: Path) -> str:
        return self._checkpoint_dir or str((work / PARTS / ENGINE_STAGES).absolute())

    def _run(
        self,
        kind: type[FileRunT],
        stages: Stages,
        sources: Sequence[Source],
        recipe: Recipe,
        context: RunContext,
    ) -> FileRunT:
        source = FileInput(
            stages.spark,
            sources,
            [_stamp(one) for one in sources],
            fields=keep_needs(recipe.keep)[1],
            has_bytes=recipe.tokens in BYTE_TOKENS,
        )
        return kind(
            source,
            recipe,
            stages,
            context,
            memory_bytes=self._memory_bytes,
            sources=sources,
        )


@dataclass(frozen=True)
class _InputFacts:
    """Counts of one input, its first bad row, and offset and length of its first document."""

    num_documents: int
    num_with_id: int
    num_bad: int
    num_bad_lines: int
    num_blank: int
    first_bad: BadRow | None
    first: tuple[int, int] | None


class _FileRun(Run):
    """A run of files, with only counts on the driver."""

    def __init__(self, *args: Any, sources: Sequence[Any], **options: Any) -> None:
        self._sources = sources
        super().__init__(*args, **options)

    def check_documents(self, frame: DataFrame, documents: DataFrame) -> None:
        """Reject bad rows and duplicate ids, as a local run does."""
        self._frame = frame
        self._facts = self._facts_of_inputs(frame)
        if self.context.rules.on_error == "fail":
            for source, facts in zip(self._sources, self._facts, strict=True):
                if facts.first_bad is not None:
                    raise refusal(source, facts.first_bad)
        if not self.num_documents:
            check_documents(self._documents_at([None] * len(self._sources), self._bad_rows_of_inputs()))
        tally = BadRowTally(self.context.rules.max_bad_rows)
        for source, facts in zip(self._sources, self._facts, strict=True):
            tally.add_rows(source.name, facts.num_documents, facts.num_bad_lines, facts.first_bad)
        if (told := tally.finish()) is not None:
            self.context.progress(Warned(told))
        for number, field in enumerate(keep_needs(self.recipe.keep)[1]):
            if self.num_documents and not documents.where(F.col(f"field{number}") != "").limit(1).count():
                check_has_field(self._documents_at([facts.first for facts in self._facts]), field)
        self._check_ids(documents)

    def written(self, work: Path, *, writes_kept: bool) -> EngineRun:
        """Decide, let workers write, and return counts."""
        removed, counts = self._removed()
        num_written: list[int] = []

        def write() -> dict[int, int]:
            write_errors(((self._sources[number].name, bad) for number, bad in self._bad_rows()), work / ERRORS)
            if writes_kept:
                num_written.extend(write_kept_files(self._kept_places(removed), self._sources, work / KEPT))
            starts = self.document_facts["starts"] or [(0, 0)]
            return write_evidence_file(evidence(self, removed), self._no_evidence(), work / EVIDENCE, starts)

        return EngineRun(counts, self._input_counts(self._stage("writing", "writing", write)), num_written)

    def stored(self, outputs: Stages, *, writes_kept: bool, replaces: bool) -> EngineRun:
        """Decide, let Spark write outputs, and return counts. With `replaces`, nothing of an earlier run remains."""
        removed, counts = self._removed()
        url = outputs.directory

        def write() -> dict[int, int]:
            if replaces:
                # First the summary: without it, a run that is killed here is not taken for a finished one. Spark cannot
                # delete what this run does not write, so it becomes empty.
                for name in (SUMMARY, *(() if counts.num_bad_rows else (ERRORS,)), *(() if writes_kept else (KEPT,))):
                    outputs.write_lines(name, [])
            if counts.num_bad_rows:
                told = F.struct("file", (F.col("line") + 1).alias("row"), "reason")
                bad = self._frame.where(F.col("kind") == BAD).join(F.broadcast(self._names()), "part")
                bad.orderBy("part", "line").select(F.to_json(told)).write.mode("overwrite").text(f"{url}/{ERRORS}")
            if writes_kept:
                write_kept_lines(self._kept_places(removed), self._sources, f"{url}/{KEPT}")
            evidence(self, removed).orderBy("row").write.mode("overwrite").parquet(f"{url}/{EVIDENCE}")
            of_inputs = removed.select("row").join(self.documents.select("row", "part"), "row").groupBy("part").count()
            return {int(row["part"]): int(row["count"]) for row in of_inputs.collect()}

        return EngineRun(counts, self._input_counts(self._stage("writing", "writing", write)), ())

    def _removed(self) -> tuple[DataFrame, RunCounts]:
        verdicts, counts = self.verdicts()
        removed, facts = self.stages.frame("removed", lambda: removed_rows(self, verdicts), count_removed)
        of_inputs = self._facts
        without_id = sum(facts.num_documents - facts.num_with_id for facts in of_inputs if facts.num_with_id)
        return removed, counts_of(self, counts, facts)._replace(
            num_blank_lines=sum(facts.num_blank for facts in of_inputs),
            num_bad_rows=sum(facts.num_bad for facts in of_inputs),
            num_bad_lines=sum(facts.num_bad_lines for facts in of_inputs),
            num_without_id=without_id or None,
        )

    def _input_counts(self, num_removed: Mapping[int, int]) -> list[InputCounts]:
        places = self.documents.select("row", "part", "offset", "length", "doc_id")
        contents = content_digests(places.join(self.sketches.select("row", "digest"), "row"))
        nothing = ContentDigest().hexdigest()
        return [
            InputCounts(
                contents.get(number, nothing),
                facts.num_documents,
                facts.num_documents - num_removed.get(number, 0),
                facts.num_bad,
            )
            for number, facts in enumerate(self._facts)
        ]

    def _names(self) -> DataFrame:
        """Return the number and the name of each input."""
        names = [(number, source.name) for number, source in enumerate(self._sources)]
        return self.stages.spark.createDataFrame(names, "part int, file string")

    def places(self) -> DataFrame:
        """Return row, doc_id, file, offset, length of each document; the id of one without an id is ``file:line``."""
        made = F.concat("file", F.lit(":"), (F.col("line") + 1).cast("string"))
        named = self.documents.join(F.broadcast(self._names()), "part")
        doc_id = F.when(F.col("has_id"), F.col("doc_id")).otherwise(made)
        return named.select("row", doc_id.alias("doc_id"), "file", "offset", "length")

    def _facts_of_inputs(self, frame: DataFrame) -> list[_InputFacts]:
        """Return the counts of each input, its first bad row and its first document."""
        is_document, is_bad = F.col("kind") == DOCUMENT, F.col("kind") == BAD
        bad = F.struct("line", "offset", "length", "reason", "number")
        grouped = frame.groupBy("part").agg(
            F.count_if(is_document).alias("num_documents"),
            F.count_if(is_document & F.col("has_id")).alias("num_with_id"),
            F.count_if(is_bad).alias("num_bad"),
            F.coalesce(F.sum(F.when(is_bad, F.col("number"))), F.lit(0)).alias("num_bad_lines"),
            F.coalesce(F.sum(F.when(F.col("kind") == TALLY, F.col("offset"))), F.lit(0)).alias("num_blank"),
            F.min(F.when(is_bad, bad)).alias("bad"),
            F.min(F.when(is_document, F.struct("number", "offset", "length"))).alias("first"),
        )
        found = {int(row["part"]): row for row in grouped.collect()}
        facts = []
        for number in range(len(self._sources)):
            row = found.get(number)
            if row is None:
                facts.append(_InputFacts(0, 0, 0, 0, 0, None, None))
                continue
            # In the order of the columns above.
            _, *counts, bad_row, place = row
            first = None if place is None else (int(place["offset"]), int(place["length"]))
            shown = None if bad_row is None else _bad(bad_row)
            facts.append(_InputFacts(*map(int, counts), shown, first))  # type: ignore[call-arg, arg-type]
        return facts

    def _bad_rows(self) -> Iterator[tuple[int, BadRow]]:
        """Yield input and bad row, in the order of the inputs."""
        if any(facts.num_bad for facts in self._facts):
            rows = self._frame.where(F.col("kind") == BAD)
            rows = rows.select("part", "line", "offset", "length", "reason", "number").orderBy("part", "line")
            for row in rows.toLocalIterator():
                yield int(row["part"]), _bad(row)

    def _bad_rows_of_inputs(self) -> list[list[BadRow]]:
        bad_rows: list[list[BadRow]] = [[] for _ in self._sources]
        for number, bad in self._bad_rows():
            bad_rows[number].append(bad)
        return bad_rows

    def _check_ids(self, documents: DataFrame) -> None:
        """Raise InvalidInput, naming both rows, if two documents have the same id. Finished checks are not repeated."""
        is_checked = self.context.rules.duplicate_ids != "fail" or not any(facts.num_with_id for facts in self._facts)
        if is_checked or self.stages.facts(_UNIQUE_IDS) is not None:
            return
        self.documents = documents
        ids = self.places().select("row", "doc_id")
        doubles = ids.groupBy("doc_id").agg(F.count("*").alias("num"), F.min("row").alias("first")).where("num > 1")
        second = ids.join(doubles, "doc_id").where("row > first").orderBy("row").limit(1).collect()
        if second:
            row, first = int(second[0]["row"]), int(second[0]["first"])
            found = documents.where(F.col("row").isin(row, first)).select("row", "part", "line").collect()
            places = {int(one["row"]): (self._sources[one["part"]].name, int(one["line"]) + 1) for one in found}
            raise id_used_twice(second[0]["doc_id"], places[first], places[row])
        self.stages.mark(_UNIQUE_IDS, {})

    def _kept_places(self, removed: DataFrame) -> DataFrame:
        """Return part, offset and length of the rows of kept files: kept documents, and bad rows if they are kept."""
        places = ("part", "offset", "length")
        kept = self.documents.select("row", *places).join(removed.select("row"), "row", "left_anti").select(*places)
        if self.context.rules.on_error != "keep":
            return kept
        # A damaged part of a file may have no bytes to keep.
        bad = self._frame.where((F.col("kind") == BAD) & (F.col("length") > 0))
        return kept.union(bad.select(*places))

    def _no_evidence(self) -> ArrowTable:
        """Return the evidence of a local run in which all documents are kept."""
        rows, nothing = np.zeros(0, np.int64), pa.array([], pa.string())
        places = Places(rows, nothing, nothing, rows, rows)
        recipe = self.recipe
        return evidence_table(
            places,
            places,
            recipe,
            np.zeros(0),
            np.zeros(0, np.int32),
            required=None if recipe.short_margin is None and recipe.siblings is None else np.zeros(0),
            penalty=None if recipe.siblings is None else np.zeros(0),
            differs_in=None if recipe.name_rules is None else named(np.zeros(0, np.uint8)),
            below_threshold=np.zeros(0, bool) if recipe.group == "components" else None,
        )

    def _documents_at(
        self, firsts: Sequence[tuple[int, int] | None], bad_rows: list[list[BadRow]] | None = None
    ) -> Documents:
        """Return the first document of each input that has one, for checks that need only this one."""
        is_there = np.array([first is not None for first in firsts], bool)
        offsets, lengths = (np.array([first[side] for first in firsts if first is not None]) for side in (0, 1))
        return documents_at(
            self._sources,
            np.concatenate([np.zeros(1, np.int64), np.cumsum(is_there, dtype=np.int64)]),
            offsets.astype(np.uint64),
            lengths.astype(np.uint32),
            [[] for _ in firsts] if bad_rows is None else bad_rows,
        )


class _GatheredRun(_FileRun):
    """A run of files whose documents are gathered on the driver, which writes the outputs."""

    # The documents on the driver
    gathered: Documents

    def check_documents(self, frame: DataFrame, documents: DataFrame) -> None:
        """Reject the documents that a local run rejects, and gather the others."""
        super().check_documents(frame, documents)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([facts.num_documents for facts in self._facts])])
        self.gathered = self._places(documents, starts, self._bad_rows_of_inputs())

    def decision(self) -> Decision:
        """Return the verdicts in the form of a local run."""
        verdicts, facts = self.verdicts()
        removed, _ = self.stages.frame("removed", lambda: removed_rows(self, verdicts), count_removed)
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
        self.gathered = replace(self.gathered, num_without_field=without, digests=digests.reshape(-1))
        table = gathered(removed, "row", self.num_documents)
        has_names, is_near = self.recipe.name_rules is not None, isinstance(self.recipe.sketch, SimHash)
        rows = numbers_of(table.column("row"))
        kept = np.ones(self.num_documents, bool)
        kept[rows] = False
        return Decision(
            kept=kept,
            removed_rows=rows,
            kept_rows=numbers_of(table.column("kept_row")),
            similarity=numbers_of(table.column("similarity")),
            distance=numbers_of(table.column("distance")) if is_near else None,
            penalty=numbers_of(table.column("penalty")) if has_names else None,
            differs=numbers_of(table.column("differs")).astype(np.uint8) if has_names else None,
            below_threshold=numbers_of(table.column("below_threshold")) if self.recipe.group == "components" else None,
            num_candidates=facts.get("num_candidates"),
            num_measured=facts["num_measured"],
            num_capped=facts["num_capped"],
            num_crowded=facts["num_crowded"],
        )

    def _places(self, documents: DataFrame, starts: NDArray[np.int64], bad_rows: list[list[BadRow]]) -> Documents:
        num = self.num_documents
        offsets, lengths, lines = np.zeros(num, np.uint64), np.zeros(num, np.uint32), np.zeros(num, np.uint32)
        has_id, ids = np.zeros(num, bool), [Texts.from_list([])]
        names = ("row", "offset", "length", "line", "has_id", "doc_id")
        for _, _, table in sorted_slices(documents.select(*names), "row", num):
            rows = numbers_of(table.column("row"))
            for name, column in (("offset", offsets), ("length", lengths), ("line", lines), ("has_id", has_id)):
                column[rows] = numbers_of(table.column(name))
            ids += [texts_of(chunk) for chunk in table.column("doc_id").chunks]
        placed = documents_at(self._sources, starts, offsets, lengths, bad_rows)
        num_blank = sum(facts.num_blank for facts in self._facts)
        return replace(placed, lines=lines, ids=Texts.concat(ids), has_id=has_id, num_blank=num_blank)


def _bad(row: Any) -> BadRow:
    return BadRow(row["line"], row["offset"], row["length"], row["reason"], row["number"])


def _stamp(source: Any) -> dict[str, Any]:
    """Return values that change if a file, or the way it is read, changes."""
    stat = source.path.stat()
    return {
        "path": str(source.path),
        "num_bytes": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "reader": type(source).__name__,
        "delimiter": getattr(source, "delimiter", None),
        "rules": source.rules._asdict(),
    }
