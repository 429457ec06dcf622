"""Folding `numerals`: worked examples, the core against the oracle, and numbers spelled out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise.stages.features import features, tokens
from tests import command
from tests.command import likewise_command as run
from tests.oracle import cut, numerals

# Examples of the definitions page, worked out by hand.
READ = {
    "十七": "17",
    "二十三": "23",
    "两千": "2000",
    "兩千": "2000",
    "二〇二六年": "2026年",
    "二○二六年": "2026年",
    "二零二六年": "2026年",
    "一九四九年十月一日": "1949年10月1日",
    "三百零五": "305",
    "三百〇五": "305",
    "三百五": "350",
    "三百五十": "350",
    "三百十五": "315",
    "一千二": "1200",
    "一千零五十": "1050",
    "一千零一夜": "1001夜",
    "一万二千": "12000",
    "一万二": "12000",
    "一万零五百": "10500",
    "十万八千里": "108000里",
    "一百二十三万四千五百六十七": "1234567",
    "两亿三千万": "230000000",
    "一万二千亿": "1200000000000",
    "三万亿": "3000000000000",
    "3万": "30000",
    "３万": "30000",
    "12345万": "123450000",
    "1亿2000万": "120000000",
    "3万5": "35000",
    "3万5千": "35000",
    "3万5000": "35000",
    "5千": "5000",
    "壹佰": "100",
    "叁仟伍佰元整": "3500元整",
    "壹万贰仟叁佰肆拾伍元": "12345元",
    "貳拾萬": "200000",
    "伍佰零陆元": "506元",
    "廿三": "23",
    "卅": "30",
    "第三": "第3",
    "第十": "第10",
    "三天": "3天",
    "五分钟": "5分钟",
    "十小時": "10小時",
    "两个": "2个",
    "三百两银子": "300两银子",
    "百分之二十三": "百分之23",
    "九一八": "918",
    "三〇": "30",
    "⼗⼆": "12",
    "二十̀三": "20̀三",
    "大陆十三省": "大陆13省",
    "五百陆军": "500陆军",
    "收拾三百": "收拾300",
    "9999999999999999": "9999999999999999",
    "九千九百九十九万九千九百九十九亿九千九百九十九万九千九百九十九": "9999999999999999",
}
LEFT = [
    *["一", "一起", "统一", "万一", "十分", "千万", "百万富翁", "百姓", "成千上万", "十全十美", "四川", "三星"],
    *["五六个", "三五天", "十七八", "三四十", "二三百", "三两天", "两三", "一百五六", "三七二十一", "一五一十"],
    *["两岸", "零", "〇", "○○", "零点", "〇三", "三百零", "一万零零五", "两十", "一百百", "一千五千", "十十"],
    *["大陆", "参加", "收拾", "陆家嘴", "大陆人", "收拾个人物品", "壹个"],
    *["0万", "05万", "1.5万", "1,500万", "15百", "3十", "五5", "10一", "2〇26", "二0二六", "一百2十"],
    *["10000000000000000万", "一亿亿", "一 百", "２０２６", "五万五千万", "1兆"],
]


def folded(text, *names):
    return likewise.Recipe.minhash(fold=names).feature_rules.normalize(text)


@pytest.mark.parametrize("text", READ)
def test_numbers_that_are_read(text):
    assert folded(text, "numerals") == READ[text]
    assert cut.fold(text, ["numerals"]) == READ[text]


@pytest.mark.parametrize("text", LEFT)
def test_what_is_left(text):
    same = folded(text)
    assert folded(text, "numerals") == same
    assert cut.fold(text, ["numerals"]) == same


ALPHABET = "一二三九〇零○两兩十百千万萬亿億廿卅壹贰陆參玖拾佰仟0125.,、 第年个天分钟小时人a１٣́起"
PIECES = [*ALPHABET, "一百", "三千", "五万", "零五", "两亿", "十五", "叁佰", "二十", "10", "100万", "7千", "第六"]
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.lists(st.sampled_from("一二三五九十百千万亿零3"), max_size=9).map("".join),
    st.text(max_size=20),
)
selections = st.sets(st.sampled_from(cut.PLAIN_FOLDS)).map(lambda names: ("numerals", *names))
# The oracle simplifies a few characters only, none of them numerals.
spoken = st.sets(st.sampled_from([name for name in cut.PLAIN_FOLDS if name != "traditional"])).map(
    lambda names: ("numerals", *names)
)


@given(texts, spoken)
def test_the_core_is_the_oracle(text, names):
    text = text.encode("utf-8", "replace").decode()
    assert folded(text, *names) == cut.fold(text, names)


@given(texts, selections)
def test_twice_is_once(text, names):
    once = folded(text, *names)
    assert folded(once, *names) == once


def spelled(number):
    """Return the standard spelling of a number >= 1."""
    if number >= 10**8:
        return joined(number, 10**8, "亿", spelled)
    if number >= 10**4:
        return joined(number, 10**4, "万", spelled)
    for unit, name in ((1000, "千"), (100, "百"), (10, "十")):
        if number >= unit:
            return joined(number, unit, name, spelled)
    return "零一二三四五六七八九"[number]


def joined(number, unit, name, spell):
    high, low = divmod(number, unit)
    if not low:
        return spell(high) + name
    return spell(high) + name + ("零" if low < unit // 10 else "") + spell(low)


@given(st.integers(10, 10**16 - 1) | st.integers(10, 99_999))
def test_numbers_spelled_out(number):
    spelling = spelled(number)
    assert folded(spelling, "numerals") == str(number)
    short = spelling[1:] if spelling.startswith("一十") else spelling
    assert short == "十" or folded(short, "numerals") == str(number)
    money = spelling.translate(str.maketrans("一二三四五六七八九十百千", "壹贰叁肆伍陆柒捌玖拾佰仟"))
    # A lone digit after 万 or 亿 is preceded by a zero, so every digit is next to a unit or a zero.
    assert folded(money, "numerals") == str(number)


FIRST = "大会于二〇二六年十一月二十三日开幕，一千二百名代表、第三小组和两个观察团参加，捐款三万五千元。"
SECOND = "大会于2026年11月23日开幕，1200名代表、第3小组和2个观察团参加，捐款35000元。"


@pytest.mark.parametrize("kind", ["auto", "script", "word", "char", "chinese", "sentence"])
def test_rewritten_numbers_are_equal(kind):
    recipe = likewise.Recipe.minhash(tokens=kind, fold="numerals")
    assert tokens(FIRST, recipe) == tokens(SECOND, recipe)
    assert tokens(FIRST, recipe) != tokens(FIRST, likewise.Recipe.minhash(tokens=kind))
    assert {"参加", "观察团"} <= set(tokens(FIRST, recipe)) or kind != "chinese"


def test_lists_of_words_are_folded_as_the_texts():
    recipe = likewise.Recipe.minhash(tokens="chinese", fold="numerals", dictionary=["三个代表"], stop_words=["两千"])
    assert tokens("学习3个代表", recipe) == tokens("学习三个代表", recipe) == ["学习", "3个代表"]
    matches = [
        likewise.compare("走过 2000 里路", text, recipe).measures.jaccard for text in ("走过 里路", "走过两千里路")
    ]
    assert matches == [1.0, 1.0]
    weights = likewise.Weights.from_terms({"三千": 5, "三": 4}, fold="numerals")
    found = likewise.Recipe.minhash(tokens="auto", shingle=1, weights=weights)
    assert features(["三千里"], found).weights.tolist() == features(["3000里"], found).weights.tolist() == [5, 1]
    # A listed word has no counter after it.
    assert features(["三"], found).weights.tolist() == [4]
    assert features(["三天"], found).weights.tolist() == [1, 1]


def test_digits_come_after_numerals():
    assert folded("三十五人，第七", "digits", "numerals") == "0人,第0"
    assert folded("三、五万", "punctuation", "numerals") == folded("三五万", "numerals") == "三五万"
    assert likewise.Recipe.minhash(fold="digits,numerals").fold == ("numerals", "digits")


def test_command_line_and_exact_texts(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(command.jsonl([FIRST, SECOND, FIRST + "完"]))
    options = ["--method", "exact", "--fold", "numerals", "--quiet"]
    run("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out", *options)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["num_removed"] == 1
    assert likewise.dedup([FIRST, SECOND], likewise.Recipe.exact()).kept.all()


def test_the_oracle_alone():
    """The sum from left to right, without Rust."""
    assert [numerals.value(letters) for letters in ("bW", "aHe", "cWe", "T", "aYb")] == [
        20_000, 150, 35_000, 10, 120_000_000,
    ]  # fmt: skip
