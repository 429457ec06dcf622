"""Commands of ``likewise index`` that look after the files of an index."""
