"""A writer that is killed. It logs each step before it begins, and each answer, to a file that survives it.

As a program, it waits for jobs, one line of JSON each, and forks a child for each: forking is faster than starting.
"""

import json
import os
import random
import sys
import traceback

WORDS = [f"w{number}" for number in range(30)]
NUM_BASES = 25
MOST_STEPS = 400


def make_text(number, chance):
    """Return the text of document `number`: an edit of one of a few sentences, sometimes short or empty."""
    kind = chance.random()
    if kind < 0.03:
        return ""
    base = chance.randrange(NUM_BASES)
    words = [f"{word}b{base}" for word in WORDS[: 4 if kind < 0.1 else 24]]
    for _ in range(chance.randrange(4)):
        words[chance.randrange(len(words))] = f"edit{chance.randrange(40)}"
    return " ".join(words)


def choose_step(number, live, chance):
    """Return the next step, as a list of JSON values."""
    kind = chance.random()
    if kind < 0.70:
        size = chance.choice([1, 1, 2, 5, 30])
        ids = [f"doc-{number + i}" for i in range(size)]
        return ["add", ids, [make_text(number + i, chance) for i in range(size)]]
    if kind < 0.90 and live:
        return ["remove", chance.choice(live)]
    if kind < 0.96:
        return ["compact"]
    return ["snapshot", f"snapshot-{number}-{chance.randrange(10**9)}"]


def told(verdict):
    return [verdict.doc_id, verdict.is_new, verdict.kept_id, verdict.similarity, verdict.distance, verdict.seq]


def play(index, step, folder):
    """Return the answer of the index to a step, as JSON values."""
    verb = step[0]
    if verb == "add":
        if len(step[1]) == 1:
            return [told(index.check_and_add(step[1][0], step[2][0]))]
        return [told(verdict) for verdict in index.check_and_add_batch(step[1], step[2])]
    if verb == "remove":
        removal = index.remove(step[1])
        return [removal.was_kept, list(removal.promoted), [list(pair) for pair in removal.moved]]
    if verb == "compact":
        index.compact()
    else:
        index.snapshot(f"{folder}/{step[1]}")
    return None


def run(job):
    """Open the index and run random steps until killed."""
    from tests.index.store.crash_index import open_small

    log = os.open(job["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(*what):
        os.write(log, json.dumps(what).encode() + b"\n")

    try:
        chance = random.Random(job["seed"])
        live, number = list(job["live"]), job["number"]
        say("opens")
        index = open_small(job["path"], job["recipe"])
        for _ in range(MOST_STEPS):
            step = choose_step(number, live, chance)
            say("begins", step)
            answer = play(index, step, job["folder"])
            say("told", answer)
            if step[0] == "add":
                live += step[1]
                number += len(step[1])
            elif step[0] == "remove":
                live.remove(step[1])
        say("closes")
        index.close()
        say("closed")
    except BaseException:
        say("failed", traceback.format_exc())


def main():
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            run(json.loads(line))
            os._exit(0)
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("dead", flush=True)


if __name__ == "__main__":
    import likewise

    likewise.Index  # noqa: B018 - loaded before the first fork
    main()
