"""Readers and writers of all formats, and the life cycle of an output directory."""
