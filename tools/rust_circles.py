"""Find circular dependencies of modules in the Rust crates.

A module is a file. The modules in a folder must have an order: a module comes after the siblings that it uses, itself
or through modules inside it. Using a name that a folder re-exports (`pub use`) counts as using the module it
comes from. Comments and tests are ignored, and so are uses between the file of a folder (`mod.rs`, `lib.rs`) and its
own modules.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

#: Names from the root of a crate.
Module = tuple[str, ...]

CRATES = Path(__file__).parent.parent / "crates"


def modules_of(crate: Path) -> dict[Module, Path]:
    """Return the modules of a crate, as names from the root, and their files."""
    source = crate / "src"
    modules: dict[Module, Path] = {}
    for file in sorted(source.rglob("*.rs")):
        parts = list(file.relative_to(source).with_suffix("").parts)
        if parts[-1] in {"mod", "lib", "main"}:
            parts.pop()
        modules[tuple(parts)] = file
    return modules


def is_test(module: Module) -> bool:
    """Return whether a module belongs to tests."""
    return any(part in {"tests", "testing"} or part.endswith("_tests") for part in module)


def closing(text: str, start: int) -> int:
    """Return the position after the brace that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def code_of(text: str) -> str:
    """Return source text without comments, strings, visibilities and tests."""
    text = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', lambda found: '""' if found[0][0] == '"' else "", text)
    text = re.sub(r"\bpub\(in [\w:]+\)", "pub", text)
    while found := re.search(r"#\[cfg\((?:test\b|any\(test\b)[^\]]*\]\s*(?:pub )?mod \w+ (?=\{)", text):
        text = text[: found.start()] + text[closing(text, found.end()) :]
    return re.sub(r"#\[cfg\(test\)\]\s*(?:use|mod) [^;]*;", "", text)


def without_inline_modules(text: str) -> str:
    """Return code in which `super` has one meaning, also in modules inside the file."""
    at = 0
    while found := re.compile(r"\bmod \w+ (?=\{)").search(text, at):
        end = closing(text, found.end())
        inside = re.sub(r"\bself::", "", text[found.end() : end])
        inside = re.sub(r"\bsuper::(super\b)?", lambda one: one[1] or "self::", inside)
        text = text[: found.start()] + inside + text[end:]
        at = found.start()
    return text


def spelled_out(tree: str) -> Iterator[tuple[str, str]]:
    """Yield the (name, path) pairs of the tree after `use`."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, alias = tree.partition(" as ")
        path = path.strip().removesuffix("::self")
        yield (alias.strip() or path.rpartition("::")[2], path)
        return
    depth, item = 0, ""
    for letter in tree[brace + 1 : closing(tree, brace) - 1] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if item.strip():
                yield from spelled_out(tree[:brace] + item.strip())
            item = ""
        else:
            item += letter


class Crate:
    """The modules of a crate, and which of them use which."""

    def __init__(self, crate: Path) -> None:
        self.modules = modules_of(crate)
        self.given_on: dict[Module, dict[str, str]] = {}
        self.used: dict[Module, set[str]] = {}
        for module, file in self.modules.items():
            code = without_inline_modules(code_of(file.read_text(encoding="utf-8")))
            given_on: dict[str, str] = {}
            used: set[str] = set()
            for found in re.finditer(r"(pub(?:\([^)]*\))? )?\buse ([^;]+);", code):
                pairs = list(spelled_out(found[2]))
                if found[1]:
                    given_on.update(pairs)
                else:
                    used.update(path for _, path in pairs)
            rest = re.sub(r"\buse [^;]+;", "", code)
            used.update(found[0] for found in re.finditer(r"\b(?:crate|super|self)(?:::\w+)+", rest))
            self.given_on[module] = given_on
            self.used[module] = used

    def home(self, path: str, here: Module, depth: int = 0) -> Module | None:
        """Return the module that a path refers to, seen from `here`; None outside the crate."""
        parts = path.split("::")
        if parts[0] == "crate":
            at: Module = ()
            parts = parts[1:]
        elif parts[0] in {"super", "self"} or (*here, parts[0]) in self.modules:
            at = here
            while parts and parts[0] in {"super", "self"}:
                at = at[:-1] if parts.pop(0) == "super" else at
        else:
            return None
        for place, part in enumerate(parts):
            if (*at, part) in self.modules:
                at = (*at, part)
                continue
            given = self.given_on[at].get(part)
            if given and depth < 10:
                return self.home("::".join([given, *parts[place + 1 :]]), at, depth + 1) or at
            break
        return at

    def uses(self) -> Iterator[tuple[Module, Module]]:
        """Yield (module, used module)."""
        for module, paths in self.used.items():
            if is_test(module):
                continue
            for path in paths:
                home = self.home(path, module)
                if home is not None and not is_test(home):
                    yield module, home

    def circles(self) -> list[list[Module]]:
        """Return the circles among the modules of each folder."""
        folders: dict[Module, dict[Module, set[Module]]] = defaultdict(lambda: defaultdict(set))
        for one, other in self.uses():
            shared = 0
            while shared < min(len(one), len(other)) and one[shared] == other[shared]:
                shared += 1
            if shared < min(len(one), len(other)):
                folders[one[:shared]][one[: shared + 1]].add(other[: shared + 1])
        return [circle for folder in sorted(folders) for circle in strongly_connected(folders[folder])]


def strongly_connected(uses: dict[Module, set[Module]]) -> list[list[Module]]:
    """Return the sets of nodes that reach each other (Tarjan), each sorted; single nodes do not count."""
    index: dict[Module, int] = {}
    low: dict[Module, int] = {}
    stack: list[Module] = []
    found: list[list[Module]] = []

    def visit(node: Module) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(uses.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            place = stack.index(node)
            if len(stack) - place > 1:
                found.append(sorted(stack[place:]))
            del stack[place:]

    for node in sorted(uses):
        if node not in index:
            visit(node)
    return found


def found_in(crates: Path) -> Iterator[str]:
    """Yield every circle: the crate and its modules."""
    for crate in sorted(path.parent for path in crates.glob("*/Cargo.toml")):
        for circle in Crate(crate).circles():
            yield f"{crate.name}: " + ", ".join("::".join(module) for module in circle)


def main() -> None:
    """Fail if there is a circle."""
    found = list(found_in(CRATES))
    sys.exit("\n".join(["Circles of modules:", *found]) if found else 0)


if __name__ == "__main__":
    main()
