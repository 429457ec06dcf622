"""Files on Spark: one task reads each file, one task writes each kept file, and one task writes the evidence."""
