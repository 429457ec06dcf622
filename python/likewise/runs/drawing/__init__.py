"""Charts, texts and fingerprints as HTML and SVG, safe for any document content.

Charts and differences are functions that return markup, used by the report and the templates of the page. The function
that joins markup escapes everything else and makes hidden characters visible.
"""
