"""Documents, some of which are near-copies, and the result of the plain call on them."""

import functools

import likewise
from tests.golden.texts import made_up

NUM_DOCUMENTS = 20_000
RECIPE = likewise.Recipe.minhash(0.55)


def texts(num_documents=NUM_DOCUMENTS):
    """Return texts; two in five copy the text before, or one of the first hundred, with one word changed."""
    made = []
    for number in range(num_documents):
        text = made_up(25, number)
        if number % 5 == 1:
            text = made[-1] + f" x{number}"
        elif number % 5 == 3:
            text = f"y{number} " + made[number % 100 // 5 * 5 if number > 100 else 0]
        made.append(text)
    return made


@functools.cache
def plain():
    """Return the texts, and the result of the plain call on them as a list."""
    made = texts()
    result = likewise.dedup(made, RECIPE)
    assert 0.5 < result.kept.mean() < 0.8
    return made, result
