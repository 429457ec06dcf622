"""Formats of columns: Arrow, Parquet, dataset directories, data in memory."""
