"""``likewise index export``: write all documents with their verdicts."""

import shutil
import sys
from pathlib import Path

import click

from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.declared import option


@click.command("export", short_help="Write all documents and verdicts to a file.")
@click.argument("places", nargs=-1, metavar="PATH")
@option("-o --out FILE", "Output file.  [default: standard output]", default="-", show_default=False)
@target_options
def command(places: tuple[str, ...], out: str, url: str | None, prefix: str | None) -> None:
    """Write each document as one JSON object per line, in order of arrival: id, verdict, evidence and stored data.

    A FILE that ends in .parquet also contains the recipe and everything that verdicts depend on: `likewise index
    import` creates an index from it.
    """
    from likewise.io.output.scratch import scratch_directory

    path, _ = split_target(places, url)
    with open_index(path, url, prefix, read_only=True) as index:
        if out != "-":
            index.export(Path(out))
            return
        with scratch_directory() as work:
            whole = work / "export.jsonl"
            index.export(whole)
            with whole.open("rb") as lines:
                shutil.copyfileobj(lines, sys.stdout.buffer)
