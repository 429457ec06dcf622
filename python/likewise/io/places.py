"""Names that cannot be directories on this machine, detected before one is created."""

import errno
import os
import re
from pathlib import Path

from likewise.errors import InvalidInput

# A drive of Windows has one letter. Of two slashes a Path keeps one.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]{1,2}(.*)", re.DOTALL)
_OF_AN_INDEX = (
    "an index is a local directory or is stored on a Redis server, not in an object store; for Redis, use --url "
    "on the command line or likewise.redis.RedisIndex in Python"
)


def check_place(path: str | os.PathLike[str], *, elsewhere: str = _OF_AN_INDEX) -> None:
    """Raise InvalidInput if a path can be no directory: it is an address such as ``s3://b/x``, or a link to nothing.

    Parameters
    ----------
    path : str or path
        A directory that is there or may be made; a Path of an address is recognized too.
    elsewhere : str
        What to say of an address.
    """
    name = os.fspath(path)
    address = _ADDRESS.fullmatch(name)
    # Where somebody has a directory `s3:`, its name is as good as any.
    if address is not None and not Path(f"{address[1]}:").is_dir():
        if address[1].lower() == "file":
            raise InvalidInput("give the path without file://", name)
        raise InvalidInput(elsewhere, f"{address[1]}://{address[2]}")
    for place in (Path(name), *Path(name).parents):
        if place.is_symlink() and _leads_nowhere(place):
            raise InvalidInput(
                f"broken link to {place.readlink()}; delete the link, create its target, or choose another path",
                str(place),
            )


def _leads_nowhere(link: Path) -> bool:
    try:
        link.stat()
    except FileNotFoundError:
        return True
    except OSError as error:
        return error.errno == errno.ELOOP
    return False
