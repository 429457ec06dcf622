"""The overview page of a view, and the list of its groups."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from likewise.errors import InvalidInput
from likewise.io.html import Html
from likewise.io.label_rows import label_rows
from likewise.runs.drawing.charts import similarity_bar
from likewise.runs.report import sections
from likewise.runs.viewing.catalog import KINDS, SORTS, GroupFilter, GroupRow, Member
from likewise.runs.viewing.texts import Missing
from likewise.runs.viewing.view import IndexView
from likewise.service.page.answers import SAMPLE_CHARACTERS, Place, download

_ON_A_PAGE = 50
_SORT_NAMES = {"size": "largest first", "certainty": "least certain first", "input": "in input order"}
_MOST_SEARCHED = 500
# Maximum number of files offered as a filter.
_MOST_FILES = 500
_EXPORTED = (
    "doc_id", "kept_id", "similarity", "required", "differs_in", "distance", "file", "offset", "group_size"
)  # fmt: skip
# Removals of each kind on the overview.
_LEAST_CERTAIN = 3
# Rows of an export that are sent together.
_A_PART = 2000


@dataclass(frozen=True)
class ListedGroup:
    """A group as a row of the list."""

    group: GroupRow
    sample: str
    is_missing: bool
    bar: Html
    address: Html


def sample_of(text: str | bytes | Missing) -> tuple[str, bool]:
    """Return the beginning of a document as one line, or why it is missing, and whether it is missing."""
    if isinstance(text, Missing):
        return text.reason, True
    shown = text[: 4 * SAMPLE_CHARACTERS]
    line = " ".join((shown.decode("utf-8", "replace") if isinstance(shown, bytes) else shown).split())
    return (line[:SAMPLE_CHARACTERS] or "(empty)"), False


def overview(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show a run or an index in figures and charts."""
    view = place.view
    catalog, summary = view.catalog, view.summary
    certain = None
    if catalog.num_groups():
        certain = sections.certainty_table(
            catalog,
            _LEAST_CERTAIN,
            lambda kind: place.address("groups", differs=kind, sort="certainty"),
            lambda group, member: place.address(f"groups/{group.number}/pair/{member.row}/kept"),
        )
    about = "All documents checked so far and their verdicts."
    if view.kind == "run":
        about, numbers = summary["verification"], sections.run_figures(summary, catalog.num_groups())
    else:
        removed = sum(size * num for size, num in catalog.sizes()) - catalog.num_groups()
        numbers = sections.figures(
            [
                ("documents", summary["num_documents"]),
                ("duplicates", removed),
                ("groups", catalog.num_groups()),
                ("segments", len(summary["segment_rows"])),
            ],
            summary,
        )
    cards = sections.cards(
        view,
        "Similarities of duplicates",
        lambda low, high: place.address("groups", **{"from": low, "to": high}, sort="certainty"),
        lambda low, high: place.address("groups", min=low, max=high),
    )
    counts = sections.counts_table(
        summary, lambda removed, kept: place.address("groups", removed=json.dumps(removed), kept=json.dumps(kept))
    )
    by = None if counts is None else (f"Duplicates by {summary['counts_by']['field']}", counts)
    return place.show(
        "overview.html", "", view.title, about=about, numbers=numbers, certain=certain, counts=by, cards=cards
    )


def filter_of(request: Request) -> GroupFilter:
    """Return the filter of groups in the query of an address; invalid values are ignored."""
    asked = request.query_params
    sort = asked.get("sort", "")
    return GroupFilter(
        words=asked.get("q", "")[:_MOST_SEARCHED],
        file=asked.get("file", ""),
        least=_fraction(asked.get("from", "")),
        most=_fraction(asked.get("to", "")),
        smallest=_count(asked.get("min", "")),
        largest=_count(asked.get("max", "")),
        value=_json_value(asked.get("removed", "")),
        kept_value=_json_value(asked.get("kept", "")),
        differs=kind if (kind := asked.get("differs", "")) in KINDS else "",
        sort=sort if sort in SORTS else "size",
    )


def query_of(wanted: GroupFilter) -> dict[str, object]:
    """Return the query of an address with this filter."""
    return {
        "sort": None if wanted.sort == "size" else wanted.sort, "q": wanted.words, "file": wanted.file,
        "from": wanted.least, "to": wanted.most, "min": wanted.smallest, "max": wanted.largest,
        "removed": wanted.value, "kept": wanted.kept_value, "differs": wanted.differs,
    }  # fmt: skip


