#!/usr/bin/env bash
# Claim: Lucene's SmartChineseAnalyzer drops the Chinese zero 〇, so the years 二〇〇八 and 二八 are equal, and it stems English words.
# Package: lucene-analysis-smartcn 9.12.3 (Maven)
# Expected: 〇 is a numeral like 一 and 二, and words in Latin letters are only lowercased.
# Happens: 〇 and circled numbers such as ① are omitted like punctuation. Numbers lose their decimal point. universities and universal have one stem. Cyrillic words are cut into letters.
# Seen: 二〇〇八年: [二, 八, 年]; 第①条 and 第②条: [第, 条]; universities, universal: [univers, univers] (2026-11-28)
# Matters: Search engines use this analyzer for Chinese. Years, articles of law and prices that differ become copies.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for name in lucene-analysis-smartcn lucene-analysis-common lucene-core; do
    mvn -q -B dependency:copy -Dartifact=org.apache.lucene:$name:9.12.3 -DoutputDirectory=jars
done
cat > Cut.java <<'JAVA'
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.cn.smart.SmartChineseAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

public class Cut {
    public static void main(String[] arguments) throws Exception {
        Analyzer analyzer = new SmartChineseAnalyzer();
        for (String text : List.of("二〇〇八年", "二八年", "第①条", "第②条", "税率为3.5%", "税率为3，5", "universities universal", "Москва")) {
            List<String> tokens = new ArrayList<>();
            try (TokenStream stream = analyzer.tokenStream("text", text)) {
                CharTermAttribute term = stream.addAttribute(CharTermAttribute.class);
                stream.reset();
                while (stream.incrementToken()) tokens.add(term.toString());
                stream.end();
            }
            System.out.println(text + " " + tokens);
        }
    }
}
JAVA
java -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -cp 'jars/*' Cut.java 2> log.txt | tee seen.txt
diff - seen.txt <<'SEEN'
二〇〇八年 [二, 八, 年]
二八年 [二, 八, 年]
第①条 [第, 条]
第②条 [第, 条]
税率为3.5% [税率, 为, 3, 5]
税率为3，5 [税率, 为, 3, 5]
universities universal [univers, univers]
Москва [М, о, с, к, в, а]
SEEN
