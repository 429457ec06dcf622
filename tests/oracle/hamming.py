"""Hamming search by its definition: every fingerprint, as an integer, is compared with the query."""


def matches(held: dict[int, int], query: int, within: int) -> list[tuple[int, int]]:
    """Return (row, distance) of everything within the radius, by row. `held`: row -> fingerprint."""
    found = ((row, (code ^ query).bit_count()) for row, code in held.items())
    return sorted((row, distance) for row, distance in found if distance <= within)


def nearest(held: dict[int, int], query: int, num: int) -> list[tuple[int, int]]:
    """Return (row, distance) of the `num` nearest, by distance, then row."""
    return sorted(((code ^ query).bit_count(), row) for row, code in held.items())[:num]
