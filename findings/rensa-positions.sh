#!/usr/bin/env bash
# Claim: rensa's fast path misses copies that are shifted by one word, and its batch flags mark the first copy too.
# Package: rensa 0.5.0 (PyPI)
# Expected: One word inserted before 400 leaves the pair a near-duplicate, and one document of each group is not flagged.
# Happens: The rho path samples tokens by their position (its README states that order and length affect it). The flags of a batch are set for all members of a group.
# Seen: the rho path finds 0 of 300 shifted copies (J = 0.997), the path over all tokens 300; flags of two equal documents and another: [True, True, False] (2026-11-28)
# Matters: The published speedup does not hold for edited copies, and dropping the flagged rows removes the last copy.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile rensa==0.5.0
env/bin/python > seen.txt <<'PYTHON'
import random

from rensa import RMinHash, RMinHashLSH

generator = random.Random(11)
rows = []
for _ in range(300):
    words = [f"w{generator.getrandbits(30):x}" for _ in range(400)]
    rows += [words, ["inserted", *words]]
sets = [[" ".join(run) for run in zip(row, row[1:], row[2:])] for row in rows]
print(f"J = {len(set(sets[0]) & set(sets[1])) / len(set(sets[0]) | set(sets[1])):.3f}")
for name in ("digest_matrix_from_token_sets_rho", "digest_matrix_from_token_sets"):
    index = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=8)
    flags = index.query_duplicate_flags_matrix_one_shot(getattr(RMinHash, name)(sets, 128, 42))
    print(name, sum(flags[at] or flags[at + 1] for at in range(0, len(rows), 2)), "of 300")
matrix = RMinHash.digest_matrix_from_token_sets([["a", "b"], ["a", "b"], ["c", "d"]], 128, 42)
print(list(RMinHashLSH(threshold=0.8, num_perm=128, num_bands=8).query_duplicate_flags_matrix_one_shot(matrix)))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
J = 0.997
digest_matrix_from_token_sets_rho 0 of 300
digest_matrix_from_token_sets 300 of 300
[True, True, False]
SEEN
