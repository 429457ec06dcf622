#!/usr/bin/env bash
# Claim: Words of Hindi, Thai and Tamil that differ in a vowel sign or tone are one word for simhash, scikit-learn, rapidfuzz and SQLite's FTS5.
# Package: simhash 2.1.2, scikit-learn 1.9.1, rapidfuzz 3.14.6 and apsw 3.54.1.0 (PyPI)
# Expected: किताब (book) and कातिब (writer), or ไม่ไป (does not go) and ไม้ไป (wood goes), are different texts.
# Happens: Vowel signs and tone marks are not word characters for `\w` of Python and for these packages: they are dropped, or separate words. scikit-learn then omits the single letters that are left: a sentence of six words has two features, and हिन्दी has none.
# Seen: simhash distance 0, rapidfuzz 100 after default_process, FTS5 finds किताब for कातिब (2026-11-28)
# Matters: Different texts in the scripts of India and of Southeast Asia become copies. Cut them by rules that keep marks with their letter.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile simhash==2.1.2 scikit-learn==1.9.1 rapidfuzz==3.14.6 apsw==3.54.1.0 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import apsw
from rapidfuzz import fuzz, utils
from simhash import Simhash
from sklearn.feature_extraction.text import CountVectorizer

PAIRS = (("किताब", "कातिब"), ("ไม่ไป", "ไม้ไป"), ("தமிழ்", "தமிழு"))
words = CountVectorizer().build_analyzer()
database = apsw.Connection(":memory:")
database.execute("create virtual table texts using fts5(text)")
for first, second in PAIRS:
    database.execute("insert into texts values (?)", (first,))
    distance = Simhash(first).distance(Simhash(second))
    ratio = fuzz.ratio(first, second, processor=utils.default_process)
    found = [row[0] for row in database.execute("select text from texts where text match ?", (f'"{second}"',))]
    print(first, second, "distance", distance, "ratio", round(ratio), "FTS5", found)
for text in ("मैं घर जा रहा हूँ", "हिन्दी"):
    print(text, words(text))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
किताब कातिब distance 0 ratio 100 FTS5 ['किताब']
ไม่ไป ไม้ไป distance 0 ratio 100 FTS5 ['ไม่ไป']
தமிழ் தமிழு distance 0 ratio 100 FTS5 ['தமிழ்']
मैं घर जा रहा हूँ ['घर', 'रह']
हिन्दी []
SEEN
