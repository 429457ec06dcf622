"""Tokens by rules other than the defaults: markup, folding, lines, paragraphs, sentences, bytes, chunks.

Written from the standards and papers, with Python's own libraries: `html.parser` for HTML, `unicodedata` for folding.
Sentences need the classes of the `regex` package.
"""

import hashlib
import re
import unicodedata
from html.parser import HTMLParser
from itertools import pairwise

from tests.oracle import numerals
from tests.oracle.normalize import normalize
from tests.oracle.segment import tokens as words

FOLDS = (
    *("urls", "signs", "points", "confusables", "traditional"),
    *("width", "accents", "punctuation", "numerals", "digits"),
)
# Look-alikes of digits are not combined with the foldings of digits.
PLAIN_FOLDS = tuple(name for name in FOLDS if name != "confusables")
# Some characters with an undisputed simplified form; texts of this oracle contain no other traditional ones.
SIMPLIFIED = dict(zip("媽喊囉羅飯東車門長馬鳥魚漢語國學後髮發", "妈喊啰罗饭东车门长马鸟鱼汉语国学后发发", strict=True))
NARROW = dict(
    zip("、。〈《〉》「」『』〝〞〟“”„‟‘’‚‛【〔〖〘〚】〕〗〙〛〜", ',.<<>>"""""""""""\'\'\'\'[[[[[]]]]]~', strict=True)
)
OPERATORS = {
    **{"+": "plus", "-": "minus", "*": "times", "/": "over", "%": "mod", "&": "and", "|": "or", "^": "xor"},
    **{"<": "less", ">": "greater", "!": "not"},
}
# Hebrew points and accents; Arabic vowel signs and marks of recitation.
POINTS = (
    *((0x591, 0x5BD), (0x5BF, 0x5BF), (0x5C1, 0x5C2), (0x5C4, 0x5C5), (0x5C7, 0x5C7)),
    *((0x610, 0x61A), (0x64B, 0x652), (0x656, 0x658), (0x670, 0x670)),
    *((0x6D6, 0x6DC), (0x6DF, 0x6E4), (0x6E7, 0x6E8), (0x6EA, 0x6ED)),
)
# ArabicNormalizer of Apache Lucene: alef with madda or hamza, teh marbuta, dotless yeh.
ARABIC = dict(zip("\u0622\u0623\u0625\u0629\u0649", "\u0627\u0627\u0627\u0647\u064a", strict=True))
# Some characters of UTS #39; texts of this oracle contain no other confusable ones.
LOOK_ALIKES = dict(zip("рауосеοm10", ["p", "a", "y", "o", "c", "e", "o", "rn", "l", "o"], strict=True))
ACCENTS = ((0x300, 0x36F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F))


# RFC 3986
ADDRESS = re.compile(r"(?<![a-z0-9])(https?://|www\.)[a-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*")


def without_address(found):
    """Return what replaces an address; marks at its end that close a sentence or a bracket are not part of it."""
    own = found[0].rstrip(".,:;!?'()[]*")
    return " url " + found[0][len(own) :] if len(own) > len(found[1]) else found[0]


def without_accents(c):
    parts = unicodedata.normalize("NFD", c)
    rest = "".join(d for d in parts if not any(low <= ord(d) <= high for low, high in ACCENTS))
    return c if rest == parts else rest


def fold(text, names):
    """Return the folded form of a text: normalized, folded in the order of FOLDS, and normalized again."""
    text = normalize(text)
    if "urls" in names:
        text = ADDRESS.sub(without_address, text)
    if "signs" in names:
        text = re.sub(
            r"(?<=[a-z])\+\+|(?<=[a-z])#(?![a-z0-9])|([-+*/%&|^<>!])=(?!=)",
            lambda found: f" {OPERATORS[found[1]]}equals " if found[1] else {"#": "sharp"}.get(found[0], "plusplus"),
            text,
        )
    if "points" in names:
        text = "".join(ARABIC.get(c, c) for c in text if not any(low <= ord(c) <= high for low, high in POINTS))
    if "confusables" in names:
        text = "".join(LOOK_ALIKES.get(c, c) for c in text)
    if "traditional" in names:
        text = "".join(SIMPLIFIED.get(c, c) for c in text)
    if "width" in names:
        text = "".join(NARROW.get(c, c) for c in text)
    if "accents" in names:
        text = "".join(map(without_accents, text))
    if "punctuation" in names:
        text = "".join(c for c in text if not unicodedata.category(c).startswith("P"))
    if "numerals" in names:
        text = numerals.read(text)
    if "digits" in names:
        text = "".join("0" if unicodedata.category(c) == "Nd" else c for c in text)
        # A run of former digits, including original zeros.
        text = re.sub("0+", "0", text)
    return normalize(text)


def lines(text):
    return re.split("\r\n|[\n\x0b\x0c\r\x85\u2028\u2029]", text)


def paragraphs(text):
    found, now = [], []
    for line in [*lines(text), ""]:
        if normalize(line) or not re.fullmatch(r"\s*", line):
            now.append(line)
        elif now:
            found.append("\n".join(now))
            now = []
    return found


