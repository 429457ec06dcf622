#!/usr/bin/env bash
# Claim: datatrove's text normalization removes marks that are letters in Japanese, Thai and Hindi: different words are equal before they are hashed.
# Package: datatrove 0.10.1 (PyPI)
# Expected: Folding of diacritics makes é and e equal, and leaves other scripts alone.
# Happens: All characters of the category Mn are removed after decomposition: the voicing of kana, Thai tones, and some Hindi vowels, while others (category Mc) remain. All numbers become 0.
# Seen: がっこう (school) = かっこう (cuckoo), ไม่ไป (does not go) = ไม้ไป, कुल (total) = कल (yesterday), 价格500元 = 价格300元 (2026-11-28)
# Matters: Its MinHash, Bloom filter and sentence deduplication run on this text. Texts that say the opposite are removed as copies.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile datatrove==0.10.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
from datatrove.utils.text import simplify_text

for first, second in (
    ("がっこう", "かっこう"),
    ("ไม่ไป", "ไม้ไป"),
    ("कुल", "कल"),
    ("दिन", "दीन"),
    ("价格500元", "价格300元"),
    ("C++", "C#"),
):
    print(first, second, simplify_text(first), simplify_text(first) == simplify_text(second))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
がっこう かっこう かっこう True
ไม่ไป ไม้ไป ไมไป True
कुल कल कल True
दिन दीन दिन False
价格500元 价格300元 价格0元 True
C++ C# c True
SEEN
