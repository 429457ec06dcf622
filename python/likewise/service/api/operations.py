"""All operations under ``/v1``: their request and response types, and the rights they require."""

from functools import partial

from fastapi import FastAPI
from pydantic import BaseModel

from likewise.service.api import bodies as shapes
from likewise.service.api.administration import Administration
from likewise.service.api.bodies import make_bodies
from likewise.service.api.documents import Documents
from likewise.service.api.lines import Lines
from likewise.service.api.routing import Operation, add_operation
from likewise.service.api.texts import Texts
from likewise.service.collections.service import Service

_COLLECTION = "/v1/collections/{collection}"


def add_operations(app: FastAPI, service: Service) -> None:
    """Add all routes under ``/v1``."""
    for operation in (*_on_documents(service), *_on_collections(service), *_on_texts(service)):
        add_operation(app, service, operation)


def _on_documents(service: Service) -> list[Operation]:
    bodies = make_bodies(service.settings)
    documents = Documents(service)

    def pair(
        verb: str,
        right: str,
        about: str,
        *,
        single: tuple[type[BaseModel], type[BaseModel]],
        batch: tuple[type[BaseModel], type[BaseModel]],
        problems: tuple[str, ...] = (),
    ) -> list[Operation]:
        """Return the operation on one item and its batch version, which also takes lines."""
        name = verb.replace("-", "_")
        operation = partial(Operation, method="POST", right=right, is_repeatable=right == "write")
        return [
            operation(
                path=f"{_COLLECTION}/{verb}",
                name=name,
                about=about,
                work=getattr(documents, name),
                body=single[0],
                answer=single[1],
                problems=problems,
            ),
            operation(
                path=f"{_COLLECTION}/{verb}/batch",
                name=f"{name}_batch",
                about=f"{about} Batch version: JSON, or a stream of lines.",
                work=getattr(documents, f"{name}_batch"),
                body=batch[0],
                answer=batch[1],
                lines=Lines(single[0], single[1], getattr(documents, f"{name}_lines")),
                problems=tuple(problem for problem in problems if problem != "unknown-document"),
            ),
        ]

    adding = {
        "single": (bodies.document, shapes.Verdict),
        "batch": (bodies.documents, shapes.VerdictBatch),
        "problems": ("conflicting-document", "read-only"),
    }
    return [
        *pair(
            "check",
            "read",
            "Check a text without adding it.",
            single=(bodies.text, shapes.Verdict),
            batch=(bodies.texts, shapes.VerdictBatch),
        ),
        *pair("check-and-add", "write", "Check a document and add it, atomically and durably.", **adding),  # type: ignore[arg-type]
        *pair("add", "write", "Alias of the route that checks and adds, for initial loads.", **adding),  # type: ignore[arg-type]
        *pair(
            "get",
            "read",
            "Get a document and its current verdict.",
            single=(bodies.get, shapes.Document),
            batch=(bodies.get_batch, shapes.DocumentBatch),
            problems=("unknown-document",),
        ),
        *pair(
            "group",
            "read",
            "Get the group of a document: the kept document and its duplicates.",
            single=(bodies.group, shapes.Group),
            batch=(bodies.doc_ids, shapes.GroupBatch),
            problems=("unknown-document",),
        ),
        *pair(
            "neighbors",
            "read",
            "Get the most similar kept documents.",
            single=(bodies.neighbors, shapes.Neighbors),
            batch=(bodies.neighbors_batch, shapes.NeighborsBatch),
        ),
        *pair(
            "remove",
            "write",
            "Remove a document. Its duplicates are reassigned or become kept.",
            single=(bodies.doc_id, shapes.Removal),
            batch=(bodies.doc_ids, shapes.RemovalBatch),
            problems=("unknown-document", "read-only"),
        ),
    ]


def _on_collections(service: Service) -> list[Operation]:
    bodies = make_bodies(service.settings)
    work = Administration(service)
    snapshots = f"{_COLLECTION}/snapshots"
    read = partial(Operation, method="GET", right="read")
    admin = partial(Operation, right="admin", problems=("read-only",), has_deadline=False)
    return [
        read(
            path="/v1/collections",
            name="list_collections",
            about="List the collections and their recipes.",
            work=work.list_all,
            answer=shapes.CollectionList,
        ),
        Operation(
            method="PUT",
            path=_COLLECTION,
            name="create_collection",
            about="Create a collection. Its recipe cannot be changed later.",
            right="admin",
            work=work.create,
            body=bodies.collection,
            answer=shapes.CollectionInfo,
            status=201,
            problems=("collection-exists", "read-only"),
        ),
        read(
            path=_COLLECTION,
            name="get_collection",
            about="Describe a collection.",
            work=work.get,
            answer=shapes.CollectionInfo,
        ),
        admin(
            method="DELETE",
            path=_COLLECTION,
            name="delete_collection",
            about="Delete a collection with its documents and snapshots.",
            work=work.delete,
            answer=shapes.Deleted,
        ),
        admin(
            method="POST",
            path=f"{_COLLECTION}/compact",
            name="compact",
            about="Merge all segments into one.",
            work=work.compact,
            answer=shapes.Done,
        ),
        admin(
            method="POST",
            path=f"{_COLLECTION}/verify",
            name="verify",
            about="Check the integrity of a collection.",
            work=work.verify,
            body=bodies.verify,
            problems=(),
            answer=shapes.Verified,
        ),
        read(
            path=snapshots,
            name="list_snapshots",
            about="List the snapshots of a collection.",
            work=work.list_snapshots,
            answer=shapes.SnapshotList,
        ),
        admin(
            method="POST",
            path=snapshots,
            name="create_snapshot",
            about="Create a snapshot of a collection; the service chooses its name.",
            status=201,
            work=work.create_snapshot,
            answer=shapes.Snapshot,
        ),
        admin(
            method="DELETE",
            path=f"{snapshots}/{{snapshot}}",
            name="delete_snapshot",
            about="Delete a snapshot.",
            work=work.delete_snapshot,
            answer=shapes.Deleted,
            problems=("not-found", "read-only"),
        ),
    ]


def _on_texts(service: Service) -> list[Operation]:
    bodies = make_bodies(service.settings)
    texts = Texts(service)
    read = partial(Operation, method="POST", right="read")
    return [
        read(
            path="/v1/compare",
            name="compare",
            about="Compare two texts: all measures, both fingerprints and the differences.",
            work=texts.compare,
            body=bodies.compare,
            answer=shapes.Comparison,
        ),
        read(
            path="/v1/plan",
            name="plan",
            about="Resolve a recipe and compute the probability of finding pairs at each similarity.",
            work=texts.plan,
            body=bodies.plan,
            answer=shapes.Plan,
        ),
    ]
