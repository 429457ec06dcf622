"""Files of fingerprints, sketches and pairs of rows."""
