"""Search plans of ``likewise plan``: the best trade-offs, the chosen search, published searches."""

import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options.terminal import has_color, table_lines
from likewise.errors import InvalidParameter

if TYPE_CHECKING:
    from likewise.hamming.plan import HammingPlan, PlannedSearch
    from likewise.theory.textbook import TextbookSearch

# Number of fingerprints of a sample that are used.
_SAMPLE = 100_000


def run(options: Mapping[str, Any]) -> None:
    """Print the plans for a number of fingerprints."""
    from likewise.hamming.plan import plan_hamming
    from likewise.theory.textbook import textbook_searches

    if options["n"] is None:
        names = ("explain", "memory", "sample", "without_ids")
        # A memory of 0 is given.
        given = [name for name in names if options[name] is not None and options[name] is not False]
        raise InvalidParameter(given[0].replace("_", "-"), "requires --n, the number of fingerprints")
    within = 3 if options["within"] is None else options["within"]
    bits = 64 if options["bits"] is None else options["bits"]
    if options["explain"]:
        for name in ("sample", "without_ids"):
            if options[name]:
                raise InvalidParameter(
                    name.replace("_", "-"), "cannot be combined with --explain, which ignores the data"
                )
        searches = textbook_searches(options["n"], bits=bits, within=within)
        if options["as_json"]:
            values = [vars(search) | _fitting(search, options["memory"]) for search in searches]
            click.echo(json.dumps({"n": options["n"], "bits": bits, "within": within, "textbook": values}))
        else:
            _explain(searches, options["n"], bits, within, options["memory"])
        return
    frequencies, dependence = (None, 0.0) if options["sample"] is None else _read_sample(options["sample"], bits)
    plan_of = partial(
        plan_hamming,
        options["n"],
        bits=bits,
        within=within,
        memory_bytes=options["memory"],
        bit_frequencies=frequencies,
        bit_dependence=dependence,
    )
    with_ids = not options["without_ids"]
    plan = plan_of(with_ids=with_ids)
    least_with_ids = None
    if with_ids and plan.chosen is None:
        # If the fingerprints do not fit with ids, they may fit without.
        least_with_ids, plan, with_ids = plan.searches[0], plan_of(with_ids=False), False
    if options["as_json"]:
        click.echo(json.dumps(plan.to_dict() | {"with_ids": with_ids}))
    else:
        _draw(plan, with_ids=with_ids, least_with_ids=least_with_ids)
    if plan.chosen is None:
        click.echo(f"error: {_nothing_fits(plan)}", err=True)
        raise click.exceptions.Exit(1)


def _read_sample(path: Path, bits: int) -> tuple[Any, float]:
    from likewise.hamming.plan import bit_statistics
    from likewise.io.fingerprints.flat import read_array

    array = read_array(path, is_mapped=True)
    return bit_statistics(array[:: max(1, len(array) // _SAMPLE)], bits=bits)


def _nothing_fits(plan: "HammingPlan") -> str:
    least = plan.searches[0]
    return (
        f"no search fits in {_bytes(plan.memory_bytes or 0)}, even without ids: the smallest takes "
        f"{_bytes(least.num_bytes)} ({least.name}). "
        "Increase --memory, or scan the fingerprints from a file for each batch of queries."
    )


def _draw(plan: "HammingPlan", *, with_ids: bool, least_with_ids: "PlannedSearch | None") -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, no_color=not has_color(sys.stdout), soft_wrap=True)
    bound = "" if plan.memory_bytes is None else f" in {_bytes(plan.memory_bytes)}"
    ids = "stored with ids" if with_ids else "without ids"
    console.print(
        f"{plan.num_fingerprints:,} fingerprints of {plan.bits} bits, {ids}: all within distance {plan.within}{bound}\n"
    )
    rows = [["plan", "bytes/fp", "bytes", "buckets", "compared", "us, single", "us, batch"]]
    for search in plan.searches:
        figures = [search.num_buckets, search.num_compared, search.single_us, search.batch_us]
        rows.append(
            [search.name, _number(search.num_bytes / plan.num_fingerprints), _bytes(search.num_bytes)]
            + [_number(figure) for figure in figures]
        )
    styles, marks = [""], [" "]
    for search in plan.searches:
        is_chosen = search is plan.chosen
        marks.append(">" if is_chosen else " ")
        styles.append("bold green" if is_chosen else "" if search.fits else "dim")
    for mark, line, style in zip(marks, table_lines(rows), styles, strict=True):
        console.print(Text(f"{mark} {line}", style=style))
    console.print("\n> chosen   others: smaller and slower, or larger and faster   --explain: published searches")
    for sentence in plan.excess:
        console.print(sentence)
    if least_with_ids is not None and plan.chosen is not None:
        console.print(
            "Planned without ids (--without-ids; in an index: ids=False): with ids, no plan fits in "
            f"{_bytes(plan.memory_bytes or 0)}; the smallest takes {_bytes(least_with_ids.num_bytes)} "
            f"({least_with_ids.name}). Without ids, {plan.chosen.name} takes {_bytes(plan.chosen.num_bytes)}, "
            f"{_number(plan.chosen.num_bytes / plan.num_fingerprints)} bytes per fingerprint."
        )


def _fitting(search: "TextbookSearch", memory_bytes: int | None) -> dict[str, bool]:
    return {} if memory_bytes is None else {"fits": search.num_bytes <= memory_bytes}


def _explain(searches: "tuple[TextbookSearch, ...]", n: int, bits: int, within: int, memory_bytes: int | None) -> None:
    click.echo(f"{n:,} fingerprints of {bits} bits, all within distance {within}: plain sorted tables, uniform bits\n")
    rows = [
        ["search", "tables", "key bits", "probes", "candidates", "candidates", "bytes"],
        ["", "", "", "", "per table", "total", "per fp"],
    ]
    if memory_bytes is not None:
        rows[0].append("fits")
        rows[1].append(_bytes(memory_bytes))
    for search in searches:
        least, most = search.key_bits
        figures = [
            search.num_probes,
            search.num_candidates_a_table,
            search.num_candidates,
            search.num_copies * bits / 8,
        ]
        rows.append(
            [search.name, f"{search.num_tables:,}", str(least) if least == most else f"{least}-{most}"]
            + [_exact(figure) for figure in figures]
            + ["yes" if fits else "no" for fits in _fitting(search, memory_bytes).values()]
        )
    for line in table_lines(rows):
        click.echo(line)
    probed = next((search for search in searches if search.family == "probed neighbors"), None)
    if probed is not None:
        click.echo(
            f"\n{_exact(probed.num_probes_exactly)} probes are at exactly {within} of {bits} bits, "
            f"{_exact(probed.num_probes)} are within {within}."
        )
    click.echo("Matching p of the bits of n fingerprints leaves n / 2^p candidates (Manku, Jain, Das Sarma 2007).")


def _exact(value: float) -> str:
    if value >= 1e15 or 0 < value < 0.001:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}" if value < 100 else f"{value:,.1f}"


def _number(value: float) -> str:
    if value == 0:
        return "-"
    if value >= 1e6 or value < 1e-3:
        return f"{value:.2g}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} PB"
