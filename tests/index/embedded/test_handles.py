"""An index recovers from a temporary lack of file handles."""

import subprocess
import sys

import pytest

from tests.waiting import LIMIT_S

# Commits enough bytes to checkpoint the log into the database, which needs one more handle.
SCRIPT = """
import os, random, resource, sys
import likewise
index = likewise.Index(sys.argv[1], likewise.Recipe.simhash(), store="text")
letters = random.Random(1)
def add(number):
    texts = [letters.randbytes(12_000).hex() for _ in range(20)]
    index.add_batch([f"{number}-{i}" for i in range(20)], texts)
add(0)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = []
try:
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
for number in range(1, 80):
    add(number)
for handle in held:
    os.close(handle)
add(80)
assert len(index) == 81 * 20
assert index.verify() == []
index.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_without_handles_an_index_goes_on(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "index")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
