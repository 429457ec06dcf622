#!/usr/bin/env bash
# Claim: The two implementations of newmm, PyThaiNLP and nlpO3, cut abbreviations differently with one dictionary.
# Package: pythainlp 5.4.0 and nlpo3 1.4.0 (PyPI)
# Expected: The port in Rust gives the tokens of the original with the words of the original.
# Happens: The last letter of an abbreviation and its full stop are one token in the port and two in the original.
# Seen: ตจว.: ['ตจ', 'ว', '.'] and ['ตจ', 'ว.'] (2026-11-28)
# Matters: Fingerprints change when the cutter is replaced for speed; the recipe must name it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pythainlp==5.4.0 nlpo3==1.4.0
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
from pathlib import Path

import nlpo3
from pythainlp.corpus import thai_words
from pythainlp.tokenize import word_tokenize

Path("words.txt").write_text("\n".join(sorted(thai_words())), encoding="utf-8")
nlpo3.load_dict("words.txt", "words")
for text in ("กทม. และ ตจว.", "ห้องสมุดปิดทุกวันจันทร์"):
    print(word_tokenize(text, engine="newmm"), nlpo3.segment(text, "words"))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
['กทม.', ' ', 'และ', ' ', 'ตจ', 'ว', '.'] ['กทม.', ' ', 'และ', ' ', 'ตจ', 'ว.']
['ห้องสมุด', 'ปิด', 'ทุกวัน', 'จันทร์'] ['ห้องสมุด', 'ปิด', 'ทุกวัน', 'จันทร์']
SEEN
