"""The views that the pages show: the finished run or the collections of a service, opened when first requested."""

import threading
from collections.abc import Sequence
from pathlib import Path

from likewise.errors import InvalidInput, StoreError
from likewise.io.output.directory import SUMMARY
from likewise.io.output.summaries import is_report_only
from likewise.progress import Event, StageAdvanced, StageStarted
from likewise.runs.report import report
from likewise.runs.viewing import IndexView, RunView, View
from likewise.service.collections.service import Service
from likewise.service.collections.shared import SharedIndex

_REVIEWS = ".reviews"


class Prepared:
    """A view and the progress of sorting its groups."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.share = 0.0
        self._total = 0
        self._is_closing = False
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def progress(self, event: Event) -> None:
        """Record an event of the sorting; abort it if the view is being closed."""
        if self._is_closing:
            raise StoreError("the view is closed")
        if isinstance(event, StageStarted):
            self._total = event.total
        elif isinstance(event, StageAdvanced) and self._total:
            self.share = event.done / self._total

    def wait(self, seconds: float) -> bool:
        """Wait up to some seconds for the groups to be sorted, and return whether they are."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._sort, name="likewise-page", daemon=True)
                self._thread.start()
        self._done.wait(seconds)
        if self._error is not None:
            with self._lock:
                error, self._error, self._thread = self._error, None, None
                self._done.clear()
            if error is not None:
                raise error
        return self._done.is_set()

    def close(self) -> None:
        """Close the view after the sorting has ended."""
        self._is_closing = True
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
        if isinstance(self.view, RunView | IndexView):
            self.view.__exit__(None, None, None)

    def _sort(self) -> None:
        try:
            _ = self.view.catalog
        except Exception as error:
            self._error = error
        finally:
            self._done.set()


class Shelf:
    """The views of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._prepared: dict[str, tuple[object, Prepared]] = {}
        self._report: tuple[object, str] | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether labels cannot be stored."""
        return self._service.settings.is_read_only

    def names(self) -> Sequence[str]:
        """Return the names of all views."""
        run = self._service.run_path
        return list(self._service.collections) if run is None else [run.resolve().name]

    def broken(self) -> dict[str, str]:
        """Return the collections that cannot be opened, with reasons."""
        return self._service.broken

    def open(self, name: str) -> Prepared | None:
        """Return a view by its name, or None. Blocks."""
        with self._lock:
            if self._service.run_path is not None:
                if name not in self.names():
                    return None
                return self._run(name, self._service.run_path)
            collection = self._service.collections.get(name)
            if collection is None:
                self._drop(name)
                return None
            if isinstance(collection.index, SharedIndex):
                raise InvalidInput("pages show runs and indexes in directories only; this index is on a server")
            owner, prepared = self._prepared.get(name, (None, None))
            if owner is collection.index and prepared is not None:
                return prepared
            # The collection was deleted and created again under the same name.
            self._drop(name)
            made = Prepared(IndexView(collection.index, name, marks=self._marks(name, collection.index.path)))
            self._prepared[name] = (collection.index, made)
            return made

    def report(self, name: str) -> str | None:
        """Return the report of a run that has no groups to show, as over parts; None for other views."""
        path = self._service.run_path
        if path is None or name not in self.names() or not is_report_only(path):
            return None
        with self._lock:
            identity = _identity(path)
            if self._report is None or self._report[0] != identity:
                self._report = identity, report(path, inputs=self._service.settings.inputs)
            return self._report[1]

    def close(self) -> None:
        """Close all views."""
        with self._lock:
            for name in list(self._prepared):
                self._drop(name)

    def _run(self, name: str, path: Path) -> Prepared:
        identity = _identity(path)
        known, prepared = self._prepared.get(name, (None, None))
        if prepared is not None and known == identity:
            return prepared
        # The directory contains another run, or none, which opening it reports.
        self._drop(name)
        events: list[Prepared] = []
        view = RunView(path, inputs=self._service.settings.inputs, progress=lambda event: events[0].progress(event))
        events.append(Prepared(view))
        self._prepared[name] = (identity, events[0])
        return events[0]

    def _marks(self, name: str, index: Path) -> Path | None:
        """Return the file for the labels of a collection: next to the indexes, never inside one."""
        if self.is_read_only:
            return None
        root = self._service.path
        assert root is not None
        if index == root:
            return root.with_name(f"{root.name}.review.csv")
        (root / _REVIEWS).mkdir(exist_ok=True)
        return root / _REVIEWS / f"{name}.csv"

    def _drop(self, name: str) -> None:
        _, prepared = self._prepared.pop(name, (None, None))
        if prepared is not None:
            prepared.close()


def _identity(run: Path) -> tuple[int, ...] | None:
    """Return the identity of the run in a directory, from its summary, which is written last; None if there is none."""
    try:
        found = (run / SUMMARY).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
