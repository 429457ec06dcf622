"""What an index stores with its documents: recipe with tables and lists, age limit; directories without an index."""

import json
import shutil
import subprocess

import pytest

import likewise
from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter, StoreError
from likewise.index import move
from likewise.stages.weights import count_weights
from tests.index.store.clocks import clocked

TEXTS = [f"a page about {topic} and the weather of the {topic} season" for topic in ("flood", "rain", "snow", "wind")]


def recipes():
    table = count_weights(TEXTS, likewise.Recipe.minhash(0.6, shingle=2, weights="idf"))
    lexicon = likewise.Weights.from_terms({"flood": 5, "the": 0})
    return {
        "idf": likewise.Recipe.minhash(0.6, shingle=2, weights=table),
        "lexicon": likewise.Recipe.simhash(threshold=0.7, shingle=1, weights=lexicon),
        "stop words": likewise.Recipe.simhash(within=3, stop_words=["the", "of"]),
        "dictionary": likewise.Recipe.simhash(within=3, tokens="chinese", dictionary=[("云计算", 7), ("重复", None)]),
    }


@pytest.mark.parametrize("name", ["idf", "lexicon", "stop words", "dictionary"])
def test_tables_and_lists_of_the_recipe_are_kept(tmp_path, name):
    recipe = recipes()[name]
    with likewise.Index(tmp_path / "index", recipe) as index:
        index.add_batch(range(4), TEXTS)
        expected = list(index.check_batch(TEXTS))
        index.snapshot(tmp_path / "copy")
    for place in ("index", "copy"):
        with likewise.Index(tmp_path / place) as index:
            assert index.recipe.recipe_id == recipe.for_index().recipe_id
            assert list(index.check_batch(TEXTS)) == expected
    # From JSON, which contains only the name of the table.
    with likewise.Index(tmp_path / "index", likewise.Recipe.from_json(recipe.to_json())) as index:
        assert list(index.check_batch(TEXTS)) == expected
    with pytest.raises(likewise.RecipeMismatch):
        likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=2))


def test_another_table_is_refused_by_name(tmp_path):
    likewise.Index(tmp_path / "index", recipes()["lexicon"]).close()
    other = likewise.Weights.from_terms({"flood": 4})
    with pytest.raises(likewise.RecipeMismatch, match="weights_id"):
        likewise.Index(tmp_path / "index", likewise.Recipe.simhash(threshold=0.7, shingle=1, weights=other))


def test_the_age_limit_is_kept(tmp_path):
    with clocked(_native.ManualClock(1_000_000)) as clock:
        with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3), ttl=100) as index:
            index.add("a", TEXTS[0])
        clock.pass_time(101)
        with likewise.Index(tmp_path / "index") as index:
            index.add("b", TEXTS[1])
            assert index.get("a") is None
            assert index.stats["ttl_s"] == 100
    with pytest.raises(InvalidParameter, match="ttl"):
        likewise.Index(tmp_path / "index", ttl=5)
    with pytest.raises(InvalidParameter, match="created with 'first_seen'"):
        likewise.Index(tmp_path / "index", ttl_from="last_seen")
    with pytest.raises(InvalidParameter, match=r"ttl_from.*requires ttl"):
        likewise.Index(tmp_path / "new", ttl_from="last_seen")
    with pytest.raises(InvalidParameter, match="ttl_from"):
        likewise.Index(tmp_path / "new", ttl=5, ttl_from="now")
    for ttl in (0, -1, float("inf"), float("nan"), "5", True):
        with pytest.raises(InvalidParameter, match="ttl"):
            likewise.Index(tmp_path / "new", ttl=ttl)
    assert not (tmp_path / "new").exists()


