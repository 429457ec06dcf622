"""Write the golden vectors: `python -m tests.golden.write`. They come from the oracle only, never from the package."""

import json
from pathlib import Path

from tests.golden.texts import TEXTS
from tests.oracle import bloom, candidates, hashes, sketches
from tests.oracle.features import Rules, digest, features, log_count_weight
from tests.oracle.normalize import normalize
from tests.oracle.segment import tokens
from tests.oracle.xxh3 import xxh3

HERE = Path(__file__).parent
RULES = (
    Rules(),
    Rules("word", 1, "none", 0),
    Rules("word", 1, "count", 0),
    Rules("word", 1, "log-count", 0),
    Rules("word", 5, "none", 0),
    Rules("auto", 2, "log-count", 42),
    Rules("auto", 3, "count", 2**64 - 1),
    Rules("char", 1, "log-count", 1),
    Rules("char", 3, "none", 0),
    Rules("char", 5, "count", 12345678901234567890),
    Rules("word", 64, "none", 9),
)
WIDTHS = (32, 64, 96, 128, 160, 256)
# num_slots, slot_bits, scheme
SIGNATURES = (
    (128, 16, "bucket"), (128, 8, "bucket"), (1, 32, "bucket"), (7, 32, "bucket"), (100, 32, "bucket"),
    (256, 16, "bucket"), (128, 32, "classical"), (33, 16, "classical"), (64, 8, "classical"),
)  # fmt: skip
XXH3_LENGTHS = (
    *range(18), 31, 32, 33, 64, 65, 96, 97, 127, 128, 129, 130, 159, 160, 192, 239, 240, 241, 255, 256, 257, 511, 512,
    1023, 1024, 1025, 1088, 1089, 2048, 2049, 4100,
)  # fmt: skip
SEEDS = (0, 1, 0x9E3779B97F4A7C15, 2**64 - 1)


def pattern(length):
    """Return printable ASCII of that length."""
    return "".join(chr(33 + (i * i + i // 11) % 94) for i in range(length))


def hexadecimal(values):
    return [f"{value:016x}" for value in values]


def text_vectors():
    return {
        name: {
            "text": text,
            "normalized": normalize(text),
            **{kind: tokens(text, kind) for kind in ("word", "auto", "char") if len(text) < 2000},
        }
        for name, text in TEXTS.items()
    }


def feature_vectors():
    made = []
    for rules in RULES:
        documents = {}
        for name, text in TEXTS.items():
            found = features(text, rules)
            entry = {
                "shape": found.shape,
                "num_features": len(found.weights),
                "digest": hexadecimal(digest(found.weights)),
            }
            if len(found.weights) <= 120:
                entry |= {"features": hexadecimal(found.weights), "weights": list(found.weights.values())}
            documents[name] = entry
        made.append({"rules": rules._asdict(), "documents": documents})
    return made


def simhash_vectors():
    return [
        {
            "rules": rules._asdict(),
            "bits": bits,
            "fingerprints": {
                name: hexadecimal(sketches.simhash_words(features(text, rules).weights, bits))
                for name, text in TEXTS.items()
            },
        }
        for rules in RULES
        for bits in (WIDTHS if rules in RULES[:4] else (64,))
    ]


def minhash_vectors():
    made = []
    for rules in RULES:
        found = {name: features(text, rules).weights for name, text in TEXTS.items()}
        found = {name: weights for name, weights in found.items() if sum(weights.values()) <= 3000}
        for num_slots, slot_bits, scheme in SIGNATURES if rules in RULES[:2] else SIGNATURES[:1]:
            made.append(
                {
                    "rules": rules._asdict(),
                    "num_slots": num_slots,
                    "slot_bits": slot_bits,
                    "scheme": scheme,
                    "signatures": {
                        name: sketches.slot_bytes(
                            sketches.minhash(weights, num_slots, slot_bits, scheme, rules.seed), slot_bits
                        ).hex()
                        for name, weights in found.items()
                    },
                }
            )
    return made


def number_vectors():
    """Return weights, band plans, radii and least estimates."""
    return {
        "log_count_weights": [log_count_weight(count) for count in range(1, 400)],
        "band_plans": [
            [m, t, recall, *plan]
            for m in (16, 64, 100, 128, 256)
            for t in (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99)
            for recall in (0.5, 0.9, 0.95, 0.99)
            if (plan := candidates.plan_bands(m, t, recall))
        ],
        "min_equal_slots": [
            [m, t, candidates.min_equal_slots(m, t)]
            for m in (1, 16, 64, 128, 256, 1000)
            for t in (0.05, 0.3, 0.5, 0.8, 0.95, 1.0)
        ],
        "radii": [
            [bits, t, recall, candidates.radius_for(bits, t, recall)[0]]
            for bits in (32, 64, 96, 128, 256)
            for t in (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
            for recall in (0.5, 0.9, 0.95, 0.99)
        ],
    }


def hash_vectors():
    return [
        [length, f"{seed:016x}", f"{xxh3(pattern(length).encode(), seed):016x}"]
        for length in XXH3_LENGTHS
        for seed in SEEDS
    ]


def package_vectors():
    """Return hashes by name, and the sketches of two packages."""
    words = {name: tokens(text, "word") or [normalize(text)] * bool(normalize(text)) for name, text in TEXTS.items()}
    return {
        "hashes": {
            kind: {token: f"{of(token):016x}" for token in ("a", "cat", "妈妈", "\U0001f600", "ǅ" * 40)}
            for kind, of in hashes.BY_NAME.items()
        },
        "simhash-1e0ng": {name: f"{hashes.simhash_package(text):016x}" for name, text in TEXTS.items()},
        "datasketch": {
            scheme: {
                name: [f"{slot:08x}" for slot in hashes.datasketch(cut, 16, 1, scheme)] for name, cut in words.items()
            }
            for scheme in ("affine32", "legacy")
        },
    }


def bloom_vectors():
    return [
        {
            "rules": rules._asdict(),
            "filter_bits": filter_bits,
            "num_hashes": num_hashes,
            "filters": {
                name: f"{bloom.bloom(features(text, rules).weights, filter_bits, num_hashes, rules.seed):x}"
                for name, text in TEXTS.items()
            },
        }
        for rules, filter_bits, num_hashes in ((RULES[0], 512, 1), (RULES[3], 320, 1), (RULES[5], 1024, 3))
    ]


VECTORS = {
    "hashes": hash_vectors,
    "texts": text_vectors,
    "features": feature_vectors,
    "simhash": simhash_vectors,
    "minhash": minhash_vectors,
    "numbers": number_vectors,
    "packages": package_vectors,
    "bloom": bloom_vectors,
}


def main():
    for name, make in VECTORS.items():
        body = json.dumps(make(), indent=1, sort_keys=True) + "\n"
        (HERE / f"{name}.json").write_text(body, encoding="utf-8")


if __name__ == "__main__":
    main()
