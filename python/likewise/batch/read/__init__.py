"""From inputs to sketched documents that can be read again."""
