"""What an error of the service looks like."""

from likewise.service.problems import TYPES

PAGES = "/v1/collections/pages"


def problem(answer, kind, field=...):
    """The answer is this problem, in the one shape."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    shape = answer.json()
    assert list(shape) == ["type", "title", "detail", "field"]
    assert (shape["type"], answer.status_code) == (kind, TYPES[kind].status), shape
    assert shape["title"] == TYPES[kind].title
    if field is not ...:
        assert shape["field"] == field, shape
    return shape
