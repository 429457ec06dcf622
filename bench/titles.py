"""Synthetic short texts with labels: names of companies, product titles, headlines.

    titles.py [--out DIR]

Each entity is written in several ways (typing errors, word order, legal forms, case, punctuation, units): its variants
are near-duplicates of one another. Each has siblings that differ in one word or number that matters (city, sector,
model, capacity, color, amount): these are not. All words are made up or common; nothing is taken from data. `--out`
writes the sets as docs.jsonl and pairs.tsv.
"""

import argparse
import itertools
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

NUM_FAMILIES = 150
MOST_SIBLINGS = 3
MOST_VARIANTS = 3
ONSETS = (
    "b",
    "br",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
    "w",
    "z",
)
VOWELS = ("a", "e", "i", "o", "u", "ei", "au", "ö", "é")
ENDS = ("", "l", "n", "r", "s", "m", "x", "nd", "rk", "lt")
SECTORS = ("Logistics", "Shipping", "Consulting", "Foods", "Software", "Textiles", "Energy", "Insurance", "Machinery")
CITIES = ("Hamburg", "Bremen", "London", "Boston", "Lyon", "Gdansk", "Porto", "Turin", "Oslo", "Leeds")
LEGAL_FORMS = (
    ("GmbH", "G.m.b.H.", "Gesellschaft mbH", ""),
    ("Inc.", "Inc", "Incorporated", ""),
    ("Ltd.", "Ltd", "Limited", ""),
    ("S.A.", "SA", ""),
    ("LLC", "L.L.C.", ""),
    ("AG", ""),
)
PRODUCTS = (
    "phone",
    "tablet",
    "camera",
    "drill",
    "kettle",
    "monitor",
    "printer",
    "headphones",
    "backpack",
    "toothbrush",
)
COLORS = ("black", "white", "silver", "blue", "red", "green")
CAPACITIES = ("16", "32", "64", "128", "256", "512")
EXTRAS = ("new", "original", "free shipping", "best price", "in stock")
SUBJECTS = ("parliament", "city council", "central bank", "port authority", "railway union", "football club", "museum")
VERBS = ("approves", "rejects", "delays", "announces", "cancels")
OBJECTS = (
    "plan for a new bridge",
    "rise of fares",
    "cut of interest rates",
    "sale of the old harbor",
    "strike at the airport",
)


@dataclass(frozen=True)
class Titles:
    """Short texts, and which of them mean the same: equal numbers of `entity`."""

    name: str
    texts: list[str]
    entity: list[int]

    @property
    def ids(self) -> list[str]:
        """Return an id for each text."""
        return [f"{self.name}-{row}" for row in range(len(self.texts))]

    @property
    def positives(self) -> set[tuple[int, int]]:
        """Return pairs of rows of one entity, left < right."""
        by_entity = sorted(range(len(self.texts)), key=self.entity.__getitem__)
        groups = itertools.groupby(by_entity, key=self.entity.__getitem__)
        return {pair for _, rows in groups for pair in itertools.combinations(rows, 2)}


Writer = Callable[[random.Random, Sequence[str]], str]


def word(rng: random.Random) -> str:
    """Return a made-up word of two or three syllables."""
    syllables = rng.randint(2, 3)
    made = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(syllables)) + rng.choice(ENDS)
    return made.capitalize()


def mistyped(text: str, rng: random.Random) -> str:
    """Return the text with one letter omitted, doubled or swapped inside a word of six letters or more, if any."""
    words = text.split(" ")
    long = [i for i, each in enumerate(words) if len(each) > 5 and each.isalpha()]
    if not long:
        return text
    i = rng.choice(long)
    at, each = rng.randrange(1, len(words[i]) - 2), words[i]
    swapped = each[:at] + each[at + 1] + each[at] + each[at + 2 :]
    words[i] = rng.choice((each[:at] + each[at + 1 :], each[: at + 1] + each[at:], swapped))
    return " ".join(words)


def dressed(text: str, rng: random.Random) -> str:
    """Return the text in other case, without accents, with a typing error, or unchanged."""
    return rng.choice(
        (
            lambda: text.upper(),
            lambda: text.lower(),
            lambda: text.replace("ö", "o").replace("é", "e"),
            lambda: mistyped(text, rng),
            lambda: mistyped(text, rng),
            lambda: text,
        )
    )()


def name_fields(rng: random.Random) -> list[str]:
    """Return stem, sector, city, number of the legal form."""
    stem = f"{word(rng)} & {word(rng)}" if rng.random() < 0.3 else word(rng)
    city = rng.choice(CITIES) if rng.random() < 0.5 else ""
    return [stem, rng.choice(SECTORS), city, str(rng.randrange(len(LEGAL_FORMS)))]


def name_sibling(rng: random.Random, fields: Sequence[str]) -> list[str]:
    """Return another sector, another city, or another stem in the same city and sector."""
    stem, sector, city, form = fields
    which = rng.randrange(3)
    if which == 0:
        return [stem, rng.choice([each for each in SECTORS if each != sector]), city, form]
    if which == 1:
        return [stem, sector, rng.choice([each for each in CITIES if each != city]), form]
    return [word(rng), sector, city, form]


