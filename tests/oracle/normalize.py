"""Normalized text for characters assigned in Unicode 14: `toNFKC_Casefold` without tatweel, then single spaces.

Python 3.11 includes Unicode 14; later versions do not change the mapping of characters assigned by then.
Characters assigned later are outside this oracle.
"""

import functools
import unicodedata

# Default_Ignorable_Code_Point, first and last.
DEFAULT_IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip

WHITE_SPACE = frozenset(
    [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
)


def scalars(text):
    """Return the text with every lone surrogate replaced by U+FFFD."""
    return "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)


def is_ignorable(c):
    """Return whether a character is never text: the Arabic tatweel, and those that Unicode ignores."""
    return ord(c) == 0x640 or any(first <= ord(c) <= last for first, last in DEFAULT_IGNORABLE)


def is_assigned(c):
    return unicodedata.category(c) != "Cn"


@functools.cache
def nfkc_casefold(c):
    """Return the NFKC_Casefold mapping of one character: repeated until stable, as in its derivation."""
    now = c
    while True:
        before = now
        now = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", now).casefold())
        now = "".join(d for d in now if not is_ignorable(d))
        if now == before:
            return now


def normalize(text):
    folded = unicodedata.normalize("NFC", "".join(nfkc_casefold(c) for c in scalars(text)))
    spaced = "".join(" " if ord(c) in WHITE_SPACE else c for c in folded)
    return " ".join(word for word in spaced.split(" ") if word)
