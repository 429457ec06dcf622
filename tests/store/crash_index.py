"""The index of the crash tests: so small a tail that segments are built and merged all the time."""

import likewise
from tests.recipes import RECIPES


def open_small(path, recipe_name):
    """Open the index at `path`, making it where there is none."""
    return likewise.Index(path, RECIPES[recipe_name].replace(keep="first"))
