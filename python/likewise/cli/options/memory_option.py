"""The option that bounds memory."""

import click

MEMORY = click.option(
    "--memory",
    metavar="SIZE",
    help="Memory limit such as 2GB (at least 256MB). The rest goes to disk. Results do not change, except that rarity "
    "weights may be approximate; the summary reports it.  [default: no limit]",
)
