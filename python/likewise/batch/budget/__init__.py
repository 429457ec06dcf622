"""What a run may use, and what it used: memory and time."""
