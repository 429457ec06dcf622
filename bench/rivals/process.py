"""Run a command once, with a time limit: wall clock and processor seconds, peak anonymous memory including children."""

import os
import resource
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Done:
    """Result of a command. `failure` is empty if it succeeded. `processor_s` counts all its awaited processes."""

    seconds: float
    peak_bytes: int
    output: str
    failure: str
    said: str = ""  # stderr
    processor_s: float = 0


def _children(process_id: int) -> list[int]:
    found = [process_id]
    for task in Path(f"/proc/{process_id}/task").glob("*/children"):
        for child in task.read_text().split():
            found += _children(int(child))
    return found


def _anonymous_bytes(process_id: int) -> int:
    total = 0
    try:
        family = _children(process_id)
        # Pages shared by forked processes count once, so proportional shares are summed; reading them is slower.
        file, key = ("status", "RssAnon:") if len(family) == 1 else ("smaps_rollup", "Pss_Anon:")
        for each in family:
            for line in Path(f"/proc/{each}/{file}").read_text().splitlines():
                if line.startswith(key):
                    total += int(line.split()[1]) * 1024
    except (OSError, ProcessLookupError):
        pass  # one of them ended in the meantime
    return total


def _processor_s() -> float:
    """Return the processor seconds used by ended children of this process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ended_after(limit_s: float) -> str:
    """Return the failure text of a command stopped at its limit."""
    return f"ended after {limit_s:.0f} s"


def run(command: list[str], *, limit_s: float, env: dict[str, str] | None = None) -> Done:
    """Run it in its own process group, which is killed as a whole at the limit."""
    peak = 0
    finished = threading.Event()
    processor_before = _processor_s()
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(env or {})),
        start_new_session=True,
    )  # fmt: skip

    def watch() -> None:
        nonlocal peak
        while not finished.is_set():
            peak = max(peak, _anonymous_bytes(process.pid))
            finished.wait(LOOK_EVERY_S)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    failure = ""
    try:
        output, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        failure = ended_after(limit_s)
    seconds = time.perf_counter() - start
    finished.set()
    watcher.join()
    if not failure and process.returncode:
        last = [line for line in errors.splitlines() if line.strip()]
        failure = last[-1][:300] if last else f"ended with {process.returncode}"
    return Done(seconds, peak, output, failure, errors, _processor_s() - processor_before)
