"""Web archives, and the text of HTML pages."""
