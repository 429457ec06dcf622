"""Chunks of documents: find near-duplicates within a batch, or in an index."""

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from likewise.batch.texts import dedup
from likewise.errors import InvalidParameter, check_choice
from likewise.recipe.recipe import GivenRecipe
from likewise.service.client.opening import open_index

#: What happens to near-duplicates: they are dropped, or marked in their metadata.
Action = Literal["drop", "tag"]
_EVIDENCE = ("kept_id", "measure", "similarity", "distance")
# Many vector stores support only flat metadata.
PREFIX = "likewise_"
TAGS = tuple(PREFIX + name for name in ("is_new", *_EVIDENCE))


@dataclass(frozen=True)
class ChunkRules:
    """How near-duplicate chunks are found, and what happens to them.

    Parameters
    ----------
    recipe : Recipe or str, optional
        Determines when two chunks match. If None, the recipe of the index, or the preset ``default`` within a batch.
    index : str or Path, optional
        Directory of an index, or URL of a service, with chunks of earlier batches. If None, chunks are compared within
        their batch only.
    add : bool
        Whether to add chunks to the index, so that they are also compared with each other. If False, chunks are only
        compared with the index.
    action : {"drop", "tag"}
        What to do with near-duplicates: drop them, or mark them in their metadata.
    collection, key : str, optional
        Collection of a service, and an API key.

    Raises
    ------
    InvalidParameter
        If an argument is unknown, or applies only with an index.
    """

    recipe: GivenRecipe | None = None
    index: str | os.PathLike[str] | None = None
    add: bool = True
    action: Action = "drop"
    collection: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        check_choice("action", self.action, ("drop", "tag"))
        if self.index is None and (not self.add or self.collection is not None or self.key is not None):
            raise InvalidParameter("index", "add, collection and key apply only with an index")

    def tags(self, texts: Sequence[str | None], ids: Sequence[str | None]) -> list[dict[str, Any] | None]:
        """Return metadata for each chunk: whether it is new, and if not, which chunk it duplicates.

        They are ``likewise_is_new``, and for near-duplicates also ``likewise_kept_id``, ``_measure``, ``_similarity``
        and ``_distance`` (SimHash only); None for a chunk without text. With an index, a chunk without an id gets a
        random one; within a batch, its number is used.
        """
        rows = [row for row, text in enumerate(texts) if text is not None]
        some = [text for text in texts if text is not None]
        found = self._in_batch if self.index is None else self._in_index
        tags: list[dict[str, Any] | None] = [None] * len(texts)
        if some:
            for row, evidence in zip(rows, found(some, [ids[row] for row in rows], rows), strict=True):
                tags[row] = {PREFIX + name: value for name, value in evidence.items() if value is not None}
        return tags

    def stays(self, tags: dict[str, Any] | None) -> bool:
        """Return whether a chunk with these tags is kept."""
        return tags is None or self.action == "tag" or bool(tags[PREFIX + "is_new"])

    def _in_batch(self, texts: list[str], ids: list[str | None], rows: list[int]) -> list[dict[str, Any]]:
        result = dedup(texts, self.recipe)
        evidence: list[dict[str, Any]] = [{"is_new": True} for _ in texts]
        for found in result.removed.select(["row", "kept_row", *_EVIDENCE[1:]]).to_pylist():
            row, kept = found.pop("row"), found.pop("kept_row")
            evidence[row] = {"is_new": False, "kept_id": ids[kept] or str(rows[kept]), **found}
        return evidence

    def _in_index(self, texts: list[str], ids: list[str | None], _rows: list[int]) -> list[dict[str, Any]]:
        assert self.index is not None
        service = {"collection": self.collection, "key": self.key}
        with open_index(self.index, self.recipe, read_only=not self.add, **service) as index:
            if self.add:
                verdicts = index.check_and_add_batch([one or uuid.uuid4().hex for one in ids], texts)
            else:
                verdicts = index.check_batch(texts)
            return [{"is_new": one.is_new} | {name: getattr(one, name) for name in _EVIDENCE} for one in verdicts]
