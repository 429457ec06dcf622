"""Write the pages on quality from the results: a short table in the summary, all tables on a separate page.

Tables are written between two markers; the surrounding text is written by hand and left alone.
"""

from pathlib import Path
from typing import Any

from labeled import BINARIES, GATING, MARKUP, OTHERS

BEGIN = "<!-- tables: begin (written by bench/quality.py) -->"
END = "<!-- tables: end -->"
RAW = "quality-tables.md"
# Columns of the short table: the preset `default`, then unchanged recipes.
DEFAULTS = {
    "MinHash": "minhash, defaults",
    "MinHash by rarity": "minhash by rarity, defaults",
    "SimHash, verified": "simhash verified, defaults",
    "SimHash, distance only": "simhash distance, defaults",
}
METHODS = {
    "shingles": "shingle sets, by Jaccard",
    "bloom": "Bloom filters, verified by Jaccard",
    "minhash": "MinHash, verified by Jaccard",
    "simhash-jaccard": "SimHash, verified by Jaccard",
    "simhash-cosine": "SimHash, verified by cosine",
    "simhash-distance": "SimHash, distance only",
    "shingles-containment": "shingle sets, by containment",
    "match": "`likewise match`",
}
# Sets of each kind of text in the last table.
KINDS = {
    "prose": "en-cpp-errors",
    "prose, reused in part": "en-plag-answers",
    "edited copies, English and Chinese": "edits-controlled",
    "Chinese": "zh-docs-tidb",
    "web archives, many languages": "warc-real",
    "HTML pages from templates": MARKUP,
    "code, plagiarized exercises": "code-irplag",
    "code, obfuscated": "code-ocd",
    "licenses (right of all)": "license-rules",
    "binaries": BINARIES,
}
# Columns of the last table, and the methods of the sweeps under each.
COLUMNS = {
    "shingle sets": ("shingles",),
    "the same, by containment": ("shingles-containment",),
    "Bloom": ("bloom",),
    "MinHash": ("minhash",),
    "SimHash, verified": ("simhash-jaccard", "simhash-cosine"),
    "SimHash, distance only": ("simhash-distance",),
    "`match`": ("match",),
}
# Tables of one recipe with settings in columns: (method, tokens, shingle, weights, bits) -> settings.
RADII = ("3", "8", "12", "16", "20", "24", "28", "32")
CURVES = {
    ("minhash", "auto", 3, "none", None): tuple(f"{percent / 100:g}" for percent in range(40, 85, 5)),
    ("minhash", "auto", 2, "idf", None): tuple(f"{percent / 100:g}" for percent in range(30, 75, 5)),
    ("simhash-cosine", "auto", 2, "log-count", 128): tuple(f"{percent / 100:g}" for percent in range(60, 95, 5)),
    ("simhash-distance", "char", 5, "log-count", 128): RADII,
    ("simhash-distance", "auto", 2, "log-count", 128): RADII,
    ("simhash-distance", "auto", 1, "log-count-idf", 128): RADII,
}
# Loss of F1 allowed to the methods at their best setting, and unchanged.
AT_BEST = 0.01
UNTOUCHED = 0.05

Row = dict[str, Any]


def write(results: Row, page: Path) -> None:
    """Write the short table into the summary, and all tables into the page next to it."""
    _insert(page, [_summary(results)])
    _insert(page.with_name(RAW), tables(results))


def _insert(page: Path, parts: list[str]) -> None:
    """Replace the text between the markers; create the page if it is missing."""
    before, after = f"# Quality\n\n{BEGIN}", END
    if page.exists():
        text = page.read_text(encoding="utf-8")
        before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join([before, *parts, after.rstrip()]) + "\n", encoding="utf-8")


