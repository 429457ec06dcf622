"""One collection: an index, and the lanes through which requests reach it."""

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any, TypeVar

from likewise.errors import IndexPoisoned, InvalidInput, LikewiseError, LostWrites
from likewise.index import Index, Verdicts
from likewise.service.collections.lanes import Answers, Asked, Lane, Repeatable, check_same
from likewise.service.collections.shared import SharedIndex
from likewise.service.metrics import SHARED_GAUGES, Metrics
from likewise.service.problems import Problem
from likewise.service.settings import Settings

# Reading calls run concurrently with each other and with the one writing call.
_NUM_READERS = 2

Answer = TypeVar("Answer")


class Collection:
    """An index that many requests query and update."""

    def __init__(
        self, name: str, index: Index | SharedIndex, ttl_s: float | None, settings: Settings, metrics: Metrics
    ) -> None:
        self.name = name
        self.index = index
        self.ttl_s = ttl_s
        self.is_poisoned = False
        # Two separate stores, so that many additions do not displace the answers of removals.
        self.removed = Answers()
        self._added = Answers()
        self._metrics = metrics
        most = settings.max_batch
        self._reading = Lane(f"{name}-read", self._check, num_threads=_NUM_READERS, max_documents=most)
        self._writing = Lane(f"{name}-write", self._add, num_threads=1, max_documents=most)

    async def check(self, texts: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the verdict on each text, without adding any."""
        return await self._reading.ask((), texts)

    async def check_and_add(
        self, ids: Sequence[str], texts: Sequence[Any], request: Repeatable | None = None
    ) -> list[dict[str, Any]]:
        """Check documents and add them, all or none; they are on disk when this returns."""
        return await self._telling(self._writing.ask(ids, texts, request))

    async def ask(self, call: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
        """Call a reading method of the index and return its result."""
        return await self._reading.run(self._noted, call, *arguments, **options)

    async def change(self, call: Callable[..., Answer], *arguments: Any) -> Answer:
        """Call a writing method of the index, in turn with the additions, and return its result."""
        return await self._telling(self._writing.run(self._timed, call, *arguments))

    def describe(self) -> dict[str, Any]:
        """Return the description of the collection for clients."""
        facts = self.index.stats
        return {
            "name": self.name,
            "num_documents": facts["num_documents"],
            "store": facts["store"],
            "ttl_s": self.ttl_s,
            "recipe_id": facts["recipe_id"],
            "recipe": self.index.recipe.to_dict(),
            "stats": facts,
        }

    def sizes(self) -> dict[str, float]:
        """Return the gauges of the collection by name."""
        if isinstance(self.index, SharedIndex):
            return _load_of(self.index)
        try:
            facts = self.index.stats
        except (LikewiseError, OSError):
            return {"poisoned": float(self.is_poisoned)}
        return {
            "documents": facts["num_documents"],
            "segments": len(facts["segment_rows"]),
            "tail_documents": facts["num_in_memory"],
            "index_size_bytes": facts["database_bytes"] + sum(facts["segment_bytes"]),
            "segments_rebuilt": facts["num_rebuilt"],
            "poisoned": float(self.is_poisoned),
        }

    def close(self) -> None:
        """Finish the work in progress, then close the index."""
        self._reading.close()
        self._writing.close()
        self.index.close()

    def _check(self, batch: list[Asked]) -> list[Any]:
        began = time.perf_counter()
        texts = _texts(batch)
        shown = shown_verdicts(self._noted(self.index.check_batch, texts))
        self._count("check", len(texts), time.perf_counter() - began)
        return _dealt(batch, shown)

    def _add(self, batch: list[Asked]) -> list[Any]:
        began = time.perf_counter()
        results, places, repeats = self._unanswered(batch)
        if any(isinstance(result, list) for result in results):
            try:
                self.confirm()
            except LikewiseError as error:
                # A stored answer may be that of a lost write.
                return [result if isinstance(result, Problem) else error for result in results]
        num_documents = 0
        while places:
            part = [batch[place] for place in places]
            ids = part[0].ids if len(part) == 1 else list(chain.from_iterable(asked.ids for asked in part))
            try:
                shown = shown_verdicts(self._noted(self.index.check_and_add_batch, ids, _texts(part)))
            except InvalidInput as error:
                # Nothing was added. Retry without the request that caused the error.
                blamed, problem = _blame(part, error)
                results[places.pop(blamed)] = problem
                continue
            except (IndexPoisoned, LostWrites) as error:
                self._forget(error)
                for place in places:
                    results[place] = error
                break
            for place, answer in zip(places, _dealt(part, shown), strict=True):
                results[place] = answer
                self._added.keep(batch[place].request, answer, len(answer))
            num_documents = len(shown)
            break
        for place, first in repeats:
            results[place] = results[first]
        seconds = time.perf_counter() - began
        self._count("check_and_add", num_documents, seconds)
        self._metrics.commit.observe(seconds)
        return results

    def _unanswered(self, batch: list[Asked]) -> tuple[list[Any], list[int], list[tuple[int, int]]]:
        """Return the known results, the places of new requests, and pairs of a repeated place and its first place."""
        results: list[Any] = [None] * len(batch)
        places: list[int] = []
        repeats: list[tuple[int, int]] = []
        firsts: dict[tuple[str, str, str], int] = {}
        for place, asked in enumerate(batch):
            request = asked.request
            try:
                results[place] = self._added.find(request)
                first = None if request is None else firsts.setdefault(request.key, place)
                if request is not None and first is not None and first != place:
                    earlier = batch[first].request
                    assert earlier is not None
                    check_same(earlier.content, request.content)
                    repeats.append((place, first))
                elif results[place] is None:
                    places.append(place)
            except Problem as problem:
                results[place] = problem
        return results, places, repeats

    def _timed(self, call: Callable[..., Answer], *arguments: Any) -> Answer:
        began = time.perf_counter()
        try:
            return self._noted(call, *arguments)
        except LostWrites as error:
            self._forget(error)
            raise
        finally:
            self._metrics.commit.observe(time.perf_counter() - began)

    def _noted(self, call: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
        """Return the result of a call of the index; record when the index accepts no more writes."""
        try:
            return call(*arguments, **options)
        except IndexPoisoned:
            self.is_poisoned = True
            raise

    def _forget(self, error: LikewiseError) -> None:
        """Forget all answers after a loss, since a repeated request must not get the answer of a lost write."""
        if isinstance(error, LostWrites):
            self.removed.forget()
            self._added.forget()

    def confirm(self) -> None:
        """Raise the error of an index on servers that lost writes, or that cannot say whether it has them.

        Called before a stored answer is given again.
        """
        if isinstance(self.index, SharedIndex):
            try:
                self._noted(self.index.confirm)
            except LostWrites as error:
                self._forget(error)
                raise

    async def _telling(self, work: Awaitable[Answer]) -> Answer:
        """Return the result of work; note that a request was told of a loss, if its deadline has not passed."""
        try:
            return await work
        except LostWrites as lost:
            if isinstance(self.index, SharedIndex):
                self.index.told(lost)
            raise

    def _count(self, op: str, num_documents: int, seconds: float) -> None:
        self._metrics.work.labels(op).observe(seconds)
        self._metrics.joined.labels(op).observe(num_documents)


def shown_verdicts(verdicts: Verdicts) -> list[dict[str, Any]]:
    """Return verdicts as JSON values, with the fields of `likewise.index.Verdict`."""
    num = len(verdicts)
    nothing = [None] * num
    distances = nothing if verdicts.distance is None else verdicts.distance.tolist()
    columns = zip(
        verdicts.doc_ids or nothing,
        verdicts.is_new.tolist(),
        verdicts.kept_ids,
        verdicts.similarity.tolist(),
        distances,
        nothing if verdicts.seq is None else verdicts.seq.tolist(),
        verdicts.added.tolist(),
        strict=True,
    )
    return [
        {
            "doc_id": doc_id,
            "is_new": is_new,
            "kept_id": kept_id,
            "measure": None if is_new else verdicts.measure,
            "similarity": None if is_new or math.isnan(similarity) else similarity,
            "distance": None if is_new else distance,
            "seq": seq,
            "added": added,
        }
        for doc_id, is_new, kept_id, similarity, distance, seq, added in columns
    ]


def _load_of(index: SharedIndex) -> dict[str, float]:
    """Return the gauges of an index on servers."""
    try:
        facts = index.load
    except (LikewiseError, OSError):
        return {"unreachable": 1.0}
    found = {gauge: facts[name] for gauge, name in SHARED_GAUGES.items()}
    return {"unreachable": 0.0, **{gauge: value for gauge, value in found.items() if value is not None}}


def _texts(batch: list[Asked]) -> Sequence[Any]:
    return batch[0].texts if len(batch) == 1 else list(chain.from_iterable(asked.texts for asked in batch))


def _dealt(batch: list[Asked], shown: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Split the verdicts of a batch by request."""
    answers, start = [], 0
    for asked in batch:
        answers.append(shown[start : start + len(asked.texts)])
        start += len(asked.texts)
    return answers


def _blame(batch: list[Asked], error: InvalidInput) -> tuple[int, Problem]:
    """Return the place of the request whose document caused the error, and the problem to answer it with."""
    row = error.row or 0
    for place, asked in enumerate(batch):
        if row < len(asked.texts):
            field = f"documents.{row}.doc_id" if len(asked.texts) > 1 else "doc_id"
            return place, Problem("conflicting-document", error.message, field)
        row -= len(asked.texts)
    return 0, Problem("invalid", error.message)
