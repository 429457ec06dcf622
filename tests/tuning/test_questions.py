"""Which pairs are asked about, and that answers are kept."""

import numpy as np
import pytest

from likewise.tuning import Label, Questions
from likewise.tuning import questions as ask
from likewise.tuning.grid import Sample
from likewise.tuning.questions import ranked_pairs

NUM_DOCUMENTS = 60
PAIRS = np.stack(np.triu_indices(NUM_DOCUMENTS, 1), axis=1)
IDS = [f"d{i:02}" for i in range(NUM_DOCUMENTS)]


@pytest.fixture
def similarity():
    return np.random.default_rng(0).random(len(PAIRS)).astype(np.float32)


def questions(similarity, seed=0):
    ranked = ranked_pairs([similarity], NUM_DOCUMENTS)
    sample = Sample([similarity], [np.arange(2, 99) / 100], NUM_DOCUMENTS)
    return Questions(ranked, PAIRS, IDS, seed, sample, sample.features(similarity[None, ranked]))


def answered(asked, similarity, number):
    order = []
    while asked.num_answered < number and (pair := asked.next_pair()) is not None:
        asked.answer(pair, bool(similarity[pair] > 0.9))
        order.append(pair)
    return order


def test_ranks_are_multiplied():
    one = np.array([0.9, 0.8, 0.1, 0.0], np.float32)
    other = np.array([0.0, 0.7, 0.9, 0.1], np.float32)
    # Ranks 1*4, 2*2, 3*1, 4*3.
    assert ranked_pairs([one, other], 4).tolist() == [2, 0, 1, 3]


def test_no_pair_is_asked_twice_and_all_heights_are(similarity):
    order = answered(questions(similarity), similarity, 60)
    assert len(set(order)) == len(order) == 60
    ranks = (-similarity).argsort().argsort()[order]
    assert ranks.min() < 8
    assert ranks.max() > len(PAIRS) / 2


def test_weights_add_up_to_the_pairs(similarity):
    asked = questions(similarity)
    answered(asked, similarity, 60)
    total = sum(label.weight for label in asked.labels())
    assert total == pytest.approx(len(ranked_pairs([similarity], NUM_DOCUMENTS)))


def test_weighted_answers_estimate_the_number_of_duplicates(similarity):
    found = []
    for seed in range(15):
        asked = questions(similarity, seed)
        answered(asked, similarity, 60)
        found.append(sum(label.weight for label in asked.labels() if label.is_duplicate))
    assert np.mean(found) == pytest.approx((similarity > 0.9).sum(), rel=0.15)


def test_pairs_in_doubt_are_asked_about(similarity):
    num_near = 0
    for seed in range(5):
        order = answered(questions(similarity, seed), similarity, 60)
        # One pair in twenty is this close to where answers change.
        num_near += (np.abs(similarity[order[20:]] - 0.9) < 0.025).sum()
    assert num_near > 0.5 * 5 * 40


def test_pairs_like_those_passed_over_come_seldom(similarity):
    def num_passed_over(power):
        asked = questions(similarity)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ask, "_POWER_OF_SHARE", power)
            while asked.num_answered < 40:
                pair = asked.next_pair()
                # Nobody can answer near the boundary.
                is_open = abs(similarity[pair] - 0.9) < 0.03
                asked.answer(pair, None if is_open else bool(similarity[pair] > 0.9))
        return len(asked.answers) - asked.num_answered

    assert num_passed_over(ask._POWER_OF_SHARE) < 0.6 * num_passed_over(0)


def test_an_answer_stands_for_the_pairs_next_to_it(similarity):
    asked = questions(similarity)
    answered(asked, similarity, 30)
    ranked = ranked_pairs([similarity], NUM_DOCUMENTS)
    # With one recipe, the order by odds is the order by similarity.
    place = {int(pair): number for number, pair in enumerate(ranked)}
    places = sorted(place[pair] for pair in asked.answers)
    weights = {place[pair]: label.weight for pair, label in zip(asked.answers, asked.labels(), strict=True)}
    assert weights[places[0]] == (places[0] + places[1] + 1) / 2
    for before, here, after in zip(places, places[1:], places[2:], strict=False):
        assert weights[here] == (after - before) / 2


def test_a_session_goes_on_where_it_was_left(similarity):
    whole = questions(similarity)
    order = answered(whole, similarity, 40)
    first = questions(similarity)
    assert answered(first, similarity, 15) == order[:15]
    second = questions(similarity)
    assert second.take(first.labels()) == []
    assert answered(second, similarity, 40) == order[15:]
    assert sorted(second.labels(), key=str) == sorted(whole.labels(), key=str)


def test_labels_of_other_documents_are_given_back(similarity):
    strange = Label("d00", "z", is_duplicate=True)
    assert questions(similarity).take([strange]) == [strange]


def test_an_answer_taken_back_is_asked_again(similarity):
    asked = questions(similarity)
    pair = asked.next_pair()
    asked.answer(pair, True)
    assert asked.next_pair() != pair
    asked.forget(pair)
    assert asked.next_pair() == pair
    assert asked.labels() == []
    assert asked.num_answered == 0


def test_where_all_is_skipped_it_ends(similarity):
    asked = questions(similarity)
    number = 0
    while (pair := asked.next_pair()) is not None:
        asked.answer(pair, None)
        number += 1
    assert number == len(ranked_pairs([similarity], NUM_DOCUMENTS))
