"""Shared by all tests: hypothesis profiles, instruction sets, the labeled sets."""

import functools
import gzip
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parent.parent
LABELED = ROOT.parent / "shared" / "data"
# A file system in memory, for the tests' files if it has enough space and no other place is set.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 << 30

# Containers often disable bytecode files: each process that tests start would compile everything again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

hypothesis.settings.register_profile("fast", max_examples=40, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=2000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def instruction_set_names():
    """Return the names of the instruction sets of this processor, the plainest first."""
    from likewise import _native

    if _native.ISA == "neon":
        return ["plain", "neon"]
    names = ["plain", "avx2", "avx512"]
    return names[: names.index(_native.ISA) + 1]


def instruction_sets():
    """Yield the names of the instruction sets; native calls use each until the next, and then the best one again."""
    from likewise import _native

    try:
        for name in instruction_set_names():
            _native.use_isa(name)
            yield name
    finally:
        _native.use_isa(None)


def pytest_configure(config):
    # Let Ctrl-C through if the tests were started in the background, where the shell ignores it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Indexes sync every commit; on a disk the tests would mostly wait. Processes of pytest-xdist inherit TMPDIR.
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="likewise-tests-", dir=MEMORY)
        config.add_cleanup(functools.partial(shutil.rmtree, tempfile.tempdir, ignore_errors=True))


def pytest_generate_tests(metafunc):
    if "isa" in metafunc.fixturenames:
        metafunc.parametrize("isa", instruction_set_names(), indirect=True)


@pytest.fixture
def isa(request):
    """Run the test once for each instruction set of this processor, which all native calls use."""
    from likewise import _native

    _native.use_isa(request.param)
    yield request.param
    _native.use_isa(None)


@pytest.fixture
def labeled():
    """Return a loader of a labeled set: ids, texts, the folder. It skips the test if the sets are absent."""

    def load(name, field="text"):
        folder = LABELED / name
        if not folder.is_dir():
            pytest.skip(f"labeled set {name} is not at ../shared/data")
        ids, texts = [], []
        with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                ids.append(row["id"])
                texts.append(row[field])
        return ids, texts, folder

    return load
