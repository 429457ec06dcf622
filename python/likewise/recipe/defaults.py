"""What a recipe takes where its user says nothing: one set of values a method and kind of token.

They were chosen together on four labeled sets (docs/benchmarks/quality.md), so that the threshold and the radius hold
for their own shingle and weights. With other features nothing is known, and the strict values serve.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likewise.checks import check_choice, check_integer
from likewise.recipe.rules import OWN_WEIGHTS, TABLE_WEIGHTS, TOKENS, WEIGHTS

# Removes copies only, whatever the features: a similarity of 0.8; 3 of 64 bits, the radius of the literature.
_STRICT_THRESHOLD = 0.8
_STRICT_WITHIN_64_BITS = 3
_BITS = 128
# Unrelated texts lie some 30 of 64 bits apart, a standard deviation being 4: within 10, over characters, a million such
# pairs hold a hit by chance, which is too many to be a default; and a wider radius needs more bits in any case.
_LEAST_BITS_OF_CHOICE = 96
_WIDEST_OF_64_BITS = 10


@dataclass(frozen=True)
class FeatureChoice:
    """The shingle and weights of a recipe, and what threshold and radius go with them.

    Parameters
    ----------
    shingle : int
        Consecutive tokens in a feature.
    weights : str
        Weight of a feature by its occurrences.
    measure : str
        What `similarity` is measured by.
    similarity : float
        The threshold where none is named.
    within_32_bits : int
        The radius where none is named, for each 32 bits of a fingerprint; 0 where none was chosen.
    """

    shingle: int
    weights: str
    measure: str
    similarity: float
    within_32_bits: int = 0

    def threshold(self, measure: str) -> float:
        """Return the threshold by this measure."""
        return self.similarity if measure == self.measure else _STRICT_THRESHOLD

    def within(self, bits: int) -> int:
        """Return the radius of a Hamming-only run at this width."""
        bits = check_integer("bits", bits, 32, 256, 32)
        is_chosen = self.within_32_bits > 0 and bits >= _LEAST_BITS_OF_CHOICE
        return bits // 32 * self.within_32_bits if is_chosen else bits * _STRICT_WITHIN_64_BITS // 64


# By rarity, whatever the method would take without it: what half of a collection shares is no evidence, and so one
# threshold serves collections that plain sets need one each for.
_BY_RARITY: Mapping[str, Mapping[tuple[str, str], FeatureChoice]] = {
    "words": {
        ("minhash", "idf"): FeatureChoice(2, "idf", "jaccard", 0.45),
        ("shingles", "idf"): FeatureChoice(2, "idf", "jaccard", 0.45),
        ("bloom", "idf"): FeatureChoice(2, "idf", "jaccard", 0.45),
        ("simhash", "log-count-idf"): FeatureChoice(1, "log-count-idf", "cosine", 0.7, 6),
    },
    # Alone, a character of a long Chinese page says nothing: any such page holds the same ones.
    "script": {("simhash", "log-count-idf"): FeatureChoice(1, "log-count-idf", "cosine", 0.7, 6)},
    "char": {},
}


def _choices(sets: FeatureChoice, simhash: FeatureChoice) -> Mapping[str, FeatureChoice]:
    """Return the choice of each method: those that measure plain sets take the same features."""
    return {"minhash": sets, "shingles": sets, "bloom": sets, "simhash": simhash}


# Nothing was chosen for these on labeled sets. A long token
# is a feature by itself, and in bytes repetition is padding.
_OF_CHINESE = _choices(
    FeatureChoice(2, "none", "jaccard", _STRICT_THRESHOLD), FeatureChoice(1, "log-count", "cosine", _STRICT_THRESHOLD)
)
_OF_SCRIPTS = _OF_CHINESE
_OF_UNITS = _choices(
    FeatureChoice(1, "none", "jaccard", _STRICT_THRESHOLD), FeatureChoice(1, "none", "cosine", _STRICT_THRESHOLD)
)
_OF_BYTES = _choices(
    FeatureChoice(8, "none", "jaccard", _STRICT_THRESHOLD), FeatureChoice(8, "none", "cosine", _STRICT_THRESHOLD)
)
_OF_WORDS = _choices(FeatureChoice(3, "none", "jaccard", 0.55), FeatureChoice(2, "log-count", "cosine", 0.8, 6))
_OF_CHARACTERS = _choices(FeatureChoice(9, "none", "jaccard", 0.7), FeatureChoice(5, "log-count", "cosine", 0.85, 5))
_CHOSEN: Mapping[str, Mapping[str, FeatureChoice]] = {
    "auto": _OF_WORDS,
    "word": _OF_WORDS,
    "script": _OF_SCRIPTS,
    "char": _OF_CHARACTERS,
    "chinese": _OF_CHINESE,
    "sentence": _OF_UNITS,
    "line": _OF_UNITS,
    "paragraph": _OF_UNITS,
    "bytes": _OF_BYTES,
    "chunks": _OF_UNITS,
    "user": _OF_UNITS,
}


def features_of(method: str, tokens: str, shingle: int | None, weights: str | None) -> FeatureChoice:
    """Return the features of a recipe: those chosen for this kind of token, but where the user names others.

    Raises
    ------
    InvalidParameter
        If there is no such kind of token.
    """
    chosen = _CHOSEN[check_choice("tokens", tokens, TOKENS)][method]
    if weights is not None:
        check_choice("weights", weights, WEIGHTS)
        rare = _BY_RARITY["words" if tokens in ("auto", "word") else "script" if tokens == "script" else "char"]
        chosen = rare.get((method, weights), chosen)
    named = (chosen.shingle if shingle is None else shingle, chosen.weights if weights is None else weights)
    if named == (chosen.shingle, chosen.weights):
        return chosen
    return FeatureChoice(*named, chosen.measure, _STRICT_THRESHOLD)


def fixed_threshold(fields: Mapping[str, Any]) -> float:
    """Return the threshold that was chosen for the features and measure of a recipe, given as its fields."""
    chosen = features_of(fields["method"], fields["tokens"], fields["shingle"], fields["weights"])
    return chosen.threshold(fields["measure"])


def without_counts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the features in place of those by rarity, given a recipe's fields: shingle and weights.

    They are those of the same method and tokens without rarity. A shingle that was not chosen for rarity stays.
    """
    method, tokens = fields["method"], fields["tokens"]
    is_own = fields["shingle"] != features_of(method, tokens, None, fields["weights"]).shingle
    chosen = features_of(method, tokens, fields["shingle"] if is_own else None, None)
    return {"shingle": chosen.shingle, "weights": chosen.weights}


