"""What a run leaves: kept rows, sketches, summary."""
