"""Errors of a service, as the exceptions that the library raises for the same causes."""

from likewise.errors import IndexPoisoned, InvalidInput, InvalidParameter, LikewiseError, LostWrites, StoreError


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

    Attributes
    ----------
    kind, detail, field, status
        As given.
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