def default_tokens(measure: str, within: int | None, shingle: int | None, weights: str | None) -> str:
    """Return the tokens of a SimHash recipe that names none: characters where it names nothing at all.

    Distances alone tell best over characters: a text has many more of them than words, so that few are under the 64
    features below which the Jaccard similarity must agree too. Measured pairs do better, and faster, over words; so do
    small radii; and who names a shingle, or weights by rarity, means words: by log count and rarity single ones, and
    pairs of characters in scripts without spaces, by distance or measured.
    """
    if weights == "log-count-idf" and shingle is None:
        return "script"
    means_words = shingle is not None or weights in TABLE_WEIGHTS or _is_textbook(within)
    return "char" if measure == "hamming" and not means_words else "auto"


def default_bits(within: int | None) -> int:
    """Return the width of a fingerprint that names none: 64 where a radius is named that they bear, else 128."""
    return 64 if _is_textbook(within) else _BITS


def _is_textbook(within: int | None) -> bool:
    return within is not None and check_integer("within", within, 0, 256) <= _WIDEST_OF_64_BITS


def package_defaults(hash_name: str, weights: object) -> dict[str, Any]:
    """Return what a recipe takes that is to meet the sketches of a package, where its user says nothing."""
    if hash_name == "simhash-1e0ng":
        return {"tokens": "char", "shingle": 4, "weights": "count", "bits": 64}
    if hash_name == "datasketch":
        own = {"shingle": 1} if weights == OWN_WEIGHTS else {}
        return {"slot_bits": 32, "scheme": "affine32", "seed": 1, **own}
    return {}
