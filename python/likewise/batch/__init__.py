"""The batch pipeline: from texts or files to the documents worth keeping, with evidence.

README.md describes how its parts work together.
"""

from likewise.batch.against.index import IndexUse
from likewise.batch.files import dedup_files, stream_dedup
from likewise.batch.options import FileRun
from likewise.batch.pair_files import pair_files, sketch_files
from likewise.batch.texts import Deduplication, dedup, pairs
from likewise.batch.weights import weigh_files

__all__ = [
    "Deduplication",
    "FileRun",
    "IndexUse",
    "dedup",
    "dedup_files",
    "pair_files",
    "pairs",
    "sketch_files",
    "stream_dedup",
    "weigh_files",
]
