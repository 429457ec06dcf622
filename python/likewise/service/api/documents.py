"""Operations on the documents of a collection, one or many at a time."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from likewise.errors import InvalidInput
from likewise.index import Group, Index
from likewise.recipe.fields import MAX_OWN_WEIGHT, OWN_WEIGHTS
from likewise.recipe.recipe import Recipe
from likewise.service.collections.collection import Collection
from likewise.service.collections.lanes import Repeatable
from likewise.service.collections.service import Service
from likewise.service.collections.shared import SharedIndex
from likewise.service.problems import Problem
from likewise.stages.text import as_documents

Json = dict[str, Any]
# A text, or the tokens that a recipe with user-supplied tokens takes, with a text if they may be none.
Text = str | Sequence[Any] | Json


class Replayed(list[Any]):
    """Answers of which an earlier attempt of the same request made at least the first."""


class Documents:
    """The service's operations on documents, each for several request bodies; unknown ids give None.

    The description of the service has their names, and their docstrings as summaries.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._most = service.settings.max_results
        # Maximum number of entries in all lists of one response.
        self._room = 10 * service.settings.max_results

    async def check(self, collection: str, asked: Sequence[Any], field: str) -> list[Json]:
        """Check a text without adding it."""
        found = self._service.collection(collection)
        texts = [one.text for one in asked]
        _check_kind(found.index.recipe, texts, field)
        return await found.check(texts)

    async def check_and_add(
        self, collection: str, documents: Sequence[Any], field: str, request: Repeatable | None = None
    ) -> list[Json]:
        """Check a document and add it, atomically and durably."""
        found = self._service.collection(collection)
        self._service.check_may_write()
        ids = [str(document.doc_id) for document in documents]
        texts = [document.text for document in documents]
        _check_kind(found.index.recipe, texts, field)
        verdicts = await found.check_and_add(ids, texts, request)
        num_new = sum(verdict["is_new"] for verdict in verdicts)
        self._service.metrics.verdicts.labels("new").inc(num_new)
        self._service.metrics.verdicts.labels("duplicate").inc(len(verdicts) - num_new)
        return verdicts

    async def add(self, *given: Any, **request: Any) -> list[Json]:
        """Alias of the route that checks and adds, for initial loads."""
        return await self.check_and_add(*given, **request)

    async def get(self, collection: str, asked: Sequence[Any], _field: str) -> list[Json | None]:
        """Get a document and its current verdict."""
        found = self._service.collection(collection)
        doc_ids = [one.doc_id for one in asked]
        documents = await found.ask(_got, found.index, self._in_time(doc_ids))
        await self._add_texts(found, zip(documents, asked, strict=True))
        return documents

    async def group(self, collection: str, asked: Sequence[Any], _field: str) -> list[Json | None]:
        """Get the group of a document: the kept document and its duplicates."""
        # Groups without a limit share the room of one response.
        found = self._service.collection(collection)
        groups = await found.ask(_grouped, found.index, self._in_time([one.doc_id for one in asked]))
        room = self._room
        pages: list[Json | None] = []
        for one, group in zip(asked, groups, strict=True):
            limit = min(self._most, room) if one.limit is None else one.limit
            page = None if group is None else self._page(group, one.offset, limit)
            room -= 0 if page is None else len(page["member_ids"])
            pages.append(page)
        return pages

    def _page(self, group: Group, offset: int, limit: int) -> Json:
        is_cut = len(group.member_ids) > offset + limit
        self._service.metrics.truncated.inc(is_cut)
        return {
            "leader_id": group.leader_id,
            "is_leader_gone": group.is_leader_gone,
            "num_members": len(group.member_ids),
            "member_ids": group.member_ids[offset : offset + limit],
            "truncated": is_cut,
        }

    async def neighbors(self, collection: str, asked: Sequence[Any], field: str) -> list[Json]:
        """Get the most similar kept documents."""
        found = self._service.collection(collection)
        texts = [one.text for one in asked]
        _check_kind(found.index.recipe, texts, field)
        results = await found.ask(_neighbors, found.index, self._in_time(texts), asked, self._room)
        self._service.metrics.truncated.inc(sum(result["truncated"] for result in results))
        await self._add_texts(
            found, ((one, body) for result, body in zip(results, asked, strict=True) for one in result["neighbors"])
        )
        return results

    async def _add_texts(self, collection: Collection, asked: Iterable[tuple[Json | None, Any]]) -> None:
        """Add the stored text to each document for which the request asks for it."""
        wanted = [document for document, body in asked if document is not None and body.with_text]
        if wanted:
            most = self._service.settings.max_decoded_bytes
            await collection.ask(_add_texts, collection.index, self._in_time(wanted), most)

    async def remove(
        self, collection: str, asked: Sequence[Any], _field: str, request: Repeatable | None = None
    ) -> list[Json | None]:
        """Remove a document. Its duplicates are reassigned or become kept."""
        found = self._service.collection(collection)
        self._service.check_may_write()
        doc_ids = [one.doc_id for one in asked]
        return await found.change(_removed, found, self._in_time(doc_ids), request)

    def _in_time(self, given: Iterable[Any]) -> Iterator[Any]:
        """Yield the items one by one, until the deadline of the current request."""
        end = time.monotonic() + self._service.settings.deadline_s
        for one in given:
            if time.monotonic() > end:
                raise Problem("deadline", "the request exceeded its time limit")
            yield one


