"""Remote files, fetched before a run and copied back after it with fsspec.

Inputs are fetched whole before a run, and outputs are copied whole after it: documents are read again by offset from
many threads, and outputs are renamed into place, both of which are too expensive in object stores. So all formats, and
all guarantees about killed runs, apply to stores too.
"""

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from likewise.errors import InvalidInput, LikewiseError, MissingExtra
from likewise.io.output.whole import scratch_directory
from likewise.io.places import URL, is_remote, local_path
from likewise.progress import Progress, no_progress, stage

# Small files spend most of their time waiting for responses.
_FILES_AT_ONCE = 8
_COPY_BYTES = 4 << 20
_GLOB = re.compile(r"[*?\[]")
# Fields in which stores report the modification time.
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created", "last_commit")


class Remote(NamedTuple):
    """A file in a store."""

    store: Any
    path: str
    # Size, if the store reports it
    num_bytes: int | None
    # Modification time; 0 if the store does not report it
    modified_ns: int


class Found(NamedTuple):
    """The files that a URL of a store refers to."""

    kind: str
    # Path in the store
    root: str
    files: list[Remote]


def local_name(path: str) -> str:
    """Return the relative path of a local copy for a path in a store."""
    scheme = URL.match(path)
    if scheme is not None:
        path = path[scheme.end() :]
        if scheme[1].startswith("http"):
            path = re.split(r"[?#]", path)[0]
    return path.strip("/")


def store_of(name: str) -> tuple[Any, str]:
    """Return the store of a URL, and the path in it."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtra("remote", f"the name {name}") from error
    with _named(name):
        store, path = fsspec.core.url_to_fs(name)
        return store, str(path)


def remote_files(name: str) -> Found:
    """Return the files that a URL of a store refers to."""
    store, path = store_of(name)
    with _named(name):
        if _GLOB.search(path) and not store.exists(path):
            kind, found = "glob", store.glob(path, detail=True)
        else:
            info = store.info(path)
            kind = "directory" if info["type"] == "directory" else "file"
            found = store.find(path, detail=True) if kind == "directory" else {path: info}
    files = [
        Remote(store, own, info.get("size"), _modified_ns(info))
        for own, info in found.items()
        if info["type"] != "directory"
    ]
    if not files:
        raise FileNotFoundError(2, "no such file or directory", name)
    for file in files:
        if ".." in PurePosixPath(file.path).parts:
            raise InvalidInput("a path in the store contains ..", file.path)
    return Found(kind, path.rstrip("/"), sorted(files, key=lambda file: os.fsencode(file.path)))


def fetch(files: Sequence[Remote], targets: Sequence[Path], progress: Progress = no_progress) -> None:
    """Copy files from stores to local files, several at a time, with the modification times of the stores."""
    done = 0
    with (
        stage(progress, "fetching", sum(file.num_bytes or 0 for file in files), "bytes") as advance,
        ThreadPoolExecutor(_FILES_AT_ONCE, thread_name_prefix="likewise-fetch") as pool,
    ):
        try:
            for fetched in as_completed([pool.submit(_fetch, *pair) for pair in zip(files, targets, strict=True)]):
                done += fetched.result()
                advance(done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch(file: Remote, target: Path) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    num_bytes = 0
    with target.open("xb") as out:
        with _named(file.path):
            source = file.store.open(file.path, "rb", cache_type="readahead", block_size=_COPY_BYTES)
        with source:
            while True:
                with _named(file.path):
                    data = source.read(_COPY_BYTES)
                if not data:
                    break
                out.write(data)
                num_bytes += len(data)
    if file.num_bytes is not None and num_bytes != file.num_bytes:
        raise InvalidInput(f"received {num_bytes} of {file.num_bytes} bytes from the store", file.path)
    os.utime(target, ns=(file.modified_ns, file.modified_ns))
    return num_bytes


def _modified_ns(info: dict[str, Any]) -> int:
    for name in _TIMES:
        value = info.get(name)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            value = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, int | float):
            return int(value * 1e6) * 1000
    return 0


@contextmanager
def file_for(name: str | Path) -> Iterator[Path]:
    """Yield the local file to write for a name, as a context; it is copied to a remote name on success."""
    if not is_remote(name):
        yield Path(local_path(name))
        return
    store, path = store_of(str(name))
    with scratch_directory() as place:
        local = place / PurePosixPath(path).name
        yield local
        with _named(str(name)):
            put_file(store, local, path)


class RemoteDirectory:
    """The output directory of a run in a store."""

    def __init__(self, name: str, final_names: Sequence[str], *, overwrite: bool) -> None:
        self._name = name
        self._store, path = store_of(name)
        self._path = path.rstrip("/")
        self._final_names = tuple(final_names)
        with _named(name):
            found = self._store.find(self._path) if self._store.exists(self._path) else []
        self._old = [str(path) for path in found]
        names = {path[len(self._path) :].lstrip("/").partition("/")[0] for path in self._old}
        if foreign := sorted(names - set(final_names)):
            raise InvalidInput(f"{name} contains other files ({', '.join(foreign[:3])}); choose an empty directory")
        if final_names[-1] in names and not overwrite:
            raise InvalidInput(
                f"{name} contains a finished run; replace it with --overwrite (in Python, overwrite=True), "
                "or choose another directory"
            )

    def write(self, local: Path) -> None:
        """Copy a finished run to the store, its last name last; delete files of an earlier run, its last name first."""
        with _named(self._name):
            for old in sorted(self._old, key=lambda path: not path.endswith("/" + self._final_names[-1])):
                self._store.rm_file(old)
            for name in self._final_names:
                root = local / name
                files = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
                for path in files:
                    if path.is_file():
                        put_file(self._store, path, f"{self._path}/{path.relative_to(local).as_posix()}")


def put_file(store: Any, path: Path, target: str) -> None:
    """Copy a local file to a store; it is complete there or absent, if the store supports that."""
    store.makedirs(target.rpartition("/")[0], exist_ok=True)
    with path.open("rb") as source, store.open(target, "wb") as out:
        while data := source.read(_COPY_BYTES):
            out.write(data)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the file in errors of a store, as a context; known error types are kept."""
    try:
        yield
    except LikewiseError:
        raise
    except FileNotFoundError as error:
        # fsspec reports every failure of a server as a missing file, with the failure as its cause.
        cause = error.__cause__
        if cause is not None and not isinstance(cause, FileNotFoundError) and getattr(cause, "status", 0) != 404:
            raise InvalidInput(f"cannot access the store: {str(cause) or type(cause).__name__}", name) from error
        raise FileNotFoundError(2, "no such file or directory", name) from error
    except PermissionError as error:
        raise PermissionError(13, f"the store rejected the request: {error}", name) from error
    except Exception as error:
        # Messages about missing packages and unknown protocols are helpful; stores raise errors of their libraries.
        raise InvalidInput(f"cannot access the store: {str(error) or type(error).__name__}", name) from error
