"""Expansion of input names: files, directories, globs and standard input, in a fixed order."""

import glob
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from likewise.errors import InvalidInput, check_choice
from likewise.io import formats
from likewise.io.lines.jsonl import JsonlFile
from likewise.io.output.directory import EVIDENCE, IDENTITY, LEAKS, SUMMARY, UNFINISHED
from likewise.io.places import is_remote, local_path
from likewise.io.remote import fetch, local_name, remote_files
from likewise.io.source.source import InputFile, ReadRules, Source, each_piece, shown_document
from likewise.io.tables.datasets import READ, check_no_table, check_no_table_below, kind_of_table
from likewise.progress import Progress, Warned, no_progress

if TYPE_CHECKING:
    from likewise.io.archives.html_text import HtmlReaders
    from likewise.io.tables.datasets import Dataset


STDIN_STEM = "stdin"
# Result files of a finished run, in addition to its summary.
_RESULTS = (EVIDENCE, LEAKS)
# In the reason why a file is not read, if what it is was recognized.
_KNOWN = ": the file is "
# Extensions of skipped files whose first bytes are read.
_MOST_OTHERS = 8
_CODEC_SUFFIXES = {None: "", "gzip": ".gz", "zstd": ".zst", "bzip2": ".bz2", "xz": ".xz"}


_PIECE_BYTES = 4 << 20


class Inputs(NamedTuple):
    """The files of a run."""

    files: tuple[InputFile, ...]
    # Unknown formats, links, text files next to records, relative to the directory; directories of globs with ``/``.
    skipped: tuple[str, ...]
    # Directories of Hugging Face datasets, with their names relative to the common parent
    datasets: "tuple[tuple[str, Dataset], ...]" = ()
    # Files that are copied unchanged next to the kept documents
    companions: tuple[tuple[str, Path], ...] = ()
    # Files that are copies of standard input or of files in a store; their modification times mean nothing
    copies: tuple[Path, ...] = ()
    # The directory that names are relative to; None if no input is a local file
    parent: Path | None = None

    def provenance(self) -> dict[str, object]:
        """Return what determines the texts besides the recipe: the reader that extracted pages of web archives."""
        found = next((facts for file in self.files if (facts := file.provenance()) is not None), None)
        return {} if found is None else {"extractors": found}


