#!/usr/bin/env bash
# Claim: Jcseg adds synonyms and numbers that the text does not contain, and reads twenty minutes as ten.
# Package: jcseg-core 2.6.3 (Maven)
# Expected: The tokens are pieces of the text.
# Happens: iPhone adds ios and 苹果, c++ adds four spellings. 一百二十元 adds 120元. 每二十分钟 is cut after 二, and the rest is replaced by 10分钟 in NLP mode. In complex mode 500毫升 is cut into single digits.
# Seen: 每二十分钟一班 in NLP mode: [每二, 10分钟, 一班]; C++: [c++, cpp, cpplang, cplusplus, c加加] (2026-11-28)
# Matters: Tokens weigh a text by its dictionary of synonyms. Texts with other words and other numbers get equal tokens, and a new dictionary changes the tokens of old texts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -q -B dependency:copy -Dartifact=org.lionsoul:jcseg-core:2.6.3 -DoutputDirectory=jars
cat > Cut.java <<'JAVA'
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import org.lionsoul.jcseg.ISegment;
import org.lionsoul.jcseg.IWord;
import org.lionsoul.jcseg.dic.ADictionary;
import org.lionsoul.jcseg.dic.DictionaryFactory;
import org.lionsoul.jcseg.segmenter.SegmenterConfig;

public class Cut {
    public static void main(String[] arguments) throws Exception {
        SegmenterConfig config = new SegmenterConfig(true);
        ADictionary dictionary = DictionaryFactory.createSingletonDictionary(config);
        for (ISegment.Type mode : List.of(ISegment.COMPLEX, ISegment.NLP)) {
            for (String text : List.of("iPhone手机", "C++", "价格一百二十元", "每二十分钟一班", "500毫升", "５００毫升")) {
                ISegment cutter = mode.factory.create(config, dictionary);
                cutter.reset(new StringReader(text));
                List<String> tokens = new ArrayList<>();
                for (IWord word = cutter.next(); word != null; word = cutter.next()) tokens.add(word.getValue());
                System.out.println((mode == ISegment.NLP ? "nlp " : "complex ") + text + " " + tokens);
            }
        }
    }
}
JAVA
java -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -cp 'jars/*' Cut.java | tee seen.txt
diff - seen.txt <<'SEEN'
complex iPhone手机 [iphone, ios, 苹果, 手机]
complex C++ [c++, cpp, cpplang, cplusplus, c加加]
complex 价格一百二十元 [价格, 一百二十元, 120元]
complex 每二十分钟一班 [每二, 十分, 10分, 钟, 一班]
complex 500毫升 [5, 0, 0, 毫升]
complex ５００毫升 [5, 0, 0, 毫升]
nlp iPhone手机 [iphone, 手机]
nlp C++ [c++]
nlp 价格一百二十元 [价格, 120元]
nlp 每二十分钟一班 [每二, 10分钟, 一班]
nlp 500毫升 [500毫升]
nlp ５００毫升 [500毫升]
SEEN