def test_a_directory_that_is_no_index_is_not_made_one(tmp_path):
    path = tmp_path / "index"
    with likewise.Index(path, likewise.Recipe.simhash(within=3)) as index:
        index.add_batch(range(5000), [f"text {number} of many" for number in range(5000)])
        index.compact()
    database = (path / "documents.sqlite").read_bytes()
    for lose in (lambda: (path / "documents.sqlite").unlink(), lambda: (path / "documents.sqlite").write_bytes(b"")):
        lose()
        for read_only in (False, True):
            with pytest.raises(StoreError, match="missing or empty"):
                likewise.Index(path, read_only=read_only)
        (path / "documents.sqlite").write_bytes(database)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("words")
    with pytest.raises(InvalidParameter, match=r"other files \(thesis.txt\)"):
        likewise.Index(tmp_path / "mine")
    assert len(list((tmp_path / "mine").iterdir())) == 1
    for wrong in ({"path": ""}, {"path": tmp_path / "new", "recipe": "minhash"}):
        with pytest.raises(InvalidParameter):
            likewise.Index(**wrong)
    with likewise.Index(path) as index:
        assert len(index) == 5000


def test_a_creation_that_was_killed_is_begun_again(tmp_path):
    path = tmp_path / "index"
    path.mkdir()
    for name in ("writer.lock", "documents.sqlite"):
        (path / name).touch()
    with likewise.Index(path, likewise.Recipe.simhash(within=3)) as index:
        assert index.add("a", TEXTS[0]).is_new


def test_ids_are_as_many_as_texts_or_nothing_is_added(tmp_path):
    with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)) as index:
        for ids, texts in (
            (["a", "b"], TEXTS[:1]),
            (["a"], TEXTS[:2]),
            (iter("a"), TEXTS[:2]),
            (["x" * 65_536], ["t"]),
        ):
            with pytest.raises(InvalidInput):
                index.add_batch(ids, texts)
            assert len(index) == 0
        with pytest.raises(InvalidInput, match="65,536 bytes") as caught:
            index.add_batch(["a", "x" * 65_536], TEXTS[:2])
        assert caught.value.row == 1
        with pytest.raises(InvalidInput, match="more ids than texts"):
            index.add_batch(iter("abc"), iter(TEXTS[:2]))
        assert [index.get(name) is not None for name in "abc"] == [True, True, False]
        with pytest.raises(InvalidInput, match="ids have type int"):
            index.add_batch(5, TEXTS)


def test_an_id_may_be_a_whole_number_everywhere(tmp_path):
    with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)) as index:
        index.add(5, TEXTS[0])
        assert index.get(5).doc_id == index.group("5").leader_id == "5"
        assert index.remove(5).doc_id == "5"
        for wrong in (None, 1.5, True):
            with pytest.raises(InvalidInput):
                index.get(wrong)


def test_what_goes_wrong_first_is_told(tmp_path):
    with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)) as index:
        index.add("a", TEXTS[0])
        for target in ("", tmp_path / "index", tmp_path / "file"):
            (tmp_path / "file").touch()
            with pytest.raises(InvalidParameter, match=r"is not empty|the path is empty; give a directory"):
                index.snapshot(target)
        with pytest.raises(InvalidParameter, match="inside"):
            index.snapshot(tmp_path / "index" / "copy")


def test_an_error_of_closing_hides_no_other(tmp_path, monkeypatch):
    def close(index):
        index._native.close()
        raise likewise.errors.IndexPoisoned("later")

    def use(error):
        with likewise.Index(tmp_path / "index", likewise.Recipe.simhash(within=3)) as index:
            index.check("x")
            monkeypatch.setattr(likewise.Index, "close", close)
            if error is not None:
                raise error

    with pytest.raises(KeyError):
        use(KeyError())
    monkeypatch.undo()
    with pytest.raises(likewise.errors.IndexPoisoned):
        use(None)
    monkeypatch.undo()


