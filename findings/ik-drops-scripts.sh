#!/usr/bin/env bash
# Claim: The IK analyzer drops Cyrillic, Greek, Thai and Indian scripts, the Chinese zero 〇 and accented letters.
# Package: ik-analyzer 8.5.0 with lucene-core 9.12.3 (Maven)
# Expected: A segmenter for Chinese hands over the words of other languages as they are.
# Happens: Only CJK, kana, hangul and ASCII are read; all else separates. café becomes caf, and kana are cut into letters.
# Seen: Москва [], ไม่ไป [], हिन्दी []; naïve café [na, ve, caf]; 二〇〇八年 [二, 八年] (2026-11-28)
# Matters: All documents in these languages are empty, so they equal each other, or match nothing. Search engines for Chinese use this analyzer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -q -B dependency:copy -Dartifact=com.github.magese:ik-analyzer:8.5.0 -DoutputDirectory=jars
mvn -q -B dependency:copy -Dartifact=org.apache.lucene:lucene-core:9.12.3 -DoutputDirectory=jars
cat > Cut.java <<'JAVA'
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import org.wltea.analyzer.core.IKSegmenter;
import org.wltea.analyzer.core.Lexeme;

public class Cut {
    public static void main(String[] arguments) throws Exception {
        for (String text : List.of("Москва", "ไม่ไป", "हिन्दी", "αβγ", "naïve café", "二〇〇八年", "C++ C#", "カナ", "价格3.5元")) {
            IKSegmenter cutter = new IKSegmenter(new StringReader(text), true);
            List<String> tokens = new ArrayList<>();
            for (Lexeme token = cutter.next(); token != null; token = cutter.next()) tokens.add(token.getLexemeText());
            System.out.println(text + " " + tokens);
        }
    }
}
JAVA
java -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -cp 'jars/*' Cut.java 2> log.txt | grep -v '^Load' | tee seen.txt
diff - seen.txt <<'SEEN'
Москва []
ไม่ไป []
हिन्दी []
αβγ []
naïve café [na, ve, caf]
二〇〇八年 [二, 八年]
C++ C# [c++, c#]
カナ [カ, ナ]
价格3.5元 [价格, 3.5, 元]
SEEN
