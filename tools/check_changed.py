"""Lint, and run the tests of the packages that differ from the branch ``main`` or are not committed yet."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def changed() -> list[Path]:
    """Return the changed and new files, relative to the root."""
    named: set[str] = set()
    for command in (["diff", "--name-only", "main..."], ["diff", "--name-only", "HEAD"],
                    ["ls-files", "--others", "--exclude-standard"]):  # fmt: skip
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
        named |= set(done.stdout.split("\n")) - {""}
    return [Path(name) for name in sorted(named) if (ROOT / name).exists()]


def tests_of(path: Path) -> list[str]:
    """Return the paths of tests for one changed file."""
    parts = path.parts
    if parts[0] == "tests":
        return [str(path)] if path.name.startswith("test_") else []
    if parts[:2] == ("python", "likewise") and len(parts) > 3:
        folder = ROOT / "tests" / parts[2]
        own = [str(folder.relative_to(ROOT))] if folder.is_dir() else []
        return own + [str(one.relative_to(ROOT)) for one in (ROOT / "tests" / "unit").glob(f"test_*{parts[2]}*.py")]
    return []


def main() -> None:
    """Run each check, and stop at the first that fails."""
    files = changed()
    crates = sorted({path.parts[1] for path in files if path.parts[0] == "crates"} - {"python"})
    commands = [
        ["cargo", "fmt", "--all", "--check"],
        [str(BIN / "ruff"), "format", "--check", "."],
        [str(BIN / "ruff"), "check", "."],
        [str(BIN / "mypy")],
        [str(BIN / "lint-imports"), "--no-logo"],
        [sys.executable, "tools/check_words.py"],
    ]
    if crates:
        commands.append(
            ["cargo", "test", "--quiet", "--locked", *(part for name in crates for part in ("-p", f"likewise-{name}"))]
        )
    paths = sorted({"tests/structure", *(test for path in files for test in tests_of(path))})
    commands.append(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "auto",
            "--dist",
            "worksteal",
            "-m",
            "not slow and not rounds",
            *paths,
        ]
    )
    for command in commands:
        print("$", " ".join(command), flush=True)
        if code := subprocess.run(command, cwd=ROOT).returncode:
            sys.exit(code)


if __name__ == "__main__":
    main()
