"""Readers and writers: one of each for a format, and the life of an output directory."""
