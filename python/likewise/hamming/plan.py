"""The planner of Hamming search. It compares scans, neighbors, permuted tables and multi-index hashing by cost."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ColumnData, TextData
from likewise.errors import InvalidParameter, check_integer, take_bytes
from likewise.hamming.fingerprints import take_fingerprints

MAX_FINGERPRINTS = 1 << 48


@dataclass(frozen=True)
class SearchKey:
    """A set of bit positions, and the radius of the search around their value.

    Parameters
    ----------
    mask : int
        Bit i is set if position i belongs to the key.
    radius : int
        Maximum number of errors inside the key that the search covers. 0 is an exact lookup.
    """

    mask: int
    radius: int


@dataclass(frozen=True)
class PlannedSearch:
    """A search plan and its predicted costs.

    Parameters
    ----------
    name, family : str
        Description of the plan, and the family it belongs to.
    num_tables : int
        Number of sorted tables; 0 for the scan.
    keys : tuple of SearchKey
        Sort keys of the tables. Empty for the scan.
    num_probes, num_candidates : float
        Number of key values within the radii, and expected number of fingerprints with these values.
    num_buckets, num_compared : float
        Number of buckets that the index reads and of fingerprints that it compares, for one query.
    num_bytes : float
        Size of the tables and ids in bytes.
    single_us, batch_us : float
        Microseconds of a single query, and of a query in a large batch, on one core.
    build_s : float
        Seconds to build the tables on one core.
    fits : bool
        Whether the plan fits in memory.
    """

    name: str
    family: str
    num_tables: int
    keys: tuple[SearchKey, ...]
    num_probes: float
    num_candidates: float
    num_buckets: float
    num_compared: float
    num_bytes: float
    single_us: float
    batch_us: float
    build_s: float
    fits: bool


@dataclass(frozen=True)
class HammingPlan:
    """The frontier of plans for a set of fingerprints.

    Parameters
    ----------
    num_fingerprints, bits, within : int
        Number and width of the fingerprints, and the radius.
    memory_bytes : int, optional
        Memory limit, if given.
    searches : tuple of PlannedSearch
        The plans of which every smaller one is at least a twentieth slower, by size.
    chosen : PlannedSearch, optional
        The smallest plan that fits and is at most a tenth slower than the fastest plan that fits. None if no plan fits.
    """

    num_fingerprints: int
    bits: int
    within: int
    memory_bytes: int | None
    searches: tuple[PlannedSearch, ...]
    chosen: PlannedSearch | None

    @property
    def excess(self) -> tuple[str, ...]:
        """One message for each limit that this number of fingerprints exceeds; empty if there are none."""
        most_indexed, most_joined = _native.plan_limits()
        said = []
        if self.num_fingerprints > most_indexed:
            said.append(
                f"{self.num_fingerprints:,} fingerprints exceed the limit of one index ({most_indexed:,}): use "
                f"{-(-self.num_fingerprints // most_indexed)} indexes, or read the file in order against the queries "
                "(hamming_stream). The figures are for a single index with all fingerprints."
            )
        if self.num_fingerprints > most_joined:
            said.append(f"hamming_pairs finds all pairs among at most {most_joined:,} fingerprints.")
        return tuple(said)

    def to_dict(self) -> dict[str, object]:
        """Return the plan as JSON values. The mask of a key is a hexadecimal number."""
        searches = []
        for search in self.searches:
            keys = [{"mask": f"0x{key.mask:x}", "radius": key.radius} for key in search.keys]
            searches.append({**asdict(search), "keys": keys, "is_chosen": search is self.chosen})
        return {
            "num_fingerprints": self.num_fingerprints,
            "bits": self.bits,
            "within": self.within,
            "memory_bytes": self.memory_bytes,
            "searches": searches,
            "excess": list(self.excess),
        }


def plan_hamming(
    n: int,
    *,
    bits: int = 64,
    within: int = 3,
    memory_bytes: float | str | None = None,
    bit_frequencies: Sequence[float] | NDArray[np.float64] | None = None,
    bit_dependence: float = 0.0,
    with_ids: bool = True,
) -> HammingPlan:
    """Return the plans of exact Hamming search for a set of fingerprints, and the chosen plan.

    Parameters
    ----------
    n : int
        Number of fingerprints, 1 to 2^48.
    bits : int
        Width, a multiple of 32 from 32 to 256.
    within : int
        Radius, 0 to `bits`.
    memory_bytes : float or str, optional
        Maximum size of tables and ids, as a number or as text (``"16GB"``). By default, four times the size of the
        fingerprints, plus the ids.
    bit_frequencies : array of float, shape (bits,), optional
        Share of ones at each bit. If given, blocks are balanced by the information in their bits, and the predicted
        costs include the skew.
    bit_dependence : float
        With `bit_frequencies`: correlation between differences at two bits, 0 to 0.5.
        :func:`~likewise.hamming.plan.bit_statistics` estimates both from a sample.
    with_ids : bool
        Whether the row of each fingerprint is stored. Without rows, a search returns fingerprints.

    Returns
    -------
    HammingPlan
        The frontier and the chosen plan. All plans on the frontier are verified to be complete.

    Raises
    ------
    InvalidParameter
        If a value is out of range.

    Notes
    -----
    Planning takes less than a tenth of a second at any radius. Sources: Manku, Jain, Das Sarma 2007; Norouzi, Punjani,
    Fleet 2014; Qin et al. 2021.

    Examples
    --------
    >>> plan = plan_hamming(1_000_000_000, within=3)
    >>> plan.chosen.num_tables, [key.radius for key in plan.chosen.keys]
    (2, [1, 1])
    """
    n = check_integer("n", n, 1, MAX_FINGERPRINTS)
    bits = check_integer("bits", bits, 32, 256)
    within = check_integer("within", within, 0, bits)
    if memory_bytes is not None:
        memory_bytes = take_bytes("memory_bytes", memory_bytes, 0, 1 << 62)
    if isinstance(bit_dependence, bool) or not isinstance(bit_dependence, (int, float, np.floating)):
        raise InvalidParameter("bit_dependence", f"{bit_dependence!r} is not a number from 0 to 0.5")
    rows, chosen = _native.survey_plans(
        n,
        bits,
        within,
        memory_bytes=memory_bytes,
        id_bits=None if with_ids else 0,
        bit_frequencies=_check_frequencies(bit_frequencies),
        bit_dependence=float(bit_dependence),
    )
    searches = tuple(PlannedSearch(**{**row, "keys": tuple(_key(*key) for key in row["keys"])}) for row in rows)
    return HammingPlan(n, bits, within, memory_bytes, searches, None if chosen is None else searches[chosen])


def _check_frequencies(given: TextData) -> list[float] | None:
    if given is None:
        return None
    try:
        array = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameter("bit_frequencies", f"not numbers: {error}") from error
    if array.ndim != 1:
        raise InvalidParameter("bit_frequencies", f"shape {array.shape} is not (bits,)")
    return [float(share) for share in array]


def _key(words: Sequence[int], radius: int) -> SearchKey:
    return SearchKey(sum(word << (64 * place) for place, word in enumerate(words)), radius)


def bit_statistics(fingerprints: ColumnData, *, bits: int | None = None) -> tuple[NDArray[np.float64], float]:
    """Return the share of ones at each bit, and how strongly differences at two bits are correlated.

    Parameters
    ----------
    fingerprints : Sketches, Arrow data, array of shape (n,) or (n, words), uint64, or list of int
        A sample from across the set; 10,000 fingerprints are enough.
    bits : int, optional
        Width of a fingerprint. Default: all bits of its words.

    Returns
    -------
    frequencies : ndarray of shape (bits,), float64
        Shares from 0 to 1, bit 0 first, for :func:`~likewise.hamming.plan.plan_hamming`.
    dependence : float
        Mean correlation, from 0 to 0.5, between differences at two bits of a pair of fingerprints. It explains how far
        the variance of the distance of a pair is above that of independent bits.

    Raises
    ------
    InvalidParameter
        If the type or the width of the array does not fit, or the array is empty.

    Examples
    --------
    >>> frequencies, dependence = bit_statistics(np.array([0, 1, 3, 3], np.uint64))
    >>> frequencies[:3].tolist()
    [0.75, 0.5, 0.0]
    """
    taken = take_fingerprints("fingerprints", fingerprints)
    if not len(taken):
        raise InvalidParameter("fingerprints", "empty; at least one is required")
    num_words = -(-taken.bits // 64)
    bits = taken.bits if bits is None else check_integer("bits", bits, 32, 256)
    if -(-bits // 64) != num_words:
        raise InvalidParameter("bits", f"{bits} does not match the fingerprints, which have {num_words} 64-bit words")
    frequencies, dependence = _native.bit_statistics(taken.words, bits)
    return np.asarray(frequencies), dependence


def bit_frequencies(fingerprints: ColumnData, *, bits: int | None = None) -> NDArray[np.float64]:
    """Return the share of fingerprints with a one at each bit: the first result of :func:`bit_statistics`."""
    return bit_statistics(fingerprints, bits=bits)[0]
