"""All operations under ``/v1``: their request and response types, and the rights they require."""

from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from likewise.errors import InvalidParameter
from likewise.measures.comparison import compare
from likewise.recipe.methods import MinHash, SimHash
from likewise.recipe.recipe import Recipe, as_recipe
from likewise.service.api import bodies as shapes
from likewise.service.api.bodies import make_bodies
from likewise.service.api.documents import Documents, Replayed
from likewise.service.api.lines import Lines
from likewise.service.api.routing import Operation, add_operation
from likewise.service.collections.service import Service
from likewise.service.problems import Problem
from likewise.stages.bands import plan

# Fields that refer to tables and lists stored in files next to a recipe.
_BESIDE = frozenset(("weights_id", "stop_words_id", "dictionary_id"))

Json = dict[str, Any]
# Maximum number of members a document is compared with per band: three levels of 64.
_MOST_A_BAND = 192

# The list of a batch request, and the field of one item.
_SINGULAR = {"texts": "text", "doc_ids": "doc_id", "documents": "document"}

_COLLECTION = "/v1/collections/{collection}"


class Texts:
    """The service's operations without a collection. Each method performs one operation and returns JSON values."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def compare(self, body: Any) -> Json:
        """Return the comparison of two texts."""
        recipe = recipe_given(body.recipe)
        found = await self._service.compute(compare, body.a, body.b, recipe)
        shown: Json = found.to_dict()
        return shown

    async def plan(self, body: Any) -> Json:
        """Return the plan of a recipe."""
        found = await self._service.compute(plan, recipe_given(body.recipe))
        shown: Json = found.to_dict()
        return shown


def recipe_given(given: Json | str | None, **defaults: str) -> Recipe:
    """Return the recipe in a request: a preset's name, fields, or JSON; else ``online``, with `defaults`."""
    fields = {name: value for name, value in (given if isinstance(given, dict) else {}).items() if value is not None}
    for name in _BESIDE & fields.keys():
        raise InvalidParameter(f"recipe.{name}", "recipes that read files are not accepted over HTTP")
    try:
        if "sketch_version" in fields:
            return Recipe.from_dict(fields).resolve()
        if isinstance(given, str):
            return as_recipe(given).resolve()
        preset = fields.pop("preset", None)
        fields = defaults | fields
        return (as_recipe(None, fields) if preset is None else Recipe.preset(preset, **fields)).resolve()
    except InvalidParameter as error:
        name = error.name if error.name == "recipe" else f"recipe.{error.name}"
        raise InvalidParameter(name, error.message) from None
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("recipe", "a value has the wrong type") from None


