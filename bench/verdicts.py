"""Are removals right where texts share a form, and does a chosen threshold stay put?

    verdicts.py [--options JSON] [--set NAME ...] [--score] [--stability] [--sets DIR] [--extra DIR ...]
                [--results FILE]

`--score`: pairs in one group of a run against the labels of the sets by identity and release, in which texts that ship
together are different however alike; over all pairs, and over near ones (pairs with the same words left out). Then the
older sets, which must not lose.
`--stability`: the threshold that a run chooses, and whether it says that it is uncertain, for ten sets: halves, other
orders, one document in a thousand left out, and names and addresses replaced (some .05 % of words).
`--options`: parameters of `Recipe.from_options`; without them the default recipe. `--extra`: folders of further sets.
Sets that are absent are named and skipped. Without `--score` and `--stability` both are done.
"""

import argparse
import gzip
import itertools
import json
import random
import re
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import likewise
from labeled import SETS

FORMS = ("laws-de", "descriptions-it", "man-nine", "api-gtk", "readmes-crates", "licenses-spdx")
OLDER = (
    "en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc", "edits-controlled", "en-plag-answers", "warc-real",
)  # fmt: skip
TEN = (*FORMS, *OLDER[:4])
# A threshold moved if it differs by more.
WITHIN = 0.03
REPLACED_SHARE = 0.0005
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Labeled:
    """Documents of a set and its labels, as the set's README states them.

    Attributes
    ----------
    ids, texts : list of str
        Documents.
    label : dict
        (id, id) in order to 1, 0 or -1 (ignored).
    cluster : dict
        Id of each document that has a duplicate to its cluster.
    """

    ids: list[str]
    texts: list[str]
    label: dict[tuple[str, str], int]
    cluster: dict[str, str]

    def judge(self, one: str, other: str) -> int:
        """Return the label of two documents: unlisted ones are negative, except inside one cluster."""
        listed = self.label.get((min(one, other), max(one, other)))
        if listed is not None:
            return listed
        return -1 if one in self.cluster and self.cluster[one] == self.cluster.get(other) else 0


