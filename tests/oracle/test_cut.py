"""Tokens by rules other than the defaults: the core against the oracle."""

import random
import unicodedata

import numpy as np
import pytest

import likewise
from likewise.stages.features import features, tokens
from tests.oracle import cut
from tests.oracle import features as oracle
from tests.oracle.normalize import normalize

TEXTS = [
    "",
    "One sentence. Another, in 3.5 lines! Is it so? (Yes.) no. Yes",
    "first line\nsecond\r\n\r\n \t\nthird\x0bfourth\u2028fifth\n",
    "Don't panic; naïve Ångström café 2024-11-21, 12:30 ½ x²  end.Next",
    "我们说：“你好。”他走了！真的吗？《书》【注】、再见",
    "妈妈喊你回家吃饭哦，回家罗回家罗",
    "媽媽喊你回家吃飯囉，漢語 國學 後髮發 2025年",
    "Ωμέγα й ё Ελλάδα ǭ ấ が ガ שׁ",
    "e.g. this is lower. Mr. Smith went. U.S.A. is. 3.14 is pi.\n\nNew paragraph\nsame one",
    "二〇二六年十一月二十三日，一千二百三十人、３万元；第五次",
    "!!! ... ???",
    "Read https://T.co/a1B2, HTTP://bit.ly/x(y)_z). (www.a.de/二) xhttp://b.c",
    "看https://t.cn/A6。这里 www. http:// https://...",
]
FOLDS = [
    *((), *((name,) for name in cut.PLAIN_FOLDS), cut.PLAIN_FOLDS, ("digits", "punctuation"), ("numerals", "digits")),
    ("points", "accents", "punctuation"),
]
PAGE = """<!DOCTYPE html><html><head><title>T &amp; U</title><style>p{}</style></head><body class="a>b"><h1>Head</h1>
<p>One &lt;two&gt; <b>th</b>ree&nbsp;&#x732b;<br>four</p><script>var x = "<p>no</p>";</script><!-- <p>no -->
<ul><li>a<li>b</ul><pre>keep
  this</pre><table><tr><td>1</td><td>2</td></tr></table><div>end</div></body></html>"""


# The oracle does not cut these scripts, and knows some look-alikes only.
SCRIPTS = ["שָׁלוֹם עֲלֵיכֶם שלום, إِنَّ الْمَدِينَةَ عَلَىٰ مـــــاء أكبر آن", "раураl m0dern 1oсе"]


@pytest.mark.parametrize("fold", [(), ("points",), ("confusables",), ("points", "accents", "punctuation")])
@pytest.mark.parametrize("kind", ["char", "line"])
def test_folded_scripts(kind, fold):
    recipe = likewise.Recipe.minhash(tokens=kind, fold=fold)
    for text in SCRIPTS[fold == ("confusables",) :]:
        assert tokens(text, recipe) == cut.cut(text, kind, folds=fold), text


@pytest.mark.parametrize("fold", FOLDS, ids=lambda names: "+".join(names) or "none")
@pytest.mark.parametrize("kind", ["auto", "script", "word", "char", "line", "paragraph"])
def test_folded_tokens(kind, fold):
    recipe = likewise.Recipe.minhash(tokens=kind, fold=fold)
    for text in TEXTS:
        assert tokens(text, recipe) == cut.cut(text, kind, folds=fold), text


def test_addresses_are_one_word_and_no_more():
    rng = random.Random(8)
    parts = [
        "http://",
        "https://",
        "www.",
        "t.co/a1",
        ".",
        ")",
        "(",
        " ",
        "x",
        "7",
        "é",
        "看",
        "。",
        "%",
        "?",
        "/",
        "'",
    ]
    texts = ["".join(rng.choices(parts, k=rng.randrange(1, 12))) for _ in range(2000)]
    for folds in (("urls",), ("urls", "punctuation", "digits")):
        recipe = likewise.Recipe.minhash(tokens="line", fold=folds)
        for text in texts:
            assert tokens(text, recipe) == cut.cut(text, "line", folds=folds), text
    short, long = ("Ferries every hour: https://t.co/a1B2", "Ferries every hour: http://bit.ly/9zzZ?x=1.")
    assert likewise.dedup([short, long], fold="urls", threshold=0.9).kept.tolist() == [True, False]


