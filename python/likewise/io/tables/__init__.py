"""Column formats: Arrow, Parquet, dataset directories, data in memory."""
