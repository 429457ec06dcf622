"""An index with so few rows in memory that segments are built and merged all the time."""

import functools
from unittest import mock

import likewise
from likewise import _native
from tests.recipes import RECIPES

FLUSH_ROWS = 40


def open_small(path, recipe_name, **options):
    """Open the index at `path`, or create it if it does not exist."""
    made = functools.partial(_native.OnlineIndex, flush_rows=FLUSH_ROWS)
    made.describe = _native.OnlineIndex.describe
    with mock.patch.object(_native, "OnlineIndex", made):
        return likewise.Index(path, RECIPES[recipe_name].replace(keep="first"), **options)
