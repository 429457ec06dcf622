"""The facts of the machine that a measurement belongs to, and the memory of a process."""

import datetime
import importlib.metadata
import os
import platform
import threading
import time
from pathlib import Path


def _first(path: str, key: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return "unknown"


def facts() -> dict[str, object]:
    """Processor, memory, versions, date."""
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


class AnonymousMemory:
    """The highest RssAnon of a process, looked at every 5 ms until it ends; as a context."""

    def __init__(self, process_id: int) -> None:
        self._path = Path(f"/proc/{process_id}/status")
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak_bytes = 0

    def __enter__(self) -> "AnonymousMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.is_set():
            try:
                lines = self._path.read_text().splitlines()
            except (OSError, ProcessLookupError):
                return
            for line in lines:
                if line.startswith("RssAnon:"):
                    self.peak_bytes = max(self.peak_bytes, int(line.split()[1]) * 1024)
            time.sleep(0.005)
