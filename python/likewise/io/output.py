"""The life of an output directory: built under OUT/.unfinished, named at the end, never half finished."""

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from likewise.errors import InvalidInput, RecipeMismatch
from likewise.io.refusals import place_named

UNFINISHED = ".unfinished"
IDENTITY = "identity.json"
KEPT = "kept"
EVIDENCE = "removed.parquet"
ERRORS = "errors.jsonl"
EMPTIED = "emptied.jsonl"
SUMMARY = "summary.json"
# In the order in which they get their names: who sees the summary sees all.
FINAL_NAMES = (KEPT, EVIDENCE, ERRORS, EMPTIED, SUMMARY)


class OutputDirectory:
    """A run's output, as a context: entered it is claimed, and left by an exception nothing of it remains.

    Parameters
    ----------
    path : Path
        The directory; absent or empty, or one that an earlier run of the same identity left unfinished.
    identity : mapping
        What makes the answer: recipe, inputs, reading options. JSON values only.
    overwrite : bool
        Replace the finished run that stands there. It stays in place until this one is complete.

    Raises
    ------
    InvalidInput
        If the directory holds a finished run, files of others, or a run that is still going on.
    RecipeMismatch
        If it holds an unfinished run of another identity, naming the fields.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], *, overwrite: bool = False) -> None:
        self.path = path
        self.work = path / UNFINISHED
        self._identity = dict(identity)
        self._overwrite = overwrite
        self._created = False
        self._lock: BinaryIO | None = None

    def __enter__(self) -> Self:
        check_free(self.path, overwrite=self._overwrite)
        self._created = not self.path.exists()
        try:
            with place_named(str(self.path), self.work):
                self.path.mkdir(parents=True, exist_ok=True)
                self._claim()
        except KeyboardInterrupt as error:
            self._release()
            # Only where nobody else can have begun: after any other failure the directory may be another run's.
            if self._created:
                self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()
        shutil.rmtree(self.work, ignore_errors=True)
        if kind is not None and self._created:
            with contextlib.suppress(OSError):
                self.path.rmdir()
        if isinstance(error, OSError):
            with place_named(str(self.path), self.work):
                raise error

    def finish(self) -> None:
        """Give every file its final name, the summary last; undone if it is interrupted."""
        replaced = self.work / "replaced"
        replaced.mkdir()
        done: list[str] = []
        try:
            # The old summary goes first: without it the directory counts as unfinished.
            for name in reversed(FINAL_NAMES):
                if (self.path / name).exists():
                    (self.path / name).rename(replaced / name)
            for name in FINAL_NAMES:
                if (self.work / name).exists():
                    done.append(name)
                    (self.work / name).rename(self.path / name)
        except BaseException:
            for name in reversed(done):
                if (self.path / name).exists():
                    (self.path / name).rename(self.work / name)
            for name in FINAL_NAMES:
                if (replaced / name).exists():
                    (replaced / name).rename(self.path / name)
            raise

    def _claim(self) -> None:
        identity_path = self.work / IDENTITY
        if self.work.exists():
            self._check_unfinished(identity_path)
            self._release()
            shutil.rmtree(self.work)
            if not (self.path / SUMMARY).exists():
                # Cut off between two renames: these are of the run that begins again.
                for name in FINAL_NAMES:
                    _remove(self.path / name)
        self.work.mkdir()
        self._lock = identity_path.open("xb")
        _lock_file(self._lock, self.path)
        self._lock.write(json.dumps(self._identity, sort_keys=True, indent=1).encode())
        self._lock.flush()

    def _check_unfinished(self, identity_path: Path) -> None:
        if not identity_path.exists():
            return
        self._lock = identity_path.open("rb")
        _lock_file(self._lock, self.path)
        try:
            found = json.loads(self._lock.read())
        except ValueError:
            return
        ours = json.loads(json.dumps(self._identity))
        if self._overwrite or not isinstance(found, dict) or found == ours:
            return
        names = sorted(set(found) | set(ours))
        differing = {name: (ours.get(name), found.get(name)) for name in names if ours.get(name) != found.get(name)}
        raise RecipeMismatch(
            f"{self.path} holds an unfinished run of other settings; repeat it as it was, "
            "start over with --overwrite, or choose another directory",
            _inner_differences(differing),
        )

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def check_free(path: Path, *, overwrite: bool) -> None:
    """Raise InvalidInput if a run may not write to this directory.

    Parameters
    ----------
    path : Path
        Absent, empty, or with what earlier runs left.
    overwrite : bool
        Whether a finished run may be replaced.
    """
    if path.is_symlink() and not path.exists():
        raise InvalidInput(f"{path} is a link to nothing; delete it, or choose another directory")
    if not path.exists():
        return
    if not path.is_dir():
        raise InvalidInput(f"{path} is a file; the output is a directory")
    names = {entry.name for entry in path.iterdir()}
    foreign = sorted(names - {*FINAL_NAMES, UNFINISHED})
    if not foreign and SUMMARY not in names and UNFINISHED not in names:
        foreign = sorted(names)
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise InvalidInput(
            f"{path} holds files of others ({', '.join(foreign[:3])}{more}); choose an empty or a new directory"
        )
    if SUMMARY in names:
        if not _is_summary(path / SUMMARY):
            raise InvalidInput(f"{path / SUMMARY} is not of a run of Likewise; choose an empty or a new directory")
        if not overwrite:
            raise InvalidInput(f"{path} holds a finished run; replace it with --overwrite, or choose another directory")


def _is_summary(path: Path) -> bool:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(fields, dict) and "recipe_id" in fields


def _inner_differences(differing: dict[str, tuple[Any, Any]]) -> dict[str, tuple[object, object]]:
    """Name the fields inside a nested one, so that the message says ``recipe.threshold`` and not the whole recipe."""
    named: dict[str, tuple[object, object]] = {}
    for name, (ours, found) in differing.items():
        if isinstance(ours, dict) and isinstance(found, dict):
            for key in sorted(set(ours) | set(found)):
                if ours.get(key) != found.get(key):
                    named[f"{name}.{key}"] = (ours.get(key), found.get(key))
        else:
            named[name] = (ours, found)
    return named


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _lock_file(file: BinaryIO, directory: Path) -> None:
    """Hold an advisory lock for the life of the file, so that two runs never share a directory."""
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InvalidInput(f"another run is writing to {directory}; wait for it or choose another directory") from error
