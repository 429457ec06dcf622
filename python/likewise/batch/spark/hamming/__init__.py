"""Hamming search on Spark: joins and pairs of fingerprints, and the search of SimHash runs.

Each Python worker builds search tables of stored fingerprints, from files in the checkpoint directory, and searches
the other fingerprints in them as a stream. No fingerprint passes through the driver.
"""
