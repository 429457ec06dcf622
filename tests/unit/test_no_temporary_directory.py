"""Documents in memory are decided without a directory for temporary files; streams need one, and name it.

An index in memory takes one in shared memory instead.
"""

import tempfile

import pytest

import likewise
from likewise.index import online
from tests.golden.texts import made_up

pa = pytest.importorskip("pyarrow")
TEXTS = [made_up(30, number % 150) for number in range(200)]
RECIPES = {
    "default": None,
    "minhash": likewise.Recipe.minhash(0.8),
    "weighted": likewise.Recipe.minhash(0.8, weights="idf"),
    "simhash": likewise.Recipe.simhash(within=3),
    "bloom": likewise.Recipe.bloom(0.7),
    "shingles": likewise.Recipe.shingles(0.7),
    "exact": likewise.Recipe.exact(),
}


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))


@pytest.mark.parametrize("name", RECIPES)
def test_texts_in_memory(name):
    table = pa.table({"text": TEXTS})
    for given in (TEXTS, table):
        assert likewise.dedup(given, RECIPES[name]).kept.sum() == 150
        assert likewise.pairs(given, RECIPES[name]).num_rows == 50


def test_other_functions():
    assert likewise.match(TEXTS[:3], TEXTS).num_rows == 3
    assert len(likewise.decontaminate(TEXTS, {"set": TEXTS[:3]}).evidence) == 6
    assert likewise.leaks({"a": TEXTS[:100], "b": TEXTS[100:]}, RECIPES["minhash"]).pairs.num_rows == 50
    labels = [(n, n + 150, True) for n in range(50)] + [(n, n + 1, False) for n in range(50)]
    assert likewise.tune(TEXTS, labels).num_duplicates == 50


def test_an_index_in_memory(tmp_path, monkeypatch):
    (shared := tmp_path / "shared").mkdir()
    monkeypatch.setattr(online, "_IN_MEMORY", str(shared))
    with likewise.Index.in_memory("online") as index:
        assert [verdict.kept_id for verdict in map(index.add, "ab", TEXTS[:1] * 2)] == [None, "a"]
        assert [path.name[:9] for path in shared.iterdir()] == ["likewise-"]
    assert list(shared.iterdir()) == []
    monkeypatch.setattr(online, "_IN_MEMORY", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "nowhere")):
        likewise.Index.in_memory("online")


def test_a_stream_needs_one_and_names_it(tmp_path):
    stream = pa.table({"text": TEXTS}).to_reader()
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "nowhere")):
        likewise.dedup(stream, RECIPES["minhash"])
