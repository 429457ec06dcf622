"""One run over files: from its inputs, and the claim of its output directory, to its summary."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from likewise._native import __version__
from likewise.arrays import ArrowSchema
from likewise.errors import InvalidInput
from likewise.io.inputs import Inputs
from likewise.io.output.directory import FINAL_NAMES, SUMMARY, UNFINISHED, OutputDirectory, check_free
from likewise.io.output.row_files import RowWriter
from likewise.io.output.scratch import scratch_directory
from likewise.io.places import check_home
from likewise.io.remote import RemoteDirectory, is_remote, local_path
from likewise.io.source.source import InputFile
from likewise.io.stamps import Watch, check_unchanged, stamps
from likewise.job.options import FileRun, RunContext, Timing
from likewise.job.reading import found_inputs, listed
from likewise.job.shrinkage import add_shrinkage
from likewise.progress import Progress, StageFinished, StageStarted, Warned
from likewise.recipe.recipe import Recipe

_Entered = TypeVar("_Entered")


class Job:
    """One run over files, as a context: the files that it finds exist until it exits.

    With an output directory, the steps are: find the inputs, make all checks, :meth:`claim` the directory, write below
    :attr:`work`, and :meth:`finish`. A remote output is written to a local directory, and copied on exit. Without one,
    `work` is a temporary directory, made at its first use.
    """

    def __init__(
        self,
        output: str | Path | None,
        options: FileRun,
        progress: Progress,
        *,
        inputs: Sequence[str | Path] | str | Path = (),
        overwrite: bool = False,
        fresh: bool = False,
        dry_run: bool = False,
    ) -> None:
        self.options = options
        self.context = RunContext(options.run_rules(), progress=progress)
        self.target: Path | None = None
        self.is_written = output is not None and not dry_run
        self._output, self._inputs, self._overwrite, self._fresh = output, listed(inputs), overwrite, fresh
        self._stack = ExitStack()
        self._directory: OutputDirectory | None = None
        self._stamped: list[tuple[Inputs, list[dict[str, object]]]] = []
        self._watch = Watch()

    def __enter__(self) -> Self:
        if self._output is None:
            return self
        check_home(self._output)
        if self.is_written and is_remote(self._output):
            self.target = self.enter(_stored(str(self._output), self._inputs, overwrite=self._overwrite))
            return self
        self.target = Path(local_path(self._output))
        if self.is_written:
            check_free(self.target, overwrite=self._overwrite)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def enter(self, part: AbstractContextManager[_Entered]) -> _Entered:
        """Enter a context that ends with the job."""
        return self._stack.enter_context(part)

    def find(self, inputs: Sequence[str | Path] | str | Path, recipe: Recipe, *, joins_rows: bool = False) -> Inputs:
        """Find input files; `joins_rows` if the command can join rows into documents."""
        given = (inputs, recipe, self.options, self.target, self.context.progress, self._watch)
        return self.enter(found_inputs(*given, joins_rows=joins_rows))

    def stamp(self, found: Inputs) -> list[dict[str, object]]:
        """Return the stamps of files for the identity of the run, and check them again before it is finished."""
        self._stamped.append((found, stamps(found)))
        return self._stamped[-1][1]

    def watch(self, files: Sequence[InputFile]) -> None:
        """Check files for changes before the run is finished, by their sizes and times."""
        self._watch.add(files)

    @cached_property
    def scratch(self) -> Path:
        """A temporary directory."""
        return self.enter(scratch_directory())

    @property
    def work(self) -> Path:
        """The directory to write to, whose outputs are renamed into place at the end."""
        return self.target / UNFINISHED if self.is_written and self.target is not None else self.scratch

    @property
    def parts(self) -> Path | None:
        """Directory for data that a run that continues this one can reuse; None without an output."""
        return None if self._directory is None else self._directory.parts

    def claim(self, **identity: object) -> None:
        """Claim the output, after all checks, since this deletes unfinished outputs of runs of another identity."""
        if self.is_written and self.target is not None:
            identity = {"version": __version__, **self.options.identity(), **identity}
            self._directory = OutputDirectory(self.target, identity, overwrite=self._overwrite, fresh=self._fresh)
            self.enter(_told_if_left(self._directory, self.context.progress))

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Measure and report the writing of outputs to the yielded directory."""
        self.check_own()
        self.context.progress(StageStarted("writing", 0, "bytes"))
        began = Timing.now()
        with self.context.timing.wall("writing"):
            yield self.work
        self.context.progress(StageFinished("writing", Timing.now() - began))

    def table(self, name: str, what: str, tables: Iterable[Any], schema: ArrowSchema) -> None:
        """Write tables to one file; without an output, only iterate over them."""
        if not self.is_written:
            for _ in tables:
                pass
            return
        with RowWriter(str(self.work / name), what, schema) as writer:
            for table in tables:
                writer.write_table(table)
            writer.finish()

    def check_own(self) -> None:
        """Raise InvalidInput if the output directory was removed or replaced since it was claimed."""
        if self._directory is not None:
            self._directory.check_own()

    def check_unchanged(self) -> None:
        """Raise InvalidInput if a file that was read has changed since it was found or last checked."""
        stamped, self._stamped = self._stamped, []
        for found, before in stamped:
            check_unchanged(found, before)
        self._watch.check()

    def finish(self, summary: dict[str, Any]) -> dict[str, Any]:
        """Check the inputs, write the summary, and rename all outputs into place."""
        self.check_unchanged()
        summary.setdefault("timings", self.context.timing.to_dict())
        if self.is_written:
            self.write_summary(summary)
            self.publish()
        else:
            self._add_shrinkage(summary)
        return summary

    def _add_shrinkage(self, summary: dict[str, Any]) -> None:
        if (warning := add_shrinkage(summary)) is not None:
            self.context.progress(Warned(warning))

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Complete the summary, and write it to the directory of the run."""
        self._add_shrinkage(summary)
        text = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
        (self.work / SUMMARY).write_text(text, encoding="utf-8", newline="\n")

    def publish(self) -> None:
        """Rename all outputs into place."""
        assert self._directory is not None
        self._directory.finish()


def about_files(files: Sequence[InputFile], **columns: Sequence[object]) -> list[dict[str, object]]:
    """Return the entries of a summary about files: path, size, the value of each column, and facts of the format."""
    return [
        {"path": file.name, "num_bytes": file.num_bytes}
        | {name: values[number] for name, values in columns.items()}
        | file.facts()
        for number, file in enumerate(files)
    ]


@contextmanager
def _stored(output: str, inputs: Sequence[str | Path], *, overwrite: bool) -> Iterator[Path]:
    """Yield a local directory that is copied to a store on success, its summary last."""
    for name in inputs:
        if f"{output.rstrip('/')}/".startswith(f"{str(name).rstrip('/')}/"):
            raise InvalidInput("the output is inside this input; choose another directory", str(name))
    target = RemoteDirectory(output, FINAL_NAMES, overwrite=overwrite)
    with scratch_directory() as place:
        yield place / "out"
        target.write(place / "out")


@contextmanager
def _told_if_left(directory: OutputDirectory, progress: Progress) -> Iterator[None]:
    """Enter a directory; if the run fails and its progress is kept, report this."""
    try:
        with directory:
            yield
    except BaseException:
        if directory.is_left:
            progress(Warned(f"progress is saved in {directory.path}; repeat the command to continue"))
        raise
