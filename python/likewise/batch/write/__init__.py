"""What does a run write? Kept rows, sketches, summary."""
