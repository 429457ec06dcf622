#!/usr/bin/env bash
# Claim: simhash-js compares its own fingerprints wrongly: hash() returns a number, and Comparator reads its decimal digits as hexadecimal.
# Package: simhash-js 1.0.0 (npm)
# Expected: Comparator.hammingDistance of two results of hash() is the number of bits in which they differ.
# Happens: The digits are parsed in base 16 and cut to 32 bits, and each bit is counted twice, because JavaScript's >> 32 shifts by 0.
# Seen: 9 and 10: 6 in place of 2; two texts with one other word: 34 in place of 12 of 32 bits (2026-11-28)
# Matters: The documented use gives distances and similarities of unrelated numbers. Pass toString(16), or count the bits of a ^ b.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund simhash-js@1.0.0 > log.txt 2>&1
cat > run.cjs <<'JAVASCRIPT'
const { SimHash, Comparator } = require('simhash-js');

function bits(number) {
  return [...(number >>> 0).toString(2)].filter((bit) => bit === '1').length;
}

const simhash = new SimHash();
const first = simhash.hash('the ferry to the eastern pier leaves every twenty minutes');
const second = simhash.hash('the ferry to the eastern pier leaves every fifteen minutes');
for (const [a, b] of [[9, 10], [7, 8], [first, second]])
  console.log(a, b, 'differ in', bits(a ^ b), 'bits, distance', Comparator.hammingDistance(a, b));
JAVASCRIPT
node run.cjs | tee seen.txt
diff - seen.txt <<'SEEN'
9 10 differ in 2 bits, distance 6
7 8 differ in 4 bits, distance 8
1367331870 3547006781 differ in 12 bits, distance 34
SEEN
