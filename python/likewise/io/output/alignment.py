"""Two sequences side by side, where one has items that the other lacks."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
# How far items may be apart and still be found again.
WINDOW = 1024


class Beside(NamedTuple, Generic[Item]):
    """Items that stand beside each other.

    Parameters
    ----------
    number_a, number_b : int
        Place of each in its sequence, from 0; where the item is None, of the one that comes next.
    a, b : object or None
        The items; None where the other sequence has one more.
    is_same : bool
        Whether they have one key.
    """

    number_a: int
    number_b: int
    a: Item | None
    b: Item | None
    is_same: bool


def aligned(first: Iterator[Item], second: Iterator[Item], key: Callable[[Item], Hashable]) -> Iterator[Beside[Item]]:
    """Yield two sequences side by side, equal items beside each other again after some that differ.

    Parameters
    ----------
    first, second : iterator
        Of any length; no more than `WINDOW` items of each are held.
    key : callable
        What makes two items equal.

    Yields
    ------
    Beside
        Every item of both once, in order. Behind a difference the next equal items are those with the fewest before
        them; where the windows share none, items are paired by their places.
    """
    waiting_a: deque[Item] = deque()
    waiting_b: deque[Item] = deque()
    number_a = number_b = 0
    while True:
        _fill(waiting_a, first, 1)
        _fill(waiting_b, second, 1)
        if not waiting_a and not waiting_b:
            return
        if waiting_a and waiting_b and key(waiting_a[0]) == key(waiting_b[0]):
            yield Beside(number_a, number_b, waiting_a.popleft(), waiting_b.popleft(), is_same=True)
            number_a, number_b = number_a + 1, number_b + 1
            continue
        _fill(waiting_a, first, WINDOW)
        _fill(waiting_b, second, WINDOW)
        skip_a, skip_b = _next_equal([key(item) for item in waiting_a], [key(item) for item in waiting_b])
        for i in range(max(skip_a, skip_b)):
            a = waiting_a.popleft() if i < skip_a else None
            b = waiting_b.popleft() if i < skip_b else None
            yield Beside(number_a, number_b, a, b, is_same=False)
            number_a, number_b = number_a + (i < skip_a), number_b + (i < skip_b)


def _fill(waiting: deque[Item], source: Iterator[Item], length: int) -> None:
    waiting.extend(islice(source, max(0, length - len(waiting))))


def _next_equal(keys_a: list[Hashable], keys_b: list[Hashable]) -> tuple[int, int]:
    """Return the places of the first equal keys, those with the least sum; the lengths where there are none."""
    first_in_b: dict[Hashable, int] = {}
    for place, found in enumerate(keys_b):
        first_in_b.setdefault(found, place)
    common = ((i, first_in_b[found]) for i, found in enumerate(keys_a) if found in first_in_b)
    return min(common, key=sum, default=(len(keys_a), len(keys_b)))
