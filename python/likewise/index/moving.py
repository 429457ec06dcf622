"""Moving an index, with all verdicts, between a directory, servers, and a Parquet file."""

import contextlib
import importlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter, LikewiseError, StoreError
from likewise.index import stored
from likewise.index.online import Index
from likewise.index.opening import (
    FILLING,
    attached_parts,
    check_ttl,
    directory_of,
    filling_mark,
    is_there,
    recipe_parts,
)
from likewise.io.output.parts import sync_directory
from likewise.io.places import check_place

if TYPE_CHECKING:
    from likewise.index.redis.description import ServerDestination

_URL = re.compile(r"(redis|rediss|unix|valkey|valkeys)://", re.IGNORECASE)


class Moved(NamedTuple):
    """How many documents were moved, and how many of them were there from an earlier, interrupted move.

    Parameters
    ----------
    num_documents : int
        Documents moved.
    num_continued : int
        Those of them that an earlier, interrupted move had moved.
    """

    num_documents: int
    num_continued: int


def move(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    prefix: str = "likewise",
    to_prefix: str | None = None,
    expected: int | None = None,
    partitions: int | None = None,
    durability: str | None = None,
    ttl: float | None = None,
) -> Moved:
    """Copy an index to a new place with all verdicts, and check the copy. The source does not change.

    Each of both is a directory, a file that ends in ``.parquet``, or the URL of a Redis or Valkey server or of a node
    of a cluster. Ids, the order of arrival, arrival times, verdicts, sketches, features and the recipe stay the same.
    So calls give the same answers as if the index had always been there, except that documents of a directory expire
    only when one is added, and those on servers by the clock. Removed documents are not copied, and expired
    ones only if a duplicate still names them. Documents are numbered again: `seq` has no gaps.

    Parameters
    ----------
    source, destination : str or Path
        The index, and where to create the new one.
    prefix, to_prefix : str
        Prefixes of the keys of the source and the destination, if they are on a server. `to_prefix` defaults to
        `prefix`.
    expected, partitions : int, optional
        As for :class:`likewise.redis.RedisIndex`, for a destination on a server. `expected` defaults to the number of
        documents, but at least 1,000,000.
    durability : {"written", "replicated"}, optional
        As for :class:`likewise.redis.RedisIndex`, for a destination on a server. Defaults to that of a source on
        servers, and to "written" for others.
    ttl : float, optional
        Age in seconds at which documents of the copy expire; 0: never. Defaults to that of the source. Documents keep
        their arrival times; those that have expired in the source do not return.

    Raises
    ------
    InvalidInput
        If there is no source, the destination exists and is not the copy, or a Parquet file is damaged.
    StoreError
        If the source changed during the move, the destination was filled from another source, or the copy differs.

    Notes
    -----
    Memory does not grow with the index, apart from 2 bits for each document. Until the move is complete, the
    destination is marked and cannot be used. If the move is interrupted, repeat the call: it continues if the source is
    unchanged, also if it was interrupted after its work. The source is read twice, and the destination once.
    """
    to_prefix = prefix if to_prefix is None else to_prefix
    if _place(source, prefix) == _place(destination, to_prefix):
        raise InvalidParameter("destination", "is the source itself; choose another place")
    options = {"expected": expected, "partitions": partitions, "durability": durability}
    given = [name for name, value in options.items() if value is not None]
    if given and not _is_url(destination):
        raise InvalidParameter(given[0], "requires a server as destination")
    with _naming("destination"):
        as_of_s = _as_of_s(destination, to_prefix)
    with _opened(source, prefix, as_of_s) as opened:
        if ttl is not None:
            ttl_s = check_ttl(ttl or None)
            opened.about = opened.about._replace(ttl_s=ttl_s, ttl_from=opened.about.ttl_from if ttl_s else "first_seen")
        try:
            if _is_parquet(destination):
                path = Path(os.fspath(destination))
                if path.exists():
                    raise stored.Occupied("already exists; choose a new file, or delete it", str(path))
                return Moved(stored.write_parquet(path, opened), 0)
            if _is_url(destination):
                filling: Any = importlib.import_module("likewise.index.redis.description")
                fill: _DirectoryDestination | ServerDestination = filling.ServerDestination(
                    os.fspath(destination), to_prefix, opened, **options
                )
            else:
                fill = _DirectoryDestination(directory_of(destination), opened)
        except stored.Occupied:
            if not _is_copy(opened, destination, to_prefix):
                raise
            return Moved(len(opened), len(opened))
        with fill:
            return _fill(opened, fill)


def _is_copy(source: stored.Source, destination: str | os.PathLike[str], prefix: str) -> bool:
    """Return whether a destination has the documents of a source: an earlier move was stopped after its work."""
    try:
        with _opened(destination, prefix, getattr(source, "as_of_s", None)) as there:
            one, other = (
                (about.recipe.recipe_id, about.ttl_s, about.ttl_from) for about in (source.about, there.about)
            )
            if (*one, len(source)) != (*other, len(there)):
                return False
            # Servers store no texts.
            kept = there.kept if isinstance(there, stored.ServerSource) else lambda documents: documents
            return stored.checksum_of(map(kept, stored.checked_batches(source))) == stored.checksum_of(there.batches())
    except LikewiseError:
        return False


