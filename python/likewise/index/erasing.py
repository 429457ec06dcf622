"""Erasure: its steps, the marker of an unfinished one, and the certificate of a finished one."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter, StoreError, counted
from likewise.index.opening import DATABASE, OF_THE_SYSTEM
from likewise.io.output.parts import sync_directory

CERTIFICATE_VERSION = 1
MIN_KEY_BYTES, MAX_KEY_BYTES = 16, hashlib.blake2b.MAX_KEY_SIZE
NOT_ON_A_SERVER = (
    "documents cannot be erased from the RDB and AOF files of a server: remove them, run BGREWRITEAOF and BGSAVE on "
    "the server and its replicas, and delete older copies of these files"
)
_DIGEST_BYTES = 32
_MARKER = "erasing.json"
_UNWRITTEN_MARKER = f".{_MARKER}.unfinished"
_MARKER_VERSION = 1
# The log of a database that was replaced while it was open. Nothing reads it.
_REPLACED = (f"{DATABASE}-wal.replaced", f"{DATABASE}-shm.replaced")
_OWN_FILES = {
    DATABASE,
    f"{DATABASE}-wal",
    f"{DATABASE}-shm",
    "documents.mark",
    "writer.lock",
    "segments",
    _MARKER,
    _UNWRITTEN_MARKER,
    *_REPLACED,
}
# Other threads may add a document under an id that is being erased.
_ATTEMPTS = 5
_NOT_REACHED = (
    "snapshots of the index, and other copies of its directory",
    "exports of the index, and indexes that it was merged into",
    "batch runs that read the documents: inputs, outputs, evidence, kept sketches and stored pairs",
    "files of likewise serve next to the index: labels of the review page, and its output to a log",
    "indexes on a Redis or Valkey server, with the RDB and AOF files of the server",
    "replicas and backups of the disk, and snapshots of the file system",
    "blocks of the disk that deleted or shortened files occupied, until the file system reuses them",
    "memory and swap of processes that had the index open, and deleted files that they still hold open",
    "weight tables and word lists that were counted on the documents",
    "sketches and features that a document of the index has in common with an erased one",
)


@dataclass(frozen=True)
class Erasure:
    """The effects of erasing documents.

    Parameters
    ----------
    erased : tuple of str
        Ids for which the index stored a document: present, removed or expired. No file of the index contains them.
    absent : tuple of str
        Ids for which the index stored nothing.
    promoted, moved
        Duplicates of the erased documents, as in ``likewise.index.Removal``.
    index : dict
        ``path``, ``format``, ``recipe_id`` and ``store`` of the index.
    finished_at : str
        Time at which the erasure finished: UTC, in ISO 8601 format.
    """

    erased: tuple[str, ...]
    absent: tuple[str, ...]
    promoted: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]
    index: Mapping[str, Any]
    finished_at: str

    def certificate(self, key: bytes) -> dict[str, Any]:
        """Return a certificate that contains no id, only digests that nobody without the key can compute.

        Parameters
        ----------
        key : bytes
            A secret of 16 to 64 bytes. Keep it for as long as the certificate must be checked.

        Returns
        -------
        dict
            JSON values. ``documents`` lists the ``digest`` of each id, in ascending order, with its ``status``:
            ``erased`` or ``absent``. ``not_reached`` lists the places that an erasure does not change. ``seal`` is the
            digest of all other fields as JSON with sorted keys and without spaces. The digests are BLAKE2b of 32
            bytes, keyed, in hexadecimal.

        Raises
        ------
        InvalidParameter
            If the key is too short or too long.

        Examples
        --------
        >>> import likewise
        >>> with likewise.Index.in_memory("online") as index:
        ...     verdict = index.add("a", "one fine day in spring")
        ...     erasure = index.erase(["a"])
        >>> [document["status"] for document in erasure.certificate(b"a secret of 16 bytes or more")["documents"]]
        ['erased']
        """
        check_key(key)
        documents = [{"digest": _digest(doc_id.encode(), key), "status": "erased"} for doc_id in self.erased]
        documents += [{"digest": _digest(doc_id.encode(), key), "status": "absent"} for doc_id in self.absent]
        fields: dict[str, Any] = {
            "kind": "likewise erasure",
            "version": CERTIFICATE_VERSION,
            "made_by": f"likewise {_native.__version__}",
            "index": dict(self.index),
            "finished_at": self.finished_at,
            "digest": f"BLAKE2b of {_DIGEST_BYTES} bytes, keyed, of the id in UTF-8",
            "num_documents": len(documents),
            "num_erased": len(self.erased),
            "num_absent": len(self.absent),
            "documents": sorted(documents, key=lambda document: document["digest"]),
            "not_reached": list(_NOT_REACHED),
        }
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return {**fields, "seal": _digest(text.encode(), key)}


def check_key(key: object) -> None:
    """Raise InvalidParameter unless `key` is a key of allowed length."""
    if not isinstance(key, bytes):
        raise InvalidParameter("key", f"expected bytes, got {type(key).__name__}")
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise InvalidParameter("key", f"has {len(key)} bytes; it must have {MIN_KEY_BYTES} to {MAX_KEY_BYTES}")


def _digest(content: bytes, key: bytes) -> str:
    return hashlib.blake2b(content, key=key, digest_size=_DIGEST_BYTES).hexdigest()


class _Marker(NamedTuple):
    """An unfinished erasure: its ids, and those for which the index stored a document when it started."""

    ids: list[str]
    stored: set[str]


def num_unfinished(directory: Path) -> int | None:
    """Return the number of ids of an interrupted erasure, or None."""
    marker = _read_marker(directory)
    return None if marker is None else len(marker.ids)


def unfinished_warning(directory: Path) -> str | None:
    """Return a warning about an interrupted erasure, or None."""
    num = num_unfinished(directory)
    if num is None:
        return None
    return (
        f"an erasure of {counted(num, 'id')} from {directory} was interrupted, so its files may still hold their "
        "documents; run it again"
    )


def erase(
    native: _native.OnlineIndex,
    directory: Path,
    ids: Iterable[str],
    threads: int,
    index: Mapping[str, Any],
    on_erased: Callable[[Erasure], object] | None = None,
) -> Erasure:
    """Erase documents, and complete an unfinished erasure."""
    others = sorted({entry.name for entry in directory.iterdir()} - _OWN_FILES - OF_THE_SYSTEM)
    if others:
        raise StoreError(
            f"{directory / others[0]} is not a file of the index and may hold the documents; move it elsewhere or "
            "delete it, then erase"
        )
    marker = _read_marker(directory) or _Marker([], set())
    names = list(dict.fromkeys([*marker.ids, *ids]))
    column = _native.Texts.from_list(names)
    stored = {names[place] for place, _, _ in native.records_of(column)}
    stored |= marker.stored
    _write_marker(directory, _Marker(names, stored))
    kept_ids = _remove_all(native, names, column)
    is_log_cut, left = native.purge(threads=threads)
    if not is_log_cut:
        raise _unfinished("another process or thread is reading the index, so its log may still hold the documents")
    if left:
        raise _unfinished(f"segments/{left[0]} is not a file of the index or cannot be deleted; move or delete it")
    for name in _REPLACED:
        (directory / name).unlink(missing_ok=True)
    if native.records_of(column):
        raise _unfinished("a document was added again under the id of an erased one")
    result = Erasure(
        erased=tuple(name for name in names if name in stored),
        absent=tuple(name for name in names if name not in stored),
        promoted=tuple(doc_id for doc_id, kept_id in kept_ids.items() if kept_id is None),
        moved=tuple((doc_id, kept_id) for doc_id, kept_id in kept_ids.items() if kept_id is not None),
        index=index,
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if on_erased is not None:
        # The marker contains the ids that were stored, so the result can be computed again while it exists.
        on_erased(result)
    _delete_marker(directory)
    return result


def _unfinished(reason: str) -> StoreError:
    return StoreError(f"the erasure is not finished: {reason}; run it again")


def _remove_all(native: _native.OnlineIndex, names: list[str], column: _native.Texts) -> dict[str, str | None]:
    """Remove all documents of some ids, in order; return the kept ids of reassigned duplicates, None if promoted."""
    kept_ids: dict[str, str | None] = {}
    for _ in range(_ATTEMPTS):
        pending = [record for record in native.records_of(column) if record[2] != "gone"]
        if not pending:
            break
        for place, row, standing in pending:
            try:
                if standing == "named":
                    _, promoted, moved = native.remove_expired(row)
                else:
                    _, promoted, moved = native.remove(names[place])
            except InvalidInput:
                # Another thread removed it, or it has expired in the meantime.
                continue
            kept_ids |= dict.fromkeys(promoted)
            kept_ids |= dict(moved)
    erased = set(names)
    return {doc_id: kept_id for doc_id, kept_id in kept_ids.items() if doc_id not in erased}


def _read_marker(directory: Path) -> _Marker | None:
    path = directory / _MARKER
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields["version"] != _MARKER_VERSION:
            raise ValueError
        return _Marker(fields["ids"], set(fields["stored"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise StoreError(
            f"{path} describes an interrupted erasure and is damaged; delete it, and erase the documents again"
        ) from None


def _write_marker(directory: Path, marker: _Marker) -> None:
    unwritten = directory / _UNWRITTEN_MARKER
    fields = {"version": _MARKER_VERSION, "ids": marker.ids, "stored": sorted(marker.stored)}
    with unwritten.open("w", encoding="utf-8", newline="\n") as file:
        json.dump(fields, file)
        file.flush()
        os.fsync(file.fileno())
    unwritten.replace(directory / _MARKER)
    sync_directory(directory)


def _delete_marker(directory: Path) -> None:
    # Sync first, so that the names of the deleted files are gone before the marker's.
    for place in (directory / "segments", directory):
        if place.is_dir():
            sync_directory(place)
    (directory / _MARKER).unlink()
    sync_directory(directory)
