"""The addresses of pages, and how requests are dispatched to them."""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, quote

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from likewise.errors import LikewiseError
from likewise.runs.drawing.charts import stylesheet
from likewise.service.collections.service import Service
from likewise.service.guard.body import Disconnected, media_type, whole_body
from likewise.service.page import documents, lists, review
from likewise.service.page.answers import Place, Shelf, report_page, script, shown
from likewise.service.problems import Problem

_TYPE = "application/x-www-form-urlencoded"
_MOST_FIELDS = 32

Shows = Callable[[Place, Request, dict[str, str]], Response]
# A page is shown directly if its groups are sorted within this time; otherwise the progress is shown.
_WAIT_S = 1.5
# Two overlapping sheets.
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect x="1" y="1" width="10" height="12" rx="2" '
    'fill="#82aefb"/><rect x="5" y="3" width="10" height="12" rx="2" fill="#1f5fd0"/></svg>'
)
_LONG = "public, max-age=31536000, immutable"

_PAGES: dict[str, tuple[Shows, tuple[str, ...]]] = {
    "": (lists.overview, ("GET",)),
    "groups": (lists.groups, ("GET",)),
    "groups.csv": (lists.export_csv, ("GET",)),
    "groups.jsonl": (lists.export_jsonl, ("GET",)),
    "groups/sort": (lists.sort_again, ("POST",)),
    "groups/{number:int}": (documents.group, ("GET",)),
    "groups/{number:int}/pair/{a}/{b}": (documents.pair, ("GET",)),
    "document": (documents.find, ("GET",)),
    "threshold": (review.threshold, ("GET",)),
    "threshold/around": (review.around, ("GET",)),
    "threshold/recipe.json": (review.recipe_file, ("GET",)),
    "threshold/pair/{number:int}": (review.pair, ("GET",)),
    "compare": (documents.compare_two, ("GET", "POST")),
    "near": (documents.near, ("GET", "POST")),
    "review": (review.review, ("GET",)),
    "review/next": (review.next_removal, ("GET",)),
    "review/pairs": (review.next_pair, ("GET",)),
    "review/mark": (review.mark, ("POST",)),
    "review.csv": (review.export, ("GET",)),
    "review/keep": (review.keep, ("POST",)),
    "decisions.csv": (review.export_kept, ("GET",)),
}

_TABS = {
    "": "Overview", "groups": "Groups", "threshold": "Threshold", "compare": "Compare", "near": "Similar",
    "review": "Review",
}  # fmt: skip


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


def add_page(app: FastAPI, service: Service) -> Shelf:
    """Add the pages to an application. The caller must close the returned shelf with the service."""
    shelf = Shelf(service)

    async def home(request: Request) -> Response:
        names, root = shelf.names(), str(request.scope.get("root_path", ""))
        if len(names) == 1 and not shelf.broken():
            return RedirectResponse(f"{root}/look/{quote(names[0], safe='')}/", 307)
        described, broken = await service.in_thread(service.describe)
        rows = [(one["name"], one["num_documents"], str(one["recipe"]["method"])) for one in described]
        return shown("home.html", title="Likewise", rows=rows, broken=broken, root=root)

    async def bare(request: Request) -> Response:
        # Links between pages contain the slash, so only an address typed by hand lacks it.
        root, name = str(request.scope.get("root_path", "")), quote(request.path_params["view"], safe="")
        return RedirectResponse(f"{root}/look/{name}/", 308)

    async def style(_: Request) -> Response:
        return Response(stylesheet(), media_type="text/css; charset=utf-8", headers={"cache-control": _LONG})

    async def icon(_: Request) -> Response:
        return Response(_ICON, media_type="image/svg+xml", headers={"cache-control": _LONG})

    async def scripted(_: Request) -> Response:
        return Response(script(), media_type="text/javascript; charset=utf-8", headers={"cache-control": _LONG})

    app.add_route("/", home, methods=["GET"], include_in_schema=False)
    app.add_route("/look/style.css", style, methods=["GET"], include_in_schema=False)
    app.add_route("/look/icon.svg", icon, methods=["GET"], include_in_schema=False)
    app.add_route("/look/page.js", scripted, methods=["GET"], include_in_schema=False)
    app.add_route("/look/{view}", bare, methods=["GET"], include_in_schema=False)
    for path, (shows, methods) in _PAGES.items():
        app.add_route(
            f"/look/{{view}}/{path}", _routed(shelf, service, shows), methods=list(methods), include_in_schema=False
        )
    return shelf


def not_found(root: str) -> Response:
    """Return the page for an unknown address; `root` is the prefix of addresses."""
    return shown("error.html", 404, title="Not found", detail="Page not found.", root=root)


def _routed(shelf: Shelf, service: Service, shows: Shows) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        root, name = str(request.scope.get("root_path", "")), request.path_params["view"]

        async def work() -> Response:
            fields = await fields_of(request, service)
            return await service.in_thread(_shown, shelf, name, root, shows, request, fields)

        try:
            answered: Response = await service.worked(work, request.scope["state"]["key"].name)
        except Disconnected:
            return Response(status_code=400)
        except Problem as problem:
            more = "; the work continues, try again soon" if problem.kind == "deadline" else ""
            return shown("error.html", problem.status, title="Not done", detail=problem.detail + more, root=root)
        return answered

    return answer


def _shown(shelf: Shelf, name: str, root: str, shows: Shows, request: Request, fields: dict[str, str]) -> Response:
    """Return a page, or an error page. Runs on a thread."""
    try:
        report = shelf.report(name)
        if report is not None:
            return report_page(report) if shows is lists.overview else not_found(root)
        prepared = shelf.open(name)
        if prepared is None:
            return not_found(root)
        if not prepared.wait(_WAIT_S):
            return shown("wait.html", title="Sorting groups", share=f"{prepared.share:.0%}", root=root)
        return shows(Place(shelf, name, prepared.view, root, _here(request), _TABS), request, fields)
    except LikewiseError as error:
        return shown("error.html", 422, title="This page cannot be shown", detail=str(error), root=root)
    except OSError as error:
        detail = f"{error.filename or 'System error'}: {error.strerror or error}"
        return shown("error.html", 500, title="System error", detail=detail, root=root)


def _here(request: Request) -> str:
    """Return the path and query of a request, undecoded."""
    raw = request.scope.get("raw_path") or request.url.path.encode()
    query = request.scope.get("query_string", b"")
    return str((raw + (b"?" + query if query else b"")).decode("latin-1"))