def _summary(results: Row) -> str:
    """Return F1 of the defaults on every set of texts, and the bounds of exact Jaccard and naive SimHash."""
    head = ["set", "documents", "exact Jaccard, best", "naive SimHash, best", "`default`", *DEFAULTS]
    rows = [head, ["---"] * len(head)]
    for name, entry in results["sets"].items():
        if "naive" not in entry or name not in results["presets"]:
            continue
        bounds = [f"{entry['naive'][kind]['f1']:.3f}" for kind in ("jaccard", "simhash")]
        preset = f"{results['presets'][name]['default']['f1']:.3f}"
        recipes = [f"{entry['recipes'][recipe]['f1']:.3f}" for recipe in DEFAULTS.values()]
        rows.append([name, f"{entry['num_documents']:,}", *bounds, preset, *recipes])
    return _table(rows)


def _label(recipe: str) -> str:
    """Return the name of a recipe as shown on the pages."""
    return recipe.replace("threes", "3-grams")


def tables(results: Row) -> list[str]:
    """Return every table of the page, with its heading."""
    sets = results["sets"]
    gating = [name for name in GATING if name in sets]
    parts: list[str] = []
    if "presets" in results:
        parts += ["## Presets", _presets(results["presets"])]
    if gating:
        parts += ["## The four sets that defaults are chosen on", _recipes(sets, gating)]
        parts += ["### Unrelated pairs and the radius", _unrelated(sets, gating)]
        if "chance" in results:
            parts += ["### Chance hits in large collections", _chance(results["chance"])]
        parts += ["### One recipe at every threshold", _curves(sets, gating)]
    for name in (*gating, *(name for name in (*OTHERS, MARKUP, BINARIES) if name in sets)):
        parts += [f"## {name}", _set(sets[name])]
    if "license-rules" in sets:
        parts += ["## license-rules", _licenses(sets["license-rules"])]
    if results["skipped"]:
        parts += ["## Not measured", "\n".join(f"- {name}: {why}" for name, why in results["skipped"].items())]
    return [*parts, "## Which recipe for which kind of text", _kinds(sets)]


def bars(entry: Row) -> dict[str, float]:
    """Return the least F1 of each method at its best setting: exact Jaccard, naive SimHash, and their midpoint."""
    exact, naive = entry["naive"]["jaccard"]["f1"], entry["naive"]["simhash"]["f1"]
    return {
        **dict.fromkeys(("minhash", "shingles", "bloom"), exact - AT_BEST),
        "simhash distance": naive - AT_BEST,
        "simhash verified": naive + max(exact - naive, 0.0) / 2,
    }


def bar_of(entry: Row, recipe_name: str) -> float:
    """Return the least F1 of an unchanged recipe."""
    kind = next(kind for kind in bars(entry) if recipe_name.startswith(kind))
    return bars(entry)[kind] - UNTOUCHED


def _presets(found: Row) -> str:
    presets = list(next(iter(found.values())))
    rows = [["F1 (precision / recall)", *presets], ["---"] * (len(presets) + 1)]
    for name, row in found.items():
        best = max(figures["f1"] for figures in row.values())
        cells = []
        for figures in (row[preset] for preset in presets):
            mark = "**" if figures["f1"] == best else ""
            cells.append(f"{mark}{figures['f1']:.3f}{mark} ({figures['precision']:.2f} / {figures['recall']:.2f})")
        rows.append([name, *cells])
    note = (
        "Presets are used unchanged. The best F1 of each set is in bold.\n"
        "eye-technical: pairs that people read; only the texts of these pairs are compared.\n"
        "titles-...: short texts generated by rules (`bench/titles.py`)."
    )
    return _table(rows) + "\n\n" + note


