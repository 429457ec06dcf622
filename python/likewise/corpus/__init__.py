"""Comparison of two collections, such as which references each query contains."""

from likewise.batch.write.summary import leak_table
from likewise.corpus.copying import Copies, find_copies
from likewise.corpus.decontaminate_files import decontaminate_files
from likewise.corpus.decontaminating import Decontamination, decontaminate, decontamination_line, set_table
from likewise.corpus.items import ContainmentRules
from likewise.corpus.leak_files import leak_files, splits_named
from likewise.corpus.leaking import Leaks, leaks
from likewise.corpus.matching import match, match_files

__all__ = [
    "ContainmentRules",
    "Copies",
    "Decontamination",
    "Leaks",
    "decontaminate",
    "decontaminate_files",
    "decontamination_line",
    "find_copies",
    "leak_files",
    "leak_table",
    "leaks",
    "match",
    "match_files",
    "set_table",
    "splits_named",
]
