"""Counts of one are printed in the singular, others in the plural."""

import json

import pytest

import likewise
from likewise.errors import InvalidInput, counted
from likewise.io.lexicon import read_lexicon
from likewise.tuning.labels import Label, read_labels, write_labels
from tests.command import jsonl, likewise_command

TEXTS = ["one two three four five six", "one two three four five SIX", "something else"]


def test_a_count_and_its_name():
    assert [counted(count, "file") for count in (0, 1, 2, 3000)] == ["0 files", "1 file", "2 files", "3,000 files"]
    assert [counted(count, "pair was", "pairs were") for count in (1, 2)] == ["1 pair was", "2 pairs were"]


@pytest.mark.parametrize("command", ["dedup", "repeats"])
@pytest.mark.parametrize(("num", "told"), [(1, "skipped 1 file of other kinds"), (2, "skipped 2 files of other kinds")])
def test_files_of_other_kinds(tmp_path, command, num, told):
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.jsonl").write_bytes(jsonl(TEXTS))
    for number in range(num):
        (data / f"notes-{number}.doc").write_text("not ours")
    ran = likewise_command(command, data, "-o", tmp_path / "out")
    assert ran.status == 0, ran.err
    assert told in ran.err


def test_commands_that_count_one(tmp_path):
    articles, table, index = tmp_path / "a.jsonl", tmp_path / "w.lw", tmp_path / "seen.lw"
    articles.write_bytes(jsonl(TEXTS[:1]))
    assert "1 sketch, sketch_id" in likewise_command("sketch", articles, "-o", tmp_path / "s.parquet").err
    told = likewise_command("weights", articles, "-o", table).err
    assert "only 1 document with distinct feature sets; in so few documents" in told
    assert "1 document with distinct feature sets; 5 features, of which 0 weigh less than 15" in told
    likewise_command("index", "create", index)
    ran = likewise_command("index", "remove", index, "none", "--on-error", "skip")
    assert ran.err == "1 id not in the index, skipped\n"
    ran = likewise_command("dedup", articles, "-o", tmp_path / "out", "--text-field", "body", "--on-error", "skip")
    assert "the only row is not a document: " in ran.err
    labels = tmp_path / "labels.csv"
    labels.write_text("doc_id_a,doc_id_b,label\n0,1,1\n")
    ran = likewise_command("tune", articles, "-o", tmp_path / "recipe.json", "--labels", labels)
    assert "1 document in the inputs; tuning needs at least two" in ran.err
    with pytest.raises(InvalidInput, match="1 id for 3 texts"):
        likewise.dedup(TEXTS, ids=["a"])
    labels.write_text("doc_id_a,doc_id_b,label\nalone\n")
    with pytest.raises(InvalidInput, match="1 field;"):
        read_labels(labels)
    (tmp_path / "terms.tsv").write_text("alone\n")
    with pytest.raises(InvalidInput, match="1 field found"):
        read_lexicon(tmp_path / "terms.tsv")


def test_labels_and_audits_that_count_one(tmp_path):
    path = tmp_path / "labels.csv"
    write_labels([Label("a", "b", True), Label("c", "c", True)], path)
    with path.open("a") as file:
        file.write("d,e,1,1\nd,e,1,1\n")
    assert read_labels(path).notes == [
        "1 pair of a document with itself ignored",
        "1 label repeats an earlier one; each pair counts once",
    ]
    with path.open("a") as file:
        file.write("b,a,0,1\n")
    assert "1 pair with contradictory labels ignored, such as a and b" in read_labels(path).notes
    articles = tmp_path / "a.jsonl"
    articles.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(TEXTS)))
    likewise_command("dedup", articles, "-o", tmp_path / "out")
    assert "about 1 pair matches\n" in likewise_command("audit", tmp_path / "out").out.decode()
