"""The command line as a user runs it: a process of its own.

What commands load is loaded once, in a process that forks itself for each command: a third of the time of the fast
tests was importing it again. What is loaded when, and how the command is found, is tested by processes that start anew.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from tests.waiting import LIMIT_S


class Ran(NamedTuple):
    status: int
    out: bytes
    err: str


def likewise_command(*arguments, stdin=b"", cwd=None):
    """Run `likewise ARGUMENTS` to its end."""
    arguments = [str(argument) for argument in arguments]
    if not hasattr(os, "fork"):
        command = [sys.executable, "-m", "likewise", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, timeout=LIMIT_S)
        return Ran(done.returncode, done.stdout, done.stderr.decode())
    return Commands.of_this_process().run(arguments, stdin, str(cwd or Path.cwd()))


class Commands:
    """A process that has loaded the package, and what it is asked through."""

    own = None

    def __init__(self):
        self.pid = os.getpid()
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(LIMIT_S)
        source = Path(__file__).with_name("command_server.py")
        with theirs:
            self.server = subprocess.Popen([sys.executable, source, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        atexit.register(self.end)

    @classmethod
    def of_this_process(cls):
        """The one of this process: started when first used; ends with it, as its socket does."""
        if cls.own is None or cls.own.pid != os.getpid() or cls.own.server.poll() is not None:
            cls.own = cls()
        return cls.own

    def run(self, arguments, stdin, cwd):
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        asked = {"arguments": arguments, "cwd": cwd, "environment": dict(os.environ)}
        message = json.dumps(asked).encode()
        try:
            socket.send_fds(self.socket, [len(message).to_bytes(4, "little")], theirs)
            self.socket.sendall(message)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        read = {}
        readers = [threading.Thread(target=_read, args=(pipes[i][0], read, i)) for i in (1, 2)]
        for reader in readers:
            reader.start()
        try:
            with os.fdopen(pipes[0][1], "wb") as file:
                file.write(stdin)
        except BrokenPipeError:
            pass  # It ended without reading all, as `subprocess` allows too.
        try:
            status = self.socket.recv(4, socket.MSG_WAITALL)
        except TimeoutError:
            self.server.kill()
            raise
        for reader in readers:
            reader.join()
        assert len(status) == 4, f"the process that runs commands ended with {self.server.wait()}"
        return Ran(int.from_bytes(status, "little", signed=True), read[1], read[2].decode())

    def end(self):
        """End the process; in forks of the one that began it this does nothing."""
        if os.getpid() == self.pid:
            self.socket.close()
            self.server.wait()


def _read(descriptor, read, i):
    with os.fdopen(descriptor, "rb") as file:
        read[i] = file.read()


def jsonl(texts, ids=True):
    """Texts as JSON Lines."""
    rows = ({"id": i, "text": text} if ids else {"text": text} for i, text in enumerate(texts))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
