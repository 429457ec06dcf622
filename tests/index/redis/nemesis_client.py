"""A client process of the nemesis tests: random calls on an index, with each outcome logged as a line of JSON.

nemesis_client.py FOLDER NUMBER SEED REMOVES: works on FOLDER/current (a socket) until FOLDER/stop exists.
"""

import json
import random
import sys
import time
from pathlib import Path

import likewise
from likewise.errors import LikewiseError, LostWrites
from likewise.redis import RedisIndex

NUM_TEXTS = 60
_BASES = 12


def text_of(doc_id):
    """Return the text of an id, given by its last number. Each document has a few variants."""
    number = int(doc_id.rsplit("-", 1)[1])
    words = [f"page{number % _BASES}word{j}" for j in range(90)]
    for variant in range(number // _BASES):
        words[7 * variant] = f"variant{number}"
    return " ".join(words)


def clock(folder):
    """Return the current error of the clock in seconds, as set by the test, or None if it never set one."""
    path = folder / "clock"
    return int(path.read_text() or 0) if path.exists() else None


class Client:
    def __init__(self, folder, number, seed, *, removes):
        self.folder, self.number, self.removes = folder, number, removes
        self.chance = random.Random(seed)
        self.log = (folder / f"client-{number}.jsonl").open("w", encoding="utf-8", buffering=1)
        self.mine, self.again, self.count = [], [], 0
        self.index = None

    def say(self, **line):
        self.log.write(json.dumps(line) + "\n")

    def open(self):
        while self.index is None:
            try:
                self.index = RedisIndex(f"unix://{self.folder / 'current'}", threads=1, timeout_s=0.3)
            except LikewiseError:
                time.sleep(0.05)

    def call(self, op, ids, do):
        offset = clock(self.folder)
        self.index._reader.now_s = None if offset is None else int(time.time()) + offset
        line = {"op": op, "ids": ids, "start": time.monotonic()}
        answer = None
        try:
            answer = do()
            line["answer"] = said(op, answer)
        except LostWrites as lost:
            line |= {"error": "LostWrites", "lost": lost.doc_ids, "lost_removals": lost.removed_ids}
            line["is_complete"] = lost.is_complete
            if self.chance.random() < 0.5:
                self.again += lost.doc_ids
        except LikewiseError as error:
            line |= {"error": type(error).__name__, "message": str(error)}
        except Exception as error:  # no client may see such an error
            line |= {"raw": repr(error)}
        self.say(**line, stop=time.monotonic())
        return answer

    def new_id(self):
        text = self.chance.randrange(NUM_TEXTS)
        if self.chance.random() < 0.3:
            return f"shared-{self.chance.randrange(20)}-{text}"
        self.count += 1
        return f"own-{self.number}-{self.count}-{text}"

    def add(self):
        num = self.chance.choice([1, 1, 2, 5, 20])
        ids = [self.again.pop() for _ in range(min(num, len(self.again)))] or [self.new_id() for _ in range(num)]
        ids = list(dict.fromkeys(ids))
        if self.call("add", ids, lambda: self.index.check_and_add_batch(ids, [text_of(i) for i in ids])) is not None:
            self.mine += [doc_id for doc_id in ids if doc_id.startswith("own")]

    def step(self):
        kind = self.chance.random()
        if kind < 0.5 or not self.mine:
            self.add()
        elif kind < 0.6 and self.removes:
            doc_id = self.mine.pop(self.chance.randrange(len(self.mine)))
            self.call("remove", [doc_id], lambda: self.index.remove(doc_id))
        elif kind < 0.8:
            ids = [f"any-{self.chance.randrange(NUM_TEXTS)}" for _ in range(self.chance.choice([1, 10]))]
            self.call("check", ids, lambda: self.index.check_batch([text_of(doc_id) for doc_id in ids]))
        else:
            doc_id = self.chance.choice(self.mine)
            op = self.chance.choice(["get", "group", "neighbors"])
            given = text_of(doc_id) if op == "neighbors" else doc_id
            self.call(op, [doc_id], lambda: getattr(self.index, op)(given))

    def run(self):
        self.open()
        self.say(op="ready")
        while not (self.folder / "stop").exists():
            self.step()
        # Losses are reported by the next call that the server answers.
        while True:
            try:
                len(self.index)
                break
            except LostWrites as lost:
                self.say(
                    op="end",
                    error="LostWrites",
                    lost=lost.doc_ids,
                    lost_removals=lost.removed_ids,
                    is_complete=lost.is_complete,
                )
            except LikewiseError:
                time.sleep(0.05)
        self.say(op="done")


def said(op, answer):
    """Return an answer as JSON."""
    if op == "add":
        return [[v.doc_id, v.kept_id, v.distance, v.seq, bool(v.added)] for v in answer]
    if op == "check":
        return [[v.kept_id, v.distance] for v in answer]
    if op == "get":
        return None if answer is None else [answer.doc_id, answer.kept_id, answer.distance, answer.seq]
    if op == "group":
        return [answer.leader_id, answer.is_leader_gone, list(answer.member_ids)]
    if op == "neighbors":
        return [[one.doc_id, one.distance] for one in answer]
    return [answer.doc_id, answer.was_kept, list(answer.promoted), [list(pair) for pair in answer.moved]]


if __name__ == "__main__":
    assert likewise
    folder, number, seed, removes = sys.argv[1:]
    Client(Path(folder), int(number), int(seed), removes=removes == "1").run()
