"""Items of evaluation sets in documents: every window, alignment and weight by its definition."""

import functools
import itertools
import math
from collections import Counter
from dataclasses import dataclass

from tests.oracle.normalize import normalize
from tests.oracle.segment import holds_word, segments, word_class
from tests.oracle.weights import idf
from tests.oracle.xxh3 import xxh3

NGRAM = 5


def _class(c):
    """Return a character's class; capitals and wide forms have that of their normalized form."""
    return "LF" if c == "\n" else word_class((normalize(c) or c)[0])


@functools.lru_cache(maxsize=4096)
def words_of(text):
    """Return (word, first byte, end byte) of each word of the unnormalized text."""
    found, at = [], 0
    for segment in segments(text, _class, part_katakana=True):
        end = at + len(segment.encode())
        if any(holds_word(c) for c in segment):
            found.append((normalize(segment), at, end))
        at = end
    return found


@dataclass(frozen=True)
class Match:
    """A window of a document, and the part of an item that it contains."""

    document: int
    text: int
    start: int
    end: int
    run: int
    other_numbers: bool
    present: frozenset
    aligned: tuple


class Items:
    """The distinct texts of the items."""

    def __init__(self, texts, min_ngrams):
        numbers = {}
        self.distinct = [numbers.setdefault(tuple(w for w, *_ in words_of(text)), len(numbers)) for text in texts]
        self.words = list(numbers)
        self.places = [[w[i : i + NGRAM] for i in range(len(w) - NGRAM + 1)] for w in self.words]
        self.own = [set(places) for places in self.places]
        self.is_short = [len(own) < max(min_ngrams, 1) for own in self.own]
        self.held = Counter(
            g for own, is_short in zip(self.own, self.is_short, strict=True) if not is_short for g in own
        )
        for text, own in enumerate(self.own):
            if not self.is_short[text]:
                self.is_short[text] = all(self.held[gram] > 64 for gram in own)

    def scan(self, number, document):
        """Return the matches of one document, and its distinct n-grams and words."""
        placed = words_of(document)
        words = [w for w, *_ in placed]
        grams = [tuple(words[j : j + NGRAM]) for j in range(len(words) - NGRAM + 1)]
        found = []
        for text, own in enumerate(self.own):
            if not self.is_short[text]:
                found += self._windows(number, text, own, placed, words, grams)
        return found, set(grams), set(words)

    def _windows(self, number, text, own, placed, words, grams):
        size = len(self.words[text])
        seeds = [j for j, gram in enumerate(grams) if gram in own and self.held[gram] <= 64]
        hits = [j for j, gram in enumerate(grams) if gram in own and any(abs(j - seed) <= 2 * size for seed in seeds)]
        least = max(min(2, len(own)), math.ceil(len(own) / 5))

        def inside(first):
            return [j for j in hits if first <= j < first + 2 * size]

        found, behind = [], 0
        while hits:
            if len({grams[j] for j in inside(hits[0])}) < least:
                del hits[0]
                continue
            starts = inside(hits[0])
            best = max(starts, key=lambda j: (len({grams[k] for k in inside(j)}), -j))
            window = inside(best)
            aligned = self._align(text, words, grams, window, behind)
            run, pairs = longest_run(aligned), [j for _, j in aligned]
            behind = pairs[-1] + 1
            hits = [j for j in hits if j > best and j >= behind]
            if 2 * len(pairs) < size:
                continue
            found.append(
                Match(
                    number, text, placed[pairs[0]][1], placed[pairs[-1]][2], run,
                    has_other_numbers(self.words[text], words, aligned),
                    frozenset(grams[j] for j in window), tuple(i for i, _ in aligned),
                )
            )  # fmt: skip
        return found

    def _align(self, text, words, grams, window, behind):
        """Return pairs of positions of a longest common subsequence of the text and the words around a window."""
        own, places = self.words[text], self.places[text]
        before = places.index(grams[window[0]])
        after = len(places) - 1 - (len(places) - 1 - places[::-1].index(grams[window[-1]]))
        low = max(0, window[0] - (before + before // 4 + 2 if before else 0))
        low = max(low, min(behind, window[0]))
        high = min(len(words), window[-1] + NGRAM + (after + after // 4 + 2 if after else 0))
        part = words[low:high]
        table = [[0] * (len(part) + 1) for _ in range(len(own) + 1)]
        for i in reversed(range(len(own))):
            for j in reversed(range(len(part))):
                equal = own[i] == part[j]
                table[i][j] = table[i + 1][j + 1] + 1 if equal else max(table[i + 1][j], table[i][j + 1])
        i = j = 0
        pairs = []
        while i < len(own) and j < len(part):
            if own[i] == part[j]:
                pairs.append((i, low + j))
                i, j = i + 1, j + 1
            elif table[i + 1][j] >= table[i][j + 1]:
                i += 1
            else:
                j += 1
        return pairs

    def judge(self, documents, of_table=None):
        """Return every match in some documents, with share and similarity, or by the documents of a weight table."""
        found, with_gram, with_word, num_sampled = [], Counter(), Counter(), 0
        for number, document in enumerate(documents):
            matches, grams, words = self.scan(number, document)
            found += matches
            with_gram.update(grams)
            if xxh3(document.encode()) % 16 == 0:
                num_sampled += 1
                with_word.update(words)
        if of_table is not None:
            with_gram = by_table(with_gram, of_table)
        for words in self.words:
            with_word.update(set(words))
        num_all = len(self.words) + num_sampled
        return [(match, *self._agreement(match, with_gram, with_word, num_all)) for match in found]

    def _agreement(self, match, with_gram, with_word, num_all):
        own, words = self.own[match.text], self.words[match.text]
        times = {gram: with_gram[gram] - (gram in match.present) + self.held[gram] - 1 for gram in own}
        weight = {gram: (min(times.values()) + 1) / (times[gram] + 1) for gram in own}
        share = math.fsum(weight[gram] for gram in match.present) / math.fsum(weight.values())
        of_words = []
        for i, word in enumerate(words):
            has_digit = any(c in "0123456789" for c in word)
            rarity = 2 * math.log(1 + num_all) if has_digit else math.log(1 + num_all / with_word[word])
            over = [weight[gram] for k, gram in enumerate(self.places[match.text]) if k <= i < k + NGRAM]
            of_words.append(rarity * min(over))
        return share, math.fsum(of_words[i] for i in match.aligned) / math.fsum(of_words)


def by_table(with_gram, of_table):
    """Return the document frequency that each n-gram's weight in the table of others stands for, or a scanned one."""
    words = [tuple(w for w, *_ in words_of(document)) for document in of_table]
    sets = {frozenset(of[j : j + NGRAM] for j in range(max(1, len(of) - NGRAM + 1))) for of in words if of}
    counts, found = Counter(gram for grams in sets for gram in grams), Counter()
    weight_of = {df: idf(len(sets), df) for df in range(1, len(sets) + 1)}
    for gram in {*with_gram, *counts}:
        alike = [df for df, weight in weight_of.items() if counts[gram] and weight == weight_of[counts[gram]]]
        found[gram] = min(with_gram[gram], 1)
        if counts[gram] > 1:
            found[gram] = round(math.sqrt(alike[0] * alike[-1]))
    return found


def numbers(words):
    """Return the words with a digit, without thousands separators."""
    return {word.replace(",", "") for word in words if any(c in "0123456789" for c in word)}


def has_other_numbers(own, words, pairs):
    """Return whether, between aligned words or beyond them, both texts have a number that the other lacks there."""
    (i, j), (k, m) = pairs[0], pairs[-1]
    gaps = [(own[:i], words[max(0, j - i) : j]), (own[k + 1 :], words[m + 1 : m + len(own) - k])]
    for (i, j), (k, m) in itertools.pairwise(pairs):
        gaps.append((own[i + 1 : k], words[j + 1 : m]))
    return any(numbers(mine) - numbers(theirs) and numbers(theirs) - numbers(mine) for mine, theirs in gaps)


def longest_run(pairs):
    """Return the most consecutive words that are equal."""
    longest = run = 0
    for k, pair in enumerate(pairs):
        follows = k > 0 and pairs[k - 1] == (pair[0] - 1, pair[1] - 1)
        run = run + 1 if follows else 1
        longest = max(longest, run)
    return longest
