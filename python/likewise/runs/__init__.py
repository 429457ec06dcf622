"""What is done with a finished run: compare two, look at one, report, audit."""
