"""Comparison of two documents."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Unpack

import numpy as np

from likewise import _native
from likewise.arrays import ColumnData
from likewise.io.html import Html, element, escaped, facts, joined
from likewise.measures import Measures, measure
from likewise.recipe.fields import RecipeFields
from likewise.recipe.methods import Exact, SimHashDistance
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.recipe.rules import BYTE_TOKENS, USER_TOKENS
from likewise.stages.text import Tokenizer
from likewise.stages.verify import NAMES_OF, matching_pairs, pair_differences

# A row of the two columns ends at a line break, or after a sentence once it has this many characters.
_LONG_ROW = 240
_BREAK = re.compile(r"\n|(?<=[.!?。！？])\s")
# Number of equal rows shown around a difference; longer runs are folded.
_CONTEXT_ROWS = 2
# Longer texts are not shown.
MAX_CHARACTERS = 200_000

# Number of characters that a notebook shows.
_MOST_SHOWN = 4000
# Lines and characters of a line in the text form of a comparison.
_LINES, _LINE = 5, 30
# Words as people see them; in scripts without spaces, each character is a word, so that changes stay small.
_UNITS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
    r"|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
    r"|\s+|[^\w\s]"
)
# Tokens that are words and characters, without what is between them.
_OF_WORDS = ("auto", "word", "script", "chinese")
_TAG = re.compile(rb"<[^<>]*>")


@dataclass
class _Row:
    """One row: pieces of both sides, each with whether it is the same on the other side."""

    left: list[tuple[str, bool]] = field(default_factory=list)
    right: list[tuple[str, bool]] = field(default_factory=list)
    num_characters: int = 0

    @property
    def is_same(self) -> bool:
        return all(is_same for _, is_same in (*self.left, *self.right))


def side_by_side(alignment: "Sequence[Stretch]", names: tuple[object, object], *, folds: bool = True) -> Html:
    """Return two aligned texts as a table of two columns, with differences marked."""
    head = element("thead", element("tr", [element("th", name, scope="col") for name in names]))
    rows = list(_rows(alignment))
    if not rows:
        cells = [element("td", element("em", "empty")) for _ in "ab"]
        return element("table", [head, element("tbody", element("tr", cells))], class_="diff")
    bodies = []
    for is_folded, part in _folded(rows, folds=folds):
        body = element("tbody", [_row(row) for row in part])
        if is_folded:
            text = f"{len(part):,} equal rows"
            inner = element("table", body, class_="diff")
            body = element(
                "tbody", element("tr", element("td", element("details", [element("summary", text), inner]), colspan=2))
            )
        bodies.append(body)
    return element("table", [head, *bodies], class_="diff")


def inline(alignment: "Sequence[Stretch]", *, context: int = 60) -> Html:
    """Return two aligned texts as one: only in the first is struck out, only in the second is underlined."""
    parts = []
    last = len(alignment) - 1
    for number, part in enumerate(alignment):
        if part.is_same:
            parts.append(_shortened(part.a, context, is_first=number == 0, is_last=number == last))
        else:
            parts += [element("del", part.a)] if part.a else []
            parts += [element("ins", part.b)] if part.b else []
    return element("p", parts, class_="inline-diff", dir="auto")


def _shortened(text: str, context: int, *, is_first: bool, is_last: bool) -> Html:
    if len(text) <= 2 * context + 8:
        return escaped(text)
    # Cut at spaces, if there are any.
    start = "" if is_first else text[:context].rpartition(" ")[0] or text[:context]
    end = "" if is_last else text[-context:].partition(" ")[2] or text[-context:]
    return joined([start, " ", element("span", "…", class_="gap", title=f"{len(text):,} equal characters"), " ", end])


def _row(row: _Row) -> Html:
    cells = [
        element("td", _marked(row.left, "del"), class_="side", dir="auto"),
        element("td", _marked(row.right, "ins"), class_="side", dir="auto"),
    ]
    return element("tr", cells, class_="same" if row.is_same else "changed")


def _marked(pieces: list[tuple[str, bool]], tag: str) -> list[Html]:
    return [escaped(text) if is_same else element(tag, text) for text, is_same in pieces]


def _rows(alignment: "Sequence[Stretch]") -> Iterator[_Row]:
    row = _Row()
    for part in alignment:
        if not part.is_same or part.a != part.b:
            # Differences that the recipe ignores are not marked.
            lines = [part.a.split("\n"), part.b.split("\n")]
            if not part.is_same or len(lines[0]) != len(lines[1]):
                lines = [[part.a], [part.b]]
            for number, (left, right) in enumerate(zip(*lines, strict=True)):
                if number:
                    yield row
                    row = _Row()
                row.left.append((left, part.is_same))
                row.right.append((right, part.is_same))
                row.num_characters += max(len(left), len(right))
            continue
        start = 0
        for end in _BREAK.finditer(part.a):
            is_line = part.a[end.start()] == "\n"
            if not is_line and row.num_characters + end.start() - start < _LONG_ROW:
                continue
            row.left.append((part.a[start : end.start()], True))
            row.right.append((part.a[start : end.start()], True))
            yield row
            row, start = _Row(), end.end()
        rest = part.a[start:]
        row.left.append((rest, True))
        row.right.append((rest, True))
        row.num_characters += len(rest)
    if any(text for text, _ in (*row.left, *row.right)):
        yield row


def _folded(rows: list[_Row], *, folds: bool) -> Iterator[tuple[bool, list[_Row]]]:
    """Yield (whether the rows are folded, rows)."""
    changed = [number for number, row in enumerate(rows) if not row.is_same]
    if not folds or not changed:
        yield False, rows
        return
    near = [False] * len(rows)
    for number in changed:
        for beside in range(max(0, number - _CONTEXT_ROWS), min(len(rows), number + _CONTEXT_ROWS + 1)):
            near[beside] = True
    start = 0
    for number in range(1, len(rows) + 1):
        if number == len(rows) or near[number] != near[start]:
            # Folding a single row would save no space.
            yield not near[start] and number - start > 1, rows[start:number]
            start = number


@dataclass(frozen=True)
class Stretch:
    """A stretch of the alignment."""

    # Whether both have the same words here, by the recipe
    is_same: bool
    # The words of each text; in a common stretch they may differ in what the recipe ignores.
    a: str
    b: str


@dataclass(frozen=True)
class Comparison:
    """Two texts side by side."""

    measures: Measures
    # Whether they match by the recipe
    matches: bool
    recipe: Recipe
    # Both texts, word by word, in order; empty if the documents are not texts
    alignment: tuple[Stretch, ...]
    # Additional similarity that the pair needs because the documents have different names
    penalty: float = 0.0
    # In what a differs from b, as in the evidence; None if the recipe does not compare names
    differs_in: str | None = None

    @property
    def required(self) -> float | None:
        """The similarity that the pair must reach; None if no similarity decides."""
        if self.recipe.threshold is None:
            return None
        return float(self.recipe.required_similarity(min(self.measures.num_features), self.penalty))

    def __repr__(self) -> str:
        changes = [f"{_short(part.a)} -> {_short(part.b)}" for part in self.alignment if not part.is_same]
        more = [f"and {len(changes) - _LINES:,} more differences"] if len(changes) > _LINES else []
        measured = ", ".join(f"{name} {value}" for name, value in self._named().items())
        required = "" if self.required is None else f", required {self.required:.4f}"
        return "\n  ".join([f"<Comparison: {self._title()}{required}", measured, *changes[:_LINES], *more]) + ">"

    def _title(self) -> str:
        return f"{'match' if self.matches else 'no match'} by {self.recipe.measure}"

    def _named(self) -> dict[str, str]:
        names = ("jaccard", "containment_a_in_b", "containment_b_in_a", "cosine", "overlap", "edit", "hamming")
        return {name: f"{getattr(self.measures, name):.4f}" for name in names}

    def _repr_html_(self) -> str:
        parts, num_shown = [], 0
        for part in self.alignment:
            parts.append(part)
            num_shown += max(len(part.a), len(part.b))
            if num_shown > _MOST_SHOWN:
                break
        rest = "" if len(parts) == len(self.alignment) else element("p", f"The first {num_shown:,} characters.")
        return facts(self._title(), self._named()) + (side_by_side(parts, ("a", "b")) if parts else "") + rest

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values; fingerprints in hexadecimal, only the stretches that differ."""
        measures = dataclasses.asdict(self.measures)
        digits = self.measures.bits // 4
        measures["fingerprints"] = [f"{value:0{digits}x}" for value in self.measures.fingerprints]
        measures["minhash_estimate"] = self.measures.minhash_estimate
        differing = [{"a": part.a, "b": part.b} for part in self.alignment if not part.is_same]
        return {
            "matches": self.matches,
            "measures": measures,
            "differences": differing,
            "required": self.required,
            "penalty": self.penalty,
            "differs_in": self.differs_in,
            "recipe": self.recipe.to_dict(),
        }


