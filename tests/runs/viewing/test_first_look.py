"""After a run: the removals nearest to the threshold, kept documents with many removals, HTML."""

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise import Recipe, dedup_files
from likewise.runs.viewing.first_look import first_look
from tests.files import documents, jsonl
from tests.runs.viewing.runs import make_named_run

WORDS = [f"word{number}" for number in range(100)]


def test_the_nearest_removals_are_those_that_reach_barely_what_they_need(tmp_path):
    run = make_named_run(tmp_path)
    rows = [row for row in pq.read_table(run / "removed.parquet").to_pylist() if row["similarity"] < 1]
    nearest = sorted(rows, key=lambda row: row["similarity"] - row["required"])[:3]
    assert nearest != sorted(rows, key=lambda row: row["similarity"])[:3]
    lines = first_look(run)
    assert lines[0] == "Removals nearest to the threshold:"
    assert [line.split()[1] for line in lines[1:4]] == [row["doc_id"] for row in nearest]


def text_of(first, changed=()):
    words = [f"{word}of{first}" for word in WORDS]
    for place in changed:
        words[place] = f"other{place}"
    return " ".join(words)


def write(path, texts):
    jsonl(path, documents(texts))


def ran(tmp_path, texts, recipe=None):
    write(tmp_path / "in.jsonl", texts)
    dedup_files([tmp_path / "in.jsonl"], tmp_path / "out", recipe or Recipe.minhash(0.5))
    return first_look(tmp_path / "out")


def test_the_least_similar_removals_are_shown_with_their_differences(tmp_path):
    texts = []
    for number, changed in enumerate([(), (50,), (10, 60), (), (20, 40, 80), (5, 25, 45, 65, 85)]):
        texts += [text_of(number), text_of(number, changed)]
    lines = ran(tmp_path, texts)
    assert lines[0] == "Removals nearest to the threshold:"
    # 98 word 3-grams; a change in the middle touches three.
    expected = [(5, "d11", "d10"), (3, "d9", "d8"), (2, "d5", "d4")]
    for line, (num_changes, doc_id, kept_id) in zip(lines[1:4], expected, strict=True):
        similarity = (98 - 3 * num_changes) / (98 + 3 * num_changes)
        assert line.startswith(f"  {similarity:.3f}  {doc_id} (kept: {kept_id}): ")
    assert lines[3].endswith('"word10of2" -> "other10"; "word60of2" -> "other60"')
    assert lines[1].endswith("; 1 more difference")
    assert lines[4:] == ["To fit the threshold to pairs that you label, run likewise tune."]


def test_nothing_is_shown_where_only_equal_documents_went(tmp_path):
    assert ran(tmp_path, [text_of(1), text_of(1), text_of(2)]) == []


def test_a_kept_document_with_many_removals_is_named(tmp_path):
    texts = [text_of(0)] + [text_of(0, (number,)) for number in range(10, 80)]
    # Equal texts do not count.
    texts += [text_of(1)] * 200
    (line,) = [line for line in ran(tmp_path, texts) if "share a template" in line]
    assert line.startswith("70 similar but different documents were removed as duplicates of d0.")


def test_the_family_is_found_among_many_leaders(tmp_path):
    """More leaders than are counted at once; the largest is in the middle."""
    texts = []
    for number in range(120):
        texts += [text_of(number), text_of(number, (50,))]
        if number % 2:
            texts.append(text_of("template", (number % 100,)))
    (line,) = [line for line in ran(tmp_path, texts) if "share a template" in line]
    assert line.startswith("5")


@pytest.mark.parametrize("markup", [None, "html"])
def test_html_that_is_read_as_text_is_reported(tmp_path, markup):
    pages = [
        f"<!DOCTYPE html><html><body><p>{text_of(number // 2, (number % 2,))}</p></body></html>" for number in range(8)
    ]
    lines = ran(tmp_path, pages, Recipe.minhash(0.5, markup=markup))
    assert any("--markup html" in line for line in lines) == (markup is None)


def test_distances_are_shown_where_they_decide(tmp_path):
    texts = [text_of(number // 2, (50,) if number % 2 else ()) for number in range(40)]
    lines = ran(tmp_path, texts, Recipe.simhash(within=20, bits=64))
    assert lines[1].split()[1] == "bits"


def test_inputs_that_are_gone_cost_the_differences_only(tmp_path):
    ran(tmp_path, [text_of(0), text_of(0, (50,))])
    (tmp_path / "in.jsonl").unlink()
    assert first_look(tmp_path / "out")[1].endswith("  d1 (kept: d0)")


def test_large_packed_inputs_are_not_unpacked(tmp_path, monkeypatch):
    from likewise.runs.viewing.first_look import first_look as module

    table = pa.table({"id": ["a", "b"], "text": [text_of(0), text_of(0, (50,))]})
    pq.write_table(table, tmp_path / "in.parquet")
    dedup_files([tmp_path / "in.parquet"], tmp_path / "out", Recipe.minhash(0.5))
    assert '"word50of0" -> "other50"' in first_look(tmp_path / "out")[1]
    monkeypatch.setattr(sys.modules[module.__module__], "_MOST_PACKED_BYTES", 10)
    assert first_look(tmp_path / "out")[1].endswith("  b (kept: a)")


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_documents_are_shown_on_terminals_only(tmp_path):
    import pty

    write(tmp_path / "in.jsonl", [text_of(0), text_of(0, (50,)) + " \x1b[31m"])
    command = [sys.executable, "-m", "likewise", "dedup", tmp_path / "in.jsonl", "-o"]
    main, end = pty.openpty()
    try:
        subprocess.run([*command, tmp_path / "one"], stderr=end, check=True)
        os.close(end)
        shown = b""
        while b"run likewise tune" not in shown:
            shown += os.read(main, 1 << 16)
    finally:
        os.close(main)
    assert b'"word50of0" -> "other50"' in shown
    ended = subprocess.run([*command, tmp_path / "two"], capture_output=True, check=True)
    assert b"word50of0" not in ended.stderr + ended.stdout