@dataclass
class _Found:
    """The result of expanding names."""

    # Path, the root that it is relative to, and its format if known.
    files: list[tuple[Path, Path, formats.Format | None]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    # Skipped files of other kinds, by the extension of their names
    others: dict[str, tuple[str, Path]] = field(default_factory=dict)
    has_links: bool = False
    has_outputs: bool = False
    datasets: "list[tuple[Path, Dataset]]" = field(default_factory=list)
    companions: list[tuple[Path, Path]] = field(default_factory=list)

    def skip(self, path: Path, name: str) -> None:
        """Note a file that is not read."""
        self.skipped.append(name)
        if path.is_file() and not path.is_symlink() and formats.format_by_name(path) is None:
            self.others.setdefault(path.suffix.lower(), (name, path))

    def ways(self) -> list[str]:
        """Return why skipped files are not read if they are named, and what to do; one file with each extension."""
        told = ((name, formats.why_not_read(path)) for name, path in list(self.others.values())[:_MOST_OTHERS])
        return [f"{name} was skipped: {way}" for name, way in told if way is not None]


def find_inputs(
    names: Sequence[str | Path],
    rules: ReadRules,
    *,
    file_format: str | None = None,
    delimiter: str | None = None,
    output: Path | None = None,
    stdin: BinaryIO | None = None,
    spool_directory: Path | None = None,
    progress: Progress = no_progress,
) -> Inputs:
    """Expand names into files."""
    if file_format is not None:
        check_choice("format", file_format, formats.FORMATS)
    if delimiter is not None:
        formats.check_delimiter(delimiter)
    found = _Found()
    streams: list[Path] = []
    named: list[Path] = []
    if list(map(str, names)).count("-") > 1:
        raise InvalidInput("standard input (-) is given twice; give it once")
    forbidden = None if output is None else _absolute(output)
    fetched = None if spool_directory is None else spool_directory / "fetched"
    for name in map(str, map(local_path, names)):
        if is_remote(name):
            if fetched is None:
                raise InvalidInput("cannot read from object stores here; give a local file", name)
            _fetch(name, fetched, file_format, found, progress)
            continue
        path = _absolute(name)
        if name == "-":
            if stdin is None or spool_directory is None:
                raise InvalidInput("cannot read standard input here; give a file")
            stream, known = _copy_stream(stdin, spool_directory, file_format or "jsonl")
            streams.append(stream)
            found.files.append((stream, stream.parent, known))
        elif output is not None and output.is_dir() and path.resolve().is_relative_to(output.resolve()):
            raise InvalidInput(f"the input is inside the output directory {output}; choose another directory", name)
        elif path.is_dir():
            if _is_output(path):
                raise InvalidInput(
                    "this is the output of a run; give its kept/ directory or its original inputs",
                    name,
                )
            _walk(path, forbidden, file_format, found)
        elif output is not None and path.is_file() and output.exists() and path.samefile(output):
            raise InvalidInput("this file is both input and output; choose another output file", name)
        elif path.exists():
            if path.suffix == ".lance":
                check_no_table(str(path.parent), _in_folder, above=True)
            found.files.append((path, path.parent, None))
            named.append(path)
        else:
            _expand(name, forbidden, file_format, found)
    ways = found.ways() if file_format is None else []
    if not found.files:
        raise InvalidInput(_why_nothing(found, file_format, ways))
    for way in ways:
        if _KNOWN in way:
            progress(Warned(way))
    _refuse_twice([path for path, _, _ in found.files])
    roots = [root for path, root, _ in found.files if path not in streams]
    # Fetched files are named by their paths in the store, not by those of their copies.
    is_fetched = [fetched is not None and root.is_relative_to(fetched) for root in roots]
    by_kind = [[root for root, own in zip(roots, is_fetched, strict=True) if own == kind] for kind in (0, 1)]
    parents = [Path(os.path.commonpath(some)) if some else Path() for some in by_kind]

    def relative(path: Path) -> str:
        parent = parents[fetched is not None and path.is_relative_to(fetched)]
        return path.name if path in streams else path.relative_to(parent).as_posix()

    opener = _Opener(rules, file_format, delimiter)
    files = [opener.file(path, relative(path), known) for path, _, known in found.files]
    _refuse_twice([Path(file.name) for file in files])
    _check_named(named, files, file_format)
    return Inputs(
        tuple(files),
        tuple(found.skipped),
        tuple((relative(root), dataset) for root, dataset in found.datasets),
        tuple((relative(path), path) for path, _ in found.companions),
        tuple(path for path, root, _ in found.files if path in streams or (fetched and root.is_relative_to(fetched))),
        parents[0] if not all(is_fetched) else None,
    )


def _why_nothing(found: _Found, forced: str | None, ways: Sequence[str]) -> str:
    """Return the reason why no file was found, and what to do."""
    if found.datasets:
        return f"the dataset {found.datasets[0][0]} has no rows; give another input"
    packed = next((name for name in found.skipped if name.lower().endswith(formats.PACKED)), None)
    listed = f" (skipped: {', '.join(found.skipped[:5])})" if found.skipped else ""
    if found.has_links:
        hint = "links inside a directory are not followed; give their targets, or a glob such as 'DIR/*'"
    elif found.has_outputs:
        hint = "run outputs are skipped; give their kept/ directories, such as OUT/kept"
    elif any(name.endswith("/") for name in found.skipped):
        hint = "globs match files, not directories; give the directories themselves"
    elif ways:
        hint = ways[0]
    elif packed is not None:
        hint = f"decompress or extract files such as {packed} first"
    elif forced is not None:
        hint = f"in a directory, --format {forced} reads files with its extensions; give others by name or as 'DIR/*'"
    else:
        hint = "specify one with --format"
    return f"no input file has a known format{listed}; {hint}"


def _fetch(name: str, place: Path, forced: str | None, found: _Found, progress: Progress) -> None:
    """Fetch the files that a store URL means, and add them as if their copies had been given."""
    from likewise.io.tables.datasets import COMPANIONS, SPLITS

    remote = remote_files(name)
    # Stores of different kinds may have the same path.
    place = place / name.partition("://")[0].lower()
    check_no_table_below([file.path for file in remote.files])
    for folder in {file.path.rpartition("/")[0] for file in (remote.files[0], remote.files[-1])}:
        if remote.kind != "file" or remote.files[0].path.endswith(".parquet"):
            check_no_table(folder, partial(_in_store, remote.files[0].store), above=True)
    wanted, targets = [], []
    paths = {file.path for file in remote.files}
    outputs = [
        f"{folder}/"
        for folder in sorted({path.rpartition("/")[0] for path in paths})
        if f"{folder}/{SUMMARY}" in paths and any(f"{folder}/{name}" in paths for name in _RESULTS)
    ]
    for file in remote.files:
        target = place / local_name(file.path)
        if remote.kind == "directory" and any(file.path.startswith(folder) for folder in outputs):
            found.skipped.append(file.path)
            found.has_outputs = True
        elif (
            remote.kind == "file"
            or forced is not None
            or formats.format_by_name(target)
            or target.name in (*COMPANIONS, SPLITS)
        ):
            wanted.append(file)
            targets.append(target)
        else:
            found.skipped.append(file.path)
    fetch(wanted, targets, progress)
    if remote.kind == "directory":
        _walk(place / local_name(remote.root), None, forced, found)
    else:
        prose = _prose(dict(zip(targets, map(formats.format_by_name, targets), strict=True)), forced)
        found.skipped.extend(file.path for file, target in zip(wanted, targets, strict=True) if target in prose)
        found.files.extend((target, target.parent, None) for target in targets if target not in prose)


def _in_store(store: Any, folder: str, pattern: str) -> list[str]:
    """Return the matching paths in a folder of a store; none if the store does not list that folder."""
    with suppress(Exception):
        return list(store.glob(f"{folder}/{pattern}"))
    return []


def _in_folder(folder: str, pattern: str) -> list[Path]:
    return list(Path(folder).glob(pattern))


def _absolute(name: str | Path) -> Path:
    """Return an absolute path without ``..``; links are not resolved."""
    return Path(os.path.abspath(name))  # noqa: PTH100


@dataclass(frozen=True)
class _Opener:
    """Opens the files of one run by their formats."""

    rules: ReadRules
    forced: str | None
    delimiter: str | None
    # What web archives share: names of removed documents, and what extracts their texts
    removed: set[int] = field(default_factory=set)

    @cached_property
    def readers(self) -> "HtmlReaders":
        """What extracts the texts of pages, started when first needed."""
        from likewise.io.archives.html_text import HtmlReaders

        return HtmlReaders()

    def file(self, path: Path, name: str, known: formats.Format | None) -> InputFile:
        """Open a file; its compression and kinds of text are detected from the bytes."""
        rules = self.rules
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InvalidInput("the file name is not valid UTF-8; rename the file", ascii(name)) from None
        if known is not None and known.kind in READ:
            from likewise.io.tables.stored import StoredTable

            return StoredTable.open(path, name, rules, known.kind)
        if not path.is_file():
            raise InvalidInput(
                "not a regular file, and a run reads its input twice; pipe it to standard input and give -", name
            )
        if known is None or known.kind in formats.TEXT_FORMATS:
            known = formats.format_of(path, name, self.forced)
        file = self._opened(path, name, path.stat().st_size, known)
        if rules.tokens is not None and not file.takes_tokens:
            raise InvalidInput(
                f"{known.kind} files have no lists of tokens; --tokens-field reads JSON Lines, Parquet and Arrow", name
            )
        if rules.only_within is not None and not (file.takes_fields or file.has_lines):
            raise InvalidInput(f"{known.kind} files have no field {rules.only_within!r} to compare within", name)
        return file

    def _opened(self, path: Path, name: str, num_bytes: int, found: formats.Format) -> InputFile:
        """Open a file by its format. Imports the module of the format here, since most runs have one format."""
        rules = self.rules
        if found.kind == "jsonl":
            return JsonlFile(path, name, num_bytes, rules, found.codec)
        if found.kind in formats.LINE_FORMATS:
            from likewise.io.lines.csv import CsvFile

            between = self.delimiter or formats.DELIMITERS[found.kind]
            return CsvFile(path, name, num_bytes, rules, found.codec, delimiter=between, is_tsv=found.kind == "tsv")
        if found.kind == "warc":
            from likewise.io.archives.warc import WaczFile, WarcFile

            archive = WaczFile if path.suffix.lower() == ".wacz" else WarcFile
            return archive(path, name, num_bytes, rules, found.codec, self.readers, self.removed)
        if found.kind == "tar":
            from likewise.io.archives.samples import SampleArchive

            return SampleArchive(path, name, num_bytes, rules, "tar")
        if found.kind == "parquet":
            from likewise.io.tables.parquet import ParquetFile

            return ParquetFile(path, name, num_bytes, rules)
        if found.kind == "arrow":
            from likewise.io.tables.arrow import ArrowFile

            return ArrowFile(path, name, num_bytes, rules)
        from likewise.io.lines.text_file import BinaryFile, TextFile

        document = TextFile if found.kind == "text" else BinaryFile
        return document(path, name, num_bytes, rules)


def _walk(root: Path, forbidden: Path | None, forced: str | None, found: _Found) -> None:
    from likewise.io.tables.datasets import COMPANIONS, SPLITS, open_dataset

    paths: list[Path] = []
    of_dataset: set[Path] = set()
    for directory, names, files in os.walk(root, followlinks=False):
        here = Path(directory)
        kind = kind_of_table(directory, _in_folder)
        if kind in READ:
            if forced is not None:
                raise InvalidInput(f"a {kind} table, read by its library; omit --format and --tokens bytes", directory)
            # A table is one input.
            found.files.append((here, root.parent if here == root else root, formats.Format(kind)))
            names.clear()
            continue
        check_no_table(directory, _in_folder, above=here == root)
        # File systems list entries in arbitrary order.
        names.sort(key=os.fsencode)
        files.sort(key=os.fsencode)
        links = [(here / name).relative_to(root).as_posix() for name in names if (here / name).is_symlink()]
        found.skipped.extend(links)
        found.has_links |= bool(links)
        names[:] = [name for name in names if here / name != forbidden and not (here / name).is_symlink()]
        outputs = [name for name in names if _is_output(here / name)]
        found.skipped.extend(f"{(here / name).relative_to(root).as_posix()}/" for name in outputs)
        found.has_outputs |= bool(outputs)
        names[:] = [name for name in names if name not in outputs]
        dataset = open_dataset(here) if forced in (None, "arrow") else None
        if dataset is not None:
            found.datasets.append((here, dataset))
            of_dataset.update(dataset.data_files)
            # Other Arrow files in the directory are caches.
            caches = [name for name in files if name.endswith(".arrow") and here / name not in of_dataset]
            found.skipped.extend((here / name).relative_to(root).as_posix() for name in caches)
            files = [name for name in files if name not in (*caches, *COMPANIONS)]
        if SPLITS in files and forced in (None, "arrow"):
            found.companions.append((here / SPLITS, root))
            files.remove(SPLITS)
        paths.extend(here / name for name in files)
    kinds = {path: formats.Format("binary") if forced == "binary" else formats.format_by_name(path) for path in paths}
    prose = _prose(kinds, forced)
    for path in sorted(paths, key=os.fsencode):
        if path == forbidden:
            continue
        known = kinds[path]
        is_wanted = known is not None and forced in (None, known.kind) and path not in prose
        if path.is_symlink() or not path.is_file() or not is_wanted:
            found.skip(path, path.relative_to(root).as_posix())
            found.has_links |= path.is_symlink()
        else:
            found.files.append((path, root, known))


def _expand(name: str, forbidden: Path | None, forced: str | None, found: _Found) -> None:
    matches = sorted((_absolute(m) for m in glob.glob(name, recursive=True)), key=os.fsencode)  # noqa: PTH207
    if not matches:
        raise FileNotFoundError(2, "no such file or directory", name)
    holders = {parent for path in matches for parent in path.parents}
    if len(matches) == 1 and matches[0] == _absolute(name) and not matches[0].exists():
        target = os.readlink(matches[0])  # noqa: PTH115 - as it is written
        raise InvalidInput(f"broken link to {target}; fix or delete it", name)
    ignored = _beside_datasets(matches, found) if forced in (None, "arrow") else set()
    ignored |= _prose({path: formats.format_by_name(path) for path in matches}, forced)
    is_own = _RunFiles(name)
    in_folder = cache(_in_folder)
    for path in matches:
        if forbidden is not None and path.is_relative_to(forbidden):
            continue
        if not path.exists():
            found.skipped.append(path.name)
            found.has_links = True
        elif is_own(path):
            found.skipped.append(path.name)
            found.has_outputs = True
        elif path.is_dir():
            # The glob matched nothing below this directory, which the user may not expect.
            if path not in holders and not _is_empty(path):
                found.skipped.append(f"{path.name}/")
        elif path not in ignored and (forced is not None or formats.format_by_name(path) is not None):
            check_no_table(str(path.parent), in_folder, above=True)
            found.files.append((path, path.parent, None))
        else:
            found.skip(path, path.name)


def _prose(kinds: Mapping[Path, formats.Format | None], forced: str | None) -> set[Path]:
    """Return the text files (README.md, LICENSE.txt) among files not named one by one, if others contain records."""
    texts = {path for path, known in kinds.items() if known is not None and known.kind == "text"}
    has_records = forced is None and len(texts) < sum(known is not None for known in kinds.values())
    return texts if has_records else set()


def _check_named(named: Sequence[Path], files: Sequence[InputFile], forced: str | None) -> None:
    """Raise InvalidInput if files that were named one by one, often by a shell for a glob, would not be read by it."""
    texts = {file.path for file in files if file.is_document and forced is None}
    folders: dict[Path, list[Path]] = {}
    for path in named:
        folders.setdefault(path.parent, []).append(path)
    for folder, paths in folders.items():
        suffixes = {path.suffix.lower() for path in paths}
        if ".parquet" in suffixes:
            check_no_table(str(folder), _in_folder, above=True)
        prose = [path for path in paths if path in texts]
        if 0 < len(prose) < len(paths):
            raise InvalidInput(
                "this text file is next to records and would become a document of its own; leave it out, or quote the "
                "glob, since quoted globs skip text files next to records",
                prose[0].name,
            )
        if ".arrow" not in suffixes or forced not in (None, "arrow"):
            continue
        from likewise.io.tables.datasets import open_dataset

        dataset = open_dataset(folder, whole=False)
        rows = set() if dataset is None else set(dataset.data_files)
        caches = [path for path in paths if path.suffix == ".arrow" and path not in rows]
        if caches and not rows.isdisjoint(paths):
            raise InvalidInput("this is a cache of the dataset next to it; give the directory instead", caches[0].name)


def _is_output(directory: Path) -> bool:
    """Return whether a directory is the output of a run, finished or not."""
    # An unreadable directory is not an output.
    with suppress(OSError):
        is_finished = (directory / SUMMARY).is_file() and any((directory / name).is_file() for name in _RESULTS)
        return is_finished or (directory / UNFINISHED / IDENTITY).is_file()
    return False


class _RunFiles:
    """Recognizes glob matches in outputs of runs that were not asked for, as ``runs/*/kept/*.jsonl`` does."""

    def __init__(self, pattern: str) -> None:
        before, is_recursive, _ = pattern.partition("**")
        self._begin = _absolute(before[: before.rfind("/") + 1] or ".") if is_recursive else None
        self._known: dict[Path, bool] = {}

    def __call__(self, path: Path) -> bool:
        below = [path.parent]
        if self._begin is not None:
            below += [folder for folder in path.parents if folder != self._begin and self._begin in folder.parents]
        return any(map(self._is_output, below))

    def _is_output(self, directory: Path) -> bool:
        if directory not in self._known:
            self._known[directory] = _is_output(directory)
        return self._known[directory]


def _is_empty(directory: Path) -> bool:
    # An unreadable directory, such as `lost+found`, is skipped like others.
    with suppress(OSError):
        return not any(directory.iterdir())
    return False


def _beside_datasets(matches: list[Path], found: _Found) -> set[Path]:
    """Record datasets of which a glob matches all data files; return other Arrow files in directories of datasets."""
    from likewise.io.tables.datasets import open_dataset

    others: set[Path] = set()
    arrow = [path for path in matches if path.name.endswith(".arrow")]
    for here in sorted({path.parent for path in arrow}, key=os.fsencode):
        dataset = open_dataset(here, whole=False)
        if dataset is None:
            continue
        if set(dataset.data_files) <= set(arrow):
            found.datasets.append((here, dataset))
        others.update(path for path in arrow if path.parent == here and path not in dataset.data_files)
    return others


def _refuse_twice(paths: list[Path]) -> None:
    seen = set()
    for path in paths:
        if path in seen:
            raise InvalidInput(
                "this file is in the inputs twice (perhaps through a directory or a glob); give it once", str(path)
            )
        seen.add(path)


def _copy_stream(stream: BinaryIO, directory: Path, kind: str) -> tuple[Path, formats.Format]:
    path = directory / STDIN_STEM
    with path.open("xb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    with path.open("rb") as file:
        codec = formats.codec_by_bytes(file.read(8)) if kind in formats.CODECS else None
    named = directory / f"{STDIN_STEM}{formats.STDIN_SUFFIXES[kind]}{_CODEC_SUFFIXES[codec]}"
    return path.rename(named), formats.Format(kind, codec)


def find_texts(sources: Sequence[Source], doc_ids: Sequence[str], work: Path) -> list[str]:
    """Return the texts of documents by id; without an id field the id is ``file:line``."""
    found: dict[str, str] = {}
    wanted = set(doc_ids)
    for source in sources:
        for first_line, piece in each_piece(source, _PIECE_BYTES, work):
            ids = piece.ids.to_list()
            for i, (own, line) in enumerate(zip(ids, piece.lines.tolist(), strict=True)):
                doc_id = own if piece.has_id[i] else f"{source.name}:{first_line + line + 1}"
                if doc_id in wanted and doc_id not in found:
                    found[doc_id] = shown_document(piece.texts, i)
            if len(found) == len(wanted):
                return [found[doc_id] for doc_id in doc_ids]
    missing = next(doc_id for doc_id in doc_ids if doc_id not in found)
    raise InvalidInput(f"no document with id {missing!r}; without an id field, ids are file:line")
