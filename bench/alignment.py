"""Measure the worst cases of edit distance and longest common subsequence, at the size limit of each unit.

    alignment.py [--results FILE]

Random texts without a common prefix or suffix. Writes results/alignment.json and prints a table.
"""

import argparse
import random
import time
from collections.abc import Iterator
from pathlib import Path

import machine
from likewise.measures import Alignment

HERE = Path(__file__).parent
CHARACTER_BYTES, TOKEN_BYTES = 65_536, 200_000
MAX_CELLS = 10**10


def main() -> None:
    """Measure, write the results, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "alignment.json")
    options = parser.parse_args()
    rows = [measure(name, a, b) for name, a, b in texts()]
    machine.write_results(options.results, rows=rows)
    print(table(rows))


def texts() -> Iterator[tuple[str, str, str]]:
    """Yield a description of two texts, and both of them."""
    rng = random.Random(11)
    ideographs = [chr(0x4E00 + i) for i in range(20_000)]
    for alphabet in ("ab", "abcdefghijklmnopqrstuvwxyz"):
        a, b = (framed("".join(rng.choices(alphabet, k=CHARACTER_BYTES - 4)), side) for side in "yz")
        yield f"{len(alphabet)} letters", a, b
    a, b = (framed("".join(rng.choices(ideographs, k=(CHARACTER_BYTES - 4) // 3)), side) for side in "yz")
    yield "20,000 ideographs", a, b
    for num_words in (26, 20_000):
        words = [chr(97 + i) for i in range(26)] if num_words == 26 else [f"w{i}" for i in range(num_words)]
        a, b = (framed(" ".join(drawn(rng, words, TOKEN_BYTES - 8)), side) for side in "yz")
        yield f"{num_words:,} words", a, b
    a, b = (framed("".join(rng.choices(ideographs, k=(TOKEN_BYTES - 8) // 3)), side) for side in "yz")
    yield "20,000 ideographs", a, b
    for num_lines in (round(MAX_CELLS**0.5) - 2, 4 * round(MAX_CELLS**0.5)):
        for num_kinds in (26, 20_000):
            kinds = [f"line {i}" for i in range(num_kinds)]
            a, b = (framed("\n".join(rng.choices(kinds, k=num_lines)), side, "\n") for side in "yz")
            yield f"{num_kinds:,} lines", a, b


def framed(text: str, side: str, between: str = " ") -> str:
    """Return a text with a beginning and an end that the other side lacks."""
    return f"{side}{between}{text}{between}{side}"


def drawn(rng: random.Random, words: list[str], num_bytes: int) -> list[str]:
    """Return random words that take `num_bytes` bytes with a space after each."""
    found = []
    while num_bytes > 0:
        found.append(rng.choice(words))
        num_bytes -= len(found[-1]) + 1
    return found[:-1]


def measure(name: str, a: str, b: str) -> dict[str, object]:
    """Return the processor seconds of both measures together, as `compare` computes them, on one thread."""
    began = time.process_time()
    found = Alignment.of_texts(a, b)
    seconds = time.process_time() - began
    return {
        "of": name,
        "text_bytes": max(len(a.encode()), len(b.encode())),
        "unit": found.unit,
        "num_units": max(found.lengths),
        "is_exact": found.is_exact,
        "seconds": round(seconds, 3),
    }


def table(rows: list[dict[str, object]]) -> str:
    """Return the rows as a table."""
    lines = ["| each text: random | bytes | unit | units | exact | seconds |", "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(
            f"| {row['of']} | {row['text_bytes']:,} | {row['unit']} | {row['num_units']:,} "
            f"| {'yes' if row['is_exact'] else 'bounds'} | {row['seconds']:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
