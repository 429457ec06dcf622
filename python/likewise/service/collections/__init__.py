"""What a service holds: collections, and how requests to one share its index."""
