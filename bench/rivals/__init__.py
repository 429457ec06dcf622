"""Other near-duplicate detectors, each used as its authors advise, with one small interface (protocol.py)."""
