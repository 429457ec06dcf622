"""Tokens: the word boundaries of UAX #29 with every rule written out, over an explicit set of characters.

The classes are listed here for ASCII, accented Latin, Greek, Cyrillic, Hebrew, Arabic letters, Han, kana,
Hangul, Thai, Lao, digits, common punctuation, combining marks and a few emoji, after normalization. Any other
character raises `OutsideOracle`, unless a wider table of classes is passed.
"""

import functools
import itertools
import unicodedata

from tests.oracle.normalize import normalize

SOT = "sot"
SKIPPED = ("Extend", "Format", "ZWJ")
AH = ("ALetter", "Hebrew_Letter")
MID_NUM_LET_Q = ("MidNumLet", "Single_Quote")

# Characters of a class that are neither letters nor in a range below.
SINGLE = {
    " ": "WSegSpace",
    "'": "Single_Quote",
    '"': "Double_Quote",
    "_": "ExtendNumLet", "\u203f": "ExtendNumLet", "\u2040": "ExtendNumLet", "\u2054": "ExtendNumLet",
    ".": "MidNumLet", "\u2018": "MidNumLet", "\u2019": "MidNumLet",
    ":": "MidLetter", "\u00b7": "MidLetter", "\u2027": "MidLetter", "\u05f4": "MidLetter", "\u055f": "MidLetter",
    ",": "MidNum", ";": "MidNum", "\u2044": "MidNum", "\u060c": "MidNum", "\u066c": "MidNum", "\u0589": "MidNum",
    "\u066b": "Numeric",
    "\u30a0": "Katakana",
    "\u05f3": "ALetter", "\u3005": "ALetter", "\u303b": "ALetter", "\u303c": "ALetter",
    "\u0e4e": "Extend", "\ufffd": "Other",
}  # fmt: skip

# (first, last, class); letters, unless the class says otherwise.
RANGES = (
    (0x0061, 0x007A, "ALetter"), (0x00DF, 0x00F6, "ALetter"), (0x00F8, 0x00FF, "ALetter"),
    (0x0100, 0x017F, "ALetter"), (0x0180, 0x01BF, "ALetter"), (0x01CD, 0x024F, "ALetter"), (0x0250, 0x02AF, "ALetter"),
    (0x0370, 0x0373, "ALetter"), (0x0376, 0x0377, "ALetter"), (0x037B, 0x037D, "ALetter"), (0x0386, 0x0386, "ALetter"),
    (0x0388, 0x03CE, "ALetter"), (0x0400, 0x0481, "ALetter"), (0x048A, 0x052F, "ALetter"),
    (0x0561, 0x0586, "ALetter"),
    (0x05D0, 0x05EA, "Hebrew_Letter"), (0x05EF, 0x05F2, "Hebrew_Letter"),
    (0x0620, 0x064A, "ALetter"), (0x066E, 0x066F, "ALetter"), (0x0671, 0x06D3, "ALetter"),
    (0x1100, 0x115E, "ALetter"), (0x1161, 0x11FF, "ALetter"), (0x1E00, 0x1EFF, "ALetter"), (0x1F00, 0x1FBC, "ALetter"),
    (0xAC00, 0xD7A3, "ALetter"),
    (0x0030, 0x0039, "Numeric"), (0x0660, 0x0669, "Numeric"), (0x06F0, 0x06F9, "Numeric"),
    (0x0E50, 0x0E59, "Numeric"), (0x0ED0, 0x0ED9, "Numeric"), (0x0966, 0x096F, "Numeric"),
    (0x0300, 0x034E, "Extend"), (0x0350, 0x0362, "Extend"), (0x0483, 0x0489, "Extend"),
    (0x0591, 0x05BD, "Extend"), (0x05BF, 0x05BF, "Extend"), (0x05C1, 0x05C2, "Extend"), (0x05C4, 0x05C5, "Extend"),
    (0x05C7, 0x05C7, "Extend"), (0x064B, 0x065F, "Extend"),
    (0x0E31, 0x0E31, "Extend"), (0x0E34, 0x0E3A, "Extend"), (0x0E47, 0x0E4D, "Extend"),
    (0x0EB1, 0x0EB1, "Extend"), (0x0EB4, 0x0EBC, "Extend"), (0x0EC8, 0x0ECD, "Extend"),
    (0x3099, 0x309A, "Extend"), (0x1F3FB, 0x1F3FF, "Extend"),
    (0x30A1, 0x30FA, "Katakana"), (0x30FC, 0x30FE, "Katakana"), (0x31F0, 0x31FF, "Katakana"),
    (0x3007, 0x3007, "Other"), (0x3041, 0x3096, "Other"), (0x309D, 0x309E, "Other"), (0x3400, 0x4DBF, "Other"),
    (0x4E00, 0x9FFC, "Other"), (0x20000, 0x2A6DD, "Other"),
    (0x0E01, 0x0E30, "Other"), (0x0E32, 0x0E32, "Other"), (0x0E40, 0x0E46, "Other"),
    (0x0E81, 0x0EB0, "Other"), (0x0EB2, 0x0EB2, "Other"), (0x0EBD, 0x0EBD, "Other"), (0x0EC0, 0x0EC4, "Other"),
    (0x1F1E6, 0x1F1FF, "Regional_Indicator"),
    # Controls, symbols, punctuation, emoji: not letters.
    (0x0000, 0x0008, "Other"), (0x000E, 0x001F, "Other"), (0x007F, 0x0084, "Other"), (0x0086, 0x009F, "Other"),
    (0x0021, 0x007E, "Other"), (0x00A1, 0x00BF, "Other"), (0x00D7, 0x00D7, "Other"), (0x00F7, 0x00F7, "Other"),
    (0x05BE, 0x05BE, "Other"), (0x05C0, 0x05C0, "Other"), (0x05C3, 0x05C3, "Other"), (0x061B, 0x061B, "Other"),
    (0x061E, 0x061F, "Other"), (0x066A, 0x066A, "Other"), (0x0E2F, 0x0E2F, "Other"), (0x0E3F, 0x0E3F, "Other"),
    (0x0E4F, 0x0E4F, "Other"), (0x0E5A, 0x0E5B, "Other"), (0x2010, 0x2016, "Other"), (0x201A, 0x2023, "Other"),
    (0x2030, 0x203E, "Other"), (0x2041, 0x2043, "Other"), (0x2045, 0x205E, "Other"), (0x20A0, 0x20C0, "Other"),
    (0x2190, 0x22FF, "Other"), (0x2500, 0x266F, "Other"), (0x2700, 0x2767, "Other"), (0x3001, 0x3003, "Other"),
    (0x3008, 0x3020, "Other"), (0x30FB, 0x30FB, "Other"), (0x1F300, 0x1F5FF, "Other"), (0x1F600, 0x1F64F, "Other"),
)  # fmt: skip

