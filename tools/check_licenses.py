"""Check that every dependency's license permits use in Apache-2.0 software.

Rust crates are read from `cargo metadata`, Python packages (what a user installs with Likewise) from their metadata.
Exits with 1 and names each package whose license is not on the list.
"""

import json
import re
import subprocess
import sys
from importlib import metadata

ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC",
    "MIT", "MIT-0", "PSF-2.0", "Unicode-3.0", "Unlicense", "Zlib",
}  # fmt: skip

# Licenses that packages state in their classifiers or in free text instead of an SPDX expression.
CLASSIFIERS = {
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
}


def is_allowed(expression: str) -> bool:
    """Return whether an SPDX expression can be met with allowed licenses alone (AND binds tighter than OR)."""
    # Old crates write "MIT/Apache-2.0" for OR.
    tokens = re.findall(r"\(|\)|\bAND\b|\bOR\b|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))

    def any_of() -> bool:
        allowed = all_of()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            allowed = all_of() or allowed
        return allowed

    def all_of() -> bool:
        allowed = one()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            allowed = one() and allowed
        return allowed

    def one() -> bool:
        if not tokens:
            return False
        token = tokens.pop(0)
        if token != "(":
            return token in ALLOWED
        allowed = any_of()
        return bool(tokens) and tokens.pop(0) == ")" and allowed

    return any_of() and not tokens


def rust_packages() -> list[tuple[str, str]]:
    """List (name and version, license) of every crate in the lock file."""
    out = subprocess.run(["cargo", "metadata", "--locked", "--format-version", "1"], check=True, capture_output=True)
    packages = json.loads(out.stdout)["packages"]
    return [(f"{p['name']} {p['version']}", p["license"] or "none stated") for p in packages]


def python_packages(root: str) -> list[tuple[str, str]]:
    """List (name and version, license) of a Python package's required dependencies, recursively."""
    seen: dict[str, str] = {}
    queue = [root]
    while queue:
        distribution = metadata.distribution(queue.pop())
        fields = distribution.metadata
        name = f"{fields['Name']} {fields['Version']}"
        if name in seen:
            continue
        classifiers = [CLASSIFIERS[c] for c in fields.get_all("Classifier", []) if c in CLASSIFIERS]
        seen[name] = fields.get("License-Expression") or next(iter(classifiers), fields.get("License") or "none stated")
        for requirement in distribution.requires or []:
            if ";" in requirement:  # extras and other platforms
                continue
            match = re.match(r"[A-Za-z0-9._-]+", requirement)
            if match:
                queue.append(match.group())
    return list(seen.items())


def main() -> int:
    """Print the packages with other licenses; return the exit status."""
    packages = rust_packages() + python_packages("likewise")
    offenders = [(name, license) for name, license in packages if not is_allowed(license)]
    for name, license in offenders:
        print(f"{name}: {license!r} is not on the list of allowed licenses (tools/check_licenses.py)")
    if not offenders:
        print(f"licenses: {len(packages)} packages, all allowed")
    return 1 if offenders else 0


if __name__ == "__main__":
    sys.exit(main())
