"""Alignment of two sequences, either of which may lack items of the other."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
# Maximum distance at which equal items are matched after a difference.
WINDOW = 1024


class Beside(NamedTuple, Generic[Item]):
    """A pair of aligned items."""

    # Position of each item in its sequence, from 0; if the item is None, that of the next one
    number_a: int
    number_b: int
    # The items; None if only the other sequence has one
    a: Item | None
    b: Item | None
    # Whether the keys are equal
    is_same: bool


def aligned(first: Iterator[Item], second: Iterator[Item], key: Callable[[Item], Hashable]) -> Iterator[Beside[Item]]:
    """Yield two sequences aligned; after a difference, equal items are matched again."""
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
    """Return the positions of the equal keys with the smallest sum of positions; the lengths if there are none."""
    first_in_b: dict[Hashable, int] = {}
    for place, found in enumerate(keys_b):
        first_in_b.setdefault(found, place)
    common = ((i, first_in_b[found]) for i, found in enumerate(keys_a) if found in first_in_b)
    return min(common, key=sum, default=(len(keys_a), len(keys_b)))
