"""The batch pipeline: from texts or files to kept documents and evidence.

README.md describes how its parts work together.
"""
