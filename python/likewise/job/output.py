"""One run over files: from its inputs, and the claim of its output directory, to its summary; what lost most."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import __version__
from likewise.arrays import ArrowSchema
from likewise.errors import InvalidInput, RecipeMismatch, counted, differing
from likewise.io.inputs import Inputs
from likewise.io.output.directory import DECISIONS, FINAL_NAMES, IDENTITY, PARTS, REVIEW, SUMMARY, UNFINISHED, VIEW
from likewise.io.output.row_files import RowWriter
from likewise.io.output.whole import place_named, scratch_directory, try_lock
from likewise.io.places import Watch, check_home, check_unchanged, is_remote, local_path, stamps
from likewise.io.remote import RemoteDirectory
from likewise.io.source.source import InputFile
from likewise.job.reading import FileRun, RunContext, found_inputs, listed
from likewise.progress import Progress, Warned, no_progress
from likewise.recipe.recipe import Recipe

# Suffixes of parts that are worth keeping; spooled texts and partially decompressed files alone are not.
_WORTH_KEEPING = (".arrow", ".json", ".stages")
# Files made from a finished run later. Labels survive its replacement; derived files do not matter.
_BESIDE = (REVIEW, DECISIONS, VIEW)
_Entered = TypeVar("_Entered")


class OutputDirectory:
    """A run's output, claimed on entering.

    After an interruption, files in :attr:`parts` stay for a run of the same identity; all others are deleted.
    """

    def __init__(
        self,
        path: Path,
        identity: Mapping[str, Any],
        progress: Progress = no_progress,
        *,
        overwrite: bool = False,
        fresh: bool = False,
    ) -> None:
        self.path = path
        # PyArrow takes a relative path with a colon for a URL.
        self.work = path.absolute() / UNFINISHED
        self.parts = self.work / PARTS
        self._progress = progress
        self._identity = dict(identity)
        self._overwrite = overwrite
        self._fresh = fresh
        self._created = self._is_finished = False
        self._lock: BinaryIO | None = None

    def __enter__(self) -> Self:
        check_free(self.path, overwrite=self._overwrite)
        self._created = not self.path.exists()
        try:
            with place_named(str(self.path), self.work):
                self.path.mkdir(parents=True, exist_ok=True)
                self._claim()
        except BaseException as error:
            self._release()
            # Clean up only if no other run can have started: else, the directory may be another run's.
            if self._created and isinstance(error, KeyboardInterrupt):
                self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_own():
            # The current directory belongs to another run or program.
            self._release()
            if isinstance(error, OSError):
                raise self._replaced() from error
            return
        # After its input is repaired, a run has another identity and could not continue.
        is_left = not (error is None or isinstance(error, InvalidInput) or self._is_finished) and self._has_parts()
        if is_left:
            self._delete_all_but_parts()
            self._release()
            self._progress(Warned(f"progress is saved in {self.path}; repeat the command to continue"))
        else:
            self._release()
            shutil.rmtree(self.work, ignore_errors=True)
        if kind is not None and self._created and not is_left:
            with suppress(OSError):
                self.path.rmdir()
        if isinstance(error, OSError):
            with place_named(str(self.path), self.work):
                raise error

    def check_own(self) -> None:
        """Raise InvalidInput if the directory was removed or replaced since the run started."""
        if not self._is_own():
            raise self._replaced()

    def finish(self) -> None:
        """Rename all outputs into place, the summary last; undone if interrupted."""
        self.check_own()
        replaced, before = self.work / "replaced", [name for name in FINAL_NAMES if (self.path / name).exists()]
        if before:
            replaced.mkdir()
        done: list[str] = []
        try:
            # Move the old summary first: without it, the directory counts as unfinished.
            for name in reversed(before):
                (self.path / name).rename(replaced / name)
            for name in FINAL_NAMES:
                if (self.work / name).exists():
                    done.append(name)
                    (self.work / name).rename(self.path / name)
            self._is_finished = True
        except BaseException:
            for name in reversed(done):
                if (self.path / name).exists():
                    (self.path / name).rename(self.work / name)
            for name in FINAL_NAMES:
                if (replaced / name).exists():
                    (replaced / name).rename(self.path / name)
            raise

    def _is_own(self) -> bool:
        """Return whether the directory is still the one that was claimed, judged by the lock file."""
        if self._lock is None:
            return True
        try:
            return os.path.samestat((self.work / IDENTITY).stat(), os.fstat(self._lock.fileno()))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _replaced(self) -> InvalidInput:
        return InvalidInput(f"{self.path} was removed or replaced while the run was writing to it; run again")

    def _claim(self) -> None:
        identity_path = self.work / IDENTITY
        if self.work.exists():
            is_same = self._check_unfinished(identity_path)
            if not (self.path / SUMMARY).exists():
                # Interrupted between two renames: these belong to the run that starts again.
                for name in FINAL_NAMES:
                    _remove(self.path / name)
            if is_same:
                self._delete_all_but_parts()
                return
            self._release()
            shutil.rmtree(self.work)
        self.work.mkdir()
        self._lock = identity_path.open("xb")
        _lock_file(self._lock, self.path)
        self._lock.write(json.dumps(self._identity, sort_keys=True, indent=1).encode())
        self._lock.flush()
        # Parts are synced, and useless without the identity.
        os.fsync(self._lock.fileno())

    def _check_unfinished(self, identity_path: Path) -> bool:
        """Lock the unfinished run, and return whether it has the identity of this run."""
        found = None
        if identity_path.exists():
            self._lock = identity_path.open("rb")
            _lock_file(self._lock, self.path)
            with suppress(ValueError, RecursionError):
                found = json.loads(self._lock.read())
        ours = json.loads(json.dumps(self._identity))
        if self._fresh:
            return False
        if found == ours:
            return True
        if not self._has_parts():
            # Regardless of its run, nothing would be lost.
            return False
        if not isinstance(found, dict):
            raise InvalidInput(
                f"{self.path} contains an unfinished run whose {IDENTITY} is missing or damaged; start over with "
                "--fresh, or choose another directory"
            )
        raise RecipeMismatch(
            f"{self.path} contains an unfinished run with different settings or inputs; repeat the same command, "
            "start over with --fresh, or choose another directory",
            _inner_differences(differing(ours, found)),
        )

    def _has_parts(self) -> bool:
        return self.parts.is_dir() and any(path.suffix in _WORTH_KEEPING for path in self.parts.iterdir())

    def _delete_all_but_parts(self) -> None:
        for path in list(self.work.iterdir()):
            if path.name not in (IDENTITY, PARTS):
                _remove(path)

    def _release(self) -> None:
        if self._lock is not None:
            # A write that failed before fails again here, and was already reported.
            with suppress(OSError):
                self._lock.close()
            self._lock = None


def check_free(path: Path, *, overwrite: bool) -> None:
    """Raise InvalidInput if a run may not write to this directory."""
    if path.is_symlink() and not path.exists():
        raise InvalidInput(f"{path} is a broken link; delete it, or choose another directory")
    if not path.exists():
        return
    if not path.is_dir():
        raise InvalidInput(f"{path} is a file; the output must be a directory")
    names = {entry.name for entry in path.iterdir()}
    foreign = sorted(names - {*FINAL_NAMES, *_BESIDE, UNFINISHED})
    if not foreign and SUMMARY not in names and UNFINISHED not in names:
        foreign = sorted(names - {*_BESIDE})
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise InvalidInput(
            f"{path} contains other files ({', '.join(foreign[:3])}{more}); choose an empty or a new directory"
        )
    if SUMMARY in names:
        if not _is_summary(path / SUMMARY):
            raise InvalidInput(
                f"{path / SUMMARY} is not the summary of a Likewise run; choose an empty or a new directory"
            )
        if not overwrite:
            raise InvalidInput(
                f"{path} contains a finished run; replace it with --overwrite (in Python, overwrite=True), "
                "or choose another directory"
            )


def _is_summary(path: Path) -> bool:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and not {"verification", "recipe_id"}.isdisjoint(fields)


def _inner_differences(found: dict[str, tuple[object, object]]) -> dict[str, tuple[object, object]]:
    """Return the differing fields, nested ones by path, so that messages show ``recipe.threshold``, not all fields."""
    named: dict[str, tuple[object, object]] = {}
    for name, both in found.items():
        mine, theirs = map(_by_key, both)
        if mine is None or theirs is None:
            named[name] = both
        else:
            inner = _inner_differences(differing(mine, theirs))
            named |= {f"{name}.{key}": values for key, values in inner.items()}
    return named


def _by_key(value: object) -> dict[str, Any] | None:
    """Return a mapping as it is, and a list of inputs as a mapping by path; None for anything else."""
    if isinstance(value, list) and value and all(isinstance(item, dict) and "path" in item for item in value):
        return {item["path"]: item for item in value}
    return value if isinstance(value, dict) else None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _lock_file(file: BinaryIO, directory: Path) -> None:
    """Lock the file until it is closed, so that two runs never share a directory."""
    if not try_lock(file.fileno()):
        raise InvalidInput(f"another run is writing to {directory}; wait for it or choose another directory")


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

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

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
        return self.target.absolute() / UNFINISHED if self.is_written and self.target is not None else self.scratch

    @property
    def parts(self) -> Path | None:
        """Directory for data that a run that continues this one can reuse; None without an output."""
        return None if self._directory is None else self._directory.parts

    def claim(self, **identity: object) -> None:
        """Claim the output, after all checks, since this deletes unfinished outputs of runs of another identity."""
        if self.is_written and self.target is not None:
            identity = {"version": __version__, **self.options.identity(), **identity}
            self._directory = self.enter(
                OutputDirectory(
                    self.target, identity, self.context.progress, overwrite=self._overwrite, fresh=self._fresh
                )
            )

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
