"""Feed any bytes to the reader of recipes, which is Python: refused by an error of ours, or read and written the same.

``python fuzz/recipe.py [SECONDS] [SEED]``: inputs are recipes with bytes and values changed, again and again. One that
fails is kept in ``fuzz/artifacts/recipe/`` and named, with status 1.
"""

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import likewise
from likewise.errors import InvalidParameter, LikewiseError

HERE = Path(__file__).parent
# Seconds that one input may take.
LONGEST_S = 20
SEEDS = [
    likewise.Recipe.minhash(0.7),
    likewise.Recipe.minhash(0.5, tokens="chinese", num_slots=64, slot_bits=8, scheme="classical", seed=7),
    likewise.Recipe.minhash(0.6, tokens="chunks", chunk_bytes=512, bands=20, rows=4),
    likewise.Recipe.simhash(within=3),
    likewise.Recipe.simhash(within=24, bits=256, tokens="char", fold=("digits", "width")),
    likewise.Recipe.simhash(threshold=0.8, weights="count", markup="html", keep="max:date,longest"),
    likewise.Recipe.shingles(0.5, measure="containment"),
    likewise.Recipe.bloom(0.6, filter_bits=1024, num_hashes=3),
    likewise.Recipe.exact(),
]
LEAVES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 63, 64, 65, 256, 257, 2**31, 2**32, 2**63, 2**64, 10**400, 0.0, -0.0, 0.5, 1.0, 1.5,
    1e-300, 1e300, float("nan"), float("inf"), "", "0", "minhash", "simhash", "bloom", "exact", "shingles", "idf",
    "none", "count", "jaccard", "hamming", "cosine", "lcs", "edit", "auto", "char", "bytes", "user", "classical",
    "max:", "max:a.b", "\ud800", "\0", "a" * 5000, [], {}, [[]], [None], ["digits", "digits"], {"a": 1}, [["word", 1]],
]  # fmt: skip
PIECES = [b"[" * 3000, b'{"a":' * 3000, b"\xff\xfe", b"\0", b"NaN", b"9" * 5000, b'"', b","]


def changed(data: bytes, chance: random.Random) -> bytes:
    """Return an input that is made of another one."""
    if chance.random() < 0.6:
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict) and fields:
            for _ in range(chance.randint(1, 3)):
                _change_field(fields, chance)
            return json.dumps(fields).encode("utf-8", "surrogatepass")
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            changed[at : at + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            del changed[at : at + chance.randint(1, 20)]
        elif kind == 2:
            changed[at:at] = chance.choice(PIECES)
        elif kind == 3:
            changed[at:at] = changed[chance.randrange(len(changed) + 1) :][:40]
        else:
            del changed[at:]
    return bytes(changed[:65536])


def _change_field(fields: dict[str, Any], chance: random.Random) -> None:
    name = chance.choice([*fields, *(json.loads(chance.choice(SEEDS).to_json())), "other", ""])
    kind = chance.randrange(5)
    if kind == 0:
        fields.pop(name, None)
    elif kind == 1:
        fields[name] = [fields.get(name), chance.choice(LEAVES)]
    elif kind == 2 and isinstance(fields.get(name), int | float):
        fields[name] = fields[name] * chance.choice([-1, 2, 3, 64]) + chance.choice([-1, 0, 1])
    elif kind == 3:
        fields["recipe"] = dict(fields)
    else:
        fields[name] = chance.choice(LEAVES)


def hold(data: bytes, path: Path) -> bool:
    """Read one input; return whether it is a recipe. Raises where the reader is at fault."""
    path.write_bytes(data)
    try:
        recipe = likewise.Recipe.from_file(path)
    except LikewiseError:
        return False
    again = likewise.Recipe.from_json(recipe.to_json())
    assert (again, again.sketch_id) == (recipe, recipe.sketch_id), "it is not read as it was written"
    assert _recipe_id(again) == _recipe_id(recipe), "its identity changes when it is written"
    return True


def _recipe_id(recipe: likewise.Recipe) -> str:
    """Return the identity of what it resolves to, or why it does not: no bands reach some recalls."""
    try:
        return recipe.recipe_id
    except InvalidParameter as error:
        return str(error)


def main() -> int:
    """Go on for the seconds that are asked for."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    kept = [recipe.to_json().encode() for recipe in SEEDS]
    end_s, num_read, num_recipes = time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "recipe.json")
        while time.monotonic() < end_s:
            data = changed(chance.choice(kept), chance)
            start_s = time.monotonic()
            try:
                is_recipe = hold(data, path)
                assert time.monotonic() - start_s < LONGEST_S, "it takes too long"
            except BaseException as error:
                artifacts = HERE / "artifacts" / "recipe"
                artifacts.mkdir(parents=True, exist_ok=True)
                failed = artifacts / f"failed-{seed}-{num_read}.json"
                failed.write_bytes(data)
                if isinstance(error, KeyboardInterrupt):
                    raise
                print(f"fuzz recipe: {type(error).__name__}: {error}: {failed}")
                return 1
            num_read += 1
            num_recipes += is_recipe
            # What was read is changed further; of the rest some, so that changes add up.
            if len(kept) < 2000 and (is_recipe or chance.random() < 0.02):
                kept.append(data)
    print(f"fuzz recipe: {num_read} inputs, {num_recipes} of them recipes, seed {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
