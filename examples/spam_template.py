"""A spam template found: `python examples/spam_template.py`.

Three hundred messages arrive; a hidden template with changing names, sums and links sends forty of them. No two are
equal, but most of their shingles are: the largest group of near-duplicates is the template, and what its members share
word by word is the template's text.
"""

import random
from collections import Counter

import likewise

NAMES = [
    "Alva",
    "Bo",
    "Cara",
    "Dmitri",
    "Edda",
    "Farid",
    "Greta",
    "Hiro",
    "Ines",
    "Joon",
    "Kaja",
    "Liam",
    "Mona",
    "Nils",
    "Oda",
    "Piet",
]
SUBJECTS = [
    "the invoice",
    "the garden",
    "our trip",
    "the choir",
    "your parcel",
    "the meeting",
    "the old bicycle",
    "dinner",
]
WORDS = [
    "tomorrow",
    "maybe",
    "then",
    "after",
    "before",
    "quickly",
    "we",
    "they",
    "bring",
    "take",
    "leave",
    "call",
    "write",
    "again",
    "small",
    "large",
    "red",
    "green",
    "early",
    "late",
    "house",
    "street",
    "train",
    "paper",
    "money",
    "music",
    "window",
    "answer",
    "question",
    "friend",
    "summer",
    "winter",
]
TEMPLATE = (
    "Dear {name}, you have been selected to receive a reward of {sum} euros from our spring draw. To claim your reward "
    "confirm your account within {hours} hours at {link} and keep this message for your records. Yours, the draw team."
)


def messages(generator: random.Random, num_ordinary: int = 260, num_spam: int = 40) -> list[tuple[bool, str]]:
    """Return (is spam, text) of each message, mixed."""
    found = []
    for _ in range(num_ordinary):
        name, subject = generator.choice(NAMES), generator.choice(SUBJECTS)
        body = " ".join(generator.choices(WORDS, k=generator.randint(15, 45)))
        found.append((False, f"Hello {name}, about {subject}: {body}. See you, {generator.choice(NAMES)}"))
    for _ in range(num_spam):
        link = "".join(generator.choices("abcdefghijklmnop", k=8)) + ".example"
        values = {
            "name": generator.choice(NAMES),
            "sum": generator.randint(100, 999),
            "hours": generator.randint(2, 72),
        }
        found.append((True, TEMPLATE.format(link=link, **values)))
    generator.shuffle(found)
    return found


def largest_group(texts: list[str]) -> list[int]:
    """Return the rows of the leader with most near-duplicates, the leader first."""
    removed = likewise.dedup(texts, likewise.Recipe.minhash(threshold=0.5, shingle=2)).removed
    (leader, _), *_ = Counter(removed.column("kept_row").to_pylist()).most_common(1)
    return [leader, *(row["row"] for row in removed.to_pylist() if row["kept_row"] == leader)]


def template_of(texts: list[str]) -> str:
    """Return the text that the first shares with all others, with a gap where any of them differs."""
    pieces = texts[0].split()
    shared = [True] * len(pieces)
    for other in texts[1:]:
        same: Counter[str] = Counter()
        for part in likewise.compare(texts[0], other).alignment:
            if part.is_same:
                same.update(part.a.split())
        for place, piece in enumerate(pieces):
            shared[place] = shared[place] and same[piece] > 0
    marked = [piece if is_shared else "..." for piece, is_shared in zip(pieces, shared, strict=True)]
    return " ".join(piece for place, piece in enumerate(marked) if piece != "..." or marked[place - 1] != "...")


def main() -> None:
    """Find the template among the messages."""
    mixed = messages(random.Random(2))
    texts = [text for _, text in mixed]
    group = largest_group(texts)
    num_found, num_spam = sum(mixed[row][0] for row in group), sum(is_spam for is_spam, _ in mixed)
    print(f"{len(texts)} messages; the largest group has {len(group)}, {num_found} of the {num_spam} from the template")
    print("template:", template_of([texts[row] for row in group]))


if __name__ == "__main__":
    main()
