"""The shape of the package: few names at the top, small packages, no imports back up.

The order of packages and the absence of circles are import contracts (pyproject.toml, run by ``make lint``).
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.structure.test_rules import PACKAGE

MAX_TOP_ENTRIES = 20
MAX_MODULES = 12
# Modules next to the packages: those that everything uses, and the public names of packages further down.
LOOSE = {"errors.py", "progress.py", "arrays.py", "redis.py", "spark.py"}
# Two lines each, so that `likewise.redis` and `likewise.spark` can be imported: not counted as entries.
NAMES = {"redis.py", "spark.py"}


def entries(folder: Path) -> set[str]:
    """Return the entries of a folder, except names that begin with _ and the marker of typed packages."""
    return {
        path.name
        for path in folder.iterdir()
        if not path.name.startswith(("_", ".")) and (path.suffix == ".py" or any(path.rglob("*.py")))
    }


def faults(package: Path, loose: Iterable[str]) -> list[str]:
    """Return the violations in a package."""
    top = entries(package)
    num_entries = len(top - NAMES)
    found = [f"{num_entries} entries at the top"] if num_entries > MAX_TOP_ENTRIES else []
    found += [f"loose module {name}" for name in sorted(top) if name.endswith(".py") and name not in loose]
    for init in sorted(package.rglob("__init__.py")):
        modules = {name for name in entries(init.parent) if name.endswith(".py")}
        if init.parent != package and len(modules) > MAX_MODULES:
            found.append(f"{len(modules)} modules in {init.parent.relative_to(package)}")
    return found


def test_a_package_is_taken_in_at_a_look():
    assert faults(PACKAGE, LOOSE) == []


def test_every_package_says_what_it_is():
    for init in PACKAGE.rglob("__init__.py"):
        assert init.read_text(encoding="utf-8").startswith('"""'), init


def tree(folder: Path, names: Iterable[str]) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("", encoding="utf-8", newline="\n")
    return folder


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([f"p{n}/__init__.py" for n in range(21)], ["21 entries at the top"]),
        (["errors.py", "bands.py"], ["loose module bands.py"]),
        (["io/__init__.py", *(f"io/m{n}.py" for n in range(13))], ["13 modules in io"]),
        (["io/__init__.py", "io/_own.py", *(f"io/m{n}.py" for n in range(12)), "py.typed", "_native.pyi"], []),
    ],
    ids=["top", "loose", "package", "well"],
)
def test_a_wrong_shape_is_found(tmp_path, names, expected):
    assert faults(tree(tmp_path, names), {"errors.py"}) == expected
