"""The visible text of pages, extracted by separate processes."""

import json
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from likewise.errors import MissingExtra
from likewise.io.archives import html_process

# Time limit of a batch. The extractor reads at least ten megabytes per second; one that takes longer hangs.
_TIMEOUT_S = 60.0
_SECONDS_A_BYTE = 1e-5
# Seconds that idle processes wait for the next archive.
_IDLE_S = 2.0


class HtmlReaders:
    """Processes that extract the visible text of pages, one per concurrent caller; started when first needed."""

    def __init__(self, timeout_s: float = _TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._idle: list[_HtmlProcess] = []
        self._num_users = 0
        self._timer: threading.Timer | None = None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Keep idle processes alive while the context is active, and for `_IDLE_S` seconds after the last one."""
        with self._lock:
            self._num_users += 1
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        try:
            yield
        finally:
            with self._lock:
                self._num_users -= 1
                if not self._num_users and self._idle:
                    self._timer = threading.Timer(_IDLE_S, self.close)
                    self._timer.daemon = True
                    self._timer.start()

    def texts(self, pages: Sequence[tuple[bytes, str]]) -> list[tuple[str | None, str]]:
        """Return the visible text of pages. Thread-safe."""
        found: list[tuple[str | None, str]] = []
        while len(found) < len(pages):
            rest = pages[len(found) :]
            process = self._take()
            answers, reason = process.ask(rest, self._timeout_s)
            found += answers
            if reason is None and not process.is_ended:
                with self._lock:
                    self._idle.append(process)
                continue
            process.kill()
            if reason is not None:
                # The first page without an answer ended the process; the pages after it go to another process.
                found.append((None, reason))
        return found

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.kill()

    def __del__(self) -> None:
        self.close()

    def _take(self) -> "_HtmlProcess":
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _HtmlProcess()


class _HtmlProcess:
    def __init__(self) -> None:
        self.is_ended = False
        # -P: do not import from the directory of the script.
        command = [sys.executable, "-P", str(Path(html_process.__file__)), json.dumps(sys.path)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(
        self, pages: Sequence[tuple[bytes, str]], timeout_s: float
    ) -> tuple[list[tuple[str | None, str]], str | None]:
        """Return the answers received, and the reason if some are missing."""
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        found: list[tuple[str | None, str]] = []
        seconds = timeout_s + _SECONDS_A_BYTE * sum(len(page) for page, _ in pages)
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            asked.write(struct.pack("<I", len(pages)))
            for page, charset in pages:
                for data in (charset.encode(errors="replace"), page):
                    asked.write(struct.pack("<I", len(data)))
                    asked.write(data)
            asked.flush()
            while len(found) < len(pages):
                start = answered.read(8)
                if len(start) < 8:
                    break
                is_text, length = struct.unpack("<II", start)
                data = answered.read(length)
                if len(data) < length:
                    break
                text = data.decode(errors="replace")
                found.append((text, "") if is_text else (None, f"cannot read the page: {text}"))
        except OSError:
            pass
        finally:
            timer.cancel()
        self.is_ended = late.is_set()
        if len(found) == len(pages):
            return found, None
        if late.is_set():
            return found, f"cannot read the page: extraction took more than {seconds:.0f} s"
        return found, "cannot read the page: it crashes the extractor"

    def kill(self) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue
        self._process.wait()


def html_reader() -> dict[str, object]:
    """Return the library that extracts text from pages, with its version and settings."""
    from importlib import metadata

    try:
        version = metadata.version("resiliparse")
    except metadata.PackageNotFoundError as error:
        raise MissingExtra("web", "extracting text from HTML pages in web archives") from error
    return {"name": "resiliparse", "version": version, **html_process.SETTINGS}
