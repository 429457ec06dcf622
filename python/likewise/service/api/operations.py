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
# The types of a request and of its answer.
_Types = tuple[type[BaseModel], type[BaseModel]]


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


class Operations:
    """The operations on collections, and those without one. Each method performs one and returns JSON values.

    The description of the service has their names, and their docstrings as summaries.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def compare(self, body: Any) -> Json:
        """Compare two texts: all measures, both fingerprints and the differences."""
        return (await self._service.compute(compare, body.a, body.b, recipe_given(body.recipe))).to_dict()

    async def plan(self, body: Any) -> Json:
        """Resolve a recipe and compute the probability of finding pairs at each similarity."""
        return (await self._service.compute(plan, recipe_given(body.recipe))).to_dict()

    async def list_collections(self) -> Json:
        """List the collections and their recipes."""
        shown, broken = await self._service.in_thread(self._service.describe)
        return {"collections": shown, "broken": broken}

    async def create_collection(self, collection: str, body: Any) -> Json:
        """Create a collection. Its recipe cannot be changed later."""
        self._service.check_name(collection)
        recipe = recipe_given(body.recipe, keep="first")
        self._check(recipe)
        made = await self._service.in_thread(
            self._service.create, collection, recipe, store=body.store, ttl_s=body.ttl_s, ttl_from=body.ttl_from
        )
        return await self._service.in_thread(made.describe)

    async def get_collection(self, collection: str) -> Json:
        """Describe a collection."""
        return await self._service.in_thread(self._service.collection(collection).describe)

    async def delete_collection(self, collection: str) -> Json:
        """Delete a collection with its documents and snapshots."""
        await self._service.in_thread(self._service.delete, collection)
        return {"deleted": collection}

    async def compact(self, collection: str) -> Json:
        """Merge all segments into one."""
        found = self._service.collection(collection)
        self._service.check_may_write()
        await self._service.in_thread(found.index.compact)
        return {"status": "ok"}

    async def verify(self, collection: str, body: Any) -> Json:
        """Check the integrity of a collection."""
        found = self._service.collection(collection)
        return {"problems": await self._service.in_thread(found.index.verify, full=body.full)}

    async def list_snapshots(self, collection: str) -> Json:
        """List the snapshots of a collection."""
        return {"snapshots": await self._service.in_thread(self._service.snapshots, collection)}

    async def create_snapshot(self, collection: str) -> Json:
        """Create a snapshot of a collection; the service chooses its name."""
        self._service.collection(collection)
        # With microseconds, so that names are in order.
        stamp = datetime.now(UTC).strftime("%Y%m%dt%H%M%S%f")
        return {"snapshot": await self._service.in_thread(self._service.make_snapshot, collection, stamp)}

    async def delete_snapshot(self, collection: str, snapshot: str) -> Json:
        """Delete a snapshot."""
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
    bodies = make_bodies(service.settings)
    for operation in (*_on_documents(service, bodies), *_others(service, bodies)):
        add_operation(app, service, operation)


def _on_documents(service: Service, bodies: SimpleNamespace) -> list[Operation]:
    pair = partial(_pair, Documents(service))
    adding = partial(pair, right="write")
    added = (bodies.document, shapes.Verdict), (bodies.documents, shapes.VerdictBatch)
    texts = (bodies.text, shapes.Verdict), (bodies.texts, shapes.VerdictBatch)
    got = (bodies.get, shapes.Document), (bodies.get_batch, shapes.DocumentBatch)
    groups = (bodies.group, shapes.Group), (bodies.doc_ids, shapes.GroupBatch)
    neighbors = (bodies.neighbors, shapes.Neighbors), (bodies.neighbors_batch, shapes.NeighborsBatch)
    removed = (bodies.doc_id, shapes.Removal), (bodies.doc_ids, shapes.RemovalBatch)
    unknown, conflict, read_only = "unknown-document", "conflicting-document", "read-only"
    return [
        *pair("check", *texts),
        *adding("check_and_add", *added, conflict, read_only),
        *adding("add", *added, conflict, read_only),
        *pair("get", *got, unknown),
        *pair("group", *groups, unknown),
        *pair("neighbors", *neighbors),
        *adding("remove", *removed, unknown, read_only),
    ]


def _pair(
    documents: Documents, name: str, single: _Types, batch: _Types, *problems: str, right: str = "read"
) -> list[Operation]:
    """Return an operation on one document, and its batch version, which also takes lines."""
    work = getattr(documents, name)
    path = f"{_COLLECTION}/{name.replace('_', '-')}"
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

    about_batch = f"{work.__doc__} Batch version: JSON, or a stream of lines."
    lines = Lines(*single, of_lines)
    of_all = tuple(problem for problem in problems if problem != "unknown-document")
    return [
        operation(path, of_one, *single[::-1], name=name, about=work.__doc__, problems=problems),
        operation(
            f"{path}/batch",
            of_batch,
            *batch[::-1],
            name=f"{name}_batch",
            about=about_batch,
            lines=lines,
            problems=of_all,
        ),
    ]


def _others(service: Service, bodies: SimpleNamespace) -> list[Operation]:
    work = Operations(service)
    snapshots = f"{_COLLECTION}/snapshots"
    get, post, delete = (partial(Operation, method, right="read") for method in ("GET", "POST", "DELETE"))
    admin: dict[str, Any] = {"right": "admin", "problems": ("read-only",), "has_deadline": False}
    creation: dict[str, Any] = {"status": 201, "right": "admin", "problems": ("collection-exists", "read-only")}
    deletion: dict[str, Any] = {**admin, "problems": ("not-found", "read-only")}
    return [
        get("/v1/collections", work.list_collections, shapes.CollectionList),
        Operation("PUT", _COLLECTION, work.create_collection, shapes.CollectionInfo, bodies.collection, **creation),
        get(_COLLECTION, work.get_collection, shapes.CollectionInfo),
        delete(_COLLECTION, work.delete_collection, shapes.Deleted, **admin),
        post(f"{_COLLECTION}/compact", work.compact, shapes.Done, **admin),
        post(f"{_COLLECTION}/verify", work.verify, shapes.Verified, bodies.verify, right="admin", has_deadline=False),
        get(snapshots, work.list_snapshots, shapes.SnapshotList),
        post(snapshots, work.create_snapshot, shapes.Snapshot, status=201, **admin),
        delete(f"{snapshots}/{{snapshot}}", work.delete_snapshot, shapes.Deleted, **deletion),
        post("/v1/compare", work.compare, shapes.Comparison, bodies.compare),
        post("/v1/plan", work.plan, shapes.Plan, bodies.plan),
    ]
