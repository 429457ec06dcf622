"""Work on finished runs: compare, view, report, audit."""