def compare(
    a: ColumnData,
    b: ColumnData,
    recipe: GivenRecipe | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    **fields: Unpack[RecipeFields],
) -> Comparison:
    """Compare two documents: all measures, both fingerprints, and the words that differ.

    Parameters
    ----------
    a, b : str
        The texts, or bytes or lists of tokens if the recipe requires these. Only texts are aligned.
    recipe : Recipe or str, optional
        Determines the features and when two documents match; the preset ``online`` if None.
    tokenizer : callable, optional
        Function that splits a text into tokens, for tokens ``user``.
    **fields
        Fields of a recipe instead of one (:func:`likewise.dedup`).

    Examples
    --------
    >>> import likewise
    >>> found = likewise.compare("one fine day", "one rainy day")
    >>> found.matches, [(part.a, part.b) for part in found.alignment if not part.is_same]
    (False, [('fine', 'rainy')])
    """
    recipe = as_recipe(recipe, fields).resolve().across_values
    measures = measure(a, b, recipe, tokenizer=tokenizer)
    is_match = _are_equal(a, b, recipe) if isinstance(recipe.sketch, Exact) else matches(measures, recipe)
    both_ways, penalty, differs_in = np.array([[0, 1], [1, 0]]), 0.0, None
    if recipe.name_rules is not None:
        (penalty, *_), (bits, *_) = pair_differences([a, b], both_ways, recipe, threads=1)
        differs_in = NAMES_OF[bits]
    if is_match and (recipe.identifiers is not None or recipe.name_rules is not None):
        is_match = bool(np.isfinite(matching_pairs([a, b], both_ways, recipe, threads=1)).any())
    are_texts = isinstance(a, str) and isinstance(b, str)
    alignment = align(a, b, recipe) if are_texts else ()
    return Comparison(measures, is_match, recipe, alignment, float(penalty), differs_in)


