"""Commands that compare two collections."""
