#!/usr/bin/env bash
# Claim: The Jaccard levels of Splink on DuckDB compare sets of characters: numbers with swapped digits have similarity 1, most unrelated sentences more than .7.
# Package: splink 5.0.0, duckdb 2.0.1 (PyPI)
# Expected: JaccardAtThresholds("text", [.9, .7]) compares sets of words or of q-grams, as Jaccard similarity does in record linkage.
# Happens: It becomes jaccard(text_l, text_r) of DuckDB, which compares the sets of characters of the two texts: neither order nor number of characters counts.
# Seen: three pairs of names with other numbers 1.0; of 28 pairs of unrelated sentences 24 at .7 or above, one at .96, where sets of words have none at .2 (2026-11-29)
# Matters: The longer the texts, the more of them match. A level of .9 joins products whose model numbers have the same digits, and documents that share an alphabet.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile splink==5.0.0 duckdb==2.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import itertools
import re

import duckdb
import splink.comparison_library as cl

comparison = cl.JaccardAtThresholds("text", [0.9, 0.7]).get_comparison("duckdb").as_dict()
conditions = [level["sql_condition"] for level in comparison["comparison_levels"][2:4]]
print(*conditions, sep="\n")
connection = duckdb.connect()
names = [("model 1230", "model 3021"), ("12 May 2021", "21 May 2012"), ("304 XL", "403 LX")]
print(*(connection.execute("select jaccard(?, ?)", pair).fetchone()[0] for pair in names))
sentences = [
    "the harbor was closed for two weeks after the storm had moved its sandbanks and broken a crane",
    "our choir looks for tenors who can read music and have time on thursday evenings from march",
    "boil the lentils with cumin and bay leaf, then add vinegar, parsley and some very thin onion rings",
    "a zoning plan for the quarter behind the station was rejected by a narrow majority of the council",
    "this valve must be replaced every five years, even if no leak was found when it was checked",
    "most swifts leave our valley in early august, long before the nights turn cold and moths are few",
    "the exchange rate fell again, although both banks had bought bonds worth several million crowns",
    "visitors are kindly asked to leave umbrellas, bags and pushchairs in the hall next to the museum shop",
]
pairs = list(itertools.combinations(sentences, 2))
found = [connection.execute("select jaccard(?, ?)", pair).fetchone()[0] for pair in pairs]
words = [set(re.findall(r"\w+", text)) for text in sentences]
shared = [len(a & b) / len(a | b) for a, b in itertools.combinations(words, 2)]
print("characters:", sum(j >= 0.7 for j in found), "of", len(pairs), "pairs at .7 or above,", f"highest {max(found):.2f}")
print("words:", sum(j >= 0.2 for j in shared), "of", len(pairs), "pairs at .2 or above")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
jaccard("text_l", "text_r") >= 0.9
jaccard("text_l", "text_r") >= 0.7
1.0 1.0 1.0
characters: 24 of 28 pairs at .7 or above, highest 0.96
words: 0 of 28 pairs at .2 or above
SEEN
