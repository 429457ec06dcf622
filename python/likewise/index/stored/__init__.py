"""Documents of an index with their verdicts: read from an index or a file, and written to a file."""
