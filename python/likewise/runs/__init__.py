"""What is done with a finished run? Compare two, view one, report, audit."""
