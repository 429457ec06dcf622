"""Candidate searches: which documents are compared. One module for each kind of search."""
