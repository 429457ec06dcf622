"""Which documents are compared: one module for each kind of search."""
