"""The operations of both clients, each written once: as a generator that yields calls and is sent their answers."""

# The answer of a call has the type that its operation declares, which a generator cannot express.
# mypy: disable-error-code="no-any-return"

import asyncio
import functools
import inspect
import os
import secrets
from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import partial
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, get_type_hints, overload

from likewise.errors import InvalidParameter, StoreError, check_positive, needs
from likewise.index import Document, Group, Neighbor, Removal, Verdict, Verdicts
from likewise.index.api import IndexApi
from likewise.index.ids import one_id, rows_from
from likewise.recipe.recipe import GivenRecipe, as_recipe
from likewise.service.client import calls
from likewise.service.client.calls import Attempts, Call, Text, clean

if TYPE_CHECKING:
    from likewise.service.client.clients import AsyncClient, Client

_Given = ParamSpec("_Given")
Answer = TypeVar("Answer")
Steps: TypeAlias = Generator[Call[Any], Any, Answer]


def _as_is(answer: Any) -> Any:
    return answer


def begin(kind: str, url: str, headers: dict[str, str], trusted: SSLContext) -> Any:
    """Return new connections to a service; `kind` is Client or AsyncClient."""
    import httpx2

    # Contact only the address that the user gave: no proxy from the environment, and no redirect that leaks the key.
    return getattr(httpx2, kind)(base_url=url, headers=headers, follow_redirects=False, trust_env=False, verify=trusted)


class Connections:
    """The connections of one client; each forked process and each event loop, with which they close, has its own."""

    def __init__(self, kind: str, url: str, headers: dict[str, str]) -> None:
        with needs("client", f"likewise.{kind}"):
            import httpx2
        # Reading the certificates takes 40 ms, so they are read once for all loops and processes.
        self._address = (kind, url, headers, httpx2.create_ssl_context(trust_env=False))
        # A connection object that no process or loop has used yet.
        self._unused = [begin(*self._address)]
        # Connections of parent processes are kept referenced: this process must not close them.
        self._of_processes: dict[int, dict[asyncio.AbstractEventLoop | None, Any]] = {}
        self.is_closed = False

    def own(self, loop: asyncio.AbstractEventLoop | None = None) -> Any:
        """Return the connections of this process; for AsyncClient, those of this event loop."""
        if self.is_closed:
            raise StoreError("the client is closed")
        of_loops = self._of_processes.setdefault(os.getpid(), {})
        connection = of_loops.get(loop)
        if connection is None:
            for ended in [one for one in list(of_loops) if one is not None and one.is_closed()]:
                of_loops.pop(ended, None)
            # If several threads get here at once, the first one wins.
            connection = of_loops.setdefault(loop, self._begun())
        return connection

    def close(self, loop: asyncio.AbstractEventLoop | None = None) -> Any:
        """Reject all further calls, and return the connections that only this event loop can close, or None."""
        self.is_closed = True
        return self._of_processes.get(os.getpid(), {}).get(loop)

    def _begun(self) -> Any:
        try:
            return self._unused.pop()
        except IndexError:
            return begin(*self._address)


def is_transport_error(error: Exception) -> bool:
    """Return whether a connection failed, broke or timed out."""
    import httpx2

    return isinstance(error, httpx2.TransportError | TimeoutError)


def is_sent(error: Exception) -> bool:
    """Return whether a request may have reached the service although its connection failed."""
    import httpx2

    return not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


class Operation(Generic[_Given, Answer]):
    """A method of both clients: a function in one, a coroutine in the other."""

    def __init__(self, steps: Callable[Concatenate[Any, _Given], Steps[Answer]]) -> None:
        self.steps = steps

    if TYPE_CHECKING:

        @overload
        def __get__(self, client: "Client", kind: Any = None) -> Callable[_Given, Answer]: ...
        @overload
        def __get__(self, client: "AsyncClient", kind: Any = None) -> Callable[_Given, Coroutine[Any, Any, Answer]]: ...
        @overload
        def __get__(self, client: None, kind: Any) -> Callable[..., Any]: ...
        def __get__(self, client: Any, kind: Any = None) -> Any: ...


def with_operations(kind: type[Any]) -> type[Any]:
    """Give a client the methods of all operations; those without a docstring are documented as methods of an index."""
    for name, operation in vars(ClientBase).items():
        if isinstance(operation, Operation):
            setattr(kind, name, _method(kind, name, operation.steps))
    return kind


