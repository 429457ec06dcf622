"""Questions between two collections, such as which references each query contains."""

from likewise.corpus.matching import match, match_files

__all__ = ["match", "match_files"]
