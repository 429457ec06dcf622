"""Output directories, built under OUT/.unfinished and renamed at the end."""

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from likewise.errors import InvalidInput, RecipeMismatch, differing
from likewise.io.output.whole import try_lock
from likewise.io.places import place_named
from likewise.recipe.weights import RECIPE

UNFINISHED = ".unfinished"
PARTS = "parts"
# Suffixes of parts that are worth keeping; spooled texts and partially decompressed files alone are not.
_WORTH_KEEPING = (".arrow", ".json", ".stages")
# Finished stages of an engine other than this machine, among the parts.
ENGINE_STAGES = "engine.stages"
IDENTITY = "identity.json"
KEPT = "kept"
ANNOTATED = "annotated"
UNIQUE = "unique"
GROUPS = "groups.parquet"
EVIDENCE = "removed.parquet"
OVERRULED = "overruled.parquet"
PAIRS = "pairs.parquet"
LEAKS = "leaks.parquet"
COPIES = "copies.parquet"
GIVEN = "given.parquet"
LISTS = "delete"
CONTAMINATED = "contaminated.parquet"
ITEMS = "items.parquet"
ERRORS = "errors.jsonl"
EMPTIED = "emptied.jsonl"
SITES = "sites.parquet"
REPORT = "report.html"
# The documents of a result in memory that was saved.
DOCUMENTS = "documents.parquet"
AUDIT = "audit.json"
REVIEW = "review.csv"
DECISIONS = "decisions.csv"
VIEW = ".view"
SUMMARY = "summary.json"
SKETCHES = "sketches"
# In the order in which they are renamed into place: when the summary exists, all others do.
FINAL_NAMES = (
    *(
        RECIPE,
        KEPT,
        ANNOTATED,
        UNIQUE,
        GROUPS,
        SKETCHES,
        EVIDENCE,
        OVERRULED,
        PAIRS,
        LEAKS,
        COPIES,
        GIVEN,
        LISTS,
        CONTAMINATED,
        ITEMS,
    ),
    *(ERRORS, EMPTIED, SITES, REPORT, AUDIT, DOCUMENTS),
    SUMMARY,
)
# Files made from a finished run later. Labels survive its replacement; derived files do not matter.
_BESIDE = (REVIEW, DECISIONS, VIEW)


class OutputDirectory:
    """A run's output, claimed on entering.

    After an interruption, files in :attr:`parts` stay for a run of the same identity; all others are deleted.
    """

    def __init__(
        self, path: Path, identity: Mapping[str, Any], *, overwrite: bool = False, fresh: bool = False
    ) -> None:
        self.path = path
        self.work = path / UNFINISHED
        self.parts = self.work / PARTS
        self.is_left = False
        self._identity = dict(identity)
        self._overwrite = overwrite
        self._fresh = fresh
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
            # Clean up only if no other run can have started: else, the directory may be another run's.
            if self._created:
                self.__exit__(type(error), error, None)
            raise
        except BaseException:
            self._release()
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
        self.is_left = error is not None and not isinstance(error, InvalidInput) and self._has_parts()
        if self.is_left:
            self._delete_all_but_parts()
            self._release()
        else:
            self._release()
            shutil.rmtree(self.work, ignore_errors=True)
        if kind is not None and self._created and not self.is_left:
            with contextlib.suppress(OSError):
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
            with contextlib.suppress(ValueError, RecursionError):
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
            with contextlib.suppress(OSError):
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
