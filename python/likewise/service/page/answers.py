"""Responses of pages: autoescaped templates, under a policy that loads no external resources."""

import hashlib
import html
import shlex
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
from starlette.responses import Response, StreamingResponse

from likewise.errors import InvalidInput, StoreError
from likewise.io.html import Html, escaped
from likewise.io.output.directory import SUMMARY
from likewise.io.output.summaries import is_report_only
from likewise.progress import Event, StageAdvanced, StageStarted
from likewise.runs.drawing.charts import stylesheet
from likewise.runs.report import report
from likewise.runs.viewing.view import IndexView, RunView, View
from likewise.service.collections.service import Service
from likewise.service.collections.shared import SharedIndex

_REVIEWS = ".reviews"


_POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}
SAMPLE_CHARACTERS = 400
# Maximum number of input files that a command lists individually.
_MOST_INPUTS = 20


class Prepared:
    """A view and the progress of sorting its groups."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.share = 0.0
        self._total = 0
        self._is_closing = False
        self._lock = threading.Lock()
        self._sorting: Future[object] | None = None

    def progress(self, event: Event) -> None:
        """Record an event of the sorting; abort it if the view is being closed."""
        if self._is_closing:
            raise StoreError("the view is closed")
        if isinstance(event, StageStarted):
            self._total = event.total
        elif isinstance(event, StageAdvanced) and self._total:
            self.share = event.done / self._total

    def wait(self, seconds: float) -> bool:
        """Wait up to some seconds for the groups to be sorted, and return whether they are."""
        with self._lock:
            if self._sorting is None:
                self._sorting = Future()
                # A program that ends without closing the pages does not wait for this thread.
                threading.Thread(target=self._sort, args=[self._sorting], name="likewise-page", daemon=True).start()
            sorting = self._sorting
        if not wait([sorting], seconds).done:
            return False
        if sorting.exception() is not None:
            # The next request tries again.
            with self._lock:
                if self._sorting is sorting:
                    self._sorting = None
        return sorting.result() is not None

    def _sort(self, sorting: Future[object]) -> None:
        try:
            sorting.set_result(self.view.catalog)
        except BaseException as error:  # raised by the caller that waits
            sorting.set_exception(error)

    def close(self) -> None:
        """Close the view after the sorting has ended."""
        self._is_closing = True
        with self._lock:
            sorting = self._sorting
        if sorting is not None:
            wait([sorting])
        self.view.__exit__(None, None, None)


class Shelf:
    """The views of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._prepared: dict[str, tuple[object, Prepared]] = {}
        self._report: tuple[object, str] | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether labels cannot be stored."""
        return self._service.settings.is_read_only

    def names(self) -> Sequence[str]:
        """Return the names of all views."""
        run = self._service.run_path
        return list(self._service.collections) if run is None else [run.resolve().name]

    def broken(self) -> dict[str, str]:
        """Return the collections that cannot be opened, with reasons."""
        return self._service.broken

    def open(self, name: str) -> Prepared | None:
        """Return a view by its name, or None. Blocks."""
        with self._lock:
            if self._service.run_path is not None:
                if name not in self.names():
                    return None
                return self._run(name, self._service.run_path)
            collection = self._service.collections.get(name)
            if collection is None:
                self._drop(name)
                return None
            if isinstance(collection.index, SharedIndex):
                raise InvalidInput("pages show runs and indexes in directories only; this index is on a server")
            owner, prepared = self._prepared.get(name, (None, None))
            if owner is collection.index and prepared is not None:
                return prepared
            # The collection was deleted and created again under the same name.
            self._drop(name)
            made = Prepared(IndexView(collection.index, name, marks=self._marks(name, collection.index.path)))
            self._prepared[name] = (collection.index, made)
            return made

    def report(self, name: str) -> str | None:
        """Return the report of a run that has no groups to show, as over parts; None for other views."""
        path = self._service.run_path
        if path is None or name not in self.names() or not is_report_only(path):
            return None
        with self._lock:
            identity = _identity(path)
            if self._report is None or self._report[0] != identity:
                self._report = identity, report(path, inputs=self._service.settings.inputs)
            return self._report[1]

    def close(self) -> None:
        """Close all views."""
        with self._lock:
            for name in list(self._prepared):
                self._drop(name)

    def _run(self, name: str, path: Path) -> Prepared:
        identity = _identity(path)
        known, prepared = self._prepared.get(name, (None, None))
        if prepared is not None and known == identity:
            return prepared
        # The directory contains another run, or none, which opening it reports.
        self._drop(name)
        events: list[Prepared] = []
        view = RunView(path, inputs=self._service.settings.inputs, progress=lambda event: events[0].progress(event))
        events.append(Prepared(view))
        self._prepared[name] = (identity, events[0])
        return events[0]

    def _marks(self, name: str, index: Path) -> Path | None:
        """Return the file for the labels of a collection: next to the indexes, never inside one."""
        if self.is_read_only:
            return None
        root = self._service.path
        assert root is not None
        if index == root:
            return root.with_name(f"{root.name}.review.csv")
        (root / _REVIEWS).mkdir(exist_ok=True)
        return root / _REVIEWS / f"{name}.csv"

    def _drop(self, name: str) -> None:
        _, prepared = self._prepared.pop(name, (None, None))
        if prepared is not None:
            prepared.close()


def _identity(run: Path) -> tuple[int, ...] | None:
    """Return the identity of the run in a directory, from its summary, which is written last; None if there is none."""
    try:
        found = (run / SUMMARY).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.PackageLoader("likewise.service.page")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=_final,
    )  # fmt: skip
    environment.filters["number"] = lambda value: f"{value:,}"
    environment.filters["similarity"] = lambda value: f"{value:.4f}"
    # Data for the script: must not contain the end tag of its element.
    environment.filters["tojson_text"] = lambda text: Html(text.replace("<", "\\u003c").replace("&", "\\u0026"))
    # Values that must return unchanged when a form is submitted.
    environment.filters["verbatim"] = lambda text: Html(html.escape(text, quote=True))
    return environment


def _final(value: Any) -> Any:
    """Return the displayed form of a value: hidden characters of a text are spelled out, markup is unchanged."""
    return escaped(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@cache
def script() -> str:
    """Return the script of the page."""
    return (files("likewise.service.page") / "page.js").read_text(encoding="utf-8")


@cache
def _version() -> str:
    """Return a hash for the addresses of stylesheet and script, so that browsers reload changed ones."""
    return hashlib.blake2b((stylesheet() + script()).encode(), digest_size=6).hexdigest()


def shown(template: str, status: int = 200, **values: Any) -> Response:
    """Return a page."""
    text = _environment().get_template(template).render(version=_version(), **values)
    return Response(text, status, _HEADERS, "text/html; charset=utf-8")


def download(content: Any, media_type: str, name: str) -> Response:
    """Return a file to save: a text, or its lines."""
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    kind = Response if isinstance(content, str) else StreamingResponse
    return kind(content, media_type=media_type, headers=headers)


def report_page(text: str) -> Response:
    """Return a report, which contains its styles."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    return Response(text, 200, {**_HEADERS, "content-security-policy": policy}, "text/html; charset=utf-8")


