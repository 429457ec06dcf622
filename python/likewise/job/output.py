"""One run over files: from its inputs, and the claim of its output directory, to its summary; what lost most."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import __version__
from likewise.arrays import ArrowSchema
from likewise.errors import InvalidInput, counted
from likewise.io.inputs import Inputs
from likewise.io.output.directory import FINAL_NAMES, SUMMARY, UNFINISHED, OutputDirectory, check_free
from likewise.io.output.row_files import RowWriter
from likewise.io.output.whole import scratch_directory
from likewise.io.places import Watch, check_home, check_unchanged, is_remote, local_path, stamps
from likewise.io.remote import RemoteDirectory
from likewise.io.source.source import InputFile
from likewise.job.options import FileRun, RunContext
from likewise.job.reading import found_inputs, listed
from likewise.progress import Progress, Warned
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
        with self.context.stage("writing", "writing", "bytes"):
            yield self.work

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
        if "timings" not in summary:
            summary["timings"] = self.context.timing.to_dict()
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


_NUM_SLICES = 3
_NUM_REASONS = 3
# Of fewer documents, a large share is no finding, unless all slices are as small.
_LEAST_DOCUMENTS = 10
_WARNED_SHARE = 0.5
BY_PATH = "path"


class Slice(NamedTuple):
    """The documents with one value, and those of them that were removed."""

    value: str | None
    num_documents: int
    num_removed: int
    # Where the documents are from that the removed ones match, the most frequent first
    kept: Sequence[Mapping[str, object]] = ()

    @property
    def share(self) -> float:
        """Share of the documents that were removed."""
        return self.num_removed / self.num_documents


def path_slices(paths: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the topmost folders of paths, or the files that are in none, and the number of that of each path."""
    tops = [path.partition("/")[0] + "/" * ("/" in path) for path in paths]
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(top, len(numbers)) for top in tops]
    return list(numbers), np.array(places, np.int64)


def shrinkage(by: str, slices: Sequence[Slice]) -> dict[str, Any]:
    """Return the summary field about the slices that lost the largest share; no field if none lost a document."""
    large = [one for one in slices if one.num_documents >= _LEAST_DOCUMENTS]
    small = [one for one in slices if one.num_documents > 1]
    some = [one for one in (large or small) if one.num_removed]
    some.sort(key=lambda one: (-one.share, -one.num_removed, one.value or ""))
    if len(slices) < 2 or not some:
        return {}
    entries = [
        {"value": one.value, "num_documents": one.num_documents, "num_removed": one.num_removed}
        | {"kept": list(one.kept[:_NUM_REASONS])}
        for one in some[:_NUM_SLICES]
    ]
    return {"shrunk": {"by": by, "slices": entries}}


def add_shrinkage(summary: dict[str, Any]) -> str | None:
    """Add this field to the summary of a run over several files; return a warning if a slice lost most documents."""
    inputs = summary.get("inputs", ())
    if "shrunk" not in summary and len(inputs) > 1 and all("num_kept" in entry for entry in inputs):
        names, numbers = path_slices([entry["path"] for entry in inputs])
        sizes, kept = (
            np.bincount(numbers, [entry[name] for entry in inputs]).astype(int)
            for name in ("num_documents", "num_kept")
        )
        slices = [Slice(*of) for of in zip(names, sizes.tolist(), (sizes - kept).tolist(), strict=True)]
        summary |= shrinkage(BY_PATH, slices)
    lost = summary.get("shrunk", {"slices": ()})["slices"]
    most = next((one for one in lost if one["num_removed"] > _WARNED_SHARE * one["num_documents"]), None)
    if most is None or most["num_documents"] < _LEAST_DOCUMENTS:
        return None
    return f"{shrinkage_line(most)}; read some of these pairs before you use the rest"


def shrinkage_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return a line for each slice that the summary names."""
    return [shrinkage_line(one) for one in summary.get("shrunk", {"slices": ()})["slices"]]


def shrinkage_line(one: Mapping[str, Any]) -> str:
    """Return how much of a slice was removed, and as copies of what."""
    name, removed, num = _name(one["value"]), one["num_removed"], one["num_documents"]
    # Rounding must not turn some into none or all.
    rounded = {0: "under 1%", 100: "over 99%"}.get(round(100 * removed / num)) if removed < num else None
    line = f"{rounded or f'{removed / num:.0%}'} of {name} removed ({removed:,} of {counted(num, 'document')})"
    if not one["kept"]:
        return line
    first = one["kept"][0]
    how = "mostly" if 2 * first["num_removed"] > removed else "most often"
    if first["kept_source"] != "input":
        where = "as copies of --against documents"
    elif first["value"] == one["value"]:
        where = "as copies within it"
    else:
        where = f"as copies of {_name(first['value'])}"
    return f"{line}, {how} {where}"


def _name(value: str | None) -> str:
    return "(none)" if value is None else value
