"""What is checked before an operation runs? Keys, limits, sizes of requests."""
