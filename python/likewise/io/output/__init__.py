"""Outputs of a run: its directory, parts, evidence, pairs, summaries. Each is complete under its name or absent."""
