"""Files on Spark: read by one task each, kept files written by one task each, the evidence by one."""