def _check_kind(recipe: Recipe, texts: Sequence[Text], field: str) -> None:
    """Raise Problem, without the content, if a document is not the text, pair or token list the recipe requires."""
    if not recipe.takes_tokens and recipe.only_within is None:
        row = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
        wanted = "a text; the recipe of the collection does not accept tokens"
    else:
        row = None
        try:
            as_documents(texts, recipe)
        except InvalidInput as error:
            row = error.row or 0
        wanted = "a list of tokens"
        if recipe.only_within is not None:
            wanted = f"a [value, text] pair; the recipe compares only within {recipe.only_within!r}"
        if recipe.weights == OWN_WEIGHTS:
            wanted = "a list of [token, weight] pairs, with weights "
            wanted += f"from 0 to {MAX_OWN_WEIGHT}" + (" when scaled" if recipe.weight_scale else ", whole numbers")
    if row is not None:
        raise Problem("invalid", f"not {wanted}", field.format(row))


def _got(index: Index | SharedIndex, doc_ids: Iterator[object]) -> list[Json | None]:
    found = [index.get(str(doc_id)) for doc_id in doc_ids]
    return [None if one is None else one._asdict() for one in found]


def _add_texts(index: Index | SharedIndex, documents: Iterator[Json], most: int) -> None:
    num_characters = 0
    for document in documents:
        document["text"] = text = index.text(document["doc_id"]) if isinstance(index, Index) else None
        num_characters += len(text or "")
        if num_characters > most:
            raise Problem("invalid", "the texts exceed the size of a response; ask for fewer documents", "with_text")


def _grouped(index: Index | SharedIndex, doc_ids: Iterator[object]) -> list[Group | None]:
    groups: list[Group | None] = []
    # A large group is listed once, regardless of how many of its members are requested.
    known: dict[str, Group] = {}
    for doc_id in doc_ids:
        name = str(doc_id)
        group = known.get(name)
        if group is None:
            try:
                group = index.group(name)
            except InvalidInput:
                groups.append(None)
                continue
            known |= dict.fromkeys(group.member_ids, group)
        groups.append(group)
    return groups


def _neighbors(index: Index | SharedIndex, texts: Iterator[Text], asked: Sequence[Any], room: int) -> list[Json]:
    results = []
    for text, body in zip(texts, asked, strict=True):
        k = min(body.k, room)
        # Requesting one more than is returned shows whether there are more.
        found = index.neighbors(text, k + 1, body.min_similarity, among=body.among)
        shown = [one._asdict() for one in found[:k]]
        room -= len(shown)
        results.append({"neighbors": shown, "truncated": len(found) > k})
    return results


def _removed(collection: Collection, doc_ids: Iterator[object], request: Repeatable | None) -> list[Json | None]:
    index, answers = collection.index, collection.removed
    removals: list[Json | None] = list(answers.find(request) or ())
    num_known = len(removals)
    if num_known:
        collection.confirm()
    try:
        for doc_id in islice(doc_ids, num_known, None):
            try:
                removal = index.remove(str(doc_id))
            except InvalidInput:
                removals.append(None)
                continue
            moved = [{"doc_id": member, "kept_id": kept} for member, kept in removal.moved]
            removals.append({**removal._asdict(), "moved": moved})
    finally:
        sizes = [0 if one is None else len(one["moved"]) + len(one["promoted"]) for one in removals]
        answers.keep(request, removals, len(removals) + sum(sizes))
    return Replayed(removals) if num_known else removals
