"""Run every finding in a process of its own; write bench/results/findings.json and the list of docs/benchmarks.md.

The documentation gets what was reproduced, with versions; the JSON gets the rest too.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from rivals import table


def main() -> None:
    """A script that fails is a finding about us, and ends this with 1."""
    parser = argparse.ArgumentParser(description="Run the findings.")
    parser.add_argument("--docs", type=Path, default=HERE.parent.parent / "docs" / "benchmarks.md")
    options = parser.parse_args()
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
    lines = []
    for row in rows:
        if row["reproduced"]:
            lines.append(f"- **{row['package']} {row['version']}**: {row['claim']} (`bench/findings/{row['script']}`).")
            lines += [f"  - {seen}" for seen in row["seen"]]
        verdict = "reproduced" if row["reproduced"] else "NOT reproduced"
        print(f"{verdict}: {row['package']} {row['version']}: {row['claim']}: {'; '.join(row['seen'])}")
    table.insert(options.docs, "findings", "\n".join(lines) + "\n")
    for failure in failed:
        print(f"failed: {failure}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
