"""Code reuse: which functions of this Python's standard library were copied: `python examples/code_reuse.py`.

Cuts some modules into their functions, brings every function into a plain form (names of variables and texts taken
away, the shape kept), and lists pairs of functions that share most of their shape. Renaming a variable hides nothing;
moving a whole block elsewhere hides little.
"""

import ast
import io
import keyword
import sysconfig
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path

import likewise

MODULES = [
    "bisect",
    "heapq",
    "posixpath",
    "ntpath",
    "genericpath",
    "shlex",
    "textwrap",
    "string",
    "fnmatch",
    "copy",
    "queue",
    "sched",
    "reprlib",
    "statistics",
    "fractions",
    "imaplib",
    "poplib",
    "smtplib",
]
LEAST_TOKENS = 60


def functions(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, source) of each function and method of a module."""
    source = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(source), source.split("\n")
    # Functions inside functions belong to these.
    for node in [*tree.body, *(part for known in tree.body if isinstance(known, ast.ClassDef) for part in known.body)]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (
                f"{path.stem}.{node.name}:{node.lineno}",
                textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno])),
            )


def shape(source: str) -> str:
    """Return code without comments, with `v` for names that are no attributes, `s` for texts, `n` for numbers."""
    words: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source + "\n").readline):
        if token.type == tokenize.NAME:
            is_kept = keyword.iskeyword(token.string) or words[-1:] == ["."]
            words.append(token.string if is_kept else "v")
        elif token.type == tokenize.STRING:
            words.append("s")
        elif token.type == tokenize.NUMBER:
            words.append("n")
        elif token.type == tokenize.OP:
            words.append(token.string)
    return " ".join(words)


def as_text(shape_of: str) -> str:
    """Return operators as words too, so that they count as tokens."""
    words = (word if word.isidentifier() else "op" + "_".join(str(ord(c)) for c in word) for word in shape_of.split())
    return " ".join(words)


def main() -> None:
    """List the pairs of functions that share most, and show the nearest that is no copy."""
    library = Path(sysconfig.get_path("stdlib"))
    found = [pair for name in MODULES if (path := library / f"{name}.py").is_file() for pair in functions(path)]
    shapes = {name: text for name, source in found if len((text := shape(source)).split()) >= LEAST_TOKENS}
    names = list(shapes)
    recipe = likewise.Recipe.shingles(0.6, shingle=4, measure="overlap", weights="idf")
    pairs = likewise.pairs([as_text(shapes[name]) for name in names], recipe).to_pylist()
    print(
        f"{len(names):,} functions of {LEAST_TOKENS} tokens and more; {len(pairs)} pairs share 60% of the smaller one:"
    )
    for row in sorted(pairs, key=lambda row: -row["similarity"])[:15]:
        print(f"  {row['similarity']:.2f}  {names[row['row_a']]}  {names[row['row_b']]}")


if __name__ == "__main__":
    main()