def write_name(rng: random.Random, fields: Sequence[str]) -> str:
    """Return one way of writing a company."""
    stem, sector, city, form = fields
    if rng.random() < 0.4:
        stem = stem.replace("&", "and")
    parts = [f"{stem} {sector}", city]
    if rng.random() < 0.2:
        parts[0] = f"{sector} {stem}"
    legal = rng.choice(LEGAL_FORMS[int(form)])
    order = [*parts, legal] if rng.random() < 0.7 else [parts[0], legal, city]
    text = rng.choice((" ", " ", ", ")).join(part for part in order if part)
    return dressed(text, rng)


def product_fields(rng: random.Random) -> list[str]:
    """Return brand, kind, model, capacity, color."""
    model = f"{rng.choice('ABCDEGKLMPRSTXZ')}{rng.randint(1, 99)}{rng.choice(('', '0', '00', 'i', ' Pro'))}"
    return [word(rng), rng.choice(PRODUCTS), model, rng.choice(CAPACITIES), rng.choice(COLORS)]


def product_sibling(rng: random.Random, fields: Sequence[str]) -> list[str]:
    """Return another model, capacity or color."""
    brand, kind, model, capacity, color = fields
    which = rng.randrange(3)
    if which == 0:
        model = next(found for _ in iter(int, 1) if (found := product_fields(rng)[2]) != model)
    elif which == 1:
        capacity = rng.choice([each for each in CAPACITIES if each != capacity])
    else:
        color = rng.choice([each for each in COLORS if each != color])
    return [brand, kind, model, capacity, color]


def write_product(rng: random.Random, fields: Sequence[str]) -> str:
    """Return one way of writing a product."""
    brand, kind, model, capacity, color = fields
    size = rng.choice((f"{capacity}GB", f"{capacity} GB", f"({capacity} GB)"))
    tail = [size, color]
    rng.shuffle(tail)
    head = [brand, kind, model] if rng.random() < 0.5 else [brand, model, kind]
    extra = [rng.choice(EXTRAS)] if rng.random() < 0.3 else []
    text = rng.choice((" ", " ", ", ", " - ")).join([" ".join(head), *tail, *extra])
    return dressed(text, rng)


def headline_fields(rng: random.Random) -> list[str]:
    """Return city, subject, verb, object, number, name."""
    return [
        *(rng.choice(CITIES), rng.choice(SUBJECTS), rng.choice(VERBS), rng.choice(OBJECTS)),
        *(str(rng.randint(2, 99)), f"{word(rng)} {word(rng)}"),
    ]


def headline_sibling(rng: random.Random, fields: Sequence[str]) -> list[str]:
    """Return another city, verb, object, number or name."""
    found, other = list(fields), headline_fields(rng)
    which = rng.choice((0, 2, 3, 4, 5))
    found[which] = other[which]
    return found


def write_headline(rng: random.Random, fields: Sequence[str]) -> str:
    """Return one way of writing a headline."""
    city, subject, verb, what, number, name = fields
    text = rng.choice(
        (
            f"{city} {subject} {verb} {what}, {name} warns of {number} million in costs",
            f"{name} warns of {number} million in costs as {city} {subject} {verb} {what}",
        )
    )
    text = rng.choice(("", "", "Update: ", "Breaking: ")) + text + rng.choice(("", "", ".", " | The Courier"))
    return dressed(text, rng)


KINDS = {
    "titles-names": (name_fields, name_sibling, write_name),
    "titles-products": (product_fields, product_sibling, write_product),
    "titles-headlines": (headline_fields, headline_sibling, write_headline),
}


def make(name: str, seed: int = 18) -> Titles:
    """Return one of the sets, by its name."""
    new, sibling, write = KINDS[name]
    rng = random.Random(f"{name} {seed}")
    texts: list[str] = []
    entity: list[int] = []
    entities: dict[tuple[str, ...], int] = {}
    for _ in range(NUM_FAMILIES):
        family = [new(rng)]
        family += [sibling(rng, family[0]) for _ in range(rng.randint(1, MOST_SIBLINGS))]
        for fields in family:
            number = entities.setdefault(tuple(fields), len(entities))
            variants = {write(rng, fields) for _ in range(rng.randint(1, MOST_VARIANTS))}
            for text in sorted(variants):
                texts.append(text)
                entity.append(number)
    order = list(range(len(texts)))
    rng.shuffle(order)
    return Titles(name, [texts[i] for i in order], [entity[i] for i in order])


def main() -> None:
    """Write the sets."""
    parser = argparse.ArgumentParser(description="Short texts with labels, made by rule.")
    parser.add_argument("--out", type=Path, default=Path("titles"))
    folder: Path = parser.parse_args().out
    for name in KINDS:
        titles = make(name)
        (folder / name).mkdir(parents=True, exist_ok=True)
        rows = [{"id": doc_id, "text": text} for doc_id, text in zip(titles.ids, titles.texts, strict=True)]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name / "docs.jsonl").write_text(lines, encoding="utf-8")
        pairs = "".join(f"{titles.ids[a]}\t{titles.ids[b]}\t1\n" for a, b in sorted(titles.positives))
        (folder / name / "pairs.tsv").write_text("id1\tid2\tlabel\n" + pairs, encoding="utf-8")
        print(f"{name}: {len(titles.texts)} texts, {len(titles.positives)} pairs; {titles.texts[:3]}")


if __name__ == "__main__":
    main()