def sentences(text):
    """Apply the rules SB1 to SB998 of UAX #29 in order at each position."""
    import regex

    names = "CR LF Sep Extend Format Sp Lower Upper OLetter Numeric ATerm STerm Close SContinue"
    patterns = {name: regex.compile(rf"\p{{SB={name}}}") for name in names.split()}
    classes = [next((n for n, p in patterns.items() if p.match(c)), "Other") for c in text]
    para, attached = ("CR", "LF", "Sep"), ("Extend", "Format")

    def counted(first, last):
        """Return the classes from first to last; marks attach to the character before, except a paragraph end (SB5)."""
        found = []
        for place in range(first, last):
            if classes[place] not in attached:
                found.append(classes[place])
            elif place == 0 or classes[place - 1] in para:
                found.append("Other")
        return found

    def breaks(i):
        if classes[i - 1] == "CR" and classes[i] == "LF":
            return False
        if classes[i - 1] in para:
            return True
        if classes[i] in attached:
            return False
        before, after = counted(0, i), counted(i, len(text))
        if before[-1] == "ATerm" and after[0] == "Numeric":
            return False
        if len(before) > 1 and before[-1] == "ATerm" and before[-2] in ("Upper", "Lower") and after[0] == "Upper":
            return False
        spaces = len(before)
        while spaces and before[spaces - 1] == "Sp":
            spaces -= 1
        closes = spaces
        while closes and before[closes - 1] == "Close":
            closes -= 1
        term = before[closes - 1] if closes else None
        if term not in ("ATerm", "STerm"):
            return False
        if term == "ATerm":
            stop = ("OLetter", "Upper", "Lower", *para, "STerm", "ATerm")
            if next((c for c in after if c in stop), None) == "Lower":
                return False
        if after[0] in ("SContinue", "STerm", "ATerm", "Sp", *para):
            return False
        return not (spaces == len(before) and after[0] == "Close")

    cuts = [0, *(i for i in range(1, len(text)) if breaks(i)), len(text)]
    return [text[low:high] for low, high in pairwise(cuts)]


HIDDEN = {"script", "style", "template", "noscript", "iframe", "noembed", "noframes"}
BLOCK_NAMES = (
    "address article aside blockquote body details dialog div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header "
    "hr main nav ol p pre section table title ul"
)
LINE_NAMES = "br caption dd dt figcaption legend li option summary textarea tr optgroup"
BLOCKS, LINES = set(BLOCK_NAMES.split()), set(LINE_NAMES.split())


class Page(HTMLParser):
    """The visible text of a page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.hidden, self.depth = None, 0
        self.preserved = 0

    def handle_starttag(self, tag, attrs):
        self.tag(tag, 1)

    def handle_startendtag(self, tag, attrs):
        self.tag(tag, 1)

    def handle_endtag(self, tag):
        self.tag(tag, -1)

    def tag(self, name, step):
        if self.hidden:
            self.depth += step if name == self.hidden else 0
            self.hidden = self.hidden if self.depth else None
            return
        if name in HIDDEN:
            self.hidden, self.depth = (name, 1) if step > 0 else (None, 0)
            return
        if name in ("pre", "textarea"):
            self.preserved = max(0, self.preserved + step)
        if name in BLOCKS and not self.text.endswith("\n\n"):
            self.text += "\n\n" if self.text else ""
        elif name in LINES and not self.text.endswith("\n"):
            self.text += "\n" if self.text else ""
        elif name in ("td", "th") and not re.search("[ \t\n\f\r]$", self.text):
            self.text += " " if self.text else ""

    def handle_data(self, data):
        if not self.hidden:
            self.text += data if self.preserved else re.sub("[\t\n\f\r]", " ", data)


def visible(page):
    reader = Page()
    reader.feed(page)
    reader.close()
    return reader.text


# Cut masks of the reference implementation of FastCDC, for chunks of 2^index bytes.
MASKS = {7: 0x18035100, 8: 0x1800035300, 9: 0x19000353000, 10: 0x590003530000, 11: 0xD90003530000, 12: 0xD90103530000}
GEAR = [int.from_bytes(hashlib.md5(bytes([value]) * 64).digest()[:8], "big") for value in range(256)]


def content_chunks(data, size):
    """Return the chunks of FastCDC with normalization level 1, byte by byte."""
    bits = size.bit_length() - 1
    strict, loose = MASKS[bits + 1], MASKS[bits - 1]
    chunks = []
    while data:
        most = min(len(data), 4 * size)
        cut, rolling = most, 0
        if len(data) > size // 4:
            # The library examines bytes in pairs: it never cuts at an odd last one.
            for i in range(size // 4, most - most % 2):
                rolling = (2 * rolling + GEAR[data[i]]) & (2**64 - 1)
                if rolling & (strict if i < min(size, most) - min(size, most) % 2 else loose) == 0:
                    cut = i
                    break
        chunks.append(data[:cut])
        data = data[cut:]
    return chunks


def fixed_chunks(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)]


def cut(text, kind, *, markup=None, folds=(), stop=()):
    """Return the tokens of a text by any rules; `char`, `word` and `auto` cut the folded text."""
    text = visible(text) if markup == "html" else text
    units = {"line": lines, "paragraph": paragraphs, "sentence": sentences}
    found = (
        [unit for part in units[kind](text) if (unit := fold(part, folds))]
        if kind in units
        else words(fold(text, folds), kind)
    )
    kept = [token for token in found if token not in {fold(word, folds) for word in stop}]
    return kept or found
