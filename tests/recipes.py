"""The same recipe for the package and for the oracle, and runs in the oracle's terms."""

import pytest

import likewise
from tests.oracle.candidates import radius_for
from tests.oracle.decide import Recipe as OracleRecipe
from tests.oracle.decide import Verdict
from tests.oracle.features import Rules


def oracle_recipe(recipe):
    """Return the oracle's form of a package recipe; the oracle computes bands and radius itself."""
    given, resolved = recipe.fields, recipe.resolve().fields
    within = 3 if given["within"] is None else given["within"]
    if recipe.method == "simhash" and given["within"] is None and recipe.threshold is not None:
        within, _ = radius_for(given["bits"], recipe.threshold, given["recall"])
    bands = (given["bands"], given["rows"]) if given["bands"] else None
    return OracleRecipe(
        method=recipe.method,
        rules=Rules(
            recipe.tokens, recipe.shingle, recipe.weights, recipe.seed, has_value=recipe.only_within is not None
        ),
        threshold=1.0 if recipe.method == "exact" else resolved["threshold"],
        recall=resolved["recall"],
        measure={"hamming": None, "equality": "jaccard"}.get(recipe.measure, recipe.measure),
        num_slots=resolved["num_slots"] or 128,
        slot_bits=resolved["slot_bits"] or 16,
        scheme=resolved["scheme"] or "bucket",
        bits=resolved["bits"] or 64,
        within=within,
        short_threshold=0.8 if resolved["short_threshold"] is None else resolved["short_threshold"],
        short_margin=recipe.short_margin or 0.0,
        filter_bits=resolved["filter_bits"] or 512,
        num_hashes=resolved["num_hashes"] or 1,
        bands=bands if recipe.method == "minhash" else None,
        overflow=resolved["overflow"] or "levels",
        filter_bands=bands if recipe.method == "bloom" else None,
    )


def verdicts(result):
    """Return the verdicts of a `Deduplication` in the oracle's form."""
    found = [Verdict(True)] * len(result.kept)
    for row in result.removed.to_pylist():
        found[row["row"]] = Verdict(False, row["kept_row"], row["similarity"], row["distance"])
    assert [verdict.kept for verdict in found] == result.kept.tolist()
    return found


Minhash, Simhash = likewise.Recipe.minhash, likewise.Recipe.simhash
Shingles, Bloom = likewise.Recipe.shingles, likewise.Recipe.bloom

# One recipe for each way of finding and comparing pairs; tests of the others in RECIPES are slow.
QUICK = (
    "minhash",
    "minhash-containment",
    "minhash-margin",
    "shingles-weighted",
    "exact",
    "bloom-bands",
    "simhash",
    "simhash-wide",
    "simhash-cosine",
    "simhash-short",
)


def quick_first(names=None):
    """Return names of recipes as test parameters, marked slow unless in `QUICK`."""
    return [
        pytest.param(name, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name in (RECIPES if names is None else names)
    ]


# Every method and measure, with short shingles so that small texts have several.
RECIPES = {
    "minhash": Minhash(0.6, shingle=2),
    "minhash-default": Minhash(),
    "minhash-log-count": Minhash(0.7, shingle=1, weights="log-count", num_slots=64, slot_bits=8),
    "minhash-classical": Minhash(0.5, shingle=1, scheme="classical", num_slots=32, slot_bits=32, seed=9),
    "minhash-containment": Minhash(0.8, shingle=1, measure="containment"),
    "minhash-cosine": Minhash(0.7, shingle=1, weights="count", measure="cosine"),
    "minhash-chars": Minhash(0.7, tokens="char", shingle=4, recall=0.99),
    "minhash-dice": Minhash(0.7, shingle=1, measure="dice"),
    "minhash-overlap": Minhash(0.8, shingle=1, measure="overlap"),
    "minhash-margin": Minhash(0.25, shingle=1, short_margin=1.2),
    "minhash-margin-containment": Minhash(0.3, shingle=1, weights="count", measure="containment", short_margin=1.2),
    "shingles": Shingles(),
    "shingles-margin": Shingles(0.4, shingle=1, weights="count", short_margin=0.8),
    "shingles-weighted": Shingles(0.6, shingle=1, weights="count"),
    "shingles-containment": Shingles(0.7, shingle=2, weights="log-count", measure="containment"),
    "shingles-cosine": Shingles(0.7, shingle=1, weights="log-count", measure="cosine"),
    "shingles-dice": Shingles(0.7, shingle=1, weights="count", measure="dice"),
    "shingles-overlap": Shingles(0.7, shingle=2, weights="log-count", measure="overlap"),
    "exact": likewise.Recipe.exact(),
    "bloom": Bloom(0.6, shingle=2, filter_bits=512),
    "bloom-log-count": Bloom(0.7, shingle=1, weights="log-count", filter_bits=192, num_hashes=2, seed=5),
    "bloom-containment": Bloom(0.7, shingle=1, measure="containment", filter_bits=128, recall=0.6),
    "bloom-dice": Bloom(0.75, shingle=1, measure="dice", filter_bits=256),
    "bloom-overlap": Bloom(0.7, shingle=1, measure="overlap", filter_bits=256, num_hashes=2),
    "bloom-cosine": Bloom(0.7, shingle=1, measure="cosine", filter_bits=64, recall=0.3),
    "bloom-margin": Bloom(0.3, shingle=1, filter_bits=512, short_margin=1.2),
    "bloom-bands": Bloom(0.5, shingle=1, filter_bits=512, bands=12, rows=4),
    "simhash": Simhash(),
    "simhash-wide": Simhash(within=20, bits=128, shingle=1, short_threshold=0.5),
    "simhash-any-short": Simhash(within=8, bits=32, shingle=1, short_threshold=0.0),
    "simhash-short": Simhash(within=16, shingle=1, weights="none", short_threshold=0.97),
    "simhash-cosine": Simhash(threshold=0.8, shingle=1),
    "simhash-margin": Simhash(threshold=0.4, shingle=1, short_margin=1.2),
    "simhash-jaccard": Simhash(threshold=0.5, within=24, measure="jaccard", shingle=1, weights="none"),
    "simhash-containment": Simhash(threshold=0.7, within=20, measure="containment", shingle=1),
}
