"""Commands that remove parts of documents."""
