#!/usr/bin/env bash
# Claim: gaoya's MinHash index of word 3-grams finds texts with fewer than three words equal.
# Package: gaoya 0.2.2 (PyPI)
# Expected: "dog" matches "dog" only.
# Happens: Texts without an n-gram have one and the same signature.
# Seen: a query with "dog" returns "cat", "dog" and "the cat" (2026-11-28)
# Matters: All titles of one or two words become copies of the first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile gaoya==0.2.2
env/bin/python > seen.txt <<'PYTHON'
from gaoya.minhash import MinHashStringIndex

index = MinHashStringIndex(32, 0.8, None, None, 128, "word", True, (3, 3))
texts = ["cat", "dog", "the cat", "a dog ran"]
for row, text in enumerate(texts):
    index.insert_document(row, text)
print(sorted(texts[row] for row in index.query("dog")))
print(sorted(texts[row] for row in index.query("a dog ran")))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
['cat', 'dog', 'the cat']
['a dog ran']
SEEN
