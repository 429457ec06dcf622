"""All matches of some documents, by exact comparison: the reference for judging a run."""
