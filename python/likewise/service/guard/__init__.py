"""What stands before the operations: keys, limits, sizes of requests."""