def _method(kind: type["ClientBase"], name: str, steps: Callable[..., Steps[Any]]) -> Callable[..., Any]:
    def run(self: Any, *args: Any, **options: Any) -> Any:
        return self._run(steps(self, *args, **options))

    async def run_in_loop(self: Any, *args: Any, **options: Any) -> Any:
        return await self._run(steps(self, *args, **options))

    method: Callable[..., Any] = run_in_loop if inspect.iscoroutinefunction(kind._run) else run
    functools.update_wrapper(method, steps)
    method.__name__, method.__qualname__ = name, f"{kind.__name__}.{name}"
    method.__doc__ = steps.__doc__ or getattr(IndexApi, name).__doc__
    answer = get_type_hints(steps)["return"].__args__[2]
    method.__annotations__ = {**steps.__annotations__, "return": answer}
    method.__signature__ = inspect.signature(steps).replace(return_annotation=answer)  # type: ignore[attr-defined]
    return method


class ClientBase:
    """A collection of an HTTP service, with the parameters of :class:`likewise.Client`."""

    # Sends the calls of an operation; a coroutine function in AsyncClient.
    _run: Callable[..., Any]

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        collection: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 5,
    ) -> None:
        self._url = calls.check_url(url)
        if retries < 0:
            raise InvalidParameter("retries", f"{retries} given; it must be 0 or more")
        self._retries = retries
        self._timeout_s = check_positive("timeout_s", timeout_s)
        self._connections = Connections(type(self).__name__, self._url, calls.headers_of(key))
        self._name = collection
        self._measure: str | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r}, collection={self._name!r})"

    @Operation
    def collections(self) -> Steps[list[str]]:
        """Return the names of the collections of the service."""
        return [one["name"] for one in (yield calls.LIST)["collections"]]

    @Operation
    def create_collection(
        self,
        name: str,
        recipe: GivenRecipe | None = None,
        *,
        store: str | None = None,
        ttl: float | None = None,
        ttl_from: str | None = None,
    ) -> Steps[None]:
        """Create a collection.

        Parameters
        ----------
        name : str
            Lowercase letters, digits, hyphens and underscores.
        recipe : Recipe, optional
            Determines when two documents match; it must not read files. The preset ``online`` if None.
        store : {"sketch", "shingles", "text"}, optional
            What to store per document; the minimum that the recipe needs if None.
        ttl : float, optional
            Seconds after which a document expires; never if None.
        ttl_from : {"first_seen", "last_seen"}, optional
            From when the age counts: the arrival of a document, or that of its group's newest duplicate.

        Raises
        ------
        InvalidParameter
            If a collection with this name exists, or a value is rejected.
        """
        fields = None if recipe is None else as_recipe(recipe).to_dict()
        body = calls.encoded({"recipe": fields, "store": store, "ttl_s": ttl, "ttl_from": ttl_from})
        yield Call("PUT", calls.path_of(name), body, _as_is, is_repeatable=False)

    @Operation
    def delete_collection(self, name: str) -> Steps[None]:
        """Delete a collection with its documents and snapshots."""
        yield Call("DELETE", calls.path_of(name), None, _as_is, is_repeatable=False, is_long=True)

    @Operation
    def describe(self) -> Steps[dict[str, Any]]:
        """Return the description of the collection from the service."""
        return (yield Call("GET", (yield from self._path()), None, _as_is))

    @Operation
    def check(self, text: Text) -> Steps[Verdict]:
        return (yield from self._post("check", {"text": clean(text)}, lambda answer: Verdict(**answer)))

    @Operation
    def check_batch(self, texts: Iterable[Text]) -> Steps[Verdicts]:
        measure = yield from self._measured()
        understand = partial(calls.verdicts_of, measure=measure, names=None)
        parts: list[Verdicts] = []
        for _, some in calls.batches(None, texts):
            with rows_from(sum(map(len, parts))):
                parts.append((yield from self._post("check/batch", {"texts": list(map(clean, some))}, understand)))
        return calls.joined(parts, measure, has_ids=False)

    @Operation
    def check_and_add(self, doc_id: str, text: Text) -> Steps[Verdict]:
        body = {"doc_id": clean(one_id(doc_id)), "text": clean(text)}
        return (yield from self._change("check-and-add", body, lambda answer: Verdict(**answer)))

    @Operation
    def check_and_add_batch(self, ids: Iterable[object], texts: Iterable[Text]) -> Steps[Verdicts]:
        measure = yield from self._measured()
        parts: list[Verdicts] = []
        for given, some in calls.batches(ids, texts):
            with rows_from(sum(map(len, parts))):
                names = [clean(one_id(doc_id, row)) for row, doc_id in enumerate(given)]
                body = [{"doc_id": name, "text": clean(text)} for name, text in zip(names, some, strict=True)]
                understand = partial(calls.verdicts_of, measure=measure, names=names)
                parts.append((yield from self._change("check-and-add/batch", {"documents": body}, understand)))
        return calls.joined(parts, measure, has_ids=True)

    add = Operation(check_and_add.steps)
    add_batch = Operation(check_and_add_batch.steps)

    @Operation
    def get(self, doc_id: str) -> Steps[Document | None]:
        return (yield from self._post("get/batch", {"doc_ids": [clean(one_id(doc_id))]}, calls.document_of))

    @Operation
    def text(self, doc_id: str) -> Steps[str | None]:
        """Return the stored text of a document; None if it is unknown or the collection does not store texts."""
        body = {"doc_ids": [clean(one_id(doc_id))], "with_text": True}
        return (yield from self._post("get/batch", body, lambda answer: (answer["documents"][0] or {}).get("text")))

    @Operation
    def neighbors(
        self, text: Text, k: int = 10, min_similarity: float = 0.0, *, among: str | None = None
    ) -> Steps[list[Neighbor]]:
        body = {"text": clean(text), "k": k, "min_similarity": min_similarity, "among": among}
        return (
            yield from self._post("neighbors", body, lambda answer: [Neighbor(**one) for one in answer["neighbors"]])
        )

    @Operation
    def group(self, doc_id: str) -> Steps[Group]:
        pages: list[dict[str, Any]] = []
        while not pages or pages[-1]["truncated"]:
            body = {"doc_id": clean(one_id(doc_id)), "offset": sum(len(page["member_ids"]) for page in pages)}
            pages.append((yield from self._post("group", body, _as_is)))
        members = tuple(member for page in pages for member in page["member_ids"])
        return Group(pages[0]["leader_id"], pages[0]["is_leader_gone"], members)

    @Operation
    def remove(self, doc_id: str) -> Steps[Removal]:
        return (yield from self._change("remove", {"doc_id": clean(one_id(doc_id))}, calls.removal_of))

    @Operation
    def verify(self, *, full: bool = False) -> Steps[list[str]]:
        """Return the damage found, empty if none: of the structure, or with `full` of every record too."""
        return (yield from self._post("verify", {"full": full}, lambda answer: answer["problems"], is_long=True))

    @Operation
    def compact(self) -> Steps[None]:
        """Merge all segments into one."""
        yield from self._post("compact", None, _as_is, is_repeatable=False, is_long=True)

    @Operation
    def snapshot(self) -> Steps[str]:
        """Copy the current state of the collection in the directory of the service; return the name of the copy."""
        is_made = {"is_repeatable": False, "is_long": True}
        return (yield from self._post("snapshots", None, lambda answer: answer["snapshot"], **is_made))

    def _path(self) -> Steps[str]:
        if self._name is None:
            self._name = calls.chosen_collection(self._url, (yield calls.LIST))
        return calls.path_of(self._name)

    def _post(self, verb: str, body: Any, understand: Callable[[Any], Answer], **options: Any) -> Steps[Answer]:
        path = yield from self._path()
        sent = None if body is None else calls.encoded(body)
        answer: Answer = yield Call("POST", f"{path}/{verb}", sent, understand, **options)
        return answer

    def _change(self, verb: str, body: Any, understand: Callable[[Any], Answer]) -> Steps[Answer]:
        """Change documents, with a new idempotency key."""
        return (yield from self._post(verb, body, understand, idempotency_key=secrets.token_hex(16)))

    def _measured(self) -> Steps[str]:
        if self._measure is None:
            self._measure = str((yield Call("GET", (yield from self._path()), None, _as_is))["recipe"]["measure"])
        return self._measure

    def _attempts(self, call: Call[Any]) -> Attempts:
        return Attempts(call, self._url, self._retries, self._timeout_s)

    def _wait_s(self, attempts: Attempts, error: Exception) -> float:
        """Return the seconds to wait after a connection error; raise any other error, or the last one."""
        if self._connections.is_closed:
            raise StoreError("the client is closed") from None
        if not is_transport_error(error):
            raise error
        return attempts.after_failure(error, is_sent=is_sent(error))
