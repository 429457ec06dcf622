"""``likewise sketch``: fingerprints or signatures."""

from pathlib import Path
from typing import Any

import click

from likewise.cli.options.commands import LongCommand, option
from likewise.cli.options.recipe import INPUTS, QUIET, input_options, sketch_options, take_recipe, take_run
from likewise.errors import InvalidInput, counted
from likewise.progress import shown


@click.command("sketch", cls=LongCommand)
@INPUTS
@option("-o --out OUT", "Output file (.parquet or .npy).", required=True)
@sketch_options
@input_options
@QUIET
def command(inputs: tuple[str, ...], out: str, quiet: bool, **options: Any) -> None:
    """Write SimHash fingerprints or MinHash signatures.

    A Parquet file has the columns row, doc_id, sketch, is_empty and num_features, and stores the recipe in its
    metadata; fingerprints are signed 64-bit integers with the same bits. A .npy file contains only the array; its
    recipe is written to OUT.recipe.json.

    \b
    Examples:
      likewise sketch articles.jsonl -o sketches.parquet --method simhash --bits 128
      likewise sketch articles.jsonl -o signatures.npy --num-slots 256
    """
    from likewise.batch.pair_files import sketch_files
    from likewise.io.output.whole import WholeFile
    from likewise.io.remote import file_for

    if Path(out).suffix not in (".parquet", ".npy"):
        raise InvalidInput("unknown file type; use the extension .parquet or .npy", str(out))
    recipe, run = take_recipe(options), take_run(options)
    with file_for(out) as local:
        # An unwritable place fails here, before the work.
        WholeFile(local)
        with shown(not quiet) as report:
            sketches = sketch_files(inputs, recipe, run=run, output=local, progress=report)
        sketches.write(local)
    if not quiet:
        click.echo(f"{counted(len(sketches), 'sketch', 'sketches')}, sketch_id {recipe.sketch_id}", err=True)
