"""Which files are meant: names, directories, globs and standard input, in a fixed order."""

import glob
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from likewise.errors import InvalidInput
from likewise.io.jsonl import JsonlFile
from likewise.io.parquet import ParquetFile
from likewise.io.source import ReadRules

_JSONL_SUFFIXES = (".jsonl", ".ndjson")
_PARQUET_SUFFIXES = (".parquet",)
STDIN_NAME = "stdin.jsonl"

InputFile = JsonlFile | ParquetFile


@dataclass(frozen=True)
class Inputs:
    """The files of a run.

    Parameters
    ----------
    files : tuple of JsonlFile or ParquetFile
        In the order in which their documents count.
    skipped : tuple of str
        Files of directories whose kind is not known, and links; relative to the directory named.
    """

    files: tuple[InputFile, ...]
    skipped: tuple[str, ...]


def find_inputs(
    names: Sequence[str | Path],
    rules: ReadRules,
    *,
    output: Path | None = None,
    stdin: BinaryIO | None = None,
    spool_directory: Path | None = None,
) -> Inputs:
    """Expand names into files.

    Parameters
    ----------
    names : sequence of str or Path
        Files, directories, globs, or ``-`` for standard input (JSON Lines).
    rules : ReadRules
        What will be read of them.
    output : Path, optional
        A directory never to read, even where a directory or glob holds it.
    stdin : binary file, optional
        What ``-`` means; it is copied into `spool_directory`, since it is read twice.
    spool_directory : Path, optional
        Where to.

    Returns
    -------
    Inputs
        Files in the order named; those of a directory sorted by the bytes of their paths.

    Raises
    ------
    FileNotFoundError
        If a name is no file, no directory, and no glob that finds something.
    InvalidInput
        If there are no files, one is named twice, or its kind is not known.
    """
    found: list[tuple[Path, Path]] = []  # path, and the root that it is relative to
    skipped: list[str] = []
    streams: list[Path] = []
    if list(map(str, names)).count("-") > 1:
        raise InvalidInput("standard input (-) is named twice; name it once")
    forbidden = None if output is None else _absolute(output)
    for name in map(str, names):
        path = _absolute(name)
        if name == "-":
            if stdin is None or spool_directory is None:
                raise InvalidInput("standard input cannot be read here; name a file")
            streams.append(_copy_stream(stdin, spool_directory))
            found.append((streams[-1], streams[-1].parent))
        elif path.is_dir():
            _walk(path, forbidden, found, skipped)
        elif path.exists():
            found.append((path, path.parent))
        else:
            _expand(name, forbidden, found, skipped)
    if not found:
        listed = f" (skipped: {', '.join(skipped[:5])})" if skipped else ""
        raise InvalidInput(f"no .jsonl, .ndjson or .parquet file among the inputs{listed}")
    _refuse_twice([path for path, _ in found])
    roots = [root for path, root in found if path not in streams]
    parent = Path(os.path.commonpath(roots)) if roots else Path()
    files: list[InputFile] = []
    for path, _ in found:
        name = STDIN_NAME if path in streams else path.relative_to(parent).as_posix()
        files.append(
            JsonlFile(path, name, path.stat().st_size, rules, is_copy=True)
            if path in streams
            else _file(path, name, rules)
        )
    _refuse_twice([Path(file.name) for file in files])
    return Inputs(tuple(files), tuple(skipped))


def kind_of(path: Path) -> type[InputFile] | None:
    """Return the reader for a file, by its name or else by its first bytes; None where unknown."""
    suffix = path.suffix.lower()
    if suffix in _JSONL_SUFFIXES:
        return JsonlFile
    if suffix in _PARQUET_SUFFIXES:
        return ParquetFile
    with path.open("rb") as file:
        start = file.read(512)
    if start.startswith(b"PAR1"):
        return ParquetFile
    return JsonlFile if start.lstrip().startswith(b"{") or not start else None


def _absolute(name: str | Path) -> Path:
    """Return an absolute path without ``..``, links left as they are."""
    return Path(os.path.abspath(name))  # noqa: PTH100


def _file(path: Path, name: str, rules: ReadRules) -> InputFile:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the name of this file is not UTF-8; rename it", ascii(name)) from None
    if not path.is_file():
        raise InvalidInput("this is no regular file, and a run reads its input twice; pipe it in and name it -", name)
    kind = kind_of(path)
    if kind is None:
        raise InvalidInput("this is neither JSON Lines (one object a line) nor Parquet", name)
    return kind(path, name, path.stat().st_size, rules)


def _walk(root: Path, forbidden: Path | None, found: list[tuple[Path, Path]], skipped: list[str]) -> None:
    paths: list[Path] = []
    for directory, names, files in os.walk(root, followlinks=False):
        here = Path(directory)
        skipped.extend((here / name).relative_to(root).as_posix() for name in names if (here / name).is_symlink())
        names[:] = [name for name in names if here / name != forbidden and not (here / name).is_symlink()]
        paths.extend(here / name for name in files)
    for path in sorted(paths, key=os.fsencode):
        if path.is_symlink() or not path.is_file() or path.suffix.lower() not in (*_JSONL_SUFFIXES, *_PARQUET_SUFFIXES):
            skipped.append(path.relative_to(root).as_posix())
        else:
            found.append((path, root))


def _expand(name: str, forbidden: Path | None, found: list[tuple[Path, Path]], skipped: list[str]) -> None:
    matches = sorted((_absolute(m) for m in glob.glob(name, recursive=True)), key=os.fsencode)  # noqa: PTH207
    if not matches:
        raise FileNotFoundError(2, "no such file or directory", name)
    for path in matches:
        if path.is_dir() or (forbidden is not None and path.is_relative_to(forbidden)):
            continue
        if path.suffix.lower() in (*_JSONL_SUFFIXES, *_PARQUET_SUFFIXES):
            found.append((path, path.parent))
        else:
            skipped.append(path.name)


def _refuse_twice(paths: list[Path]) -> None:
    seen = set()
    for path in paths:
        if path in seen:
            raise InvalidInput("a file of this name comes twice among the inputs", path.name)
        seen.add(path)


def _copy_stream(stream: BinaryIO, directory: Path) -> Path:
    path = directory / STDIN_NAME
    with path.open("xb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    return path
