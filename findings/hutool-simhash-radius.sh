#!/usr/bin/env bash
# Claim: The SimHash store of Hutool finds no text at a distance equal to its threshold.
# Package: hutool-core 5.8.40 (Maven)
# Expected: With the threshold 3, which is also the number of differences that four blocks allow for, `equals` finds stored fingerprints at distances 0 to 3.
# Happens: The comparison is a strict "less than". Texts at distance exactly 3, the most frequent distance in this sample, are never found.
# Seen: distance 2: 5703 of 5703, distance 3: 0 of 7474 (2026-11-28)
# Matters: Ported code finds fewer duplicates than the rule "within 3" that it is compared with; the same threshold in another tool removes more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -q -B dependency:copy -Dartifact=cn.hutool:hutool-core:5.8.40 -DoutputDirectory=jars
cat > Radius.java <<'JAVA'
import cn.hutool.core.text.Simhash;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

public class Radius {
    public static void main(String[] arguments) {
        Random random = new Random(1);
        int[] found = new int[5], total = new int[5];
        for (int pair = 0; pair < 40_000; pair++) {
            List<String> first = new ArrayList<>();
            for (int at = 0; at < 60; at++) first.add("w" + random.nextInt(100_000));
            List<String> second = new ArrayList<>(first);
            second.set(random.nextInt(60), "v" + random.nextInt(100_000));
            if (random.nextBoolean()) second.set(random.nextInt(60), "u" + random.nextInt(100_000));
            Simhash store = new Simhash(4, 3);
            long stored = store.hash(first);
            int distance = Long.bitCount(stored ^ store.hash(second));
            if (distance > 4) continue;
            store.store(stored);
            total[distance]++;
            if (store.equals(second)) found[distance]++;
        }
        for (int distance = 0; distance < 5; distance++)
            System.out.println("distance " + distance + ": " + found[distance] + " of " + total[distance]);
    }
}
JAVA
java -cp 'jars/*' Radius.java | tee seen.txt
diff - seen.txt <<'SEEN'
distance 0: 769 of 769
distance 1: 3112 of 3112
distance 2: 5703 of 5703
distance 3: 0 of 7474
distance 4: 0 of 7349
SEEN
