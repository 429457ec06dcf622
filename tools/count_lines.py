"""Count the shipped lines by package: Rust without its tests, Python, Lua, and the pages.

``python tools/count_lines.py`` prints lines, and code lines (without blank lines, comments and docstrings);
``--write`` lowers the limits of tests/structure/lines.csv to the lines of today. A limit is raised only with the lines
that were bought, and what for.
"""

import argparse
import ast
import collections
import csv
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMITS = ROOT / "tests" / "structure" / "lines.csv"
_RUST_TESTS = re.compile(r"(^|/)(tests|testing|\w+_tests)\.rs$")


def python_code(source: str) -> int:
    """Return the number of lines of Python code."""
    lines = source.splitlines()
    left = {number for number, line in enumerate(lines, 1) if line.strip()}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].strip().startswith("#"):
            left.discard(token.start[0])
    for node in ast.walk(ast.parse(source)):
        is_documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if is_documented and ast.get_docstring(node, clean=False) is not None:
            left -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(left)


def without_tests(source: str) -> list[str]:
    """Return the lines of a Rust file without its test modules."""
    lines, left = source.splitlines(), []
    at = 0
    while at < len(lines):
        if lines[at].strip().startswith(("#[cfg(test)]", "#[cfg(all(test,")):
            end = at + 1
            while "{" not in lines[end] and ";" not in lines[end]:
                end += 1
            depth = 0
            while "{" in lines[end] or depth:
                depth += lines[end].count("{") - lines[end].count("}")
                if depth <= 0:
                    break
                end += 1
            at = end + 1
            continue
        left.append(lines[at])
        at += 1
    return left


def package_of(path: Path) -> str:
    """Return the package of a file: a crate, or an entry of the Python package (its loose modules are one)."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "crates":
        return "/".join(parts[:2])
    return f"likewise/{parts[2]}" if len(parts) > 3 else "likewise"


def counted() -> dict[str, tuple[int, int]]:
    """Return lines and code lines of each package."""
    lines: collections.Counter[str] = collections.Counter()
    code: collections.Counter[str] = collections.Counter()
    for path in sorted([*(ROOT / "crates").glob("*/src/**/*"), *(ROOT / "python" / "likewise").rglob("*")]):
        if not path.is_file() or "__pycache__" in path.parts or _RUST_TESTS.search(path.as_posix()):
            continue
        if path.suffix == ".rs":
            kept = without_tests(path.read_text(encoding="utf-8"))
            num_lines, num_code = (
                len(kept),
                sum(bool(line.strip()) and not line.strip().startswith("//") for line in kept),
            )
        elif path.suffix == ".py":
            source = path.read_text(encoding="utf-8")
            num_lines, num_code = len(source.splitlines()), python_code(source)
        elif path.suffix in {".lua", ".html", ".css", ".js"}:
            num_lines = num_code = len(path.read_text(encoding="utf-8").splitlines())
        else:
            continue
        lines[package_of(path)] += num_lines
        code[package_of(path)] += num_code
    return {package: (lines[package], code[package]) for package in sorted(lines)}


def limits() -> list[dict[str, str]]:
    """Return the limit of lines of each package, how many of them were bought since the first limits, and what for."""
    with LIMITS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def lower(lines: dict[str, int]) -> None:
    """Lower the limits to so many lines."""
    rows = [row | {"lines": str(min(lines[row["package"]], int(row["lines"])))} for row in limits()]
    with LIMITS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Print the table, or lower the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="lower the limits to the lines of today")
    found = counted()
    if parser.parse_args().write:
        lower({package: lines for package, (lines, _) in found.items()})
    for package, (lines, code) in found.items():
        print(f"{lines:7} {code:7}  {package}")
    print(f"{sum(a for a, _ in found.values()):7} {sum(b for _, b in found.values()):7}  all")


if __name__ == "__main__":
    main()
