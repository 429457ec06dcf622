"""With every instruction set, the package computes the vectors that the oracle wrote.

A failure here means that sketches of old and new versions are incompatible: such a change needs a new sketch_version.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from likewise import _native
from tests.golden.write import pattern

HERE = Path(__file__).parent


def load(name):
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


TEXTS = {name: entry["text"] for name, entry in load("texts").items()}
NAMES = list(TEXTS)


def native_texts(names=NAMES):
    return _native.Texts.from_list([TEXTS[name] for name in names])


def native_rules(rules):
    return _native.FeatureRules(rules["tokens"], rules["shingle"], rules["weights"], rules["seed"])


def rules_id(entry):
    rules = entry["rules"]
    rest = "-".join(str(entry[key]) for key in ("bits", "num_slots", "slot_bits", "scheme") if key in entry)
    return f"{rules['tokens']}{rules['shingle']}-{rules['weights']}-{rules['seed']}-{rest}".rstrip("-")


def numbers(hexadecimal):
    return [int(value, 16) for value in hexadecimal]


def test_hashes():
    for length, seed, expected in load("hashes"):
        found = np.asarray(_native.Texts.from_list([pattern(length)]).hashes(int(seed, 16)))
        assert found.tolist() == [int(expected, 16)], (length, seed)


@pytest.mark.parametrize("name", NAMES)
def test_normalized_text_and_tokens(name):
    entry = load("texts")[name]
    assert _native.normalize(entry["text"]) == entry["normalized"]
    for kind in ("word", "auto", "char"):
        if kind in entry:
            assert list(_native.tokens(entry["text"], kind)) == entry[kind], kind


@pytest.mark.parametrize("entry", load("features"), ids=rules_id)
def test_features(entry, isa):
    offsets, features, weights = map(
        np.asarray, _native.features(native_texts(), native_rules(entry["rules"]), threads=1)
    )
    for i, name in enumerate(NAMES):
        expected = entry["documents"][name]
        own = slice(offsets[i], offsets[i + 1])
        assert offsets[i + 1] - offsets[i] == expected["num_features"], name
        if "features" in expected:
            assert features[own].tolist() == numbers(expected["features"]), name
            assert (weights[own].tolist() or [1] * len(features[own])) == expected["weights"], name


@pytest.mark.parametrize("entry", load("features"), ids=rules_id)
def test_digests_and_shapes(entry, isa):
    batch = _native.sketch_simhash(native_texts(), native_rules(entry["rules"]), bits=64, threads=2)
    digests = np.asarray(batch.digests).reshape(-1, 2).tolist()
    for i, name in enumerate(NAMES):
        expected = entry["documents"][name]
        assert np.asarray(batch.shapes)[i] == expected["shape"], name
        assert np.asarray(batch.num_features)[i] == expected["num_features"], name
        assert digests[i] == numbers(expected["digest"]), name


@pytest.mark.parametrize("entry", load("simhash"), ids=rules_id)
def test_simhash(entry, isa):
    batch = _native.sketch_simhash(
        native_texts(), native_rules(entry["rules"]), bits=entry["bits"], sets=False, threads=1
    )
    words = np.asarray(batch.sketches).reshape(len(NAMES), -1)
    for i, name in enumerate(NAMES):
        assert words[i].tolist() == numbers(entry["fingerprints"][name]), name


@pytest.mark.parametrize("entry", load("minhash"), ids=rules_id)
def test_minhash(entry, isa):
    names = list(entry["signatures"])
    batch = _native.sketch_minhash(
        native_texts(names),
        native_rules(entry["rules"]),
        num_slots=entry["num_slots"],
        slot_bits=entry["slot_bits"],
        scheme=entry["scheme"],
        sets=False,
        threads=1,
    )
    rows = np.asarray(batch.sketches).reshape(len(names), -1)
    for i, name in enumerate(names):
        assert rows[i].tobytes().hex() == entry["signatures"][name], name


def test_hashes_by_name():
    for kind, expected in load("packages")["hashes"].items():
        for token, value in expected.items():
            offsets, one = np.array([0, 1]), np.array([1], np.uint8)
            rules = _native.FeatureRules("user", 1, "none", 0, None, kind)
            lengths = np.array([len(token)], np.uint32)
            own = _native.Texts.from_tokens(offsets, _native.Texts.from_list([token]), one, lengths)
            _, found, _ = _native.features(own, rules)
            assert np.asarray(found).tolist() == [int(value, 16)], (kind, token)


def test_fingerprints_of_the_simhash_package(isa):
    expected = load("packages")["simhash-1e0ng"]
    rules = _native.FeatureRules("char", 4, "count", 0, None, "simhash-1e0ng")
    batch = _native.sketch_simhash(native_texts(), rules, bits=64)
    assert np.asarray(batch.sketches).tolist() == numbers(expected[name] for name in NAMES)


@pytest.mark.parametrize("scheme", ["affine32", "legacy"])
def test_signatures_of_datasketch(scheme):
    expected = load("packages")["datasketch"][scheme]
    rules = _native.FeatureRules("word", 1, "none", 1, None, "datasketch")
    batch = _native.sketch_minhash(native_texts(), rules, num_slots=16, slot_bits=32, scheme=scheme)
    found = np.asarray(batch.sketches).view("<u4").reshape(-1, 16)
    assert found.tolist() == [numbers(expected[name]) for name in NAMES]


@pytest.mark.parametrize("entry", load("bloom"), ids=rules_id)
def test_bloom(entry):
    batch = _native.sketch_bloom(
        native_texts(),
        native_rules(entry["rules"]),
        filter_bits=entry["filter_bits"],
        num_hashes=entry["num_hashes"],
        sets=False,
    )
    rows = np.asarray(batch.sketches).reshape(len(NAMES), -1)
    for row, name in zip(rows, NAMES, strict=True):
        assert int.from_bytes(row.astype("<u8").tobytes(), "little") == int(entry["filters"][name], 16), name


def test_log_count_weights():
    expected = load("numbers")["log_count_weights"]
    texts = _native.Texts.from_list(["word " * count for count in range(1, len(expected) + 1)])
    _, _, weights = _native.features(texts, _native.FeatureRules("word", 1, "log-count", 0))
    assert np.asarray(weights).tolist() == expected


def test_band_plans():
    for num_slots, threshold, recall, bands, rows in load("numbers")["band_plans"]:
        assert _native.plan_bands(num_slots, threshold, recall)[:2] == (bands, rows), (num_slots, threshold, recall)


def test_min_equal_slots():
    for num_slots, threshold, expected in load("numbers")["min_equal_slots"]:
        assert _native.min_equal_slots(num_slots, threshold) == expected, (num_slots, threshold)


def test_radii():
    for bits, threshold, recall, expected in load("numbers")["radii"]:
        assert _native.radius_for(bits, threshold, recall)[0] == expected, (bits, threshold, recall)