def read_set(folder: Path) -> Labeled:
    """Read a set of `docs.jsonl.gz`, `pairs.tsv` and `clusters.tsv`."""
    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    label = {}
    for line in (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        one, other, verdict, *_ = line.split("\t")
        label[min(one, other), max(one, other)] = int(verdict)
    cluster = {}
    for line in (folder / "clusters.tsv").read_text(encoding="utf-8").splitlines():
        name, key = line.split("\t")[:2]
        cluster[key] = name
    return Labeled([row["id"] for row in rows], [row["text"] for row in rows], label, cluster)


def run(texts: list[str], options: dict[str, Any] | None) -> likewise.Deduplication:
    """Remove duplicates with the default recipe, or one of these options."""
    return likewise.dedup(texts, likewise.Recipe.from_options(**options) if options else None, threads=1)


def scored(entry: Labeled, options: dict[str, Any] | None) -> dict[str, Any]:
    """Return figures over pairs of documents in one group of a run, all and near."""
    start = time.perf_counter()
    result = run(entry.texts, options)
    seconds = time.perf_counter() - start
    groups = defaultdict(list)
    for row, group in enumerate(result.groups.to_pylist()):
        groups[group].append(row)
    words = [" ".join(text.lower().split()) for text in entry.texts]
    hits: Counter[str] = Counter()
    for group in groups.values():
        for one, other in itertools.combinations(group, 2):
            verdict = entry.judge(entry.ids[one], entry.ids[other])
            if verdict >= 0:
                hits[f"all {verdict}"] += 1
                hits[f"near {verdict}"] += words[one] != words[other]
    row_of = {key: row for row, key in enumerate(entry.ids)}
    positive = [pair for pair, verdict in entry.label.items() if verdict == 1]
    near = sum(words[row_of[one]] != words[row_of[other]] for one, other in positive)
    return {
        "documents": len(entry.ids),
        "removed": int((~result.kept).sum()),
        **{f"all_{key}": value for key, value in _figures(hits["all 1"], hits["all 0"], len(positive)).items()},
        **{f"near_{key}": value for key, value in _figures(hits["near 1"], hits["near 0"], near).items()},
        **chosen(result),
        "seconds": round(seconds, 2),
    }


def _figures(right: int, wrong: int, positive: int) -> dict[str, float]:
    return {
        "precision": round(right / max(right + wrong, 1), 4),
        "recall": round(right / max(positive, 1), 4),
        "f1": round(2 * right / max(right + wrong + positive, 1), 4),
    }


def chosen(result: likewise.Deduplication) -> dict[str, Any]:
    """Return the threshold that a run chose, why, and whether it says that it is uncertain."""
    choice = result.summary.get("chosen_threshold") or {}
    return {
        "threshold": choice.get("threshold"),
        "reason": choice.get("reason"),
        "is_uncertain": None if choice.get("is_stable") is None else not choice["is_stable"],
    }


def with_names_replaced(texts: list[str], draw: random.Random) -> list[str]:
    """Return the texts with addresses and rare capitalized words replaced, some .05 % of all words."""
    texts = [ADDRESS.sub("name@example.org", text) for text in texts]
    holders = Counter(word for text in texts for word in set(WORD.findall(text)))
    names = [word for word, count in sorted(holders.items()) if word[:1].isupper() and word[1:].islower() and count < 9]
    draw.shuffle(names)
    left = REPLACED_SHARE * sum(len(WORD.findall(text)) for text in texts)
    replaced = set()
    for name in names:
        left -= holders[name]
        if left < 0:
            break
        replaced.add(name)
    return [WORD.sub(lambda found: "Name" if found[0] in replaced else found[0], text) for text in texts]


def stability(texts: list[str], options: dict[str, Any] | None) -> dict[str, Any]:
    """Return what runs on changed collections choose."""
    rows: dict[str, dict[str, Any]] = {"whole": chosen(run(texts, options))}
    for seed in (1, 2):
        order = list(range(len(texts)))
        random.Random(seed).shuffle(order)
        middle = len(order) // 2
        few = sorted(order[max(len(order) // 1000, 1) :])
        for name, part in (
            (f"half {seed}a", sorted(order[:middle])),
            (f"half {seed}b", sorted(order[middle:])),
            (f"shuffled {seed}", order),
            (f"one per mille less {seed}", few),
        ):
            rows[name] = chosen(run([texts[row] for row in part], options))
    rows["names replaced"] = chosen(run(with_names_replaced(texts, random.Random(1)), options))
    found = [row["threshold"] for row in rows.values() if row["threshold"] is not None]
    whole = rows["whole"]
    # Halves hold fewer copies, so what a run should say is judged by the other changes too.
    moved = round(max(abs(value - whole["threshold"]) for value in found), 4) if whole["threshold"] is not None else 0.0
    return {
        "runs": rows,
        "lowest": min(found, default=None),
        "highest": max(found, default=None),
        "moved": moved,
        "says_so": whole["is_uncertain"],
        "is_right": moved <= WITHIN or bool(whole["is_uncertain"]),
    }


def _mean(rows: list[dict[str, Any]], name: str) -> float:
    return round(sum(row[name] for row in rows) / max(len(rows), 1), 4)


def main() -> None:
    """Measure, print lines, and write a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--options", type=json.loads, help='for instance {"method": "minhash", "threshold": 0.55}')
    parser.add_argument("--set", action="append")
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--stability", action="store_true")
    parser.add_argument("--sets", type=Path, default=SETS, help="folder of the labeled sets")
    parser.add_argument("--extra", type=Path, nargs="+", default=[])
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    do_all = not (arguments.score or arguments.stability)
    folders = {name: arguments.sets / name for name in (*FORMS, *OLDER)} | {path.name: path for path in arguments.extra}
    for name in [name for name, path in folders.items() if not (path / "docs.jsonl.gz").exists()]:
        print(f"{name}: skipped, not at {folders.pop(name)}")
    results: dict[str, Any] = {"scores": {}, "means": {}, "stability": {}}

    def save() -> None:
        if arguments.results:
            arguments.results.write_text(json.dumps(results, indent=1) + "\n")

    wanted = set(arguments.set or folders)
    for name, folder in folders.items():
        if name in wanted and (arguments.score or do_all):
            results["scores"][name] = row = scored(read_set(folder), arguments.options)
            print(
                f"{name:20} near F1 {row['near_f1']:.3f} P {row['near_precision']:.3f} R {row['near_recall']:.3f}, "
                f"all F1 {row['all_f1']:.3f} P {row['all_precision']:.3f}, {row['removed']} of {row['documents']} "
                f"removed at {row['threshold']} ({row['reason'] or 'valley'}), {row['seconds']} s",
                flush=True,
            )
            save()
    extra = tuple(path.name for path in arguments.extra)
    for title, group in (("forms", FORMS), ("older", OLDER), ("extra", extra)):
        if rows := [results["scores"][name] for name in group if name in results["scores"]]:
            means = {key: _mean(rows, key) for key in ("near_f1", "near_precision", "near_recall", "all_f1")}
            results["means"][title] = means
            print(f"mean of {len(rows)} {title}: {means}", flush=True)
    for name in TEN:
        if name in wanted and name in folders and (arguments.stability or do_all):
            results["stability"][name] = row = stability(read_set(folders[name]).texts, arguments.options)
            values = ", ".join(
                f"{key} {run['threshold']}{'?' if run['is_uncertain'] else ''} {run['reason'] or ''}".rstrip()
                for key, run in row["runs"].items()
            )
            print(f"{name:20} {'right' if row['is_right'] else 'WRONG'}: moved {row['moved']}: {values}", flush=True)
            save()
    if rows := list(results["stability"].values()):
        results["means"]["stability"] = {
            "sets": len(rows),
            "within": sum(row["moved"] <= WITHIN for row in rows),
            "right": sum(row["is_right"] for row in rows),
            "say_uncertain": sum(bool(row["says_so"]) for row in rows),
        }
        print(f"stability: {results['means']['stability']}")
    save()


if __name__ == "__main__":
    main()
