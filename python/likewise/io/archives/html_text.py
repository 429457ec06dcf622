"""The visible text of pages, read by separate processes."""

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

# For a batch: its extractor reads ten megabytes per second and more, so that one that takes longer hangs.
_TIMEOUT_S = 60.0
_SECONDS_A_BYTE = 1e-5
# How long processes wait for the next archive when one is done.
_IDLE_S = 2.0


class HtmlReaders:
    """Processes that take visible text out of pages, as many as threads ask at once; started when first needed."""

    def __init__(self, timeout_s: float = _TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._idle: list[_HtmlProcess] = []
        self._num_users = 0
        self._timer: threading.Timer | None = None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Keep idle processes for a while, as a context; they end some seconds after the last one."""
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
        """Return the visible text of pages. Safe from several threads.

        Parameters
        ----------
        pages : sequence of (bytes, str)
            Pages with their charset, ``""`` where it must be found.

        Returns
        -------
        list of (str or None, str)
            Text, or None and the reason: what a page does to its process, also by ending it or by never ending, is
            told of that page alone.
        """
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
                # The page whose answer did not come ended it; those behind go to another one.
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
        # -P: the directory of the script is no place of packages.
        command = [sys.executable, "-P", str(Path(html_process.__file__)), json.dumps(sys.path)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(
        self, pages: Sequence[tuple[bytes, str]], timeout_s: float
    ) -> tuple[list[tuple[str | None, str]], str | None]:
        """Return the answers that came, and why no more did."""
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
    """Return which library takes the text out of pages, with its version and settings.

    Raises
    ------
    MissingExtra
        If it is not installed.
    """
    from importlib import metadata

    try:
        version = metadata.version("resiliparse")
    except metadata.PackageNotFoundError as error:
        raise MissingExtra("web", "extracting text from HTML pages in web archives") from error
    return {"name": "resiliparse", "version": version, **html_process.SETTINGS}
