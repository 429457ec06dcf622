"""Budgets of a run and their use: memory and time."""
