"""The option that limits memory."""

import click

MEMORY = click.option(
    "--memory",
    metavar="SIZE",
    help="Memory limit such as 2GB (at least 256MB). Data that does not fit is written to disk. Results do not change, "
    "except that rarity weights may be approximate, which the summary reports.  [default: no limit]",
)
