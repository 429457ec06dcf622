"""Install a wheel (or sdist) into an environment that contains nothing else, and use it there.

``python tools/try_wheel.py FILE...``: fails if it does not install, find a duplicate or contain its licenses, or if
it names a folder of the machine that built it.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Home directories of people and build images; a module for Windows may contain either slash.
HOMES = re.compile(rb"/(?:root|home/[\w.-]+|Users/[\w.-]+|github/workspace)/|[A-Za-z]:[\\/]+Users[\\/]+\w")
SCRIPT = """
import likewise
texts = ["one fine day in may we went to the river", "one fine day in may we went to the river!", "else"]
assert likewise.dedup(texts).kept.tolist() == [True, False, True]
with likewise.Index("seen.lw", likewise.Recipe.simhash(within=3)) as seen:
    assert seen.check_and_add("a", texts[0]).is_new
    assert not seen.check_and_add("b", texts[1]).is_new
assert likewise.hamming_pairs(likewise.sketch(texts, likewise.Recipe.simhash()), within=3) is not None
"""


def try_one(package: Path) -> None:
    """Install and use one file; raise if anything is wrong."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        venv.create(home / "env", with_pip=True)
        binaries = home / "env" / ("Scripts" if os.name == "nt" else "bin")
        python = binaries / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
        # The checkout and the caller's variables must not help.
        bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        subprocess.run([python, "-c", SCRIPT], check=True, cwd=home, env=bare)
        rows = ["one fine day in may we went out", "one fine day in may we went out", "nothing of the kind"]
        lines = "".join(json.dumps({"id": str(i), "text": row}) + "\n" for i, row in enumerate(rows))
        (home / "docs.jsonl").write_text(lines, encoding="utf-8")
        command = [binaries / "likewise", "dedup", "docs.jsonl", "-o", "out", "--quiet"]
        subprocess.run(command, check=True, cwd=home, env=bare)
        kept = (home / "out" / "kept" / "docs.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(kept) == 2, kept


def check_contents(wheel: Path) -> None:
    """Raise if a wheel lacks required files, or names a folder of the machine that built it."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for ending in ("licenses/LICENSE", "licenses/THIRD-PARTY.txt", "sboms/likewise.cyclonedx.json", "py.typed"):
            assert any(name.endswith(ending) for name in names), f"{ending} is not in {wheel.name}"
        bill = next(name for name in names if name.endswith(".cyclonedx.json"))
        components = json.loads(archive.read(bill))["components"]
        assert len(components) > 10
        texts = archive.read(next(name for name in names if name.endswith("THIRD-PARTY.txt"))).decode()
        told_of = {name for line in texts.splitlines() if line.startswith("--- ") for name in line[4:].split(", ")}
        silent = {f"{component['name']} {component['version']}" for component in components} - told_of
        assert not silent, f"{wheel.name} has no words of the licenses of {silent}"
        assert all(component["licenses"][0]["expression"] for component in components)


def members(package: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file in a wheel or sdist."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
    else:
        with tarfile.open(package) as files:
            for member in files:
                if file := files.extractfile(member):
                    yield member.name, file.read()


def check_places(package: Path) -> None:
    """Raise if a file in it, such as the native module, names a folder of the machine that built it."""
    own = [str(place).encode() for place in (ROOT, Path.home()) if len(place.parts) > 1]
    for name, content in members(package):
        found = {place for place in own if place + b"/" in content or place + b"\\" in content}
        found |= {match[0] for match in HOMES.finditer(content)}
        assert not found, f"{name} in {package.name} names {sorted(found)[:5]}"


def main() -> int:
    """Try the named files."""
    for name in sys.argv[1:]:
        package = Path(name).resolve()
        if package.suffix == ".whl":
            check_contents(package)
        check_places(package)
        try_one(package)
        print(f"{package.name}: installed and used in a bare environment", file=sys.stderr)
    return 0 if sys.argv[1:] else 2


if __name__ == "__main__":
    sys.exit(main())
