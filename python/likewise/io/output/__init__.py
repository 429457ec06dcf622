"""What does a run write? Its directory, parts, evidence, pairs, summaries; each complete under its name or absent."""
