#!/usr/bin/env bash
# Claim: HanLP's stop words contain 不 (not) and all numerals, so 合格 and 不合格, and any two prices, are equal; two versions cut plain sentences differently.
# Package: hanlp portable-1.7.3 and portable-1.8.4 (Maven)
# Expected: Stop words are words without meaning, and a patch of a segmenter cuts plain sentences as before.
# Happens: CoreStopWordDictionary removes 不, and every number in figures or characters. 1.7.3 cuts 二十分钟一班 (every twenty minutes) into 二, 十分, 钟一班.
# Seen: 产品不合格 [产品, 合格]; 价格500元 and 价格三百元 [价格]; 二十分钟一班 [二, 十分, 钟一班] and [二十, 分钟, 一, 班] (2026-11-28)
# Matters: The usual recipe, to cut, drop stop words and take SimHash, makes copies of opposite statements. After an upgrade an index finds few of its texts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -q -B dependency:copy -Dartifact=com.hankcs:hanlp:portable-1.7.3 -DoutputDirectory=1.7.3
mvn -q -B dependency:copy -Dartifact=com.hankcs:hanlp:portable-1.8.4 -DoutputDirectory=1.8.4
cat > Cut.java <<'JAVA'
import com.hankcs.hanlp.HanLP;
import com.hankcs.hanlp.dictionary.stopword.CoreStopWordDictionary;
import com.hankcs.hanlp.seg.common.Term;
import java.util.ArrayList;
import java.util.List;

public class Cut {
    public static void main(String[] arguments) {
        for (String text : List.of("产品合格", "产品不合格", "价格500元", "价格三百元", "渡船改为每二十分钟一班")) {
            List<Term> terms = HanLP.segment(text);
            List<String> all = terms.stream().map(term -> term.word).toList();
            List<Term> left = new ArrayList<>(terms);
            CoreStopWordDictionary.apply(left);
            System.out.println(arguments[0] + " " + all + " " + left.stream().map(term -> term.word).toList());
        }
    }
}
JAVA
for version in 1.7.3 1.8.4; do
    java -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -cp "$version/*" Cut.java $version 2> log.txt
done | tee seen.txt
diff - seen.txt <<'SEEN'
1.7.3 [产品, 合格] [产品, 合格]
1.7.3 [产品, 不, 合格] [产品, 合格]
1.7.3 [价格, 500, 元] [价格]
1.7.3 [价格, 三百, 元] [价格]
1.7.3 [渡船, 改, 为, 每, 二, 十分, 钟一班] [渡船, 改, 十分, 钟一班]
1.8.4 [产品, 合格] [产品, 合格]
1.8.4 [产品, 不, 合格] [产品, 合格]
1.8.4 [价格, 500, 元] [价格]
1.8.4 [价格, 三百, 元] [价格]
1.8.4 [渡船, 改, 为, 每, 二十, 分钟, 一, 班] [渡船, 改, 班]
SEEN
