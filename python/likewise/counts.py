"""Counts as people read them."""


def counted(count: int, name: str, names: str | None = None) -> str:
    """Return a count and the name of what is counted: ``1 pair``, ``2,000 pairs``.

    Parameters
    ----------
    count : int
        How many.
    name : str
        What follows the number one, such as ``pair`` or ``pair was``.
    names : str, optional
        What follows any other number, where it is not the name and an ``s``: ``pairs were``.

    Returns
    -------
    str
    """
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name + 's' if names is None else names}"
