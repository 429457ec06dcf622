"""Write tools/constraints.txt: the versions of the development packages in this environment.

Only packages that the group ``dev`` asks for, directly or not; what other groups brought stays out.
"""

import importlib.metadata
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent


def wanted() -> set[str]:
    """Return the names of all packages that the group needs here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    left: list[tuple[str, str]] = [(name, "") for name in project["project"]["dependencies"]]

    def add(group: str) -> None:
        for entry in groups[group]:
            if isinstance(entry, str):
                left.append((entry, ""))
            else:
                add(entry["include-group"])

    add("dev")
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    while left:
        text, extra = left.pop()
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        for asked in ["", *requirement.extras]:
            if (name, asked) in seen:
                continue
            seen.add((name, asked))
            try:
                requires = importlib.metadata.requires(name) or []
            except importlib.metadata.PackageNotFoundError:
                continue
            found.add(name)
            left.extend((line, asked) for line in requires)
    return found


def main() -> None:
    """Write the file."""
    lines = sorted(f"{name}=={importlib.metadata.version(name)}" for name in wanted())
    head = "# Versions of the development packages that the tests passed with; `make lock` writes them anew."
    text = "\n".join([head, *lines, ""])
    (ROOT / "tools" / "constraints.txt").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
