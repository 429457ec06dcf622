"""Measure what retrieval loses and saves if near-duplicate chunks are dropped before indexing.

    retrieval.py SET... [--questions N] [--words N]

Each SET is a file of documents (JSON Lines, gzip allowed, with a field `text`) with near-copies, such as the pages of
several versions of a manual. They are cut into chunks of about N words (default 100) at ends of paragraphs or lines,
and near-duplicate chunks are dropped by the rules of the integrations. Both collections are ranked by BM25. A question
is a sentence of a chunk without its rarest word, which is the answer; the seed is fixed. It is answered if a chunk
among the first ten contains the answer with the two words on each side of it. Writes results/retrieval.json and the
table of docs/howto/langchain.md.
"""

import argparse
import gzip
import json
import math
import random
import re
from collections import Counter, defaultdict
from pathlib import Path

import machine
from likewise.integrations.chunks import ChunkRules
from rivals import table

RESULTS = Path(__file__).parent / "results" / "retrieval.json"
PAGE = Path(__file__).parent.parent / "docs" / "howto" / "langchain.md"
TOP = 10


def words_of(text):
    return re.findall(r"\w+", text.lower())


def chunks_of(text, num_words):
    """Return paragraphs joined up to a number of words."""
    chunk, held = [], 0
    for paragraph in re.split(r"\n\s*\n" if "\n\n" in text else r"\n", text):
        chunk.append(paragraph)
        held += len(words_of(paragraph))
        if held >= num_words:
            yield "\n\n".join(chunk)
            chunk, held = [], 0
    if held:
        yield "\n\n".join(chunk)


class Bm25:
    """Okapi BM25, k1 = 1.2, b = 0.75."""

    def __init__(self, chunks):
        self.words = [words_of(chunk) for chunk in chunks]
        self.mean = sum(map(len, self.words)) / len(chunks)
        self.postings = defaultdict(list)
        for number, words in enumerate(self.words):
            for word, count in Counter(words).items():
                self.postings[word].append((number, count))

    def top(self, question):
        scores, num = Counter(), len(self.words)
        for word in set(words_of(question)):
            found = self.postings.get(word, ())
            rarity = math.log(1 + (num - len(found) + 0.5) / (len(found) + 0.5))
            for number, count in found:
                length = 0.25 + 0.75 * len(self.words[number]) / self.mean
                scores[number] += rarity * count * 2.2 / (count + 1.2 * length)
        return [number for number, _ in sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:TOP]]


def questions_of(chunks, num, chance):
    """Return (question, answer with its neighbors in the sentence), one from each of several chunks."""
    in_chunks = Counter(word for chunk in chunks for word in set(words_of(chunk)))
    asked = []
    for number in chance.sample(range(len(chunks)), len(chunks)):
        sentences = [words_of(sentence) for sentence in re.split(r"[.!?\n]", chunks[number])]
        sentences = [words for words in sentences if 8 <= len(words) <= 30]
        if not sentences:
            continue
        words = chance.choice(sentences)
        place = min(range(len(words)), key=lambda i: (in_chunks[words[i]], -len(words[i])))
        asked.append((" ".join(words[:place] + words[place + 1 :]), words[max(0, place - 2) : place + 3]))
        if len(asked) == num:
            break
    return asked


def answered(index, asked):
    """Return the numbers of the answered questions."""
    found = set()
    for number, (question, answer) in enumerate(asked):
        held = (" ".join(index.words[number]) for number in index.top(question))
        if any(" ".join(answer) in words for words in held):
            found.add(number)
    return found


def of_set(path, num_questions, num_words):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    chunks = [chunk for text in texts for chunk in chunks_of(text, num_words)]
    asked = questions_of(chunks, num_questions, random.Random(1))
    before = Bm25(chunks)
    at_first = answered(before, asked)
    found = {
        "set": path.parent.name,
        "num_documents": len(texts),
        "num_chunks": len(chunks),
        "num_words": sum(map(len, before.words)),
        "num_questions": len(asked),
        "num_answered": len(at_first),
        "recipes": [],
    }
    for recipe in ("default", "online", "strict"):
        rules = ChunkRules(recipe)
        tags = rules.tags(chunks, [None] * len(chunks))
        after = Bm25([chunk for chunk, tag in zip(chunks, tags, strict=True) if rules.stays(tag)])
        still = answered(after, asked)
        found["recipes"].append(
            {
                "recipe": recipe,
                "num_chunks": len(after.words),
                "num_words": sum(map(len, after.words)),
                "num_answered": len(still),
                "num_lost": len(at_first - still),
            }
        )
    return found


def markdown(sets):
    lines = [
        "| manual | recipe | chunks | words kept | questions answered | lost |",
        "|---|---|---|---|---|---|",
    ]
    for one in sets:
        name, num = one["set"], one["num_questions"]
        lines.append(f"| `{name}` | all chunks | {one['num_chunks']:,} | 100% | {one['num_answered']} of {num} | |")
        lines += [
            f"| | `{of['recipe']}` | {of['num_chunks']:,} | {of['num_words'] / one['num_words']:.0%} | "
            f"{of['num_answered']} of {num} | {of['num_lost']} |".replace("%", " %")
            for of in one["recipes"]
        ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--words", type=int, default=100)
    options = parser.parse_args()
    found = {
        "words_a_chunk": options.words,
        "sets": [of_set(path, options.questions, options.words) for path in options.sets],
    }
    machine.write_results(RESULTS, **found)
    table.insert(PAGE, "retrieval", markdown(found["sets"]))


if __name__ == "__main__":
    main()
