"""The option that bounds memory."""

import click

MEMORY = click.option(
    "--memory",
    metavar="SIZE",
    help="Keep memory below this, as 2GB, at least 256MB; what does not fit lies on disk. No result changes.  "
    "[default: no bound]",
)
