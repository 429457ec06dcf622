"""Measure how good every method is on the labeled development sets, compared with naive methods.

    quality.py [--set NAME ...] [--no-sweep] [--only-presets] [--page-only] [--results FILE] [--page FILE]

Sweeps every method over tokens, shingle widths, weights and bits; runs the best of each, and the recipes below
unchanged, and has them scored by the sets' own scorer; writes results/quality.json and the tables of
docs/benchmarks/quality.md (short) and quality-tables.md (all). Missing sets are named with the reason.
Of the sweeps, the results keep the best of each method and, on the gating sets, the curves that the page shows.
`--no-sweep` takes these from the results file, sweeps the methods that it lacks, and runs the recipes.
`--only-presets` measures only the presets, in half a minute, and leaves the rest unchanged.
`--page-only` writes the pages from the results.
"""

import argparse
import json
import re
import sys
import time
from pathlib import Path

import numpy as np

import likewise
import quality_chance
import quality_licenses
import quality_page
import quality_presets
from labeled import BINARIES, GATING, LICENSES, MARKUP, NEGATIVE, OTHERS, LabeledSet, folder_of, is_there, load, naive
from likewise import _native
from likewise.stages.text import tokens as tokens_of
from quality_sweep import METHODS, Curve, Features, recipe_of, sweep

HERE = Path(__file__).parent
TOKENS = ("auto", "word", "char")
# Tried without weights and one at a time: they rarely repeat within a document.
UNITS = ("sentence", "line", "paragraph")
SHINGLES = (1, 2, 3, 4, 5)
WEIGHTS = ("none", "log-count", "count")
# Counted on the set itself; wider shingles are rare anyway.
RARITY = ("idf", "log-count-idf")
MOST_SHINGLE_OF_RARITY = 3
# Dictionary words are tried if at least this share of the letters is Chinese.
CHINESE_SHARE = 0.1

# Recipes that name only a method or a kind of token, and some for comparison; run unchanged on
# every set.
RECIPES = {
    "minhash, defaults": likewise.Recipe.minhash(0.55),
    "minhash, characters": likewise.Recipe.minhash(tokens="char"),
    "shingles, defaults": likewise.Recipe.shingles(),
    "bloom, defaults": likewise.Recipe.bloom(),
    "shingles, containment 0.8": likewise.Recipe.shingles(measure="containment"),
    "minhash, Chinese words": likewise.Recipe.minhash(tokens="chinese"),
    "minhash, folded": likewise.Recipe.minhash(fold=("accents", "punctuation", "width", "traditional")),
    "shingles, lines": likewise.Recipe.shingles(tokens="line"),
    "shingles by rarity, defaults": likewise.Recipe.shingles(weights="idf"),
    "minhash 0.8": likewise.Recipe.minhash(0.8, shingle=3, weights="none"),
    "minhash 0.5": likewise.Recipe.minhash(0.5, shingle=3, weights="none"),
    "minhash by rarity, defaults": likewise.Recipe.minhash(weights="idf"),
    "simhash distance, defaults": likewise.Recipe.simhash(),
    "simhash distance, words": likewise.Recipe.simhash(tokens="auto"),
    "simhash distance, textbook (within 3)": likewise.Recipe.simhash(within=3),
    "simhash distance, 64 bits within 3, threes": likewise.Recipe.simhash(
        bits=64, shingle=3, weights="log-count", within=3, short_threshold=0.8
    ),
    "simhash distance, 128 bits within 20": likewise.Recipe.simhash(
        bits=128, shingle=2, weights="log-count", within=20, short_threshold=0.5
    ),
    "simhash distance, 128 bits within 16, single words": likewise.Recipe.simhash(
        bits=128, shingle=1, weights="log-count", within=16, short_threshold=0.8
    ),
    "simhash distance, 64 bits within 10, five characters": likewise.Recipe.simhash(
        bits=64, tokens="char", shingle=5, weights="log-count", within=10, short_threshold=0.8
    ),
    "simhash distance, 64 bits within 14": likewise.Recipe.simhash(
        bits=64, shingle=3, weights="none", within=14, short_threshold=0.5
    ),
    "simhash distance by rarity, defaults": likewise.Recipe.simhash(weights="log-count-idf"),
    "simhash verified, defaults": likewise.Recipe.simhash(measure="cosine"),
    "simhash verified by rarity, defaults": likewise.Recipe.simhash(measure="cosine", weights="log-count-idf"),
    "simhash verified, characters": likewise.Recipe.simhash(measure="cosine", tokens="char"),
    "simhash verified, 64 bits at 0.9": likewise.Recipe.simhash(bits=64, shingle=3, weights="log-count", threshold=0.9),
}


