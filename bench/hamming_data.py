"""Fingerprints to search: uniform ones, and resampled ones of real paragraphs; written as flat files of any length.

    hamming_data.py [--work FOLDER] [--bits 64|128] [--kind uniform|real] --n N

A set is made in chunks of a million rows, each from its own seed, so that a shorter set is a prefix of a longer
one and 1e9 rows need no more memory than 1e6.

uniform   every bit a fair coin
real      fingerprints of the paragraphs of bench/data, resampled: each row takes its bits from two paragraphs, so that
          the shares and correlations of the bits are those of real text. In each chunk, twenty templates have a hundred
          filled-in copies each (0 to 4 bits changed), and ten rows are one page that is the same in every chunk
both      a hundredth of the rows are copies of an earlier row with 0 to 8 bits changed (of 128: 0 to 40)

64 bits use single words (the textbook's features, whose stop words make all texts similar) with a quarter of the bits
from the second paragraph; 128 bits use word 3-grams, half and half: at the wide radii of 128 bits, single words
have so many pairs that output would dominate the measurement.
"""

import argparse
import functools
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

HERE = Path(__file__).parent
WORK = Path(tempfile.gettempdir()) / "likewise-hamming"
CHUNK_ROWS = 1_000_000
PLANTED_SHARE = 0.01
WIDEST_PLANTED = {64: 8, 128: 40}
NUM_TEMPLATES, TEMPLATE_ROWS, TEMPLATE_FLIPS = 20, 100, 4
NUM_EQUAL = 10
LEAST_CHARACTERS = 60
# Chunks from here on are never stored: they supply queries without a planted match.
UNSEEN_CHUNK = 10_000_000
SHINGLE = {64: 1, 128: 3}


def base_fingerprints(work: Path, bits: int, data: Path = HERE / "data") -> np.ndarray:
    """Return distinct fingerprints of the paragraphs of the corpora, (n, words) uint64; cached in `work`."""
    cache = work / f"paragraphs-{bits}.npy"
    if not cache.exists():
        import likewise

        texts: list[str] = []
        for corpus in ("plain", "templates"):
            path = data / f"{corpus}.parquet"
            if not path.exists():
                raise SystemExit(f"{path} is missing: make it with bench/corpus.py")
            for text in pq.read_table(path, columns=["text"]).column("text"):
                texts += [part for part in text.as_py().split("\n\n") if len(part) >= LEAST_CHARACTERS]
        recipe = likewise.Recipe.simhash(bits=bits, tokens="word", shingle=SHINGLE[bits])
        made = np.unique(likewise.sketch(texts, recipe).array.reshape(len(texts), -1), axis=0)
        work.mkdir(parents=True, exist_ok=True)
        np.save(cache, made)
    return np.load(cache)


