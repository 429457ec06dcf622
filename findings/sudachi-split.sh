#!/usr/bin/env bash
# Claim: In SudachiPy, splitting the long words of mode C again by mode A loses all words that cannot be split, and normalized forms change numbers and scripts.
# Package: sudachipy 0.7.0, sudachidict-core 20261015 (PyPI)
# Expected: The short units of all long words are the cut of mode A, and a normalized form is a spelling of the same word.
# Happens: Morpheme.split returns an empty list for a word without smaller units. The normalized form of 二十 is 20, of 1,000 is 1000, of SUMMER is サマー.
# Seen: 国家公務員採用試験: mode A 5 words, split words of mode C 3 (2026-11-28)
# Matters: The lost words are the short ones that differ between texts. Normalized forms make a text in kanji numerals a copy of one in digits; surfaces do not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile sudachipy==0.7.0 sudachidict-core==20261015
env/bin/python > seen.txt <<'PYTHON'
from sudachipy import Dictionary, SplitMode

dictionary = Dictionary()
short, long = (dictionary.create(mode=mode) for mode in (SplitMode.A, SplitMode.C))
for text in ("国家公務員採用試験", "不合格と合格"):
    print([word.surface() for word in short.tokenize(text)])
    print([part.surface() for word in long.tokenize(text) for part in word.split(SplitMode.A)])
print([word.normalized_form() for text in ("二十分", "1,000円", "SUMMER") for word in long.tokenize(text)])
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
['国家', '公務', '員', '採用', '試験']
['国家', '公務', '員']
['不', '合格', 'と', '合格']
['不', '合格']
['20', '分', '1000', '円', 'サマー']
SEEN
