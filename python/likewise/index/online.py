"""The index in one directory: the Python API of the native index."""

import errno
import os
import shutil
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ColumnData, TextData
from likewise.errors import InvalidInput, InvalidParameter, StoreError, num_threads
from likewise.index import opening
from likewise.index.api import Document, Group, IndexApi, Neighbor, Removal, Verdict, Verdicts
from likewise.index.erasing import Erasure, erase, num_unfinished, unfinished_warning
from likewise.index.ids import all_ids, is_kept_as_given, one_id, paired, rows_from, too_long
from likewise.index.stored import SUFFIX, About, DirectorySource, write_parquet
from likewise.io.html import facts
from likewise.recipe.fields import RecipeFields
from likewise.recipe.methods import MinHash, SimHashDistance
from likewise.recipe.recipe import GivenRecipe, as_recipe
from likewise.stages.sketch import Sketches, batch_of_one
from likewise.stages.text import document_batches

_IN_MEMORY = "/dev/shm"  # of Linux
# The longest interval allowed: the files of an index in memory are never opened again.
_NO_SYNC = "interval:3600s"


class Index(IndexApi):
    """A persistent index that reports whether a new document is a duplicate, and of which document.

    Parameters
    ----------
    path : str or Path
        The directory of the index, created if it does not exist. An index can have one writer at a time and any number
        of readers.
    recipe : Recipe or str, optional
        The recipe, or the name of a preset. The method must be simhash or minhash, and `keep` must be ``first``. By
        default, a new index uses the preset ``online``, because an index cannot choose a threshold from documents that
        have not arrived yet. An existing index stores its recipe, with its weight table and word lists, and rejects a
        different one.
    store : {"sketch", "shingles", "text"}, optional
        The data to store for each document in addition to its sketch. Recipes that measure pairs store the feature
        sets (``shingles``, the default) or the texts (``text``). Hamming-only recipes store only the
        features of short texts by default (``sketch``).
    durability : str
        When additions are safe from power loss. ``commit``: when the call returns. ``interval:200ms``: at most that
        long after the call. If the process is killed, nothing is lost in either case. With an interval, a power loss
        can lose the most recent batches, each as a whole.
    ttl : float, optional
        Whole number of seconds after which a document expires. By default, documents do not expire. An existing index
        keeps its `ttl` and rejects a different one.
    ttl_from : {"first_seen", "last_seen"}, optional
        From when the age of a document counts: from its own arrival (``first_seen``, the default), or from that of the
        newest document of its group (``last_seen``). With ``last_seen``, the newest duplicate of an expired document
        is kept in its place, and the others are compared with it.
    read_only : bool
        Whether to open the index for reading only, even while another process writes to it. Each call sees the
        documents committed before it.
    threads : int, optional
        Number of threads for each call. By default, all processors are used.
    accept_loss : bool
        Whether to open an index whose database or log lost acknowledged documents. ``stats["loss"]`` describes the
        loss. If False, opening such an index raises a StoreError.
    accept_clock : bool
        With a `ttl`: whether to trust the machine's clock even if ``stats["clock_warning"]`` reports a problem.
    **fields
        Fields of a recipe, as an alternative to `recipe` (see :func:`likewise.dedup`). `keep` defaults to ``first``.

    Raises
    ------
    IndexLocked
        If another process has the index open for writing.
    RecipeMismatch
        If the index was created with a different recipe.
    StoreError
        If the index is damaged, its database is missing, or it is on a network file system.
    InvalidParameter
        If an index cannot use the recipe, or if the directory contains other files but no index.

    Notes
    -----
    Documents get the same verdicts as from :func:`likewise.dedup` with the documents in order of arrival. Threads can
    share one object. A process that is forked while an index is open cannot use any index.

    Examples
    --------
    >>> import likewise, tempfile
    >>> with likewise.Index(tempfile.mkdtemp() + "/seen", likewise.Recipe.simhash(within=3)) as seen:
    ...     first = seen.check_and_add("a", "one fine day in spring")
    ...     again = seen.check_and_add("b", "One fine day, in spring!")
    >>> first.is_new, again.is_new, again.kept_id
    (True, False, 'a')
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        recipe: GivenRecipe | None = None,
        *,
        store: opening.Store | None = None,
        durability: str = "commit",
        ttl: float | None = None,
        ttl_from: opening.TtlFrom | None = None,
        read_only: bool = False,
        threads: int | None = None,
        accept_loss: bool = False,
        accept_clock: bool = False,
        **fields: Unpack[RecipeFields],
    ) -> None:
        given = opening.named_recipe(recipe, fields)
        directory = opening.directory_of(path)
        opening.check_complete(directory)
        seconds = opening.sync_seconds(durability)
        ttl_s = opening.check_ttl(ttl)
        self._threads = num_threads(threads)
        if opening.is_there(directory):
            mode = "read" if read_only else "write"
            resolved, kept = opening.recipe_of(directory, given)
            if store is not None and opening.check_store(store, resolved) != kept:
                raise InvalidParameter("store", f"{path} stores {kept}, not {store}")
            ttl_s, counts_from = opening.ttl_of(directory, ttl_s, ttl_from)
        elif read_only:
            raise FileNotFoundError(errno.ENOENT, "no index to read", str(path))
        else:
            mode = "create"
            resolved = opening.check_recipe(as_recipe() if given is None else given)
            kept = opening.check_store(store, resolved)
            counts_from = opening.check_ttl_from(ttl_from or "first_seen", ttl_s)
        self._recipe = resolved
        self._takes_str = not resolved.takes_tokens and resolved.only_within is None
        self._path = directory
        self._store = kept
        self._ttl_s, self._ttl_from = ttl_s, counts_from
        self._is_reader = mode == "read"
        self._erasing = threading.Lock()
        self._delete: weakref.finalize[[str, int], Self] | None = None
        self._native = _native.OnlineIndex(
            directory,
            mode,
            opening.recipe_parts(
                resolved, kept, opening.attached_parts(resolved, ttl_s, counts_from) if mode == "create" else {}
            ),
            resolved.feature_rules,
            sync_seconds=seconds,
            ttl_seconds=ttl_s,
            is_renewed=counts_from == "last_seen",
            accept_loss=accept_loss,
            accept_clock=accept_clock,
        )
        if mode == "write" and (warning := unfinished_warning(directory)) is not None:
            warnings.warn(warning, RuntimeWarning, stacklevel=2)

    @classmethod
    def in_memory(
        cls,
        recipe: GivenRecipe | None = None,
        *,
        store: opening.Store | None = None,
        ttl: float | None = None,
        ttl_from: opening.TtlFrom | None = None,
        threads: int | None = None,
        **fields: Unpack[RecipeFields],
    ) -> Self:
        """Return a new temporary index for this process, with arguments as for :class:`Index`.

        It is deleted when it is closed or no longer referenced, or when the process ends.

        Notes
        -----
        The files are in the directory for temporary files (``TMPDIR``), or in ``/dev/shm`` if that directory cannot be
        written, and need as much space there as any other index.
        Writes do not wait for the disk. Use :meth:`snapshot` to keep a copy.

        Examples
        --------
        >>> import likewise
        >>> with likewise.Index.in_memory("online") as seen:
        ...     verdicts = seen.add_batch(["a", "b"], ["Solar kettle, 1.5 l", "solar kettle 1.5 L"])
        >>> verdicts.kept_ids
        [None, 'a']
        """
        parent = _new_directory()
        try:
            made = cls(
                Path(parent) / "index",
                recipe,
                store=store,
                durability=_NO_SYNC,
                ttl=ttl,
                ttl_from=ttl_from,
                threads=threads,
                **fields,
            )
        except BaseException:
            shutil.rmtree(parent, ignore_errors=True)
            raise
        made._delete = weakref.finalize(made, _delete_of_process, parent, os.getpid())
        return made

    @classmethod
    def from_signatures(
        cls,
        signatures: ColumnData,
        recipe: GivenRecipe,
        ids: ColumnData,
        *,
        path: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Return a new index of stored fingerprints whose texts are unknown, in the given order.

        Parameters
        ----------
        signatures : array of uint64 or int64, list of int, or Sketches
            SimHash fingerprints, as accepted by :meth:`likewise.Sketches.from_signatures`.
        recipe : Recipe or str
            The recipe that creates the same fingerprints. It must be Hamming-only (`within` without `threshold`).
        ids : list of str or int, Arrow data, or iterable
            The ids of the documents.
        path : path-like, optional
            Directory for the new index. By default, the index is in memory.

        Raises
        ------
        InvalidParameter
            If the recipe measures features, which signatures do not contain. Add the texts or tokens to an index with
            that recipe instead.

        Examples
        --------
        >>> import likewise
        >>> recipe = likewise.Recipe.simhash(hash="simhash-1e0ng", within=3)
        >>> with likewise.Index.from_signatures([7, 6, 2**40 - 1], recipe, ["a", "b", "c"]) as index:
        ...     [index.get(doc_id).kept_id for doc_id in index.ids()]
        [None, 'a', None]
        """
        resolved = opening.check_recipe(as_recipe(recipe))
        if not resolved.is_distance_only:
            raise InvalidParameter(
                "recipe",
                "it measures similarity on features, which signatures do not contain; add the texts or tokens to an "
                "index, or use a SimHash recipe with only within",
            )
        made = signatures if isinstance(signatures, Sketches) else Sketches.from_signatures(signatures, resolved)
        index = cls.in_memory(resolved) if path is None else cls(path, resolved)
        try:
            index.add_batch(ids, made)
        except BaseException:
            index.close()
            raise
        return index

    def __len__(self) -> int:
        """Return the number of documents that are neither removed nor expired."""
        return len(self._native)

    def __contains__(self, doc_id: object) -> bool:
        """Return whether a document has this id and is neither removed nor expired."""
        return self._native.are_known(all_ids([doc_id]))[0]

    def __repr__(self) -> str:
        return f"Index({str(self._path)!r}, {self._recipe.method}, store={self._store!r})"

    def _repr_html_(self) -> str:
        try:
            num_documents = f"{len(self):,}"
        except StoreError as error:
            num_documents = str(error)
        recipe = self._recipe
        match = (
            f"distance <= {recipe.sketch.within}"
            if isinstance(recipe.sketch, SimHashDistance)
            else (f"{recipe.measure} >= {recipe.threshold}")
        )
        values = {"documents": num_documents, "match": match, "store": self._store, "recipe_id": recipe.recipe_id}
        return facts(f"Index: {self._path}", values)

    @property
    def path(self) -> Path:
        """The directory of the index."""
        return self._path

    def check(self, text: TextData) -> Verdict:
        if type(text) is not str or not self._takes_str:
            return self.check_batch(batch_of_one(text))[0]
        return self._verdict(None, self._native.check_text(text), None, added=False)

    def check_batch(self, texts: TextData) -> Verdicts:
        parts = [
            self._verdicts(self._native.check(batch, threads=self._threads), None) for batch in self._batches(texts)
        ]
        return parts[0] if len(parts) == 1 else Verdicts.concatenate(parts)

    def check_and_add(self, doc_id: str, text: TextData) -> Verdict:
        if type(text) is not str or not self._takes_str or not is_kept_as_given(doc_id):
            return self.check_and_add_batch([doc_id], batch_of_one(text))[0]
        found, row, added = self._native.add_text(doc_id, text)
        return self._verdict(doc_id, found, row + 1, added=added)

    def check_and_add_batch(self, ids: ColumnData, texts: TextData) -> Verdicts:
        if isinstance(texts, Sketches):
            names = all_ids(ids)
            columns = self._native.add(names, self._sketch_columns(texts), threads=self._threads)
            return self._verdicts(columns, names)
        parts: list[Verdicts] = []
        for names, batch in paired(ids, document_batches(texts, self._recipe)):
            with rows_from(sum(map(len, parts))):
                try:
                    columns = self._native.add(names, batch, threads=self._threads)
                except InvalidParameter as error:
                    raise too_long(error, names) from error
            parts.append(self._verdicts(columns, names))
        return parts[0] if len(parts) == 1 else Verdicts.concatenate(parts)

    def get(self, doc_id: str) -> Document | None:
        doc_id = one_id(doc_id)
        return self._document(doc_id, self._native.get(doc_id))

    def text(self, doc_id: str) -> str | None:
        """Return the stored text of a document, tokens separated by spaces.

        None if the id is unknown, or if the index does not store texts (``store="text"``).
        """
        return self._native.text(doc_id)

    def neighbors_batch(
        self,
        texts: TextData,
        k: int = 10,
        min_similarity: float = 0.0,
        *,
        among: opening.Among | None = None,
    ) -> list[list[Neighbor]]:
        """Return the most similar documents of each text, in the order of the texts, as :meth:`neighbors`.

        Parameters
        ----------
        texts : list of str, Arrow data, iterable of str, or Sketches
            The texts.
        k, min_similarity, among
            As for :meth:`neighbors`.
        """
        k, least = opening.check_nearest(k, min_similarity)
        # By distance alone, documents with other values of the field would be neighbors.
        is_apart = self._recipe.only_within is not None and self._recipe.is_distance_only
        among = "all" if among is None else opening.check_among(among)
        pool = None if among == "candidates" or is_apart else among
        found = [
            neighbors
            for batch in self._batches(texts)
            for neighbors in self._native.neighbors(batch, k, least, among=pool, threads=self._threads)
        ]
        return self._neighbors(found)

    def ids(self) -> Iterator[str]:
        row = 0
        while (found := self._native.ids_from(row)) is not None:
            names, row = found
            yield from names

    def group(self, doc_id: str) -> Group:
        leader, is_gone, members = self._native.group(one_id(doc_id))
        return Group(leader, is_gone, tuple(members))

    def remove(self, doc_id: str) -> Removal:
        doc_id = one_id(doc_id)
        was_kept, promoted, moved = self._native.remove(doc_id)
        return Removal(doc_id, was_kept, tuple(promoted), tuple(moved))

    def erase(
        self,
        ids: ColumnData,
        *,
        on_erased: Callable[[Erasure], object] | None = None,
    ) -> Erasure:
        """Erase documents: remove them, and overwrite or delete all of their data in the files of the index.

        Removal follows the rules of :meth:`remove`, in the order of `ids`. An expired document whose duplicates are
        still in the index is removed too, which reassigns its duplicates. Afterward, no file of the directory contains
        the id, the text or a hash of an erased document, except hashes, sketches and features that a document of the
        index also has. Row numbers are never used again.

        Parameters
        ----------
        ids : list of str or int, Arrow data, or iterable
            The ids, which may be absent from the index. If an earlier erasure was interrupted, its ids are added.
        on_erased : callable, optional
            Called with the result when the documents are erased, but before the erasure counts as complete, for example
            to write the certificate. If it raises or the process ends, another call gives the same statuses.

        Raises
        ------
        StoreError
            If the index is open for reading only, if the directory contains other files, or if a reader used the log
            for 2 seconds. In the last case, the documents are removed but may still be in the log.

        Notes
        -----
        An erasure is complete when this method returns. If it fails or is interrupted, opening the index for writing
        warns, ``stats["unfinished_erasure"]`` is the number of its ids, and `verify` reports it. Call `erase`
        again, with the same ids or none, to complete it.

        The cost is that of :meth:`compact`, and of writing the whole database three times. Free space of twice its
        size is needed: in the directory, and in the directory for temporary files of SQLite (``SQLITE_TMPDIR``).

        Examples
        --------
        >>> import likewise
        >>> with likewise.Index.in_memory("online") as index:
        ...     verdicts = index.add_batch(["a", "b"], ["Solar kettle, 1.5 l", "solar kettle 1.5 L"])
        ...     erasure = index.erase(["a", "c"])
        >>> erasure.erased, erasure.absent, erasure.promoted
        (('a',), ('c',), ('b',))
        """
        if self._is_reader:
            raise StoreError(f"{self._path} was opened for reading only; open it for writing to erase documents")
        names = all_ids(ids).to_list()
        about = {
            "path": str(self._path),
            "format": opening.DOCUMENTS_FORMAT,
            "recipe_id": self._recipe.recipe_id,
            "store": self._store,
        }
        with self._erasing:
            return erase(self._native, self._path, names, self._threads, about, on_erased)

    @property
    def stats(self) -> dict[str, Any]:
        """Number of documents and events, rows and bytes of segments and database, recipe, and SQLite version.

        ``recall`` is the probability of finding a pair exactly at the threshold. ``recall_full_buckets`` is a lower
        bound of this probability for two documents that reached full buckets (MinHash).
        """
        facts: dict[str, Any] = dict(self._native.facts())
        facts["store"] = self._store
        facts["ttl_s"] = self._ttl_s
        facts["ttl_from"] = None if self._ttl_s is None else self._ttl_from
        facts["unfinished_erasure"] = num_unfinished(self._path)
        facts["recipe_id"] = self._recipe.recipe_id
        facts["recipe"] = self._recipe.to_dict()
        facts["recall"] = self._recipe.stated_recall
        if isinstance(self._recipe.sketch, MinHash):
            # The number of documents in full buckets is not counted.
            facts["recall_full_buckets"] = self._recipe.recall_with(1, 1)
        return facts

    def verify(self, *, full: bool = False) -> list[str]:
        """Return a message for each problem of the files of the index; with `full`, read every byte of the database."""
        warning = unfinished_warning(self._path)
        return [*([] if warning is None else [warning]), *self._native.verify(full)]

    def compact(self) -> None:
        """Merge all segments into one and free the space of removed documents. Other calls may run at the same time.

        The data of removed and expired documents in the database is overwritten. The exceptions are the ids and
        sketches of expired documents that are still the kept document of a duplicate. The log may contain the data
        until the index is closed.
        """
        self._native.compact(threads=self._threads)

    def rebuild(self) -> None:
        """Delete all derived files and rebuild them from the database."""
        self._native.rebuild(threads=self._threads)

    def merge(self, other: "Index") -> Verdicts:
        """Add the documents of another index, in their order, as if they were arriving now.

        Returns the verdicts that differ from the verdicts in `other`: with a different kept document, or none.

        Parameters
        ----------
        other : Index
            An index with the same recipe and `store`. It is not changed.

        Raises
        ------
        RecipeMismatch
            If the recipes differ.
        InvalidParameter
            If both are the same index, or they store different contents.
        InvalidInput
            If an id belongs to different texts in the two indexes. In that case, nothing is added.

        Notes
        -----
        Each part that `other` stores together is added in one transaction. An interrupted merge can be repeated:
        documents that already exist do not change.
        """
        if not isinstance(other, Index):
            raise InvalidInput(f"expected an Index, got {type(other).__name__}")
        if other.path.resolve() == self._path.resolve():
            raise InvalidParameter("other", f"{self._path} is this index itself")
        if other.recipe.recipe_id != self._recipe.recipe_id:
            raise opening.other_recipe(other.path, self._recipe, other.recipe, other.recipe.recipe_id)
        if other._store != self._store:
            raise InvalidParameter("other", f"{other.path} stores {other._store}; {self._path} stores {self._store}")
        row: int | None = 0
        while row is not None:
            row = self._native.check_ids_of(other._native, row, threads=self._threads)
        parts = []
        row = 0
        while (added := self._native.add_from(other._native, row, threads=self._threads)) is not None:
            names, kept_before, columns, row = added
            verdicts = Verdicts.of_columns(columns, self._recipe.measure, names)
            is_changed = [before != now for before, now in zip(kept_before, verdicts.kept_ids, strict=True)]
            parts.append(verdicts.select(np.array(is_changed, bool)))
        return Verdicts.concatenate(parts) if parts else Verdicts.none(self._recipe.measure)

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the current state of the index to a new directory. The index can be used during the copy.

        Raises InvalidParameter if the directory is not empty, or is inside the index.
        """
        target = opening.directory_of(path)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InvalidParameter("path", f"{target} is not empty; write the snapshot to a new or empty directory")
        if self._path.resolve() in target.resolve().parents:
            raise InvalidParameter("path", f"{target} is inside the index; choose a directory outside it")
        # A directory that cannot be created is named.
        target.parent.mkdir(parents=True, exist_ok=True)
        self._native.snapshot(target)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all documents to a file, in order of arrival.

        Each line of JSON has the id, the sketch and the verdict, and the text if the index stores it. A file that ends
        in ``.parquet`` also has the recipe and everything that verdicts depend on, so that :func:`likewise.index.move`
        can create an index from it.

        An existing file is overwritten. Raises StoreError if the index changed while it was written as Parquet.
        """
        if Path(path).suffix == SUFFIX:
            write_parquet(Path(path), self.stored())
            return
        with Path(path).open("w", encoding="utf-8", newline="\n") as file:
            self._native.export(file.write)

    def stored(self) -> DirectorySource:
        """Return the documents with their verdicts, for a move."""
        return DirectorySource(
            self._native, About(self._recipe, self._store, self._ttl_s, str(self._path), ttl_from=self._ttl_from)
        )

    def close(self) -> None:
        """Close the index. An index in memory is deleted. Further calls have no effect."""
        self._native.close()
        if self._delete is not None:
            self._delete()

    def _verdicts(self, columns: dict[str, Any], names: _native.Texts | None) -> Verdicts:
        return Verdicts.of_columns(columns, self._recipe.measure, None if names is None else names.to_list())

    def _batches(self, texts: TextData) -> "Iterable[_native.Given]":
        return [self._sketch_columns(texts)] if isinstance(texts, Sketches) else document_batches(texts, self._recipe)

    def _sketch_columns(self, sketches: Sketches) -> tuple[Any, Any, Any]:
        if self._store == "text" and self._recipe.is_distance_only:
            raise InvalidInput("this index stores texts; pass texts")
        return super()._sketch_columns(sketches)


