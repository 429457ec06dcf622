"""A process that forks one for each job: what jobs import is loaded once, and each can be killed alone."""

import contextlib
import os
import subprocess
import sys

from tests.conftest import ROOT
from tests.waiting import LIMIT_S


@contextlib.contextmanager
def forking(module):
    """Run a module that takes jobs on its standard input, a line each, and answers on its standard output."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:
        yield process
        process.stdin.close()
        process.wait(LIMIT_S)
