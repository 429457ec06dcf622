"""Requests and how their responses are decoded; without input or output."""

import json
import math
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

import numpy as np

from likewise.errors import (
    IndexPoisoned,
    InvalidInput,
    InvalidParameter,
    LikewiseError,
    LostWrites,
    StoreError,
    as_index,
    counted,
)
from likewise.index import Document, Removal, Verdicts

# Maximum number of documents and approximate bytes of a request, within the default limits of services.
MOST_DOCUMENTS = 1000
MOST_BYTES = 4 << 20
_LONGEST_PAUSE_S = 10.0
_CONNECT_S = 5.0
_Answer = TypeVar("_Answer")
_KEY = re.compile(r"[!-~]+")
# A text, or the tokens that a recipe with user-supplied tokens takes, with a text if they may be none.
Text: TypeAlias = str | Sequence[Any] | Mapping[str, Any]


class ServiceError(LikewiseError):
    """A service rejected a request, or could not be reached.

    Parameters
    ----------
    kind : str
        The stable type of the error, such as ``unauthorized``; ``unreachable`` without a response.
    detail : str
        One sentence about what happened.
    field : str, optional
        The invalid field of the request.
    status : int, optional
        HTTP status of the response.
    """

    def __init__(self, kind: str, detail: str, field: str | None = None, status: int | None = None) -> None:
        super().__init__(kind, detail, field, status)
        self.kind = kind
        self.detail = detail
        self.field = field
        self.status = status

    def __str__(self) -> str:
        place = "" if self.field is None else f" ({self.field})"
        return f"{self.kind}: {self.detail}{place}"


def error_of(status: int, shape: object) -> LikewiseError:
    """Return the exception for an error response."""
    if not isinstance(shape, dict) or not isinstance(shape.get("type"), str):
        return ServiceError("unknown", f"status {status} without a Likewise error; check the URL", status=status)
    kind, detail, field = shape["type"], str(shape.get("detail", "")), shape.get("field")
    match kind:
        case "conflicting-document" | "unknown-document":
            return InvalidInput(detail, row=_row_of(field))
        case "invalid" if field is not None:
            return InvalidParameter(str(field), detail)
        case "invalid":
            return InvalidInput(detail)
        case "lost-writes" if isinstance(shape.get("lost"), dict):
            lost = shape["lost"]
            return LostWrites("", lost["doc_ids"], lost["removed_ids"], lost["since_s"], lost["is_complete"])
        case "poisoned":
            return IndexPoisoned(detail)
        case "store":
            return StoreError(detail)
    return ServiceError(kind, detail, field, status)


def _row_of(field: object) -> int | None:
    """Return the row in a field such as ``documents.3.doc_id``."""
    parts = str(field).split(".")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else None


@dataclass(frozen=True)
class Call(Generic[_Answer]):
    """A request, and how to decode its response."""

    # Method and path of the request
    method: str
    path: str
    # Request body as JSON
    body: bytes | None
    # Decodes the JSON of the response
    understand: Callable[[Any], _Answer]
    # Whether it may be sent again after a connection error, although it may have been carried out
    is_repeatable: bool = True
    # Whether it has no time limit
    is_long: bool = False
    # Key that identifies the call to the service when it is sent again
    idempotency_key: str | None = None


