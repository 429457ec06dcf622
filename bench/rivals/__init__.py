"""Other people's near-duplicate detectors, each used as its authors advise, behind one small protocol (protocol.py)."""