def _new_directory() -> str:
    """Make a directory for temporary files, in memory if there is no other place for it."""
    try:
        return tempfile.mkdtemp(prefix="likewise-")
    except OSError:
        if not os.access(_IN_MEMORY, os.W_OK):
            raise
        return tempfile.mkdtemp(prefix="likewise-", dir=_IN_MEMORY)


def _delete_of_process(path: str, process: int) -> None:
    # A forked process also has the object, but does not own its files.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


class BatchRun:
    """An index as one batch run sees it: without rows added after its first check. A rerun has the same identity."""

    def __init__(self, index: Index, identity: bytes) -> None:
        self._index, self._identity = index, identity
        self._native, self._threads = index._native, index._threads
        self._first_row = self._native.first_row_of_run(identity)

    def check_batch(self, texts: _native.Texts) -> Verdicts:
        """Return the verdict that each text got, or would have gotten, at the run's first check."""
        columns = self._native.check(texts, end=self._first_row, threads=self._threads)
        return Verdicts.of_columns(columns, self._index.recipe.measure, None)

    def known(self, ids: ColumnData) -> NDArray[np.bool_]:
        """Return, for each id, whether the index has a document with this id."""
        return np.asarray(self._native.are_known(all_ids(ids)), bool)

    def first_of_other_text(self, ids: ColumnData, texts: _native.Texts) -> int | None:
        """Return the position of the first text whose id belongs to a different text in the index, or None."""
        return self._native.first_of_other_text(all_ids(ids), texts, threads=self._threads)

    def add_batch(self, ids: ColumnData, texts: _native.Texts) -> None:
        """Add documents in one transaction. Documents that already exist do not change."""
        names, run = all_ids(ids), (self._identity, self._first_row)
        try:
            self._native.add(names, texts, run=run, threads=self._threads)
        except InvalidParameter as error:
            raise too_long(error, names) from error
