"""Reading: from inputs to sketched documents whose texts can be read again."""