def _value_choices(place: Place, wanted: GroupFilter) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """Return the form fields that filter by kind of difference and by value: name, label, current choice, choices."""
    kinds, counts = place.view.catalog.kinds(), place.view.summary.get("counts_by")
    fields = [("differs", "Differs in", wanted.differs, [(kind, KINDS[kind]) for kind in kinds])] if kinds else []
    if counts is None:
        return fields
    for name, chosen in (("removed", wanted.value), ("kept", wanted.kept_value)):
        values = [json.dumps(one["value"]) for one in counts["values"]]
        if chosen and chosen not in values:
            values.append(chosen)
        choices = [(value, sections.value_name(json.loads(value))) for value in values]
        fields.append((name, f"{counts['field']} of the {name} document", chosen, choices))
    return fields


def groups(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """List groups, a page at a time."""
    wanted = filter_of(request)
    query = query_of(wanted)
    found = place.view.catalog.list_groups(wanted, cursor=request.query_params.get("at", ""), limit=_ON_A_PAGE)
    texts = place.view.texts([(group.row, group.place) for group in found.groups])
    start = sections.threshold_of(place.view.stated) or 0.0
    rows = []
    for group, text in zip(found.groups, texts, strict=True):
        sample, is_missing = sample_of(text)
        bar = similarity_bar(group.lowest, group.highest, start)
        address = place.address(f"groups/{group.number}", **query)
        rows.append(ListedGroup(group, sample, is_missing, bar, address))
    is_stale = isinstance(place.view, IndexView) and not place.view.is_current
    files = [str(file["path"]) for file in place.view.summary.get("inputs", [])]
    return place.show(
        "groups.html", "groups", "Groups", rows=rows, wanted=wanted, sorts=_SORT_NAMES, found=found,
        before=found.before and place.address("groups", **query, at=found.before),
        after=found.after and place.address("groups", **query, at=found.after),
        page_number=found.num_before // _ON_A_PAGE + 1, num_pages=-(-found.num_found // _ON_A_PAGE),
        values=_value_choices(place, wanted), files=files if 1 < len(files) <= _MOST_FILES else [], is_stale=is_stale,
        is_filtered=any(value is not None and value != "" for name, value in query.items() if name != "sort"),
        csv=place.address("groups.csv", **query), jsonl=place.address("groups.jsonl", **query),
    )  # fmt: skip


def export_csv(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Return the removed documents of a list as CSV."""
    rows = place.view.catalog.rows_of(filter_of(request))
    names = _names(place)
    parts = (
        label_rows(names if number == 0 else (), (row[: len(names)] for row in part))
        for number, part in enumerate(_parts(rows))
    )
    # Later parts have an empty line as their header.
    lines = (part if number == 0 else part.removeprefix("\n") for number, part in enumerate(parts))
    return download(lines, "text/csv; charset=utf-8", "groups.csv")


def export_jsonl(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Return the removed documents of a list as JSON Lines."""
    rows = place.view.catalog.rows_of(filter_of(request))
    names = _names(place)
    lines = (
        "".join(json.dumps(dict(zip(names, row, strict=False)), ensure_ascii=False) + "\n" for row in part)
        for part in _parts(rows)
    )
    return download(lines, "application/jsonl; charset=utf-8", "groups.jsonl")


def _names(place: Place) -> tuple[str, ...]:
    """Return the field names of an export; with values if the run counted by a field."""
    return (*_EXPORTED, "value", "kept_value") if "counts_by" in place.view.summary else _EXPORTED


def _parts(rows: Iterator[tuple[GroupRow, Member]]) -> Iterator[list[tuple[object, ...]]]:
    """Yield the rows of an export in lists of at most `_A_PART`, and at least one list."""
    part: list[tuple[object, ...]] = []
    for group, member in rows:
        file, offset, _ = member.place
        values = (json.loads(value or "null") for value in (member.value, group.value))
        part.append(
            (
                member.doc_id,
                group.doc_id,
                member.similarity,
                member.required,
                member.differs,
                member.distance,
                file,
                offset,
                group.size,
                *values,
            )
        )
        if len(part) == _A_PART:
            yield part
            part = []
    yield part


def _fraction(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None


def _json_value(text: str) -> str:
    """Return a field value in the form of the catalog; empty if the text is not a valid value."""
    try:
        value = json.loads(text)
        if isinstance(value, str):
            # Lone surrogates cannot be shown.
            value.encode()
    except (ValueError, RecursionError):
        return ""
    return json.dumps(value) if value is None or isinstance(value, str) else ""


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def sort_again(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Sort the groups of an index again."""
    if not isinstance(place.view, IndexView):
        raise InvalidInput("the groups of a finished run do not change")
    place.view.sort_again()
    return RedirectResponse(place.plain("groups"), 303)
