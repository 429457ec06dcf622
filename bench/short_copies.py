"""Short documents with planted copies and real template siblings: do the copies go and the siblings stay?

    python bench/short_copies.py make OUT [--docstrings DIR] [--siblings FILE]
    python bench/short_copies.py score SET RUN ...

Documents are pieces of Python docstrings; 30 % are copies of earlier pieces with 1 to e changes of one kind. Siblings
are whole texts of one release that share a form and differ in what names them; pairs of them must stay. Natural
near-copies among the pieces are left out, so every removal has a truth. A copy whose words were replaced among its
first 12 counts as neither right nor wrong, since a form with another subject looks the same.
"""

import argparse
import ast
import itertools
import json
import random
import re
import shutil
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import large_corpus

SEED = 1
COPY_SHARE = 0.3
LEAD = 12
# Words of a document, most changes of a copy, kinds of change.
KINDS = ("typo", "inflection", "insertion", "sentence", "replaced")
SETS = {
    **{f"w{words}-e{most}": (words, most, KINDS) for words in (25, 50, 100, 200) for most in (3, 8)},
    **{
        f"w{words}-e{most}-replaced": (words, most, ("replaced",))
        for words, most in ((25, 8), (50, 3), (100, 3), (200, 8))
    },
}
# Number of words in the pool that all sets are cut from, and share of a set's size that are siblings.
POOL = 246_000
SIBLING_SHARE = 0.1
FAMILY = 8
ALIKE = 0.75
SHARED = 1 / 3
WORD = re.compile(r"\w+")
NAMED = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
Document = dict[str, Any]
# A text with its form and name, and its words.
Named = tuple[str, str, str, list[str]]


def words_of(text: str) -> list[str]:
    """Return the lowercase words of a text."""
    return WORD.findall(text.lower())


