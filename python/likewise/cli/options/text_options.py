"""Options for the processing of texts before tokenization, and for the chunking of bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from likewise.recipe.word_lists import WordList


def facts(**given: Any) -> dict[str, Any]:
    """Return the arguments of an option for click."""
    return given


def named_options(options: dict[str, dict[str, Any]]) -> dict[str, Callable[[Any], Any]]:
    """Return options by the names of the fields that they set."""
    return {name: click.option("--" + name.replace("_", "-"), **about) for name, about in options.items()}


_OPTIONS = {
    "markup": facts(type=click.Choice(["html"]), help="Texts are HTML; compare only the visible text."),
    "fold": facts(
        metavar="LIST",
        help="Differences to ignore, comma-separated: points (Hebrew points, Arabic vowel signs and variants of "
        "letters), confusables (letters that look alike), traditional (simplify Chinese characters), width, accents, "
        "punctuation, numerals (write Chinese numbers in digits), digits (replace each number by 0).",
    ),
    "identifiers": facts(
        type=click.Choice(["numbers"]),
        help="numbers: numbers, model numbers, sizes and colors identify what a text names. Two texts do not match if "
        "each has one that the other lacks.",
    ),
    "stop_words": facts(
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Words to ignore, one per line (with --tokens auto, word or chinese).",
    ),
    "dictionary": facts(
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Additional words for --tokens chinese, one per line: word [count].",
    ),
    "only_within": facts(
        metavar="FIELD",
        help="Compare only documents with the same value in FIELD, such as a site or a language.",
    ),
    "chunking": facts(
        type=click.Choice(["content", "fixed"]),
        help="--tokens chunks: content-defined or fixed-size chunks.  [default: content]",
    ),
    "chunk_bytes": facts(type=int, metavar="N", help="--tokens chunks: average or fixed chunk size.  [default: 1024]"),
}
TEXT_OPTIONS = named_options(_OPTIONS)


def take_word_lists(given: dict[str, Any]) -> "dict[str, WordList]":
    """Read the word lists that recipe options name, and remove these from `given`."""
    named = {name: given.pop(name) for name in ("stop_words", "dictionary") if name in given}
    if not named:
        return {}
    from likewise.recipe.word_lists import WordList

    readers = {"stop_words": WordList.read_stop_words, "dictionary": WordList.read_dictionary}
    return {name: readers[name](path) for name, path in named.items()}
