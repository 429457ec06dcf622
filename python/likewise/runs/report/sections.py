"""Sections of a report, some shared with the page's overview: a run in figures and charts."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.errors import InvalidInput, counted
from likewise.io.html import Html, element, table
from likewise.io.output.summaries import is_over_parts, read_summary
from likewise.job.output import shrinkage_lines
from likewise.recipe.methods import Exact, MinHash, SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.recipe.valley import choice_lines
from likewise.runs.drawing.charts import bars, curve, density, histogram
from likewise.runs.viewing.catalog import KINDS, Catalog, GroupRow, Member
from likewise.runs.viewing.view import View
from likewise.stages.verify import needed

# Sizes of groups, and the number of groups of each size.
Sizes = Sequence[tuple[int, int]]
_CURVE_POINTS = 100
# Maximum number of field values in a table.
_MOST_VALUES = 12
_SIZE_RANGES = ((2, 2), (3, 3), (4, 5), (6, 10), (11, 100), (101, 1000), (1001, 10_000), (10_001, None))

_MOST_ON_CARD = 20


def figures(numbers: list[tuple[str, object]], summary: Mapping[str, Any]) -> Html:
    """Return large numbers with labels, except None, and the slices that lost the largest share of their documents."""
    items = []
    for name, value in numbers:
        if value is not None:
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            items.append(element("li", [element("b", shown), name]))
    lines = [element("li", line) for line in shrinkage_lines(summary)]
    slices = [element("ul", lines, class_="slices")] if lines else []
    return element("div", [element("ul", items, class_="figures"), *slices])


def run_figures(summary: Mapping[str, Any], num_groups: int) -> Html:
    """Return the most important counts of a run."""
    total = summary["num_documents"]
    share = f" ({summary['num_removed'] / total:.1%})" if total else ""
    return figures(
        [
            ("documents", total),
            ("kept", summary["num_kept"]),
            (f"removed{share}", summary["num_removed"]),
            ("of these differ in first words or in numbers only", summary.get("num_unsure") or None),
            ("groups", num_groups),
            ("empty", summary["num_empty"] or None),
            ("short", summary["num_short"] or None),
            ("bad rows", summary["num_bad_rows"] or None),
        ],
        summary,
    )


def heads(*names: object, **attributes: str) -> list[Html]:
    """Return the header cells of columns."""
    return [element("th", name, scope="col", **attributes) for name in names]


def inputs_table(summary: Mapping[str, Any]) -> Html:
    """Return a table of the counts of each input."""
    names = ("Documents", "Kept", "Bad rows")
    head = [*heads("File"), *heads(*names, class_="number")]
    rows = []
    for file in summary["inputs"]:
        counts = (file["num_documents"], file["num_kept"], file["num_bad_rows"])
        cells = [
            element("td", f"{count:,}", class_="number", data_name=name)
            for name, count in zip(names, counts, strict=True)
        ]
        rows.append(element("tr", [element("td", file["path"], class_="id"), *cells]))
    shown, more = rows[:100], len(rows) - 100
    drawn = table(head, shown, class_="list")
    return element("div", [drawn, element("p", f"and {more:,} more", class_="quiet") if more > 0 else ""])


def facts(rows: list[tuple[str, object]]) -> Html:
    """Return a table of names and values; values that are None are left out."""
    body = [
        element("tr", [element("th", name, scope="row"), element("td", value)])
        for name, value in rows
        if value is not None
    ]
    return element("table", element("tbody", body), class_="facts")


def recipe_facts(recipe: Recipe, recall: float | None) -> Html:
    """Return a table of the match rule and the search."""
    asked = f"{recipe.measure} ≥ {recipe.threshold}"
    if recipe.short_margin is not None:
        asked += f" + {recipe.short_margin} / √(distinct features of the smaller document)"
    if recipe.siblings is not None:
        asked += " + a penalty for different names"
    if recipe.identifiers is not None:
        asked += ", identifiers agree"
    search: str | None = None
    match recipe.sketch:
        case MinHash() as method:
            search = f"{method.bands} bands of {method.rows} rows, {method.num_slots} slots"
        case SimHash() as method:
            search = f"within {method.within} of {method.bits} bits"
            if isinstance(method, SimHashDistance):
                asked = f"Hamming distance ≤ {method.within} of {method.bits} bits"
        case Exact():
            asked = "equal normalized texts"
    return facts(
        [
            ("Match", asked),
            ("Method", recipe.method),
            ("Features", feature_text(recipe)),
            ("Search", search),
            ("P(found) at the threshold", None if recall is None else f"{recall:.4f}"),
            ("Keep", recipe.keep),
            ("Groups", "connected components" if recipe.group == "components" else None),
            ("Recipe id", element("code", recipe.recipe_id)),
        ]
    )


def feature_text(recipe: Recipe) -> str | None:
    """Return the features of a recipe in words; None if texts are compared as a whole."""
    if isinstance(recipe.sketch, Exact):
        return None
    return f"{recipe.tokens} tokens, {recipe.shingle} per feature, weights {recipe.weights}"


def threshold_of(recipe: Recipe) -> float | None:
    """Return the minimum similarity of a match; None if nothing is measured."""
    return None if isinstance(recipe.sketch, Exact) else recipe.least_similarity


def similarity_chart(
    counts: Sequence[int], recipe: Recipe, address: Callable[[float, float], Html] | None = None
) -> Html:
    """Return a histogram of removals by intervals of similarity; bars link to `address` of their range."""
    num_bins = len(counts)
    threshold = threshold_of(recipe)
    first = next((i for i, count in enumerate(counts) if count), num_bins - 1)
    if threshold is not None:
        first = min(first, int(threshold * num_bins))
    # Start at a tenth, so that the axis has round numbers.
    first = first // 5 * 5
    edges = [i / num_bins for i in range(first, num_bins + 1)]
    return histogram(
        edges,
        counts[first:],
        label=f"{recipe.measure} similarity to the kept document",
        mark=threshold,
        mark_text="" if threshold is None else f"threshold {threshold:.4g}",
        address=address,
    )


def why(recipe: Recipe, member: Member) -> str:
    """Return the reason why a document was removed, in words."""
    measure, near = recipe.measure, recipe.sketch
    if isinstance(near, SimHashDistance):
        return f"{member.distance} of {near.bits} bits differ (maximum {near.within})"
    if measure == "equality":
        return "the normalized texts are equal"
    required = recipe.least_similarity if member.required is None else member.required
    asked = needed(recipe, required, member.penalty)
    if member.required is None and recipe.short_margin is not None:
        asked = f"{required:g} + {recipe.short_margin:g} / √(distinct features of the smaller document)"
    if member.is_below:
        return f"{measure} {member.similarity:.4f} is below {asked}: joined through other documents"
    told = f"{measure} {member.similarity:.4f} is at least {asked}"
    if member.similarity == 1.0:
        told = f"{measure} 1: all features are equal"
    kinds = (member.differs or "words").split(",")
    return told if member.differs is None else f"{told}; differs in {', '.join(KINDS[kind] for kind in kinds)}"


def certainty_table(
    catalog: Catalog,
    limit: int,
    kind_address: Callable[[str], Html],
    pair_address: Callable[[GroupRow, Member], Html],
) -> Html:
    """Return the least certain removals of each kind, with links to all of a kind and to each pair."""
    rows = []
    for kind, num, found in catalog.least_certain(limit):
        pairs = []
        for group, member in found:
            names = [element("bdi", member.doc_id), " for ", element("bdi", group.doc_id)]
            reached = f" {member.similarity:.4f}" + (
                "" if member.required is None else f", required {member.required:.4f}"
            )
            pairs.append(element("div", [element("a", names, href=pair_address(group, member)), reached]))
        name = element("a", KINDS[kind] if kind else "all", href=kind_address(kind))
        number = element("td", f"{num:,}", class_="number", data_name="Removals")
        rows.append(element("tr", [element("td", name), number, element("td", pairs)]))
    head = [*heads("Differs in"), *heads("Removals", class_="number"), *heads("Least certain")]
    return table(head, rows, class_="list")


def size_ranges(sizes: Sizes) -> list[tuple[str, tuple[int, int | None], int]]:
    """Return the name, the bounds and the number of groups of each range of sizes."""
    found = []
    for low, high in _SIZE_RANGES:
        count = sum(num for size, num in sizes if size >= low and (high is None or size <= high))
        name = f"{low:,}" if low == high else f"over {low - 1:,}" if high is None else f"{low:,} to {high:,}"
        if count:
            found.append((name, (low, high), count))
    return found


def size_chart(sizes: Sizes, address: Callable[[int, int | None], Html] | None = None) -> Html:
    """Return the number of groups by size; names link to `address` of their range of sizes."""
    rows: list[tuple[str | Html, int]] = [
        (f"{name} documents" if address is None else element("a", f"{name} documents", href=address(*of)), count)
        for name, of, count in size_ranges(sizes)
    ]
    return bars(rows, label="Number of groups by size") if rows else element("p", "There are no groups.")


def curve_points(recipe: Recipe) -> list[tuple[float, float]]:
    """Return (similarity, P(found)) for the search of a resolved recipe; empty if it has no curve."""
    similarities = [i / _CURVE_POINTS for i in range(_CURVE_POINTS + 1)]
    method = recipe.sketch
    if isinstance(method, MinHash | SimHash):
        return [(value, method.found(value)) for value in similarities]
    return []


def curve_chart(recipe: Recipe, similarity: float | None = None) -> Html | None:
    """Return the S-curve of a recipe, marked at its threshold or at `similarity`; None if it has no curve."""
    points = curve_points(recipe)
    if not points:
        return None
    is_bands = isinstance(recipe.sketch, MinHash)
    at, text = similarity, "this pair"
    if similarity is None:
        at = recipe.candidate_threshold if is_bands else threshold_of(recipe) if recipe.threshold is not None else None
        text = "threshold"
    mark = None
    if at is not None:
        mark = (at, points[min(_CURVE_POINTS, round(at * _CURVE_POINTS))][1])
    label = f"{'Jaccard' if is_bands else 'cosine'} similarity of a pair (x), P(found) (y)"
    return curve(points, label=label, mark=mark, mark_text=text if mark is None else f"{text}: {mark[1]:.3f}")


def threshold_chart(summary: Mapping[str, Any]) -> Html | None:
    """Return the density from which a run chose its threshold, and the choice in words; None if it chose none."""
    facts = summary.get("chosen_threshold")
    if facts is None:
        return None
    drawn = density(
        [(similarity, pairs) for similarity, pairs in facts["density"]],
        label=f"{facts['measure']} similarity minus margins; pairs per 0.01, smoothed",
        mark=facts["threshold"],
        mark_text=f"threshold {facts['threshold']:g}",
    )
    return element("div", [drawn, *(element("p", line, class_="quiet") for line in choice_lines(facts))])


def cards(
    view: View,
    similarities: str,
    range_address: Callable[[float, float], Html] | None = None,
    size_address: Callable[[int, int | None], Html] | None = None,
) -> list[tuple[str, Html]]:
    """Return the titles and contents of the cards that describe a run or an index."""
    summary, recipe, catalog, is_run = view.summary, view.stated, view.catalog, view.kind == "run"
    found = [
        ("Recipe", recipe_facts(recipe, summary["recall"] if is_run else recipe.stated_recall)),
        ("Comparisons", search_facts(summary) if is_run else None),
        ("How the threshold was chosen", threshold_chart(summary)),
        (similarities, similarity_chart(catalog.similarities(), recipe, range_address)),
        ("Group sizes", size_chart(catalog.sizes(), size_address)),
        ("Probability of finding a pair", curve_chart(recipe)),
        ("Time", stage_chart(summary) if is_run else None),
    ]
    return [(title, content) for title, content in found if content is not None]


def stage_chart(summary: Mapping[str, Any]) -> Html:
    """Return a chart of the duration of each stage."""
    stages = [(name.replace("_", " "), round(seconds * 1000)) for name, seconds in summary["timings"]["wall_s"].items()]
    return bars(stages, label=f"Milliseconds per stage; {summary['timings']['total_s']:.2f} s in total")


def counts_table(
    summary: Mapping[str, Any], address: Callable[[str | None, str | None], Html] | None = None
) -> Html | None:
    """Return counts of removals by values of removed and kept documents, with links to `address`, or None."""
    counts = summary.get("counts_by")
    if counts is None:
        return None
    values = sorted(counts["values"], key=lambda one: -one["num_removed"])[:_MOST_VALUES]
    cells = {
        (pair["removed"], pair["kept"]): pair["num_removed"]
        for pair in counts["pairs"]
        if pair["kept_source"] == "input"
    }
    names = [value_name(one["value"]) for one in values]
    head = [*heads(counts["field"]), *heads("Documents", "Removed", *names, class_="number")]
    rows = []
    for one, name in zip(values, names, strict=True):
        numbers = [one["num_documents"], one["num_removed"]]
        shown: list[Html | str] = [f"{number:,}" if number else "" for number in numbers]
        for other, other_name in zip(values, names, strict=True):
            number = cells.get((one["value"], other["value"]), 0)
            content: Html | str = f"{number:,}" if number else ""
            if number and address is not None:
                told = f"{counted(number, 'document')} of {name} removed for {other_name}"
                content = element("a", content, href=address(one["value"], other["value"]), aria_label=told)
            shown.append(content)
        shown = [element("td", content, class_="number") for content in shown]
        rows.append(element("tr", [element("th", name, scope="row"), *shown]))
    about = (
        f"Rows: {counts['field']} of the removed documents. "
        f"Columns: {counts['field']} of the kept documents that they duplicate. "
        f"{len(values):,} of {counted(counts['num_values'], 'value')} shown; all counts are in summary.json."
    )
    drawn = table(head, rows, class_="counts")
    scroll = element("div", drawn, class_="scroll", tabindex="0", role="region", aria_label="Counts")
    return element("div", [element("p", about, class_="quiet"), scroll])


def value_name(value: str | None) -> str:
    """Return the displayed name of a field value."""
    return "(none)" if value is None else value


def search_facts(summary: Mapping[str, Any]) -> Html:
    """Return a table of comparisons and of what they left out."""
    capped, num_crowded = summary["num_capped"], summary.get("num_crowded", 0)
    is_exact = summary["recipe"].get("overflow") == "exact"
    how = "compared by an exact join" if is_exact else "pairs of two such documents may be missed"
    crowd = f"{num_crowded:,}; {how}" if num_crowded else None
    return facts(
        [
            ("Candidate pairs", None if summary["num_candidates"] is None else f"{summary['num_candidates']:,}"),
            ("Pairs measured", f"{summary['num_measured']:,}"),
            ("Documents with full buckets", crowd or "none"),
            (
                "Capped",
                f"the last bucket of a band was full {counted(capped, 'time')}" if capped else None,
            ),
            (
                "Below the threshold",
                f"{summary['num_below_threshold']:,} joined through other documents"
                if summary["num_below_threshold"]
                else None,
            ),
            ("Stored pairs", _stored(summary)),
            ("Version", summary["version"]),
        ]
    )


def _stored(summary: Mapping[str, Any]) -> str | None:
    stored = summary.get("stored_pairs")
    return None if stored is None else f"{stored['num_pairs']:,} with similarity {stored['floor']:g} or more"


def card(run: Path) -> str:
    """Return a section for a dataset card: what was removed, by which rule, and how to repeat it."""
    summary = read_summary(run)
    if is_over_parts(summary) or "recipe" not in summary:
        raise InvalidInput("a card describes a run of likewise dedup", str(run))
    return "\n".join(_lines(summary))


def _lines(summary: Mapping[str, Any]) -> Iterator[str]:
    recipe, total, removed = Recipe.from_dict(summary["recipe"]), summary["num_documents"], summary["num_removed"]
    share = f" ({removed / total:.1%})" if total else ""
    yield "## Deduplication\n"
    yield (
        f"Near-duplicates were removed with Likewise {summary['version']}. Of {counted(total, 'document')}, "
        f"{summary['num_kept']:,} were kept and {removed:,}{share} removed.\n"
    )
    yield f"- **Rule.** {summary['verification']}"
    if (features := feature_text(recipe)) is not None:
        yield f"- **Features.** {_escaped(features)}."
    if (chosen := summary.get("chosen_threshold")) is not None:
        yield f"- **Threshold.** {choice_lines(chosen)[0]}."
    yield f"- **Kept copy.** The first by {_escaped(recipe.keep)}; ties by position in the input."
    if summary["recall"] is not None:
        yield f"- **Recall.** A pair at the threshold is found with P = {summary['recall']:.4f}."
    if summary["num_bad_rows"]:
        yield f"- **Rows that could not be read.** {summary['num_bad_rows']:,}, not counted above."
    found = [f"{num:,} in {KINDS[kind]}" for kind, num in (summary.get("differences") or {}).items() if num]
    if found:
        yield f"- **Differences.** Some removed documents differ in these: {', '.join(found)}."
    if lost := shrinkage_lines(summary):
        yield f"- **Slices that lost most.** {_escaped('; '.join(lost))}."
    yield f"- **Recipe.** `{summary['recipe_id']}`; repeat the run with `--recipe summary.json`."
    if (counts := summary.get("counts_by")) is not None:
        yield f"\n| {_escaped(counts['field'])} | documents | removed |\n|---|---|---|"
        for one in sorted(counts["values"], key=lambda one: -one["num_removed"])[:_MOST_ON_CARD]:
            yield f"| {_escaped(value_name(one['value']))} | {one['num_documents']:,} | {one['num_removed']:,} |"
        if (more := counts["num_values"] - _MOST_ON_CARD) > 0:
            yield f"\nand {more:,} more values"
    yield ""


def _escaped(text: str) -> str:
    """Return a text as Markdown shows it, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#&~$])", r"\\\1", " ".join(text.split()))
