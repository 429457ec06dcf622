"""Documents of the files stored for each release: made-up words, and copies with known changes."""

from tests.golden.texts import made_up

SHORT = ["", " \n", "cat", "Cat!", "one fine day in may", "One fine day, in May", "猫和狗在一起，只保留一份。"]


def documents():
    """Return fixed ids and texts: originals, their near and far copies, and short texts."""
    rows = [(f"short-{i}", text) for i, text in enumerate(SHORT)]
    for i in range(30):
        words = made_up(40 + 3 * i, 1000 + i).split()
        rows.append((f"original-{i}", " ".join(words)))
        if i % 2 == 0:
            rows.append((f"near-{i}", " ".join(words[:-2]).upper() + "."))
        if i % 4 == 0:
            rows.append((f"far-{i}", " ".join(words[: len(words) // 2] + made_up(30 + 2 * i, 5000 + i).split())))
    return rows


def later_documents():
    """Return documents checked and added after the update: copies of originals, and new ones."""
    rows = [(f"later-{i}", " ".join(made_up(40 + 3 * i, 1000 + i).split()[1:])) for i in range(0, 30, 3)]
    return [*rows, ("later-empty", "\t"), ("later-short", "CAT"), ("later-new", made_up(90, 9999))]
