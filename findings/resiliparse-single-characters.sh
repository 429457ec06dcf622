#!/usr/bin/env bash
# Claim: Resiliparse with main_content=True drops a text node that is one Chinese, Japanese, Korean or Thai character, so a page whose 不 (not) is in bold reads as the page without it.
# Package: resiliparse 2.0.1 and 1.0.8 (PyPI)
# Expected: Its documentation describes heuristics for elements such as navigation, headers and footers; the text of a paragraph is kept whole.
# Happens: A text node of one character is taken for a symbol of an icon font if its UTF-8 has three bytes in a certain range. The first byte should decide, but the three are compared as one number whose highest byte is the last one, so nearly all characters from U+0800 to U+FFFF are in the range. Emphasis, links, ruby, table cells and list items make such nodes. Characters of one, two or four bytes are kept. 1.0.8 and 2.0.1 do the same.
# Seen: of 20,992 Chinese characters in bold 20,839 are dropped, of 11,172 Korean syllables 11,097, of 244 kana and 128 Thai characters 243 and 126, of 512 Latin, Greek and Cyrillic ones none; 产品<b>不</b>合格 (the product fails) and 产品合格 (it passes) are both 产品合格; tables with 男 (male) and 女 (female), quizzes with 是 (yes) and 否 (no): equal (2026-11-30)
# Matters: Corpora of web text in Chinese, Japanese and Korean that are extracted this way have lost single characters, and pages that state the opposite are exact copies. With main_content=False, which is the default, all texts are whole.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > extract.py <<'PYTHON'
from importlib.metadata import version

from resiliparse.extract.html2text import extract_plain_text


def page(body):
    return f"<!doctype html><html><head><title>Page</title></head><body><main>{body}</main></body></html>"


def text(body, main=True):
    return " ".join(extract_plain_text(page(body), main_content=main).split())


print("resiliparse", version("resiliparse"))
SCRIPTS = {
    "Latin, Greek and Cyrillic": [*range(0xC0, 0x180), *range(0x380, 0x3C0), *range(0x400, 0x500)],
    "Thai": range(0xE00, 0xE80),
    "kana": [*range(0x3041, 0x3097), *range(0x30A1, 0x30FB), *range(0x31F0, 0x3200), *range(0xFF66, 0xFF9A)],
    "Chinese": range(0x4E00, 0xA000),
    "Korean": range(0xAC00, 0xD7A4),
    "Chinese of four bytes": range(0x20000, 0x20100),
}
for name, codes in SCRIPTS.items():
    bold = "".join(f"<p>a<b>{chr(code)}</b>z</p>" for code in codes)
    dropped = [text(bold, main).split().count("az") for main in (True, False)]
    print(f"{name}: {len(codes)} characters in bold, dropped: {dropped[0]}, with main_content=False {dropped[1]}")

for body in [
    "<p>产品<b>不</b>合格。</p>",
    "<p>产品<b>不是</b>合格的。</p>",
    "<p>见<a href='/1'>图</a>一</p>",
    "<p>とても<ruby>長<rp>(</rp><rt>なが</rt><rp>)</rp></ruby>い</p>",
    "<p>오늘 <b>안</b> 간다</p>",
    "<p>5<b>€</b> ≠ <b>5</b>$, Б<b>о</b>г, <b>à</b></p>",
]:
    print(f"{body}: {text(body)!r}, with main_content=False {text(body, False)!r}")

for name, bodies in {
    "不 in bold and a text without it": ["<p>这批产品<b>不</b>合格</p>", "<p>这批产品合格</p>"],
    "tables of 男 and 女": [f"<table><tr><th>性别</th><td>{value}</td></tr></table>" for value in "男女"],
    "tables of 男性 and 女性": [f"<table><tr><th>性别</th><td>{value}</td></tr></table>" for value in ("男性", "女性")],
    "answers 是 and 否": [f"<ol><li>会飞吗？<ul><li>{value}</li></ul></li></ol>" for value in "是否"],
    "answers 是的 and 不是": [f"<ol><li>会飞吗？<ul><li>{value}</li></ul></li></ol>" for value in ("是的", "不是")],
}.items():
    equal = [text(bodies[0], main) == text(bodies[1], main) for main in (True, False)]
    print(f"{name}: equal {equal[0]}, with main_content=False {equal[1]}")
