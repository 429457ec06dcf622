"""A Model Context Protocol (MCP) server over an index, so that an agent checks a text before it stores it."""

import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from likewise.errors import LikewiseError, needs

with needs("mcp", "likewise.integrations.mcp"):
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

import likewise
from likewise.index import Index
from likewise.service.client import Client
from likewise.service.client.opening import open_index

__all__ = ["serve", "server_of"]

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

_INSTRUCTIONS = (
    "An index of the texts stored so far, such as memories, notes or documents. Before you store a text, call {ask}. "
    "If is_new is false, kept_id names a stored text with nearly the same words: read that one first, and update it if "
    "they differ in a fact. Only wording is compared; a paraphrase in other words is new. For related texts below the "
    "threshold, call neighbors."
)
_MEASURES = ("jaccard", "containment_a_in_b", "containment_b_in_a", "cosine", "edit", "distance")


def serve(
    place: str | os.PathLike[str], *, write: bool = False, collection: str | None = None, key: str | None = None
) -> None:
    """Serve an index over standard input and output until the client closes them.

    Parameters
    ----------
    place : str or Path
        Directory of an existing index, or the URL of a service, which several servers can share.
    write : bool
        Whether clients may add texts.
    collection, key : str, optional
        Collection of a service, and an API key.

    Raises
    ------
    FileNotFoundError
        If there is no index.
    IndexLocked
        If `write` is true and another process writes to the index.
    """
    with open_index(place, collection=collection, key=key, read_only=not write) as index:
        server_of(index, write=write).run("stdio")


def server_of(index: Index | Client, *, write: bool = False) -> MCPServer:
    """Return an MCPServer over an index, with the tools check, compare, neighbors, and if `write`, check_and_add."""

    def check(text: str) -> dict[str, Any]:
        """Check whether a text is new, without storing it.

        If is_new is false, kept_id is the id of the stored text that it nearly repeats, with the similarity from 0 to 1
        by the given measure.
        """
        return _fields(index.check(text), "is_new", "kept_id", "measure", "similarity", "distance")

    def check_and_add(doc_id: str, text: str) -> dict[str, Any]:
        """Check whether a text is new and store it under an id, in one step.

        The id is also stored if the text is a near-duplicate (is_new is false) of kept_id. The same id with the same
        text changes nothing (added is false); with another text it is an error.
        """
        verdict = index.check_and_add(doc_id, text)
        return _fields(verdict, "doc_id", "is_new", "kept_id", "measure", "similarity", "distance", "added")

    def compare(a: str, b: str) -> dict[str, Any]:
        """Compare two texts: whether they match by the rules of this index, their similarities, and the differences."""
        found = likewise.compare(a, b, index.recipe)
        differing = [{"a": part.a, "b": part.b} for part in found.alignment if not part.is_same]
        return {"matches": found.matches, "measures": _fields(found.measures, *_MEASURES), "differences": differing}

    def neighbors(text: str, k: int = 10, min_similarity: float = 0.0) -> dict[str, Any]:
        """List the ids of the k stored texts most similar to a text, the most similar first.

        matches shows whether the two are near-duplicates. Texts with little similarity may be missing.
        """
        names = ("doc_id", "measure", "similarity", "distance", "matches")
        return {"neighbors": [_fields(one, *names) for one in index.neighbors(text, k, min_similarity)]}

    ask = "check_and_add with an id for it" if write else "check"
    server = MCPServer(
        "likewise", instructions=_INSTRUCTIONS.format(ask=ask), version=likewise.__version__, log_level="WARNING"
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in (check, compare, neighbors):
        server.add_tool(_explained(tool), annotations=reads)
    if write:
        adds = ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        server.add_tool(_explained(check_and_add), annotations=adds)
    return server


def _fields(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _explained(tool: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Return a tool whose errors reach the model as ToolError; the protocol hides the messages of other exceptions."""

    @functools.wraps(tool)
    def explained(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        try:
            return tool(*args, **kwargs)
        except (LikewiseError, OSError) as error:
            raise ToolError(str(error)) from error

    return explained
