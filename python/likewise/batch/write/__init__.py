"""Outputs of a run: kept rows, groups, sketches, summary."""
