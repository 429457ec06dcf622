"""The web pages of the service: groups, side-by-side documents, thresholds and labels of indexes and finished runs."""

from likewise.service.page.routes import add_page, not_found

__all__ = ["add_page", "not_found"]
