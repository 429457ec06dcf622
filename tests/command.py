"""Run the command line as a user does, in a process of its own.

The modules of commands are loaded once, in a process that forks for each command, and for each service that tests
start; importing them again took a third of the time of the fast tests. Tests of what is loaded when, and of how the
command is found, start new processes.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from tests.waiting import LIMIT_S, wait_until


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


def successful_command(*arguments, stdin=b""):
    """Run `likewise ARGUMENTS`, which must succeed."""
    done = likewise_command(*arguments, stdin=stdin)
    assert done.status == 0, done.err
    return done


def started(program, *arguments, cwd=None):
    """Start a Python file by its path, like `subprocess.Popen` with text pipes for its output."""
    arguments = [str(argument) for argument in (program, *arguments)]
    if not hasattr(os, "fork"):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([sys.executable, *arguments], stdin=subprocess.DEVNULL, text=True, cwd=cwd, **pipes)
    return Started(Commands.of_this_process(), arguments, str(cwd or Path.cwd()))


class Started:
    """A process that runs alongside the test, with the attributes of `subprocess.Popen`."""

    def __init__(self, commands, arguments, cwd):
        self._commands, self.returncode = commands, None
        pipes = [os.pipe(), os.pipe()]
        with open(os.devnull, "rb") as nothing:
            theirs = [nothing.fileno(), *(write for _, write in pipes)]
            self.pid = commands.ask({"program": arguments, "cwd": cwd, "environment": dict(os.environ)}, theirs)
        for _, write in pipes:
            os.close(write)
        self.stdout, self.stderr = (os.fdopen(read, encoding="utf-8") for read, _ in pipes)

    def poll(self):
        if self.returncode is None:
            self.returncode = self._commands.ask({"pid": self.pid})
        return self.returncode

    def wait(self, timeout=LIMIT_S):
        if not wait_until(lambda: self.poll() is not None, timeout):
            raise TimeoutError(f"process {self.pid} does not end")
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


class Commands:
    """The process that has loaded the package, and the connection to it."""

    own = None

    def __init__(self):
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(LIMIT_S)
        source = Path(__file__).with_name("command_server.py")
        with theirs:
            self.server = subprocess.Popen([sys.executable, source, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        atexit.register(self.end)

    @classmethod
    def of_this_process(cls):
        """Return the instance of this process, started on first use; it ends with this process, whose socket closes."""
        if cls.own is None or cls.own.pid != os.getpid() or cls.own.server.poll() is not None:
            cls.own = cls()
        return cls.own

    def run(self, arguments, stdin, cwd):
        """Run a command to its end."""
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        with self.lock:
            try:
                self._send({"command": arguments, "cwd": cwd, "environment": dict(os.environ)}, theirs)
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
                pass  # It ended without reading all input, which `subprocess` allows too.
            status = self._answer()
        for reader in readers:
            reader.join()
        return Ran(status, read[1], read[2].decode())

    def ask(self, asked, descriptors=()):
        """Send a request and return its immediate answer."""
        with self.lock:
            self._send(asked, descriptors)
            return self._answer()

    def _send(self, asked, descriptors):
        message = json.dumps(asked).encode()
        socket.send_fds(self.socket, [len(message).to_bytes(4, "little")], descriptors)
        self.socket.sendall(message)

    def _answer(self):
        try:
            with self.socket.makefile("rb") as answers:
                answer = answers.readline()
        except TimeoutError:
            self.server.kill()
            raise
        assert answer, f"the process that runs commands ended with {self.server.wait()}"
        return json.loads(answer)

    def end(self):
        """End the process; does nothing in forks of the process that started it."""
        if os.getpid() == self.pid:
            self.socket.close()
            self.server.wait()


def _read(descriptor, read, i):
    with os.fdopen(descriptor, "rb") as file:
        read[i] = file.read()


def jsonl(texts, ids=True):
    """Return texts as JSON Lines."""
    rows = ({"id": i, "text": text} if ids else {"text": text} for i, text in enumerate(texts))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
