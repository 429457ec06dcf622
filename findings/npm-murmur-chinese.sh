#!/usr/bin/env bash
# Claim: The npm packages murmurhash3js and imurmurhash give other hashes for Chinese than MurmurHash3 of UTF-8, and murmurhash3js gives one hash to different characters.
# Package: murmurhash3js 3.0.1, imurmurhash 0.1.4, murmurhash 2.0.1 and murmurhash3js-revisited 3.0.0 (npm)
# Expected: Four packages of one function agree, as they do on ASCII.
# Happens: murmurhash3js takes the low bits of each UTF-16 unit, so 一 and 伀, or 合 and 丈, are equal. imurmurhash hashes the units. Only the other two agree with mmh3 of Python, in x86.hash32.
# Seen: murmurhash3js x86.hash32: 一 = 伀, 中 = 紭, 合 = 丈; 合格: 715164194, imurmurhash 1321167602, MurmurHash3 870486711 (2026-11-28)
# Matters: MinHash and Bloom filters in JavaScript find copies where there are none, and their values cannot be compared with those of other languages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund murmurhash3js@3.0.1 imurmurhash@0.1.4 murmurhash@2.0.1 murmurhash3js-revisited@3.0.0 > log.txt 2>&1
cat > run.cjs <<'JAVASCRIPT'
const old = require('murmurhash3js');
const units = require('imurmurhash');
const plain = require('murmurhash');
const revisited = require('murmurhash3js-revisited');

for (const text of ['abc', '合格'])
  console.log(text, plain.v3(text), revisited.x86.hash32(Buffer.from(text)), units(text).result(), old.x86.hash32(text));
for (const [first, second] of [['一', '伀'], ['中', '紭'], ['合', '丈']])
  console.log(first, second, old.x86.hash32(first) === old.x86.hash32(second), old.x64.hash128(first) === old.x64.hash128(second));
JAVASCRIPT
node run.cjs | tee seen.txt
diff - seen.txt <<'SEEN'
abc 3017643002 3017643002 3017643002 3017643002
合格 870486711 870486711 1321167602 715164194
一 伀 true false
中 紭 true false
合 丈 true false
SEEN