@dataclass
class Attempts:
    """The attempts of one call, all of which share one time limit."""

    call: Call[Any]
    url: str
    retries: int
    # Seconds for all attempts and the pauses between them. A long call is limited only while it connects
    timeout_s: float
    clock: Callable[[], float] = time.monotonic
    _num_failed: int = field(default=0, init=False)
    # Whether the service may have carried out the call although no response arrived.
    _is_uncertain: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._end = math.inf if self.call.is_long else self.clock() + self.timeout_s

    def request(self) -> dict[str, Any]:
        """Return the arguments of the next request."""
        left_s = self.left_s()
        connect_s = _CONNECT_S if left_s is None else min(_CONNECT_S, left_s)
        headers = {"content-type": "application/json"}
        if self.call.idempotency_key is not None:
            headers["idempotency-key"] = self.call.idempotency_key
        return {
            "method": self.call.method,
            "url": self.call.path,
            "content": self.call.body,
            "headers": headers,
            # Connect, read, write, and wait for a free connection.
            "timeout": (connect_s, left_s, left_s, left_s),
        }

    def left_s(self) -> float | None:
        """Return the seconds left, or None for a call without a limit."""
        return None if self.call.is_long else max(0.001, self._end - self.clock())

    def check_time(self) -> None:
        """Raise TimeoutError if the time is up. Called for each part of a response that may never end."""
        if self.clock() > self._end:
            raise TimeoutError

    def after_failure(self, error: Exception, *, is_sent: bool) -> float:
        """Return the seconds to wait before the next attempt after one without an answer."""
        self._is_uncertain |= is_sent
        wait_s = pause_s(self._num_failed, None)
        if self._is_last(wait_s) or (is_sent and not self.call.is_repeatable):
            raise self._unreachable(error) from error
        self._num_failed += 1
        return wait_s

    def after_answer(self, status: int, content: bytes, headers: Mapping[str, str]) -> float | None:
        """Return the seconds to wait before the next attempt, or None if the answer is final."""
        wait_s = pause_s(self._num_failed, headers.get("retry-after"))
        is_retried = _is_at_limit(status, content) or (status == 504 and self.call.idempotency_key is not None)
        if is_retried and not self._is_last(wait_s):
            self._num_failed += 1
            self._is_uncertain |= status == 504
            return wait_s
        is_unknown = status == 404 and b'"unknown-document"' in content
        if is_unknown and self._is_uncertain and "idempotent-replayed" not in headers:
            raise ServiceError(
                "uncertain",
                "no document has the id; an earlier attempt without a response may have removed it, and the service "
                "no longer has its response",
                status=status,
            )
        return None

    def _is_last(self, wait_s: float) -> bool:
        return self._num_failed >= self.retries or self.clock() + wait_s >= self._end

    def _unreachable(self, error: Exception) -> ServiceError:
        if self.clock() >= self._end:
            return ServiceError("unreachable", f"{self.url} did not respond within {self.timeout_s:g} s")
        return ServiceError("unreachable", f"{self.url} does not respond: {error or type(error).__name__}")


def check_url(url: str) -> str:
    """Return the address of a service without a trailing slash."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise InvalidParameter("url", f"{url!r} given; it must be a URL such as http://127.0.0.1:8765")
    return url.rstrip("/")


def headers_of(key: str | None) -> dict[str, str]:
    """Return the headers of every request, or raise InvalidParameter for a key that a header cannot hold."""
    if key is None:
        return {}
    if not _KEY.fullmatch(key):
        # The message omits the key, since errors are logged.
        raise InvalidParameter("key", "a key must consist of visible ASCII characters, without spaces or newlines")
    return {"authorization": f"Bearer {key}"}


def answered(status: int, content: bytes) -> Any:
    """Return the JSON of a response, or raise the error that it reports."""
    try:
        shape = json.loads(content)
    except ValueError:
        shape = None
    if status >= 400 or shape is None:
        raise error_of(status, shape)
    return shape


def _is_at_limit(status: int, content: bytes) -> bool:
    """Return whether a response means that the service is at its limit, rather than that a collection is broken."""
    return status == 429 or (status == 503 and b'"poisoned"' not in content and b'"store"' not in content)


def pause_s(attempt: int, retry_after: str | None) -> float:
    """Return the seconds to wait before retrying after attempt `attempt`, counted from 0: exponential with jitter."""
    least = float(retry_after) if retry_after is not None and retry_after.isdigit() else 0.0
    backoff = min(_LONGEST_PAUSE_S, 0.1 * 2.0**attempt) * random.uniform(0.5, 1.0)
    return max(min(_LONGEST_PAUSE_S, least), backoff)


def chosen_collection(url: str, answer: Any) -> str:
    """Return the only collection of a service, or raise InvalidParameter."""
    names = [collection["name"] for collection in answer["collections"]]
    if len(names) != 1:
        found = ", ".join(names[:10]) or "none"
        raise InvalidParameter("collection", f"choose a collection; {url} has {found}")
    return str(names[0])


def path_of(name: str) -> str:
    """Return the path of a collection."""
    return f"/v1/collections/{quote(name, safe='')}"


LIST: Call[dict[str, Any]] = Call("GET", "/v1/collections", None, lambda answer: answer)


def encoded(body: dict[str, Any]) -> bytes:
    """Return JSON as bytes."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()


