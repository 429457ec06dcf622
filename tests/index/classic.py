"""The classic pipeline by hand: words, real weights, 64 bits, distance 3, the first document of each group kept."""

import math
import random

import likewise
from tests.oracle import candidates, measures, sketches, weights

SCALE = 24.0
RECIPE = likewise.Recipe.own("replay 1, tf-idf", weighted=True, weight_scale=SCALE, within=3, bits=64)
WORDS = [a + b for a in "新闻天气经济体育科技文化教育" for b in "报道记者今日本市会议发展研究"]
STOP_WORD = "的"


def documents(num=100, seed=8):
    """Return lists of (word, tf-idf): pages of 20 to 200 words, near-copies of earlier ones, stop words of weight 0."""
    rng = random.Random(seed)
    lists = []
    for number in range(num):
        if number % 3 and lists:
            words = list(rng.choice(lists))
            for _ in range(rng.choice([0, 0, 1, 2, 8])):
                words[rng.randrange(len(words))] = rng.choice(WORDS)
        else:
            words = [rng.choice(WORDS) for _ in range(rng.choice([20, 60, 120, 200]))]
        lists.append(words + [STOP_WORD] * rng.randrange(4))
    lists += [[], [STOP_WORD, STOP_WORD], [STOP_WORD]]
    df = {word: sum(word in words for words in lists) for word in {*WORDS, STOP_WORD}}
    pages = []
    for words in lists:
        counts = {word: words.count(word) for word in words}
        pages.append(
            [
                (word, 0.0 if word == STOP_WORD else count / len(words) * 20 * math.log(len(lists) / df[word]))
                for word, count in counts.items()
            ]
        )
    return pages


class Replay:
    """The expected (kept id, distance) of each document in order of arrival; None for a new one."""

    def __init__(self):
        self.kept = []
        self.classes = {}

    def arrive(self, doc_id, pairs):
        weighted = weights.own_pairs([(word, round(weight * SCALE)) for word, weight in pairs], 1)
        once = dict.fromkeys(weighted, 1)
        code = sketches.simhash(weighted, 64) if weighted else None
        best = None
        for other_id, other, other_code in self.kept:
            if not once or not other:
                found = 0 if not once and not other else None
            else:
                found = candidates.distance(code, other_code)
                if found > 3 or (min(len(once), len(other)) < 64 and measures.similarity(once, other, "jaccard") < 0.8):
                    found = None
            if found is not None and (best is None or found < best[1]):
                best = other_id, found
        # Indistinguishable documents share a verdict; with many features the fingerprint alone decides.
        key = code, tuple(sorted(once)) if len(once) * 0.8 < 64 else None
        first_id, verdict = self.classes.setdefault(key, (doc_id, best))
        if first_id != doc_id:
            return verdict or (first_id, 0)
        if best is None:
            self.kept.append((doc_id, once, code))
        return best


def replayed(pages):
    replay = Replay()
    return [replay.arrive(f"page-{i}", pairs) for i, pairs in enumerate(pages)]


def said(verdicts):
    return [None if verdict.is_new else (verdict.kept_id, verdict.distance) for verdict in verdicts]


def check_verdicts(index):
    """Check an index's verdicts on the documents, one by one and in a batch, against the replay."""
    pages = documents()
    expected = replayed(pages)
    assert 30 < sum(verdict is not None for verdict in expected) < 80
    half = len(pages) // 2
    ids = [f"page-{i}" for i in range(len(pages))]
    one_by_one = [index.check_and_add(doc_id, page) for doc_id, page in zip(ids[:half], pages[:half], strict=True)]
    in_a_batch = index.check_and_add_batch(ids[half:], pages[half:])
    assert said([*one_by_one, *in_a_batch]) == expected
    checked = index.check_batch(pages)
    assert [None if kept is None else kept for kept in checked.kept_ids] == [
        doc_id if verdict is None else verdict[0] for doc_id, verdict in zip(ids, expected, strict=True)
    ]
