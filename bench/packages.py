"""Check that stored sketches of other packages stay usable: the packages and Likewise sketch the same random texts.

    packages.py [--texts N]

simhash (1e0ng) and datasketch are run as installed for the rivals; every fingerprint and every slot must be
equal. Results, with a digest of the packages' output, are in bench/results/packages.json. Exits with 1 if any differs.
"""

import argparse
import hashlib
import importlib.metadata
import json
import random
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np

import likewise
from rivals.protocol import make_importable, version

HERE = Path(__file__).parent
SEED = 20260711
# Characters to draw from, covering every script; those unknown to this Python's Unicode are left out.
RANGES = {
    "latin": [(0x20, 0x7E)],
    "western": [(0x20, 0x24F), (0x300, 0x36F), (0x1E00, 0x1EFF)],
    "greek and cyrillic": [(0x20, 0x40), (0x370, 0x52F), (0x3A3, 0x3A3)],
    "chinese": [(0x4E00, 0x9FCC), (0x3000, 0x303F), (0xFF00, 0xFF65)],
    "japanese and korean": [(0x3040, 0x30FF), (0xAC00, 0xD7A3), (0x4E00, 0x4FFF)],
    "semitic and indic": [(0x590, 0x6FF), (0x900, 0xDFF), (0x660, 0x669)],
    "anything": [(0x09, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x1FFFF)],
}
LENGTHS = (0, 1, 2, 3, 4, 5, 8, 20, 100, 400, 3000)


def random_texts(num_texts: int) -> list[str]:
    """Return texts of one script or of two, empty, short and long, some of them of repeated words."""
    rng = random.Random(SEED)
    alphabets = [
        [c for low, high in ranges for c in map(chr, range(low, high + 1)) if unicodedata.category(c) != "Cn"]
        for ranges in RANGES.values()
    ]
    texts = []
    for number in range(num_texts):
        chosen = [*rng.choice(alphabets), *(rng.choice(alphabets) if number % 3 == 0 else [])]
        # Spaces, the capital sigma and the dotted capital I are more frequent: their rules are special.
        drawn = [
            rng.choice(chosen) if rng.random() < 0.8 else rng.choice(" \n.ΣİI_") for _ in range(rng.choice(LENGTHS))
        ]
        text = "".join(drawn)
        # Counts stay below 256: above, simhash 2.1.2 fails under NumPy 2.
        texts.append(text * rng.randint(1, 30) if number % 7 == 0 and len(text) < 20 else text)
    return texts


def simhash_package(texts: list[str]) -> tuple[list[object], list[object]]:
    """Return fingerprints by the package, and ours."""
    make_importable("simhash")
    from simhash import Simhash

    theirs = [Simhash(text).value for text in texts]
    return theirs, likewise.sketch(texts, likewise.Recipe.simhash(hash="simhash-1e0ng")).array.tolist()


def simhash_of_tokens(texts: list[str]) -> tuple[list[object], list[object]]:
    """Return fingerprints of lists of (token, weight), as users of the package pass them."""
    make_importable("simhash")
    from simhash import Simhash

    rng = random.Random(SEED)
    documents = [[(token, rng.randint(1, 15)) for token in dict.fromkeys(text.split())] for text in texts]
    documents = [document or [("nothing", 1)] for document in documents]
    recipe = likewise.Recipe.simhash(hash="md5", weights="own", shingle=1, bits=64)
    return [Simhash(document).value for document in documents], likewise.sketch(documents, recipe).array.tolist()


def datasketch_of_tokens(texts: list[str], scheme: str) -> tuple[list[object], list[object]]:
    """Return signatures of words cut by the package's user."""
    from datasketch import MinHash

    documents = [text.split() for text in texts]
    theirs = []
    for document in documents:
        made = MinHash(num_perm=128, scheme=scheme)
        made.update_batch([token.encode() for token in document])
        theirs.append(made.hashvalues.tolist())
    recipe = likewise.Recipe.minhash(hash="datasketch", scheme=scheme, weights="own")
    pairs = [[(token, 1) for token in dict.fromkeys(document)] for document in documents]
    return theirs, likewise.sketch(pairs, recipe).array.tolist()


def datasketch_of_texts(texts: list[str], scheme: str) -> tuple[list[object], list[object]]:
    """Return signatures of shingles of our words, joined by spaces, with another seed and number of slots."""
    from datasketch import MinHash

    from likewise.stages.text import normalize, tokens

    theirs = []
    for text in texts:
        cut = tokens(text, "word") or [token for token in [normalize(text)] if token]
        shingles = [" ".join(cut[i : i + 3]) for i in range(max(1, len(cut) - 2))] if cut else []
        made = MinHash(num_perm=200, seed=42, scheme=scheme)
        for shingle in shingles:
            made.update(shingle.encode())
        theirs.append(made.hashvalues.tolist())
    recipe = likewise.Recipe.minhash(hash="datasketch", scheme=scheme, seed=42, num_slots=200, tokens="word", shingle=3)
    return theirs, likewise.sketch(texts, recipe).array.tolist()


CASES: dict[str, tuple[str, Callable[[list[str]], tuple[list[object], list[object]]]]] = {
    "simhash: Simhash(text)": ("simhash", simhash_package),
    "simhash: Simhash(list of (token, weight))": ("simhash", simhash_of_tokens),
    "datasketch: affine32, words": ("datasketch", lambda texts: datasketch_of_tokens(texts, "affine32")),
    "datasketch: legacy, words": ("datasketch", lambda texts: datasketch_of_tokens(texts, "legacy")),
    "datasketch: affine32, shingles": ("datasketch", lambda texts: datasketch_of_texts(texts, "affine32")),
    "datasketch: legacy, shingles": ("datasketch", lambda texts: datasketch_of_texts(texts, "legacy")),
}


def main() -> None:
    """Compare, and write and print the results."""
    parser = argparse.ArgumentParser(description="Compare sketches with those of packages.")
    parser.add_argument("--texts", type=int, default=1000, metavar="N")
    texts = random_texts(parser.parse_args().texts)
    rows = []
    for name, (package, sketch) in CASES.items():
        theirs, ours = sketch(texts)
        num_equal = sum(a == b for a, b in zip(theirs, ours, strict=True))
        rows.append(
            {
                "case": name,
                "version": version(package),
                "num_texts": len(texts),
                "num_equal": num_equal,
                "sha256_of_theirs": hashlib.sha256(json.dumps(theirs).encode()).hexdigest(),
            }
        )
        print(f"{name:45} {num_equal} of {len(texts)} equal")
    facts = {
        "python": sys.version.split()[0],
        "unicode_of_python": unicodedata.unidata_version,
        "numpy": np.__version__,
        "likewise": importlib.metadata.version("likewise"),
        "seed": SEED,
        "rows": rows,
    }
    (HERE / "results" / "packages.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    sys.exit(any(row["num_equal"] != row["num_texts"] for row in rows))


if __name__ == "__main__":
    main()