def docstrings(root: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, docstring) of all modules below a folder, by path, or of a file of JSON Lines (id, text)."""
    if root.is_file():
        with root.open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                yield row["id"], row["text"]
        return
    for path in sorted(root.rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError, RecursionError):
            continue
        yield from _docstrings_below(tree, str(path.relative_to(root).with_suffix("")).replace("/", "."))


def _docstrings_below(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
        text := ast.get_docstring(node)
    ):
        yield name, text
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings_below(child, f"{name}.{child.name}")


def pieces(texts: Iterable[str], num_words: int, others: Iterable[str]) -> Iterator[str]:
    """Yield consecutive pieces of so many words; none shares a third of its word triples with another."""
    seen: dict[tuple[str, ...], list[int]] = defaultdict(list)

    def triples(text: str) -> set[tuple[str, ...]]:
        words = words_of(text)
        return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}

    def remember(number: int, found: set[tuple[str, ...]]) -> None:
        for triple in found:
            # A triple of hundreds of pieces ("if it is") tells nothing and costs much.
            if len(seen[triple]) < 200:
                seen[triple].append(number)

    for number, text in enumerate(others):
        remember(-number, triples(text))
    number = 0
    for text in texts:
        spans = [found.span() for found in WORD.finditer(text)]
        for start in range(0, len(spans) - num_words + 1, num_words):
            piece = text[spans[start][0] : spans[start + num_words - 1][1]]
            found = triples(piece)
            shared = Counter(other for triple in found for other in seen.get(triple, ()))
            if max(shared.values(), default=0) <= SHARED * len(found):
                number += 1
                remember(number, found)
                yield piece


class Editor:
    """Changes pieces as people do: each method makes one change and says which word it was, or -1."""

    def __init__(self, draw: random.Random, pool: list[str]) -> None:
        self._draw = draw
        self._tokens = [word for piece in pool for word in WORD.findall(piece) if len(word) >= 4 and word.isalpha()]
        self._pool = pool

    def change(self, text: str, kind: str, count: int, num_words: int) -> tuple[str, list[int]]:
        """Return the text with so many changes of a kind, and the places of replaced words in the original."""
        spans = [found.span() for found in WORD.finditer(text)]
        usable = [i for i, (a, b) in enumerate(spans) if b - a >= 4 and text[a:b].isalpha()]
        places = self._draw.sample(usable, min(count - (kind == "sentence"), len(usable)))
        for place in sorted(places, reverse=True):
            start, end = spans[place]
            text = text[:start] + self._word(text[start:end], kind) + text[end:]
        if kind == "sentence":
            text = self._with_sentence(text, num_words)
        return text, sorted(places) if kind == "replaced" else []

    def _word(self, word: str, kind: str) -> str:
        if kind == "replaced":
            return next(other for other in self._others() if other.lower() != word.lower())
        if kind == "insertion":
            return f"{word} {next(self._others()).lower()}"
        if kind == "inflection":
            return self._inflected(word)
        return self._misspelled(word)

    def _others(self) -> Iterator[str]:
        while True:
            yield self._draw.choice(self._tokens)

    def _inflected(self, word: str) -> str:
        for ending in ("ing", "ed", "s"):
            if word.endswith(ending) and len(word) > len(ending) + 2:
                return word[: -len(ending)]
        return word + self._draw.choice(("s", "ed", "ing"))

    def _misspelled(self, word: str) -> str:
        place = self._draw.randrange(1, len(word) - 1)
        letter = word[place]
        return word[:place] + self._draw.choice(
            (
                word[place + 1 :],
                letter + word[place:],
                word[place + 1] + letter + word[place + 2 :] if word[place + 1] != letter else word[place + 1 :],
                self._draw.choice([c for c in "abcdefghijklmnopqrstuvwxyz" if c != letter]) + word[place + 1 :],
            )
        )

    def _with_sentence(self, text: str, num_words: int) -> str:
        """Return the text with a sentence of at most a fifth of its words, at its end or (one in four) at its start."""
        most = min(max(num_words // 5, 5), 15)
        source = self._draw.choice(self._pool)
        spans = [found.span() for found in WORD.finditer(source)]
        length = min(self._draw.randint(5, most), len(spans))
        start = self._draw.randrange(len(spans) - length + 1)
        sentence = " ".join(source[spans[start][0] : spans[start + length - 1][1]].split())
        sentence = sentence[0].upper() + sentence[1:] + "."
        return f"{sentence} {text}" if self._draw.random() < 0.25 else f"{text}. {sentence}"


def with_copies(originals: list[str], words: int, most: int, kinds: tuple[str, ...]) -> list[Document]:
    """Return originals and copies of them, a copy after its original, 30 % of all."""
    draw = random.Random(f"{SEED} {words} {most} {kinds}")
    editor = Editor(draw, originals)
    documents: list[Document] = []
    so_far: list[int] = []
    fresh = iter(enumerate(originals))
    while True:
        if so_far and draw.random() < COPY_SHARE:
            number = draw.choice(so_far)
            kind, count = draw.choice(kinds), draw.randint(1, most)
            text, replaced = editor.change(originals[number], kind, count, words)
            documents.append(
                {
                    "id": f"copy-{len(documents)}",
                    "text": text,
                    "of": f"piece-{number}",
                    "kind": kind,
                    "changes": count,
                    "counts": not any(place < LEAD for place in replaced),
                }
            )
        else:
            number, text = next(fresh, (-1, ""))
            if number < 0:
                return documents
            so_far.append(number)
            documents.append({"id": f"piece-{number}", "text": text})


def alignment(a: list[str], b: list[str]) -> float:
    """Return twice the number of words in common order by all words of both."""
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def siblings(named: Iterable[tuple[str, str, str]], num_words: int, most: int) -> list[Document]:
    """Return texts of families of one release: alike, with changed words on both sides, and other names.

    Of API documentation (form `api`) the changed words of both hold words of their own names. At most 8 of a family.
    """
    texts: list[Named] = []
    seen: set[tuple[str, ...]] = set()
    for form, name, text in named:
        words = words_of(text)
        if 0.8 * num_words <= len(words) <= 1.25 * num_words and tuple(words) not in seen:
            seen.add(tuple(words))
            texts.append((form, name, text, words))
    families = list(_families(texts))
    draw = random.Random(f"{SEED} siblings {num_words}")
    draw.shuffle(families)
    kept: list[Document] = []
    per_form: Counter[str] = Counter()
    for number, family in enumerate(families):
        form = family[0][0]
        if per_form[form] + len(family) > most // 2:
            continue
        per_form[form] += len(family)
        for place, (_, name, text, _) in enumerate(family):
            key = f"sibling-{form}-{number}-{place}"
            kept.append({"id": key, "text": text, "family": f"{form}-{number}", "name": name})
    return kept


def _families(texts: list[Named]) -> Iterator[list[Named]]:
    """Yield disjoint families of 2 to 8 texts that are all siblings of each other."""
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    runs = [{tuple(words[i : i + 5]) for i in range(len(words) - 4)} for *_, words in texts]
    for number, found in enumerate(runs):
        for run in found:
            if len(holders[run]) < 100:
                holders[run].append(number)
    taken: set[int] = set()
    for number, found in enumerate(runs):
        if number in taken:
            continue
        shared = Counter(other for run in found for other in holders[run] if other > number and other not in taken)
        family = [number]
        for other, count in shared.most_common(40):
            if len(family) == FAMILY or count < len(found) / 4:
                break
            if all(_are_siblings(texts[one], texts[other]) for one in family):
                family.append(other)
        if len(family) > 1:
            taken.update(family)
            yield [texts[one] for one in family]


def _are_siblings(one: Named, other: Named) -> bool:
    own, theirs = set(one[3]) - set(other[3]), set(other[3]) - set(one[3])
    if one[:2] == other[:2] or one[0] != other[0] or not own or not theirs:
        return False
    names, other_names = _name_words(one[1]), _name_words(other[1])
    is_named = one[0] != "api" or (
        any(_is_named(word, names - other_names) for word in own)
        and any(_is_named(word, other_names - names) for word in theirs)
    )
    return is_named and alignment(one[3], other[3]) >= ALIKE


def _name_words(name: str) -> set[str]:
    parts = [found.lower() for part in name.split(".")[-2:] for found in NAMED.findall(part)]
    return {*parts, *("".join(parts[i : i + 2]) for i in range(len(parts) - 1))}


def _is_named(word: str, names: set[str]) -> bool:
    parts = {found for found in NAMED.findall(word)} | {word}
    return any(part == name or part == f"{name}s" for part in parts for name in names if len(name) > 2)


def synthetic(num_words: int, num_documents: int = 20_000, changes: int = 8) -> list[Document]:
    """Return texts of random words, 30 % copies of earlier texts with 1 to 8 words replaced."""
    draw = random.Random(1)
    vocabulary = [f"w{i}" for i in range(3000)]
    texts: list[list[str]] = []
    documents: list[Document] = []
    for number in range(num_documents):
        if texts and draw.random() < COPY_SHARE:
            origin = draw.randrange(len(texts))
            words = list(texts[origin])
            count = draw.randint(1, changes)
            for place in draw.sample(range(num_words), count):
                words[place] = draw.choice(vocabulary)
            before = documents[origin]
            documents.append(
                {
                    "id": f"d{number}",
                    "of": before.get("of", before["id"]),
                    "kind": "replaced",
                    "changes": count + before.get("changes", 0),
                    "counts": words[:LEAD] == texts[origin][:LEAD] and before.get("counts", True),
                }
            )
        else:
            words = [draw.choice(vocabulary) for _ in range(num_words)]
            documents.append({"id": f"d{number}"})
        texts.append(words)
        documents[-1]["text"] = " ".join(words)
    return documents


def write(folder: Path, documents: list[Document]) -> None:
    """Write docs.jsonl (id, text) and truth.jsonl (all but the texts)."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "docs.jsonl").open("w", encoding="utf-8") as texts, (folder / "truth.jsonl").open("w") as truth:
        for row in documents:
            texts.write(json.dumps({"id": row["id"], "text": row["text"]}, ensure_ascii=False) + "\n")
            truth.write(json.dumps({key: value for key, value in row.items() if key != "text"}) + "\n")


