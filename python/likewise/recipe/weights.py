"""Weight tables: the weight of each feature, counted on a collection or given for terms; the weights of a recipe.

The JSON of a recipe names its table by `weights_id`. A recipe read from JSON needs that file, or counts the input again
and must get the same identity.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, check_choice, check_integer, differing
from likewise.recipe.fields import (
    HASHES,
    PACKAGE_HASHES,
    TABLE_WEIGHTS,
    TOKENS,
    TextOptions,
    canonical_json,
    feature_fields,
)
from likewise.recipe.rules import USER_TOKENS, checked_text, libraries_of, text_rules_of
from likewise.recipe.word_lists import WordList, Words

if TYPE_CHECKING:
    from likewise.recipe.recipe import Recipe

KINDS = ("idf", "lexicon")
MAX_WEIGHT = 15
_LISTS = ("stop_words", "dictionary")
NAMES = ("weights", *_LISTS)
#: Directory with these files in the output of a run, next to its summary.
RECIPE = "recipe"
_FILES = {"weights": "weights.lww", "stop_words": "stop_words.json", "dictionary": "dictionary.json"}


class Weights:
    """A table of integer weights for features, with the rules that define these features.

    Create a table with :meth:`read` (a file from ``likewise weights``) or :meth:`from_terms` (a lexicon), and pass it
    to a recipe: ``Recipe.minhash(weights=table)``.

    Notes
    -----
    Immutable, and passed to other processes as the bytes of its file. The table of a collection lists only features
    that occur in more than one document, five in each bucket of 64 bytes.

    Examples
    --------
    >>> table = Weights.from_terms({"jaccard": 5, "similarity": 4})
    >>> table.kind, table.num_listed
    ('lexicon', 2)
    """

    def __init__(self, native: _native.WeightTable) -> None:
        self.native = native
        try:
            rules = json.loads(native.rules)
            kind = check_choice("kind", rules.pop("kind"), KINDS)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput("the table does not describe its features") from error
        self.kind = kind
        # For errors: the longest term and its source. A table read from a file has no names.
        self.longest_term: tuple[str, str] | None = None
        self.rules: Mapping[str, Any] = MappingProxyType(rules)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        # As the bytes of a file, so that the receiving process checks it like a file.
        return type(self).from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """Return the bytes of the table, as in a file."""
        return self.native.to_bytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Create a table from the result of :meth:`to_bytes`. Raises the errors of :meth:`read`."""
        return cls(_native.WeightTable.from_bytes(content))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and self.weights_id == other.weights_id

    def __hash__(self) -> int:
        return hash(self.weights_id)

    def __repr__(self) -> str:
        listed = "a counting sketch" if self.num_listed is None else f"{self.num_listed} listed"
        return f"<likewise Weights {self.weights_id}: {self.kind}, {listed}>"

    @property
    def weights_id(self) -> str:
        """Identity of the weights and of the rules of the features: 32 hexadecimal digits."""
        return self.native.weights_id

    @property
    def num_documents(self) -> int:
        """Number of counted documents, which have distinct feature sets; 0 for a lexicon."""
        return self.native.num_documents

    @property
    def num_features(self) -> int | None:
        """Number of distinct features counted; None for a lexicon, or if there were too many to distinguish."""
        return self.native.num_features

    @property
    def num_listed(self) -> int | None:
        """Number of features (or terms) listed; None for a counting sketch."""
        return self.native.num_listed

    @property
    def is_exact(self) -> bool:
        """Whether the weights are from exact counts."""
        return self.num_listed is not None

    @property
    def excess(self) -> int:
        """Number by which a count may be too high, with probability 1 - `excess_probability`."""
        return self.native.excess

    @property
    def excess_probability(self) -> float:
        """Maximum probability that a count is too high by more than `excess`."""
        return self.native.excess_probability

    def default_rule(self, method: str) -> str:
        """Return the rule that applies to this table if the user names none."""
        if self.kind == "lexicon":
            return "lexicon"
        return "log-count-idf" if method == "simhash" else "idf"

    def weigh(self, features: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the weight of each feature from the table alone; for a lexicon, features are keys of terms."""
        return np.asarray(self.native.weigh(np.ascontiguousarray(features, np.uint64)))

    def to_dict(self) -> dict[str, object]:
        """Return the entry of the table in a summary, as JSON values."""
        counts = ("num_documents", "num_features", "num_listed", "is_exact", "excess", "excess_probability")
        return {name: getattr(self, name) for name in ("weights_id", "kind", *counts)}

    def write(self, path: str | Path) -> None:
        """Write the table to a file, which is complete or does not exist. FORMAT.md describes the format."""
        self.native.write(str(path))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file that :meth:`write` or ``likewise weights`` wrote, and verify its checksums.

        Raises InvalidInput if the file is not a weight table, has another version, or is damaged.
        """
        return cls(_native.WeightTable.read(str(path)))

    @classmethod
    def from_terms(
        cls,
        terms: Mapping[str, int] | Iterable[tuple[str, int]],
        *,
        tokens: str = "auto",
        seed: int = 0,
        hash: str = "xxh3",
        fold: tuple[str, ...] | list[str] | str | None = None,
        stop_words: Words | None = None,
        dictionary: Words | None = None,
    ) -> Self:
        """Create a lexicon: the weights of terms.

        Parameters
        ----------
        terms : mapping of str to int, or iterable of (str, int)
            Terms and their weights, 0 to 15; five levels, 1 to 5, are common. Terms are normalized and split like
            texts. The weight of a token that is not a term is 1.
        tokens : str
            How terms and texts are split into tokens.
        seed, hash
            Seed and kind of the token hash, as in the recipe.
        fold, stop_words, dictionary
            As in the recipe, if it has them: a term must be folded and split like the texts. Stop words are removed
            from terms. Terms are plain text, even if the texts are HTML.

        Returns
        -------
        Weights
            The weight of a feature is the largest weight among its tokens and the terms of several tokens that it
            contains.

        Raises
        ------
        InvalidInput
            If a term is not text, has no tokens or more than 64, has several tokens and weight 0, or occurs twice with
            different weights.
        InvalidParameter
            If the terms are not pairs, a weight is not an integer from 0 to 15, or an option is not valid.

        Examples
        --------
        >>> import likewise
        >>> table = Weights.from_terms([("flood", 5), ("the", 0)])
        >>> recipe = likewise.Recipe.simhash(weights=table, shingle=1, within=3)
        >>> from likewise.stages.features import features
        >>> features(["The flood came"], recipe).weights.tolist()
        [5, 1]
        """
        names, weights = _terms_and_weights(terms)
        fields = _lexicon_fields(
            {
                "tokens": tokens,
                "seed": seed,
                "hash": hash,
                "fold": fold,
                "stop_words": stop_words,
                "dictionary": dictionary,
            }
        )
        native_rules = _native.FeatureRules(
            tokens, 1, "none", fields["seed"], hash=hash, text_rules=text_rules_of(fields)
        )
        found = _native.term_features(_native.Texts.from_list(names), native_rules)
        features, lengths = (np.asarray(part) for part in found)
        first_of: dict[int, int] = {}
        for row, (feature, length) in enumerate(zip(features.tolist(), lengths.tolist(), strict=True)):
            if not 1 <= length <= 64:
                raise InvalidInput(f"the term {names[row]!r} has {length} tokens; terms have 1 to 64", row=row)
            if length > 1 and not weights[row]:
                raise InvalidInput(
                    f"the term {names[row]!r} has {length} tokens and weighs 0; a term of several tokens can only "
                    "increase the weight of a feature; list its tokens one by one to drop features made only of them",
                    row=row,
                )
            other = first_of.setdefault(feature, row)
            if weights[other] != weights[row]:
                raise InvalidInput(
                    f"the terms {names[other]!r} and {names[row]!r} are the same but have weights {weights[other]} and "
                    f"{weights[row]}",
                    row=row,
                )
        rows = np.array(sorted(first_of.values()), np.int64)
        table = cls(
            _native.WeightTable.from_terms(
                np.ascontiguousarray(features[rows]),
                np.ascontiguousarray(lengths[rows]),
                np.array(weights, np.uint32)[rows],
                table_rules("lexicon", fields),
            )
        )
        if names:
            longest = int(lengths.argmax())
            table.longest_term = (names[longest], f"row {longest}")
        return table


def _terms_and_weights(terms: object) -> tuple[list[str], list[int]]:
    """Return the terms and their weights, checked one by one."""
    if isinstance(terms, (str, bytes)):
        raise InvalidParameter("terms", f"{terms!r} is not a mapping or a list of (term, weight) pairs")
    names: list[str] = []
    weights: list[int] = []
    try:
        entries: list[Any] = list(terms.items() if isinstance(terms, Mapping) else terms)  # type: ignore[call-overload]
    except TypeError as error:
        raise InvalidParameter("terms", f"{type(terms).__name__} is not a list of (term, weight) pairs") from error
    for row, entry in enumerate(entries):
        if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 2:
            raise InvalidParameter("terms", f"{entry!r} in row {row} is not a (term, weight) pair")
        if not isinstance(entry[0], str):
            raise InvalidInput(f"the term {entry[0]!r} is not text", row=row)
        names.append(entry[0])
        weights.append(check_integer("weights", entry[1], 0, MAX_WEIGHT))
    return names, weights


def table_rules(kind: str, fields: Mapping[str, Any]) -> str:
    """Return the fields of a recipe that determine the features of a weight table, as canonical JSON."""
    versions = {"text_version": _native.TEXT_VERSION, "sketch_version": _native.SKETCH_VERSION}
    if kind == "lexicon":
        # Terms are not HTML, and are found in shingles of any width.
        fields = {**fields, "shingle": None, "markup": None}
        fields = {**fields, "libraries": libraries_of(fields)}
    # Only names of documents, which distinguish siblings, are read by slots.
    names = {"siblings": fields["siblings"]} if kind == "idf" and fields.get("siblings") else {}
    return canonical_json({"kind": kind, **feature_fields({**fields, **versions}), **names})


def _lexicon_fields(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked fields of a recipe that define how the terms of a lexicon are split."""
    tokens = check_choice("tokens", named["tokens"], TOKENS)
    if tokens == USER_TOKENS:
        raise InvalidParameter("tokens", f"{USER_TOKENS} have their own weights; use weights own instead of a lexicon")
    hash = check_choice("hash", named["hash"], HASHES)
    if hash in PACKAGE_HASHES:
        raise InvalidParameter(
            "hash", f"a lexicon does not apply to hash {hash}, which uses the weights of its package"
        )
    seed = check_integer("seed", named["seed"], 0, 2**64 - 1)
    absent = dict.fromkeys(TextOptions.__annotations__)
    texts = checked_text({**absent, **named, "method": "minhash", "weights": "lexicon"})
    return {"tokens": tokens, "seed": seed, "hash": hash, **texts}


def check_table(table: Weights, fields: Mapping[str, Any]) -> None:
    """Check that a table matches the fields of a recipe."""
    kind = "lexicon" if fields["weights"] == "lexicon" else "idf"
    if table.kind != kind:
        raise InvalidParameter(
            "weights", f"{fields['weights']} does not match the table, which is of kind {table.kind}"
        )
    ours = json.loads(table_rules(kind, fields))
    del ours["kind"]
    # A table that also counted names has the weights of a recipe that does not read them.
    theirs = {name: rule for name, rule in table.rules.items() if name != "siblings" or name in ours}
    if found := differing(theirs, ours):
        raise RecipeMismatch(
            "the weight table was made for different features; create it with the recipe's features", found
        )
    longest = table.native.longest_term
    if longest > fields["shingle"]:
        term = "a term"
        if table.longest_term is not None:
            name, place = table.longest_term
            term = f"the term {name!r} ({place})"
        cure = "; add the term to the dictionary, or use a wider shingle" if fields["tokens"] == "chinese" else ""
        raise InvalidParameter(
            "weights",
            f"the lexicon has {term} of {longest} tokens, which is longer than a feature of {fields['shingle']}"
            f"{cure or '; use a wider shingle'}",
        )


def checked_weights_id(fields: Mapping[str, Any]) -> str | None:
    """Return the identity of a recipe's table, after checking the table against the recipe's fields."""
    table: Weights | None = fields["table"]
    named: str | None = fields["weights_id"]
    if table is None:
        return named
    if fields["weights"] not in TABLE_WEIGHTS:
        raise InvalidParameter("weights", f"{fields['weights']} do not use a table")
    check_table(table, fields)
    if named not in (None, table.weights_id):
        raise RecipeMismatch(
            "the recipe was made with a different weight table (counted weights depend on the data); set weights "
            "again to use this one (--weights with --recipe, or replace(weights_id=None))",
            {"weights_id": (named, table.weights_id)},
        )
    return table.weights_id


def companions_of(recipe: "Recipe") -> dict[str, bytes]:
    """Return what a recipe needs in addition to its fields: its weight table as in the file, word lists as JSON."""
    found = {} if recipe.table is None else {"weights": recipe.table.to_bytes()}
    for name in _LISTS:
        words: WordList | None = getattr(recipe, name)
        if words is not None:
            found[name] = canonical_json({"words": [list(entry) for entry in words.entries]}).encode()
    return found


def fields_of_companions(kept: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the data from :func:`companions_of` as fields of a recipe, which checks them against its identities."""
    fields: dict[str, Any] = {}
    if "weights" in kept:
        fields["table"] = Weights.from_bytes(kept["weights"])
    for name in _LISTS:
        if name in kept:
            try:
                fields[name] = WordList(tuple(entry) for entry in json.loads(kept[name])["words"])
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInput(f"the {name} stored with the recipe are corrupt") from error
    return fields


def write_companions(recipe: "Recipe", directory: Path) -> None:
    """Write what a recipe needs in addition to its fields to a directory: it explains the run, and repeats it."""
    for name, content in companions_of(recipe).items():
        directory.mkdir(exist_ok=True)
        (directory / _FILES[name]).write_bytes(content)


def read_companions(directory: Path) -> dict[str, Any]:
    """Return the fields that :func:`write_companions` wrote; none if the directory is missing."""
    files = {name: directory / file for name, file in _FILES.items() if (directory / file).is_file()}
    try:
        return fields_of_companions({name: file.read_bytes() for name, file in files.items()})
    except InvalidInput as error:
        raise InvalidInput(f"the stored recipe is damaged: {error.message}; repeat the run", str(directory)) from error