# Other_Alphabetic among the marks above; the rest of Alphabetic is the categories L* and Nl.
OTHER_ALPHABETIC = (
    (0x0345, 0x0345), (0x05B0, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7),
    (0x064B, 0x0657), (0x0659, 0x065F), (0x0E31, 0x0E31), (0x0E34, 0x0E3A), (0x0E4D, 0x0E4D), (0x0EB1, 0x0EB1),
    (0x0EB4, 0x0EB9), (0x0EBB, 0x0EBC), (0x0ECD, 0x0ECD),
)  # fmt: skip


class OutsideOracle(Exception):
    """A character whose class is not listed here."""


def word_class(c):
    if c in SINGLE:
        return SINGLE[c]
    point = ord(c)
    if unicodedata.category(c) != "Cn":
        for first, last, name in RANGES:
            if first <= point <= last:
                return name
    raise OutsideOracle(f"U+{point:04X}")


def holds_word(c):
    """Return whether the character alone makes a segment a token: Alphabetic, Nd, Nl or No."""
    if unicodedata.category(c) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Nd", "No"):
        return True
    return any(first <= ord(c) <= last for first, last in OTHER_ALPHABETIC)


def is_pictographic(c):
    """Return Extended_Pictographic; needed only after a ZERO WIDTH JOINER, which normalized text never contains."""
    return ord(c) == 0x2764 or 0x1F300 <= ord(c) <= 0x1F64F


def _not_skipped(classes):
    """Return the classes that remain after rule WB4, and for each position its index among them, or None."""
    places, kinds = [], []
    for j, c in enumerate(classes):
        is_seen = c not in SKIPPED or j == 0 or classes[j - 1] in ("Newline", "CR", "LF")
        places.append(len(kinds) if is_seen else None)
        kinds += [c] * is_seen
    return places, kinds


