#!/usr/bin/env bash
# Claim: rjieba, the binding of the Rust port of jieba, cuts dates, hyphens and dots differently from jieba, and its full mode loses rare characters.
# Package: rjieba 0.2.2 and jieba 0.42.1 (PyPI)
# Expected: The port gives the tokens of the original; only its speed differs.
# Happens: 2026-11-28 and e-mail are one token in the port, and five and three in the original. In full mode the port adds each single character of a word, and omits characters beyond the basic plane.
# Seen: jieba ['2026', '-', '11', '-', '28'], rjieba ['2026-11-28']; full mode of 𠮷野家: ['𠮷', '野', '家'] and ['野', '家'] (2026-11-28)
# Matters: Fingerprints of the two cutters differ. An index that was filled by one misses duplicates that are cut by the other, so a recipe must name the cutter.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile jieba==0.42.1 rjieba==0.2.2
env/bin/python > seen.txt <<'PYTHON'
import warnings

warnings.filterwarnings("ignore")
import jieba
import rjieba

jieba.setLogLevel(60)
for text in ("2026-11-28", "e-mail", "a_b", "渡船改为每二十分钟一班"):
    print(jieba.lcut(text), rjieba.cut(text))
for text in ("𠮷野家", "改为"):
    print("full", [token for token in jieba.lcut(text, cut_all=True) if token], rjieba.cut_all(text))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
['2026', '-', '11', '-', '28'] ['2026-11-28']
['e', '-', 'mail'] ['e-mail']
['a', '_', 'b'] ['a_b']
['渡船', '改为', '每', '二十分钟', '一班'] ['渡船', '改为', '每', '二十分钟', '一班']
full ['𠮷', '野', '家'] ['野', '家']
full ['改为'] ['改', '改为', '为']
SEEN
