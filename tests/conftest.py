"""What all tests share: hypothesis profiles, instruction sets, the labeled sets."""

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
# A file system in memory, where tests write if it has so much room and nobody named another place.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 << 30

# Containers often ask that nothing compiled be kept: each of the processes that tests start would compile all again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

hypothesis.settings.register_profile("fast", max_examples=40, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=2000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def instruction_sets():
    """Names of the instruction sets of this processor, the plainest first."""
    from likewise import _native

    if _native.ISA == "neon":
        return ["plain", "neon"]
    names = ["plain", "avx2", "avx512"]
    return names[: names.index(_native.ISA) + 1]


def pytest_configure(config):
    # Let Ctrl-C through where the shell started the tests in the background, which has it ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Indexes sync every commit; on a disk the tests would mostly wait. The processes of pytest-xdist take it over.
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="likewise-tests-", dir=MEMORY)
        config.add_cleanup(functools.partial(shutil.rmtree, tempfile.tempdir, ignore_errors=True))


def pytest_generate_tests(metafunc):
    if "isa" in metafunc.fixturenames:
        metafunc.parametrize("isa", instruction_sets())


@pytest.fixture
def labeled():
    """A loader of a labeled set: ids, texts, the folder. Skips where the sets are absent."""

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
