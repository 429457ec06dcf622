"""Views of results: finished runs and indexes, with their groups, texts, thresholds and labels.

A view uses a run's evidence and inputs, not its internal state: it sorts `removed.parquet` into a SQLite file of
groups, which can be deleted at any time, and reads texts from the inputs by the offsets in the evidence. Python's own
SQLite is enough, since no index opens that file. Words are cut by the feature rules before they are indexed, so that
search works for Chinese as for English.
"""
