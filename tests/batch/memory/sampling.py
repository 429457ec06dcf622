"""Anonymous memory of a process and its children, sampled until it ends."""

import subprocess
import time
from pathlib import Path


def anonymous_bytes(process_id):
    """Return the RssAnon of a process and all its descendants, in bytes."""
    total = 0
    try:
        for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                total += int(line.split()[1]) * 1024
        children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    except (OSError, ProcessLookupError):
        return total
    return total + sum(anonymous_bytes(int(child)) for child in children)


def peak_of(command, timeout_s=600):
    """Run a command to its end; return its peak anonymous memory in bytes."""
    peak, deadline = 0, time.monotonic() + timeout_s
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            peak = max(peak, anonymous_bytes(process.pid))
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert process.returncode == 0, process.stderr.read().decode()
    return peak
