"""The searches of the literature by the textbook's arithmetic: what they would probe, compare and store."""

from dataclasses import dataclass

from likewise import _native
from likewise.checks import check_integer
from likewise.hamming.plan import MAX_FINGERPRINTS


@dataclass(frozen=True)
class TextbookSearch:
    """A historical search by the textbook's arithmetic: plain sorted tables, uniform fingerprints.

    Parameters
    ----------
    name, family : str
        What it does.
    num_tables : int
        Sorted copies of the fingerprints.
    key_bits : tuple of int
        Least and greatest number of bits that are looked up.
    num_probes_exactly, num_probes : float
        Look-ups at exactly the radius, and in all.
    num_candidates_a_table, num_candidates : float
        Fingerprints to compare in the table of the narrowest key, and in all tables.
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
    """Return the searches of the literature with the textbook's figures.

    Parameters
    ----------
    n, bits, within : int
        As for :func:`likewise.hamming.plan.plan_hamming`.

    Returns
    -------
    tuple of TextbookSearch
        Scan; all neighbors probed; all stored; tables by every block, by nested blocks, by every two and three blocks.

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