def flip(codes: np.ndarray, num_flips: np.ndarray, bits: int, rng: np.random.Generator) -> np.ndarray:
    """Return copies with exactly `num_flips` bits changed, row by row."""
    changed = np.zeros_like(codes)
    while len(rows := np.flatnonzero(np.bitwise_count(changed).sum(axis=1) < num_flips)):
        drawn = rng.integers(0, bits, len(rows))
        changed[rows, drawn // 64] |= np.uint64(1) << (drawn % 64).astype(np.uint64)
    return codes ^ changed


def flat_name(kind: str, bits: int, n: int) -> str:
    """Return the name of a flat file of `n` rows."""
    return f"{kind}-{bits}-{n}.u64"


class Codes:
    """One set of fingerprints of any length: `kind` uniform or real, `bits` 64 or 128."""

    def __init__(self, kind: str, bits: int = 64, *, work: Path = WORK, seed: int = 1) -> None:
        self.kind, self.bits, self.work, self.seed = kind, bits, work, seed
        self.words = bits // 64
        self._base = base_fingerprints(work, bits) if kind == "real" else None

    @functools.lru_cache(maxsize=2)  # noqa: B019 - one set a process
    def _unseen(self, part: int) -> np.ndarray:
        return self.chunk(UNSEEN_CHUNK + part)[0]

    def _draw(self, rng: np.random.Generator, num: int) -> np.ndarray:
        """Return `num` rows without anything planted."""
        random = rng.integers(0, 2**64, (num, self.words), dtype=np.uint64)
        if self._base is None:
            return random
        if self.bits == 64:
            random &= rng.integers(0, 2**64, (num, self.words), dtype=np.uint64)
        first, second = (self._base[rng.integers(0, len(self._base), num)] for _ in range(2))
        return first ^ ((first ^ second) & random)

    def chunk(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ((CHUNK_ROWS, words) codes, (m, 3) planted: row, row of the original in this chunk, bits changed)."""
        rng = np.random.default_rng([self.seed, self.bits, int(self.kind == "real"), number])
        codes = self._draw(rng, CHUNK_ROWS)
        if self._base is not None:
            rows = rng.choice(CHUNK_ROWS, NUM_TEMPLATES * TEMPLATE_ROWS + NUM_EQUAL, replace=False)
            filled = np.repeat(self._draw(rng, NUM_TEMPLATES), TEMPLATE_ROWS, axis=0)
            flips = rng.integers(0, TEMPLATE_FLIPS + 1, len(filled))
            codes[rows[: len(filled)]] = flip(filled, flips, self.bits, rng)
            codes[rows[len(filled) :]] = self._base[0]
        num_planted = round(CHUNK_ROWS * PLANTED_SHARE)
        copies = np.sort(rng.choice(np.arange(1, CHUNK_ROWS), num_planted, replace=False))
        originals = (rng.random(num_planted) * copies).astype(np.int64)
        flips = rng.integers(0, WIDEST_PLANTED[self.bits] + 1, num_planted)
        # Only rows that are not copies themselves are copied, so that the planted distances are exact.
        fresh = ~np.isin(originals, copies)
        copies, originals, flips = copies[fresh], originals[fresh], flips[fresh]
        codes[copies] = flip(codes[originals], flips, self.bits, rng)
        return codes, np.stack([copies, originals, flips], axis=1)

    def planted(self, n: int, within: int) -> np.ndarray:
        """Return (m, 2) rows of the planted pairs at distance exactly `within` among the first `n`, original first."""
        found = []
        for number in range(-(-n // CHUNK_ROWS)):
            planted = self.chunk(number)[1]
            planted = planted[(planted[:, 2] == within) & (planted[:, 0] < n - number * CHUNK_ROWS)]
            found.append(planted[:, 1::-1] + number * CHUNK_ROWS)
        return np.concatenate(found)

    def array(self, n: int) -> np.ndarray:
        """Return the first `n` rows in memory, (n, words)."""
        return np.fromfile(self.path(n), "<u8").reshape(n, self.words)

    def path(self, n: int) -> Path:
        """Return the flat file of the first `n` rows: only little-endian words, row after row; written if absent."""
        path = self.work / flat_name(self.kind, self.bits, n)
        if not path.exists() or path.stat().st_size != n * self.words * 8:
            self.work.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                for number, low in enumerate(range(0, n, CHUNK_ROWS)):
                    out.write(self.chunk(number)[0][: n - low].astype("<u8", copy=False).data)
        return path

    def mapped(self, n: int) -> np.ndarray:
        """Return the first `n` rows as a read-only view of the file, (n, words)."""
        return np.memmap(self.path(n), "<u8", "r").reshape(n, self.words)

    def queries(self, num: int, n: int, within: int, *, seed: int = 2) -> np.ndarray:
        """Return (num, words) queries: half are stored rows with 0 to `within` bits changed, half from new chunks."""
        return self.queries_and_rows(num, n, within, seed=seed)[0]

    def queries_and_rows(self, num: int, n: int, within: int, *, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
        """Return the queries, and the row that each was made from, -1 for those from unseen chunks."""
        rng = np.random.default_rng([self.seed, seed])
        num_chunks = -(-n // CHUNK_ROWS)
        chosen = rng.choice(num_chunks, min(8, num_chunks), replace=False)
        near = num // 2
        stored, origins = [], []
        for part, number in enumerate(chosen):
            count = near // len(chosen) + (part < near % len(chosen))
            rows = rng.integers(0, min(CHUNK_ROWS, n - number * CHUNK_ROWS), count)
            origins.append(rows + number * CHUNK_ROWS)
            stored.append(np.asarray(self.mapped(n)[np.sort(origins[-1])]))
            origins[-1].sort()
        originals = np.concatenate(stored)
        made = flip(originals, rng.integers(0, within + 1, near), self.bits, rng)
        fresh = [self._unseen(part) for part in range(-(-(num - near) // CHUNK_ROWS))]
        unseen = np.concatenate(fresh)[: num - near] if fresh else originals[:0]
        order = rng.permutation(num)
        rows = np.concatenate([*origins, np.full(num - near, -1)])
        return np.concatenate([made, unseen])[order], rows[order]


def main() -> None:
    """Write one flat file."""
    parser = argparse.ArgumentParser(description="Write a flat file of fingerprints.")
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--kind", choices=("uniform", "real"), default="uniform")
    parser.add_argument("--bits", type=int, choices=(64, 128), default=64)
    parser.add_argument("--n", type=float, required=True)
    options = parser.parse_args()
    print(Codes(options.kind, options.bits, work=options.work).path(int(options.n)))


if __name__ == "__main__":
    main()
