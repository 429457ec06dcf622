"""Runs over files: options, context, reading, and the output directory from its claim to its summary."""
