"""The command line as a user runs it: a process of its own."""

import json
import subprocess
import sys
from typing import NamedTuple


class Ran(NamedTuple):
    status: int
    out: bytes
    err: str


def likewise_command(*arguments, stdin=b"", cwd=None):
    """Run `likewise ARGUMENTS` to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "likewise", *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd, timeout=100
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def jsonl(texts, ids=True):
    """Texts as JSON Lines."""
    rows = ({"id": i, "text": text} if ids else {"text": text} for i, text in enumerate(texts))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
