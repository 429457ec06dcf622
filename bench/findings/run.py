"""Run every finding in its own process; write bench/results/findings.json and docs/benchmarks/findings.md.

The documentation lists what was reproduced, with versions; the JSON contains the rest too.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from rivals import table


def markdown(rows: list[dict]) -> str:
    """Return the list of reproduced findings, by package."""
    lines = []
    for package in sorted({row["package"] for row in rows}):
        found = [row for row in rows if row["package"] == package and row["reproduced"]]
        if not found:
            continue
        lines += ["", f"## {package} {found[0]['version']}", ""]
        for row in found:
            lines.append(f"- {row['claim']} (`bench/findings/{row['script']}`).")
            lines += [f"  - {seen}" for seen in row["seen"]]
    return "\n".join([*lines, ""]) + "\n"


def main() -> None:
    """Run all; a script that fails is our own fault, and makes the exit status 1."""
    parser = argparse.ArgumentParser(description="Run the findings.")
    parser.add_argument("--docs", type=Path, default=HERE.parent.parent / "docs" / "benchmarks" / "findings.md")
    parser.add_argument("--page-only", action="store_true", help="write the page from the JSON and stop")
    options = parser.parse_args()
    if options.page_only:
        rows = json.loads((HERE.parent / "results" / "findings.json").read_text(encoding="utf-8"))
        table.insert(options.docs, "findings", markdown(rows))
        return
    rows, failed = [], []
    for script in sorted(HERE.glob("*.py")):
        if script.name in ("run.py", "evidence.py"):
            continue
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
        if done.returncode:
            failed.append(f"{script.name}: {done.stderr.strip().splitlines()[-1]}")
        for line in done.stdout.splitlines():
            if line.startswith("JSON "):
                rows.append({"script": script.name, **json.loads(line[5:])})
    folder = HERE.parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "findings.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in rows:
        verdict = "reproduced" if row["reproduced"] else "NOT reproduced"
        print(f"{verdict}: {row['package']} {row['version']}: {row['claim']}: {'; '.join(row['seen'])}")
    table.insert(options.docs, "findings", markdown(rows))
    for failure in failed:
        print(f"failed: {failure}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
