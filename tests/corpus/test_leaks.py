"""Near-duplicates between splits: all pairs that comparing all documents gives, in memory and in files."""

import itertools
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.corpus import leak_files, leak_table, splits_named
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up
from tests.io.files import write_dataset
from tests.oracle.features import Rules, features
from tests.oracle.measures import similarity

NAMES = ("train", "validation", "test")
RULES = Rules(shingle=3)


def edited(text, rng, num):
    """Return the text with `num` words changed."""
    words = text.split()
    for place in rng.sample(range(len(words)), num):
        words[place] = f"changed{rng.randrange(1000)}"
    return " ".join(words)


def planted(seed, sizes=(60, 25, 25)):
    """Return three splits with copies and near-copies inside and between them, some in chains, and empty documents."""
    rng = random.Random(seed)
    splits = {
        name: [made_up(rng.randint(8, 60), 1000 * seed + 100 * number + i) for i in range(size)]
        for number, (name, size) in enumerate(zip(NAMES, sizes, strict=True))
    }
    everywhere = [(name, place) for name in NAMES for place in range(len(splits[name]))]
    for _ in range(40):
        (from_split, from_place), (to_split, to_place) = rng.sample(everywhere, 2)
        source = splits[from_split][from_place]
        splits[to_split][to_place] = edited(source, rng, rng.choice([0, 0, 1, 2, min(6, len(source.split()))]))
    splits["train"][7] = splits["test"][3] = splits["test"][4] = ""
    return splits


def brute_force(splits, measure, threshold):
    """Return every matching pair of documents from two splits, and what remains of each split."""
    sets = {name: [features(text, RULES).weights for text in texts] for name, texts in splits.items()}
    found, kept = {}, {name: [True] * len(texts) for name, texts in splits.items()}
    for earlier, later in itertools.combinations(splits, 2):
        for row, mine in enumerate(sets[later]):
            for other, theirs in enumerate(sets[earlier]):
                alike = similarity(mine, theirs, measure)
                if alike >= threshold:
                    found[later, row, earlier, other] = alike
                    kept[later][row] = False
    return found, kept


def as_pairs(table):
    columns = (table.column(name).to_pylist() for name in ("split", "row", "other_split", "other_row", "similarity"))
    rows = list(zip(*columns, strict=True))
    assert len({row[:4] for row in rows}) == len(rows)
    return {row[:4]: row[4] for row in rows}


def expected_counts(found, splits):
    """Return the summary's counts for each split, from the pairs."""
    counts = {}
    for name, texts in splits.items():
        matches = {}
        for other in splits:
            if other != name:
                mine = [key for key in found if {key[0], key[2]} == {name, other}]
                rows = {key[1] if key[0] == name else key[3] for key in mine}
                matches[other] = {"num_leaked": len(rows), "num_pairs": len(mine)}
        dropped = {key[1] for key in found if key[0] == name}
        counts[name] = {"num_documents": len(texts), "num_dropped": len(dropped), "matches": matches}
    return counts


