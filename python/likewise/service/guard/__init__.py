"""Checks before an operation runs: keys, limits, and sizes of requests."""
