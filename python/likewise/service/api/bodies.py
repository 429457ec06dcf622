"""Request and response bodies. Every limit on a value is part of the OpenAPI description that clients read."""

from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, create_model

from likewise.index import api
from likewise.service.collections.service import NAME
from likewise.service.settings import Settings

Name = Annotated[str, StringConstraints(pattern=NAME)]


def _whole(value: object) -> object:
    """Return a number with JSON semantics: 5.0 is the integer 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Must be last in an annotation, so that its limits are part of the description.
WHOLE = BeforeValidator(_whole)


class Body(BaseModel):
    """A request body. Fields other than these are rejected."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _made(name: str, about: str, base: type[BaseModel] = BaseModel, **fields: Any) -> type[BaseModel]:
    """Return a model with these fields: a type, or a type and a default."""
    given: Any = {field: kind if isinstance(kind, tuple) else (kind, ...) for field, kind in fields.items()}
    made: type[BaseModel] = create_model(name, __base__=base, __doc__=about, __module__=__name__, **given)
    return made


# Answers have the fields of what an index returns.
Verdict: Any = _made(
    "Verdict", "Whether a document is new or a duplicate, and of which document.", **get_type_hints(api.Verdict)
)
VerdictBatch = _made("VerdictBatch", "Verdicts in the order of the request.", verdicts=list[Verdict])
_TEXT: Any = {"text": (str | None, None)}
Document: Any = _made(
    "Document", "A stored document with its current verdict.", **get_type_hints(api.Document), **_TEXT
)
Neighbor: Any = _made(
    "Neighbor",
    "A kept document near a text; `matches` if the two are near-duplicates by the recipe.",
    **get_type_hints(api.Neighbor),
    **_TEXT,
)


class DocumentBatch(BaseModel):
    """Documents in the order of the request; null for unknown ids."""

    documents: list[Document | None]


class Group(BaseModel):
    """A kept document and a page of its duplicates."""

    leader_id: str
    is_leader_gone: bool
    num_members: int
    member_ids: list[str]
    truncated: bool


class GroupBatch(BaseModel):
    """Groups in the order of the request; null for unknown ids."""

    groups: list[Group | None]


class Neighbors(BaseModel):
    """Kept documents in descending order of similarity; `truncated` if there are more than requested."""

    neighbors: list[Neighbor]
    truncated: bool


class NeighborsBatch(BaseModel):
    """Neighbors of each text, in the order of the request."""

    results: list[Neighbors]


class Moved(BaseModel):
    """A duplicate and its new kept document."""

    doc_id: str
    kept_id: str


class Removal(BaseModel):
    """A removed document and what happened to its duplicates."""

    doc_id: str
    was_kept: bool
    promoted: list[str]
    moved: list[Moved]


class RemovalBatch(BaseModel):
    """Removals in the order of the request; null for unknown ids."""

    removals: list[Removal | None]


class CollectionInfo(BaseModel):
    """A collection: its size and its recipe."""

    name: str
    num_documents: int
    store: str
    ttl_s: float | None
    recipe_id: str
    recipe: dict[str, Any]
    stats: dict[str, Any]


class CollectionList(BaseModel):
    """All collections by name; `broken` gives the reason for each one that could not be opened."""

    collections: list[CollectionInfo]
    broken: dict[str, str]


Deleted = _made("Deleted", "The name of the deleted item.", deleted=str)
Snapshot = _made("Snapshot", "A snapshot of a collection, in the directory of the service.", snapshot=str)
SnapshotList = _made("SnapshotList", "Snapshots of a collection, oldest first.", snapshots=list[str])
Verified = _made("Verified", "Problems found in a collection; empty if there are none.", problems=list[str])
Done = _made("Done", "The operation succeeded.", status=Literal["ok"])


class Comparison(BaseModel):
    """Two texts side by side."""

    matches: bool
    measures: dict[str, Any]
    differences: list[dict[str, str]]
    required: float | None
    penalty: float
    differs_in: str | None
    recipe: dict[str, Any]


class CurvePoint(BaseModel):
    """A similarity and the probability of finding a pair with it."""

    similarity: float
    found: float


class Plan(BaseModel):
    """A resolved recipe and its probability of finding pairs."""

    recipe: dict[str, Any]
    recipe_id: str
    recall: float | None
    curve: list[CurvePoint]
    bytes_a_document: int


class LostShape(BaseModel):
    """Acknowledged writes that a failover of servers lost: ids to add again, and ids to remove again."""

    doc_ids: list[str]
    removed_ids: list[str]
    since_s: int | None
    is_complete: bool


