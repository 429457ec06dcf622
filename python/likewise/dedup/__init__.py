"""The batch pipeline: from texts or files to the documents worth keeping, with evidence.

The only room that knows more than one stage.
"""

from likewise.dedup.file_run import FileRun
from likewise.dedup.file_weights import weigh_files
from likewise.dedup.files import dedup_files, stream_dedup
from likewise.dedup.indexed import IndexUse
from likewise.dedup.memory import Deduplication, dedup, pairs
from likewise.dedup.pair_files import pair_files, sketch_files

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
