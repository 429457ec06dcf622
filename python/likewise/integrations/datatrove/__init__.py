"""Steps of datatrove pipelines that remove near-duplicates: of a whole collection, or against an index."""

from likewise.errors import needs

with needs("datatrove", "likewise.integrations.datatrove"):
    # The filters of datatrove need more packages than datatrove itself.
    import datatrove.pipeline.filters  # noqa: F401

from likewise.integrations.datatrove.filters import (
    LikewiseDedupDecision,
    LikewiseDedupFilter,
    LikewiseDedupTexts,
    LikewiseFilter,
)

__all__ = ["LikewiseDedupDecision", "LikewiseDedupFilter", "LikewiseDedupTexts", "LikewiseFilter"]
