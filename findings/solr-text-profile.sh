#!/usr/bin/env bash
# Claim: Solr's TextProfileSignature gives the same words in another order another signature, and changes with words that its profile leaves out.
# Package: solr-core and solr-solrj 9.10.0 (Maven)
# Expected: Its documentation describes the profile as the words and their rounded counts, and as a bag of words without regard to order; texts with one profile are near-duplicates.
# Happens: The words are sorted by count only, and words with equal counts remain in the order of a hash table. That order depends on which word came first where two share a place, and on the size of the table, which grows with the words that are left out later.
# Seen: 200 orders of 1,000 words: 200 signatures, of 200 words 8, of 50 words 4, of 10 words 1; 40 words that occur twice, with 0 to 400 others at the end, none of which enters the profile: another signature from the 9th and from the 153rd on (2026-11-29)
# Matters: An article with two parts exchanged, or with some words more at its end, is not found as a copy, and tests on short texts do not show it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -q -B dependency:copy -Dartifact=org.apache.solr:solr-core:9.10.0 -DoutputDirectory=jars
mvn -q -B dependency:copy -Dartifact=org.apache.solr:solr-solrj:9.10.0 -DoutputDirectory=jars
mvn -q -B dependency:copy -Dartifact=org.slf4j:slf4j-api:2.0.17 -DoutputDirectory=jars
cat > Profile.java <<'JAVA'
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.solr.common.params.ModifiableSolrParams;
import org.apache.solr.update.processor.TextProfileSignature;

public class Profile {
    static String signature(List<String> words) {
        TextProfileSignature made = new TextProfileSignature();
        made.init(new ModifiableSolrParams());
        made.add(String.join(" ", words));
        return HexFormat.of().formatHex(made.getSignature());
    }

    public static void main(String[] arguments) {
        Random random = new Random(1);
        for (int size : new int[] {10, 50, 200, 1000}) {
            List<String> words = new ArrayList<>();
            for (int at = 0; at < size; at++) words.add("word" + random.nextInt(size));
            Set<String> signatures = new HashSet<>();
            for (int order = 0; order < 200; order++) {
                Collections.shuffle(words, random);
                signatures.add(signature(words));
            }
            System.out.println(size + " words in 200 orders: " + signatures.size() + " signatures");
        }
        List<String> words = new ArrayList<>();
        for (int at = 0; at < 80; at++) words.add("word" + at % 40);
        String before = "";
        for (int added = 0; added <= 400; added++) {
            String now = signature(words);
            if (!now.equals(before)) System.out.println("40 words twice, " + added + " others once: " + now);
            before = now;
            words.add("other" + added);
        }
    }
}
JAVA
java -cp 'jars/*' Profile.java 2> log.txt | tee seen.txt
diff - seen.txt <<'SEEN'
10 words in 200 orders: 1 signatures
50 words in 200 orders: 4 signatures
200 words in 200 orders: 8 signatures
1000 words in 200 orders: 200 signatures
40 words twice, 0 others once: 4444fcb6da09e0b364c60360e2b2748c
40 words twice, 9 others once: 03803c23ef3c936bef7be9626b5422d3
40 words twice, 153 others once: c1d9a1314fa01285de8f751046df98d2
SEEN
