"""Groups recomputed from the evidence in plain Python, and a small collection with groups."""

import random

WORDS = [f"word{number}" for number in range(400)]


def labels_of(ids, evidence):
    """Return (is_kept, group, duplicate_of, similarity, group_size) of each document, computed from the evidence.

    Parameters
    ----------
    ids : list
        Ids of all documents, as written in the evidence.
    evidence : list of dict
        Rows of the evidence.
    """
    removed = {row["row"]: row for row in evidence}
    sizes = {("input", number): 1 for number in range(len(ids)) if number not in removed}
    for row in evidence:
        key = _group(row)
        sizes[key] = sizes.get(key, 0) + 1
    labels = []
    for number, name in enumerate(ids):
        if number in removed:
            row = removed[number]
            labels.append((False, row["kept_id"], row["kept_id"], row["similarity"], sizes[_group(row)]))
        else:
            labels.append((True, name, None, None, sizes["input", number]))
    return labels


def _group(row):
    is_input = row["kept_source"] == "input"
    return (row["kept_source"], row["kept_row"] if is_input else row["kept_id"])


def grouped_texts(num_groups, seed=0):
    """Return texts in random order: each group has one to five near-copies of one text."""
    chance = random.Random(seed)
    texts = []
    for _ in range(num_groups):
        words = chance.choices(WORDS, k=60)
        for copy in range(chance.randint(1, 5)):
            texts.append(" ".join([*words, *([f"end{copy}"] if copy else [])]))
    chance.shuffle(texts)
    return texts
