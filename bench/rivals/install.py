"""Install the rivals of requirements.txt into this environment, one by one; failures are recorded, not fatal."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
APART = Path(sys.prefix) / "apart"
FAILED = APART / "not_installed.json"
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]


def main() -> None:
    """Install each line; record the last line of pip's error for the table."""
    failed: dict[str, str] = {}
    APART.mkdir(exist_ok=True)
    for line in (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines():
        requirement, _, remark = (part.strip() for part in line.partition("#"))
        if not requirement:
            continue
        name, _, version = requirement.partition("==")
        command = [*PIP, requirement]
        if remark.startswith("apart"):
            target = APART / name
            if (target / f"{name.replace('-', '_')}-{version}.dist-info").is_dir():
                continue
            beside = remark.partition(";")[0].partition(" with ")[2].split()  # dependencies in a particular version
            command = [*PIP, "--no-deps", "--upgrade", "--target", str(target), requirement, *beside]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            complaint = [part for part in done.stderr.splitlines() if part.strip()]
            failed[name] = complaint[-1] if complaint else f"pip ended with {done.returncode}"
            print(f"not installed: {requirement}: {failed[name]}", file=sys.stderr)
    FAILED.write_text(json.dumps(failed, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
