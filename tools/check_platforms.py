"""Check that the crates compile for other systems, C parts included.

``python tools/check_platforms.py [TARGET...]``: clippy with warnings denied, for each target. Needs ``rustup``, and the
package ``ziglang``, whose C compiler targets the other systems. Nothing is linked or run:
differences in Python (locks, renaming open files, line ends) have tests that imitate the calls of Windows, and
each system tries its own wheels.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Target names of the C compiler. Windows with GNU's ABI: Microsoft's needs its own headers.
TARGETS = {
    "x86_64-pc-windows-gnu": "x86_64-windows-gnu",
    "aarch64-unknown-linux-gnu": "aarch64-linux-gnu",
    "x86_64-unknown-linux-musl": "x86_64-linux-musl",
    "x86_64-apple-darwin": "x86_64-macos",
    "aarch64-apple-darwin": "aarch64-macos",
}
# Drops the flags that cargo adds for other compilers and this one does not know.
COMPILER = """#!/bin/sh
for given do
  shift
  case "$given" in --target=* | -arch | arm64 | x86_64 | -mmacosx-version-min=*) ;; *) set -- "$@" "$given" ;; esac
done
exec "{python}" -m ziglang cc -target {name} "$@"
"""
ARCHIVER = """#!/bin/sh
exec "{python}" -m ziglang ar "$@"
"""


def check(target: str, scratch: Path) -> bool:
    """Return whether the crates compile for a target, without a warning."""
    subprocess.run(["rustup", "--quiet", "target", "add", target], check=True, cwd=ROOT)
    variables = {"PYO3_NO_PYTHON": "1"}
    for kind, script in (("CC", COMPILER), ("AR", ARCHIVER)):
        path = scratch / f"{kind}-{target}"
        path.write_text(script.format(python=sys.executable, name=TARGETS[target]), encoding="utf-8")
        path.chmod(0o755)
        variables[f"{kind}_{target.replace('-', '_')}"] = str(path)
    command = ["cargo", "clippy", "--locked", "--quiet", "--target", target, "--", "-D", "warnings"]
    return subprocess.run(command, cwd=ROOT, env=os.environ | variables).returncode == 0


def main() -> int:
    """Check the named targets, or all."""
    with tempfile.TemporaryDirectory() as scratch:
        results = {target: check(target, Path(scratch)) for target in sys.argv[1:] or TARGETS}
    for target, is_well in results.items():
        print(f"{target}: {'compiles' if is_well else 'does not compile'}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