def _boundary(classes, characters, i, places, kinds):
    """Return whether there is a word boundary before position i, 0 < i < len. Rules in order."""
    left, right = classes[i - 1], classes[i]
    if left == "CR" and right == "LF":
        return False  # WB3
    if left in ("Newline", "CR", "LF") or right in ("Newline", "CR", "LF"):
        return True  # WB3a, WB3b
    if left == "ZWJ" and is_pictographic(characters[i]):
        return False  # WB3c
    if left == right == "WSegSpace":
        return False  # WB3d
    if right in SKIPPED:
        return False  # WB4: marks attach to what they follow
    # WB4: from here on marks are skipped, on both sides.
    at = places[i]
    before2 = kinds[at - 2] if at >= 2 else SOT
    left = kinds[at - 1]
    after = kinds[at + 1] if at + 1 < len(kinds) else "eot"
    if left in AH and right in AH:
        return False  # WB5
    if left in AH and right in ("MidLetter", *MID_NUM_LET_Q) and after in AH:
        return False  # WB6
    if before2 in AH and left in ("MidLetter", *MID_NUM_LET_Q) and right in AH:
        return False  # WB7
    if left == "Hebrew_Letter" and right == "Single_Quote":
        return False  # WB7a
    if left == "Hebrew_Letter" and right == "Double_Quote" and after == "Hebrew_Letter":
        return False  # WB7b
    if before2 == "Hebrew_Letter" and left == "Double_Quote" and right == "Hebrew_Letter":
        return False  # WB7c
    if left == "Numeric" and right == "Numeric":
        return False  # WB8
    if left in AH and right == "Numeric":
        return False  # WB9
    if left == "Numeric" and right in AH:
        return False  # WB10
    if before2 == "Numeric" and left in ("MidNum", *MID_NUM_LET_Q) and right == "Numeric":
        return False  # WB11
    if left == "Numeric" and right in ("MidNum", *MID_NUM_LET_Q) and after == "Numeric":
        return False  # WB12
    if left == right == "Katakana":
        return False  # WB13
    if left in (*AH, "Numeric", "Katakana", "ExtendNumLet") and right == "ExtendNumLet":
        return False  # WB13a
    if left == "ExtendNumLet" and right in (*AH, "Numeric", "Katakana"):
        return False  # WB13b
    if left == right == "Regional_Indicator":
        run = 0  # WB15, WB16: flags are pairs
        while run < at and kinds[at - 1 - run] == "Regional_Indicator":
            run += 1
        return run % 2 == 0
    return True  # WB999


def segments(text, classes_of=word_class, *, part_katakana=False):
    """Return the pieces between word boundaries."""
    if not text:
        return []
    classes = [classes_of(c) for c in text]
    places, kinds = _not_skipped(classes)
    pieces, before = [text[0]], None
    for i in range(1, len(text)):
        # Marks attach to the Katakana before them and do not join it to the next.
        before = before if classes[i - 1] in SKIPPED else classes[i - 1]
        parted = part_katakana and classes[i] == before == "Katakana"
        if parted or _boundary(classes, text, i, places, kinds):
            pieces.append(text[i])
        else:
            pieces[-1] += text[i]
    return pieces


def cut_at_spaces(text):
    """Yield pieces that begin with a space and are segmented alone.

    A space is in no rule except WB3d and WB4, and normalized text has single spaces only. So a boundary
    precedes each space and, unless a mark follows, follows it.
    """
    first = 0
    for i in range(1, len(text)):
        if text[i] == " ":
            yield text[first:i]
            first = i
    if text:
        yield text[first:]


def paired(pieces, classes_of, holds):
    """Return segments in order, pairing each in a script without spaces with the next one if that is in one too."""
    found, run = [], []
    for piece in [*pieces, ""]:
        is_word = any(holds(c) for c in piece)
        if is_word and classes_of(piece[0]) in ("Other", "Katakana"):
            run.append(piece)
            continue
        found += [a + b for a, b in itertools.pairwise(run)] or run
        run = []
        if is_word:
            found.append(piece)
    return found


def tokens(text, kind, classes_of=word_class, holds=holds_word):
    """Return the tokens of an unnormalized text; kind is `word`, `auto`, `script` or `char`."""
    return list(_tokens(text, kind, classes_of, holds))


# The same texts are cut for many recipes.
@functools.lru_cache(5000)
def _tokens(text, kind, classes_of, holds):
    normal = normalize(text)
    if kind == "char":
        return tuple(normal)
    if kind == "script":
        found = []
        for part in cut_at_spaces(normal):
            found += paired(segments(part, classes_of, part_katakana=True), classes_of, holds)
        return tuple(found)
    return tuple(
        piece
        for part in cut_at_spaces(normal)
        for piece in segments(part, classes_of, part_katakana=kind == "auto")
        if any(holds(c) for c in piece)
    )
