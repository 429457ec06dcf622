"""The form of the service's errors."""

from likewise.service.problems import TYPES

PAGES = "/v1/collections/pages"


def problem(answer, kind, field=...):
    """Check that the answer is this problem, in the common form."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    shape = answer.json()
    assert list(shape) == ["type", "title", "detail", "field"]
    assert (shape["type"], answer.status_code) == (kind, TYPES[kind].status), shape
    assert shape["title"] == TYPES[kind].title
    if field is not ...:
        assert shape["field"] == field, shape
    return shape
