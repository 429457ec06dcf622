"""Documents from outside a run that its documents are compared with: earlier runs, files, an index."""
