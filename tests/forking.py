"""A process that forks for each job: imports are loaded once, and each job can be killed alone."""

import contextlib
import os
import subprocess
import sys

from tests.conftest import ROOT
from tests.waiting import LIMIT_S


@contextlib.contextmanager
def forking(module):
    """Run a module that reads jobs from standard input, one per line, and answers on standard output."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])},
    ) as process:
        yield process
        process.stdin.close()
        process.wait(LIMIT_S)
