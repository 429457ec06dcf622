"""The oracle against published facts and other implementations, so that the vectors have more than one source."""

import random
import unicodedata

import pytest

from tests.oracle import candidates, decide, measures, sketches
from tests.oracle.features import Rules, digest, expansion, features, log_count_weight, mix
from tests.oracle.normalize import is_assigned, is_ignorable, nfkc_casefold, normalize
from tests.oracle.segment import OutsideOracle, holds_word, tokens, word_class
from tests.oracle.xxh3 import xxh3

# From the published test programs of the hash, including empty input.
KNOWN_HASHES = ((b"", 0, 0x2D06800538D394C2), (b"a", 0, 0xE6C632B61E964E1F), (b"abc", 0, 0x78AF5F94892F3950))


@pytest.mark.parametrize(("data", "seed", "expected"), KNOWN_HASHES, ids=repr)
def test_xxh3_known(data, seed, expected):
    assert xxh3(data, seed) == expected


def test_xxh3_against_the_reference_library():
    xxhash = pytest.importorskip("xxhash")
    rng = random.Random(1)
    for length in [*range(600), 1023, 1024, 1025, 1088, 1089, 2048, 2049, 5000]:
        data = rng.randbytes(length)
        for seed in (0, 1, rng.getrandbits(64), 2**64 - 1):
            assert xxh3(data, seed) == xxhash.xxh3_64_intdigest(data, seed), (length, seed)


@pytest.mark.slow
def test_word_classes_against_a_regular_expression_library():
    regex = pytest.importorskip("regex")
    names = (
        "Extend ZWJ Format Katakana Hebrew_Letter ALetter Single_Quote Double_Quote MidNumLet MidLetter MidNum Numeric"
    )
    patterns = {
        name: regex.compile(rf"\p{{WB={name}}}")
        for name in [*names.split(), "ExtendNumLet", "WSegSpace", "Regional_Indicator"]
    }
    word = regex.compile(r"[\p{Alphabetic}\p{Nd}\p{Nl}\p{No}]")
    num_seen = 0
    for point in [*range(0xD800), *range(0xE000, 0x30000)]:
        c = chr(point)
        try:
            mine = word_class(c)
        except OutsideOracle:
            continue
        if c != " " and normalize(f"a{c}a") != f"a{c}a":
            continue  # cannot be in normalized text
        num_seen += 1
        assert [name for name, pattern in patterns.items() if pattern.match(c)] == ([] if mine == "Other" else [mine])
        assert bool(word.match(c)) == holds_word(c), hex(point)
    assert num_seen > 80_000


@pytest.mark.slow
def test_ignorables_against_a_regular_expression_library():
    regex = pytest.importorskip("regex")
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    for point in [*range(0xD800), *range(0xE000, 0x110000)]:
        # Tatweel (U+0640) lengthens a letter, and is ignored too.
        expected = bool(ignorable.match(chr(point))) or point == 0x640
        assert is_ignorable(chr(point)) == expected, hex(point)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("can't", ["can't"]),
        ("3.2 3,5 a.b a,b", ["3.2", "3,5", "a.b", "a", "b"]),
        ("a:b 1:2", ["a:b", "1", "2"]),
        ("ab_c__d e_", ["ab_c__d", "e_"]),
        ("日本語 テスト", ["日", "本", "語", "テスト"]),
        ("x' 'y", ["x", "y"]),
        ("---", []),
    ],
    ids=repr,
)
def test_words(text, expected):
    assert tokens(text, "word") == expected


def test_folding_and_white_space():
    assert normalize("  Straße\u3000ＡＢＣ\u00ad ﬁ \n") == "strasse abc fi"
    assert normalize("\u1e9e") == normalize("ẞ") == "ss"
    assert normalize("I\u0307") == "i\u0307"
    assert normalize("\ud800") == "\ufffd"


def test_folding_is_stable():
    for point in [*range(0xD800), *range(0xE000, 0x20000)]:
        c = chr(point)
        if is_assigned(c):
            once = unicodedata.normalize("NFC", nfkc_casefold(c))
            assert unicodedata.normalize("NFC", "".join(map(nfkc_casefold, once))) == once, hex(point)


def test_weights_as_the_page_lists_them():
    assert [log_count_weight(c) for c in range(1, 16)] == [2, 3, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8]
    assert log_count_weight(10**6) == 15


def test_expansion_makes_weighted_jaccard_plain():
    a, b = {1: 3, 2: 1, 9: 4}, {1: 2, 2: 5, 7: 1}
    plain = set(expansion(a)), set(expansion(b))
    assert measures.exact(a, b, "jaccard") * len(plain[0] | plain[1]) == len(plain[0] & plain[1])


def test_short_texts():
    rules = Rules("word", 5)
    (one,) = features("Cat", rules).weights
    assert one == mix(xxh3(b"cat"))
    assert features("cat", rules).shape == 1
    assert features("!", rules).shape == 1
    assert features(" ", rules) == ({}, 2)
    assert digest({}) == (0, 0)


def test_bucket_signature_is_full_and_unbiased_enough():
    rng = random.Random(3)
    total = 0
    for _ in range(30):
        shared = [rng.getrandbits(64) for _ in range(60)]
        a, b = ({f: 1 for f in [*shared, *(rng.getrandbits(64) for _ in range(20))]} for _ in range(2))
        total += candidates.num_equal(sketches.minhash(a, 64, 32), sketches.minhash(b, 64, 32))
    assert abs(total / (30 * 64) - 0.6) < 0.05


def test_bucket_levels():
    model = candidates.BandModel(bands=1, rows=1, slot_bits=16, members=2)
    seen = [model.arrive(i, [5, i // 4, i]) for i in range(8)]
    # All meet 0 and 1; level 1 separates 2 and 3 from 4 and later; level 2 separates each.
    assert seen == [set(), {0}, {0, 1}, {0, 1, 2}, {0, 1}, {0, 1, 4}, {0, 1, 4, 5}, {0, 1, 4, 5}]
    assert model.num_capped == 0
    same = candidates.BandModel(bands=1, rows=1, slot_bits=16, members=2)
    assert [len(same.arrive(i, [7, 7, 7])) for i in range(9)] == [0, 1, 2, 3, 4, 5, 6, 6, 6]
    assert same.num_capped == 3


@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_no_chains(method):
    texts = ["a b c d e f g h", "a b c d e f g x", "a b c d e f y x"]
    recipe = decide.Recipe(method=method, rules=Rules("word", 1), threshold=0.75, measure="jaccard", within=64)
    verdicts = decide.dedup(texts, recipe)
    assert [v.kept for v in verdicts] == [True, False, True]