class Administration:
    """The service's operations on collections. Each method performs one operation and returns JSON values."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def list_all(self) -> Json:
        """Return all collections."""
        shown, broken = await self._service.in_thread(self._service.describe)
        return {"collections": shown, "broken": broken}

    async def create(self, collection: str, body: Any) -> Json:
        """Create a collection, or raise Problem."""
        self._service.check_name(collection)
        recipe = recipe_given(body.recipe, keep="first")
        self._check(recipe)
        made = await self._service.in_thread(
            self._service.create, collection, recipe, store=body.store, ttl_s=body.ttl_s, ttl_from=body.ttl_from
        )
        shown: Json = await self._service.in_thread(made.describe)
        return shown

    async def get(self, collection: str) -> Json:
        """Return the description of a collection."""
        shown: Json = await self._service.in_thread(self._service.collection(collection).describe)
        return shown

    async def delete(self, collection: str) -> Json:
        """Delete a collection."""
        await self._service.in_thread(self._service.delete, collection)
        return {"deleted": collection}

    async def compact(self, collection: str) -> Json:
        """Merge all segments of a collection into one."""
        found = self._service.collection(collection)
        self._service.check_may_write()
        await self._service.in_thread(found.index.compact)
        return {"status": "ok"}

    async def verify(self, collection: str, body: Any) -> Json:
        """Return the problems found in a collection."""
        found = self._service.collection(collection)
        return {"problems": await self._service.in_thread(found.index.verify, full=body.full)}

    async def list_snapshots(self, collection: str) -> Json:
        """Return the names of the snapshots of a collection."""
        return {"snapshots": await self._service.in_thread(self._service.snapshots, collection)}

    async def create_snapshot(self, collection: str) -> Json:
        """Create a snapshot of a collection."""
        self._service.collection(collection)
        # With microseconds, so that names are in order.
        stamp = datetime.now(UTC).strftime("%Y%m%dt%H%M%S%f")
        return {"snapshot": await self._service.in_thread(self._service.make_snapshot, collection, stamp)}

    async def delete_snapshot(self, collection: str, snapshot: str) -> Json:
        """Delete a snapshot of a collection."""
        self._service.collection(collection)
        await self._service.in_thread(self._service.delete_snapshot, collection, snapshot)
        return {"deleted": snapshot}

    def _check(self, recipe: Recipe) -> None:
        """Raise InvalidParameter for a recipe whose queries may cost too much."""
        settings = self._service.settings
        method = recipe.sketch
        if isinstance(method, SimHash) and (method.within or 0) > settings.max_within:
            raise InvalidParameter(
                "recipe.within", f"the recipe has {method.within}; the maximum is {settings.max_within}: set within"
            )
        if isinstance(method, MinHash) and (method.bands or 0) * _MOST_A_BAND > settings.max_candidates:
            raise InvalidParameter(
                "recipe.bands",
                f"{method.bands} bands may give {(method.bands or 0) * _MOST_A_BAND} candidates; the maximum is "
                f"{settings.max_candidates}",
            )


def add_operations(app: FastAPI, service: Service) -> None:
    """Add all routes under ``/v1``."""
    for operation in (*_on_documents(service), *_on_collections(service), *_on_texts(service)):
        add_operation(app, service, operation)


def _on_documents(service: Service) -> list[Operation]:
    bodies = make_bodies(service.settings)
    documents = Documents(service)

    def pair(
        verb: str,
        about: str,
        single: tuple[type[BaseModel], type[BaseModel]],
        batch: tuple[type[BaseModel], type[BaseModel]],
        *problems: str,
        right: str = "read",
    ) -> list[Operation]:
        """Return the operation on one item and its batch version, which also takes lines."""
        name = verb.replace("-", "_")
        work = getattr(documents, name)
        path = f"{_COLLECTION}/{verb}"
        operation = partial(Operation, "POST", right=right, is_repeatable=right == "write")
        (plural,) = batch[0].model_fields.keys() & _SINGULAR
        (answers,) = batch[1].model_fields

        async def of_one(collection: str, body: Any, **request: Any) -> Json:
            found = await work(collection, [body], "text", **request)
            if found[0] is None:
                detail = f"no document has the id {str(body.doc_id)!r}"
                raise Problem("unknown-document", detail, "doc_id", is_replayed=isinstance(found, Replayed))
            return dict(found[0])

        async def of_batch(collection: str, body: Any, **request: Any) -> Json:
            given = dict(body)
            items = given.pop(plural)
            if plural != "documents":
                items = [
                    SimpleNamespace(**{_SINGULAR[plural]: item, "offset": 0, "limit": None}, **given) for item in items
                ]
            field = "documents.{}.text" if plural == "documents" else "texts.{}"
            return {answers: await work(collection, items, field, **request)}

        async def of_lines(collection: str, lines: list[Any]) -> list[Any]:
            return list(await work(collection, lines, "text"))

        about_batch = f"{about} Batch version: JSON, or a stream of lines."
        lines = Lines(*single, of_lines)
        of_all = tuple(problem for problem in problems if problem != "unknown-document")
        return [
            operation(path, name, about, of_one, single[1], single[0], problems=problems),
            operation(
                f"{path}/batch",
                f"{name}_batch",
                about_batch,
                of_batch,
                batch[1],
                batch[0],
                lines=lines,
                problems=of_all,
            ),
        ]

    added = (bodies.document, shapes.Verdict), (bodies.documents, shapes.VerdictBatch)
    adding = partial(pair, right="write")
    texts = (bodies.text, shapes.Verdict), (bodies.texts, shapes.VerdictBatch)
    got = (bodies.get, shapes.Document), (bodies.get_batch, shapes.DocumentBatch)
    groups = (bodies.group, shapes.Group), (bodies.doc_ids, shapes.GroupBatch)
    neighbors = (bodies.neighbors, shapes.Neighbors), (bodies.neighbors_batch, shapes.NeighborsBatch)
    removed = (bodies.doc_id, shapes.Removal), (bodies.doc_ids, shapes.RemovalBatch)
    unknown, conflict, read_only = "unknown-document", "conflicting-document", "read-only"
    add = "Alias of the route that checks and adds, for initial loads."
    remove = "Remove a document. Its duplicates are reassigned or become kept."
    return [
        *pair("check", "Check a text without adding it.", *texts),
        *adding("check-and-add", "Check a document and add it, atomically and durably.", *added, conflict, read_only),
        *adding("add", add, *added, conflict, read_only),
        *pair("get", "Get a document and its current verdict.", *got, unknown),
        *pair("group", "Get the group of a document: the kept document and its duplicates.", *groups, unknown),
        *pair("neighbors", "Get the most similar kept documents.", *neighbors),
        *adding("remove", remove, *removed, unknown, read_only),
    ]


def _on_collections(service: Service) -> list[Operation]:
    bodies = make_bodies(service.settings)
    work = Administration(service)
    snapshots = f"{_COLLECTION}/snapshots"
    read = partial(Operation, "GET", right="read")
    admin = partial(Operation, right="admin", problems=("read-only",), has_deadline=False)
    return [
        read(
            "/v1/collections",
            "list_collections",
            "List the collections and their recipes.",
            work.list_all,
            shapes.CollectionList,
        ),
        Operation(
            "PUT",
            _COLLECTION,
            "create_collection",
            "Create a collection. Its recipe cannot be changed later.",
            work.create,
            shapes.CollectionInfo,
            bodies.collection,
            right="admin",
            status=201,
            problems=("collection-exists", "read-only"),
        ),
        read(_COLLECTION, "get_collection", "Describe a collection.", work.get, shapes.CollectionInfo),
        admin(
            "DELETE",
            _COLLECTION,
            "delete_collection",
            "Delete a collection with its documents and snapshots.",
            work.delete,
            shapes.Deleted,
        ),
        admin("POST", f"{_COLLECTION}/compact", "compact", "Merge all segments into one.", work.compact, shapes.Done),
        admin(
            "POST",
            f"{_COLLECTION}/verify",
            "verify",
            "Check the integrity of a collection.",
            work.verify,
            shapes.Verified,
            bodies.verify,
            problems=(),
        ),
        read(
            snapshots, "list_snapshots", "List the snapshots of a collection.", work.list_snapshots, shapes.SnapshotList
        ),
        admin(
            "POST",
            snapshots,
            "create_snapshot",
            "Create a snapshot of a collection; the service chooses its name.",
            work.create_snapshot,
            shapes.Snapshot,
            status=201,
        ),
        admin(
            "DELETE",
            f"{snapshots}/{{snapshot}}",
            "delete_snapshot",
            "Delete a snapshot.",
            work.delete_snapshot,
            shapes.Deleted,
            problems=("not-found", "read-only"),
        ),
    ]


def _on_texts(service: Service) -> list[Operation]:
    bodies = make_bodies(service.settings)
    texts = Texts(service)
    read = partial(Operation, "POST", right="read")
    compared = "Compare two texts: all measures, both fingerprints and the differences."
    planned = "Resolve a recipe and compute the probability of finding pairs at each similarity."
    return [
        read("/v1/compare", "compare", compared, texts.compare, shapes.Comparison, bodies.compare),
        read("/v1/plan", "plan", planned, texts.plan, shapes.Plan, bodies.plan),
    ]
