"""A small corpus of invented town notices, copied and changed as such texts are: for trying things out.

Run as a script it writes `notices.jsonl`. The town, its people and its notices do not exist.
"""

import json
import random
import sys
from pathlib import Path

PLACES = [
    "Harrow Bridge",
    "Lower Fen",
    "Millbrook",
    "Oster Quay",
    "Saint Alda",
    "Thornfield",
    "West Marl",
    "Yarrow Hill",
]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
SENTENCES = [
    "The library in {place} opens again on {day} after the repair of its roof, with longer hours in the evening.",
    "Readers who hold borrowed books may keep them until the end of the month, and no fee is taken for the delay.",
    "The reading room on the upper floor has new lamps, and twelve desks stand by the windows towards the river.",
    "A choir of {number} voices sings at the market hall on {day}, and everybody who wishes may join the last song.",
    "The ferry to {place} runs every {number} minutes from {day} on, as long as the water stands below the old mark.",
    "Passengers with bicycles are asked to wait at the second gate, where the crew brings them aboard one by one.",
    "Workers found {number} coins under the floor of the mill in {place}, wrapped in cloth as bright as new.",
    "The council of {place} decided on {day} to plant {number} lime trees along the road to the station.",
    "Neighbors who like to water a young tree in its first summer may write their names on a list at the bakery.",
    "The clock on the tower stood still for {number} days, until a watchmaker of {place} found a feather in it.",
    "Swimmers are told that the lake at {place} is cold this year, and that the raft lies further out than it did.",
    "The school in {place} looks for somebody who teaches the violin on {day} afternoons, beginners for the most part.",
    "Because of fog the early bus from {place} was {number} minutes late, and the driver waited for all who ran.",
    "A gray cat with one white paw was seen near the bakery on {day}; whoever misses it may ask at number {number}.",
    "The bridge at {place} will be closed to carts for {number} nights while its planks are changed for oak.",
    "The old cinema shows silent films on {day} evenings, and a pianist from {place} plays to them without notes.",
    "Mushrooms that were gathered in the woods near {place} can be shown to the pharmacist, who knows them all.",
    "The brass band meets on {day} at {number} minutes past seven, and the neighbors have promised not to mind.",
    "Apples from the gardens of {place} are pressed in the yard of the brewery; bring clean bottles and some patience.",
    "The post office moves to the corner of the market, {number} steps from where it was, and keeps its blue door.",
]
CHANGES = [("opens again", "reopens"), ("may ask", "can ask"), ("on the list", "on a list"), ("everybody", "everyone"),
           ("was seen", "has been seen"), ("looks for", "is looking for"), ("minutes", "min"), ("The ", "Our "),
           ("will be", "is going to be"), ("until", "till")]  # fmt: skip


def notices(num_notices: int = 120, seed: int = 4) -> list[dict[str, str]]:
    """Return notices as rows with `id`, `text` and `seen`, a family of variants after the other, mixed.

    Parameters
    ----------
    num_notices : int
        How many distinct ones; about as many again are copies.
    seed : int
        Of the choices.
    """
    draw = random.Random(seed)
    rows: list[dict[str, str]] = []
    for number in range(num_notices):
        text = " ".join(
            line.format(place=draw.choice(PLACES), day=draw.choice(DAYS), number=draw.randint(3, 60))
            for line in draw.sample(SENTENCES, draw.randint(4, 8))
        )
        rows.append({"id": f"notice-{number:03}", "text": text})
        for copy in range(draw.choice([0, 0, 0, 1, 1, 2, 3, 5, 9] if number % 10 else [14])):
            rows.append({"id": f"notice-{number:03}-{'abcdefghijklmnopq'[copy]}", "text": changed(text, draw)})
    draw.shuffle(rows)
    for day, row in enumerate(rows):
        row["seen"] = f"2031-{day // 28 % 12 + 1:02}-{day % 28 + 1:02}"
    return rows


def changed(text: str, draw: random.Random) -> str:
    """Return a text as somebody else would pass it on: a copy, some words changed, something left out or added."""
    kind = draw.randrange(5)
    if kind == 0:
        return text.upper() if draw.random() < 0.3 else text
    for old, new in draw.sample(CHANGES, draw.randint(1, 4)):
        text = text.replace(old, new)
    sentences = text.split(". ")
    if kind >= 2 and len(sentences) > 3:
        del sentences[draw.randrange(len(sentences))]
    if kind >= 3:
        place = draw.choice(PLACES)
        sentences.insert(draw.randrange(len(sentences)), f"So we hear from {place}, where the news travels on foot")
    return ". ".join(sentences)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "notices.jsonl")
    target.write_text("".join(json.dumps(row) + "\n" for row in notices()), encoding="utf-8")
