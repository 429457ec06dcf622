"""Commands of ``likewise index`` that maintain the files of an index."""
