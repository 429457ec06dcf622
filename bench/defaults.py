"""Compare candidate defaults for first-time users: thresholds, with and without the rule for short documents.

    python bench/defaults.py --collections DIR [--cache DIR] [--split development] [--write]
    python bench/defaults.py --page-only

Every pair of a set at similarity .2 and above is measured once by the exact join and cached; all candidates are
evaluated from that table. `auto` is what a run with that recipe chooses from the texts, cached too. Sets: the labeled
ones next to the project, the collections of `public_sets.py` in DIR, and the pairs judged by eye, for which a run
chooses from this machine's own documents of their kind.
"""

import argparse
import gzip
import hashlib
import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import labeled
import likewise
from likewise.stages.features import features

LOWEST = 0.2
KINDS = {"plain": {"shingle": 3}, "idf": {"shingle": 2, "weights": "idf"}}
BESIDE = ("en-plag-answers", "en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc", "warc-real", "edits-controlled")
EYE = labeled.SETS / "eye-technical" / "pairs.jsonl.gz"
# Margins for short documents.
MARGINS = (0.0, 0.5, 0.75, 1.0)
RESULTS = Path(__file__).parent / "results" / "defaults.json"


@dataclass(frozen=True)
class Pairs:
    """Pairs of a set at `LOWEST` and above, as arrays of one length.

    Attributes
    ----------
    similarity : ndarray of float64
        Similarity by the exact measure.
    fewest : ndarray of int64
        Number of distinct features of the smaller document.
    label : ndarray of int8
        1, 0 or -1 (ignored).
    num_positives : int
        Pairs labeled 1, including those below `LOWEST`.
    chosen : dict
        By margin, the threshold that a run chooses from the texts, and those of halves of its sample.
    """

    similarity: NDArray[np.float64]
    fewest: NDArray[np.int64]
    label: NDArray[np.int8]
    num_positives: int
    chosen: dict[str, dict[str, object]]

    def scores(self, matches: NDArray[np.bool_]) -> dict[str, float]:
        """Return precision, recall and F1 of the pairs that match."""
        right = int((matches & (self.label == 1)).sum())
        wrong = int((matches & (self.label == 0)).sum())
        precision = right / (right + wrong) if right + wrong else 1.0
        recall = right / self.num_positives if self.num_positives else 1.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return {"precision": precision, "recall": recall, "f1": f1}


def measured(texts: list[str], kind: str) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return all pairs at `LOWEST` and above: rows, similarities, distinct features of the smaller document."""
    recipe = likewise.Recipe.shingles(LOWEST, **KINDS[kind])
    table = likewise.pairs(texts, recipe)
    rows = np.stack([table["row_a"].to_numpy(), table["row_b"].to_numpy()], axis=1)
    counts = np.diff(features(texts, recipe).offsets)
    return rows, table["similarity"].to_numpy(), np.minimum(counts[rows[:, 0]], counts[rows[:, 1]])


def chosen_by_margin(texts: list[str], kind: str, kept: Path) -> dict[str, dict[str, object]]:
    """Return by margin a run's facts on the threshold it chooses, cached in a file."""
    if not kept.exists():
        found = {}
        for margin in MARGINS:
            recipe = likewise.Recipe.minhash("auto", **KINDS[kind], short_margin=margin)
            facts = likewise.dedup(texts, recipe).summary["chosen_threshold"]
            found[f"{margin:g}"] = {name: facts[name] for name in ("threshold", "reason", "clarity", "halves")}
        kept.write_text(json.dumps(found))
    return json.loads(kept.read_text())


def of_set(folder: Path, kind: str, cached: Path) -> Pairs:
    """Return the pairs of a labeled set, closed world: unlisted pairs are different, inside a cluster ignored."""
    name, kept = (cached / f"{folder.name}.{kind}.{ending}" for ending in ("npz", "json"))
    if not name.exists() or not kept.exists():
        ids, texts = labeled.read_texts(folder / "docs.jsonl.gz")
        chosen_by_margin(texts, kind, kept)
        entry = labeled.LabeledSet(folder.name, folder, ids, texts, {})
        rows, similarity, fewest = measured(texts, kind)
        np.savez(
            name,
            similarity=similarity,
            fewest=fewest,
            label=entry.label_of(rows),
            num_positives=entry.num_positives,
        )
    with np.load(name) as found:
        fields = {key: found[key] for key in found}
    return Pairs(
        fields["similarity"],
        fields["fewest"],
        fields["label"],
        int(fields["num_positives"]),
        json.loads(kept.read_text()),
    )