def _are_equal(a: str, b: str, recipe: Recipe) -> bool:
    rules = recipe.feature_rules
    return rules.normalize(a) == rules.normalize(b)


def matches(measures: Measures, recipe: Recipe) -> bool:
    """Return whether two texts with these measures match by a resolved recipe of any method but exact."""
    if "empty" in measures.shapes:
        return measures.shapes == ("empty", "empty")
    near = recipe.sketch
    if isinstance(near, SimHashDistance):
        is_short = near.is_short(min(measures.num_features))
        return measures.distance <= near.within and (not is_short or measures.jaccard >= near.short_threshold)
    required = float(recipe.required_similarity(min(measures.num_features)))
    if recipe.measure == "containment":
        return max(measures.containment_a_in_b, measures.containment_b_in_a) >= required
    return bool(getattr(measures, recipe.measure) >= required)


def align(a: str, b: str, recipe: Recipe) -> tuple[Stretch, ...]:
    """Return common and differing stretches word by word; what the recipe does not distinguish is common."""
    left, right = (_words_of(text, recipe) for text in (a, b))
    if not left.keys or not right.keys:
        left, right = (_units_of(text, recipe) for text in (a, b))
    stretches: list[Stretch] = []
    done_a, done_b, unit_a, unit_b = 0, 0, 0, 0
    num_a, num_b = len(left.keys), len(right.keys)
    for start_a, end_a, start_b, end_b in [*_native.aligned_diff(left.keys, right.keys), (num_a, -1, num_b, -1)]:
        is_rest, is_pair = end_a < 0, end_a > start_a and end_b > start_b
        from_a, to_a = (len(a), 0) if is_rest else left.place(start_a, end_a, is_pair=is_pair)
        from_b, to_b = (len(b), 0) if is_rest else right.place(start_b, end_b, is_pair=is_pair)
        # A whole sentence at the end is marked with the mark that ends it, not with that of the sentence before.
        if not is_rest and end_a == num_a and end_b == num_b and not is_pair:
            if end_a > start_a and b[from_b:] and a[from_a : left.starts[start_a]].startswith(b[from_b:]):
                from_a, to_a, from_b, to_b = from_a + len(b) - from_b, len(a), len(b), len(b)
            elif end_b > start_b and a[from_a:] and b[from_b : right.starts[start_b]].startswith(a[from_a:]):
                from_a, to_a, from_b, to_b = len(a), len(a), from_b + len(a) - from_a, len(b)
        ends_a = [*left.ends[unit_a : max(unit_a, start_a - 1)], from_a]
        ends_b = [*right.ends[unit_b : max(unit_b, start_b - 1)], from_b]
        for stop_a, stop_b in zip(ends_a, ends_b, strict=True):
            stretches += _common(a[done_a:stop_a], b[done_b:stop_b])
            done_a, done_b = stop_a, stop_b
        if not is_rest:
            stretches.append(Stretch(is_same=False, a=a[from_a:to_a], b=b[from_b:to_b]))
            done_a, done_b, unit_a, unit_b = to_a, to_b, end_a, end_b
    return tuple(_joined(stretches))


