"""The definitions page as slow, plain Python: independent of the package, standard library only."""
