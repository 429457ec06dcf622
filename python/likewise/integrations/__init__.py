"""Entry points in other libraries, one module for each, imported only when used.

Each module adapts the public functions (`likewise.dedup`, `likewise.pairs`, `likewise.Index`) to the conventions of one
library and adds no other methods. Each has an extra with its name, for example
``pip install likewise[datatrove]``.
"""
