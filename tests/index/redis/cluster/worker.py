"""One client process of the cluster's tests, which runs given rounds and records operations and answers.

A line of standard input is a round or "end". Records are written at once, so that they survive a kill.
"""

import json
import marshal
import random
import struct
import sys
import time
from pathlib import Path

from likewise.errors import LostWrites, StoreError
from likewise.index.redis.client import BeyondRepair, Options
from likewise.index.redis.nodes import Nodes
from tests.index.redis.cluster.history import NUM_IDS, Checked, History, Recording, Said, Seen
from tests.index.redis.cluster.model_rule import ModelRule
from tests.index.store.cluster_model import ADD, REMOVE, TEXTS


class Written(History):
    """A history that is appended to a file."""

    def __init__(self, path):
        super().__init__()
        self.file = path.open("ab", buffering=0)
        # Losses are requested with every answer.
        self.num_lost["log"] = 1

    def write(self, kind, *what):
        packed = marshal.dumps((kind, *what), 2)
        self.file.write(struct.pack("<I", len(packed)) + packed)

    def log_seen(self, log):
        before = len(self.seen)
        super().log_seen(log)
        for chain in [*self.seen][before:]:
            self.write("seen", chain, tuple(self.seen[chain]))

    def next(self):
        return time.monotonic_ns()


def play(number, task, folder):
    """Run operations until the round is over, then the client's last call, after the servers have recovered."""
    history = Written(folder / f"{task['round']}-{number}-{time.monotonic_ns()}")
    nodes = Nodes(task["url"], 0.5, task["patience_s"], task["replicas"])
    client = Recording(
        history, nodes, task["prefix"].encode(), task["num"], ModelRule(task["num"]), Options(*task["options"])
    )
    history.write("client", client._name)
    rng = random.Random(f"{task['round']} {number}")
    is_last = False
    while not is_last:
        if (folder / f"{task['round']}-over").exists():
            is_last = True
        said, checked, told = len(history.said), len(history.checked), set(history.told)
        kind = rng.random()
        try:
            if is_last or kind < 0.15:
                client.look(rng.choice(TEXTS))
            elif kind < 0.3:
                client.add(REMOVE, (rng.randrange(NUM_IDS),))
            else:
                docs = [(doc_id, TEXTS[doc_id % 4]) for doc_id in rng.choices(range(NUM_IDS), k=rng.choice((1, 2)))]
                client.add(ADD, tuple(docs))
        except LostWrites:
            is_last = False
        except BeyondRepair as error:
            history.write("beyond", str(error))
            break
        except StoreError as error:
            history.write("error", str(error))
            if "was deleted or replaced" in str(error):
                history.write("beyond", str(error))
                break
            is_last = False
            time.sleep(0.05)
        for one in history.said[said:]:
            history.write("said", tuple(one[:4]), tuple(one.reported))
        for one in history.checked[checked:]:
            history.write("checked", tuple(one))
        for chain in set(history.told) - told:
            history.write("told", chain, history.told[chain])
        time.sleep(rng.random() * task["pause_s"])
    history.write("end")
    history.file.close()
    nodes.close()


def gathered(paths):
    """Return one history from the files of all clients, the names of stopped clients, errors, and fatal losses."""
    history, dead, errors, beyond = History(), set(), [], []
    for path in paths:
        raw, at, name = path.read_bytes(), 0, None
        while at + 4 <= len(raw):
            length = int.from_bytes(raw[at : at + 4], "little")
            if at + 4 + length > len(raw):
                break
            kind, *what = marshal.loads(raw[at + 4 : at + 4 + length])
            at += 4 + length
            if kind == "client":
                name = what[0]
                dead.add(name)
            elif kind == "seen":
                history.seen[what[0]] = Seen(*what[1])
            elif kind == "said":
                history.said.append(Said(*what[0], frozenset(what[1])))
            elif kind == "checked":
                history.checked.append(Checked(*what[0]))
            elif kind == "told":
                history.told[what[0]] = what[1]
            elif kind == "error":
                errors.append(what[0])
            elif kind == "beyond":
                beyond.append(what[0])
            else:
                dead.discard(name)
    return history, dead, errors, beyond


def main():
    number, folder = sys.argv[1], Path(sys.argv[2])
    for line in sys.stdin:
        if line.strip() == "end":
            return
        play(number, json.loads(line), folder)
        print("done", flush=True)


if __name__ == "__main__":
    main()