def make(out: Path, root: Path, named: list[tuple[str, str, str]]) -> None:
    """Write all sets into folders."""
    texts = [text for _, text in docstrings(root)]
    random.Random(SEED).shuffle(texts)
    cut: dict[int, tuple[list[Document], list[str]]] = {}
    for name, (words, most, kinds) in SETS.items():
        if words not in cut:
            family = siblings(named, words, round(SIBLING_SHARE * POOL / words / (1 - COPY_SHARE)))
            found = pieces(texts, words, [row["text"] for row in family])
            cut[words] = family, list(itertools.islice(found, POOL // words))
        family, originals = cut[words]
        documents = with_copies(originals, words, most, kinds)
        num_copies = sum("of" in row for row in documents)
        draw = random.Random(SEED)
        for row in family if kinds == KINDS else ():
            documents.insert(draw.randrange(len(documents) + 1), row)
        write(out / name, documents)
        families = Counter(row["family"].split("-")[0] for row in documents if "family" in row)
        print(f"{name}: {len(documents)} documents, {num_copies} copies, siblings {dict(families)}", flush=True)
    for words in (100, 200):
        write(out / f"synthetic-{words}", synthetic(words))


def make_sentences(out: Path, pool: Path, num_documents: int = 20_000) -> None:
    """Write documents of ten sentences, 15 % of them copies with 0 to 3 sentences changed."""
    large_corpus.load_pool(pool)
    large_corpus.make(out / "parts", "plain", num_documents, seed=SEED, processes=1)
    texts = [line for part in sorted((out / "parts").iterdir()) for line in part.read_text("utf-8").splitlines()]
    _, source, changed = large_corpus.describe("plain", SEED, 0, num_documents)
    rows = [
        {
            **json.loads(line),
            **({"of": f"d{origin}", "kind": "sentence", "changes": changes, "counts": True} if origin >= 0 else {}),
        }
        for line, origin, changes in zip(texts, source.tolist(), changed.tolist(), strict=True)
    ]
    shutil.rmtree(out / "parts")
    write(out, rows)


def groups(run: Path) -> dict[str, str]:
    """Return the kept document of each removed one."""
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(run / "removed.parquet", columns=["doc_id", "kept_id"])
    return dict(zip(rows["doc_id"].to_pylist(), rows["kept_id"].to_pylist(), strict=True))


def score(truth: list[Document], kept: dict[str, str]) -> dict[str, Any]:
    """Return shares of copies removed (all, up to 3 changes, by kind) and of wrong removals (all, siblings)."""
    by_id = {row["id"]: row for row in truth}
    # A copy and its original are one text; a sibling is one of its own.
    text_of = {row["id"]: row.get("of", row["id"]) for row in truth}

    def place(key: str) -> str:
        while key in kept:
            key = kept[key]
        return key

    gone: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in truth:
        if "of" in row and row["counts"]:
            is_gone = place(row["id"]) == place(row["of"])
            few = ("few", f"few {row['kind']}") if row["changes"] <= 3 else ()
            for key in ("all", row["kind"], *few):
                gone[key][0] += is_gone
                gone[key][1] += 1
    removed = wrong = of_siblings = 0
    for one, other in kept.items():
        if text_of[one] == text_of[other]:
            removed += all(by_id[key].get("counts", True) for key in (one, other))
            continue
        removed += 1
        wrong += 1
        of_siblings += "family" in by_id[one] and by_id[one].get("family") == by_id[other].get("family")
    return {
        "removed": removed,
        "wrong": wrong,
        "wrong_share": round(wrong / max(removed, 1), 4),
        "wrong_siblings": of_siblings,
        "siblings": sum("family" in row for row in truth),
        "copies_removed": {key: round(a / b, 4) for key, (a, b) in sorted(gone.items())},
        "copies": {key: b for key, (_, b) in sorted(gone.items())},
    }


def main() -> None:
    """Make the sets, or score runs on one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("out", type=Path)
    making.add_argument("--docstrings", type=Path, default=Path(sysconfig.get_path("purelib")))
    making.add_argument("--sentences", type=Path, help="JSON Lines (text) whose sentences make documents of ten")
    making.add_argument("--siblings", type=Path, help="JSON Lines: form ('api' or another), name, text of one release")
    scoring = commands.add_parser("score")
    scoring.add_argument("set", type=Path)
    scoring.add_argument("runs", type=Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "make":
        named = []
        if arguments.siblings:
            with arguments.siblings.open(encoding="utf-8") as lines:
                named = [(row["form"], row["name"], row["text"]) for row in map(json.loads, lines)]
        make(arguments.out, arguments.docstrings, named)
        if arguments.sentences:
            make_sentences(arguments.out / "sentences", arguments.sentences)
        return
    with (arguments.set / "truth.jsonl").open(encoding="utf-8") as lines:
        truth = [json.loads(line) for line in lines]
    for run in arguments.runs:
        print(json.dumps({"set": arguments.set.name, "run": run.name, **score(truth, groups(run))}))


if __name__ == "__main__":
    main()
