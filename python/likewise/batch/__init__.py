"""The batch pipeline: from texts or files to the documents worth keeping, with evidence.

README.md describes how its parts work together.
"""
