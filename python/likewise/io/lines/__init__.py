"""Formats of lines: plain text, JSON Lines, CSV and TSV."""
