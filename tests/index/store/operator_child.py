"""A writer or a reader that works until it is killed or gets an error, and prints the answers that it got.

`operator_child.py PATH MODE`; a mode is "write" or "read".
"""

import json
import random
import sys

from likewise.errors import StoreError
from tests.index.store.crash_index import open_small

RECIPE = "simhash"
NUM_FIRST = 120


def text(number):
    chance = random.Random(number)
    return " ".join(f"w{chance.randrange(10**6)}" for _ in range(20))


def tell(**what):
    print(json.dumps(what), flush=True)


def work(path, mode):
    with open_small(path, RECIPE, read_only=mode == "read") as index:
        tell(ready=True)
        number = NUM_FIRST
        while True:
            known = number * 7 % NUM_FIRST
            kept_id = index.check(text(known)).kept_id
            assert kept_id == f"d{known}", (known, kept_id)
            if mode == "write":
                verdict = index.add(f"d{number}", text(number))
                assert verdict.is_new
                tell(acknowledged=number)
                if number % 10 == 0:
                    index.remove(f"d{number}")
                    tell(removed=number)
            elif number % 20 == 0:
                tell(looked=number)
            number += 1


if __name__ == "__main__":
    try:
        work(*sys.argv[1:])
    except (StoreError, OSError) as error:
        tell(error=type(error).__name__, message=str(error))
