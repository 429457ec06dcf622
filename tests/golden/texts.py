"""Texts of the golden vectors, all written for this project."""

SYLLABLES = ["ka", "lo", "min", "ter", "sa", "vor", "el", "du", "pri", "on", "gast", "re", "bel", "u", "tam"]


def made_up(num_words, seed):
    """Return words of a made-up language from a linear congruential generator, the same on every system."""
    state, words = seed, []
    for _ in range(num_words):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        number = state >> 33
        words.append("".join(SYLLABLES[number // 15**i % 15] for i in range(1 + number % 3)))
    return " ".join(words)


TEXTS = {
    "empty": "",
    "spaces": " \t\r\n\u3000\u2028 ",
    "cat": "cat",
    "two words": "Cat DOG",
    "english": "The quick brown fox didn't jump over the lazy dog's 3.14 fences; "
    "it walked, at 10:30, through snake_case.",
    "punctuation": "... !!! --- ???",
    "one mark": "!",
    "nul": "one\0two three\0\0four",
    "repeated": "to be or not to be or not to be or not to be " * 5,
    "accents": "Ça été déjà vu: naïve façade, STRASSE und Straße, Ångström, ﬁancé, Ⅷ ½ x².",
    "decomposed": "C\u0327a e\u0301te\u0301 de\u0301ja\u0300 vu",
    "turkish": "İstanbul ve IĞDIR, ısı",
    "greek": "Ὀδυσσεὺς καὶ ΣΊΣΥΦΟΣ, ο σοφός",
    "russian": "Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка и ЁЖ!",
    "hebrew": "שָׁלוֹם צה\"ל ג'ירפה של״ום",
    "arabic": "السلام عليكم ١٢٣٫٥",
    "chinese": "我们把相似的文档放在一起，只保留一份。猫和狗。人们〇二三。",
    "chinese width": "ＡＢＣ１２３，全角　空格。",
    "japanese": "カタカナとひらがな、コーヒーを飲んで人々は東京タワーへ行った。ｶﾞｷﾞｸﾞ",
    "katakana marks": "カ\u309aキ ト\u309aーカ\u0301ナ ク_ケ",
    "thai": "ภาษาไทยไม่มีการเว้นวรรคระหว่างคำ น้ำ ๑๒๓",
    "lao": "ພາສາລາວ ສະບາຍດີ",
    "korean": "안녕하세요 세계 여러분 한글",
    "mixed": "Release 2.0 发布了 новая версия, カメラ付き phone v1.2.3 für €99,90",
    "emoji": "family \U0001f468\u200d\U0001f469\u200d\U0001f467 thumbs \U0001f44d\U0001f3fd "
    "flags \U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 heart \u2764\ufe0f",
    "only emoji": "\U0001f600\U0001f601",
    "soft hyphen": "co\u00adoperate zero\u200bwidth \ufeffmark",
    "lone surrogate": "before \ud800 after \udfffend",
    "quotes": "it's 'quoted' ‘curly’ don’t \"double\" l’eau d'un",
    "numbers": "1,234.56 10.000,5 3:4 a1b2 1_000 ٣٫١٤ x.y.z 1.a",
    "underscores": "_a_ __b __ c_ カ_キ",
    "long token": "x" * 300 + " " + "yz" * 65 + " " + "é" * 121,
    "lengths": " ".join("abcdefghijklmnopqrstuvwxyz0123456789"[:n] for n in range(1, 37)),
    "many words": made_up(700, 7),
    "very many words": made_up(2600, 11),
    "heavy": "weight " * 300 + made_up(20, 3),
}
