"""Default values of a recipe, for each method and kind of token.

They were chosen together on four labeled sets (docs/benchmarks/quality.md), so threshold and radius are valid for their
own shingle and weights. Other features were not evaluated, so they get the strict values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likewise.checks import check_choice, check_integer
from likewise.recipe.fields import OWN_WEIGHTS, TABLE_WEIGHTS, TOKENS, WEIGHTS

# For any features, only copies are removed: similarity 0.8; 3 of 64 bits, the radius from the literature.
_STRICT_THRESHOLD = 0.8
_STRICT_WITHIN_64_BITS = 3
_BITS = 128
# Over characters, unrelated texts differ in 30 of 64 bits (deviation 4): within 10, a million pairs hold a match.
_LEAST_BITS_OF_CHOICE = 96
_WIDEST_OF_64_BITS = 10


@dataclass(frozen=True)
class FeatureChoice:
    """Shingle and weights of a recipe, with their threshold and radius."""

    shingle: int
    weights: str
    measure: str
    similarity: float
    # Default radius for each 32 bits of a fingerprint; 0 if none was chosen
    within_32_bits: int = 0

    def threshold(self, measure: str) -> float:
        """Return the default threshold for this measure."""
        return self.similarity if measure == self.measure else _STRICT_THRESHOLD

    def within(self, bits: int) -> int:
        """Return the default radius of a Hamming-only run at this width."""
        bits = check_integer("bits", bits, 32, 256, 32)
        is_chosen = self.within_32_bits > 0 and bits >= _LEAST_BITS_OF_CHOICE
        return bits // 32 * self.within_32_bits if is_chosen else bits * _STRICT_WITHIN_64_BITS // 64


# Choices by rarity, which replace the method's own: text shared by half of a collection is no evidence.
_BY_RARITY: Mapping[str, Mapping[tuple[str, str], FeatureChoice]] = {
    "words": {
        ("minhash", "idf"): FeatureChoice(2, "idf", "jaccard", 0.45),
        ("shingles", "idf"): FeatureChoice(2, "idf", "jaccard", 0.45),
        ("bloom", "idf"): FeatureChoice(2, "idf", "jaccard", 0.45),
        ("simhash", "log-count-idf"): FeatureChoice(1, "log-count-idf", "cosine", 0.7, 6),
    },
    # Single characters of a long Chinese page are not evidence: all such pages contain the same ones.
    "script": {("simhash", "log-count-idf"): FeatureChoice(1, "log-count-idf", "cosine", 0.7, 6)},
    "char": {},
}


def _choices(sets: FeatureChoice, simhash: FeatureChoice) -> Mapping[str, FeatureChoice]:
    """Return the choice for each method; methods that measure plain sets use the same features."""
    return {"minhash": sets, "shingles": sets, "bloom": sets, "simhash": simhash}


# Not chosen on labeled sets. A long token is a feature by itself, and repetition in bytes is padding.
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
    "bytes": _OF_BYTES,
}


def features_of(method: str, tokens: str, shingle: int | None, weights: str | None) -> FeatureChoice:
    """Return the features of a recipe: the ones chosen for this kind of token, unless the user gives others."""
    chosen = _CHOSEN.get(check_choice("tokens", tokens, TOKENS), _OF_UNITS)[method]
    if weights is not None:
        check_choice("weights", weights, WEIGHTS)
        rare = _BY_RARITY["words" if tokens in ("auto", "word") else "script" if tokens == "script" else "char"]
        chosen = rare.get((method, weights), chosen)
    named = (chosen.shingle if shingle is None else shingle, chosen.weights if weights is None else weights)
    if named == (chosen.shingle, chosen.weights):
        return chosen
    return FeatureChoice(*named, chosen.measure, _STRICT_THRESHOLD)


def default_tokens(measure: str, within: int | None, shingle: int | None, weights: str | None) -> str:
    """Return the default tokens of a SimHash recipe: characters if nothing else is given.

    Hamming-only recipes work best over characters: a text has many more characters than words, so few texts have fewer
    than 64 features, below which the Jaccard similarity must agree too. Verified pairs are better and faster over
    words, and so are small radii. A given shingle or weights by rarity imply words: single words with log count and
    rarity, and pairs of characters in scripts without spaces, by distance or verified.
    """
    if weights == "log-count-idf" and shingle is None:
        return "script"
    means_words = shingle is not None or weights in TABLE_WEIGHTS or _is_textbook(within)
    return "char" if measure == "hamming" and not means_words else "auto"


def default_bits(within: int | None) -> int:
    """Return the default width of a fingerprint: 64 if a given radius is small enough for it, otherwise 128."""
    return 64 if _is_textbook(within) else _BITS


def _is_textbook(within: int | None) -> bool:
    return within is not None and check_integer("within", within, 0, 256) <= _WIDEST_OF_64_BITS


def package_defaults(hash_name: str, weights: object) -> dict[str, Any]:
    """Return the default fields of a recipe compatible with the sketches of another package."""
    if hash_name == "simhash-1e0ng":
        return {"tokens": "char", "shingle": 4, "weights": "count", "bits": 64}
    if hash_name == "datasketch":
        own = {"shingle": 1} if weights == OWN_WEIGHTS else {}
        return {"slot_bits": 32, "scheme": "affine32", "seed": 1, **own}
    return {}
