"""Commands that ask questions between two collections."""
