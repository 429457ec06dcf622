"""Presets: named recipes for kinds of collections. A recipe made from a preset contains only its fields."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from likewise.errors import InvalidParameter, check_choice, check_integer
from likewise.recipe.fields import (
    AUTO,
    EXCERPT_MEASURES,
    FEATURE_FIELDS,
    FIELDS_OF_METHOD,
    OWN_WEIGHTS,
    PACKAGE_HASHES,
    TABLE_WEIGHTS,
    TOKENS,
    WEIGHTS,
    FeatureFields,
    TextOptions,
)
from likewise.recipe.weights import Weights

# For any features, only copies are removed: similarity 0.8; 3 of 64 bits, the radius from the literature.
_STRICT_THRESHOLD = 0.8
_STRICT_WITHIN_64_BITS = 3
_BITS = 128
# Over characters, unrelated texts differ in 30 of 64 bits (deviation 4): within 10, a million pairs hold a match.
_LEAST_BITS_OF_CHOICE = 96
_WIDEST_OF_64_BITS = 10


Preset = Literal[
    "default", "online", "strict", "templates", "titles", "names", "ocr", "threads", "classic-simhash", "code"
]
# Method of a recipe that gives none.
DEFAULT_METHOD = "minhash"
# docs/benchmarks/quality-tables.md, "Presets", has results; docs/benchmarks/defaults.md the first choices.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {
        "method": "minhash",
        "tokens": "auto",
        "shingle": 2,
        "weights": "idf",
        "fold": ("signs",),
        "threshold": AUTO,
        "short_margin": 1.0,
        "siblings": "keep",
    },
    "online": {
        "method": "minhash",
        "tokens": "auto",
        "shingle": 3,
        "weights": "none",
        "threshold": 0.55,
        "short_margin": 1.0,
    },
    "strict": {"method": "minhash", "tokens": "auto", "shingle": 3, "weights": "none", "threshold": 0.8},
    "templates": {"method": "minhash", "tokens": "auto", "shingle": 2, "weights": "idf", "threshold": 0.5},
    "titles": {
        "method": "minhash",
        "tokens": "char",
        "shingle": 2,
        "weights": "none",
        "fold": ("accents", "punctuation"),
        "identifiers": "numbers",
        "threshold": 0.55,
        "num_slots": 256,
        # Bands of four rows: with three, a title would be compared with far more unlike ones.
        "recall": 0.9,
    },
    "names": {
        "method": "shingles",
        "tokens": "char",
        "shingle": 2,
        "weights": "log-count",
        "fold": ("accents", "punctuation"),
        "measure": "overlap",
        "threshold": 0.9,
    },
    "ocr": {
        "method": "minhash",
        "tokens": "char",
        "shingle": 4,
        "weights": "none",
        "fold": ("confusables", "accents", "punctuation"),
        "threshold": 0.43,
        "num_slots": 256,
    },
    "threads": {
        "method": "shingles",
        "tokens": "auto",
        "shingle": 3,
        "weights": "none",
        "measure": "containment",
        "threshold": 0.8,
        "keep": "longest",
    },
    "classic-simhash": {
        "method": "simhash",
        "tokens": "auto",
        "shingle": 2,
        "weights": "log-count",
        "bits": 64,
        "within": 3,
    },
    "code": {"method": "minhash", "tokens": "char", "shingle": 2, "weights": "log-count", "threshold": 0.6},
}

# Presets for recipes without a preset: the first compatible with the options; otherwise the method's own defaults.
_BASES: Mapping[str, tuple[str, ...]] = {"default": ("default", "online"), "online": ("online",)}
# Methods that measure the same similarity of the same features, and tokens that are words.
_SET_METHODS = ("minhash", "shingles", "bloom")
_WORDS = ("auto", "word")


# Options whose defaults depend on others; constructors pass other options on as they are.
_DEPENDENT = ("tokens", "shingle", "weights", "table", "seed", "hash", "measure", "keep", "group")
_PLAIN = tuple(
    name for name in FeatureFields.__annotations__ if name not in {*TextOptions.__annotations__, *_DEPENDENT}
)
# Fields that a recipe takes from its weight table unless they are given. Word lists are not included.
_FROM_TABLE = [name for name in FEATURE_FIELDS if name in TextOptions.__annotations__ and not name.endswith("_id")]


class FeatureChoice(NamedTuple):
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


def _defaults_of(hash_name: str, weights: object) -> dict[str, Any]:
    """Return the default fields of a recipe with this hash, which may be that of another package's sketches."""
    fields: dict[str, Any] = {"slot_bits": 16, "scheme": "bucket"}
    if hash_name == "simhash-1e0ng":
        fields |= {"tokens": "char", "shingle": 4, "weights": "count", "bits": 64}
    if hash_name == "datasketch":
        own = {"shingle": 1} if weights == OWN_WEIGHTS else {}
        fields |= {"slot_bits": 32, "scheme": "affine32", "seed": 1, **own}
    return fields


