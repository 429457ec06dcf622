"""What a run writes: its directory, parts, evidence, pairs, summaries; complete under their name or not at all."""