def test_sentences():
    pytest.importorskip("regex")
    recipe = likewise.Recipe.minhash(tokens="sentence")
    rng = random.Random(5)
    alphabet = ["a", "B", "1", ".", "!", "?", "。", ")", "“", " ", "\n", "\r", ",", "-", "你", "\u0301", "ß", ":"]
    texts = [*TEXTS, *("".join(rng.choices(alphabet, k=rng.randrange(1, 14))) for _ in range(3000))]
    for text in texts:
        assert tokens(text, recipe) == cut.cut(text, "sentence"), repr(text)


@pytest.mark.parametrize("kind", ["auto", "line", "paragraph"])
def test_pages(kind):
    recipe = likewise.Recipe.minhash(tokens=kind, markup="html")
    assert tokens(PAGE, recipe) == cut.cut(PAGE, kind, markup="html")
    if kind == "line":
        assert tokens(PAGE, recipe)[:4] == ["t & u", "head", "one <two> three 猫", "four"]


def test_stop_words():
    stop = ["The", "OF", "café", "不", "the"]
    recipe = likewise.Recipe.minhash(tokens="auto", shingle=1, stop_words=stop, fold="accents")
    for text in ["The end of the café", "the The", "他不说", ""]:
        expected = [
            oracle.xxh3(word.encode(), 0) for word in dict.fromkeys(cut.cut(text, "auto", folds=["accents"], stop=stop))
        ]
        assert features([text], recipe).features.tolist() == expected, text


