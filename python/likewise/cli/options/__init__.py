"""Shared parts of commands: options, progress, terminal output."""
