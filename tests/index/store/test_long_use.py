"""Random use of the embedded index and the model: expiry, removals, full buckets, maintenance, readers, reopening."""

import functools
import random
import tempfile
from pathlib import Path
from unittest import mock

import pytest

import likewise
from likewise import _native
from tests.index.store.model import ModelIndex, Refused
from tests.recipes import RECIPES, oracle_recipe

pytestmark = pytest.mark.rounds


def random_text(chance, num_bases):
    kind = chance.random()
    if kind < 0.04:
        return "" if kind < 0.02 else "..."
    base = chance.randrange(num_bases)
    words = [f"w{number}b{base}" for number in range(4 if kind < 0.1 else 24)]
    for _ in range(chance.choice([0, 1, 1, 2, 2, 3, 4])):
        words[chance.randrange(len(words))] = f"edit{chance.randrange(300)}"
    return " ".join(words)


def evidence(verdict):
    return verdict.is_new, verdict.kept_id, verdict.similarity, verdict.distance


class Use:
    """An index, sometimes a reader, and the model. Each step is run on all of them and compared."""

    STEPS = (
        ("add", 45),
        ("remove", 20),
        ("check", 7),
        ("look", 6),
        ("compact", 4),
        ("rebuild", 2),
        ("reopen", 6),
        ("turn_reader", 4),
        ("snapshot", 2),
        ("verify", 4),
    )

    def __init__(self, folder, name, seed, **chosen):
        self.chance = chance = random.Random(seed)
        self.folder, self.recipe = folder, RECIPES[name].replace(keep="first")
        self.clock, self.number = _native.ManualClock(1000), 0
        self.ttl = chosen.get("ttl", chance.choice([None, 50, 300]))
        self.ttl_from = "first_seen" if self.ttl is None else chance.choice(["first_seen", "last_seen"])
        self.flush_rows = chosen.get("flush_rows", chance.choice([3, 20, 100, None]))
        self.num_bases = chosen.get("num_bases", chance.choice([1, 2, 6, 25]))
        self.store = chance.choice([None, "shingles", "text"])
        self.model = ModelIndex(oracle_recipe(self.recipe), ttl_s=self.ttl, ttl_from=self.ttl_from)
        self.index = self._open(folder / "index", ttl=self.ttl, ttl_from=self.ttl_from, store=self.store)
        self.reader = None

    def _open(self, path, **options):
        made = functools.partial(_native.OnlineIndex, flush_rows=self.flush_rows, clock=self.clock)
        made.describe = _native.OnlineIndex.describe
        with mock.patch.object(_native, "OnlineIndex", made):
            return likewise.Index(path, self.recipe, threads=self.chance.choice([1, 2]), **options)

    def _texts(self, num):
        return [random_text(self.chance, self.num_bases) for _ in range(num)]

    def play(self, num_steps):
        names, weights = zip(*self.STEPS, strict=True)
        try:
            for _ in range(num_steps):
                self.clock.pass_time(self.chance.choice([0, 0, 0, 1, 5, 20]))
                getattr(self, self.chance.choices(names, weights)[0])()
                for index in self._open_ones():
                    assert len(index) == len(self.model)
        finally:
            for index in self._open_ones():
                index.close()

    def _open_ones(self):
        return [index for index in (self.index, self.reader) if index is not None]

    def add(self):
        ids, texts = [], []
        for _ in range(self.chance.choice([1, 1, 3, 10, 40, 150])):
            if self.model.row_of and self.chance.random() < 0.05:
                doc_id = self.chance.choice(list(self.model.row_of))
                known = self.model.rows[self.model.row_of[doc_id]].text
                ids.append(doc_id)
                texts.append(known if self.chance.random() < 0.9 else "other text")
            else:
                ids.append(f"doc-{self.number}")
                texts += self._texts(1)
                self.number += 1
        self.model.expire(self.clock.unix_s)
        try:
            expected = self.model.check_and_add_batch(ids, texts, self.clock.unix_s)
        except Refused:
            with pytest.raises(likewise.InvalidInput):
                self.index.check_and_add_batch(ids, texts)
            return
        if len(ids) == 1:
            found = [self.index.check_and_add(ids[0], texts[0])]
        else:
            found = self.index.check_and_add_batch(ids, texts)
        assert [(v.doc_id, *evidence(v), v.seq, v.added) for v in found] == [tuple(verdict) for verdict in expected]

    def remove(self):
        if not self.model.row_of:
            return
        ids = list(self.model.row_of)
        leaders = [row.doc_id for row in self.model.rows if row.kept and self.model.group(row.doc_id)[1]]
        doc_id = self.chance.choice(leaders if leaders and self.chance.random() < 0.5 else ids)
        assert tuple(self.model.remove(doc_id)) == tuple(self.index.remove(doc_id))

    def check(self):
        texts = self._texts(self.chance.choice([1, 5, 30]))
        expected = [evidence(self.model.check(text)) for text in texts]
        for index in self._open_ones():
            assert [evidence(verdict) for verdict in index.check_batch(texts)] == expected

    def look(self):
        (text,) = self._texts(1)
        ids = list(self.model.row_of)
        for index in self._open_ones():
            for doc_id in self.chance.sample(ids, min(20, len(ids))):
                found, expected = index.get(doc_id), self.model.get(doc_id)
                assert (found.seq, *evidence(found)) == (expected.seq, *evidence(expected))
                group = index.group(doc_id)
                assert (group.leader_id, group.member_ids) == self.model.group(doc_id)
            found = [
                (other.doc_id, other.similarity, other.distance, other.matches)
                for other in index.neighbors(text, 5, among="candidates")
            ]
            assert found == self.model.neighbors(text, 5)

    def compact(self):
        self.index.compact()

    def rebuild(self):
        self.index.rebuild()

    def reopen(self):
        self.index.close()
        self.index = self._open(self.folder / "index")

    def turn_reader(self):
        if self.reader is None:
            self.reader = self._open(self.folder / "index", read_only=True)
        else:
            self.reader.close()
            self.reader = None

    def snapshot(self):
        with tempfile.TemporaryDirectory() as folder:
            self.index.snapshot(folder)
            with self._open(Path(folder)) as copy:
                texts = self._texts(10)
                assert len(copy) == len(self.model)
                expected = [evidence(self.model.check(text)) for text in texts]
                assert [evidence(verdict) for verdict in copy.check_batch(texts)] == expected

    def verify(self):
        assert self.index.verify(full=True) == []


def use(folder, name, seed, num_steps, **chosen):
    folder.mkdir()
    using = Use(folder, name, seed, **chosen)
    using.play(num_steps)


SIMHASH = ["simhash", "simhash-wide", "simhash-cosine", "simhash-short"]
MINHASH = ["minhash", "minhash-default", "minhash-containment", "minhash-log-count"]


@pytest.mark.parametrize(("ttl", "flush_rows"), [pytest.param(50, 3, marks=pytest.mark.slow), (None, 20)])
def test_answers_do_not_depend_on_when_tables_are_built(tmp_path, ttl, flush_rows):
    # Texts of one template, which fill buckets quickly.
    use(tmp_path / "i", "minhash-log-count", 5, 40, ttl=ttl, flush_rows=flush_rows, num_bases=1)


@pytest.mark.parametrize("name", ["simhash-wide", "minhash"])
def test_the_index_answers_as_the_model_whatever_is_done(tmp_path, name):
    use(tmp_path / "i", name, 2, 40, num_bases=6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [*SIMHASH, *MINHASH])
def test_the_index_answers_as_the_model_for_long(tmp_path, name):
    for seed in range(20):
        use(tmp_path / str(seed), name, seed, 80)
