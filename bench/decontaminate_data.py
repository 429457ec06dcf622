"""Synthetic evaluation items, and a corpus in which some of them are planted.

Items have the fields question, answer and passage. Questions are sentences of held-out prose, or word problems filled
in from templates; answers are held-out sentences; every fourth item has a passage. No held-out text shares
eight consecutive words with the corpus or another item: whether such a document is contaminated would be a matter of
opinion. Each planted document is one of KINDS. Twins are not copies: word problems of the same templates with other
names, objects and numbers, and questions with every number and name replaced.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

SENTENCE_END = re.compile(r"(?<=[.!?]) +")

NAMES = tuple(
    [
        "Amara",
        "Boris",
        "Chloe",
        "Dmitri",
        "Elena",
        "Farid",
        "Greta",
        "Hugo",
        "Ingrid",
        "Jamal",
        "Keiko",
        "Luca",
        "Marta",
        "Nadia",
        "Oscar",
        "Priya",
        "Quentin",
        "Rosa",
        "Stefan",
        "Tomas",
        "Ulla",
        "Viktor",
        "Wanda",
        "Ximena",
        "Yusuf",
        "Zelda",
        "Anders",
        "Bianca",
        "Cedric",
        "Dolores",
    ]
)
OBJECTS = [
    "apples",
    "lanterns",
    "notebooks",
    "bricks",
    "tickets",
    "bottles",
    "melons",
    "candles",
    "stamps",
    "chairs",
    "ribbons",
    "pencils",
    "baskets",
    "tiles",
    "coins",
    "ladders",
    "blankets",
    "kettles",
    "buttons",
    "marbles",
    "carrots",
    "mirrors",
    "helmets",
    "whistles",
]
PLACES = [
    "harbor",
    "market",
    "library",
    "stadium",
    "bakery",
    "museum",
    "garage",
    "theater",
    "orchard",
    "station",
    "warehouse",
    "school",
    "bridge",
    "factory",
    "hospital",
    "castle",
]

# {a} and {b} are names, {x} and {y} objects, {p} a place, {i} to {l} numbers.
TEMPLATES = (
    "{a} buys {i} boxes of {x} at the {p}. Each box holds {j} {x}. On the way home {a} gives {k} {x} to {b} and "
    "loses {l} more. How many {x} does {a} have left at the end of the day?",
    "A train leaves the {p} at {i} o'clock with {j} passengers. At the first stop {k} passengers get off and {l} "
    "get on. If {a} counts everyone on board after that stop, how many passengers does {a} count?",
    "{a} can paint {i} {x} in {j} hours, and {b} can paint {k} {x} in the same time. Working together at these "
    "rates in the {p}, how many hours do they need to paint {l} {x}?",
    "The {p} sells {x} for {i} dollars each and {y} for {j} dollars each. Yesterday {a} bought {k} {x} and {l} "
    "{y} there and paid with a single bill of five hundred dollars. How much change did {a} receive?",
    "At the {p}, {a} stacks {x} in rows. The first row has {i} {x}, and every following row has {j} more than the"
    " row before it. After stacking {k} rows, {a} removes {l} {x} that are damaged. How many {x} remain?",
    "{a} reads {i} pages of a book about {x} every morning and {j} pages every evening. The book, which {b} "
    "borrowed from the {p}, has {k} pages in all. How many days pass before {a} finishes it, if {l} pages are "
    "already read?",
    "A tank behind the {p} holds {i} liters. Water flows in through one pipe at {j} liters a minute and leaks out"
    " at {k} liters a minute. {a} opens the pipe when the tank holds {l} liters. After how many minutes is the "
    "tank full?",
    "{a} and {b} share {i} {x} in the ratio of {j} to {k}. Later {b} sells {l} of them at the {p}. What fraction "
    "of the {x} that {b} received at the beginning is still unsold?",
    "The distance from the {p} to the house of {a} is {i} kilometers. {a} walks {j} kilometers an hour for the "
    "first {k} kilometers and then rides a bicycle at {l} kilometers an hour. How long does the whole journey "
    "take?",
    "In a drawer at the {p} there are {i} red {x}, {j} blue {x} and {k} green {x}. Without looking, {a} takes {l}"
    " of them out one after another and does not put them back. What is the probability that all of them are red?",
)  # fmt: skip
KINDS = ("verbatim", "wrapped", "embedded", "list", "5% changed", "10% changed", "answer only")
TWINS = ("twins of many", "twins of one", "swapped")
NUM_SHARED = 8
WORD = re.compile(r"\w+")
# A number, or a name inside a sentence.
SLOT = re.compile(r"\d+(?:[.,]\d+)*|(?<=[a-z,] )[A-Z][a-z]+\b")


@dataclass
class Planted:
    """A corpus with planted items.

    Parameters
    ----------
    items : list of dict
        Items with id, question, answer and passage.
    documents : list of (str, str)
        Id and text of each document, in order.
    planted : dict of str to (str, str, str)
        Kind of each planted document, and id and field of its item; both empty for twins.
    """

    items: list[dict[str, str]] = field(default_factory=list)
    documents: list[tuple[str, str]] = field(default_factory=list)
    planted: dict[str, tuple[str, str, str]] = field(default_factory=dict)


def _problem(template: str, rng: random.Random) -> str:
    a, b = rng.sample(NAMES, 2)
    x, y = rng.sample(OBJECTS, 2)
    numbers = {name: rng.randrange(2, 500) for name in "ijkl"}
    return template.format(a=a, b=b, x=x, y=y, p=rng.choice(PLACES), **numbers)


def _case(text: str, rng: random.Random) -> str:
    """Return the text in other case and punctuation."""
    text = rng.choice([str.upper, str.lower, str.title])(text)
    return rng.choice([text.replace(",", " -"), text.replace(".", " ;"), text.replace(" ", "  "), f"*{text}*"])


def _wrapped(text: str) -> str:
    words = text.split()
    return "\n".join(" ".join(words[i : i + 8]) for i in range(0, len(words), 8))


def _listed(text: str, rng: random.Random) -> str:
    words, lines, at = text.split(), [], 0
    while at < len(words):
        width = rng.randrange(5, 11)
        lines.append(f"{len(lines) + 1}. {' '.join(words[at : at + width])}")
        at += width
    return "\n".join(lines)


def _edited(text: str, rate: float, vocabulary: list[str], rng: random.Random) -> str:
    """Return a copy with exactly this share of its words, rounded up, replaced, deleted or followed by another one."""
    words = text.split()
    for place in sorted(rng.sample(range(len(words)), -(-len(words) * round(rate * 100) // 100)), reverse=True):
        draw = rng.random()
        if draw < 0.5:
            words[place] = rng.choice(vocabulary)
        elif draw < 0.75:
            del words[place]
        else:
            words.insert(place + 1, rng.choice(vocabulary))
    return " ".join(words)


def grams(text: str) -> set[tuple[str, ...]]:
    """Return every eight consecutive words."""
    words = WORD.findall(text.lower())
    return {tuple(words[i : i + NUM_SHARED]) for i in range(len(words) - NUM_SHARED + 1)}


def held_out(documents: list[str], wanted: int, used: Counter[tuple[str, ...]]) -> tuple[list[str], list[str]]:
    """Return sentences and passages of the first documents that share no eight consecutive words with other text."""
    sentences: list[str] = []
    passages: list[str] = []
    for text in documents:
        for paragraph in text.split("\n\n"):
            if 80 <= len(paragraph.split()) <= 300:
                found, target = [paragraph], passages
            else:
                found, target = SENTENCE_END.split(paragraph), sentences
            for part in found:
                own = grams(part)
                if len(part.split()) >= 16 and len(own) >= 9 and all(used[gram] == 1 for gram in own):
                    target.append(part)
        if len(sentences) >= wanted and len(passages) >= wanted:
            break
    return sentences, passages


def _swapped(text: str, others: dict[bool, list[str]], rng: random.Random) -> str:
    """Return the text with every number and name replaced, consistently."""
    new: dict[str, str] = {}
    for old in sorted(set(SLOT.findall(text))):
        new[old] = rng.choice([other for other in others[old[0].isdigit()] if other != old])
    return SLOT.sub(lambda slot: new[slot[0]], text)


def make(path: Path, num_items: int, num_each: int, seed: int = 1) -> Planted:
    """Make items and plant `num_each` of them in each way, in the documents of a JSON Lines file."""
    rng = random.Random(seed)
    with path.with_suffix(".planted.tsv").open(encoding="utf-8") as file:
        copies = {line.split("\t")[0] for line in file}
    with path.open(encoding="utf-8") as file:
        documents = [(entry["id"], entry["text"]) for entry in map(json.loads, file) if entry["id"] not in copies]
    rng.shuffle(documents)
    # The last third is held out.
    num_rest = len(documents) * 2 // 3
    rest, held = documents[:num_rest], [text for _, text in documents[num_rest:]]
    used = Counter(gram for _, text in documents for gram in grams(text))
    sentences, passages = held_out(held, 3 * num_items, used)
    made = Planted()
    vocabulary = [word for _, text in rest[:200] for word in text.split()]
    slots = sorted({slot for _, text in rest[:2000] for slot in SLOT.findall(text)})
    others = {is_number: [slot for slot in slots if slot[0].isdigit() == is_number] for is_number in (False, True)}
    lone = len(TEMPLATES) // 2
    for number in range(num_items):
        if number % 2:
            question = sentences.pop()
        else:
            # The first templates have many items each, the others one.
            own = lone + number // 2
            question = _problem(TEMPLATES[own if own < len(TEMPLATES) else rng.randrange(lone)], rng)
        passage = passages.pop() if number % 4 == 3 else ""
        made.items.append({"id": f"item-{number}", "question": question, "answer": sentences.pop(), "passage": passage})
    plant: dict[str, Callable[[str], str]] = {
        "verbatim": str,
        "wrapped": lambda text: _wrapped(_case(text, rng)),
        "embedded": str,
        "list": lambda text: _listed(text, rng),
        "5% changed": lambda text: _edited(text, 0.05, vocabulary, rng),
        "10% changed": lambda text: _edited(text, 0.10, vocabulary, rng),
        "answer only": str,
    }
    carriers = rest[: num_each * (len(KINDS) + len(TWINS))]
    made.documents = rest[len(carriers) :]

    def put(kind: str, text: str, item: str, part: str) -> None:
        doc_id, carrier = carriers.pop()
        doc_id = f"planted-{doc_id}"
        paragraphs = carrier.split("\n\n")
        if kind == "embedded":
            while sum(len(p.split()) for p in paragraphs) < 5000:
                paragraphs += rng.choice(rest)[1].split("\n\n")
        paragraphs.insert(rng.randrange(len(paragraphs) + 1), text)
        made.documents.append((doc_id, "\n\n".join(paragraphs)))
        made.planted[doc_id] = (kind, item, part)

    for kind in KINDS:
        for item in rng.sample(made.items, num_each):
            part = (
                "answer"
                if kind == "answer only"
                else "passage"
                if item["passage"] and rng.random() < 0.5
                else "question"
            )
            put(kind, plant[kind](item[part]), item["id"], part)
    for i in range(num_each):
        put(TWINS[0], _problem(TEMPLATES[i % lone], rng), "", "")
    for template in TEMPLATES[lone:]:
        put(TWINS[1], _problem(template, rng), "", "")
    # At least a tenth of the words, so that a twin differs more than a copy with a tenth of its words changed.
    fit = [
        text for item in made.items for text in (item["question"], item["answer"])
        if len(SLOT.findall(text)) >= max(3, len(text.split()) / 8) and not text.startswith(tuple(NAMES))
    ]  # fmt: skip
    for text in rng.sample(fit, min(num_each, len(fit))):
        put(TWINS[2], _swapped(text, others, rng), "", "")
    rng.shuffle(made.documents)
    return made
