"""Find phrases that do not belong in documentation, help texts, messages, and comments of the sources.

    check_words.py [ROOT]

Prints `file:line: phrase (write: ...)` for each and exits with status 1 if there are any. It lists only phrases that
have no legitimate use here, so that a finding needs no judgment. It ignores code blocks, inline code, links,
docstrings of Python, and the pages in Chinese.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

#: Pattern, in lower case -> what to write.
PHRASES = {
    r"held against": "compared with",
    r"refused by name": "rejected with an error that names ...",
    r"anew": "again",
    r"told apart": "distinguished",
    r"tell apart": "distinguish",
    r"beside": "with, next to",
    r"whoever": "users who",
    r"put aside": "saved, spooled",
    r"taken out": "removed",
    r"takes out": "removes",
    r"seen its like": "contains a near-duplicate",
    r"in threes|in fives|threes of|fives of": "3-grams, 5-grams",
    r"nothing need": "no ... is needed",
    r"do(?:es)? not act": "does not apply",
    r"acts? only with|acts? with": "requires",
    r"amiss": "wrong",
    r"say nothing but": "print only",
    r"pile of": "collection of",
    r"is no (?:json|parquet|csv|array|number|directory|file|text|index|run|list|table|document)": "is not a ...",
    r"must stand": "must be",
    r"stands? (?:beside|behind|before)": "is next to, follows, precedes",
    r"neighbour\w*": "neighbor",
    r"licence\w*": "license",
    r"(?:un)?labell(?:ed|ing)": "labeled, labeling",
    r"colour\w*": "color",
    r"behaviour\w*": "behavior",
    r"catalogue\w*": "catalog",
    r"centre\w*": "center",
    r"(?:un)?(?:normal|token|general|recogn|organ|initial|optim|summar|serial)is(?:e|ed|es|ing|ation|er|ers)": "-ize",
    r"grey": "gray",
}
PATTERN = re.compile(r"\b(?:" + "|".join(f"({phrase})" for phrase in PHRASES) + r")\b", re.IGNORECASE)
# Text that is not prose.
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)\s]*\)|<!--.*?-->|^ {4,}.*?$|https?://\S+", re.S | re.M)

_PYTHON_COMMENT = re.compile(r"\s*#:? (.*)")
_RUST_COMMENT = re.compile(r"\s*//[/!]? (.*)")


def findings(root: Path) -> Iterator[str]:
    """Yield a line for each phrase found in the tracked files in `root`."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        path = root / name
        if not path.is_file() or name.startswith("docs/zh/") or name.endswith(".zh-CN.md"):
            continue
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8")
            yield from _in_text(name, _CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text), 1)
        elif path.suffix == ".py" and name.startswith("python/"):
            source = path.read_text(encoding="utf-8")
            for line, text in [*strings(source), *_comments(source, _PYTHON_COMMENT)]:
                yield from _in_text(name, text, line)
        elif path.suffix == ".rs":
            for line, text in _comments(path.read_text(encoding="utf-8"), _RUST_COMMENT):
                yield from _in_text(name, text, line)


def _in_text(name: str, text: str, first_line: int) -> Iterator[str]:
    for found in PATTERN.finditer(text):
        instead = list(PHRASES.values())[(found.lastindex or 1) - 1]
        line = first_line + text[: found.start()].count("\n")
        yield f"{name}:{line}: {found[0]!r} (write: {instead})"


def _comments(source: str, form: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comment that has a line of its own."""
    for line, text in enumerate(source.splitlines(), 1):
        if found := form.match(text):
            yield line, _CODE.sub("", found[1])


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and value of each string that contains a space and is not a docstring."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        # A single word may be a name.
        if is_text and " " in node.value.strip():
            yield node.lineno, node.value


def main() -> int:
    """Print the findings; return the exit status."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = list(findings(root))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
