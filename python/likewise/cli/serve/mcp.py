"""``likewise mcp``: an index as tools for an agent."""

import os

import click

from likewise.cli.options.commands import LongCommand, flag, option


@click.command("mcp", cls=LongCommand)
@click.argument("path")
@flag("--write", "Let clients add texts. An index allows one writer; a service allows many.")
@option("--collection NAME", "Collection of a service.  [default: the only one]")
def command(path: str, write: bool, collection: str | None) -> None:
    """Serve an index to an agent over the Model Context Protocol (stdio).

    PATH is an index, or the URL of a likewise service. The tools are check, compare and neighbors; --write adds
    check_and_add. The agent starts this command itself; add it to the agent's configuration. For a service with keys,
    set LIKEWISE_API_KEY.

    \b
    Examples:
      likewise index create memories.lw --tokens char --shingle 3 --threshold 0.7
      likewise mcp memories.lw --write
      likewise mcp http://127.0.0.1:8765 --collection memories
    """
    from likewise.errors import InvalidInput
    from likewise.integrations.mcp import serve

    is_service = path.startswith(("http://", "https://"))
    if not is_service and not os.path.exists(path):  # noqa: PTH110 - it may be a URL
        raise InvalidInput("does not exist; create it with `likewise index create`", path)
    serve(path, write=write, collection=collection, key=os.environ.get("LIKEWISE_API_KEY") if is_service else None)
