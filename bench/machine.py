"""Facts of the machine of a measurement, and the memory of a process."""

import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import threading
from pathlib import Path
from typing import Self


def _first(path: str, key: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return "unknown"


def busy_note(measured: dict, script: str) -> str | None:
    """Return a page's note in place of seconds measured while other work had the cores, or None."""
    load, num_cores = measured["load_average"][0], measured["num_cores"]
    if load <= num_cores:
        return None
    return (
        f"The last run of `{script}` was made on a busy machine (load average {load:.1f} on {num_cores} cores), "
        "so its table is not shown.\n"
    )


def facts() -> dict[str, object]:
    """Return processor, memory, versions, date."""
    from likewise import _native

    versions = {}
    for name in ("likewise", "numpy", "pyarrow", "datasketch", "rensa"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cpu": _first("/proc/cpuinfo", "model name"),
        "num_cores": os.cpu_count(),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "isa": _native.ISA,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "load_average": os.getloadavg(),
    }


class Watched:
    """A value sampled by a thread until the context ends, and its maximum."""

    every_s = 0.25

    def __init__(self) -> None:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak_bytes = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def now(self) -> int | None:
        """Return the current bytes; None if the object no longer exists."""
        raise NotImplementedError

    def _watch(self) -> None:
        while (now := self.now()) is not None:
            self.peak_bytes = max(self.peak_bytes, now)
            if self._done.wait(self.every_s):
                return


class AnonymousMemory(Watched):
    """Context manager: the peak RssAnon of a process, sampled every 5 ms until it ends."""

    every_s = 0.005

    def __init__(self, process_id: int) -> None:
        super().__init__()
        self._path = Path(f"/proc/{process_id}/status")

    def now(self) -> int | None:
        """Return the current bytes; None if it has ended, 0 if it is about to."""
        try:
            lines = self._path.read_text().splitlines()
        except (OSError, ProcessLookupError):
            return None
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


class FreeDisk(Watched):
    """Context manager: the largest decrease of free disk space. Other use of the disk counts too."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._before = shutil.disk_usage(folder).free

    def now(self) -> int:
        """Return the decrease since the beginning."""
        return self._before - shutil.disk_usage(self._folder).free


def write_results(path: Path, **results: object) -> None:
    """Write results as JSON, preceded by the facts of this machine."""
    text = json.dumps({"machine": facts(), **results}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
