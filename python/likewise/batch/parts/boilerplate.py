"""Boilerplate by site: parts that occur in a large share of the documents of one site are removed, all copies."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowTable
from likewise.batch.parts.collection import Collection, beginnings, places_of
from likewise.batch.parts.units import UNITS, PartRules, PartsJob, check_rewriting, cut_parts
from likewise.batch.read.ingest import NO_VALUE
from likewise.batch.write.groups import value_name
from likewise.errors import InvalidInput, InvalidParameter, check_choice, check_integer, fraction_check
from likewise.io.output.directory import EVIDENCE, SITES
from likewise.io.source.source import Cut, Piece
from likewise.io.tables.columns import constant_column, number_column, text_column
from likewise.job.reading import FileRun, RunContext
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import EMPTY

#: Supported units; spans have no fixed boundaries.
SITE_UNITS = tuple(unit for unit in UNITS if unit != "span")
DEFAULT_SHARE = 0.3
DEFAULT_MIN_DOCUMENTS = 10
_EXACT = Recipe.exact()
_MOST_SHOWN = 10
# Number for documents without a site.
_NO_SITE = -1


@dataclass(frozen=True)
class BoilerplateRules:
    """Rules that define boilerplate."""

    # Field with the site of a document. For a URL, the host is used.
    site: str
    # Share of the documents of a site that must contain a part, above 0 and at most 1
    share: float = DEFAULT_SHARE
    unit: str = "line"
    # Sites with fewer documents are left unchanged; at least 2
    min_documents: int = DEFAULT_MIN_DOCUMENTS
    min_tokens: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.site, str) or not self.site:
            raise InvalidParameter("site", "must be the name of a field")
        fraction_check(zero=False, one=True)("share", self.share)
        check_choice("unit", self.unit, SITE_UNITS)
        check_integer("min_documents", self.min_documents, 2, 2**31 - 1)
        check_integer("min_tokens", self.min_tokens, 0, 100_000)


@shows_progress
def remove_boilerplate(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    rules: BoilerplateRules,
    *,
    run: FileRun | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
    fresh: bool = False,
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Remove parts that occur in a large share of the documents of their site, such as menus and footers.

    Notes
    -----
    Parts are equal if their normalized texts are equal (case, width, whitespace). A part counts once per document. All
    of its copies are removed, including the first. Documents are read once, and changed documents twice. Memory is
    about 60 bytes per part.
    """
    run, report = run or FileRun(), taken(progress)
    if run.memory_bytes is not None:
        raise InvalidParameter("memory", "is not supported here; memory is about 60 bytes for each part")
    check_rewriting(run)
    reading, options = replace(run, fields=(rules.site,)), asdict(rules)
    with PartsJob(output, reading, report, inputs=inputs, overwrite=overwrite, fresh=fresh, dry_run=dry_run) as job:
        identity = {"command": "boilerplate", "write": "kept", **options}
        answer = f"boilerplate:{sorted(options.items())}"
        collection = job.open_parts(inputs, _EXACT, identity, answer, needs_texts=False)
        with job.context.timing.wall("reading"):
            parts = _read(collection, rules, job.context, job.work)
        if len(collection) and not parts.sites:
            raise InvalidInput(f"no document has a value in the field {rules.site!r}; choose another --site")
        with job.context.timing.wall("counting"):
            removed = _found(parts, rules)
        rows, starts, ends = (column[removed.places] for column in (parts.rows, parts.starts, parts.ends))
        cut = Cut.of_parts(rows, starts, ends, keeps_words_apart=False)
        tables = {EVIDENCE: [_evidence(collection, parts, removed, rules)], SITES: [_site_table(parts, removed)]}
        summary = job.write_parts(cut, tables) | _about_sites(collection, parts, removed, rules)
        return job.finish_parts(summary, options)


@dataclass(frozen=True, eq=False)
class _Parts:
    """All parts of all documents, ordered by document and position, and the site of each document."""

    # The document of each part, and its byte range there
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    # Numbers that are equal for equal parts of one site; -1 for parts that are never removed
    numbers: NDArray[np.int64]
    sites: list[str]
    # Site number of each document; -1 if none
    site_of: NDArray[np.int64]

    @property
    def num_documents(self) -> NDArray[np.int64]:
        return np.bincount(self.site_of[self.site_of >= 0], minlength=len(self.sites))