def input_arguments(summary: Mapping[str, Any]) -> str | None:
    """Return the inputs of a run as command arguments, above `_MOST_INPUTS` their directory; None if there are none."""
    directory, files = summary.get("input_directory"), summary.get("inputs", [])
    if directory is None or not files:
        return None
    paths = [str(Path(directory) / file["path"]) for file in files] if len(files) <= _MOST_INPUTS else [str(directory)]
    return " ".join(map(shlex.quote, paths))


def dedup_command(summary: Mapping[str, Any], output: str, recipe: str, *more: str) -> str:
    """Return the command that processes the inputs of a run again with the same reading options."""
    options = summary.get("options", {})
    parts = [f"likewise dedup {input_arguments(summary) or 'INPUT'} -o {output} --recipe {recipe}"]
    parts += [f"--text-field {shlex.quote(name)}" for name in options.get("text_field", []) if name != "text"]
    for name in ("tokens_field", "id_field", "format", "delimiter", "quote"):
        if options.get(name) is not None:
            parts.append(f"--{name.replace('_', '-')} {shlex.quote(str(options[name]))}")
    for name, default in (("on_error", "fail"), ("duplicate_ids", "fail")):
        if options.get(name, default) != default:
            parts.append(f"--{name.replace('_', '-')} {options[name]}")
    if "counts_by" in summary:
        parts.append(f"--count-by {shlex.quote(summary['counts_by']['field'])}")
    return " ".join([*parts, *more])


class Place:
    """The location of a page: its view, the name of the view, and addresses within it."""

    def __init__(self, shelf: Shelf, name: str, view: View, root: str, here: str, tabs: Mapping[str, str]) -> None:
        self.shelf, self.name, self.view, self.root, self.here = shelf, name, view, root, root + here
        self.tabs = tabs

    @property
    def can_mark(self) -> bool:
        """Whether labels can be stored."""
        return not self.shelf.is_read_only

    @property
    def has_home(self) -> bool:
        """Whether there are other views."""
        return len(self.shelf.names()) > 1

    def address(self, path: str = "", **query: Any) -> Html:
        """Return the address of a page of this view; None and empty query values are omitted."""
        given = {name: value for name, value in query.items() if value not in (None, "")}
        address = f"{self.root}/look/{quote(self.name, safe='')}/{path}"
        if given:
            address += f"?{urlencode(given)}"
        return Html(address.replace("&", "&amp;").replace("'", "%27"))

    def plain(self, path: str = "", **query: Any) -> str:
        """Return an address that is not escaped for markup, for redirects."""
        return self.address(path, **query).replace("&amp;", "&")

    def show(self, template: str, current: str, title: str, status: int = 200, **values: Any) -> Response:
        """Return a page of this view."""
        return shown(
            template, status, place=self, view=self.view, current=current, title=title, root=self.root, **values
        )