# For bytes, where thresholds of texts do not apply.
RECIPES_OF_BYTES = {
    **{
        f"{method}, {tokens}": likewise.Recipe.from_options(method, tokens=tokens)
        for method in ("minhash", "shingles", "bloom")
        for tokens in ("bytes", "chunks")
    },
    "shingles, bytes at 0.3": likewise.Recipe.shingles(0.3, tokens="bytes"),
    "shingles, chunks of 256 at 0.1": likewise.Recipe.shingles(0.1, tokens="chunks", chunk_bytes=256),
    "simhash distance, bytes": likewise.Recipe.simhash(tokens="bytes"),
    "simhash verified, bytes": likewise.Recipe.simhash(tokens="bytes", measure="cosine"),
}


def run(entry: LabeledSet, recipe: likewise.Recipe) -> dict[str, object]:
    """Run as a user would; return the scores by the sets' own scorer."""
    table = likewise.pairs(entry.texts, recipe)
    # Containment lists both directions.
    rows = np.stack([table.column(name).to_numpy() for name in ("row_a", "row_b")], axis=1)
    rows = np.unique(np.sort(rows, axis=1), axis=0)
    scored = entry.score(rows)
    unrelated = {"unrelated": distance_of_unrelated(entry, recipe)} if recipe.is_distance_only else {}
    return {
        "recipe": recipe.resolve().to_dict(),
        "recipe_id": recipe.recipe_id,
        "num_pairs": len(rows),
        **{name: scored[name] for name in ("f1", "precision", "recall", "ari")},
        "false_positives_by_kind": scored["false_positives_by_kind"],
        "recall_by_kind": scored["recall_by_kind"],
        **unrelated,
    }


def distance_of_unrelated(entry: LabeledSet, recipe: likewise.Recipe) -> dict[str, float]:
    """Return how far distances of pairs that are not near-duplicates are from the radius, in standard deviations.

    Small sets hardly show chance hits; a collection of n documents has n^2 / 2 pairs, and so needs 5 deviations
    for some thousand documents and 7 for a million.
    """
    array = likewise.sketch(entry.texts, recipe).array
    pairs = entry.pairs[entry.label_of(entry.pairs) == NEGATIVE]
    distance = likewise.hamming_distance(array[pairs[:, 0]], array[pairs[:, 1]])
    mean, deviation = float(distance.mean()), float(distance.std())
    within = recipe.fields["within"]
    return {
        "mean": round(mean, 2),
        "deviation": round(deviation, 2),
        "deviations_to_radius": round((mean - within) / deviation, 2),
        "within_per_million": round(float((distance <= within).mean()) * 1e6, 1),
    }


def grid(entry: LabeledSet) -> list[Features]:
    """Return all features to try; `word` only if it differs from `auto` (adjacent Katakana)."""
    if entry.is_of_bytes:
        windows = [Features("bytes", shingle, weights) for shingle in (4, 8) for weights in ("none", "log-count")]
        return windows + [Features("chunks", 1, "none", size) for size in (256, 512, 1024)]
    differs = any(tokens_of(text, "word") != tokens_of(text, "auto") for text in entry.texts)
    tokens = [name for name in TOKENS if name != "word" or differs]
    tokens += ["chinese"] if share_of_chinese(entry.texts) > CHINESE_SHARE else []
    plain = [Features(name, shingle, weights) for name in tokens for shingle in SHINGLES for weights in WEIGHTS]
    rare = [
        Features(name, shingle, weights)
        for name in tokens
        for shingle in SHINGLES[:MOST_SHINGLE_OF_RARITY]
        for weights in RARITY
    ]
    return plain + rare + [Features(name, 1, "none") for name in UNITS]


def share_of_chinese(texts: list[str]) -> float:
    """Return the share of Chinese characters in a set."""
    num_chinese = sum(sum("\u4e00" <= character <= "\u9fff" for character in text) for text in texts)
    return num_chinese / max(1, sum(map(len, texts)))


