"""Write ``docs/benchmarks/findings.md`` from the heads of ``findings/*.sh``: ``python tools/findings_page.py``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "findings.md"
FIELDS = ("Claim", "Package", "Expected", "Happens", "Seen", "Matters")
HEAD = """# Surprises in other packages

Each script in `findings` installs pinned versions of public packages and runs them on valid input, without Likewise.
It fails if the output has changed.
Run one with `bash findings/NAME.sh`, or all with `make findings`; they need PyPI, Maven, npm, Go or Cargo.
The head of each script states what one would expect.
"""


@dataclass(frozen=True)
class Finding:
    """The head of a script."""

    script: str
    fields: dict[str, str]


def findings(folder: Path) -> Iterator[Finding]:
    """Yield the heads of all scripts, by package."""
    found = [read(path) for path in folder.glob("*.sh")]
    yield from sorted(found, key=lambda finding: (finding.fields["Package"].lower(), finding.script))


def read(path: Path) -> Finding:
    """Read the head of a script: one line for each field, in order."""
    lines = path.read_text(encoding="utf-8").split("\n")[1 : 1 + len(FIELDS)]
    fields = dict(re.fullmatch(r"# (\w+): (.+)", line).groups() for line in lines)
    if tuple(fields) != FIELDS:
        raise ValueError(f"{path.name}: the head has {', '.join(fields)}; write {', '.join(FIELDS)}")
    return Finding(path.name, fields)


def page(folder: Path) -> str:
    """Return the page."""
    lines = [HEAD]
    package = None
    for finding in findings(folder):
        if finding.fields["Package"] != package:
            package = finding.fields["Package"]
            lines += [f"## {package}", ""]
        lines += [
            f"- {finding.fields['Claim']} (`findings/{finding.script}`)",
            f"  - {finding.fields['Happens']}",
            f"  - Seen: {finding.fields['Seen']}.",
            f"  - {finding.fields['Matters']}",
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(ROOT / "findings"), encoding="utf-8")
