#!/usr/bin/env bash
# Claim: A Hugging Face datasets script that drops rows seen before is right in its first run and leaves copies of train in test in its second, because the first filter comes from the cache and sees no row.
# Package: datasets 5.2.0 (PyPI)
# Expected: The cache changes the time of a run and not its result; a function that cannot be cached is run again.
# Happens: The fingerprint of a filter covers the function and the set of seen texts as they are before the filter. In a second run it is that of the first run for train, which is loaded, and the set remains empty. For test it then differs, and test is filtered with the empty set. A set in an object or in fn_kwargs does the same. Of an imported function the fingerprint covers the name only: its results remain, also after its rule has changed.
# Seen: 100 rows of train, 30 of test, 10 of them in train: rows kept 80 and 20 in the first run, 80 and 30 in the second; without the cache, or as one dataset, 80 and 20 each time; a module with a rule that keeps one row: 80 and 20 (2026-11-30)
# Matters: Splits that were free of leaks have them when the script runs again, and so has any filter of several files. Filter all splits as one dataset, or pass load_from_cache_file=False.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile datasets==5.2.0
cat > rule.py <<'PYTHON'
seen = set()


def is_new(row):
    key = row["text"]
    if key in seen:
        return False
    seen.add(key)
    return True
PYTHON
cat > keep.py <<'PYTHON'
import sys

import datasets

import rule


class Seen:
    def __init__(self):
        self.texts = set()

    def __call__(self, row):
        return is_new(row, self.texts)


def is_new(row, texts):
    if row["text"] in texts:
        return False
    texts.add(row["text"])
    return True


def filtered(data, holder):
    texts = set()
    if holder == "set":
        return data.filter(lambda row: is_new(row, texts))
    if holder == "object":
        return data.filter(Seen())
    if holder == "fn_kwargs":
        return data.filter(is_new, fn_kwargs={"texts": texts})
    if holder == "set, not cached":
        return data.filter(lambda row: is_new(row, texts), load_from_cache_file=False)
    return data.filter(rule.is_new)


datasets.disable_progress_bars()
data = datasets.load_dataset("json", data_files={"train": "train.jsonl", "test": "test.jsonl"})
holder = sys.argv[1]
if holder == "one dataset":
    whole = datasets.concatenate_datasets([part.add_column("split", [name] * len(part)) for name, part in data.items()])
    kept = filtered(whole, "set")
    kept = {name: [row for row in kept if row["split"] == name] for name in data}
else:
    kept = filtered(data, holder)
print(f"{holder}, {sys.argv[2]}: train {len(kept['train'])}, test {len(kept['test'])}")
PYTHON
for number in $(seq 0 99); do echo "{\"text\": \"text $((number % 80))\"}"; done > train.jsonl
for number in $(seq 70 99); do echo "{\"text\": \"text $number\"}"; done > test.jsonl
export HF_HUB_OFFLINE=1
for holder in set object fn_kwargs "set, not cached" "one dataset" module; do
  export HF_HOME=$folder/"$holder"
  for run in "first run" "second run"; do
    env/bin/python keep.py "$holder" "$run" 2>> log.txt
  done
done > seen.txt
sed -i 's/row\["text"\]/row["text"][:4]/' rule.py
env/bin/python keep.py module "changed rule" >> seen.txt 2>> log.txt
export HF_HOME=$folder/empty
env/bin/python keep.py module "changed rule, empty cache" >> seen.txt 2>> log.txt
cat seen.txt
diff - seen.txt <<'SEEN'
set, first run: train 80, test 20
set, second run: train 80, test 30
object, first run: train 80, test 20
object, second run: train 80, test 30
fn_kwargs, first run: train 80, test 20
fn_kwargs, second run: train 80, test 30
set, not cached, first run: train 80, test 20
set, not cached, second run: train 80, test 20
one dataset, first run: train 80, test 20
one dataset, second run: train 80, test 20
module, first run: train 80, test 20
module, second run: train 80, test 20
module, changed rule: train 80, test 20
module, changed rule, empty cache: train 1, test 0
SEEN