def with_preset(preset: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recipe completed from a preset; a measure may need the exact search as method."""
    if preset not in PRESETS:
        raise InvalidParameter("preset", f"{preset!r} is not one of {', '.join(PRESETS)}")
    fields = dict(PRESETS[preset])
    if options.get("measure") in EXCERPT_MEASURES and fields["method"] == DEFAULT_METHOD:
        fields["method"] = _method_for(options)
    if options.get("table") is not None or isinstance(options.get("weights"), Weights):
        # A table determines its own weight rule.
        fields.pop("weights", None)
    return {"method": DEFAULT_METHOD, **fields, **options}


def with_base(base: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recipe without a preset, always including the method.

    The fields of a preset were chosen together. They apply unless the options set another threshold, weights, tokens or
    measure, or a method that measures something else; in that case, the constructor of the method supplies the
    defaults. The only method that accepts all options is used (`within` selects simhash); otherwise shingles for
    containment and overlap, whose pairs differ in size and so rarely share a band; otherwise the default method.
    """
    options = {"method": _method_for(options), **options}
    preset = next((name for name in _BASES[base] if _agrees(PRESETS[name], options)), None)
    return options if preset is None else with_preset(preset, options)


def _method_for(options: Mapping[str, Any]) -> str:
    fitting = [name for name, fields in FIELDS_OF_METHOD.items() if options.keys() - {"method"} <= set(fields)]
    if len(fitting) == 1:
        return fitting[0]
    return "shingles" if options.get("measure") in EXCERPT_MEASURES else DEFAULT_METHOD


def _agrees(fields: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    # A fixed threshold is valid only for its shingle; auto adapts to any. A threshold given as a number has no margin.
    is_auto = fields["threshold"] == AUTO
    named = options.get("threshold")
    return (
        (named is None or (is_auto and named == AUTO))
        and all(
            options.get(name, fields[name]) == fields[name] for name in ("weights", *([] if is_auto else ["shingle"]))
        )
        # A run cannot choose the threshold for a given search.
        and not {"table", "bands", "rows"} & options.keys()
        and options["method"] in _SET_METHODS
        and options.get("tokens", "auto") in _WORDS
        and options.get("measure", "jaccard") == "jaccard"
        and options.get("hash") not in PACKAGE_HASHES
    )


class Weighing(NamedTuple):
    """Features and weights that a user gave, completed from the table."""

    weights: str | None
    table: Weights | None
    tokens: str | None
    shingle: int | None
    # Seed of the token hash
    seed: int
    # Everything that the table records about its features
    rules: Mapping[str, Any] | None = None


def _weighing_of(
    method: str,
    weights: str | Weights | None,
    table: Weights | None,
    tokens: str | None,
    shingle: int | None,
    seed: int | None,
) -> Weighing:
    """Return the weights that a user gave, completed from the features recorded in the table."""
    if isinstance(weights, Weights):
        if table is not None:
            raise InvalidParameter("weights", "a table is given twice, in weights and in table")
        weights, table = None, weights
    if table is None:
        return Weighing(weights, None, tokens, shingle, 0 if seed is None else seed)
    rules = table.rules
    return Weighing(
        weights=table.default_rule(method) if weights is None else weights,
        table=table,
        tokens=rules.get("tokens") if tokens is None else tokens,
        shingle=rules.get("shingle") if shingle is None else shingle,
        seed=rules.get("seed", 0) if seed is None else seed,
        rules=rules,
    )


def chosen_fields(
    method: str, options: Mapping[str, Any], own: Mapping[str, Any], tokens_of: Callable[[Weighing], str]
) -> tuple[FeatureChoice, dict[str, Any]]:
    """Return the chosen features, and the recipe fields for them, with the method's `own` and values that depend."""
    rest = dict(options)
    hash_name, measure = rest.pop("hash", "xxh3"), rest.pop("measure")
    keep, group = rest.pop("keep", None), rest.pop("group", "leaders")
    plain = {name: rest.pop(name, None) for name in _PLAIN}
    named = {name: rest.pop(name, None) for name in ("weights", "table", "tokens", "shingle", "seed")}
    defaults = _defaults_of(hash_name, named["weights"])
    for name, value in defaults.items():
        if name in named and named[name] is None and not (name == "weights" and named["table"] is not None):
            named[name] = value
    weighing = _weighing_of(method, **named)
    tokens = weighing.tokens or tokens_of(weighing)
    features = features_of(method, tokens, weighing.shingle, weighing.weights)
    fields = {
        "method": method,
        "tokens": tokens,
        "shingle": features.shingle,
        "weights": features.weights,
        "table": weighing.table,
        "seed": weighing.seed,
        "hash": hash_name,
        **plain,
        "measure": measure,
        # Measures that find excerpts keep the whole.
        "keep": ("longest" if measure in EXCERPT_MEASURES else "first") if keep is None else keep,
        "group": group,
        **_text_options(rest, weighing.rules),
        **{name: defaults.get(name) if value is None else value for name, value in own.items()},
    }
    return features, fields


def _text_options(options: Mapping[str, Any], table_rules: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the given options, completed from the rules recorded in a weight table."""
    unknown = sorted(set(options) - set(TextOptions.__annotations__))
    if unknown:
        raise InvalidParameter(unknown[0], "not a recipe option")
    found = dict(options)
    for name in _FROM_TABLE:
        if table_rules is not None and found.get(name) is None and name in table_rules:
            found[name] = table_rules[name]
    return found
