"""Input options apply in every command that offers them, and no other command offers them."""

import json

import pytest

from tests.cli.test_help import ALL
from tests.command import likewise_command
from tests.golden.texts import made_up

TEXT = made_up(40, 1)
# For each command that offers the option: arguments for files with repeated ids, or with lists of tokens.
DUPLICATE_IDS = {
    "boilerplate": ("twice.jsonl", "--site", "site", "-o", "out"),
    "copies": (TEXT, "--in", "twice.jsonl"),
    "dedup": ("twice.jsonl", "-o", "out"),
    "leaks": ("twice.jsonl", "other.jsonl", "-o", "out"),
    "pairs": ("twice.jsonl", "-o", "out.jsonl"),
    "repeats": ("twice.jsonl", "-o", "out"),
    "sketch": ("twice.jsonl", "-o", "out.parquet"),
    "tune": ("twice.jsonl", "--labels", "labels.csv", "-o", "recipe.json"),
}
TOKENS_FIELD = {
    "audit": ("--inputs", "lists.jsonl", "--kept", "lists.jsonl", "--threshold", "0.5", "--tokenizer", "t", "-o", "a"),
    "compare": ("lists.jsonl", "--ids", "a", "b", "--tokenizer", "t"),
    "dedup": ("lists.jsonl", "-o", "out", "--tokenizer", "t"),
    "index add": ("seen.lw", "lists.jsonl"),
    "index check": ("seen.lw", "lists.jsonl"),
    "index query": ("seen.lw", "lists.jsonl"),
    "leaks": ("lists.jsonl", "other.jsonl", "-o", "out", "--tokenizer", "t"),
    "match": ("lists.jsonl", "--in", "other.jsonl", "-o", "out.jsonl", "--tokenizer", "t"),
    "pairs": ("lists.jsonl", "-o", "out.jsonl", "--tokenizer", "t"),
    "sketch": ("lists.jsonl", "-o", "out.parquet", "--tokenizer", "t"),
    "tune": ("lists.jsonl", "--labels", "labels.csv", "-o", "recipe.json", "--tokenizer", "t"),
    "weights": ("lists.jsonl", "-o", "out.weights", "--tokenizer", "t"),
}


@pytest.fixture
def folder(tmp_path):
    rows = [{"id": doc_id, "text": text} for doc_id, text in (("a", TEXT), ("a", TEXT), ("b", made_up(40, 2)))]
    lists = [{"id": doc_id, "tokens": made_up(40, seed).split()} for doc_id, seed in (("a", 1), ("b", 2))]
    other = [{"id": row["id"] * 2, "text": made_up(40, 3), "tokens": row["tokens"]} for row in lists]
    twice = [{**row, "site": "s"} for row in rows]
    for name, content in (("twice", twice), ("lists", lists), ("other", other)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in content))
    (tmp_path / "labels.csv").write_text("doc_id_a,doc_id_b,label\na,b,0\n")
    return tmp_path


def offering(name):
    return {" ".join(words) for words, command in ALL.items() if any(param.name == name for param in command.params)}


def test_no_other_command_offers_them():
    assert offering("duplicate_ids") == set(DUPLICATE_IDS)
    assert offering("tokens_field") == set(TOKENS_FIELD)


@pytest.mark.parametrize("name", DUPLICATE_IDS)
def test_duplicate_ids_are_an_error_unless_they_are_allowed(folder, name):
    refused = likewise_command(*name.split(), *DUPLICATE_IDS[name], cwd=folder)
    assert refused.status == 2
    assert "use --duplicate-ids allow" in refused.err
    done = likewise_command(*name.split(), *DUPLICATE_IDS[name], "--duplicate-ids", "allow", cwd=folder)
    if name == "tune":
        assert "an id that several documents share was ignored" in done.err
    else:
        assert done.status == 0, done.err


@pytest.mark.parametrize("name", TOKENS_FIELD)
def test_tokens_are_read_instead_of_texts(folder, name):
    if name.startswith("index"):
        likewise_command("index", "create", "seen.lw", "--tokens", "user", "--tokenizer", "t", cwd=folder)
    refused = likewise_command(*name.split(), *TOKENS_FIELD[name], cwd=folder)
    assert refused.status != 0
    done = likewise_command(*name.split(), *TOKENS_FIELD[name], "--tokens-field", "tokens", cwd=folder)
    if name == "tune":
        assert "are labeled duplicates" in done.err
    else:
        assert done.status == 0, done.err
