"""Items in documents: every match and every weight equals the oracle's, in any script, with templates and repeats."""

import random

import numpy as np
import pytest

from likewise import _native
from tests.golden.texts import made_up
from tests.oracle.items import Items

SCRIPTS = {
    "english": [f"word{i}" for i in range(30)] + ["the", "of", "and", "7", "12", "don't", "a_b"],
    "chinese": [*"天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏", "3"],
    "mixed": ["Straße", "ﬁne", "ÉTÉ", "été", "カタカナ", "ｗｉｄｅ", "４２", "שלום", "x", "y", "z", "w"],
}


def collection(seed, vocabulary, num_items=25, num_documents=40):
    """Return items, some repeated, contained in others, or from a template; and documents with changed copies."""
    rng = random.Random(seed)
    space = rng.choice([" ", "\n", ", "])

    def draw(low, high):
        return [rng.choice(vocabulary) for _ in range(rng.randint(low, high))]

    items = [draw(3, 40) for _ in range(num_items)]
    frame = draw(12, 20)
    items += [[*frame[:8], f"n{i}", *frame[8:], str(i)] for i in range(6)]
    items += [items[3], items[4] + items[5], draw(3, 5) * 8]
    documents = []
    for _ in range(num_documents):
        words = draw(0, 60)
        for _ in range(rng.randint(0, 3)):
            copy = list(rng.choice(items))
            for place in range(len(copy)):
                if rng.random() < rng.choice([0, 0.05, 0.2]):
                    copy[place] = rng.choice(vocabulary)
            at = rng.randint(0, len(words))
            words[at:at] = copy * rng.choice([1, 1, 2])
        documents.append(words)
    return [[space.join(words) for words in side] for side in (items, documents)]


def bits(data, size):
    """Return which of the `size` lowest bits are set."""
    return np.flatnonzero(np.unpackbits(data, bitorder="little")[:size]).tolist()


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("seed", range(4))
def test_matches_are_those_of_the_oracle(script, seed):
    items, documents = collection(seed, SCRIPTS[script])
    min_ngrams = (1, 4, 8)[seed % 3]
    oracle = Items(items, min_ngrams)
    table = _native.ItemTable(_native.Texts.from_list(items), min_ngrams=min_ngrams)
    assert np.asarray(table.distinct).tolist() == oracle.distinct
    is_short, num_grams, num_words = map(np.asarray, table.sizes())
    assert is_short.astype(bool).tolist() == oracle.is_short
    assert num_grams.tolist() == [len(own) for own in oracle.own]
    found = list(map(np.asarray, table.scan(_native.Texts.from_list(documents), threads=2)))
    expected = oracle.judge(documents)
    assert len(expected) > 30
    of_match = [(m.document, m.text, m.start, m.end, m.run, m.other_numbers) for m, *_ in expected]
    assert list(zip(*(column.tolist() for column in found[:6]), strict=True)) == of_match
    at_gram = at_word = 0
    for match, *_ in expected:
        size, length = int(num_grams[match.text]), int(num_words[match.text])
        behind_gram, behind_word = at_gram + -(-size // 8), at_word + -(-length // 8)
        assert len(bits(found[6][at_gram:behind_gram], size)) == len(match.present)
        assert bits(found[7][at_word:behind_word], length) == list(match.aligned)
        at_gram, at_word = behind_gram, behind_word
    shares, similarity = map(np.asarray, table.judge(found[1], found[6], found[7]))
    np.testing.assert_allclose(shares, [share for _, share, _ in expected], rtol=1e-9)
    np.testing.assert_allclose(similarity, [alike for *_, alike in expected], rtol=1e-9)


def test_counts_go_on_where_they_were_left():
    items, documents = collection(9, SCRIPTS["english"])
    texts = _native.Texts.from_list(items)
    whole, first = (_native.ItemTable(texts, min_ngrams=4) for _ in range(2))
    matches = whole.scan(_native.Texts.from_list(documents))
    first.scan(_native.Texts.from_list(documents[:20]))
    second = _native.ItemTable(texts, min_ngrams=4, counts=first.counts())
    second.scan(_native.Texts.from_list(documents[20:]))
    for ours, theirs in zip(second.counts()[:2], whole.counts()[:2], strict=True):
        assert np.asarray(ours).tolist() == np.asarray(theirs).tolist()
    assert second.counts()[2:] == whole.counts()[2:]
    judged = (table.judge(matches[1], matches[6], matches[7]) for table in (second, whole))
    for ours, theirs in zip(*judged, strict=True):
        assert np.asarray(ours).tolist() == np.asarray(theirs).tolist()


def test_a_phrase_of_many_items_starts_no_search():
    frame = made_up(12, 1)
    items = [f"{frame} {made_up(8, 100 + i)}" for i in range(70)] + [frame]
    documents = [f"{frame} {made_up(8, 100 + 5)}", frame, made_up(30, 7)]
    oracle = Items(items, 8)
    assert oracle.is_short[-1]
    assert not any(oracle.is_short[:-1])
    table = _native.ItemTable(_native.Texts.from_list(items), min_ngrams=8)
    found = table.scan(_native.Texts.from_list(documents))
    expected = [(match.document, match.text) for match, *_ in oracle.judge(documents)]
    assert list(zip(np.asarray(found[0]).tolist(), np.asarray(found[1]).tolist(), strict=True)) == expected
    assert (0, 5) in expected
    assert len(expected) < 5
