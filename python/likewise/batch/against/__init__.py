"""What is a run compared with besides its own documents? Earlier runs, files, an index."""
