"""datasketch: classes with its names and methods, so that a program moves by changing its import.

Needs no extra. Every result of a query is verified on the sets themselves.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from likewise.errors import InvalidParameter
from likewise.index import Index
from likewise.recipe.recipe import Recipe

# Results that a query asks for at first; it asks for more while all of them match.
_FIRST = 16


def _check(options: Mapping[str, Any], *ignored: str) -> None:
    """Raise InvalidParameter for an option that is not ignored."""
    for name in options:
        if name not in ignored:
            raise InvalidParameter(name, f"only these options of datasketch are taken: {', '.join(ignored)}")


class MinHash:
    """A set, with the methods of ``datasketch.MinHash``.

    It holds the elements, because matches are verified on them.

    Parameters
    ----------
    num_perm : int
        Number of slots of the signature.
    seed, **options
        ``hashfunc``, ``permutations`` and ``gpu_mode`` are ignored: the recipe of :class:`MinHashLSH` determines the
        signature. Others, such as ``hashvalues``, are rejected, since a signature has no elements.
    """

    def __init__(self, num_perm: int = 128, seed: int = 1, **options: Any) -> None:
        _check(options, "hashfunc", "permutations", "gpu_mode")
        self.num_perm, self.seed = num_perm, seed
        self.elements: set[str] = set()

    def update(self, b: bytes | str) -> None:
        """Add an element: bytes or str."""
        # Any bytes are characters of Latin-1, one by one.
        self.elements.add(b if isinstance(b, str) else bytes(b).decode("latin-1"))

    def update_batch(self, b: Iterable[bytes | str]) -> None:
        """Add elements."""
        for element in b:
            self.update(element)

    def merge(self, other: "MinHash") -> None:
        """Add the elements of another set."""
        self.elements |= other.elements

    def jaccard(self, other: "MinHash") -> float:
        """Return the exact Jaccard similarity to another set; 1 if both are empty."""
        union = self.elements | other.elements
        return len(self.elements & other.elements) / len(union) if union else 1.0

    def is_empty(self) -> bool:
        """Return whether no element was added."""
        return not self.elements

    def copy(self) -> Self:
        """Return a copy."""
        made = type(self)(self.num_perm, self.seed)
        made.elements = set(self.elements)
        return made

    def __len__(self) -> int:
        return self.num_perm

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MinHash) and self.elements == other.elements

    __hash__ = None  # type: ignore[assignment]


class MinHashLSH:
    """An index in memory, with the methods of ``datasketch.MinHashLSH``.

    Parameters
    ----------
    threshold : float
        Minimum Jaccard similarity of a result, which is exact.
    num_perm : int
        Number of slots of the signatures.
    params : tuple of int, optional
        Number of bands and rows.
    **options
        ``weights``, ``hashfunc`` and ``prepickle`` are ignored; ``storage_config`` is rejected.

    Notes
    -----
    A query compares the signatures of all documents, then measures those with the most similar ones: 128 slots of a
    million documents are 256 MB. :class:`likewise.Index` decides on one document in constant time.

    Examples
    --------
    >>> from likewise.integrations.datasketch import MinHash, MinHashLSH
    >>> lsh, texts = MinHashLSH(threshold=0.5), {"a": "one fine day in may", "b": "one fine day in june"}
    >>> for key, text in texts.items():
    ...     minhash = MinHash()
    ...     minhash.update_batch(text.split())
    ...     lsh.insert(key, minhash)
    >>> lsh.query(minhash)
    ['b', 'a']
    """

    def __init__(
        self, threshold: float = 0.9, num_perm: int = 128, *, params: tuple[int, int] | None = None, **options: Any
    ) -> None:
        if options.get("storage_config") is not None:
            raise InvalidParameter("storage_config", "use likewise.redis.RedisIndex for an index on a server")
        _check(options, "storage_config", "weights", "hashfunc", "prepickle")
        bands, rows = (None, None) if params is None else params
        recipe = Recipe.minhash(
            threshold, num_slots=num_perm, bands=bands, rows=rows, tokens="user", tokenizer="datasketch 1", shingle=1
        )
        self.threshold, self.h = threshold, num_perm
        self._index = Index.in_memory(recipe)
        self._ids: dict[Hashable, str] = {}
        self._keys: dict[str, Hashable] = {}
        self._num_inserted = 0

    def insert(self, key: Hashable, minhash: MinHash, check_duplication: bool = True) -> None:  # noqa: FBT001, FBT002
        """Add a set under a key, which must be new; without `check_duplication`, replace the set of an existing key."""
        if key in self._ids:
            if check_duplication:
                raise ValueError("The given key already exists")
            self.remove(key)
        doc_id = str(self._num_inserted)
        self._index.add(doc_id, self._tokens(minhash))
        self._num_inserted += 1
        self._ids[key], self._keys[doc_id] = doc_id, key

    def query(self, minhash: MinHash) -> list[Any]:
        """Return the keys of all sets that reach the threshold, the most similar first."""
        tokens, num = self._tokens(minhash), _FIRST
        while True:
            found = self._index.neighbors(tokens, num, self.threshold)
            if len(found) < num or num >= len(self._ids):
                return [self._keys[one.doc_id] for one in found]
            num *= 4

    def remove(self, key: Hashable) -> None:
        """Remove the set with this key."""
        if key not in self._ids:
            raise ValueError("The given key does not exist")
        doc_id = self._ids.pop(key)
        del self._keys[doc_id]
        self._index.remove(doc_id)

    @contextmanager
    def insertion_session(self, buffer_size: int = 50000) -> Iterator[Self]:
        """Return a context whose value has the method :meth:`insert`; `buffer_size` is ignored."""
        yield self

    def is_empty(self) -> bool:
        """Return whether the index holds no set."""
        return not self._ids

    def __contains__(self, key: Hashable) -> bool:
        return key in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def _tokens(self, minhash: MinHash) -> list[str]:
        if not isinstance(minhash, MinHash):
            raise InvalidParameter(
                "minhash",
                f"import MinHash from likewise.integrations.datasketch, too; this is {type(minhash).__name__}",
            )
        if len(minhash) != self.h:
            raise ValueError(f"Expecting minhash with length {self.h}, got {len(minhash)}")
        return sorted(minhash.elements)
