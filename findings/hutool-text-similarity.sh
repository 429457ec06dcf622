#!/usr/bin/env bash
# Claim: Hutool's TextSimilarity gives 1 for all pairs of Russian or of Japanese kana texts, and 3.5% equal to 35.
# Package: hutool-core 5.8.40 (Maven)
# Expected: Unrelated sentences in any script have a low similarity, and different numbers are different.
# Happens: Only ASCII letters, digits and the characters U+4E00 to U+9FFF are compared. Texts of other scripts are compared as two empty texts, whose similarity is 1. Decimal points, signs and accented letters are dropped.
# Seen: two unrelated Russian sentences 1.0, two kana words 1.0, 税率为3.5% and 税率为35 1.0, -5 and 5 1.0 (2026-11-28)
# Matters: Removing texts above a threshold of this measure keeps one Russian text of a whole collection, and one of several prices.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -q -B dependency:copy -Dartifact=cn.hutool:hutool-core:5.8.40 -DoutputDirectory=jars
cat > Similar.java <<'JAVA'
import static cn.hutool.core.text.TextSimilarity.similar;

public class Similar {
    static void show(String first, String second) {
        System.out.printf("%s / %s: %.2f%n", first, second, similar(first, second));
    }

    public static void main(String[] arguments) {
        show("Паром ходит каждые двадцать минут", "Библиотека закрыта по понедельникам");
        show("フェリーは", "としょかん");
        show("税率为3.5%", "税率为35");
        show("-5", "5");
        show("pêché", "pch");
        show("The ferry runs every 20 minutes", "Library closed on Mondays");
    }
}
JAVA
java -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -cp 'jars/*' Similar.java | tee seen.txt
diff - seen.txt <<'SEEN'
Паром ходит каждые двадцать минут / Библиотека закрыта по понедельникам: 1.00
フェリーは / としょかん: 1.00
税率为3.5% / 税率为35: 1.00
-5 / 5: 1.00
pêché / pch: 1.00
The ferry runs every 20 minutes / Library closed on Mondays: 0.27
SEEN
