"""The index in one directory: the Python API of the native index."""

import contextlib
import errno
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

import numpy as np

from likewise import _native
from likewise.checks import check_integer, num_threads
from likewise.errors import InvalidInput, InvalidParameter, StoreError
from likewise.index.ids import all_ids, is_kept_as_given, one_id, paired, rows_from, too_long
from likewise.index.opening import (
    Store,
    attached_parts,
    check_recipe,
    check_store,
    check_ttl,
    directory_of,
    is_there,
    named_recipe,
    recipe_of,
    recipe_parts,
    sync_seconds,
    ttl_of,
)
from likewise.index.verdicts import Document, Group, Neighbor, Removal, Verdict, Verdicts
from likewise.markup import facts
from likewise.recipe.given import GivenRecipe, RecipeFields, as_recipe
from likewise.recipe.methods import MinHash, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.documents import document_batches
from likewise.stages.sketch import Sketches, batch_of_one

_MAX_LIMIT = 2**31 - 1


class Index:
    """A directory of documents that says of each new one whether it was seen before, and of which it is a duplicate.

    Parameters
    ----------
    path : str or Path
        The directory; made where there is none. One writer at a time, any number of readers.
    recipe : Recipe or str, optional
        What a near-duplicate is, or the name of a preset: of method simhash or minhash, ``keep="first"``. A new index
        takes the preset ``online`` where None, since it cannot choose a threshold from documents that are yet to come;
        an index that is there knows its own, with its weight table and lists of words, and refuses another.
    store : {"sketch", "shingles", "text"}, optional
        What is kept of each document beside its sketch. ``sketch`` (the default by distance alone) keeps the features
        of short texts only; recipes that measure pairs keep the feature sets, ``shingles``, or the texts.
    durability : str
        ``commit``: an addition is safe from power loss when the call returns. ``interval:200ms``: so long after it; a
        kill of the process loses nothing, power loss the last batches, whole.
    ttl : float, optional
        Seconds, as a whole number, after which a document is forgotten; nothing is promoted then. Never where None. An
        index that is there keeps its own, and refuses another.
    read_only : bool
        Whether to read beside the writer; what it commits is seen by the next call.
    threads : int, optional
        Threads of each call; all processors where None.
    accept_loss : bool
        Whether to open an index from whose database or log acknowledged documents were lost. ``stats["loss"]`` then
        shows which. Otherwise that is a StoreError.
    accept_clock : bool
        Whether the machine's clock is right, with a `ttl`, even though ``stats["clock_warning"]`` says otherwise.
    **fields
        Fields of a recipe instead of one (:func:`likewise.dedup`), `keep` ``first`` where it is not named.

    Raises
    ------
    IndexLocked
        If another process writes to it.
    RecipeMismatch
        If the index was made by another recipe.
    StoreError
        If it is damaged, its database is missing, or the file system is a network's.
    InvalidParameter
        If the recipe is none that an index goes by, or the directory holds other files and no index.

    Notes
    -----
    Documents get the verdicts that :func:`likewise.dedup` gives them in the order of their arrival. Threads may share
    one object; a process that was forked while any was open can use none.

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
        store: Store | None = None,
        durability: str = "commit",
        ttl: float | None = None,
        read_only: bool = False,
        threads: int | None = None,
        accept_loss: bool = False,
        accept_clock: bool = False,
        **fields: Unpack[RecipeFields],
    ) -> None:
        given = named_recipe(recipe, fields)
        directory = directory_of(path)
        seconds = sync_seconds(durability)
        ttl_s = check_ttl(ttl)
        self._threads = num_threads(threads)
        if is_there(directory):
            mode = "read" if read_only else "write"
            resolved, kept = recipe_of(directory, given)
            if store is not None and check_store(store, resolved) != kept:
                raise InvalidParameter("store", f"{path} stores {kept}, not {store}")
            ttl_s = ttl_of(directory, ttl_s)
        elif read_only:
            raise FileNotFoundError(errno.ENOENT, "no index to read", str(path))
        else:
            mode = "create"
            resolved = check_recipe(as_recipe() if given is None else given)
            kept = check_store(store, resolved)
        self._recipe = resolved
        self._takes_str = not resolved.takes_tokens
        self._path = directory
        self._store = kept
        self._ttl_s = ttl_s
        self._native = _native.OnlineIndex(
            directory,
            mode,
            recipe_parts(resolved, kept, attached_parts(resolved, ttl_s) if mode == "create" else {}),
            resolved.feature_rules,
            sync_seconds=seconds,
            ttl_seconds=ttl_s,
            accept_loss=accept_loss,
            accept_clock=accept_clock,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # What went wrong first says more than what closing finds after it.
        with contextlib.suppress(*([] if error is None else [StoreError])):
            self.close()

    def __len__(self) -> int:
        """Documents that are neither removed nor expired."""
        return len(self._native)

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
    def recipe(self) -> Recipe:
        """What decides, with its search chosen."""
        return self._recipe

    @property
    def path(self) -> Path:
        """The directory."""
        return self._path

    def check(self, text: Any) -> Verdict:  # noqa: ANN401 - str, what the recipe's tokens take, or Sketches of one
        """Return the verdict that a document would get now, without adding it.

        Parameters
        ----------
        text : str, tokens, or Sketches of one document
            The document. Tokens are accepted if the recipe takes tokens of the user.

        Returns
        -------
        Verdict
            With `doc_id` and `seq` None.

        Raises
        ------
        InvalidInput
            If it is not a text, or a sketch is of a document so short that its features are compared too.
        RecipeMismatch
            If a sketch was made by another recipe.
        """
        if type(text) is not str or not self._takes_str:
            return self.check_batch(batch_of_one(text))[0]
        return self._verdict(None, self._native.check_text(text), None, added=False)

    def check_batch(self, texts: Any) -> Verdicts:  # noqa: ANN401 - texts or Sketches
        """Return the verdict that each document would get now, without adding any of them.

        Parameters
        ----------
        texts : list of str, Arrow data, iterable of str, or Sketches
            The documents. They are not compared with each other. Sketches are accepted if the index compares
            fingerprints by distance only.

        Returns
        -------
        Verdicts
            In the order of the documents.

        Raises
        ------
        InvalidInput
            If an entry is not a text, or a sketch is of a document so short that its features are compared too.
        RecipeMismatch
            If sketches were made by another recipe.
        """
        if isinstance(texts, Sketches):
            columns = self._native.check_sketches(*self._sketch_columns(texts), threads=self._threads)
            return self._verdicts(columns, None)
        parts = [
            self._verdicts(self._native.check(batch, threads=self._threads), None)
            for batch in document_batches(texts, self._recipe)
        ]
        return parts[0] if len(parts) == 1 else Verdicts.concatenate(parts)

    def add(self, doc_id: str, text: Any) -> Verdict:  # noqa: ANN401
        """Add a document. Same as :meth:`check_and_add`."""
        return self.check_and_add(doc_id, text)

    def add_batch(self, ids: Any, texts: Any) -> Verdicts:  # noqa: ANN401
        """Add documents. Same as :meth:`check_and_add_batch`."""
        return self.check_and_add_batch(ids, texts)

    def check_and_add(self, doc_id: str, text: Any) -> Verdict:  # noqa: ANN401
        """Check a document and add it, atomically: of two threads with the same text, one gets a verdict of new.

        Parameters
        ----------
        doc_id : str
            Its id. If the index already has this id with the same text, nothing changes and the stored verdict is
            returned.
        text : str
            The document.

        Returns
        -------
        Verdict
            With its commit number, `seq`.

        Raises
        ------
        InvalidInput
            If the index has this id with another text.
        IndexPoisoned
            If a write failed.
        """
        if type(text) is not str or not self._takes_str or not is_kept_as_given(doc_id):
            return self.check_and_add_batch([doc_id], batch_of_one(text))[0]
        found, row, added = self._native.add_text(doc_id, text)
        return self._verdict(doc_id, found, row + 1, added=added)

    def check_and_add_batch(self, ids: Any, texts: Any) -> Verdicts:  # noqa: ANN401
        """Check documents one after the other and add them.

        Parameters
        ----------
        ids : list of str or int, Arrow data, or iterable
            Their ids.
        texts : list of str, Arrow data, iterable of str, or Sketches
            The documents.

        Returns
        -------
        Verdicts
            In the order of the documents, as if they had been added one by one.

        Raises
        ------
        InvalidInput
            If the index has an id with another text, or the numbers of ids and texts differ. Nothing of the
            transaction is added then.

        Notes
        -----
        A list, an array or sketches are one transaction. An iterator is one transaction for each 8,192 documents. If a
        later transaction fails, the documents of earlier ones are in the index but their verdicts are not returned.
        Add the same documents again to get them.
        """
        if isinstance(texts, Sketches):
            names = all_ids(ids)
            columns = self._native.add_sketches(names, *self._sketch_columns(texts), threads=self._threads)
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
        """Return a document with its current verdict.

        Parameters
        ----------
        doc_id : str
            Its id.

        Returns
        -------
        Document or None
            None if the index has no such document, or it was removed or has expired.
        """
        doc_id = one_id(doc_id)
        found = self._native.get(doc_id)
        if found is None:
            return None
        row, kept_id, similarity, distance, arrival_s = found
        is_new = kept_id is None
        return Document(
            doc_id,
            is_new,
            kept_id,
            None if is_new else self._recipe.measure,
            None if is_new else similarity,
            distance,
            row + 1,
            arrival_s,
        )

    def neighbors(self, text: Any, limit: int = 10) -> list[Neighbor]:  # noqa: ANN401
        """Return the kept documents that match a text, best first.

        Parameters
        ----------
        text : str, tokens, or Sketches of one document
            The text.
        limit : int
            Maximum number of neighbors, at least 1.

        Returns
        -------
        list of Neighbor
            At most `limit`.
        """
        limit = check_integer("limit", limit, 1, _MAX_LIMIT)
        if isinstance(text, Sketches):
            found = self._native.neighbors_of_sketch(*self._sketch_columns(batch_of_one(text)), limit)
        else:
            (batch,) = document_batches([text], self._recipe)
            found = self._native.neighbors(batch, limit)
        return [Neighbor(name, self._recipe.measure, similarity, distance) for name, similarity, distance in found]

    def group(self, doc_id: str) -> Group:
        """Return the group of a document: its kept document and all duplicates of that one.

        Parameters
        ----------
        doc_id : str
            Id of any document of the group.

        Returns
        -------
        Group
            The kept document and its duplicates.

        Raises
        ------
        InvalidInput
            If no document has the id.
        """
        leader, is_gone, members = self._native.group(one_id(doc_id))
        return Group(leader, is_gone, tuple(members))

    def remove(self, doc_id: str) -> Removal:
        """Remove a document. Its duplicates are reassigned to another matching kept document, or become kept.

        Parameters
        ----------
        doc_id : str
            Its id. It can be used again afterwards.

        Returns
        -------
        Removal
            Which duplicates became kept and which were reassigned. A kept document is not demoted.

        Raises
        ------
        InvalidInput
            If no document has the id.
        """
        doc_id = one_id(doc_id)
        was_kept, promoted, moved = self._native.remove(doc_id)
        return Removal(doc_id, was_kept, tuple(promoted), tuple(moved))

    @property
    def stats(self) -> dict[str, Any]:
        """Counts of documents and events, rows and bytes of segments and database, recipe, version of SQLite.

        ``recall`` is P(found) of a pair at the threshold, ``recall_full_buckets`` a lower bound of it for a pair of two
        documents that came to full buckets, which levels of buckets may hide (MinHash).
        """
        facts: dict[str, Any] = dict(self._native.facts())
        facts["store"] = self._store
        facts["ttl_s"] = self._ttl_s
        facts["recipe_id"] = self._recipe.recipe_id
        facts["recipe"] = self._recipe.to_dict()
        facts["recall"] = self._recipe.stated_recall
        if isinstance(self._recipe.sketch, MinHash):
            # How full they are is not counted.
            facts["recall_full_buckets"] = self._recipe.recall_with(1, 1)
        return facts

    def verify(self, *, full: bool = False) -> list[str]:
        """Check the files of the index.

        Parameters
        ----------
        full : bool
            Whether to read every byte of the database.

        Returns
        -------
        list of str
            One message for each problem; empty if there is none.
        """
        return self._native.verify(full)

    def compact(self) -> None:
        """Merge all segments into one and free the space of removed documents. Other calls may run meanwhile.

        What the database held of removed and expired documents is overwritten, except for the ids and sketches of
        expired ones that a duplicate still names as its kept document. The log may hold them until the index is closed.
        """
        self._native.compact(threads=self._threads)

    def rebuild(self) -> None:
        """Delete all derived files and rebuild them from the database."""
        self._native.rebuild(threads=self._threads)

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the current state of the index to a new directory. The index stays usable meanwhile.

        Parameters
        ----------
        path : str or Path
            A directory that does not exist or is empty.

        Raises
        ------
        InvalidParameter
            If the directory is not empty, or is inside the index.
        """
        target = directory_of(path)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InvalidParameter("path", f"{target} is not empty; write the snapshot to a new or empty directory")
        if self._path.resolve() in target.resolve().parents:
            raise InvalidParameter("path", f"{target} is inside the index; choose a directory outside it")
        self._native.snapshot(target)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all documents as JSON Lines in order of arrival.

        Each line has the id, the sketch and the verdict, and the text if the index stores it.

        Parameters
        ----------
        path : str or Path
            The file; an existing one is overwritten.
        """
        with Path(path).open("w", encoding="utf-8", newline="\n") as file:
            self._native.export(file.write)

    def close(self) -> None:
        """Close the index; a second call does nothing."""
        self._native.close()

    def _verdict(
        self, doc_id: str | None, found: tuple[str | None, float, int | None], seq: int | None, *, added: bool
    ) -> Verdict:
        kept_id, similarity, distance = found
        is_new = kept_id is None
        measure = None if is_new else self._recipe.measure
        return Verdict(doc_id, is_new, kept_id, measure, None if is_new else similarity, distance, seq, added)

    def _verdicts(self, columns: dict[str, Any], names: _native.Texts | None) -> Verdicts:
        return Verdicts.of_columns(columns, self._recipe.measure, None if names is None else names.to_list())

    def _sketch_columns(self, sketches: Sketches) -> tuple[Any, Any, Any]:
        if not self._recipe.is_distance_only:
            raise InvalidInput("this index compares features, which sketches do not contain; pass texts")
        if self._store == "text":
            raise InvalidInput("this index stores texts; pass texts")
        sketches.check_same_recipe(self._recipe)
        flat = np.ascontiguousarray(sketches.array).reshape(-1).view(np.uint8)
        is_empty = np.ascontiguousarray(sketches.is_empty).view(np.uint8)
        return flat, is_empty, np.ascontiguousarray(sketches.num_features, np.uint32)
