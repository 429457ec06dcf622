"""Hamming search on Spark: joins and pairs of fingerprints, and the search of SimHash runs.

Fingerprints are laid out for search once for each Python worker, from files in the checkpoint directory, and others
stream past them. No fingerprint passes through the driver.
"""
