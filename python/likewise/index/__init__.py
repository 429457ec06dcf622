"""What an index answers, whatever it is kept in."""
