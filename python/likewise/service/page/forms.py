"""Form fields that pages send, read within the limits of the service."""

from urllib.parse import parse_qs

from starlette.requests import Request

from likewise.service.collections.service import Service
from likewise.service.guard.body import media_type, whole_body
from likewise.service.problems import Problem

_TYPE = "application/x-www-form-urlencoded"
_MOST_FIELDS = 32


async def fields_of(request: Request, service: Service) -> dict[str, str]:
    """Return the fields of a form; empty if the request is not a POST."""
    if request.method != "POST":
        return {}
    is_empty = request.headers.get("content-length") == "0"
    if media_type(request.scope) != _TYPE and not is_empty:
        raise Problem("unsupported-media-type", f"the content type must be {_TYPE}")
    async with whole_body(request.scope, request.receive, service.settings, service.body_memory) as body:
        try:
            found = parse_qs(
                body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=_MOST_FIELDS,
                errors="replace",
            )  # fmt: skip
        except ValueError:
            raise Problem("bad-request", "the body is not a form") from None
    # Browsers send newlines in forms as CR LF.
    return {name: values[0].replace("\r\n", "\n") for name, values in found.items()}
