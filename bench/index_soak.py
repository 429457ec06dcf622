"""Use an index for hours with four threads: memory must stay constant, and the result equal that of the ordered steps.

    index_soak.py --minutes 60 [--pause-ms 2] [--recipe minhash] [--work FOLDER]

Threads add batches and single documents, check and remove. Adds record their `seq`, removals occur between adds, so
the order of all steps is known. At the end one thread repeats them in that order on a second index: every verdict, and
every document's record, must be equal. Answers are stored in a file, and texts are functions of their
numbers, so that the measured memory is the index's and not the benchmark's.
"""

import argparse
import itertools
import json
import random
import shutil
import tempfile
import threading
import time
from pathlib import Path

import likewise
import machine

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "index_soak.json"
NUM_THREADS, NUM_BASES = 4, 2_000
# Beyond it, documents are removed as fast as they are added, so that memory can level off.
MOST_HELD = 300_000
RECIPES = {"simhash": likewise.Recipe.simhash(within=3), "minhash": likewise.Recipe.minhash(0.8)}


def text_of(number: int) -> str:
    chance = random.Random(number)
    base = chance.randrange(NUM_BASES)
    words = [f"{base * 131 + i * 17 % 97}w{i}" for i in range(60)]
    for _ in range(chance.randrange(8)):
        words[chance.randrange(60)] = f"edit{chance.randrange(1_000)}"
    return " ".join(words)


class Gate:
    """Allows any number of adds at once, or one removal."""

    def __init__(self) -> None:
        self._changed, self._num_adding, self._removing = threading.Condition(), 0, False

    def begin_add(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._removing)
            self._num_adding += 1

    def end_add(self) -> None:
        with self._changed:
            self._num_adding -= 1
            self._changed.notify_all()

    def begin_removal(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._removing)
            self._removing = True
            self._changed.wait_for(lambda: not self._num_adding)

    def end_removal(self) -> None:
        with self._changed:
            self._removing = False
            self._changed.notify_all()


