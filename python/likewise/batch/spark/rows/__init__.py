"""Rows of Spark tables: columns, numbers, order, cells of buckets."""