# --- Pairs judged by eye ---------------------------------------------------------------------------------------------


def of_eye(kind: str, cached: Path) -> dict[str, Pairs]:
    """Return for each kind the pairs judged by eye; thresholds are chosen from this machine's documents with theirs."""
    with gzip.open(EYE, "rt", encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    by_pile: dict[str, list[dict[str, str]]] = defaultdict(list)
    for entry in entries:
        by_pile[entry["pile"]].append(entry)
    return {pile: _of_pile(pile, entries, kind, cached) for pile, entries in by_pile.items()}


def _of_pile(pile: str, entries: list[dict[str, str]], kind: str, cached: Path) -> Pairs:
    name, kept = (cached / f"eye-{pile}.{kind}.{ending}" for ending in ("npz", "json"))
    if not name.exists() or not kept.exists():
        own = [entry[side] for entry in entries for side in ("text_a", "text_b")]
        others = [text for text in _pile_of_machine(pile) if text not in set(own)]
        texts = list(dict.fromkeys(own)) + others
        chosen_by_margin(texts, kind, kept)
        row_of = {text: row for row, text in enumerate(texts)}
        rows, similarity, fewest = measured(texts, kind)
        place = {pair: at for at, pair in enumerate(map(tuple, rows.tolist()))}
        read = [tuple(sorted((row_of[entry["text_a"]], row_of[entry["text_b"]]))) for entry in entries]
        at = np.array([place.get(pair, -1) for pair in read])
        np.savez(name, similarity=np.where(at < 0, 0.0, similarity[at]), fewest=fewest[at])
    label = np.array([int(entry["label"]) for entry in entries], np.int8)
    with np.load(name) as found:
        return Pairs(found["similarity"], found["fewest"], label, int((label == 1).sum()), json.loads(kept.read_text()))


def _pile_of_machine(pile: str, num: int = 3000, block: int = 50) -> list[str]:
    """Return documents of this machine of a kind: whole runs of neighboring files, chosen by a hash."""
    if pile == "apt":
        shown = subprocess.run(["apt-cache", "dumpavail"], check=True, stdout=subprocess.PIPE, text=True).stdout
        found = {}
        for entry in shown.split("\n\n"):
            head, has, text = entry.partition("\nDescription-en: ")
            if not has:
                head, has, text = entry.partition("\nDescription: ")
            if has:
                lines = []
                for line in text.split("\n")[1:]:
                    if not line.startswith(" "):
                        break
                    lines.append(line[1:] if line != " ." else "")
                found[head.split("\n")[0]] = "\n".join([text.split("\n")[0], *lines])
        return _blocks(sorted(found), found.__getitem__, num, block)
    crates = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry" / "src"
    roots, endings = {
        "man": (("/usr/share/man",), (".1.gz", ".2.gz", ".3.gz", ".5.gz", ".7.gz", ".8.gz")),
        "doc": (("/usr/share/doc",), ("README", "NEWS", ".txt", ".gz", "README.Debian", "copyright")),
        "rst_md": (("/usr/lib", "/usr/local/lib", crates), (".md", ".rst")),
        "rs": ((crates,), (".rs",)),
        "py": (("/usr/lib/python3", "/usr/lib/python3.11", "/usr/local/lib"), (".py",)),
    }[pile]
    files = sorted(
        str(file)
        for root in roots
        for file in Path(root).rglob("*")
        if file.name.endswith(endings) and file.is_file() and not file.is_symlink() and file.stat().st_size < 300_000
    )
    return _blocks(files, _text_of_file, num, block)


def _text_of_file(name: str) -> str:
    data = Path(name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8", "replace")


def _blocks(names: list[str], read: Callable[[str], str], num: int, block: int) -> list[str]:
    starts = sorted(range(0, len(names), block), key=lambda at: hashlib.sha256(names[at].encode()).digest())
    chosen = [name for at in starts[: num // block] for name in names[at : at + block]]
    return list(dict.fromkeys(text for text in map(read, chosen) if text.strip()))


# --- Rules -----------------------------------------------------------------------------------------------------------


def matching(pairs: Pairs, threshold: float, margin: float) -> NDArray[np.bool_]:
    """Return which pairs match: short documents need more."""
    recipe = likewise.Recipe.shingles(threshold, short_margin=margin)
    return pairs.similarity >= recipe.required_similarity(pairs.fewest)


# --- The table -------------------------------------------------------------------------------------------------------

NO_VALLEY = "no valley"
# (name, kind of features, threshold or None to choose it, threshold if the collection has no valley)
CANDIDATES = (
    ("plain .55", "plain", 0.55, None),
    ("plain .80", "plain", 0.80, None),
    ("idf .52", "idf", 0.52, None),
    ("plain auto", "plain", None, 0.80),
    ("idf auto", "idf", None, 0.80),
    ("idf auto, else .65", "idf", None, 0.65),
)
# Candidates in the table of sets.
SHOWN = (
    *("plain .55, margin 0", "plain .80, margin 0", "idf .52, margin 0", "plain auto, margin 0", "idf auto, margin 0"),
    "idf auto, else .65, margin 1",
)
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "defaults.md"
RAW = PAGE.with_name("defaults-tables.md")
SPLITS = ("development", "opened last")
# Candidates in the short table.
SHORT = ("plain .55, margin 0", "plain .55, margin 1", "plain .80, margin 0", "idf .52, margin 0", "idf auto, margin 0",
         "idf auto, else .65, margin 0", "idf auto, else .65, margin 1")  # fmt: skip
THRESHOLDS = np.arange(20, 101) / 100
Sets = dict[str, dict[str, Pairs]]
Eye = dict[str, dict[str, Pairs]]


def threshold_of(pairs: Pairs, margin: float, threshold: float | None, cautious: float | None) -> float:
    """Return the threshold of a candidate on a collection."""
    if threshold is not None:
        return threshold
    facts = pairs.chosen[f"{margin:g}"]
    found = cautious if facts["reason"] == NO_VALLEY else facts["threshold"]
    return float(found)  # type: ignore[arg-type]


def row_of(pairs: Pairs, margin: float, threshold: float | None, cautious: float | None) -> dict[str, object]:
    """Return the threshold and scores of a candidate on a set, and a run's facts on a threshold it chose."""
    at = threshold_of(pairs, margin, threshold, cautious)
    row: dict[str, object] = {"threshold": at, **pairs.scores(matching(pairs, at, margin))}
    return row if threshold is not None else row | {"chosen": pairs.chosen[f"{margin:g}"]}


def eye_row(eye: dict[str, Pairs], margin: float, threshold: float | None, cautious: float | None) -> dict[str, object]:
    """Return scores over the pairs of all kinds, each at the threshold of its kind."""
    right = wrong = positives = 0
    thresholds = {}
    for pile, judged in eye.items():
        thresholds[pile] = threshold_of(judged, margin, threshold, cautious)
        matches = matching(judged, thresholds[pile], margin)
        right += int((matches & (judged.label == 1)).sum())
        wrong += int((matches & (judged.label == 0)).sum())
        positives += judged.num_positives
    precision, recall = right / max(1, right + wrong), right / positives
    return {
        "thresholds": thresholds,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(1e-9, precision + recall),
    }


def best_of(kinds: dict[str, Pairs]) -> float:
    """Return the best F1 over both kinds of features and all thresholds, without the rule."""
    return max(
        pairs.scores(pairs.similarity >= threshold)["f1"] for pairs in kinds.values() for threshold in THRESHOLDS
    )


def table(sets: Sets, eye: Eye) -> dict[str, object]:
    """Return every candidate with every margin on every set."""
    best = {name: best_of(kinds) for name, kinds in sets.items()}
    rows: dict[str, dict[str, object]] = {}
    for name, kind, threshold, cautious in CANDIDATES:
        for margin in MARGINS:
            by_set = {one: row_of(kinds[kind], margin, threshold, cautious) for one, kinds in sets.items()}
            gaps = {one: best[one] - float(row["f1"]) for one, row in by_set.items()}  # type: ignore[arg-type]
            rows[f"{name}, margin {margin:g}"] = {
                "sets": by_set,
                "eye-technical": eye_row(eye[kind], margin, threshold, cautious),
                "mean_gap": float(np.mean(list(gaps.values()))),
                "median_gap": float(np.median(list(gaps.values()))),
                "within_01": sum(gap <= 0.01 for gap in gaps.values()),
                "worst": max(gaps, key=lambda one: gaps[one]),
                "worst_gap": max(gaps.values()),
            }
    return {"best": best, "rows": rows, "left_out": _left_out(sets, best)}


def _left_out(sets: Sets, best: dict[str, float]) -> dict[str, dict[str, float]]:
    """Return for each set the gap of `idf auto, else .65` with the margin that is best for the other sets."""
    gap = {
        (one, margin): best[one] - float(row_of(kinds["idf"], margin, None, 0.65)["f1"])  # type: ignore[arg-type]
        for one, kinds in sets.items()
        for margin in MARGINS
    }
    found = {}
    for one in sets:
        others = [other for other in sets if other != one]
        margin = min(MARGINS, key=lambda margin: float(np.mean([gap[other, margin] for other in others])))
        found[one] = {"margin": margin, "gap": gap[one, margin]}
    return found


def collections_of(folder: Path, split: str) -> Iterator[Path]:
    """Yield the folders of the collections of a split."""
    for facts in sorted(folder.glob("*/facts.json")):
        if json.loads(facts.read_text())["split"] == split:
            yield facts.parent


def loaded(folders: list[Path], cached: Path) -> Sets:
    """Return the pairs of each set, by both kinds of features."""
    cached.mkdir(parents=True, exist_ok=True)
    return {folder.name: {kind: of_set(folder, kind, cached) for kind in KINDS} for folder in folders}


def main() -> None:
    """Print the table of a split; with --write also store it in the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collections", type=Path)
    parser.add_argument("--page-only", action="store_true", help="write the pages from the results and stop")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--split", default="development", choices=["development", "opened last"])
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.page_only:
        write_pages(json.loads(RESULTS.read_text()))
        return
    if given.collections is None:
        parser.error("--collections is missing")
    cached = given.cache or given.collections / "pairs"
    folders = list(collections_of(given.collections, given.split))
    if given.split == "development":
        folders = [labeled.folder_of(name) for name in BESIDE] + folders
    cached.mkdir(parents=True, exist_ok=True)
    found = table(loaded(folders, cached), {kind: of_eye(kind, cached) for kind in KINDS})
    for line in lines_of(found):
        print(line)
    if given.write:
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results = {**kept, given.split: _rounded(found)}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_pages(results)


def write_pages(results: dict[str, object]) -> None:
    """Write the short table into the summary, and the tables of both splits into the page next to it."""
    for split in SPLITS:
        if split in results:
            _insert(RAW, split, lines_of(results[split]))  # type: ignore[arg-type]
    if all(split in results for split in SPLITS):
        _insert(PAGE, "summary", short_lines(results))


def _insert(page: Path, name: str, lines: Iterable[str]) -> None:
    begin, end = (f"<!-- {name}: {mark} (written by bench/defaults.py) -->" for mark in ("begin", "end"))
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text("\n".join([before + begin, "", *lines, "", end]) + rest.partition(end)[2], encoding="utf-8")


def short_lines(results: dict[str, object]) -> Iterator[str]:
    """Yield the table of the summary: mean differences to the best F1 of each split, and scores by eye."""
    splits = [results[split]["rows"] for split in SPLITS]  # type: ignore[index]
    yield "| candidate | below the best F1, development | below the best F1, opened last | precision by eye | recall |"
    yield "|---|---|---|---|---|"
    for name in SHORT:
        gaps = [f"{rows[name]['mean_gap']:.3f}" for rows in splits]
        eye = splits[0][name]["eye-technical"]
        yield f"| {name} | {' | '.join(gaps)} | {eye['precision']:.2f} | {eye['recall']:.2f} |"


def lines_of(found: dict[str, object]) -> Iterator[str]:
    """Yield the table as Markdown: a line for each candidate, then F1 and threshold on each set."""
    rows: dict[str, dict[str, object]] = found["rows"]  # type: ignore[assignment]
    best: dict[str, float] = found["best"]  # type: ignore[assignment]
    yield "| candidate | F1 below the best: mean | median | worst | sets within .01 | by eye: P | R | F1 |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in rows:
        row, eye = rows[name], rows[name]["eye-technical"]
        yield (
            f"| {name} | {row['mean_gap']:.3f} | {row['median_gap']:.3f} | {row['worst_gap']:.3f} ({row['worst']}) "
            f"| {row['within_01']} of {len(best)} "
            f"| {eye['precision']:.2f} | {eye['recall']:.2f} | {eye['f1']:.3f} |"  # type: ignore[index]
        )
    yield ""
    yield "| set | best F1 | " + " | ".join(SHOWN) + " |"
    yield "|---|---|" + "---|" * len(SHOWN)
    for one in best:
        cells = []
        for name in SHOWN:
            row = rows[name]["sets"][one]  # type: ignore[index]
            cells.append(f"{row['f1']:.3f} ({row['precision']:.2f}, {row['recall']:.2f}) @{row['threshold']:.2f}")
        yield f"| {one} | {best[one]:.3f} | " + " | ".join(cells) + " |"


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    # Six digits, so that a page written from the results rounds like one written from the figures.
    return round(value, 6) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
