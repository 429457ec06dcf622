"""Add to a wheel what it must state about its dependencies: licenses, and a bill of materials without local paths.

``python tools/finish_wheel.py WHEEL...`` changes them in place. Needs the package ``wheel``, and ``cargo`` in the PATH.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LICENSE_FILE = re.compile(r"^(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)
# Only crates in the native module: those reached by normal dependencies on the platform of the wheel.
DATA = """What else is in the package
===========================

Standard library of Rust: MIT OR Apache-2.0, https://github.com/rust-lang/rust

SQLite, as libsqlite3-sys carries it: public domain, https://sqlite.org/copyright.html

Zstandard, as zstd-sys carries it: BSD-3-Clause, its words above, https://github.com/facebook/zstd

Unicode Character Database 17.0.0 (properties, case folding, normalization, word and sentence breaks): Unicode-3.0,
https://www.unicode.org/license.txt

Dictionary and model of jieba (tokens `chinese`), as jieba-rs carries them: MIT, https://github.com/fxsjy/jieba

Character tables of OpenCC (fold `traditional`), as ferrous-opencc carries them: Apache-2.0,
https://github.com/BYVoid/OpenCC

"""
# Start of the MIT license text, after the copyright line.
MIT = "Permission is hereby granted, free of charge"


def crates() -> list[dict[str, Any]]:
    """Return the crates compiled into the native module, by name and version, excluding the project's own."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", _host()]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    by_id = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    queue = [id_ for id_, package in by_id.items() if package["name"] == "likewise-python"]
    reached: set[str] = set()
    while queue:
        here = queue.pop()
        if here in reached:
            continue
        reached.add(here)
        queue += [
            dependency["pkg"]
            for dependency in nodes[here]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    packages = [by_id[id_] for id_ in reached if by_id[id_]["source"] is not None]
    return sorted(packages, key=lambda package: (package["name"], package["version"]))


def _host() -> str:
    lines = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout.splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def licenses(packages: list[dict[str, Any]]) -> str:
    """Return the license texts of the crates, as their authors ship them; each text once, after the crates it covers.

    For a crate that ships none, the text of the same license is taken from another one; for Apache-2.0, the package's
    own. Raises ValueError if a crate is left without a text.
    """
    owners: dict[str, list[str]] = {}
    without = []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        folder = Path(package["manifest_path"]).parent
        files = [path for path in sorted(folder.iterdir()) if LICENSE_FILE.match(path.name) and path.is_file()]
        for path in files:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            owners.setdefault("\n".join(line.rstrip() for line in text.splitlines()), []).append(name)
        if not files:
            without.append(package)
    mit = min((text[text.index(MIT) :] for text in owners if text.count(MIT) == 1 and len(text) < 1500), key=len)
    for package in without:
        name, expression = f"{package['name']} {package['version']}", package["license"]
        if "Apache-2.0" in expression:
            text = "Apache-2.0: its words are in the file LICENSE beside this one."
        elif expression == "MIT":
            text = f"Copyright (c) the authors of {package['name']}, {package['repository']}\n\n{mit}"
        else:
            raise ValueError(f"{name} ({expression}) ships no words of its license")
        owners.setdefault(text, []).append(name)
    parts = ["Software in the native module\n=============================\n\n"]
    parts += [f"{p['name']} {p['version']}: {p['license']}, {p['repository'] or 'no repository'}\n" for p in packages]
    for text, names in owners.items():
        parts.append(f"\n--- {', '.join(dict.fromkeys(names))}\n\n{text}\n")
    return "".join([*parts, "\n", DATA])


def bill_of_materials(packages: list[dict[str, Any]], version: str) -> dict[str, Any]:
    """Return a CycloneDX 1.5 bill of materials, a function of the lock file."""

    def component(package: dict[str, Any]) -> dict[str, Any]:
        url = f"pkg:cargo/{package['name']}@{package['version']}"
        # Old crates write "MIT/Apache-2.0" for OR.
        expression = (package["license"] or "NOASSERTION").replace("/", " OR ")
        return {
            "type": "library",
            "bom-ref": url,
            "name": package["name"],
            "version": package["version"],
            "purl": url,
            "licenses": [{"expression": expression}],
        }

    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": "likewise",
                "version": version,
                "purl": f"pkg:pypi/likewise@{version}",
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [component(package) for package in packages],
    }


def finish(wheel: Path, packages: list[dict[str, Any]]) -> None:
    """Write licenses and the bill of materials into one wheel."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", scratch, wheel], check=True)
        (tree,) = Path(scratch).iterdir()
        (info,) = tree.glob("*.dist-info")
        version = info.name.split("-")[1].removesuffix(".dist")
        folder = info / "licenses"
        folder.mkdir(exist_ok=True)
        (folder / "THIRD-PARTY.txt").write_text(licenses(packages), encoding="utf-8", newline="\n")
        boms = info / "sboms"
        boms.mkdir(exist_ok=True)
        for old in boms.iterdir():
            old.unlink()
        text = json.dumps(bill_of_materials(packages, version), indent=1) + "\n"
        (boms / "likewise.cyclonedx.json").write_text(text, encoding="utf-8", newline="\n")
        metadata = info / "METADATA"
        lines = metadata.read_text(encoding="utf-8").split("\n")
        if "License-File: THIRD-PARTY.txt" not in lines:
            place = next(i for i, line in enumerate(lines) if line.startswith("License-File:"))
            lines.insert(place + 1, "License-File: THIRD-PARTY.txt")
            metadata.write_text("\n".join(lines), encoding="utf-8", newline="\n")
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", wheel.parent, tree], check=True)
    print(f"{wheel.name}: licenses of {len(packages)} crates and a bill of materials", file=sys.stderr)


def main() -> int:
    """Finish the named wheels."""
    packages = crates()
    for name in sys.argv[1:]:
        finish(Path(name).resolve(), packages)
    return 0 if sys.argv[1:] else 2


if __name__ == "__main__":
    sys.exit(main())
