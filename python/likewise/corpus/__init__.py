"""Questions between two collections, such as which references each query contains."""

from likewise.corpus.leak_files import leak_files, splits_named
from likewise.corpus.leaking import Leaks, leak_table, leaks
from likewise.corpus.matching import match, match_files

__all__ = ["Leaks", "leak_files", "leak_table", "leaks", "match", "match_files", "splits_named"]
