"""Hypothesis strategies: texts in all scripts of the oracle, weighted features, corpora of near-duplicates."""

from hypothesis import strategies as st

from tests.oracle.segment import RANGES, SINGLE

# A few characters of every range, so that large scripts do not dominate, and characters that normalization changes.
_SAMPLE = sorted(
    {chr(first + (last - first) * i // 7) for first, last, _ in RANGES for i in range(8)}
    | set(SINGLE)
    | set("ABCXYZÀÉÑŒΑΣΩБЖЯﬁⅧ½²ＡＺ１！ｶﾞﾊﾟ㍿Åẞİ")
    | {"\u200b", "\u200d", "\ufe0f", "\u00ad", "\ufeff", "\u3164", "\ud800", "\0", "\x1f"}
    | set(" \t\n\r\x0b\x0c\x85\xa0\u2003\u2028\u2029\u3000")
)
# Characters with interacting rules, in higher proportion.
_TRICKY = list("ab1 '\".,:;_-éק״カキーひ漢가ก\u0e31\u0301\u3099\u30a0ａ")

characters = st.one_of(st.sampled_from(_TRICKY), st.sampled_from(_SAMPLE))


def _known(text):
    """Keep texts whose characters the oracle knows after normalization, which composes and folds."""
    from tests.oracle.normalize import normalize
    from tests.oracle.segment import OutsideOracle, word_class

    try:
        for c in normalize(text):
            word_class(c)
    except OutsideOracle:
        return False
    return True


texts = st.text(characters, max_size=60).filter(_known)
words = st.sampled_from(["cat", "dog", "house", "Tree", "1", "2.5", "it's", "猫", "狗", "カタ", "кот"])
word_texts = st.lists(words, max_size=40).map(" ".join)

features = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63, 2**64 - 1])
weights = st.integers(1, 15) | st.sampled_from([1, 1, 1, 255, 256, 4000])
weighted_sets = st.dictionaries(features, weights, max_size=60)
seeds = st.sampled_from([0, 1, 42, 2**64 - 1])


@st.composite
def corpora(draw, max_size=24):
    """Draw texts of ten to fourteen words over a small vocabulary, many of them edits of one another, some empty."""
    greek = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma"
    vocabulary = greek.split()
    base = draw(st.lists(st.lists(st.sampled_from(vocabulary), min_size=4, max_size=14), min_size=1, max_size=5))
    made = []
    for _ in range(draw(st.integers(1, max_size))):
        text = list(draw(st.sampled_from(base)))
        for _ in range(draw(st.integers(0, 3))):
            at = draw(st.integers(0, max(0, len(text) - 1)))
            kind = draw(st.sampled_from(["put", "cut", "add"]))
            word = draw(st.sampled_from(vocabulary))
            if kind == "add":
                text.insert(at, word)
            elif text:
                text[at : at + 1] = [word] if kind == "put" else []
        made.append(" ".join(text))
    return made
