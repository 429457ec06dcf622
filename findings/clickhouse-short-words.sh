#!/usr/bin/env bash
# Claim: ClickHouse's wordShingleSimHash gives 0 for texts of words under four bytes, and its UTF-8 n-grams leave out the first one.
# Package: chdb 4.4.0 (ClickHouse 26.9.2.1, PyPI)
# Expected: Different texts have different fingerprints of 64 bits, and each n-gram counts.
# Happens: Words under four bytes are skipped, so English texts of short words are equal. The results have type UInt64, but bits 32 to 63 are 0. ngramSimHashUTF8 and ngramMinHashUTF8 begin at the second n-gram, and ngramDistance of two strings under four bytes is 0.
# Seen: 'cat dog cow pig' and 'fox hen rat bee': 0 and 0; ngramSimHashUTF8 of A不合格了 = of B不合格了; ngramDistance('abc', 'xyz') = 0 (2026-11-28)
# Matters: Short texts are duplicates of each other without a message; a radius for 64 bits is twice as loose with 32.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile chdb==4.4.0 chdb-core==26.9.0
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import chdb

for query in (
    "wordShingleSimHash('cat dog cow pig'), wordShingleSimHash('fox hen rat bee')",
    "wordShingleMinHash('cat dog cow pig') = wordShingleMinHash('fox hen rat bee')",
    "toTypeName(ngramSimHash('abcdef')), bitShiftRight(ngramSimHash('abcdef'), 32)",
    "ngramSimHash('A house', 3) = ngramSimHash('B house', 3)",
    "ngramSimHashUTF8('A不合格了', 3) = ngramSimHashUTF8('B不合格了', 3)",
    "ngramMinHashUTF8('A不合格了', 3) = ngramMinHashUTF8('B不合格了', 3)",
    "ngramDistance('abc', 'xyz'), ngramDistance('abcd', 'wxyz')",
):
    print(query, "=>", str(chdb.query(f"select {query}", "CSV")).strip())
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
wordShingleSimHash('cat dog cow pig'), wordShingleSimHash('fox hen rat bee') => 0,0
wordShingleMinHash('cat dog cow pig') = wordShingleMinHash('fox hen rat bee') => 1
toTypeName(ngramSimHash('abcdef')), bitShiftRight(ngramSimHash('abcdef'), 32) => "UInt64",0
ngramSimHash('A house', 3) = ngramSimHash('B house', 3) => 0
ngramSimHashUTF8('A不合格了', 3) = ngramSimHashUTF8('B不合格了', 3) => 1
ngramMinHashUTF8('A不合格了', 3) = ngramMinHashUTF8('B不合格了', 3) => 1
ngramDistance('abc', 'xyz'), ngramDistance('abcd', 'wxyz') => 0,1
SEEN
