#!/usr/bin/env bash
# Claim: The npm package minhash estimates 1 for lists of different Chinese words: 最后 and 本人 are one element, as in every hash of the form of Java's String.hashCode.
# Package: minhash 0.0.9 (npm)
# Expected: Sets without a common element have an estimate near 0.
# Happens: Elements are hashed to 31 * first + second, so two-character words share hashes.
# Seen: {体系, 最后, 属于, 感情} and {产量, 本人, 宜昌, 思考}: estimate 1 (2026-11-28)
# Matters: Lists of Chinese words of two characters look equal without a common word. SimHash code that takes String.hashCode of Java has the same pairs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund minhash@0.0.9 > log.txt 2>&1
cat > words.mjs <<'JAVASCRIPT'
import minhash from 'minhash';

function signature(words) {
  const made = new minhash.Minhash({ numPerm: 128 });
  words.forEach((word) => made.update(word));
  return made;
}

const first = ['体系', '最后', '属于', '感情'];
const second = ['产量', '本人', '宜昌', '思考'];
console.log('no word in common:', signature(first).jaccard(signature(second)));
for (const [at, word] of first.entries()) console.log(word, second[at], signature([word]).jaccard(signature([second[at]])));
JAVASCRIPT
node words.mjs | tee seen.txt
cat > Hash.java <<'JAVA'
public class Hash {
    public static void main(String[] arguments) {
        System.out.println("hashCode " + "最后".hashCode() + " " + "本人".hashCode());
    }
}
JAVA
java -Dfile.encoding=UTF-8 Hash.java | tee -a seen.txt
diff - seen.txt <<'SEEN'
no word in common: 1
体系 产量 1
最后 本人 1
属于 宜昌 1
感情 思考 1
hashCode 838926 838926
SEEN
