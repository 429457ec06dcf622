#!/usr/bin/env bash
# Claim: For strings shorter than k, java-string-similarity gives NaN by Jaccard and Dice, 0 by cosine, and the distance 0 of equal strings by q-grams.
# Package: java-string-similarity 2.0.0 (Maven)
# Expected: Two different strings are at a distance above 0 by every measure of the package.
# Happens: Strings shorter than k have no grams. The measures treat two empty profiles in three ways.
# Seen: 合格 and 不合 with k = 3: Jaccard NaN, Dice NaN, cosine 0.0, q-gram distance 0.0; 合格 and 不合格: Jaccard 0.0 (2026-11-28)
# Matters: A comparison with NaN is false, so a rule "remove if similarity >= t" and a rule "keep if similarity < t" decide the same pair in opposite ways. Chinese words and names are shorter than the default of 3.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -q -B dependency:copy -Dartifact=info.debatty:java-string-similarity:2.0.0 -DoutputDirectory=jars
cat > Short.java <<'JAVA'
import info.debatty.java.stringsimilarity.Cosine;
import info.debatty.java.stringsimilarity.Jaccard;
import info.debatty.java.stringsimilarity.QGram;
import info.debatty.java.stringsimilarity.SorensenDice;

public class Short {
    public static void main(String[] arguments) {
        for (String[] pair : new String[][] {{"合格", "不合"}, {"ab", "cd"}, {"合格", "不合格"}}) {
            System.out.println(pair[0] + " " + pair[1]
                + " jaccard " + new Jaccard(3).similarity(pair[0], pair[1])
                + " dice " + new SorensenDice(3).similarity(pair[0], pair[1])
                + " cosine " + new Cosine(3).similarity(pair[0], pair[1])
                + " q-gram distance " + new QGram(3).distance(pair[0], pair[1]));
        }
    }
}
JAVA
java -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -cp 'jars/*' Short.java | tee seen.txt
diff - seen.txt <<'SEEN'
合格 不合 jaccard NaN dice NaN cosine 0.0 q-gram distance 0.0
ab cd jaccard NaN dice NaN cosine 0.0 q-gram distance 0.0
合格 不合格 jaccard 0.0 dice 0.0 cosine 0.0 q-gram distance 1.0
SEEN