def batches(ids: Iterable[object] | None, texts: Iterable[Text]) -> Iterator[tuple[list[object], list[Text]]]:
    """Yield ids and texts in batches within the limits of a request. Arrow data is converted to lists first."""
    some_ids: list[object] = []
    some: list[Text] = []
    num_bytes = 0
    texts = _listed(texts)
    ids = None if ids is None else _listed(ids)
    if isinstance(ids, Sized) and isinstance(texts, Sized) and len(ids) != len(texts):
        raise InvalidInput(f"{counted(len(ids), 'id')} for {counted(len(texts), 'document')}")
    rest = None if ids is None else iter(ids)
    num_texts = 0
    for text in texts:
        if not isinstance(text, str | list | tuple | Mapping):
            raise InvalidInput(
                f"{type(text).__name__} given; a service accepts texts and lists of tokens", row=num_texts
            )
        if some and (len(some) == MOST_DOCUMENTS or num_bytes + _num_characters(text) > MOST_BYTES):
            yield some_ids, some
            some_ids, some, num_bytes = [], [], 0
        if rest is not None:
            found = next(rest, rest)
            if found is rest:
                raise InvalidInput(f"{counted(num_texts, 'id')} for {num_texts + 1:,} or more documents")
            some_ids.append(found)
        some.append(text)
        # Most characters take one to three bytes in UTF-8 JSON.
        num_bytes += len(text) if isinstance(text, str) and text.isascii() else 3 * _num_characters(text)
        num_texts += 1
    if rest is not None and next(rest, rest) is not rest:
        raise InvalidInput(f"more ids than {counted(num_texts, 'document')}")
    if some:
        yield some_ids, some


def _listed(values: Iterable[Any]) -> Iterable[Any]:
    """Return Arrow data (of PyArrow, Polars, DuckDB, pandas) as a list; other values unchanged."""
    if isinstance(values, str | bytes):
        raise InvalidInput(f"expected a list of documents or ids, got {type(values).__name__}")
    if not hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__"):
        return values
    import pyarrow as pa

    is_stream = hasattr(values, "__arrow_c_stream__")
    listed: list[Any] = (pa.chunked_array(values) if is_stream else pa.array(values)).to_pylist()
    return listed


def verdicts_of(answer: dict[str, Any], measure: str, names: list[str] | None) -> Verdicts:
    """Return verdicts in the form that an index returns them."""
    rows = answer["verdicts"]
    has_distance = measure == "hamming" or any(row["distance"] is not None for row in rows)
    has_seq = names is not None
    return Verdicts(
        is_new=np.array([row["is_new"] for row in rows], bool),
        kept_ids=[row["kept_id"] for row in rows],
        similarity=np.array([math.nan if row["similarity"] is None else row["similarity"] for row in rows], float),
        distance=np.array([-1 if row["distance"] is None else row["distance"] for row in rows], np.int32)
        if has_distance
        else None,
        seq=np.array([row["seq"] for row in rows], np.int64) if has_seq else None,
        added=np.array([row["added"] for row in rows], bool),
        measure=measure,
        doc_ids=names,
    )


def joined(parts: list[Verdicts], measure: str, *, has_ids: bool) -> Verdicts:
    """Return the concatenated verdicts of several requests."""
    return Verdicts.concatenate(parts) if parts else verdicts_of({"verdicts": []}, measure, [] if has_ids else None)


def document_of(answer: dict[str, Any]) -> Document | None:
    """Return the only document of an answer; None if it is unknown."""
    found = answer["documents"][0]
    return None if found is None else Document(**found)


def removal_of(answer: dict[str, Any]) -> Removal:
    """Return what was removed."""
    moved = tuple((one["doc_id"], one["kept_id"]) for one in answer["moved"])
    return Removal(answer["doc_id"], answer["was_kept"], tuple(answer["promoted"]), moved)


def _num_characters(text: Text) -> int:
    """Return the approximate length of a text, or of a list of tokens with its brackets, quotes and weights."""
    if isinstance(text, str):
        return len(text)
    if isinstance(text, Mapping):
        return sum(_num_characters(value) for value in text.values() if isinstance(value, str | list | tuple))
    return sum(4 + len(token if isinstance(token, str) else str(token)) for token in text)


def clean(text: Text) -> Any:
    """Return a text or tokens as the index reads them: a lone surrogate, which JSON cannot hold, becomes U+FFFD."""
    if isinstance(text, Mapping):
        return {name: value and clean(value) for name, value in text.items()}
    if isinstance(text, list | tuple):
        return [_clean_token(token) for token in text]
    if not isinstance(text, str):
        raise InvalidInput(f"{type(text).__name__} given; a service accepts texts and lists of tokens")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _clean_token(token: Any) -> Any:
    if isinstance(token, str):
        return clean(token)
    try:
        name, weight = token.values() if isinstance(token, dict) else token
        whole = as_index(weight)
        return [clean(name), float(weight) if whole is None else whole]
    except (TypeError, ValueError):
        raise InvalidInput("a list of tokens contains an item that is not a str or a (token, weight) pair") from None