@pytest.mark.parametrize("size", [256, 512, 1024, 2048])
def test_content_chunks(size):
    rng = random.Random(size)
    recipe = likewise.Recipe.minhash(tokens="chunks", chunk_bytes=size)
    lengths = [0, 1, size // 4, size // 4 + 1, size, 3 * size + 1, 20_001]
    for data in [*(rng.randbytes(length) for length in lengths), b"\0" * (9 * size + 5), b"ab" * 5000]:
        assert tokens(data, recipe) == cut.content_chunks(data, size), len(data)


def test_fixed_chunks_and_bytes():
    data = bytes(range(256)) * 3 + b"end"
    for size in (1, 7, 1000):
        recipe = likewise.Recipe.minhash(tokens="chunks", chunking="fixed", chunk_bytes=size)
        assert tokens(data, recipe) == cut.fixed_chunks(data, size)
    assert tokens("é", likewise.Recipe.minhash(tokens="bytes")) == [b"\xc3", b"\xa9"]
    found = features([data, b"ab", b""], likewise.Recipe.minhash(tokens="bytes", shingle=8))
    hashes = [oracle.xxh3(bytes([byte]), 0) for byte in data]
    windows = [oracle.mix(oracle.polynomial(hashes[i : i + 8])) for i in range(len(data) - 7)]
    short = oracle.mix(oracle.polynomial([oracle.xxh3(b"a", 0), oracle.xxh3(b"b", 0)]))
    assert found.features.tolist() == [*dict.fromkeys(windows), short]
    assert np.diff(found.offsets).tolist()[1:] == [1, 0]


@pytest.mark.parametrize("name", cut.FOLDS)
def test_each_folding_twice_is_once(name):
    every = "a++ " + "".join(f"a{chr(point)}1 " for point in [*range(0xD800), *range(0xE000, 0x3FFFF)])
    every += "https://a.b/c"
    once = likewise.Recipe.minhash(fold=(name,)).feature_rules.normalize(every)
    assert likewise.Recipe.minhash(fold=(name,)).feature_rules.normalize(once) == once
    assert once != likewise.Recipe.minhash().feature_rules.normalize(every)


def test_chinese_words_with_the_words_of_a_user():
    plain = likewise.Recipe.minhash(tokens="chinese")
    text = "我爱北京天安门，张无忌说 Don't panic：李小福是创新办主任也是云计算方面的专家 T恤 2024年"
    found = tokens(text, plain)
    assert [word for word in found if word in ("北京", "天安门", "don't", "panic", "2024")] == [
        "北京", "天安门", "don't", "panic", "2024",
    ]  # fmt: skip
    assert not {"，", "：", "云计算", "创新办"} & set(found)
    more = likewise.Recipe.minhash(tokens="chinese", dictionary=["云计算", ("創新辦", 5)], fold="traditional")
    assert {"云计算", "创新办"} <= set(tokens(text, more))
    assert more.dictionary_id != plain.dictionary_id is None
    assert plain.libraries == "jieba-rs 0.11.0"
    assert plain.recipe_id != likewise.Recipe.minhash(tokens="chinese", dictionary=["云计算"]).recipe_id


# The words of the dictionary with capital letters, as they are written there.
CAPITALIZED = (
    "4S店 AA制 AB型 AT&T A型 A座 A股 A轮 BB机 BP机 B型 B座 B股 B超 B轮 C# C++ CALL机 CD机 CD盒 C座 "
    "C盘 C语言 D座 D版 D盘 E化 E座 E盘 E通 F座 F盘 G盘 H盘 H股 IC卡 IP卡 IP地址 IP电话 I盘 K党 "
    "K歌之王 N年 O型 PC机 PH值 QQ号 Q版 RSS订阅 SIM卡 T台 T型台 T恤 T恤衫 T盘 U盘 VISA卡 X光 X光线 "
    "X射线 Z盘 大S 小S 江南Style 阿Q"
)


def test_words_of_the_dictionary_with_capitals_are_found():
    recipe = likewise.Recipe.minhash(tokens="chinese")
    words = CAPITALIZED.split()
    assert len(words) == 65
    for word in words:
        # A word without an ideograph is cut with the one after it.
        text = word if any(map(is_chinese, word)) else f"{word}的"
        assert tokens(text, recipe)[0] == word.casefold(), word
        for other in (text.lower(), text.upper()):
            assert tokens(other, recipe) == tokens(text, recipe)
    assert tokens("买了U盘和T恤", recipe) == ["买", "了", "u盘", "和", "t恤"]
    assert likewise.compare("他把文件存进了U盘里", "他把文件存进了u盘里", recipe).measures.jaccard == 1.0


def test_chinese_words_against_the_package_of_python():
    """Both use the same dictionary and model; on 150 real pages their Chinese words are equal.

    The package reads texts with their capitals, as its dictionary has them; its words are folded afterwards.
    """
    jieba = pytest.importorskip("jieba", reason="jieba is installed beside the rivals only")
    recipe = likewise.Recipe.minhash(tokens="chinese")
    jieba.dt.initialize()
    words = [word for word, count in jieba.dt.FREQ.items() if count and word != word.casefold()]
    assert sorted(words) == sorted(CAPITALIZED.split())
    made = [f"我{words[i]}和{words[-i]}，{words[i - 7]}" for i in range(len(words))]
    for text in [
        *TEXTS,
        *made,
        FIRST,
        SECOND,
        "他来到了网易杭研大厦，小明硕士毕业于中国科学院计算所，后在日本京都大学深造。",
    ]:
        cut = jieba.cut(unicodedata.normalize("NFKC", text))
        theirs = [normalize(word) for word in cut if any(map(is_chinese, word))]
        assert [word for word in tokens(text, recipe) if any(map(is_chinese, word))] == theirs, text


def is_chinese(word):
    return all("\u4e00" <= c <= "\u9fff" for c in word)


FIRST = "你妈妈喊你回家吃饭哦，回家罗回家罗"
SECOND = "你妈妈叫你回家吃饭啦，回家罗回家罗"


def test_mothers_call():
    """Two short sentences that differ in two characters are near by SimHash of characters; ordinary hashes are not."""
    recipe = likewise.Recipe.simhash(tokens="char", shingle=2, weights="count", within=10, bits=64)
    found = likewise.compare(FIRST, SECOND, recipe)
    ordinary = oracle.xxh3(FIRST.encode(), 0) ^ oracle.xxh3(SECOND.encode(), 0)
    # Chance gives 32 bits, with a standard deviation of 4.
    assert found.measures.distance <= 16
    assert abs(ordinary.bit_count() - 32) <= 12
    apart = likewise.compare(FIRST, "今天的股市又创下了新高，投资者很高兴", recipe)
    assert apart.measures.distance >= 22
