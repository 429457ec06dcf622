"""The data of a service: a directory of collections, one index, an index on servers, or a finished run."""

import asyncio
import contextlib
import json
import re
import secrets
import shutil
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

from starlette.routing import Route

from likewise.errors import InvalidInput, InvalidParameter, LikewiseError
from likewise.index import Index
from likewise.index.opening import Store, TtlFrom, check_ttl, check_ttl_from, exists
from likewise.io.output.parts import sync_directory
from likewise.io.output.whole import write_whole
from likewise.io.places import check_place
from likewise.recipe.recipe import Recipe
from likewise.service.collections.collection import Collection
from likewise.service.collections.lanes import Budget
from likewise.service.collections.shared import SharedIndex, SharedPlace
from likewise.service.metrics import Metrics
from likewise.service.problems import Problem, without_address, without_place
from likewise.service.settings import Settings

NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
_SNAPSHOT = re.compile(r"[0-9]{8}t[0-9]{12}-[0-9a-f]{8}")
_SNAPSHOTS = ".snapshots"
_REMOVED = ".removed-"
_LIVES = "lives.json"
_NUM_COMPUTING = 2

Answer = TypeVar("Answer")


class Service:
    """The open collections of a directory, and the state that all requests share."""

    def __init__(self, place: Path | SharedPlace, settings: Settings) -> None:
        self._place = place
        self.path = place if isinstance(place, Path) else None
        self.settings = settings
        self.metrics = Metrics(self)
        self.run_path: Path | None = None
        self.collections: dict[str, Collection] = {}
        self.broken: dict[str, str] = {}
        self.is_draining = False
        # One body of the maximum size always fits in the share of a key.
        largest = max(settings.max_body_bytes, settings.max_decoded_bytes)
        self.body_memory = self._budget(settings.max_body_memory_bytes, "bytes of request bodies", least=largest)
        self.streams = self._budget(settings.max_streams, "open streams")
        self.at_work = self._budget(settings.max_concurrency, "concurrent requests")
        self.routes: dict[tuple[str, str], Route] = {}
        # Work that clients can make expensive waits in a separate queue, and is dropped there at its deadline.
        self._computing = ThreadPoolExecutor(_NUM_COMPUTING, thread_name_prefix="compute")
        self._is_one_index = False
        self._changing = threading.Lock()

    def open(self) -> None:
        """Open the index, run or collections at the place."""
        if isinstance(self._place, SharedPlace):
            index, name = self._place.open(self.settings), _name_of(self._place.prefix)
            self.collections[name] = Collection(name, index, index.ttl_s, self.settings, self.metrics)
            return
        path = self._directory
        check_place(path)
        if path.exists() and not path.is_dir():
            raise InvalidInput(
                "not a directory; give a directory of indexes, an index, or the output of a run", str(path)
            )
        if exists(path):
            self._is_one_index = True
            name = _name_of(path.resolve().stem)
            self._open_one(name, path)
            if self.broken:
                raise InvalidInput(self.broken[name], str(path))
        elif (path / "summary.json").exists():
            self.run_path = path
        else:
            if not self.settings.is_read_only:
                path.mkdir(parents=True, exist_ok=True)
            for entry in sorted(path.iterdir()):
                if entry.name.startswith(_REMOVED) and not self.settings.is_read_only:
                    shutil.rmtree(entry, ignore_errors=True)
                elif re.match(NAME, entry.name) and exists(entry):
                    self._open_one(entry.name, entry)
            others = [entry.name for entry in path.iterdir() if entry.name != _LIVES and entry.name[0] != "."]
            if others and not self.collections and not self.broken:
                raise InvalidInput(
                    f"contains {min(others)}, but no index and no run; give a directory of indexes, an index, the "
                    "output of likewise dedup, or an empty directory",
                    str(path),
                )

    def close(self) -> None:
        """Close all collections. All acknowledged changes are on disk afterwards."""
        self._computing.shutdown(wait=True, cancel_futures=True)
        for collection in self.collections.values():
            collection.close()

    def collection(self, name: str) -> Collection:
        """Return a collection, or raise the problem that states why it is unavailable."""
        found = self.collections.get(name)
        if found is not None:
            return found
        if name in self.broken:
            raise Problem("store", self.broken[name], "collection")
        raise Problem("unknown-collection", f"no collection {name!r}", "collection")

    def describe(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Return the descriptions of all readable collections, and the reasons why others cannot be used."""
        shown, broken = [], dict(self.broken)
        for name, collection in list(self.collections.items()):
            try:
                shown.append(collection.describe())
            except (LikewiseError, OSError) as error:
                text = str(error)
                text = without_address(text) if self.path is None else without_place(text, self.path)
                broken[name] = f"{name} cannot be used: {text}"
        return shown, broken

    def create(
        self, name: str, recipe: Recipe, *, store: str | None, ttl_s: float | None, ttl_from: str | None
    ) -> Collection:
        """Create a collection, or raise Problem. Blocks."""
        with self._changing:
            self._check_may_change()
            if name in self.collections or name in self.broken:
                raise Problem("collection-exists", f"the collection {name!r} already exists", "collection")
            if len(self.collections) >= self.settings.max_collections:
                raise Problem("overloaded", f"there are {len(self.collections)} collections, the maximum")
            directory = self._directory / name
            if directory.exists() and not exists(directory) and any(directory.iterdir()):
                raise Problem("collection-exists", f"the name {name!r} is used by another file", "collection")
            check_ttl_from(ttl_from or "first_seen", check_ttl(ttl_s))
            self._keep_life(name, ttl_s)
            index = Index(
                directory,
                recipe,
                # Checked by the index.
                store=cast("Store | None", store),
                durability=self.settings.durability,
                ttl=ttl_s,
                ttl_from=cast("TtlFrom | None", ttl_from),
                threads=self.settings.threads,
            )
            made = Collection(name, index, ttl_s, self.settings, self.metrics)
            self.collections = dict(sorted([*self.collections.items(), (name, made)]))
            return made

    def delete(self, name: str) -> None:
        """Delete a collection and all its documents, or raise Problem. Blocks."""
        with self._changing:
            self._check_may_change()
            found = self.collection(name)
            self.collections = {key: value for key, value in self.collections.items() if key != name}
            found.close()
            # Rename it first, so that a collection of the same name can be created while files are deleted.
            removed = self._directory / f"{_REMOVED}{name}-{secrets.token_hex(8)}"
            with contextlib.suppress(FileNotFoundError):
                (self._directory / name).rename(removed)
            self._keep_life(name, None)
        if removed.is_symlink():
            # The target of the link does not belong to this service.
            removed.unlink()
        shutil.rmtree(removed, ignore_errors=True)
        shutil.rmtree(self._directory / _SNAPSHOTS / name, ignore_errors=True)

    def make_snapshot(self, name: str, stamp: str) -> str:
        """Copy the current state of a collection and return the name of the copy. Blocks."""
        self._check_may_change()
        folder = self._directory / _SNAPSHOTS / name
        folder.mkdir(parents=True, exist_ok=True)
        if len(self.snapshots(name)) >= self.settings.max_results:
            raise Problem("overloaded", f"{name} has {self.settings.max_results} snapshots, the maximum; delete some")
        snapshot = f"{stamp}-{secrets.token_hex(4)}"
        index = self.collection(name).index
        assert isinstance(index, Index)
        index.snapshot(folder / snapshot)
        return snapshot

    def snapshots(self, name: str) -> list[str]:
        """Return the names of the snapshots of a collection, oldest first."""
        self.collection(name)
        if self.path is None:
            return []
        folder = self.path / _SNAPSHOTS / name
        if not folder.is_dir():
            return []
        return sorted(entry.name for entry in folder.iterdir() if _SNAPSHOT.fullmatch(entry.name) and exists(entry))

    def delete_snapshot(self, name: str, snapshot: str) -> None:
        """Delete a snapshot of a collection, or raise Problem."""
        self._check_may_change()
        if snapshot not in self.snapshots(name):
            raise Problem("not-found", f"{name} has no snapshot {snapshot!r}", "snapshot")
        shutil.rmtree(self._directory / _SNAPSHOTS / name / snapshot, ignore_errors=True)

    @property
    def shown_place(self) -> str:
        """The path, or the address and prefix of an index on servers, without a password."""
        found = next(iter(self.collections.values())).index if self.path is None else None
        return f"{found.index.place} {found.name}" if isinstance(found, SharedIndex) else str(self.path)

    @property
    def _directory(self) -> Path:
        """The directory of a service whose data is in files."""
        assert self.path is not None
        return self.path

    def check_may_write(self) -> None:
        """Raise Problem if the service is read-only."""
        if self.settings.is_read_only:
            raise Problem("read-only", "the service is read-only")

    def _check_may_change(self) -> None:
        self.check_may_write()
        if self.run_path is not None:
            raise Problem("read-only", "the service shows a finished run, which cannot be changed")
        if self.path is None:
            raise Problem(
                "read-only",
                "the index is on a server; create indexes with `likewise index create`, and copy them with `likewise "
                "index export` or `likewise index move`",
            )
        if self._is_one_index:
            raise Problem(
                "read-only", "the service has a single index; start it on a directory of indexes to manage collections"
            )

    def _open_one(self, name: str, directory: Path) -> None:
        ttl_s = self._lives().get(name)
        try:
            index = Index(
                directory,
                durability=self.settings.durability,
                ttl=ttl_s,
                read_only=self.settings.is_read_only,
                threads=self.settings.threads,
            )
        except (LikewiseError, OSError) as error:
            # Clients see this text, so it must not contain paths of the machine.
            self.broken[name] = f"{name} could not be opened: {without_place(str(error), self._directory)}"
            return
        self.collections[name] = Collection(name, index, ttl_s, self.settings, self.metrics)

    def _lives(self) -> dict[str, float]:
        """Return the seconds after which documents expire, by collection name."""
        try:
            found: dict[str, float] = json.loads((self._directory / _LIVES).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError:
            raise InvalidInput(
                "not valid JSON; the file stores the time to live of each collection", str(self._directory / _LIVES)
            ) from None
        return found

    def _keep_life(self, name: str, ttl_s: float | None) -> None:
        lives = self._lives()
        if lives.pop(name, None) == ttl_s:
            return
        if ttl_s is not None:
            lives[name] = ttl_s
        write_whole(self._directory / _LIVES, json.dumps(lives, sort_keys=True), is_synced=True)
        sync_directory(self._directory)

    async def worked(
        self,
        work: Callable[..., Awaitable[Answer]],
        key: str,
        /,
        *,
        has_deadline: bool = True,
        **given: Any,
    ) -> Answer:
        """Return the result of the work on a request of a key, or raise Problem at a limit or the deadline.

        Work that has started on a thread continues after its deadline; waiting work is dropped.
        """
        self.at_work.take(key, 1)
        try:
            async with asyncio.timeout(self.settings.deadline_s if has_deadline else None):
                return await work(**given)
        except TimeoutError:
            raise Problem(
                "deadline", f"the request exceeded the time limit of {self.settings.deadline_s:g} s"
            ) from None
        finally:
            self.at_work.give_back(key, 1)

    def _budget(self, most: int, unit: str, *, least: int = 1) -> Budget:
        """Return a budget; if there are several keys, each may hold only its share."""
        if len(self.settings.keys) < 2:
            return Budget(most, unit)
        return Budget(most, unit, most_of_key=max(least, int(most * self.settings.max_key_share)))

    @staticmethod
    def check_name(name: str) -> None:
        """Raise InvalidParameter for an invalid collection name."""
        if not re.fullmatch(NAME, name):
            raise InvalidParameter(
                "collection",
                "a name must have 1 to 64 characters of a-z, 0-9, _ and -, and start with a letter or digit",
            )

    async def compute(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Return the result of a pure, possibly long call."""
        return await asyncio.get_running_loop().run_in_executor(self._computing, work, *arguments)

    async def in_thread(self, work: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
        """Return the result of a blocking call without stopping other requests."""
        return await asyncio.get_running_loop().run_in_executor(None, lambda: work(*arguments, **options))


def _name_of(text: str) -> str:
    """Return a valid collection name that resembles a text."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")[:64] or "index"