def _recipes(sets: Row, names: list[str]) -> str:
    rows = [["F1 (precision / recall)", *names], ["---"] * (len(names) + 1)]
    for kind, label in (("jaccard", "exact Jaccard, best threshold"), ("simhash", "naive SimHash, best radius")):
        found = [sets[name]["naive"][kind] for name in names]
        rows.append([label, *(f"{row['f1']:.3f} @{row['thr']:g} ({row['name']})" for row in found)])
    for recipe in sets[names[0]]["recipes"]:
        cells = []
        for name in names:
            row = sets[name]["recipes"][recipe]
            misses = row["f1"] < bar_of(sets[name], recipe)
            cells.append(f"{row['f1']:.3f} ({row['precision']:.2f} / {row['recall']:.2f})" + (" *" if misses else ""))
        rows.append([_label(recipe), *cells])
    note = f"\\* more than {UNTOUCHED} below the target for the best setting of its method."
    return _table(rows) + "\n\n" + note


def _unrelated(sets: Row, names: list[str]) -> str:
    rows = [["recipe", *names], ["---"] * (len(names) + 1)]
    for recipe, row in sets[names[0]]["recipes"].items():
        if "unrelated" in row:
            found = [sets[name]["recipes"][recipe]["unrelated"] for name in names]
            cells = [f"{x['deviations_to_radius']:.1f} ({x['within_per_million']:.0f})" for x in found]
            rows.append([_label(recipe), *cells])
    note = (
        "Number of standard deviations between the mean distance of negative pairs and the radius.\n"
        "In parentheses: negative pairs within the Hamming radius, per million (including templates)."
    )
    return _table(rows) + "\n\n" + note


def _chance(found: list[Row]) -> str:
    columns = list(dict.fromkeys((row["corpus"], row["mean_length"]) for row in found))
    rows = [["recipe", *(f"{corpus}, {length:,} characters" for corpus, length in columns)]]
    rows.append(["---"] * len(rows[0]))
    for recipe in dict.fromkeys(row["recipe"] for row in found):
        cells = {(row["corpus"], row["mean_length"]): row for row in found if row["recipe"] == recipe}
        figures = [cells[column] for column in columns]
        shown = (f"{x['within_per_million']:g} ({x['deviations_to_radius']:.1f})" for x in figures)
        rows.append([_label(recipe), *shown])
    note = (
        "Number of unrelated pairs (Jaccard similarity of 3-grams below 0.2) within the radius, per million.\n"
        "In parentheses: number of standard deviations between the mean distance and the radius.\n"
        "The documents come from the corpora of `make bench`: single documents, and random concatenations of 4 and 16 "
        "documents.\n"
        "A collection of 100,000 documents has 5 billion pairs."
    )
    return _table(rows) + "\n\n" + note


def _curves(sets: Row, names: list[str]) -> str:
    """Return F1 for the features of three kinds of recipe, with settings in columns."""
    parts = []
    for key, settings in CURVES.items():
        method, tokens, shingle, weights, bits = key
        width = f", {bits} bits" if bits else ""
        parts.append(f"{METHODS[method]}: tokens {tokens}, shingle {shingle}, weights {weights}{width}.")
        rows = [["set", *settings, "best"], ["---"] * (len(settings) + 2)]
        for name in names:
            curve = next(row for row in sets[name]["sweeps"] if _key(row) == key)
            cells = [f"{curve['f1_at'][setting]:.3f}" if setting in curve["f1_at"] else "" for setting in settings]
            rows.append([name, *cells, f"{curve['f1']:.3f} @{curve['best']:g}"])
        parts.append(_table(rows))
    return "\n\n".join(parts)


def shown(sweeps: list[Row]) -> list[Row]:
    """Return the curves with a table on the page: only these are kept of the sweeps, which are megabytes."""
    return [row for row in sweeps if _key(row) in CURVES]


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("method", "tokens", "shingle", "weights", "bits"))


