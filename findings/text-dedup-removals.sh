#!/usr/bin/env bash
# Claim: text-dedup removes documents that match no kept document: the inner members of chains, short texts, and Chinese sentences.
# Package: text-dedup 0.4.0 (PyPI)
# Expected: A removed document has a kept one above the threshold, .8.
# Happens: All but one member of a connected component are removed. Texts with fewer words than the n-gram are equal, and a Chinese sentence is one word.
# Seen: 1 of 40 documents of a chain kept, 29 removed ones have no kept document with J >= .8; of 2 long and 4 different short texts 2 kept; of 2 long texts and 12 Chinese sentences 2 kept (2026-11-28)
# Matters: Whole groups of different texts disappear without a message; the summary counts them as duplicates.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile --no-deps text-dedup==0.4.0
python3 -m pip --python env install -q --no-compile datasets==5.2.0 click-option-group==0.5.9 bitarray==3.12.3 ftfy==6.3.1 regex==2026.11.15 psutil==7.2.2 xxhash==4.1.0 scipy==1.17.1 numpy==2.4.6 rich==13.9.4
cat > removals.py <<'PYTHON'
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa


def kept(texts):
    """Return the rows that its MinHash script keeps."""
    Path("texts.jsonl").write_text("".join(json.dumps({"id": row, "text": text}) + "\n" for row, text in enumerate(texts)))
    options = "--path json --data_files texts.jsonl --split train --column text --cache_dir cache --output out"
    options += " --num_proc 1 --threshold 0.8 --ngram 3 --hash_func xxh3"
    done = subprocess.run(["rm", "-rf", "cache", "out"], check=True)
    command = [sys.executable, "-m", "text_dedup.minhash", *options.split()]
    done = subprocess.run(command, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    rows = []
    for shard in sorted(Path("out").glob("*.arrow")):
        with pa.memory_map(str(shard)) as source:
            rows += pa.ipc.open_stream(source).read_all()["id"].to_pylist()
    return rows


def grams(text):
    words = text.split()
    return set(zip(words, words[1:], words[2:]))


generator = random.Random(3)
words = [f"w{generator.getrandbits(30):x}" for _ in range(1080)]
chain = [" ".join(words[at * 12 : at * 12 + 600]) for at in range(40)]
stay = kept(chain)
sets = list(map(grams, chain))
best = [max(len(sets[row] & sets[other]) / len(sets[row] | sets[other]) for other in stay) for row in range(40) if row not in stay]
print(f"chain: {len(stay)} of 40 kept, {sum(value < 0.8 for value in best)} removed without a match, lowest {min(best):.2f}")
long = [" ".join(f"{kind}{number}" for number in range(60)) for kind in ("alpha", "beta")]
short = ["cat", "dog", "cat", "the cat", "a dog ran"]
print(f"short: {len(kept(long + short))} of 6 different texts kept")
chinese = "今天天气很好 我们去公园散步 数据库事务的隔离级别 请输入您的密码 火车将在五分钟后到达 他昨天买了一本新书 "
chinese += "这道菜太咸了 会议改到下周三上午 手机没有电了 图书馆周一闭馆 孩子们在院子里玩 价格上涨了百分之三"
print(f"Chinese: {len(kept(long + chinese.split()))} of 14 different texts kept")
PYTHON
env/bin/python removals.py > seen.txt
cat seen.txt
diff - seen.txt <<'SEEN'
chain: 1 of 40 kept, 29 removed without a match, lowest 0.33
short: 2 of 6 different texts kept
Chinese: 2 of 14 different texts kept
SEEN
