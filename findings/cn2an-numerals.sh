#!/usr/bin/env bash
# Claim: cn2an.transform writes numerals inside ordinary Chinese words as digits, and joins the numerals of idioms to one number.
# Package: cn2an 0.5.24 (PyPI)
# Expected: Numbers are converted; 一直 (always), 唯一 (only) and 统一 (unify) are words and remain.
# Happens: Numerals inside words are converted too. 三五成群 (in small groups) becomes 35成群, 半斤八两 (six of one) becomes 0.5斤82. The way back gives other words: 乱七八糟 becomes 乱七十八糟. 万一 is unchanged.
# Seen: 一直 1直; 三五成群 35成群, back 三十五成群; 半斤八两 0.5斤82 (2026-11-28)
# Matters: As a folding before deduplication it makes words of text into numbers, which a rule on numbers then compares.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile cn2an==0.5.24
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import cn2an

for text in ("百分之三十", "一直下雨", "统一标准", "万一失败", "三五成群", "半斤八两", "乱七八糟", "五一劳动节"):
    digits = cn2an.transform(text, "cn2an")
    print(text, digits, cn2an.transform(digits, "an2cn"))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
百分之三十 30% 百分之三十
一直下雨 1直下雨 一直下雨
统一标准 统1标准 统一标准
万一失败 万一失败 万一失败
三五成群 35成群 三十五成群
半斤八两 0.5斤82 零点五斤八十二
乱七八糟 乱78糟 乱七十八糟
五一劳动节 51劳动节 五十一劳动节
SEEN
