"""``likewise serve``: the HTTP service."""

import os
from pathlib import Path
from typing import Any

import click

from likewise.cli.index.target import target_options
from likewise.cli.options.commands import WRITE, LongCommand, flag, option
from likewise.cli.options.recipe import MOVED_INPUTS
from likewise.errors import InvalidInput, InvalidParameter, parse_size


@click.command("serve", cls=LongCommand)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@target_options
@flag("--create", "Create PATH if it does not exist.")
@option("--host ADDRESS", "Address to listen on.", default="127.0.0.1")
@option("--port", "Port; 0 picks a free one.", click.IntRange(0, 65535), 8765)
@option("--keys", "Key file.", WRITE, to="keys_file")
@option("--new-key NAME:RIGHT", "Add a key with this name and right to --keys, print it and exit.")
@option(
    "--allow-host NAME", "Host name to accept when there are no keys; repeatable.", to="allowed_hosts", multiple=True
)
@MOVED_INPUTS
@flag("--read-only", "Open indexes read-only while another process writes.")
@option(
    "--durability commit|interval:TIME",
    "When to answer: commit waits until data is on disk; interval:200ms syncs that often. Not with --url.",
    default="commit",
)
@option("--threads", "Number of threads per batch.  [default: all processors]", click.IntRange(1))
@option("--max-body SIZE", "Maximum request size.  [default: 8MiB]", to="max_body_bytes")
@option("--max-batch", "Maximum documents per request.  [default: 1000]", click.IntRange(1))
@option("--max-concurrency", "Maximum concurrent requests.  [default: 64]", click.IntRange(1))
@option(
    "--max-rate",
    "Maximum requests per second for each key.  [default: no limit]",
    click.FloatRange(0, min_open=True),
    to="max_requests_per_second",
)
@option(
    "--deadline SECONDS", "Time limit per request.  [default: 10]", click.FloatRange(0, min_open=True), to="deadline_s"
)
@flag("--quiet", "Do not log requests.")
def command(
    path: Path | None, url: str | None, prefix: str | None, keys_file: Path | None, new_key: str | None, **options: Any
) -> None:
    """Serve indexes or a run over HTTP, with web pages.

    PATH is a directory of indexes, one index, or the output directory of a run. PATH must exist unless --create is
    given. With --url instead of PATH, the index is on a Redis or Valkey server or cluster, created by likewise index
    create. Several services can serve one such index.

    By default the server listens on this machine only; other addresses require keys. A key file has one key per line:
    name, right (read, write or admin) and SHA-256. --new-key adds one and prints the key. The environment variable
    LIKEWISE_API_KEY sets a key with all rights. Logs go to standard error, one JSON object per line. The API is
    documented at /docs and /openapi.json.

    \b
    Examples:
      likewise serve collections --create
      likewise serve out
      likewise serve --url redis://localhost:6379/0 --prefix pages
      likewise serve --keys keys.txt --new-key crawler:write
      likewise serve collections --keys keys.txt --host 0.0.0.0
    """
    from likewise.service.settings import key_of, read_keys

    if new_key is not None:
        _add_key(keys_file, new_key)
        return
    if path is None and url is None:
        raise click.UsageError("Missing argument 'PATH', the directory to serve (or --url).")
    if path is not None and url is not None:
        raise click.UsageError(f"Got both --url and PATH ({path}).")
    if prefix is not None and url is None:
        raise InvalidParameter("prefix", "requires --url")
    create = options.pop("create")
    if create and url is not None:
        raise InvalidParameter("create", "does not apply to --url; create the index with `likewise index create`")
    keys = () if keys_file is None else read_keys(keys_file)
    if keys_file is not None and not keys:
        raise click.UsageError(f"{keys_file} contains no key. Add one with --new-key.")
    secret = os.environ.get("LIKEWISE_API_KEY")
    if secret is not None:
        try:
            keys += (key_of(secret, name="environment"),)
        except InvalidParameter as error:
            raise click.UsageError(f"LIKEWISE_API_KEY: {error.message}") from None
    from likewise.service import Settings, serve
    from likewise.service.collections.shared import PREFIX

    host, port = options.pop("host"), options.pop("port")
    rights = {"keys": keys, "is_read_only": options.pop("read_only"), "has_request_log": not options.pop("quiet")}
    if options["max_body_bytes"] is not None:
        options["max_body_bytes"] = parse_size("max_body", options["max_body_bytes"])
    settings = Settings(**rights, **{name: value for name, value in options.items() if value is not None})
    if path is not None:
        _check_path(path, creates=create, is_read_only=settings.is_read_only)
    serve(path, settings, url=url, prefix=PREFIX if prefix is None else prefix, host=host, port=port)


def _check_path(path: Path, *, creates: bool, is_read_only: bool) -> None:
    from likewise.io.places import check_place

    check_place(path, elsewhere="serve supports local directories only; copy it to this machine")
    if not creates and not path.exists():
        raise InvalidInput(
            "does not exist; give a directory of indexes, an index or the output of a run, or create an empty "
            "directory with --create",
            str(path),
        )
    if creates and is_read_only and not path.exists():
        raise InvalidParameter("create", "cannot be combined with --read-only when PATH does not exist")


def _add_key(keys_file: Path | None, wanted: str) -> None:
    from likewise.service.settings import line_of, new_key, read_keys

    if keys_file is None:
        raise click.UsageError("--new-key requires --keys FILE, to which the key is added.")
    name, _, right = wanted.partition(":")
    secret, key = new_key(name, right)
    if keys_file.exists() and any(known.name == name for known in read_keys(keys_file)):
        raise InvalidInput(f"the key {name!r} already exists; choose another name", str(keys_file))
    descriptor = os.open(keys_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8", newline="\n") as file:
        file.write(line_of(key))
    click.echo(secret)
