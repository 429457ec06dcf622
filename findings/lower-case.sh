#!/usr/bin/env bash
# Claim: Polars and Python lower-case a final Greek sigma and the Turkish İ differently from PyArrow and DuckDB.
# Package: polars 2.1.0, pyarrow 26.0.1 and duckdb 2.0.1 (PyPI)
# Expected: lower() of valid text is one function, so keys that two tools made can be compared.
# Happens: PyArrow and DuckDB map each character alone: ΟΔΟΣ ends in σ, and İ becomes a plain i, so İstanbul and istanbul are equal. Polars and Python follow the context: ς, and i with a dot above, which is two characters.
# Seen: ΟΔΟΣ: οδος and οδοσ; İstanbul: 9 characters and istanbul (2026-11-28)
# Matters: Exact deduplication by lower-cased text finds other copies in each tool. Fold all sides with the same one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile polars==2.1.0 pyarrow==26.0.1 duckdb==2.0.1
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import duckdb
import polars
import pyarrow
import pyarrow.compute

WORDS = ["ΟΔΟΣ", "İstanbul", "istanbul"]
lowered = {
    "Python": [word.lower() for word in WORDS],
    "Polars": polars.Series(WORDS).str.to_lowercase().to_list(),
    "PyArrow": pyarrow.compute.utf8_lower(pyarrow.array(WORDS)).to_pylist(),
    "DuckDB": [row[0] for row in duckdb.execute("select lower(unnest(?))", [WORDS]).fetchall()],
}
for tool, words in lowered.items():
    print(tool, words[0], ascii(words[1]), len(set(words)), "different")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
Python οδος 'i\u0307stanbul' 3 different
Polars οδος 'i\u0307stanbul' 3 different
PyArrow οδοσ 'istanbul' 2 different
DuckDB οδοσ 'istanbul' 2 different
SEEN
