#!/usr/bin/env bash
# Claim: Lance's MinHash index drops words of 40 bytes or more, so it does not find an exact copy of a Chinese clause of 14 characters, and gives texts that differ in such clauses the distance 0.
# Package: pylance 14.0.2 (PyPI)
# Expected: A query with the text of a row finds this row at distance 0, and a different text is farther away.
# Happens: The tokens are those of full-text search, which end at punctuation and are limited in bytes. A Chinese clause of 14 characters is a word that is too long.
# Seen: a clause of 14 or 26 characters: no row; of 13: found; two texts with one short clause in common: distance 0 (2026-11-28)
# Matters: For Chinese, the index misses copies of single clauses and takes texts for copies that share short clauses. Set another tokenizer when the index is made.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pylance==14.0.2 pyarrow==26.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import tempfile

import lance
import pyarrow as pa
from lance.query import MinHashQuery

ENGLISH = "the ferry to the eastern pier leaves every twenty minutes until midnight"


def found(texts, text):
    """Return the rows that a query finds, and their distances."""
    dataset = lance.write_dataset(pa.table({"row": range(len(texts)), "text": texts}), tempfile.mkdtemp() + "/texts.lance")
    dataset.create_scalar_index("text", "MINHASHLSH")
    rows = dataset.to_table(columns=["row", "_distance"], nearest=MinHashQuery(text, "text"), limit=5).to_pylist()
    return [(row["row"], round(row["_distance"], 2)) for row in rows]


for text in ("渡船改为每二十分钟一班末班船", "渡船改为每二十分钟一班末班", "渡船改为每二十分钟一班带自行车的乘客请在二号闸口排队"):
    print(len(text), "characters:", found([text, ENGLISH], text))
first = "通知，东岸码头的渡船改为每二十分钟一班"
second = "通知，县图书馆的屋顶修好以后已经重新开放"
print(first, second, found([first, ENGLISH], second))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
14 characters: []
13 characters: [(0, 0.0)]
26 characters: []
通知，东岸码头的渡船改为每二十分钟一班 通知，县图书馆的屋顶修好以后已经重新开放 [(0, 0.0)]
SEEN
