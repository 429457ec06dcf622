"""From candidates to verdicts: measures, decisions, thresholds."""
