"""Word lists: stop words and the words of a user's dictionary, with an identity."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Self, TypeAlias

from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter
from likewise.recipe.fields import canonical_json

# In jieba's dictionary, words have counts of up to 883,634, with a total of 60 million.
MAX_COUNT = 2**31 - 1


class WordList:
    """Words that a recipe needs in addition to its fields: stop words, or the words of a user dictionary.

    Parameters
    ----------
    words : iterable of str or (str, int)
        The words, in any order; they are normalized like texts, and each counts once. For a dictionary, a count states
        how often the word occurs among the 60 million of the built-in dictionary; without a count, a word gets the
        smallest count with which it is found. If a word has several counts, the largest is used.

    Notes
    -----
    Immutable. `list_id` does not depend on the order, on case, or on repeated words.

    Examples
    --------
    >>> WordList(["The", "of"]).list_id == WordList(["of", "the", "the"]).list_id
    True
    """

    def __init__(self, words: Iterable[str] | Iterable[tuple[str, int | None]]) -> None:
        entries: dict[str, int | None] = {}
        if isinstance(words, str):
            raise InvalidInput("expected a list of words, got a single word; put it in a list")
        for row, entry in enumerate(words):
            word, count = (entry, None) if isinstance(entry, str) else _pair(entry, row)
            if normal := _native.normalize(word):
                entries[normal] = max(count or 0, entries.get(normal) or 0) or None
        self.entries = tuple(sorted(entries.items()))
        self.list_id = hashlib.sha256(canonical_json({"words": list(self.entries)}).encode("ascii")).hexdigest()[:32]
        self._stop_words: dict[tuple[str, ...], _native.StopWords] = {}
        self._dictionaries: dict[tuple[str, ...], _native.Dictionary] = {}

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordList) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.list_id)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"<likewise WordList {self.list_id}: {len(self)} words>"

    def __reduce__(self) -> tuple[type[Self], tuple[object]]:
        return type(self), (self.entries,)

    def stop_words(self, fold: tuple[str, ...]) -> _native.StopWords:
        """Return the list as stop words for texts with this folding."""
        if fold not in self._stop_words:
            self._stop_words[fold] = _native.StopWords([folded(word, fold) for word, _ in self.entries])
        return self._stop_words[fold]

    def dictionary(self, fold: tuple[str, ...]) -> _native.Dictionary:
        """Return the list as dictionary words for texts with this folding. The first call takes about 0.2 s."""
        if fold not in self._dictionaries:
            words = [(folded(word, fold), count) for word, count in self.entries]
            self._dictionaries[fold] = _native.Dictionary(words)
        return self._dictionaries[fold]

    @classmethod
    def read_stop_words(cls, path: str | Path) -> Self:
        """Read stop words: one per line, in UTF-8. Raises InvalidInput if the file is not text, or has no words."""
        return cls._read(Path(path), str.splitlines)

    @classmethod
    def read_dictionary(cls, path: str | Path) -> Self:
        """Read a dictionary: lines of ``word [count] [tag]``, separated by spaces, in UTF-8. Tags are ignored.

        Raises
        ------
        InvalidInput
            If the file is not text, contains no words, or a count is not an integer of at least 1; the error names the
            line.
        """
        return cls._read(Path(path), lambda text: _dictionary_lines(text, str(path)))

    @classmethod
    def _read(cls, path: Path, parse: "object") -> Self:
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"not a word list: byte {error.start} is not UTF-8", str(path)) from error
        assert callable(parse)
        words = cls(parse(text))
        if not words.entries:
            raise InvalidInput("the file contains no words", str(path))
        return words


Words: TypeAlias = WordList | Iterable[str] | Iterable[tuple[str, int | None]]


def word_list(name: str, words: Words) -> WordList:
    """Return words of any accepted kind as a list with an identity."""
    if isinstance(words, WordList):
        return words
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise InvalidParameter(name, f"{words!r} is not a WordList or a list of words")
    return WordList(words)


def folded(word: str, fold: tuple[str, ...]) -> str:
    """Return a word normalized and folded like texts."""
    rules = _native.FeatureRules("auto", 1, text_rules=_native.TextRules({"fold": fold}))
    return rules.normalize(word)


def _pair(entry: object, row: int) -> tuple[str, int | None]:
    if isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], str):
        word, count = entry
        if count is None or (isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MAX_COUNT):
            return word, count
        raise InvalidInput(f"the count {count!r} is not an integer from 1 to {MAX_COUNT}", row=row)
    raise InvalidInput(f"{entry!r} is not a word or a (word, count) pair", row=row)


def _dictionary_lines(text: str, path: str) -> list[tuple[str, int | None]]:
    entries: list[tuple[str, int | None]] = []
    for number, line in enumerate(text.splitlines(), 1):
        word, *rest = line.split() or [""]
        count = None
        if rest and (rest[0].isdecimal() or len(rest) > 1):
            if not (rest[0].isascii() and rest[0].isdecimal() and 1 <= int(rest[0]) <= MAX_COUNT):
                raise InvalidInput(f"the count {rest[0]!r} is not an integer from 1 to {MAX_COUNT}", path, number)
            count = int(rest[0])
        entries.append((word, count))
    return entries