def _common(a: str, b: str) -> list[Stretch]:
    return [Stretch(is_same=True, a=a, b=b)] if a or b else []


def _joined(stretches: list[Stretch]) -> Iterator[Stretch]:
    """Join neighbors that are common: those that are equal, and those that differ in what the recipe ignores."""
    for (is_same, _), group in itertools.groupby(stretches, lambda part: (part.is_same, part.a == part.b)):
        parts = list(group)
        if is_same:
            parts = [Stretch(is_same=True, a="".join(part.a for part in parts), b="".join(part.b for part in parts))]
        yield from parts


@dataclass(frozen=True)
class _Units:
    """What is aligned of a text: the key of each unit, and its place in the text."""

    keys: list[str]
    starts: list[int]
    ends: list[int]

    def place(self, start: int, end: int, *, is_pair: bool) -> tuple[int, int]:
        """Return the place of some units; unless they replace others, with the separator after them or the last one."""
        if is_pair:
            return self.starts[start], self.ends[end - 1]
        if end < len(self.keys):
            return self.starts[start], self.starts[end]
        before = self.ends[start - 1] if start else 0
        return before, self.ends[end - 1] if end > start else before


def _words_of(text: str, recipe: Recipe) -> _Units:
    """Return the words of a text by a recipe whose tokens are words; none by other recipes."""
    if recipe.tokens not in _OF_WORDS or isinstance(recipe.sketch, Exact):
        return _Units([], [], [])
    texts = _native.Texts.from_list([text])
    data = str(texts[0]).encode()
    if recipe.markup is not None:
        data = _TAG.sub(lambda tag: b" " * len(tag[0]), data)
        texts = _native.Texts.from_list([data.decode()])
    # Words are located in UTF-8.
    characters = np.cumsum((np.frombuffer(data + b" ", np.uint8) & 0xC0) != 0x80) - 1
    starts, ends = (characters[np.asarray(places)].tolist() for places in _native.cut_words(texts)[1:3])
    shown = data.decode()
    found = _keyed((shown[start:end] for start, end in zip(starts, ends, strict=True)), recipe)
    ignored = (
        set() if recipe.stop_words is None else set(_keyed((word for word, _ in recipe.stop_words.entries), recipe))
    )
    kept = [number for number, key in enumerate(found) if key and key not in ignored]
    return _Units([found[i] for i in kept], [starts[i] for i in kept], [ends[i] for i in kept])


def _units_of(text: str, recipe: Recipe) -> _Units:
    """Return the words, separators and marks of a text, by what the recipe distinguishes."""
    units = list(_UNITS.finditer(text))
    keys = _keyed((unit[0] for unit in units), recipe)
    kept = [number for number, key in enumerate(keys) if key]
    if recipe.tokens not in (*BYTE_TOKENS, USER_TOKENS):
        # Normalized texts have one space between words and none at the ends.
        keys = [" " if unit[0].isspace() else key for unit, key in zip(units, keys, strict=True)]
        kept = [number for number, key in enumerate(keys) if key]
        kept = [number for before, number in itertools.pairwise([-1, *kept]) if keys[number] != " " or before >= 0]
        kept = [a for a, b in itertools.pairwise([*kept, -1]) if keys[a] != " " or (b >= 0 and keys[b] != " ")]
    return _Units(
        [keys[number] for number in kept],
        [units[number].start() for number in kept],
        [units[number].end() for number in kept],
    )


def _keyed(units: Iterable[str], recipe: Recipe) -> list[str]:
    """Return each unit as the recipe reads it: normalized and folded, unless its tokens are used as they are given."""
    if recipe.tokens in (*BYTE_TOKENS, USER_TOKENS):
        return list(units)
    normalize = functools.cache(Recipe.exact(fold=recipe.fold).feature_rules.normalize)
    return [normalize(unit) for unit in units]


def _short(text: str) -> str:
    return repr(text if len(text) <= _LINE else f"{text[: _LINE - 1]}…")
