#!/usr/bin/env bash
# Claim: StringZilla's MinHash with windows of three or four bytes picks one and the same window in all 256 dimensions, the smallest one in byte order, so its estimates are 0 or 1.
# Package: stringzilla 5.3.2, stringzillas-cpus 5.3.2, numpy 2.4.6 (PyPI)
# Expected: Each dimension has a hash function of its own and picks a window at random, so 256 of them estimate a Jaccard similarity with a standard error of .03 at most. Its code states that multipliers and moduli of their own make the dimensions independent.
# Happens: The hash of a window is a polynomial of its bytes with a multiplier from 256 to 639, modulo about 2^42. Up to four bytes it stays below the modulus, and is then in the order of the bytes for any multiplier and seed. With five bytes most dimensions pick from few windows; from six on they differ. Two of the eight default widths are 3 and 4, a third is 5.
# Seen: windows picked in a text of 1,315: 1 of width 3, 1 of width 4, 32 of width 5, 164 of width 6, 220 of width 7; a copy with 10% other words, mean Jaccard similarity .82: 28 of 200 pairs 0, the others 1; unrelated texts, .08: 31 of 200 pairs 1; default widths: copies .39 to .80, unrelated texts up to .32; same with another seed and with serial code (2026-11-30)
# Matters: Character 3-grams and 4-grams are common, and English texts that contain a word with the same first letters are equal by them. Take windows of six bytes or more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile stringzilla==5.3.2 stringzillas-cpus==5.3.2 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import random

import numpy
import stringzilla
import stringzillas

random.seed(1)
WORDS = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9))) for _ in range(5_000)]


def windows(text, width):
    return {text[at : at + width] for at in range(len(text) - width + 1)}


def jaccard(first, second, width):
    first, second = windows(first, width), windows(second, width)
    return len(first & second) / len(first | second)


def changed(text):
    words = text.split()
    for at in random.sample(range(200), 20):
        words[at] = random.choice(WORDS)
    return " ".join(words)


def fingerprints(strings, width, **options):
    widths = numpy.array([width], dtype=numpy.uint64)
    return stringzillas.Fingerprints(ndim=256, window_widths=widths, **options)(stringzilla.Strs(strings))[0]


def line(texts, others, width):
    estimates = (fingerprints(texts, width) == fingerprints(others, width)).mean(axis=1)
    truth = numpy.array([jaccard(*pair, width) for pair in zip(texts, others)])
    error = numpy.sqrt(((estimates - truth) ** 2).mean())
    return f"mean {truth.mean():.2f}, estimates 0: {(estimates == 0).sum()}, 1: {(estimates == 1).sum()}, error {error:.2f}"


texts = [" ".join(random.choices(WORDS, k=200)) for _ in range(200)]
copies = [changed(text) for text in texts]
unrelated = texts[1:] + texts[:1]
for width in (3, 4, 5, 6, 7, 9):
    parts = sorted(windows(texts[0], width))
    fingerprint = fingerprints(texts[:1], width)
    picked = (fingerprints(parts, width) == fingerprint).any(axis=1)
    first = [part for part, equal in zip(parts, (fingerprints(parts, width) == fingerprint).all(axis=1)) if equal]
    print(f"width {width}: {picked.sum()} of {len(parts)} windows picked;", "the smallest one in all dimensions" if first == parts[:1] else "no window in all dimensions")
    print("  copies with 10% other words:", line(texts, copies, width))
    print("  unrelated texts:", line(texts, unrelated, width))
alike = [(fingerprints(texts, 3, **options) == fingerprints(copies, 3, **options)).all(axis=1).sum() for options in ({"seed": 7}, {"capabilities": ("serial",)})]
print("equal copies of width 3 with another seed and with serial code:", alike[0], alike[1])
engine = stringzillas.Fingerprints(ndim=1_024)
of_texts, of_copies = engine(stringzilla.Strs(texts))[0], engine(stringzilla.Strs(copies))[0]
estimates = (of_texts == of_copies).mean(axis=1)
print(f"default widths: copies {estimates.min():.2f} to {estimates.max():.2f}, unrelated texts up to", end=" ")
print(f"{(of_texts == numpy.roll(of_texts, -1, axis=0)).mean(axis=1).max():.2f}")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
width 3: 1 of 1315 windows picked; the smallest one in all dimensions
  copies with 10% other words: mean 0.82, estimates 0: 28, 1: 172, error 0.35
  unrelated texts: mean 0.08, estimates 0: 169, 1: 31, error 0.37
width 4: 1 of 1416 windows picked; the smallest one in all dimensions
  copies with 10% other words: mean 0.78, estimates 0: 34, 1: 166, error 0.38
  unrelated texts: mean 0.02, estimates 0: 193, 1: 7, error 0.18
width 5: 32 of 1420 windows picked; no window in all dimensions
  copies with 10% other words: mean 0.76, estimates 0: 0, 1: 0, error 0.24
  unrelated texts: mean 0.01, estimates 0: 180, 1: 0, error 0.09
width 6: 164 of 1420 windows picked; no window in all dimensions
  copies with 10% other words: mean 0.74, estimates 0: 0, 1: 0, error 0.04
  unrelated texts: mean 0.01, estimates 0: 47, 1: 0, error 0.01
width 7: 220 of 1420 windows picked; no window in all dimensions
  copies with 10% other words: mean 0.72, estimates 0: 0, 1: 0, error 0.04
  unrelated texts: mean 0.01, estimates 0: 59, 1: 0, error 0.00
width 9: 238 of 1420 windows picked; no window in all dimensions
  copies with 10% other words: mean 0.68, estimates 0: 0, 1: 0, error 0.04
  unrelated texts: mean 0.00, estimates 0: 111, 1: 0, error 0.00
equal copies of width 3 with another seed and with serial code: 172 172
default widths: copies 0.39 to 0.80, unrelated texts up to 0.32
SEEN