def site_of_value(text: str) -> str | None:
    """Return the site for the JSON of a field: the host of a URL, other values unchanged; None without a value."""
    if text in NO_VALUE:
        return None
    name = value_name(text)
    if name is None or "://" not in name:
        return name or None
    try:
        return urlsplit(name).hostname or name
    except ValueError:
        return name


def _read(collection: Collection, rules: BoilerplateRules, context: RunContext, work: Path) -> _Parts:
    """Read all documents, and number their parts."""
    part_rules = PartRules(rules.unit, rules.min_tokens)

    def take(piece: Piece) -> tuple[tuple[Any, ...], list[str]]:
        texts, counts, starts, ends = cut_parts(piece.texts, part_rules)
        batch = _native.digest_texts(texts, _EXACT.text_rules)
        digests = np.array(batch.digests).reshape(-1, 2)
        return (counts, starts, ends, digests, np.asarray(batch.shapes) != EMPTY), piece.fields[0].to_list()

    columns: list[tuple[Any, ...]] = []
    sites: dict[str, int] = {}
    of_text: dict[str, int] = {}
    site_of: list[int] = []
    for _, _, pieces in collection.read(take, context, work, "reading"):
        for cut, values in pieces:
            columns.append(cut)
            for text in values:
                if text not in of_text:
                    name = site_of_value(text)
                    of_text[text] = _NO_SITE if name is None else sites.setdefault(name, len(sites))
                site_of.append(of_text[text])
    nothing = (*np.zeros((3, 0), np.uint32), np.zeros((0, 2), np.uint64), np.zeros(0, bool))
    counts, starts, ends, digests, is_taken = map(np.concatenate, zip(nothing, *columns, strict=True))
    rows = np.repeat(np.arange(len(counts)), counts)
    site = np.array(site_of, np.int64)
    own = site[rows] if len(rows) else np.zeros(0, np.int64)
    numbers = _numbered(digests, own, is_taken & (own >= 0))
    return _Parts(rows, starts.astype(np.int64), ends.astype(np.int64), numbers, list(sites), site)


