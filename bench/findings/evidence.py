"""Report a finding: the claim, the observations, and whether the installed version reproduces it."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from rivals.protocol import make_importable, version

__all__ = ["make_importable", "tell"]


def tell(claim: str, package: str, seen: list[str], *, reproduced: bool) -> None:
    """Print one finding: for people, and as one JSON line for run.py."""
    verdict = "reproduced in" if reproduced else "not reproduced in"
    print(f"{claim}\n  {verdict} {package} {version(package)}")
    for line in seen:
        print(f"  {line}")
    row = {"claim": claim, "package": package, "version": version(package), "reproduced": reproduced, "seen": seen}
    print("JSON " + json.dumps(row, ensure_ascii=False))
