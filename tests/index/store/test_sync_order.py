"""Writes are synced before they are acknowledged, as shown by the writer's system calls (strace)."""

import re
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.waiting import LIMIT_S

NUM_DOCUMENTS = 12
WRITER = """
import os, sys
import likewise
from tests.index.store.crash_child import make_text
import random
chance = random.Random(3)
with likewise.Index(sys.argv[1], likewise.Recipe.simhash(within=3), durability=sys.argv[2]) as index:
    os.write(1, b"OPEN\\n")
    for number in range({num}):
        if number % 3:
            index.check_and_add(f"doc-{{number}}", f"document {{number}} " + make_text(number, chance))
        else:
            ids = [f"doc-{{number}}", f"more-{{number}}"]
            index.check_and_add_batch(ids, [f"some {{number}}", f"others {{number}}"])
        os.write(1, b"TOLD\\n")
    index.remove("doc-1")
    os.write(1, b"TOLD\\n")
"""


def system_calls(path, tmp_path, durability):
    """Return the system calls of the writer between its lines, as lists of (name, path)."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    names = "trace=write,pwrite64,fsync,fdatasync,sync_file_range"
    code = WRITER.format(num=NUM_DOCUMENTS)
    command = ["strace", "-f", "-y", "-e", names, "-o", trace, sys.executable, "-c", code, path, durability]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT_S)
    if not trace.exists() or "ptrace" in ran.stderr.lower():
        pytest.skip("this machine allows no tracing")
    assert ran.returncode == 0, ran.stderr
    parts = [[]]
    for line in trace.read_text(errors="replace").splitlines():
        call = re.match(r"\d+\s+(\w+)\((\d+)<([^>]*)>(.*)", line)
        if call is None:
            continue
        if call[2] == "1" and ('"TOLD' in call[4] or '"OPEN' in call[4]):
            parts.append([])
        else:
            parts[-1].append((call[1], call[3]))
    return parts


def test_every_acknowledgement_comes_after_a_sync(tmp_path):
    path = tmp_path / "index"
    parts = system_calls(path, tmp_path, "commit")
    assert len(parts) == NUM_DOCUMENTS + 3
    for calls in parts[1:-1]:
        log = [name for name, file in calls if file == f"{path}/documents.sqlite-wal"]
        assert "pwrite64" in log or "write" in log
        # The sync is the last call on the log.
        assert log[-1] in ("fsync", "fdatasync")


def test_by_interval_they_do_not_wait(tmp_path):
    path = tmp_path / "index"
    parts = system_calls(path, tmp_path, "interval:1000s")
    syncs = [name for calls in parts[1:-1] for name, _ in calls if name in ("fsync", "fdatasync")]
    assert len(syncs) < NUM_DOCUMENTS / 2