def _fill(source: stored.Source, destination: "_DirectoryDestination | ServerDestination") -> Moved:
    num_done = destination.num_done
    num, checksum = 0, 0
    for documents in stored.checked_batches(source):
        kept = destination.kept(documents)
        num += len(kept)
        checksum = kept.checksum(checksum)
        rest = kept.rest_from(num_done)
        if len(rest):
            destination.add(rest)
    if stored.checksum_of(destination.written(num)) != (num, checksum):
        raise StoreError(
            f"{destination.place} does not contain what was written to it; delete it, check its storage, and repeat "
            "the move"
        )
    destination.finish()
    return Moved(num, num_done)


def _is_url(place: str | os.PathLike[str]) -> bool:
    return isinstance(place, str) and _URL.match(place) is not None


def _is_parquet(place: str | os.PathLike[str]) -> bool:
    return not _is_url(place) and os.fspath(place).endswith(stored.SUFFIX)


def _place(place: str | os.PathLike[str], prefix: str) -> tuple[str, str]:
    return (os.fspath(place), prefix) if _is_url(place) else (str(Path(place).resolve()), "")


def _as_of_s(destination: str | os.PathLike[str], prefix: str) -> int | None:
    """Return the second at which an interrupted move to a place began."""
    if _is_parquet(destination):
        return None
    if _is_url(destination):
        filling: Any = importlib.import_module("likewise.index.redis.description")
        mark = filling.mark_of(os.fspath(destination), prefix)
    else:
        mark = filling_mark(directory_of(destination))
    found = None if mark is None else mark.get("as_of_s")
    return found if isinstance(found, int) else None


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name the parameter that has a wrong URL."""
    try:
        yield
    except InvalidParameter as error:
        if error.name != "url":
            raise
        raise InvalidParameter(name, error.message) from None


@contextlib.contextmanager
def _opened(place: str | os.PathLike[str], prefix: str, as_of_s: int | None) -> Iterator[stored.Source]:
    if _is_url(place):
        redis: Any = importlib.import_module("likewise.index.redis.index")
        with _naming("source"):
            servers = redis.RedisIndex(os.fspath(place), prefix=prefix, read_only=True)
        with servers:
            yield servers.stored(as_of_s)
    elif _is_parquet(place):
        yield stored.ParquetSource(Path(place))
    else:
        check_place(place)
        directory = directory_of(place)
        if not is_there(directory):
            raise InvalidInput("no index here; create one with `likewise index create`", str(place))
        with Index(directory, read_only=True) as index:
            yield index.stored()


class _DirectoryDestination:
    """A new index in a directory, with a file that marks it until it is complete."""

    def __init__(self, directory: Path, source: stored.Source) -> None:
        about = source.about
        self.place = str(directory)
        self._directory = directory
        if directory.is_file():
            raise InvalidInput("is a file; choose a new directory", str(directory))
        mark = filling_mark(directory)
        if mark is None:
            if is_there(directory):
                raise stored.Occupied("already contains an index; choose a new directory", str(directory))
            directory.mkdir(parents=True, exist_ok=True)
            with (directory / FILLING).open("w", encoding="utf-8", newline="\n") as file:
                json.dump(stored.mark_fields(source), file)
                file.flush()
                os.fsync(file.fileno())
            sync_directory(directory)
        else:
            stored.check_mark(mark, source, str(directory), f"delete {directory}")
        exists = is_there(directory)
        self.about = stored.About(about.recipe, about.store, about.ttl_s, str(directory), ttl_from=about.ttl_from)
        # Levels of buckets may have gaps, where the source had documents that did not move.
        attached = attached_parts(about.recipe, about.ttl_s, about.ttl_from) | {"moved": b"1"}
        self._native = _native.OnlineIndex(
            directory,
            "write" if exists else "create",
            recipe_parts(about.recipe, about.store, {} if exists else attached),
            about.recipe.feature_rules,
            sync_seconds=None,
            ttl_seconds=about.ttl_s,
            accept_loss=False,
            accept_clock=False,
        )
        self.num_done: int = self._native.standing()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # The first error is more informative than an error from closing.
        with contextlib.suppress(*([] if error[1] is None else [StoreError])):
            self._native.close()

    def kept(self, documents: _native.MovedDocuments) -> _native.MovedDocuments:
        """Return documents as the destination keeps them."""
        return documents

    def add(self, documents: _native.MovedDocuments) -> None:
        self._native.restore(documents)

    def written(self, num: int) -> Iterator[_native.MovedDocuments]:
        """Yield the documents again."""
        return stored.DirectorySource(self._native, self.about, _native.RowNumbers(num)).batches()

    def finish(self) -> None:
        self._native.close()
        sync_directory(self._directory)
        (self._directory / FILLING).unlink()
        sync_directory(self._directory)