class Soak:
    """An index, the steps applied to it, and the threads that apply them."""

    def __init__(self, index: likewise.Index, notes: Path, end: float, pause_s: float) -> None:
        self.index, self.notes, self.end, self.pause_s, self.gate = index, notes, end, pause_s, Gate()
        self.num_added, self.num_removed, self.num_promoted = 0, 0, 0
        self.live: list[int] = []
        self.noting = threading.Lock()
        self.numbers = itertools.count()
        self.num_checks = 0
        self.failures: list[str] = []

    def work(self, thread: int) -> None:
        chance = random.Random(thread)
        try:
            while time.monotonic() < self.end:
                time.sleep(self.pause_s)
                kind = chance.random()
                if kind < 0.3:
                    self.index.check_batch([text_of(chance.getrandbits(60)) for _ in range(chance.choice([1, 100]))])
                    self.num_checks += 1
                elif kind < 0.9 and len(self.live) < MOST_HELD:
                    self.add(chance)
                elif self.live:
                    self.remove(chance)
        except BaseException as error:
            self.failures.append(repr(error))
            raise

    def note(self, notes: list) -> None:
        """Record answers, one line each; called while no other thread does."""
        with self.notes.open("a") as file:
            file.writelines(json.dumps(note) + "\n" for note in notes)

    def add(self, chance: random.Random) -> None:
        numbers = [next(self.numbers) for _ in range(chance.choice([1, 10, 100]))]
        ids = [f"doc-{number}" for number in numbers]
        texts = [text_of(number) for number in numbers]
        self.gate.begin_add()
        try:
            if len(ids) == 1:
                verdicts = [self.index.check_and_add(ids[0], texts[0])]
            else:
                verdicts = list(self.index.check_and_add_batch(ids, texts))
            with self.noting:
                self.note([["add", number, *verdict] for number, verdict in zip(numbers, verdicts, strict=True)])
                self.num_added += len(ids)
                self.live += numbers
        finally:
            self.gate.end_add()

    def remove(self, chance: random.Random) -> None:
        self.gate.begin_removal()
        try:
            if not self.live:
                return
            at = chance.randrange(len(self.live))
            self.live[at], self.live[-1] = self.live[-1], self.live[at]
            removal = self.index.remove(f"doc-{self.live.pop()}")
            self.note([["remove", self.num_added, *removal]])
            self.num_removed += 1
            self.num_promoted += len(removal.promoted)
        finally:
            self.gate.end_removal()

    def replay(self, path: Path, recipe: likewise.Recipe) -> int:
        """Repeat all steps in order; return how many answers differ."""
        added, removals = {}, []
        with self.notes.open() as file:
            for kind, first, *answer in map(json.loads, file):
                if kind == "add":
                    verdict = likewise.index.Verdict(*answer)
                    added[verdict.seq] = (first, verdict)
                else:
                    removals.append((first, answer))
        num_wrong, done = 0, 0
        with likewise.Index(path, recipe, durability="interval:10s") as again:

            def add_up_to(count: int) -> int:
                wrong = 0
                for start in range(done + 1, count + 1, 1_000):
                    part = [added[seq] for seq in range(start, min(start + 1_000, count + 1))]
                    texts = [text_of(number) for number, _ in part]
                    found = again.check_and_add_batch([verdict.doc_id for _, verdict in part], texts)
                    wrong += sum(answer != verdict for answer, (_, verdict) in zip(found, part, strict=True))
                return wrong

            for count, removal in removals:
                num_wrong += add_up_to(count)
                done = count
                num_wrong += json.loads(json.dumps(again.remove(removal[0]))) != removal
            num_wrong += add_up_to(self.num_added)
            for number in self.live:
                # All but the arrival time.
                one, other = self.index.get(f"doc-{number}"), again.get(f"doc-{number}")
                num_wrong += one is None or other is None or one._replace(arrival_s=0) != other._replace(arrival_s=0)
            num_wrong += len(again) != len(self.index) or len(again) != len(self.live)
        return num_wrong


def anonymous_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def soak(name: str, minutes: float, pause_s: float, work: Path) -> dict:
    shutil.rmtree(work / name, ignore_errors=True)
    (work / name).mkdir(parents=True)
    with likewise.Index(work / name / "index", RECIPES[name], durability="interval:200ms") as index:
        soaked = Soak(index, work / name / "notes", time.monotonic() + 60 * minutes, pause_s)
        threads = [threading.Thread(target=soaked.work, args=(number,)) for number in range(NUM_THREADS)]
        for thread in threads:
            thread.start()
        samples = []
        while any(thread.is_alive() for thread in threads):
            time.sleep(min(10, 6 * minutes))
            samples.append({"num_held": len(index), "num_added": soaked.num_added, "anonymous": anonymous_bytes()})
        assert not soaked.failures, soaked.failures
        began = time.monotonic()
        figures = {
            "minutes": minutes,
            "pause_ms": 1_000 * pause_s,
            "num_added": soaked.num_added,
            "num_removed": soaked.num_removed,
            "num_checks": soaked.num_checks,
            "num_promoted": soaked.num_promoted,
            "findings": [str(finding) for finding in index.verify(full=True)],
            "num_wrong": soaked.replay(work / name / "again", RECIPES[name]),
            "replay_s": time.monotonic() - began,
            "samples": samples[:: max(1, len(samples) // 60)],
        }
    shutil.rmtree(work / name)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--pause-ms", type=float, default=0, help="how long each thread rests after a step")
    parser.add_argument("--recipe", choices=list(RECIPES), default="simhash")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "likewise-soak")
    given = parser.parse_args()
    figures = soak(given.recipe, given.minutes, given.pause_ms / 1_000, given.work)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results |= {"machine": machine.facts(), given.recipe: figures}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps({name: value for name, value in figures.items() if name != "samples"}))


if __name__ == "__main__":
    main()