@pytest.mark.parametrize(
    ("measure", "threshold"),
    [("jaccard", 0.5), ("jaccard", 0.9), ("dice", 0.6), ("containment", 0.6), ("overlap", 0.7)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_pairs_are_those_of_comparing_all_with_all(measure, threshold, seed):
    splits = planted(seed)
    found, kept = brute_force(splits, measure, threshold)
    assert len(found) > 8
    recipe = likewise.Recipe.shingles(threshold, measure=measure, weights="none")
    result = likewise.leaks(splits, recipe)
    assert as_pairs(result.pairs) == found
    assert {name: mask.tolist() for name, mask in result.kept.items()} == kept
    assert result.summary["splits"] == expected_counts(found, splits)
    assert result.summary["num_pairs"] == len(found)
    # Sorted by splits and rows.
    keys = list(as_pairs(result.pairs))
    assert keys == sorted(keys, key=lambda key: (NAMES.index(key[0]), key[1], NAMES.index(key[2]), key[3]))


@pytest.mark.parametrize("method", ["minhash", "bloom", "cosine", "simhash", "exact"])
def test_each_method_gives_the_pairs_of_all_documents_together(method):
    """For one collection, `pairs` also lists pairs within a split; they are removed here."""
    recipes = {
        "minhash": likewise.Recipe.minhash(0.5),
        "bloom": likewise.Recipe.bloom(0.5, filter_bits=512),
        "cosine": likewise.Recipe.simhash(threshold=0.6),
        "simhash": likewise.Recipe.simhash(within=12),
        "exact": likewise.Recipe.exact(),
    }
    splits = planted(3)
    places = [(name, row) for name in NAMES for row in range(len(splits[name]))]
    together = likewise.pairs([text for texts in splits.values() for text in texts], recipes[method])
    expected = {}
    for a, b, alike in zip(
        *(together.column(name).to_pylist() for name in ("row_a", "row_b", "similarity")), strict=True
    ):
        if places[a][0] != places[b][0]:
            expected[*places[b], *places[a]] = alike
    assert len(expected) > 4
    found = likewise.leaks(splits, recipes[method])
    assert as_pairs(found.pairs) == expected
    assert (found.pairs.column("distance").null_count == 0) == (method in ("cosine", "simhash"))


def test_a_test_document_leaks_whatever_it_matches_in_its_own_split():
    """A leader among the test documents, or one that is dropped itself, hides no leak."""
    first = made_up(60, 5)
    second = edited(first, random.Random(1), 3)
    third = edited(second, random.Random(2), 3)
    splits = {"train": [third], "validation": [second], "test": [first, second, third, made_up(60, 6)]}
    found, kept = brute_force(splits, "jaccard", 0.6)
    assert not kept["validation"][0]
    result = likewise.leaks(splits, method="shingles", threshold=0.6)
    assert as_pairs(result.pairs) == found
    assert result.kept["test"].tolist() == kept["test"] == [False, False, False, True]


def test_copies_in_a_split_are_not_listed_and_cost_nothing():
    splits = {"train": ["a text of five words"] * 30_000, "test": ["a text of five words", "another one"]}
    found = likewise.leaks(splits, "strict")
    assert (found.summary["num_pairs"], found.kept["test"].tolist()) == (30_000, [False, True])
    assert found.summary["splits"]["train"]["matches"]["test"] == {"num_leaked": 30_000, "num_pairs": 30_000}
    with pytest.raises(InvalidParameter, match="max_pairs"):
        likewise.leaks(splits, "strict", max_pairs=29_999)


def test_tables_ids_and_nulls():
    tables = {
        "train": pa.table({"id": [10, 11], "text": ["one fine day", None]}),
        "test": pa.table({"id": [10, 11, 12], "text": [None, "something else", "One fine day!"]}),
    }
    with pytest.raises(InvalidInput, match="nulls"):
        likewise.leaks(tables)
    found = likewise.leaks(tables, nulls="keep")
    assert [list(row.values())[:6] for row in found.pairs.to_pylist()] == [["test", 2, 12, "train", 0, 10]]
    assert found.kept["test"].tolist() == [True, True, False]
    assert likewise.leaks(tables, nulls="drop").kept["test"].tolist() == [False, True, False]
    assert "test 1" in repr(found)
    assert "<table" in found._repr_html_()
    # The same id may be in two splits, but not twice in one.
    twice = {"train": ["a b c"], "test": ["d e f", "g h i"]}
    likewise.leaks(twice, ids={"test": ["x", "y"], "train": ["x"]})
    with pytest.raises(InvalidInput, match="the id 'x' is already used"):
        likewise.leaks(twice, ids={"test": ["x", "x"]})
    likewise.leaks(twice, ids={"test": ["x", "x"]}, duplicate_ids="allow")
    with pytest.raises(InvalidParameter, match="not a split"):
        likewise.leaks(twice, ids={"tset": ["x", "y"]})
    with pytest.raises(InvalidParameter, match="at least two splits"):
        likewise.leaks({"train": ["a b c"]})


def test_datasets_are_splits():
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    splits = planted(4)
    dictionary = datasets.DatasetDict(
        {name: datasets.Dataset.from_dict({"text": texts}) for name, texts in splits.items()}
    )
    recipe = likewise.Recipe.shingles(0.5)
    assert likewise.leaks(dictionary, recipe).pairs.equals(likewise.leaks(splits, recipe).pairs)


@pytest.fixture
def files(tmp_path):
    splits = planted(5)
    for name, texts in splits.items():
        (tmp_path / f"{name}.jsonl").write_bytes(jsonl(texts))
    return tmp_path, splits


@pytest.mark.parametrize(
    ("recipe", "memory"),
    [
        (likewise.Recipe.shingles(0.5), None),
        (likewise.Recipe.minhash(0.5), None),
        (likewise.Recipe.minhash(0.5), "256MB"),
    ],
    ids=["sets", "minhash", "memory"],
)
def test_files_give_what_memory_gives(files, recipe, memory):
    folder, splits = files
    half = folder / "half"
    half.mkdir()
    lines = (folder / "train.jsonl").read_bytes().splitlines(keepends=True)
    (half / "a.jsonl").write_bytes(b"".join(lines[:20]))
    (half / "b.jsonl").write_bytes(b"".join(lines[20:]))
    given = {"train": half, "validation": folder / "validation.jsonl", "test": [folder / "test.jsonl"]}
    result = likewise.leaks(splits, recipe)
    for threads in (1, 3):
        run = FileRun(threads=threads, memory_bytes=memory)
        summary = leak_files(given, folder / "out", recipe, run=run, write="kept", overwrite=True)
        table = pq.read_table(folder / "out" / "leaks.parquet")
        assert as_pairs(table) == as_pairs(result.pairs)
        assert table.column("doc_id").to_pylist() == [str(row) for row in table.column("row").to_pylist()]
        assert summary["splits"] == result.summary["splits"]
        assert json.loads((folder / "out" / "summary.json").read_text()) == summary
        assert sorted(path.name for path in (folder / "out" / "kept").iterdir()) == ["test", "validation"]
        for name in ("validation", "test"):
            all_lines = (folder / f"{name}.jsonl").read_bytes().splitlines()
            kept = (folder / "out" / "kept" / name / f"{name}.jsonl").read_bytes().splitlines()
            assert kept == [all_lines[row] for row in np.flatnonzero(result.kept[name])]
    assert leak_files(given, None, recipe)["splits"] == result.summary["splits"]


def test_the_command_shows_the_table(files):
    folder, splits = files
    paths = [folder / f"{name}.jsonl" for name in NAMES]
    done = likewise_command("leaks", *paths, "--method", "shingles", "--threshold", "0.5")
    assert done.status == 0, done.err
    result = likewise.leaks(splits, method="shingles", threshold=0.5)
    rows = [line.split() for line in done.out.decode().splitlines()]
    assert rows[1:] == leak_table(result.summary)[1:]
    assert rows[0] == ["split", "documents", *NAMES, "to", "drop"]
    assert f"{len(result.pairs)} pairs between splits among 110 documents" in done.err
    done = likewise_command("leaks", *paths, "--json", "-o", folder / "out")
    assert json.loads(done.out)["splits"].keys() == set(NAMES)
    again = likewise_command("leaks", *paths, "-o", folder / "out")
    assert (again.status, "finished run" in again.err) == (2, True)
    for command in (
        ["dedup", folder / "out", "-o", folder / "x"],
        ["audit", folder / "out"],
    ):
        refused = likewise_command(*command)
        assert refused.status == 2
        assert "output of" in refused.err
    assert likewise_command("report", folder / "out").status == 0


def test_names_of_splits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert splits_named(["a/train.jsonl.gz", "b/test.jsonl"]) == {
        "train": ["a/train.jsonl.gz"],
        "test": ["b/test.jsonl"],
    }
    assert splits_named(["x=a", "x=b", "data/t*.jsonl"]) == {"x": ["a", "b"], "t*": ["data/t*.jsonl"]}
    # An existing path is a path, whatever it looks like; so is anything with a slash before the equals sign.
    (tmp_path / "date=1").mkdir()
    assert splits_named(["date=1", "s3://b/date=2/x.jsonl"]) == {"date=1": ["date=1"], "x": ["s3://b/date=2/x.jsonl"]}
    with pytest.raises(InvalidParameter, match="two splits are named 'train'"):
        splits_named(["a/train.jsonl", "b/train.jsonl"])
    with pytest.raises(InvalidParameter, match="given twice"):
        splits_named(["train.jsonl", "train=b.jsonl"])
    for name in ("train", "test"):
        (tmp_path / "saved" / name).mkdir(parents=True)
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert splits_named(["saved"]) == {"train": ["saved/train"], "test": ["saved/test"]}
    assert splits_named(["all=saved"]) == {"all": ["saved"]}
    for broken in ("{", '{"splits": ["nope"]}', "[]", '{"splits": 3}'):
        (tmp_path / "saved" / "dataset_dict.json").write_text(broken)
        with pytest.raises(InvalidInput, match=r"dataset_dict\.json"):
            splits_named(["saved"])


def test_a_saved_dataset_is_its_splits(tmp_path):
    saved = tmp_path / "saved"
    rows = [{"id": str(i), "n": i, "text": f"{made_up(20, i)}"} for i in range(14)]
    write_dataset(saved / "train", rows[:10])
    write_dataset(saved / "test", rows[8:])
    (saved / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    done = likewise_command("leaks", saved, "-o", tmp_path / "out", "--write", "kept", "--threshold", "0.9", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["splits"]["test"]["num_dropped"] == 2
    kept = tmp_path / "out" / "kept" / "test"
    state = json.loads((kept / "state.json").read_text())
    tables = [pa.ipc.open_stream(kept / entry["filename"]).read_all() for entry in state["_data_files"]]
    assert pa.concat_tables(tables).column("id").to_pylist() == ["10", "11", "12", "13"]
    assert json.loads((kept / "dataset_info.json").read_text())["splits"]["train"]["num_examples"] == 4


def test_what_cannot_be_compared_is_refused(files):
    folder, _ = files
    train, test = folder / "train.jsonl", folder / "test.jsonl"

    def refused(*arguments):
        done = likewise_command("leaks", *arguments, stdin=b"")
        assert done.status == 2, done.err
        return done.err

    assert "at least two splits" in refused(train)
    assert "in the splits a and b" in refused(f"a={train}", f"b={train}")
    assert "given twice" in refused("a=-", "b=-")
    assert "requires an output directory" in refused(train, test, "--write", "kept")
    assert "requires --write kept" in refused(train, test, "--on-error", "keep", "-o", folder / "o")
    assert "no such file" in refused(train, folder / "none.jsonl")
    assert "names of directories" in refused(f"a={train}", f"..={test}", "-o", folder / "o", "--write", "kept")
    bad = folder / "bad.jsonl"
    bad.write_bytes(b'{"text": "x"}\n{"text": 5}\n')
    assert "bad.jsonl:2" in refused(train, bad)
    twice = folder / "twice.jsonl"
    twice.write_bytes(b'{"id": 1, "text": "x"}\n{"id": 1, "text": "y"}\n')
    assert "the id '1' is already used in twice.jsonl:1" in refused(train, twice)
    assert not (folder / "o").exists()
    # Bad rows are skipped, listed and, if documents are written, copied.
    for action, num in (("skip", 1), ("keep", 2)):
        out = folder / action
        done = likewise_command(
            "leaks", train, bad, "-o", out, "--write", "kept", "--on-error", action, "--max-bad-rows", "1"
        )
        assert done.status == 0, done.err
        assert len((out / "errors.jsonl").read_text().splitlines()) == 1
        assert len((out / "kept" / "bad" / "bad.jsonl").read_bytes().splitlines()) == num


def test_real_splits_with_planted_copies(labeled):
    """Three splits of real pages, with copies of training pages planted in the tests."""
    _, texts, _ = labeled("html-kafka-javadoc")
    rng = random.Random(8)
    rng.shuffle(texts)
    texts = texts[:360]
    splits = {"train": texts[:240], "validation": texts[240:300], "test": texts[300:]}
    for _ in range(15):
        source = splits["train"][rng.randrange(240)]
        for name in ("validation", "test"):
            splits[name][rng.randrange(60)] = edited(source, rng, min(3, len(source.split())))
    found, kept = brute_force(splits, "jaccard", 0.7)
    assert len(found) > 30
    result = likewise.leaks(splits, method="shingles", threshold=0.7)
    assert as_pairs(result.pairs) == found
    assert {name: mask.tolist() for name, mask in result.kept.items()} == kept


def test_splits_have_names():
    for splits in ([["a"], ["b"]], {1: ["a"], 2: ["b"]}):
        with pytest.raises(InvalidParameter, match="splits"):
            likewise.leaks(splits)
