"""Input files of tests."""

import json


def jsonl(path, rows):
    """Write rows as JSON Lines; return the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8", newline="\n")
    return path


def documents(texts, first=0):
    """Return rows with the ids d0, d1, ..."""
    return [{"id": f"d{first + i}", "text": text} for i, text in enumerate(texts)]
