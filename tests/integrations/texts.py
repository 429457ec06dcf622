"""Generated texts with near-copies."""

import random


def half_copies(num_texts, num_words=80, num_changed=6, seed=22):
    """Return texts; each of the second half copies one of the first half with its last words replaced."""
    draw = random.Random(seed)
    words = [f"word{number}" for number in range(3000)]
    first = [draw.choices(words, k=num_words) for _ in range(num_texts // 2)]
    again = [[*text[:-num_changed], *draw.choices(words, k=num_changed)] for text in first]
    return [" ".join(text) for text in first + again]
