"""Run commands and programs, each in a fork of this process: see `command.py`.

`command_server.py DESCRIPTOR`: a socket.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import sys
import threading

# Modules that commands need first; modules of extras may lack their dependencies.
LOADED = ("difflib", "numpy", "numpy.ma", "pyarrow", "pyarrow.parquet", "rich.progress")


def load():
    """Import what commands import."""
    import likewise

    for name in (*LOADED, *(module.name for module in pkgutil.walk_packages(likewise.__path__, "likewise."))):
        if not name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def received(asking, num_bytes):
    """Return `num_bytes` bytes from the socket."""
    found = b""
    while len(found) < num_bytes:
        if not (part := asking.recv(num_bytes - len(found))):
            sys.exit(0)
        found += part
    return found


def serve(asking):
    """Answer requests until the connection closes; in each fork, return the request to carry out."""
    while True:
        length, descriptors, _, _ = socket.recv_fds(asking, 4, 3)
        if not length:
            sys.exit(0)
        length += received(asking, 4 - len(length))
        asked = json.loads(received(asking, int.from_bytes(length, "little")))
        answer = pid = asked.get("pid") or os.fork()
        if not pid:
            asking.close()
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target)
                os.close(descriptor)
            return asked
        for descriptor in descriptors:
            os.close(descriptor)
        if "program" not in asked:
            # Wait for a command; of a program, report whether it has ended.
            ended, status = os.waitpid(pid, os.WNOHANG if "pid" in asked else 0)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        asking.sendall(json.dumps(answer).encode() + b"\n")


def run(asked):
    """Become the process of one command or program, and end as it does."""
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["cwd"])
    sys.path.insert(0, asked["cwd"])
    try:
        if "program" in asked:
            sys.argv = asked["program"]
            runpy.run_path(sys.argv[0], run_name="__main__")
            sys.exit()
        sys.argv = ["likewise", *asked["command"]]
        runpy.run_module("likewise", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            raise
        # What the interpreter does at exit, as far as a command can notice; unloading all modules takes four times
        # as long as a small command.
        atexit._run_exitfuncs()
        threading._shutdown()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            # Output cannot be written; let the interpreter report that.
            raise end from None
        os._exit(end.code or 0)


if __name__ == "__main__":
    # This file's directory contains packages named like those they test, such as redis.
    del sys.path[0]
    load()
    # A collection in a fork would touch, and thus copy, all shared memory.
    gc.freeze()
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    run(asked)
