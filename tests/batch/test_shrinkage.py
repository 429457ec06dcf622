"""The slices that lost most: folders, files and values of a field, what they were copies of, and the note."""

import json

import pytest

import likewise
from likewise.batch.parts import PartRules, dedup_parts
from likewise.job.output import shrinkage_line
from likewise.job.reading import FileRun
from likewise.progress import Warned
from tests.command import likewise_command
from tests.files import jsonl

RECIPE = likewise.Recipe.minhash(threshold=0.8)


def texts(kind, numbers):
    """Return distinct texts."""
    return [f"{kind} {number} " + " ".join(f"{kind}{number}w{word}" for word in range(9)) for number in numbers]


def collection(folder):
    """Write news, blogs that copy half of it and themselves, forums with a single copy, and a file in no folder."""
    parts = {
        "news/a": texts("news", range(10)),
        "news/b": texts("news", range(10, 20)),
        "blogs/a": texts("news", range(8)) + texts("blog", range(3)) + texts("blog", range(3)),
        "forums/x/a": texts("forum", range(19)) + texts("news", [5]),
        "small": texts("news", [1]),
    }
    # In the order of the files: copies are removed from what follows.
    order = {"news": "1", "blogs": "2", "forums": "3", "small": "4"}
    for name, some in parts.items():
        top = name.split("/")[0]
        path = folder / f"{name.replace(top, order[top] + top, 1)}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        jsonl(path, [{"text": text, "site": top} for text in some])
    return folder


def slices(found):
    return [(one["value"], one["num_removed"], one["num_documents"]) for one in found["slices"]]


def test_folders_that_lost_most(tmp_path):
    events = []
    summary = likewise.dedup_files(collection(tmp_path / "in"), tmp_path / "out", RECIPE, progress=events.append)
    found = json.loads((tmp_path / "out/summary.json").read_text())["shrunk"]
    assert found == summary["shrunk"]
    assert found["by"] == "path"
    # Slices of fewer than ten documents do not count while others have more.
    assert slices(found) == [("2blogs/", 11, 14), ("3forums/", 1, 20)]
    assert [(one["value"], one["num_removed"]) for one in found["slices"][0]["kept"]] == [("1news/", 8), ("2blogs/", 3)]
    notes = [event.message for event in events if isinstance(event, Warned)]
    assert notes == [
        "79% of 2blogs/ removed (11 of 14 documents), mostly as copies of 1news/; read some of these pairs before you "
        "use the rest"
    ]


def test_values_that_lost_most_and_the_lines(tmp_path):
    folder = str(collection(tmp_path / "in"))
    ran = likewise_command("dedup", folder, "-o", str(tmp_path / "out"), "--threshold", "0.8", "--count-by", "site")
    assert ran.err.splitlines()[-2:] == [
        "79% of blogs removed (11 of 14 documents), mostly as copies of news",
        "5% of forums removed (1 of 20 documents), mostly as copies of news",
    ]
    assert "note: 79% of blogs removed" in ran.err
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["shrunk"]["by"] == "site"
    assert slices(summary["shrunk"]) == [("blogs", 11, 14), ("forums", 1, 20)]
    likewise_command("report", tmp_path / "out")
    card = likewise_command("report", tmp_path / "out", "--card").out.decode()
    line = "5% of forums removed (1 of 20 documents), mostly as copies of news"
    assert f"<li>{line}</li></ul>" in (tmp_path / "out/report.html").read_text()
    assert f"; {line}.\n" in card
    dry = likewise_command("dedup", folder, "--dry-run", "--threshold", "0.8", "--count-by", "site", "--json")
    assert json.loads(dry.out)["shrunk"] == summary["shrunk"]


def test_reference_documents_and_copies_within(tmp_path):
    old = jsonl(tmp_path / "old.jsonl", [{"text": text} for text in texts("a", range(20))])
    new = [jsonl(tmp_path / "x.jsonl", [{"text": text} for text in texts("a", range(4)) + texts("b", range(16))])]
    new += [jsonl(tmp_path / "y.jsonl", [{"text": text} for text in texts("c", [0, 0, 0, *range(1, 18)])])]
    summary = likewise.dedup_files(new, tmp_path / "out", RECIPE, against=[old])
    assert [
        (one["value"], one["num_removed"], [(kept["value"], kept["kept_source"]) for kept in one["kept"]])
        for one in summary["shrunk"]["slices"]
    ] == [("x.jsonl", 4, [(None, "against")]), ("y.jsonl", 2, [("y.jsonl", "input")])]
    lines = likewise_command(
        "dedup", *map(str, new), "-o", str(tmp_path / "o"), "--threshold", "0.8", "--against", str(old)
    )
    assert lines.err.splitlines()[-2:] == [
        "20% of x.jsonl removed (4 of 20 documents), mostly as copies of --against documents",
        "10% of y.jsonl removed (2 of 20 documents), mostly as copies within it",
    ]


def test_one_file_or_no_removal_has_no_slices(tmp_path):
    one = jsonl(tmp_path / "a.jsonl", [{"text": text} for text in texts("a", [1, 1])])
    other = jsonl(tmp_path / "b.jsonl", [{"text": text} for text in texts("b", [1, 2])])
    assert "shrunk" not in likewise.dedup_files(one, tmp_path / "out", RECIPE)
    assert "shrunk" not in likewise.dedup_files([other, jsonl(tmp_path / "c.jsonl", [])], tmp_path / "none", RECIPE)
    # All slices are small.
    assert slices(likewise.dedup_files([one, other], tmp_path / "two", RECIPE)["shrunk"]) == [("a.jsonl", 1, 2)]


def test_other_commands_have_them(tmp_path):
    some = [jsonl(tmp_path / f"{name}.jsonl", [{"text": text} for text in texts("a", range(12))]) for name in "ab"]
    summary = dedup_parts(some, tmp_path / "out", PartRules("line"))
    assert slices(summary["shrunk"]) == [("b.jsonl", 12, 12)]
    assert summary["shrunk"]["slices"][0]["kept"] == []


@pytest.mark.parametrize("memory", [None, "256MB"])
def test_slices_do_not_depend_on_memory(tmp_path, memory):
    run = FileRun(memory_bytes=memory)
    found = likewise.dedup_files(collection(tmp_path / "in"), tmp_path / "out", RECIPE, run=run)["shrunk"]
    assert slices(found) == [("2blogs/", 11, 14), ("3forums/", 1, 20)]


@pytest.mark.parametrize(
    ("removed", "share"), [(1, "under 1%"), (4, "under 1%"), (6, "1%"), (994, "99%"), (999, "over 99%"), (1000, "100%")]
)
def test_a_part_is_not_called_none_or_all(removed, share):
    line = shrinkage_line({"value": "a", "num_documents": 1000, "num_removed": removed, "kept": []})
    assert line == f"{share} of a removed ({removed:,} of 1,000 documents)"
