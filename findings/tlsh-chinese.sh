#!/usr/bin/env bash
# Claim: TLSH puts two Chinese notices that differ in one character farther apart than the usual limit for unrelated files.
# Package: py-tlsh 5.0.0 (PyPI)
# Expected: One changed character of 49 moves a little; a text twice in a row is near the text.
# Happens: The bytes of UTF-8 Chinese repeat few lead bytes, and a change of one character changes many buckets of a short text.
# Seen: one character changed 85, the text twice 163, unrelated text 214; a repeated word has no digest, TNULL (2026-11-28)
# Matters: Limits that were measured on English or on binary files (30 to 100) find no Chinese near-duplicates of this length, and unrelated texts come next.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile py-tlsh==5.0.0
env/bin/python > seen.txt <<'PYTHON'
import tlsh

text = "开往东岸码头的渡船改为每二十分钟一班，末班船延长到晚上十点半，带自行车的乘客请在二号闸口排队上船。"
other = "县图书馆的屋顶已经修好，本周五起重新开放，旧书可以到一楼服务台归还，读者卡继续有效，欢迎前来。"


def digest(text):
    return tlsh.hash(text.encode())


for name, changed in (("one character", text.replace("二十", "三十")), ("twice", text + text), ("unrelated", other)):
    print(name, tlsh.diff(digest(text), digest(changed)))
print("repeated word", digest("合格" * 60))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
one character 85
twice 163
unrelated 214
repeated word TNULL
SEEN
