"""``likewise weights``: a table of feature weights by rarity."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli.options.commands import WRITE, LongCommand, flag, option
from likewise.cli.options.recipe import INPUTS, QUIET, feature_options, input_options, take_recipe, take_run
from likewise.errors import InvalidParameter, counted, parse_size
from likewise.progress import shown


@click.command("weights", cls=LongCommand)
@INPUTS
@option("-o --out W", "Output file.", WRITE, required=True)
@option(
    "--memory SIZE",
    "Memory limit. Counts are exact up to one distinct feature per 48 bytes; beyond that a counting sketch may "
    "overestimate them.",
    default="2GB",
)
@feature_options
@partial(input_options, without=("duplicate_ids",))
@QUIET
@flag("--json", "Print counts as JSON to stdout.", to="as_json")
def command(inputs: tuple[str, ...], out: Path, memory: str, quiet: bool, as_json: bool, **options: Any) -> None:
    """Count document frequencies and write a weight table.

    A feature found in df of n documents has the weight round(15 ln(n/df) / ln n), at least 1; n is at least 20. An
    unknown feature has 15. Documents with equal feature sets count once. The table records its tokens, shingle and
    seed, so that --weights TABLE needs no other options. Runs, sketches and indexes made with a table store its
    identity and reject other tables.

    \b
    Examples:
      likewise weights articles.jsonl -o articles.weights
      likewise dedup new.jsonl -o out --weights articles.weights
      likewise sketch notes.jsonl -o notes.parquet --method simhash --weights notes.weights
    """
    from likewise.batch.read.ingest import doubts_of, weigh_files
    from likewise.io.output.whole import WholeFile
    from likewise.recipe.presets import with_preset

    if str(out) == "-":
        raise InvalidParameter(
            "out", "a weight table is binary and cannot be written to standard output; choose a file"
        )
    is_of_recipe = options.get("recipe_file") is not None
    method = (
        with_preset(options["preset"] or "online", {})["method"] if options["method"] is None else options["method"]
    )
    recipe = take_recipe(
        options if is_of_recipe else options | {"weights": "log-count-idf" if method == "simhash" else "idf"}
    )
    # An unwritable place fails here, before the work.
    WholeFile(out)
    with shown(not quiet) as report:
        table = weigh_files(
            inputs,
            recipe,
            run=take_run(options),
            memory_bytes=parse_size("memory", memory),
            output=out,
            progress=report,
        )
    table.write(out)
    if quiet:
        # Unless `quiet`, they are shown with the progress.
        for doubt in doubts_of(table):
            click.echo(f"warning: {doubt}", err=True)
    if as_json:
        click.echo(json.dumps(table.to_dict()))
    elif not quiet:
        features = "approximate counts"
        if table.num_features is not None and table.num_listed is not None:
            features = counted(table.num_features, "feature")
            features += f", of which {counted(table.num_listed, 'weighs', 'weigh')} less than 15"
        click.echo(
            f"{counted(table.num_documents, 'document')} with distinct feature sets; {features}; "
            f"weights {table.weights_id}",
            err=True,
        )