def test_an_export_has_verdicts_and_sketches(tmp_path):
    recipe = likewise.Recipe.simhash(within=3)
    with likewise.Index(tmp_path / "index", recipe) as index:
        index.add_batch(list("ab"), [TEXTS[0], TEXTS[0].upper()])
        index.export(tmp_path / "out.jsonl")
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert first["is_new"]
    assert (second["is_new"], second["kept_id"], second["measure"]) == (False, "a", "hamming")
    assert int.from_bytes(bytes.fromhex(first["sketch"]), "little") == likewise.sketch(TEXTS[:1], recipe).array[0]


@pytest.mark.skipif(shutil.which("mount") is None, reason="no mount")
def test_an_index_on_a_read_only_file_system_is_read(tmp_path):
    source, shown = tmp_path / "a ?#%20 source", tmp_path / "shown"
    with likewise.Index(source / "index", likewise.Recipe.simhash(within=3)) as index:
        index.add("a", TEXTS[0])
    shown.mkdir()
    commands = [["mount", "--bind", source, shown], ["mount", "-o", "remount,ro,bind", shown]]
    if any(subprocess.run(command, check=False, capture_output=True).returncode for command in commands):
        subprocess.run(["umount", shown], check=False, capture_output=True)
        pytest.skip("this user may not mount")
    try:
        with likewise.Index(shown / "index", read_only=True) as index:
            assert index.check(TEXTS[0]).kept_id == "a"
            assert index.verify(full=True) == []
            index.snapshot(tmp_path / "copy")
        with pytest.raises((StoreError, OSError)):
            likewise.Index(shown / "index")
    finally:
        subprocess.run(["umount", shown], check=True)
    with likewise.Index(tmp_path / "copy") as index:
        assert index.get("a") is not None


@pytest.mark.parametrize(
    ("ttl_from", "kept_ids"),
    [
        ("first_seen", [None, "0", "0", None, "3", "3", None]),
        ("last_seen", [None, "0", "0", "2", "2", "4", "4"]),
    ],
)
def test_a_text_that_is_seen_every_second(tmp_path, ttl_from, kept_ids):
    text, moved = "one fine day in spring we walked along the river", tmp_path / "moved.lw"
    with clocked(_native.ManualClock(1_000_000)) as clock:
        with likewise.Index(tmp_path / "seen.lw", "online", ttl=2, ttl_from=ttl_from) as index:
            found = []
            for number in range(4):
                found.append(index.check_and_add(str(number), text).kept_id)
                clock.pass_time(1)
        # It is so after a move, and wherever the index is opened again.
        move(tmp_path / "seen.lw", tmp_path / "index.parquet")
        move(tmp_path / "index.parquet", moved)
        with likewise.Index(moved) as index:
            assert (index.stats["ttl_s"], index.stats["ttl_from"]) == (2, ttl_from)
            for number in range(4, 7):
                found.append(index.check_and_add(str(number), text).kept_id)
                clock.pass_time(1)
            assert index.verify(full=True) == []
            clock.pass_time(3)
            assert index.check_and_add("7", text).is_new
    assert found == kept_ids


def test_a_group_of_which_the_first_expires(tmp_path):
    words = [f"word{number}" for number in range(30)]
    first, second, third = (" ".join([*words[:24], *last]) for last in (words[24:], words[24:29], words[24:28]))
    with clocked(_native.ManualClock(1_000_000)) as clock:
        options = {"ttl": 10, "ttl_from": "last_seen", "threshold": 0.8}
        with likewise.Index(tmp_path / "seen.lw", **options) as index:
            for doc_id, text in (("a", first), ("b", second), ("c", third)):
                index.add(doc_id, text)
                clock.pass_time(5)
            index.add("d", "nothing of it here at all")
            assert ("a" in index, index.get("b").kept_id, index.get("c").is_new) == (False, "c", True)
        # What happened is stored.
        with likewise.Index(tmp_path / "seen.lw", read_only=True) as reader:
            assert (reader.get("b").kept_id, reader.group("c").member_ids) == ("c", ("b",))