def _numbered(digests: NDArray[np.uint64], sites: NDArray[np.int64], is_taken: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a number for each part, equal for equal digests of one site; -1 for excluded parts."""
    places = np.flatnonzero(is_taken)
    keys = (digests[places, 0], digests[places, 1], sites[places])
    order = np.lexsort(keys)
    changes = np.zeros(len(order), bool)
    for key in keys:
        sorted_key = key[order]
        changes[1:] |= sorted_key[1:] != sorted_key[:-1]
    numbers = np.full(len(digests), -1, np.int64)
    numbers[places[order]] = np.cumsum(changes)
    return numbers


@dataclass(frozen=True, eq=False)
class _Removed:
    """The parts that are boilerplate."""

    # Parts to remove, ascending
    places: NDArray[np.int64]
    # Number of documents with a part, by part number
    num_documents: NDArray[np.int64]
    # Whether each site has enough documents
    is_checked: NDArray[np.bool_]


def _found(parts: _Parts, rules: BoilerplateRules) -> _Removed:
    places = np.flatnonzero(parts.numbers >= 0)
    numbers, rows = parts.numbers[places], parts.rows[places]
    num_parts = int(numbers.max()) + 1 if len(numbers) else 0
    # Count a part once per document. After sorting, equal pairs are adjacent.
    order = np.lexsort((rows, numbers))
    is_first = np.ones(len(order), bool)
    is_first[1:] = (numbers[order[1:]] != numbers[order[:-1]]) | (rows[order[1:]] != rows[order[:-1]])
    num_documents = np.bincount(numbers[order[is_first]], minlength=num_parts)
    of_site = parts.num_documents
    is_checked = of_site >= rules.min_documents
    sites = parts.site_of[rows]
    # A part in a single document is never boilerplate, however small the share.
    counts = num_documents[numbers]
    # The product may be slightly above the intended integer.
    needed = np.maximum(np.ceil(rules.share * of_site - 1e-9), 2)
    goes = is_checked[sites] & (counts >= needed[sites])
    return _Removed(places[goes], num_documents, is_checked)


def _evidence(collection: Collection, parts: _Parts, removed: _Removed, rules: BoilerplateRules) -> ArrowTable:
    import pyarrow as pa

    rows, starts, ends = (column[removed.places] for column in (parts.rows, parts.starts, parts.ends))
    sites = parts.site_of[rows]
    numbers = parts.numbers[removed.places]
    of_site = parts.num_documents[sites] if len(sites) else sites
    with_part = removed.num_documents[numbers] if len(numbers) else numbers
    names = _native.Texts.from_list(parts.sites)
    columns = places_of(collection, "", rows, starts, ends)
    columns |= {
        "site": text_column(names.take(sites.astype(np.uint32))),
        "num_documents": number_column(with_part),
        "num_site_documents": number_column(of_site),
        "share": number_column(with_part / np.maximum(of_site, 1)),
        "unit": constant_column(rules.unit, len(rows)),
    }
    return pa.table(columns)


def _site_table(parts: _Parts, removed: _Removed) -> ArrowTable:
    """Return a table with one row for each site, ordered by descending number of documents."""
    import pyarrow as pa

    num_sites = len(parts.sites)
    rows = parts.rows[removed.places]
    sites = parts.site_of[rows]
    num_bytes = parts.ends[removed.places] - parts.starts[removed.places]
    distinct = np.unique(np.stack([sites, parts.numbers[removed.places]]), axis=1)
    changed = np.unique(np.stack([sites, rows]), axis=1)
    order = np.argsort(-parts.num_documents, kind="stable")
    columns = {
        "num_documents": parts.num_documents,
        "num_changed": np.bincount(changed[0], minlength=num_sites),
        "num_distinct_parts": np.bincount(distinct[0], minlength=num_sites),
        "num_removed_parts": np.bincount(sites, minlength=num_sites),
        "num_removed_bytes": np.bincount(sites, num_bytes, minlength=num_sites).astype(np.int64),
    }
    status = np.where(removed.is_checked, "checked", "too few documents")[order]
    return pa.table(
        {
            "site": text_column([parts.sites[number] for number in order.tolist()]),
            "status": text_column(status.tolist()),
            **{name: number_column(column[order].astype(np.int64)) for name, column in columns.items()},
        }
    )


def _about_sites(collection: Collection, parts: _Parts, removed: _Removed, rules: BoilerplateRules) -> dict[str, Any]:
    return {
        "verification": f"Every removed {rules.unit} occurs in at least {rules.share:.0%} of the documents of its "
        "site, with equal normalized text.",
        "num_sites": len(parts.sites),
        "num_sites_checked": int(np.count_nonzero(removed.is_checked)),
        "num_without_site": int(np.count_nonzero(parts.site_of < 0)),
        "num_in_small_sites": int(parts.num_documents[~removed.is_checked].sum()),
        "num_boilerplate_parts": len(np.unique(parts.numbers[removed.places])),
        "most_removed": _most_removed(collection, parts, removed),
    }


def _most_removed(collection: Collection, parts: _Parts, removed: _Removed) -> list[dict[str, object]]:
    places = removed.places
    numbers, firsts, inverse = np.unique(parts.numbers[places], return_index=True, return_inverse=True)
    num_bytes = np.bincount(inverse, parts.ends[places] - parts.starts[places], minlength=len(numbers))
    most = np.argsort(-num_bytes, kind="stable")[:_MOST_SHOWN]
    first = places[firsts[most]]
    rows, sites = parts.rows[first], parts.site_of[parts.rows[first]].tolist()
    texts = beginnings(collection, rows, parts.starts[first], parts.ends[first])
    return [
        {
            "site": parts.sites[site],
            "num_documents": int(removed.num_documents[int(numbers[which])]),
            "num_site_documents": int(parts.num_documents[site]),
            "num_bytes": int(num_bytes[which]),
            "text": text,
        }
        for which, site, text in zip(most.tolist(), sites, texts, strict=True)
    ]
