"""Real cutters in front of Likewise: what folding before the cut changes, and that a recipe names what cut."""

import unicodedata

import pytest

import likewise
from likewise.errors import LikewiseError

FERRY = "渡船改为每二十分钟一班，带自行车的乘客请在二号闸口排队。"


def nfkc(text):
    return unicodedata.normalize("NFKC", text)


def test_thai_sara_am_is_split_by_folding():
    """U+0E33 becomes two characters, so words with it are not in the dictionary any more: fold after the cut."""
    tokenize = pytest.importorskip("pythainlp.tokenize").word_tokenize
    text = "น้ำมันราคาทำงาน"
    assert len(nfkc(text)) == len(text) + 2
    folded_after = [nfkc(token) for token in tokenize(text, engine="newmm")]
    folded_before = tokenize(nfkc(text), engine="newmm")
    assert "".join(folded_after) == "".join(folded_before)
    assert folded_after != folded_before


def test_japanese_in_decomposed_form_is_cut_otherwise():
    cutter = pytest.importorskip("janome.tokenizer").Tokenizer(wakati=True)
    text = "ガラスのグラスでビールを飲む"
    composed = list(cutter.tokenize(text))
    decomposed = list(cutter.tokenize(unicodedata.normalize("NFD", text)))
    assert [nfkc(token) for token in decomposed] != composed
    assert list(cutter.tokenize(unicodedata.normalize("NFC", unicodedata.normalize("NFD", text)))) == composed


def test_jieba_cuts_full_width_digits_one_by_one():
    """Fold the width before the cut, unlike in Thai."""
    jieba = pytest.importorskip("jieba")
    assert jieba.lcut("手机壳５００毫升")[2:] == ["５", "０", "０", "毫升"]
    assert jieba.lcut(nfkc("手机壳５００毫升"))[2:] == ["500", "毫升"]


def test_a_word_deleted_from_jieba_is_deleted_for_the_whole_process():
    jieba = pytest.importorskip("jieba")
    before = jieba.lcut(FERRY)
    jieba.del_word("自行车")
    try:
        assert jieba.lcut(FERRY) != before
    finally:
        jieba.add_word("自行车", 3000)
    own = jieba.Tokenizer()
    own.del_word("自行车")
    assert own.lcut(FERRY) != before
    assert jieba.lcut(FERRY) == before


def test_an_index_names_the_cutter_and_rejects_another(tmp_path):
    jieba = pytest.importorskip("jieba")
    rjieba = pytest.importorskip("rjieba")
    text = "2026-11-28，渡船改为每二十分钟一班"
    assert jieba.lcut(text) != rjieba.cut(text)
    recipe = likewise.Recipe.minhash(tokens="user", tokenizer=f"jieba {jieba.__version__}", threshold=0.5)
    with likewise.Index(tmp_path / "seen.lw", recipe) as seen:
        seen.check_and_add("a", jieba.lcut(text))
    other = likewise.Recipe.minhash(tokens="user", tokenizer="rjieba 0.2.2", threshold=0.5)
    with pytest.raises(LikewiseError, match="tokenizer"):
        likewise.Index(tmp_path / "seen.lw", other)
