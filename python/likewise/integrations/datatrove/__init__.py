"""Steps of datatrove pipelines that remove near-duplicates: of a whole collection, or against an index."""

from likewise.errors import MissingExtra

try:
    # The filters of datatrove need more packages than datatrove itself.
    import datatrove.pipeline.filters  # noqa: F401
except ImportError as error:
    raise MissingExtra("datatrove", "likewise.integrations.datatrove") from error

from likewise.integrations.datatrove.filters import (
    LikewiseDedupDecision,
    LikewiseDedupFilter,
    LikewiseDedupTexts,
    LikewiseFilter,
)

__all__ = ["LikewiseDedupDecision", "LikewiseDedupFilter", "LikewiseDedupTexts", "LikewiseFilter"]
