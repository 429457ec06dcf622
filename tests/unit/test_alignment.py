"""Differences between two texts: what the recipe ignores is not marked, and every character is shown."""

import random

import pytest

import likewise
from likewise import Recipe
from likewise.measures.comparison import align
from likewise.stages.features import tokens
from tests.command import likewise_command
from tests.golden.texts import made_up


def marked(a, b, recipe):
    return [(part.a, part.b) for part in align(a, b, recipe) if not part.is_same]


CASES = [
    ("one fine day", "one rainy day", {}, [("fine", "rainy")]),
    ("one day", "one fine day", {}, [("", "fine ")]),
    ("one.", "one fine.", {}, [("", " fine")]),
    ("One Fine DAY, sir!", "one  fine day sir", {}, []),
    ("don't go", "don t go", {}, [("don't", "don t")]),
    ("Straße", "STRASSE", {}, []),
    ("cafe\u0301 noir", "café noir", {}, []),
    ("Café 12", "cafe 99", {"fold": "accents,digits"}, []),
    ("Café 12", "cafe 12", {}, [("Café", "cafe")]),
    ("The end of it", "end of it", {"stop_words": ["the"]}, []),
    ("<b>Hi</b> you", "Hi <i>you</i>", {"markup": "html"}, []),
    ("我喜欢北京", "我很喜欢南京", {}, [("", "很"), ("北", "南")]),
    ("One, two", "one two", {"tokens": "char"}, [(",", "")]),
    ("One  two", "one two", {"tokens": "char"}, []),
    ("...", "!!!", {}, [("...", "!!!")]),
    ("One. Two.", "One. Two. More here.", {}, [("", " More here.")]),
    ("", "new", {}, [("", "new")]),
    ("", "", {}, []),
]


@pytest.mark.parametrize(("a", "b", "options", "expected"), CASES)
def test_only_what_the_recipe_counts_is_marked(a, b, options, expected):
    assert marked(a, b, Recipe.minhash(**options)) == expected
    assert marked(b, a, Recipe.minhash(**options)) == [(right, left) for left, right in expected]


def test_methods_that_compare_punctuation_mark_it():
    assert marked("One, two", "one two", Recipe.exact()) == [(",", "")]
    assert marked("One, two", "one two", Recipe.exact(fold="punctuation")) == []


def test_an_upper_case_copy_has_no_marks(tmp_path):
    text = made_up(22, 1)
    found = likewise.compare(text, text.upper())
    assert found.measures.jaccard == 1.0
    assert all(part.is_same for part in found.alignment)
    assert found.to_dict()["differences"] == []
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.txt").write_text(text.upper())
    ran = likewise_command("compare", tmp_path / "a.txt", tmp_path / "b.txt")
    assert ran.out.decode().splitlines()[-1] == "only differences that the recipe ignores"
    ran = likewise_command("compare", tmp_path / "a.txt", tmp_path / "a.txt")
    assert ran.out.decode().splitlines()[-1] == "no differences"


@pytest.mark.parametrize("kind", ["auto", "word", "char"])
def test_texts_are_marked_exactly_if_their_tokens_differ(kind):
    draw, recipe = random.Random(7), Recipe.minhash(tokens=kind)
    pieces = ["one ", "ONE ", "two, ", "two ", "don't", "'", " ", "\n", "五", "é", "e\u0301 ", "3.5 ", "3,5 ", "_a "]
    for _ in range(400):
        a = "".join(draw.choices(pieces, k=draw.randrange(9)))
        b = "".join(draw.choice(pieces) if draw.random() < 0.1 else one.swapcase() for one in a.split(" "))
        b = draw.choice([b, a.swapcase(), a.replace(" ", "  ")])
        found = align(a, b, recipe)
        assert "".join(part.a for part in found) == a
        assert "".join(part.b for part in found) == b
        if tokens(a, recipe) and tokens(b, recipe):
            assert (tokens(a, recipe) == tokens(b, recipe)) == all(part.is_same for part in found), (a, b)
