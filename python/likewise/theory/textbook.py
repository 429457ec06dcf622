"""Predicted probes, comparisons and storage of the searches from the literature, by the textbook formulas."""

from dataclasses import dataclass

from likewise import _native
from likewise.checks import check_integer
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

    Raises
    ------
    InvalidParameter
        If a value is out of range.

    See Also
    --------
    likewise.theory.textbook_search.historical_search : the same searches, to be run.

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
    rows = _native.textbook_plans(n, bits, within)
    return tuple(TextbookSearch(**{**row, "num_tables": int(row["num_tables"])}) for row in rows)