PYTHON
for version in 1.0.8 2.0.1; do
    python3 -m venv --without-pip "env-$version"
    python3 -m pip --python "env-$version" install -q --no-compile --only-binary :all: "resiliparse==$version"
    "env-$version/bin/python" extract.py
done 2> log.txt | tee seen.txt
diff - seen.txt <<'SEEN'
resiliparse 1.0.8
Latin, Greek and Cyrillic: 512 characters in bold, dropped: 0, with main_content=False 0
Thai: 128 characters in bold, dropped: 126, with main_content=False 0
kana: 244 characters in bold, dropped: 243, with main_content=False 0
Chinese: 20992 characters in bold, dropped: 20839, with main_content=False 0
Korean: 11172 characters in bold, dropped: 11097, with main_content=False 0
Chinese of four bytes: 256 characters in bold, dropped: 0, with main_content=False 0
<p>产品<b>不</b>合格。</p>: '产品合格。', with main_content=False '产品不合格。'
<p>产品<b>不是</b>合格的。</p>: '产品不是合格的。', with main_content=False '产品不是合格的。'
<p>见<a href='/1'>图</a>一</p>: '', with main_content=False '见图一'
<p>とても<ruby>長<rp>(</rp><rt>なが</rt><rp>)</rp></ruby>い</p>: 'とても(なが)', with main_content=False 'とても長(なが)い'
<p>오늘 <b>안</b> 간다</p>: '오늘 간다', with main_content=False '오늘 안 간다'
<p>5<b>€</b> ≠ <b>5</b>$, Б<b>о</b>г, <b>à</b></p>: '55$, Бог, à', with main_content=False '5€ ≠ 5$, Бог, à'
不 in bold and a text without it: equal True, with main_content=False False
tables of 男 and 女: equal True, with main_content=False False
tables of 男性 and 女性: equal False, with main_content=False False
answers 是 and 否: equal True, with main_content=False False
answers 是的 and 不是: equal False, with main_content=False False
resiliparse 2.0.1
Latin, Greek and Cyrillic: 512 characters in bold, dropped: 0, with main_content=False 0
Thai: 128 characters in bold, dropped: 126, with main_content=False 0
kana: 244 characters in bold, dropped: 243, with main_content=False 0
Chinese: 20992 characters in bold, dropped: 20839, with main_content=False 0
Korean: 11172 characters in bold, dropped: 11097, with main_content=False 0
Chinese of four bytes: 256 characters in bold, dropped: 0, with main_content=False 0
<p>产品<b>不</b>合格。</p>: '产品合格。', with main_content=False '产品不合格。'
<p>产品<b>不是</b>合格的。</p>: '产品不是合格的。', with main_content=False '产品不是合格的。'
<p>见<a href='/1'>图</a>一</p>: '', with main_content=False '见图一'
<p>とても<ruby>長<rp>(</rp><rt>なが</rt><rp>)</rp></ruby>い</p>: 'とても(なが)', with main_content=False 'とても長(なが)い'
<p>오늘 <b>안</b> 간다</p>: '오늘 간다', with main_content=False '오늘 안 간다'
<p>5<b>€</b> ≠ <b>5</b>$, Б<b>о</b>г, <b>à</b></p>: '55$, Бог, à', with main_content=False '5€ ≠ 5$, Бог, à'
不 in bold and a text without it: equal True, with main_content=False False
tables of 男 and 女: equal True, with main_content=False False
tables of 男性 and 女性: equal False, with main_content=False False
answers 是 and 否: equal True, with main_content=False False
answers 是的 and 不是: equal False, with main_content=False False
SEEN