def best_of_each(curves: list[Curve]) -> list[Curve]:
    """Return the best features of each method and width, in the order of the sweep."""
    best: dict[tuple[str, int | None], Curve] = {}
    for curve in curves:
        key = (curve.method, curve.bits)
        if key not in best or curve.f1[curve.best] > best[key].f1[best[key].best]:
            best[key] = curve
    return list(best.values())


def measure(entry: LabeledSet, former: dict[str, list[dict[str, object]]] | None) -> dict[str, object]:
    """Return all results for one set. `former` holds earlier sweeps that are not repeated."""
    found: dict[str, object] = {
        "num_documents": len(entry.ids),
        "num_positives": entry.num_positives,
        "naive": {"jaccard": naive(entry, "jaccard"), "simhash": naive(entry, "simhash64")},
    }
    former = former or {"sweeps": [], "best": []}
    known = frozenset(row["method"] for row in former["best"])
    curves: list[Curve] = []
    for features in grid(entry) if set(METHODS) - known else ():
        started = time.perf_counter()
        curves += sweep(entry, features, known)
        print(f"  {features} {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    if entry.name in GATING:
        found["sweeps"] = quality_page.shown([curve.to_dict() for curve in curves]) + former["sweeps"]
    best = []
    for curve in best_of_each(curves):
        recipe = recipe_of(entry, curve.method, curve.features, curve.bits, curve.settings[curve.best])
        best.append({"method": curve.method, "bits": curve.bits, **run(entry, recipe)})
    found["best"] = best + former["best"]
    recipes = RECIPES_OF_BYTES if entry.is_of_bytes else RECIPES
    found["recipes"] = {name: run(entry, recipe.replace(**entry.rules)) for name, recipe in recipes.items()}
    return found


def facts() -> dict[str, object]:
    """Return what the figures depend on besides the sets. Not the machine: results are the same on all."""
    return {
        "likewise": _native.__version__,
        "text_version": _native.TEXT_VERSION,
        "sketch_version": _native.SKETCH_VERSION,
        "sketch_ids": {name: recipe.sketch_id for name, recipe in RECIPES.items()},
    }


def write_results(results: dict[str, object], path: Path) -> None:
    """Write the results as JSON, with innermost objects on one line: one line per curve."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, ensure_ascii=False, indent=1)
    text = re.sub(r"\{[^{}\[\]]*\}", lambda found: re.sub(r"\s+", " ", found[0]), text)
    path.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Measure the available sets, write the results and the page."""
    parser = argparse.ArgumentParser(description="Quality of every method on the labeled development sets.")
    names = (*GATING, *OTHERS, MARKUP, LICENSES, BINARIES)
    parser.add_argument("--set", action="append", choices=names, help="only this set; the others keep their results")
    parser.add_argument("--no-sweep", action="store_true", help="sweep only methods that the results file lacks")
    parser.add_argument("--only-presets", action="store_true", help="measure the presets and nothing else")
    parser.add_argument("--page-only", action="store_true", help="write the pages from the results and stop")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "quality.json")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "benchmarks" / "quality.md")
    options = parser.parse_args()
    results = json.loads(options.results.read_text()) if options.results.exists() else {"sets": {}}
    if options.page_only:
        quality_page.write(results, options.page)
        return
    results["presets"] = results["presets"] if options.set and "presets" in results else quality_presets.measure()
    if options.only_presets:
        write_results(results, options.results)
        quality_page.write(results, options.page)
        return
    results |= {"facts": facts(), "skipped": {}}
    for name in options.set or names:
        if not is_there(name):
            results["skipped"][name] = "not at ../shared/data"
            continue
        print(name, file=sys.stderr, flush=True)
        if name == LICENSES:
            results["sets"][name] = quality_licenses.measure(folder_of(name), RECIPES)
        else:
            former = results["sets"].get(name) if options.no_sweep else None
            results["sets"][name] = measure(load(name), former)
        write_results(results, options.results)
    # Only if the corpora of `make bench` exist; sets named by --set leave it unchanged.
    if chance := [] if options.set else quality_chance.measure(HERE / "data", RECIPES):
        results["chance"] = chance
        write_results(results, options.results)
    quality_page.write(results, options.page)


if __name__ == "__main__":
    main()
