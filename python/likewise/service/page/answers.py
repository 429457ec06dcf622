"""Responses of pages: autoescaped templates, under a policy that loads no external resources."""

import hashlib
import html
import shlex
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
from starlette.responses import Response

from likewise.runs.drawing import Html, escaped, stylesheet
from likewise.runs.viewing import View
from likewise.service.page.shelf import Shelf

_POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}
SAMPLE_CHARACTERS = 400
# Maximum number of input files that a command lists individually.
_MOST_INPUTS = 20


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
