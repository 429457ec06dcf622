"""Sphinx settings: `make docs`."""

project = "Likewise"
author = "The Likewise authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_click"]
html_theme = "furo"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
autodoc_typehints = "none"
# Large, and only its names are needed here.
autodoc_mock_imports = ["pyspark"]
numpydoc_show_class_members = False
# Types in NumPy sections are prose ("ndarray of shape (n,), uint64"), not cross references.
nitpicky = False