def _set(entry: Row) -> str:
    head = ["method", "features", "setting", "F1", "precision", "recall", "ARI"]
    rows = [head, ["---"] * len(head)]
    for kind, label in (("jaccard", "exact Jaccard"), ("simhash", "naive SimHash, 64 bits")):
        row = entry["naive"][kind]
        features = row["name"].partition("-")[2]
        figures = _figures(row["f1"], row["p"], row["r"])
        rows.append([label, features, f"{row['thr']:g}", *figures, f"{row['ari']:.3f}" if "ari" in row else ""])
    for row in entry["best"]:
        recipe = row["recipe"]
        setting = recipe.get("threshold", recipe.get("within"))
        width = f", {row['bits']} bits" if row["bits"] else ""
        features = features_of(recipe)
        figures = _figures(row["f1"], row["precision"], row["recall"], row["ari"])
        rows.append([METHODS[row["method"]] + width, features, f"{setting:g}", *figures])
    for name, row in entry["recipes"].items():
        figures = _figures(row["f1"], row["precision"], row["recall"], row["ari"])
        rows.append([f"*{_label(name)}*", "", "", *figures])
    sizes = f"{entry['num_documents']:,} documents, {entry['num_positives']:,} pairs to find."
    note = "Upright rows use the best setting for this set. *Italic* rows use unchanged recipes."
    return f"{sizes} {note}\n\n{_table(rows)}"


def features_of(recipe: Row) -> str:
    """Return a short description of the features: kind of token, shingle width, weights."""
    size = f" of {recipe['chunk_bytes']}" if recipe.get("chunk_bytes") else ""
    return f"{recipe['tokens']}{size} {recipe['shingle']}, {recipe['weights']}"


def _kinds(sets: Row) -> str:
    """Return the best of each method for each kind of text, and the best unchanged recipe."""
    head = ["kind of text", *COLUMNS, "best unchanged recipe"]
    rows = [head, ["---"] * len(head)]
    for kind, name in KINDS.items():
        if name not in sets:
            continue
        figure = "recall" if name == "license-rules" else "f1"
        cells = [_best(sets[name]["best"], methods, figure) for methods in COLUMNS.values()]
        untouched = sets[name]["recipes"]
        winner = max(untouched, key=lambda recipe: untouched[recipe][figure])
        rows.append([kind, *cells, f"{untouched[winner][figure]:.3f} {_label(winner)}"])
    note = (
        "F1 at the best features and setting for the set: tokens, shingle, weights @ threshold (or bits and radius).\n"
        "The last column names the best of the recipes that are used unchanged on all sets, or the first of several "
        "equally good ones."
    )
    return _table(rows) + "\n\n" + note


def _best(rows: list[Row], methods: tuple[str, ...], figure: str) -> str:
    found = [row for row in rows if row["method"] in methods]
    if not found:
        return ""
    row = max(found, key=lambda row: row[figure])
    # For licenses, where the nearest reference is the answer, there is no setting.
    recipe = row.get("recipe", row)
    width = f", {row['bits']} bits" if row["bits"] else ""
    is_distance_only = row["method"] == "simhash-distance"
    setting = recipe.get("within" if is_distance_only else "threshold")
    told = "" if setting is None else f" within {setting}" if is_distance_only else f" @{setting:g}"
    return f"{row[figure]:.3f}: {features_of(recipe)}{width}{told}"


def _licenses(entry: Row) -> str:
    head = ["method", "features", "bits", "answered", "right of all", "right of answered"]
    rows = [head, ["---"] * len(head)]
    for row in entry["best"]:
        features = features_of(row)
        rows.append([METHODS[row["method"]], features, str(row["bits"] or ""), *_answers(row)])
    for name, row in entry["recipes"].items():
        rows.append([f"*{_label(name)}*", "", "", *_answers(row)])
    sizes = (
        f"{entry['num_queries']:,} queries, {entry['num_references']:,} references; the answer is the most similar one."
    )
    return f"{sizes}\n\n{_table(rows)}"


def _answers(row: Row) -> list[str]:
    return [str(row["answered"]), f"{row['recall']:.3f}", f"{row['precision']:.3f}"]


def _figures(*figures: float) -> list[str]:
    return [f"{figure:.3f}" for figure in figures]


def _table(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
