"""Identity of a recipe: a hash of the fields that determine a result."""

import hashlib
import json
from collections.abc import Mapping

# Fields with their original default are not hashed, so that adding a field changes no existing id. These values never
# change, even if defaults of constructors do.
_ORIGINAL_DEFAULTS: Mapping[str, object] = {
    "tokens": "auto",
    "shingle": 3,
    "seed": 0,
    "hash": "xxh3",
    "num_hashes": 1,
    "bits": 64,
    "num_slots": 128,
    "slot_bits": 16,
    "scheme": "bucket",
    "short_threshold": 0.8,
    "keep": "first",
    "group": "leaders",
    "overflow": "levels",
}
SKETCH_FIELDS = (
    "method",
    "tokens",
    "shingle",
    "weights",
    "weight_scale",
    "weights_id",
    "seed",
    "markup",
    "fold",
    "identifiers",
    "stop_words_id",
    "dictionary_id",
    "only_within",
    "chunking",
    "chunk_bytes",
    "tokenizer",
    "libraries",
    "hash",
    "bits",
    "num_slots",
    "slot_bits",
    "scheme",
    "filter_bits",
    "num_hashes",
    "text_version",
    "sketch_version",
)
# Sketch fields that do not determine which features are counted, but only weigh, sketch or separate them.
_NOT_OF_FEATURES = (
    *("method", "weights", "weight_scale", "weights_id", "bits", "num_slots", "slot_bits", "scheme"),
    *("filter_bits", "num_hashes", "only_within"),
)
# `recall` only determines bands, rows and radius, which are hashed themselves.
DECISION_FIELDS = (
    "threshold",
    "within",
    "measure",
    "short_threshold",
    "short_margin",
    "siblings",
    "unsure",
    "keep_new",
    "bands",
    "rows",
    "keep",
    "group",
    "overflow",
)


def feature_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that determine features, including defaults, without those that are None or missing."""
    # Fields newer than the first tables are left out if they have their default.
    young = () if fields.get("hash", "xxh3") != "xxh3" else ("hash",)
    names = [name for name in SKETCH_FIELDS if name not in (*_NOT_OF_FEATURES, *young)]
    return {name: fields[name] for name in names if fields.get(name) is not None}


def identity(fields: Mapping[str, object], names: tuple[str, ...]) -> str:
    """Return 32 hexadecimal digits that identify the values of these fields."""
    present = {name: fields[name] for name in names if fields[name] is not None}
    hashed = {n: v for n, v in present.items() if n not in _ORIGINAL_DEFAULTS or v != _ORIGINAL_DEFAULTS[n]}
    return hashlib.sha256(canonical_json(hashed).encode("ascii")).hexdigest()[:32]


def canonical_json(fields: Mapping[str, object]) -> str:
    """Return JSON with sorted keys, without spaces, in ASCII."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