class ProblemShape(BaseModel):
    """An error. `type` is stable and intended for programs. Only `lost-writes` has the member `lost`."""

    type: str
    title: str
    detail: str
    field: str | None
    lost: LostShape | None = None


def make_bodies(settings: Settings) -> SimpleNamespace:
    """Return the request bodies with the limits of a service."""
    most = settings.max_document_characters

    def few_characters(tokens: list[Any]) -> list[Any]:
        if sum(len(token if isinstance(token, str) else token[0]) for token in tokens) > most:
            raise ValueError(f"more than {most} characters")
        return tokens

    words = list[str] | list[tuple[str, int | float]]
    tokens = Annotated[words, Field(max_length=most), AfterValidator(few_characters)]
    plain = Annotated[str, StringConstraints(max_length=most)]

    def few_digits(value: int) -> int:
        if abs(value) >= 10 ** (settings.max_id_characters - 1):
            raise ValueError(f"more than {settings.max_id_characters} digits")
        return value

    # An integer id equals the string of its decimal digits, as in files.
    integer = Annotated[int, AfterValidator(few_digits), WHOLE]
    doc_id = Annotated[str, StringConstraints(max_length=settings.max_id_characters)] | integer
    short = Annotated[str, StringConstraints(max_length=settings.max_compare_characters)]
    limit = Annotated[int, Field(ge=1, le=settings.max_results), WHOLE]
    nearest: dict[str, Any] = {
        "k": (limit, 10),
        "min_similarity": (Annotated[float, Field(ge=0, le=1)], 0.0),
        "among": (Literal["all", "kept", "candidates"] | None, None),
    }
    with_text: dict[str, Any] = {"with_text": (bool, False)}
    batch = Field(min_length=1, max_length=settings.max_batch)
    recipe = Annotated[dict[str, Any] | str, Field(max_length=64)]

    body = partial(_made, base=Body)
    cut = body(
        "Tokens",
        "Tokens, and the text by which a document without tokens is compared.",
        tokens=tokens,
        text=(plain | None, None),
    )
    text = plain | tokens | Annotated[cut, AfterValidator(BaseModel.model_dump)]  # type: ignore[valid-type]
    document = body(
        "DocumentGiven",
        "A document to add: a text, or a list of tokens or [token, weight] pairs if the recipe requires it.",
        doc_id=doc_id,
        text=text,
    )
    one_text = body("Text", "A text to check, or its tokens.", text=text)
    texts = Annotated[list[text], batch]
    doc_ids = Annotated[list[doc_id], batch]
    return SimpleNamespace(
        text=one_text,
        texts=body("Texts", "Texts to check.", texts=texts),
        document=document,
        documents=body(
            "Documents",
            "Documents to add, all or none.",
            documents=Annotated[list[document], batch],  # type: ignore[valid-type]
        ),
        doc_id=body("DocId", "The id of a document.", doc_id=doc_id),
        doc_ids=body("DocIds", "Ids of documents.", doc_ids=doc_ids),
        get=body(
            "GetAsked",
            "The id of a document, and whether its stored text is wanted.",
            doc_id=doc_id,
            **with_text,
        ),
        get_batch=body("GetAskedBatch", "Ids of documents, as for one.", doc_ids=doc_ids, **with_text),
        group=body(
            "GroupAsked",
            "The id of any document of a group. Members are listed from `offset`, in order of arrival.",
            doc_id=doc_id,
            offset=(Annotated[int, Field(ge=0, le=2**31), WHOLE], 0),
            limit=(limit, settings.max_results),
        ),
        neighbors=body("NeighborsAsked", "A text, and which neighbors are listed.", text=text, **nearest, **with_text),
        neighbors_batch=body(
            "NeighborsAskedBatch",
            "Texts, and which neighbors of each are listed.",
            texts=texts,
            **nearest,
            **with_text,
        ),
        collection=body(
            "CollectionGiven",
            "How the collection matches documents. `recipe` is the name of a preset, fields as in Python, also with a "
            "`preset`, or the JSON of a recipe. Without it, the preset online applies: word 3-grams at 0.55, higher "
            "for short documents.",
            recipe=(recipe | None, None),
            store=(Literal["sketch", "shingles", "text"] | None, None),
            ttl_s=(Annotated[float, Field(gt=0, le=1e10)] | None, None),
            ttl_from=(Literal["first_seen", "last_seen"] | None, None),
        ),
        verify=body("VerifyAsked", "`full` checks all data.", full=(bool, False)),
        compare=body(
            "CompareAsked",
            "Two texts and the recipe to compare them with.",
            a=short,
            b=short,
            recipe=(recipe | None, None),
        ),
        plan=body("PlanAsked", "A recipe, as in the request that creates a collection.", recipe=recipe),
    )
