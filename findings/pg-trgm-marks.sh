#!/usr/bin/env bash
# Claim: PostgreSQL's pg_trgm finds C++ and C# equal, -5 and 5 equal, and "!!!" unlike itself.
# Package: @electric-sql/pglite 0.5.17 (npm)
# Expected: A text has the similarity 1 with itself, and different texts less.
# Happens: Only letters and digits form trigrams, each word on its own and each trigram once. Texts without letters have no trigrams and the similarity 0, with themselves too. Repeated words and their order do not count.
# Seen: C++ / C# 1, -5 / 5 1, !!! / !!! 0, "to be" / "be to be" 1, 合格 / 不合格 0.17 (2026-11-28)
# Matters: A trigram index cannot confirm exact copies of short texts, and a threshold that is right for English finds nothing in two or three Chinese characters.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund @electric-sql/pglite@0.5.17 > log.txt 2>&1
cat > trigrams.mjs <<'JAVASCRIPT'
import { PGlite } from '@electric-sql/pglite';
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm';

const database = await PGlite.create({ extensions: { pg_trgm } });
await database.exec('create extension pg_trgm');
for (const pair of [['C++', 'C#'], ['-5', '5'], ['!!!', '!!!'], ['to be', 'be to be'], ['合格', '不合格'], ['3.5%', '35']]) {
  const { rows } = await database.query('select similarity($1::text, $2::text) s', pair);
  console.log(`${pair.join(' / ')}: ${rows[0].s.toFixed(2)}`);
}
JAVASCRIPT
node trigrams.mjs | tee seen.txt
diff - seen.txt <<'SEEN'
C++ / C#: 1.00
-5 / 5: 1.00
!!! / !!!: 0.00
to be / be to be: 1.00
合格 / 不合格: 0.17
3.5% / 35: 0.17
SEEN
