"""Circles of modules in the Rust crates: which files use each other, by their `use` lines and paths.

Fails where two modules of a crate need each other. A module is a file; ``mod`` lines are no use. Tests are left out.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

CRATES = Path(__file__).parent.parent / "crates"
_PATH = re.compile(r"\b(crate|super|self)((?:::(?:[a-z_0-9]+|super))*)(?:::(\{|\w+))?")


def modules_of(crate):
    """Return the modules of a crate: path of names -> file."""
    source = crate / "src"
    modules = {}
    for file in sorted(source.rglob("*.rs")):
        parts = list(file.relative_to(source).with_suffix("").parts)
        if parts[-1] in {"mod", "lib", "main"}:
            parts.pop()
        modules[tuple(parts)] = file
    return modules


def without_tests(text):
    """Return code without comments and without ``#[cfg(test)]`` modules at the end of a file."""
    text = re.sub(r"//[^\n]*", "", text)
    at = re.search(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)
    return text[: at.start()] if at else text


def names_used(text):
    """Yield every path that begins with crate, super or self, with groups in braces spelled out."""
    for found in re.finditer(r"\b(?:crate|super|self)::", text):
        yield from spelled_out(text, found.start())


def spelled_out(text, start):
    """Yield the paths that begin at `start`."""
    end = start
    while end < len(text) and (text[end].isalnum() or text[end] in "_:"):
        end += 1
    head = text[start:end]
    if end < len(text) and text[end] == "{" and head.endswith("::"):
        depth, item = 0, ""
        for place in range(end, len(text)):
            letter = text[place]
            if letter == "{":
                depth += 1
                if depth == 1:
                    continue
            if letter == "}":
                depth -= 1
            if (letter == "," and depth == 1) or depth == 0:
                item = item.strip()
                if item:
                    yield from spelled_out(head + item, 0)
                item = ""
                if depth == 0:
                    return
                continue
            item += letter
    else:
        yield head.rstrip(":")


def home_of(path, here, modules):
    """Return the deepest module that a path names; None outside the crate."""
    parts = path.split("::")
    at = list(here)
    if parts[0] == "crate":
        at, parts = [], parts[1:]
    else:
        while parts and parts[0] in {"super", "self"}:
            if parts.pop(0) == "super":
                at = at[:-1]
    for part in parts:
        if (*at, part) not in modules:
            break
        at.append(part)
    return tuple(at)


def is_test(module):
    return bool(module) and (module[-1] == "tests" or module[-1].endswith("_tests"))


def uses_of(crate):
    """Return which modules each module uses."""
    modules = modules_of(crate)
    uses = defaultdict(set)
    for module, file in modules.items():
        if is_test(module):
            continue
        for path in names_used(without_tests(file.read_text(encoding="utf-8"))):
            home = home_of(path, module, modules)
            # What a folder gives on from its own files is no use of them by it.
            if home != module and home[: len(module)] != module:
                uses[module].add(home)
        uses[module] |= set()
    return uses


def circles(uses):
    """Return the sets of modules that need each other (Tarjan)."""
    index, low, stack, held, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        held.add(node)
        for other in uses.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in held:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = []
            while not circle or circle[-1] != node:
                circle.append(stack.pop())
                held.discard(circle[-1])
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in list(uses):
        if node not in index:
            visit(node)
    return found


def main():
    sys.setrecursionlimit(10_000)
    bad = 0
    for crate in sorted(path.parent for path in CRATES.glob("*/Cargo.toml")):
        for circle in circles(uses_of(crate)):
            bad += 1
            print(f"{crate.name}: " + ", ".join("::".join(module) or "lib" for module in circle))
    sys.exit(f"{bad} circles of modules" if bad else 0)


if __name__ == "__main__":
    main()
