"""All matches of some documents, by exact comparison: what a run is held against."""
