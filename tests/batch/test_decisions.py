"""Documents kept by a person's decision, in memory and in files, compared with a loop in plain Python."""

import json
import random

import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.against.index import IndexUse
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from likewise.progress import Warned
from tests import command
from tests.command import likewise_command

SHINGLES = likewise.Recipe.shingles(0.5, tokens="word", shingle=1)
RECIPES = {
    "shingles": SHINGLES,
    "minhash": likewise.Recipe.minhash(0.5, tokens="word", shingle=1, bands=64, rows=2),
    "exact": likewise.Recipe.exact(),
}


def documents(num=120, seed=3):
    """Return texts in clusters, some equal and some similar, in mixed order."""
    chance = random.Random(seed)
    words = [f"word{number}" for number in range(60)]
    bases = [chance.sample(words, 12) for _ in range(15)]
    texts = []
    for _ in range(num):
        text = list(chance.choice(bases))
        for _ in range(chance.randrange(4)):
            text[chance.randrange(12)] = chance.choice(words)
        texts.append(" ".join(text))
    return texts + texts[:20]


def jaccard(a, b):
    return len(a & b) / len(a | b)


def loop(texts, stays, threshold):
    """Return what is kept, and the best kept match of each removed and each overruled document."""
    sets = [frozenset(text.split()) for text in texts]
    kept, removed, overruled = [], {}, {}
    for row, words in enumerate(sets):
        matches = [(-jaccard(words, sets[other]), other) for other in kept if jaccard(words, sets[other]) >= threshold]
        if matches and row not in stays:
            removed[row] = min(matches)
        else:
            kept.append(row)
            if matches:
                overruled[row] = min(matches)
    return kept, removed, overruled


@pytest.mark.parametrize("name", RECIPES)
def test_what_stays_and_what_it_matches(name):
    texts = documents()
    threshold = 1.0 if name == "exact" else 0.5
    plain = set(range(len(texts))) - set(loop(texts, (), threshold)[0])
    chosen = set(random.Random(5).sample(sorted(plain), 8)) | {0}
    kept, removed, overruled = loop(texts, chosen, threshold)
    assert len(overruled) == 8
    result = likewise.dedup(texts, RECIPES[name], decisions={str(row): "keep" for row in chosen})
    assert result.kept.nonzero()[0].tolist() == kept
    assert result.removed.column("row").to_pylist() == sorted(removed)
    found = result.overruled.to_pylist()
    assert [row["row"] for row in found] == sorted(overruled)
    for row in found:
        value, _ = overruled[row["row"]]
        assert row["similarity"] == pytest.approx(-value)
        # If several kept documents match equally well, the evidence names one of them.
        words = [frozenset(texts[number].split()) for number in (row["row"], row["kept_row"])]
        assert jaccard(*words) == pytest.approx(-value)
        assert row["kept_row"] in kept
    assert result.summary["decisions"] == {"given": 9, "found": 9, "overruled": 8}
    assert likewise.dedup(texts, RECIPES[name]).overruled is None


def test_fingerprints_that_stay():
    texts = [" ".join(f"word{number}" for number in range(200)) + end for end in ("", ".", " ", "!")]
    recipe = likewise.Recipe.simhash(within=3)
    result = likewise.dedup(texts, recipe, decisions={"2": "keep"})
    assert result.kept.tolist() == [True, False, True, False]
    (row,) = result.overruled.to_pylist()
    assert (row["row"], row["kept_row"], row["distance"]) == (2, 0, 0)


@pytest.fixture
def pages(tmp_path):
    path = tmp_path / "pages.jsonl"
    path.write_bytes(command.jsonl(documents(), ids=False))
    return path


def csv_of(path, ids):
    path.write_text("doc_id,decision\n" + "".join(f"{doc_id},keep\n" for doc_id in ids), encoding="utf-8")
    return path


