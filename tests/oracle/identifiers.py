"""Numbers, model numbers, sizes and colors as features, and the rule on them: the definitions in plain Python."""

import re
from collections import Counter

from tests.oracle.features import MASK, mix
from tests.oracle.xxh3 import xxh3

SIZES = frozenset(["xxs", "xs", "xl", "xxl", "xxxl", "ii", "iii", "iv", "vi", "vii", "viii", "ix", "xi", "xii"])
WORDS = frozenset(["an", "as", "at", "by", "is", "it", "of", "on", "or", "to"])
COLORS = {"black", "white", "gray", "silver", "gold", "blue", "red", "green", "yellow", "orange", "pink", "purple"}
COLORS |= {"brown", "beige"}
UNITS = {
    name: symbol
    for symbol, names in {
        "in": "inch inches", "g": "gram grams", "kg": "kilogram kilograms kilo kilos", "l": "liter liters litre litres",
        "m": "meter meters metre metres", "ft": "foot feet", "lb": "pound pounds lbs", "oz": "ounce ounces",
        "w": "watt watts", "v": "volt volts", "gb": "gigabyte gigabytes gig", "tb": "terabyte terabytes",
        "pack": "packs pk", "pc": "piece pieces pcs", "gray": "grey",
    }.items()
    for name in names.split()
}  # fmt: skip
LETTER, DIGIT = r"[^\W\d_]", r"\d"


def number(text):
    text = re.sub(rf",(?={DIGIT}{{3}}(?!{DIGIT}))", "", text).replace(",", ".")
    return ".".join(part.lstrip("0") for part in text.split(".")).rstrip(".") or "0"


def identifiers(text):
    """Return (token, kind, occurrence) of a normalized text in scripts with spaces; kinds as in the definitions."""
    runs = []
    joined = rf"(?:{LETTER}|{DIGIT})(?:[-/.]?(?:{LETTER}|{DIGIT})|(?<={DIGIT}),(?={DIGIT}))*"
    for chain, found in enumerate(re.findall(joined, text)):
        for run in re.findall(rf"{DIGIT}+(?:[.,]{DIGIT}+)*|{LETTER}+(?:[-/.]{LETTER}+)*", found):
            letters = re.sub("[-/.]", "", run)
            token = number(run) if run[0].isdigit() else UNITS.get(letters, letters)
            size = sum(c.isdigit() for c in token) if token != "0" else 0
            runs.append((token, chain, run[0].isdigit(), size if run[0].isdigit() else len(token)))
    tokens, counts = [], Counter()
    for i, (token, chain, is_number, size) in enumerate(runs):
        near = [runs[j] for j in (i - 1, i + 1) if 0 <= j < len(runs) and runs[j][2]]
        if is_number:
            kind = 3 if size > 4 else 2
        else:
            is_near = near and size <= 2 and token not in WORDS
            in_model = size <= 4 and any(other[1] == chain for other in near)
            kind = 4 if token in COLORS else 1 if size == 1 or token in SIZES or is_near or in_model else 0
        if is_number or size <= 4 or kind == 4:
            tokens.append((token, kind, counts[token]))
            counts[token] += 1
        if i == 0 or runs[i - 1][1] != chain:
            whole = [run for run in runs[i:] if run[1] == chain]
            scalars, digits = (sum(run[3] for run in whole if run[2] or all_runs) for all_runs in (True, False))
            is_mixed = 1 < digits < scalars and (not is_number or len(whole) > 2)
            if scalars >= 4 and (digits >= 5 or is_mixed):
                tokens.append(("".join(run[0] for run in whole), 5, 0))
    return tokens


def unmarked(feature):
    return feature ^ 0x100 if feature >> 8 & 0xFFFF == 0x1D7A else feature


def features(text, seed=0):
    found = set()
    for token, kind, occurrence in identifiers(text):
        hashed = mix((xxh3(token.encode(), seed) ^ 0x6964656E74697479) + occurrence & MASK)
        if kind < 5:
            found.add(hashed >> 24 << 24 | 0x1D7A00 | kind)
        copies = {0: 0, 5: 24}.get(kind, 1)
        found |= {unmarked(mix(mix(hashed ^ kind) + i * 0x9E3779B97F4A7C15 & MASK)) for i in range(1, copies + 1)}
    return found


def disagree(a, b):
    """Return whether each text has a number, a color, or letters that identify, of one kind that the other lacks."""

    def lacking(these, those):
        known = {(token, occurrence) for token, _, occurrence in those}
        return {kind for token, kind, occurrence in these if kind in (1, 2, 3, 4) and (token, occurrence) not in known}

    a, b = identifiers(a), identifiers(b)
    known = [[entry for entry in side if entry[1] < 5] for side in (a, b)]
    return bool(lacking(a, known[1]) & lacking(b, known[0]))
