"""Options that say what is done to texts before they are cut, and how bytes are cut."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from likewise.recipe.word_lists import WordList

TEXT_OPTIONS = {
    "markup": click.option(
        "--markup", type=click.Choice(["html"]), help="Texts are HTML: only what a reader sees counts."
    ),
    "fold": click.option(
        "--fold",
        metavar="LIST",
        help="What else does not count, with commas: traditional (Chinese characters are simplified), width, accents, "
        "punctuation, digits (a number is 0).",
    ),
    "stop_words": click.option(
        "--stop-words",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Words that do not count, one a line; of tokens auto, word, chinese.",
    ),
    "dictionary": click.option(
        "--dictionary",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="More words of tokens chinese: lines of word [count].",
    ),
    "chunking": click.option(
        "--chunking",
        type=click.Choice(["content", "fixed"]),
        help="Tokens chunks: cut where the content says, or at a fixed size.  [default: content]",
    ),
    "chunk_bytes": click.option(
        "--chunk-bytes",
        type=int,
        metavar="N",
        help="Tokens chunks: their usual size, or the fixed one.  [default: 1024]",
    ),
}


def take_word_lists(given: dict[str, Any]) -> "dict[str, WordList]":
    """Return the lists that options of a recipe name, which are taken out of `given`.

    Raises
    ------
    InvalidInput
        If a file is no list of words.
    """
    named = {name: given.pop(name) for name in ("stop_words", "dictionary") if name in given}
    if not named:
        return {}
    from likewise.recipe.word_lists import WordList

    readers = {"stop_words": WordList.read_stop_words, "dictionary": WordList.read_dictionary}
    return {name: readers[name](path) for name, path in named.items()}
