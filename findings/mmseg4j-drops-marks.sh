#!/usr/bin/env bash
# Claim: mmseg4j drops decimal points, percent, plus and number signs and rare characters: C++ is C#.
# Package: mmseg4j-core 1.10.0 (Maven)
# Expected: A cutter of words returns all characters but white space and punctuation, and numbers whole.
# Happens: 3.5% is cut into 3 and 5, C++ and C# are both c, the long vowel mark of katakana, unit signs and characters beyond the basic plane are omitted without a trace.
# Seen: C++ and C#: [c]; 𠮷野家 and 野家: [野, 家]; 3.5%: [3, 5] (2026-11-28)
# Matters: Texts that differ in a language, a unit or a name have equal tokens, so every measure gives 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -q -B dependency:copy -Dartifact=com.chenlb.mmseg4j:mmseg4j-core:1.10.0 -DoutputDirectory=jars
cat > Cut.java <<'JAVA'
import com.chenlb.mmseg4j.ComplexSeg;
import com.chenlb.mmseg4j.MMSeg;
import com.chenlb.mmseg4j.Word;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;

public class Cut {
    public static void main(String[] arguments) throws Exception {
        var dictionary = com.chenlb.mmseg4j.Dictionary.getInstance();
        for (String text : List.of("C++程序员", "C#程序员", "税率为3.5%", "税率为3，5", "𠮷野家", "野家", "東京タワー", "5㎏", "合格和不合格")) {
            MMSeg cutter = new MMSeg(new StringReader(text), new ComplexSeg(dictionary));
            List<String> tokens = new ArrayList<>();
            for (Word word = cutter.next(); word != null; word = cutter.next()) tokens.add(word.getString());
            System.out.println(text + " " + tokens);
        }
    }
}
JAVA
java -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -cp 'jars/*' Cut.java 2> log.txt | tee seen.txt
diff - seen.txt <<'SEEN'
C++程序员 [c, 程序员]
C#程序员 [c, 程序员]
税率为3.5% [税率, 为, 3, 5]
税率为3，5 [税率, 为, 3, 5]
𠮷野家 [野, 家]
野家 [野, 家]
東京タワー [東, 京, タ, ワ]
5㎏ [5]
合格和不合格 [合格, 和, 不合格]
SEEN
