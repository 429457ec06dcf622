#!/usr/bin/env bash
# Claim: text-dedup 0.4.1 removes all copies of most groups of duplicates: of ten texts that occur twice, at most a few are left.
# Package: text-dedup 0.4.1 (PyPI, Python 3.12 or later)
# Expected: One document of each group of duplicates is kept.
# Happens: A document is kept if its row number equals the number of its group, and groups are numbered 1, 2, 3 and on. With check_false_positive = true, which is off by default, groups are numbered by their first row, and one document of each stays.
# Seen: 0 to 1 of 10 texts with a copy kept, 10 of 10 with check_false_positive (2026-11-28)
# Matters: Documents that have a copy disappear from the collection, and the report counts them as duplicates.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile text-dedup==0.4.1 datasets==5.2.0 polars==1.44.2 polars-grouper==0.6.1 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import datasets

generator = random.Random(3)
words = [f"w{number}" for number in range(2000)]
different = [" ".join(generator.choices(words, k=60)) for _ in range(13)]
texts = different[:10] * 2 + different[10:]
Path("texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
SETTINGS = """
[input]
input_type = "local_files"
file_type = "json"
read_arguments = { path = "json", data_files = "texts.jsonl", split = "train" }
[algorithm]
algorithm_name = "minhash"
text_column = "text"
num_perm = 128
threshold = 0.8
num_proc = 1
check_false_positive = CHECK
[output]
output_dir = "CHECK"
[debug]
"""
for check in ("false", "true"):
    Path("config.toml").write_text(SETTINGS.replace("CHECK", check))
    command = [sys.executable, "-m", "text_dedup.minhash"]
    subprocess.run(command, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True)
    kept = datasets.load_from_disk(check)["text"]
    twice = sum(text in kept for text in different[:10])
    shown = "at most 2" if twice <= 2 else twice  # the numbering of groups differs from run to run
    print(f"check_false_positive = {check}: {shown} of 10 texts with a copy kept, {len(set(kept)) - twice} of 3 without")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
check_false_positive = false: at most 2 of 10 texts with a copy kept, 3 of 3 without
check_false_positive = true: 10 of 10 texts with a copy kept, 3 of 3 without
SEEN
