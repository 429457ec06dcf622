"""Predicted probes, comparisons and storage of the searches from the literature, by the textbook formulas."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from likewise.errors import check_integer
from likewise.hamming.plan import MAX_FINGERPRINTS


@dataclass(frozen=True)
class TextbookSearch:
    """A historical search with the textbook figures: plain sorted tables, uniform fingerprints.

    Parameters
    ----------
    name, family : str
        Description of the search.
    num_tables : int
        Number of sorted copies of the fingerprints.
    key_bits : tuple of int
        Smallest and largest number of bits of a lookup.
    num_probes_exactly, num_probes : float
        Number of lookups at exactly the radius, and in total.
    num_candidates_a_table, num_candidates : float
        Number of fingerprints to compare in the table with the narrowest key, and in all tables.
    num_copies : float
        How often each fingerprint is stored.
    num_bytes : float
        Bytes of all copies, uncompressed.
    """

    name: str
    family: str
    num_tables: int
    key_bits: tuple[int, int]
    num_probes_exactly: float
    num_probes: float
    num_candidates_a_table: float
    num_candidates: float
    num_copies: float
    num_bytes: float


def textbook_searches(n: int, *, bits: int = 64, within: int = 3) -> tuple[TextbookSearch, ...]:
    """Return the searches from the literature, with the textbook figures.

    Parameters
    ----------
    n, bits, within : int
        As for :func:`likewise.hamming.plan.plan_hamming`.

    Returns
    -------
    tuple of TextbookSearch
        The scan, all neighbors probed, all neighbors stored, and tables by single blocks, by nested blocks, and by all
        choices of two and of three blocks.

    Notes
    -----
    Matching p of the bits of n fingerprints leaves n / 2^p candidates. Source: Manku, Jain, Das Sarma 2007, section 3.

    Examples
    --------
    >>> [search.num_candidates_a_table for search in textbook_searches(2**34) if search.num_tables == 4]
    [262144.0]
    """
    n = check_integer("n", n, 1, MAX_FINGERPRINTS)
    bits = check_integer("bits", bits, 32, 256)
    within = check_integer("within", within, 0, bits)
    neighbors = float(sum(math.comb(bits, errors) for errors in range(within + 1)))
    search = partial(_search, n, bits)
    searches = [
        search("scan", "scan", {0: 1}, num_probes=(0.0, 0.0)),
        search(
            "all neighbors probed",
            "probed neighbors",
            {bits: 1},
            num_probes=(float(math.comb(bits, within)), neighbors),
            num_matches=neighbors,
        ),
        search("all neighbors stored", "stored neighbors", {bits: 1}, num_matches=neighbors, num_copies=neighbors),
    ]
    for chosen in (1, 2, 3):
        num_blocks = within + chosen
        if num_blocks > bits:
            break
        short, num_long = divmod(bits, num_blocks)
        name = f"{num_blocks} blocks" if chosen == 1 else f"{chosen} of {num_blocks} blocks"
        widths = {
            chosen * short + long: math.comb(num_long, long) * math.comb(num_blocks - num_long, chosen - long)
            for long in range(chosen + 1)
        }
        searches.append(search(name, "chosen blocks", widths))
        if chosen == 1 and within and bits - short - (num_long > 0) >= num_blocks:
            nested: Counter[int] = Counter()
            for block in range(num_blocks):
                width = short + (block < num_long)
                part, num_longer = divmod(bits - width, num_blocks)
                nested[width + part + 1] += num_longer
                nested[width + part] += num_blocks - num_longer
            name = f"{num_blocks} blocks, then {num_blocks} of the rest"
            searches.append(search(name, "nested blocks", nested))
    return tuple(searches)


def _search(
    n: int,
    bits: int,
    name: str,
    family: str,
    widths: Mapping[int, int],
    *,
    num_probes: tuple[float, float] | None = None,
    num_matches: float = 1.0,
    num_copies: float | None = None,
) -> TextbookSearch:
    """Return the figures of tables, given how many of them have keys of each width."""
    widths = {width: num for width, num in widths.items() if num}
    num_tables = sum(widths.values())
    num_copies = float(num_tables) if num_copies is None else num_copies
    found = {width: num_matches * n / 2.0**width for width in widths}
    return TextbookSearch(
        name,
        family,
        num_tables,
        (min(widths), max(widths)),
        *(num_probes or (float(num_tables), float(num_tables))),
        max(found.values()),
        sum(num * found[width] for width, num in widths.items()),
        num_copies,
        num_copies * bits / 8 * n,
    )
