"""The log: one JSON line per event on standard error. It never contains the text of a document."""

import json
import logging
import sys
import time
import traceback
from typing import Any

# Maximum length of a value: ids and paths from clients are truncated.
_MOST = 300


def log(event: str, *, level: str = "info", **values: Any) -> None:
    """Write a line with time, level, event and values."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    shown = {name: value[:_MOST] if isinstance(value, str) else value for name, value in values.items()}
    sys.stderr.write(json.dumps({"time": stamp, "level": level, "event": event, **shown}) + "\n")


def log_failure(event: str, error: BaseException, **values: Any) -> None:
    """Log an internal error by its type and location, without its message, which may contain a document."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
    log(event, level="error", kind=type(error).__name__, places=places, **values)


class JsonHandler(logging.Handler):
    """Forwards the log records of libraries to :func:`log`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if record.exc_info and record.exc_info[1] is not None:
            log_failure("server-error", record.exc_info[1], logger=record.name)
        else:
            log("server", level=record.levelname.lower(), logger=record.name, message=record.getMessage())