@pytest.mark.parametrize("memory", [None, "256MB"])
def test_files_give_what_memory_gives(tmp_path, pages, memory):
    rows = sorted(loop(documents(), (), 0.5)[1])[10::40]
    chosen = [f"pages.jsonl:{row + 1}" for row in rows]
    kept, _, overruled = loop(documents(), rows, 0.5)
    assert sorted(overruled) == rows
    events = []
    summary = dedup_files(
        pages,
        tmp_path / "out",
        RECIPES["minhash"],
        run=FileRun(memory_bytes=memory),
        decisions=csv_of(tmp_path / "decisions.csv", [*chosen, "nobody"]),
        progress=events.append,
    )
    assert summary["num_kept"] == len(kept)
    assert summary["decisions"] == {"given": len(rows) + 1, "found": len(rows), "overruled": len(rows)}
    table = pq.read_table(tmp_path / "out" / "overruled.parquet")
    assert table.column("doc_id").to_pylist() == chosen
    assert table.schema == pq.read_table(tmp_path / "out" / "removed.parquet").schema
    assert any(isinstance(event, Warned) and "'nobody'" in event.message for event in events)


def test_references_are_overruled_too(tmp_path, pages):
    dedup_files(pages, tmp_path / "first", SHINGLES)
    summary = dedup_files(
        pages, tmp_path / "second", SHINGLES, against=[tmp_path / "first"], decisions={"pages.jsonl:4": "keep"}
    )
    assert summary["num_kept"] == 1
    (row,) = pq.read_table(tmp_path / "second" / "overruled.parquet").to_pylist()
    assert (row["doc_id"], row["kept_source"]) == ("pages.jsonl:4", "against")


def test_the_command(tmp_path, pages):
    chosen = csv_of(tmp_path / "decisions.csv", ["pages.jsonl:21"])
    done = likewise_command("dedup", pages, "-o", tmp_path / "out", "--preset", "strict", "--decisions", chosen)
    assert done.status == 0, done.err
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["decisions"]["given"] == 1
    assert "decisions" in likewise_command("dedup", pages, "-o", "-", "--decisions", chosen).err


def test_another_list_is_another_run(tmp_path, pages):
    first = csv_of(tmp_path / "a.csv", ["pages.jsonl:21"])
    dedup_files(pages, tmp_path / "out", SHINGLES, decisions=first)
    identity = json.loads(next((tmp_path / "out").glob("**/summary.json")).read_text())
    assert identity["decisions"]["found"] == 1
    with pytest.raises(InvalidInput, match="overwrite"):
        dedup_files(pages, tmp_path / "out", SHINGLES, decisions={"pages.jsonl:22": "keep"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,decision\na,keep\n", "the first line must be doc_id,decision"),
        ("", "the first line must be doc_id,decision"),
        ("doc_id,decision\na,drop\n", "a row must contain an id and the word keep"),
        ("doc_id,decision\na\n", "a row must contain an id and the word keep"),
        ("doc_id,decision\n,keep\n", "a row must contain an id and the word keep"),
        (b"doc_id,decision\n\xff,keep\n", "not a file of decisions"),
        ('doc_id,decision\n"a,keep\n', "not a file of decisions"),
    ],
)
def test_what_is_no_list(tmp_path, content, message):
    path = tmp_path / "decisions.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidInput, match=message):
        likewise.dedup(["a"], "strict", decisions=path)


def test_what_does_not_go_together(tmp_path, pages):
    given = {"pages.jsonl:2": "keep"}
    with pytest.raises(InvalidParameter, match="group components"):
        likewise.dedup(["a"], SHINGLES.replace(group="components"), decisions={"0": "keep"})
    with pytest.raises(InvalidParameter, match="cannot be combined with an index"):
        dedup_files(pages, tmp_path / "out", "online", index=IndexUse(tmp_path / "i"), decisions=given)
    with pytest.raises(InvalidParameter, match="only decision"):
        likewise.dedup(["a"], SHINGLES, decisions={"0": "drop"})
    with pytest.raises(InvalidParameter, match="not a path or a mapping"):
        likewise.dedup(["a"], SHINGLES, decisions=["0"])
