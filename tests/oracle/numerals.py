"""Chinese numbers as digits: a grammar of regular expressions, and a sum from left to right."""

import re

ZEROS, DIGITS, UNITS = "〇零○", "一二三四五六七八九", "十百千万萬亿億廿卄卅卌"
MONEY = "壹贰貳叁叄参參肆伍陆陸柒捌玖"
PLAIN = f"[0-9{ZEROS}{DIGITS}{UNITS}]"
NUMERAL = f"(?:{PLAIN}|[两兩](?=[百千佰仟万萬亿億])|[{MONEY}](?=[拾佰仟万萬亿億])|(?<=[拾佰仟零])[{MONEY}])"
COUNTED = (
    "年月日号號天周週岁歲时時点點秒个個名位人次种種项項条條家件只隻张張本台辆輛座部层層楼樓篇页頁章节節级級届屆"
    "期倍元块塊米吨噸斤克"
)
COUNTER = f"(?=[{COUNTED}]|分[钟鐘]|小[时時]|公[里斤])"
RUN = re.compile(f"(?P<run>{NUMERAL}(?:{NUMERAL}|[拾佰仟])*)[两兩]?|[两兩]{COUNTER}")

LETTERS = {
    **dict.fromkeys("〇零○", "o"),
    **dict(zip("一二三四五六七八九", "abcdefghi", strict=True)),
    **dict(zip("壹贰叁肆伍陆柒捌玖貳叄參陸两兩参", "abcdefghibccfbbc", strict=True)),
    **dict(zip("十百千万亿萬億拾佰仟", "THKWYWYTHK", strict=True)),
    **dict(zip("廿卄卅卌", ("bT", "bT", "cT", "dT"), strict=True)),
}

# A single digit; numbers below 100, 1,000, 10,000 and so on; continuations of a hundred, a thousand, ...
S = "[a-i1-9]"
N10 = f"(?:[a-i]?T(?:o?{S})?)"


def rest(below):
    return f"(?:o?(?:{S}|{below}))?"


N100 = f"(?:{S}H{rest(f'{N10}|[1-9][0-9]')})"
N1000 = f"(?:{S}K{rest(f'{N100}|{N10}|[1-9][0-9]{{1,2}}')})"
SECTION = f"(?:{N1000}|{N100}|{N10})"
BEHIND_W = rest(f"{SECTION}|[1-9][0-9]{{1,3}}")
SMALL_W = f"(?:(?:{S}|{SECTION}|[1-9][0-9]{{1,3}})W{BEHIND_W})"
W = f"(?:(?:{S}|{SECTION}|[1-9][0-9]+)W{BEHIND_W})"
Y = f"(?:(?:{S}|{SECTION}|{W}|[1-9][0-9]+)Y{rest(f'{SMALL_W}|{SECTION}|[1-9][0-9]{{1,7}}')})"
NUMBER = re.compile(f"{SECTION}|{W}|{Y}")
SIZES = {"T": 10, "H": 100, "K": 1000, "W": 10**4, "Y": 10**8}


def value(letters):
    """Return the sum of what the grammar allows."""
    tokens = re.findall("[0-9]+|[a-zA-Z]", letters)
    total = high = section = pending = 0
    before = ""
    for place, token in enumerate(tokens):
        after = tokens[place + 1] if place + 1 < len(tokens) else "end"
        if token in SIZES:
            if token in "THK":
                section += (pending or 1) * SIZES[token]
            elif token == "W":
                high, section = (section + pending) * 10**4, 0
            else:
                total, high, section = (high + section + pending) * 10**8, 0, 0
            pending = 0
        elif token == "o":
            pending = 0
        else:
            pending = int(token) if token.isdigit() else "abcdefghi".index(token) + 1
            is_last_of_unit = after == "end" or SIZES.get(after, 0) > SIZES.get(before, 0)
            if pending < 10 and SIZES.get(before, 0) > 10 and is_last_of_unit:
                # 三百五 is 350, but 三亿五万 has five 万.
                pending *= SIZES[before] // 10
        before = token
    return total + high + section + pending


def read(text):
    """Return the text with its numbers in digits."""
    return RUN.sub(_digits, text)


def _digits(found):
    run, text = found["run"], found.string
    if run is None:
        return "2"
    start, end = found.span("run")
    behind = found[0][len(run) :]
    if len(run) == 1 and run in DIGITS + "十":
        is_number = text[start - 1 : start] == "第" or re.compile(COUNTER).match(text, end)
        return ("10" if run == "十" else str(DIGITS.index(run) + 1)) + behind if is_number else found[0]
    letters = "".join(LETTERS.get(c, c) for c in run)
    if re.fullmatch("[a-i](?:o|[a-io]{2,})", letters):
        return "".join(str("oabcdefghi".index(c)) for c in letters) + behind
    is_decimal = run[0] in "0123456789" and re.search("[0-9][.,]$", text[:start])
    if not NUMBER.fullmatch(letters) or (number := value(letters)) >= 10**16 or is_decimal:
        return found[0]
    return str(number) + behind
