"""P9: a writer is killed at random moments. Its answers remain true, and each step is done completely or not at all."""

import contextlib
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.forking import forking
from tests.index.store.crash_child import make_text, told
from tests.index.store.crash_index import open_small
from tests.index.store.model import ModelIndex
from tests.recipes import RECIPES, oracle_recipe

pytestmark = pytest.mark.rounds

# A new index after this many kills, since the model compares all documents with each other.
ROUNDS_AN_INDEX = 10


@pytest.fixture
def forker():
    """A process that forks a writer for each job."""
    with forking("tests.index.store.crash_child") as process:
        yield process


def num_lines(path):
    return Path(path).read_bytes().count(b"\n") if os.path.exists(path) else 0


def run_and_kill(forker, job, after_lines, after_s):
    """Return the lines of the writer, which is killed `after_s` seconds after it wrote `after_lines` lines."""
    forker.stdin.write(json.dumps(job) + "\n")
    forker.stdin.flush()
    pid = int(forker.stdout.readline())
    while num_lines(job["log"]) < after_lines and os.path.exists(f"/proc/{pid}"):
        time.sleep(0.0005)
    time.sleep(after_s)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    assert forker.stdout.readline() == "dead\n"
    if not os.path.exists(job["log"]):
        return []
    with open(job["log"]) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


class Killed:
    """An index whose writer is killed again and again, and a model with the answers that it got."""

    def __init__(self, folder, recipe_name, seed):
        self.folder, self.recipe_name = folder, recipe_name
        self.path = folder / "index"
        self.model = ModelIndex(oracle_recipe(RECIPES[recipe_name].replace(keep="first")))
        self.chance = random.Random(seed)
        self.number = 0
        self.rounds = 0
        self.steps = {"add": 0, "remove": 0, "compact": 0, "snapshot": 0}

    def round(self, forker, after_lines, after_s):
        self.rounds += 1
        job = {
            "path": str(self.path),
            "folder": str(self.folder),
            "recipe": self.recipe_name,
            "log": str(self.folder / f"log-{self.rounds}"),
            "seed": self.chance.randrange(2**32),
            "number": self.number,
            "live": sorted(self.model.row_of),
        }
        unfinished = self._replay(run_and_kill(forker, job, after_lines, after_s))
        with open_small(self.path, self.recipe_name) as index:
            if unfinished is not None:
                self._settle(index, unfinished)
            self._compare(index)

    def _replay(self, lines):
        """Replay the logged steps on the model, and return the step that has no logged answer."""
        step = None
        for kind, *rest in lines:
            assert kind != "failed", rest[0]
            if kind == "begins":
                step = rest[0]
            elif kind == "told":
                self.steps[step[0]] += 1
                assert rest[0] == self._modeled(step)
                if step[0] == "snapshot":
                    self._check_snapshot(step[1])
                step = None
        return step

    def _modeled(self, step):
        if step[0] == "add":
            self.number += len(step[1])
            return [told(verdict) for verdict in self.model.check_and_add_batch(step[1], step[2])]
        if step[0] == "remove":
            _, was_kept, promoted, moved = self.model.remove(step[1])
            return [was_kept, list(promoted), [list(pair) for pair in moved]]
        return None

    def _check_snapshot(self, name):
        with open_small(self.folder / name, self.recipe_name) as index:
            assert len(index) == len(self.model)
            self._compare(index)
        shutil.rmtree(self.folder / name)

    def _settle(self, index, step):
        """Check that a step without a logged answer was done completely or not at all."""
        if step[0] == "add":
            there = {index.get(doc_id) is not None for doc_id in step[1]}
            assert len(there) == 1, "half a batch"
            if there == {True}:
                self._modeled(step)
            self.number += len(step[1])  # a number is never used twice
        elif step[0] == "remove" and index.get(step[1]) is None:
            self._modeled(step)
        elif step[0] == "snapshot":
            shutil.rmtree(self.folder / step[1], ignore_errors=True)

    def _compare(self, index):
        assert not index.verify()
        assert len(index) == len(self.model)
        for doc_id in self.model.row_of:
            found, expected = index.get(doc_id), self.model.get(doc_id)
            assert (found.kept_id, found.similarity, found.distance, found.seq) == expected[2:6]
        texts = [make_text(0, self.chance) for _ in range(20)]
        found = [(v.is_new, v.kept_id, v.similarity, v.distance) for v in index.check_batch(texts)]
        assert found == [self.model.check(text)[1:5] for text in texts]

    def finish(self):
        """Check that rebuilt tables give the same answers."""
        with open_small(self.path, self.recipe_name) as index:
            index.rebuild()
            self._compare(index)


def play_rounds(forker, folder, recipe_name, num_rounds, seed):
    chance, steps = random.Random(seed), {}
    for first in range(0, num_rounds, ROUNDS_AN_INDEX):
        place = folder / str(first)
        place.mkdir()
        killed = Killed(place, recipe_name, chance.randrange(2**32))
        for _ in range(min(ROUNDS_AN_INDEX, num_rounds - first)):
            # Line 1 is written before the index is opened, and each step writes two more lines.
            killed.round(forker, chance.choice([1, 2, 5, 20, 60]), 0.02 * chance.random() ** 2)
        killed.finish()
        shutil.rmtree(place)
        for name, number in killed.steps.items():
            steps[name] = steps.get(name, 0) + number
    return steps


@pytest.mark.parametrize("recipe_name", ["simhash-wide", "minhash"])
def test_a_killed_writer_loses_nothing(tmp_path, forker, recipe_name):
    steps = play_rounds(forker, tmp_path, recipe_name, 10, seed=1)
    assert steps["add"] > 20
    assert steps["remove"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("recipe_name", ["simhash-wide", "minhash"])
def test_a_writer_killed_500_times_loses_nothing(tmp_path, forker, recipe_name):
    steps = play_rounds(forker, tmp_path, recipe_name, 250, seed=2)
    assert min(steps.values()) > 10
