"""Component for Haystack that drops or marks near-duplicate documents."""

import dataclasses
from typing import Any, Self

from likewise.errors import InvalidParameter, needs

with needs("haystack", "likewise.integrations.haystack"):
    from haystack import Document, component, default_from_dict, default_to_dict

from likewise.integrations.chunks import ChunkRules
from likewise.recipe.recipe import Recipe

__all__ = ["LikewiseDeduplicator"]


@component
class LikewiseDeduplicator:
    """Drops or marks near-duplicate documents, within their batch or against an index.

    Parameters
    ----------
    **rules
        `recipe`, `index`, `add`, `action` and `collection`, see :class:`likewise.integrations.chunks.ChunkRules`. A
        serialized pipeline stores the recipe by its fields. A `key` of a service cannot be stored.
    """

    def __init__(self, **rules: Any) -> None:
        self._given = rules
        self._rules = ChunkRules(**rules)

    def to_dict(self) -> dict[str, Any]:
        """Return the component as JSON values, for Haystack."""
        given = dict(self._given)
        if given.get("key") is not None:
            raise InvalidParameter("key", "an API key is not stored with a pipeline; set it after loading")
        if isinstance(given.get("recipe"), Recipe):
            given["recipe"] = given["recipe"].to_dict()
        if given.get("index") is not None:
            given["index"] = str(given["index"])
        fields: dict[str, Any] = default_to_dict(self, **given)
        return fields

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create a component from the result of `to_dict`, for Haystack."""
        given = data.get("init_parameters", {})
        if isinstance(given.get("recipe"), dict):
            data = {**data, "init_parameters": given | {"recipe": Recipe.from_dict(given["recipe"])}}
        made: Self = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document], duplicates=list[Document])  # type: ignore[untyped-decorator]
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Return the kept documents and the near-duplicates, each in their order.

        Parameters
        ----------
        documents : list of Document
            Documents without content are not compared and are kept.

        Returns
        -------
        dict
            ``documents`` and ``duplicates``. Near-duplicates have ``likewise_kept_id``, ``likewise_measure`` and
            ``likewise_similarity`` in their metadata. With `action` ``tag`` they are in both lists.
        """
        rules = self._rules
        tags = rules.tags([document.content for document in documents], [document.id for document in documents])
        marked = [
            document if tag is None else dataclasses.replace(document, meta=document.meta | tag)
            for document, tag in zip(documents, tags, strict=True)
        ]
        stay = [row for row, tag in enumerate(tags) if rules.stays(tag)]
        shown = documents if rules.action == "drop" else marked
        duplicates = [one for one, tag in zip(marked, tags, strict=True) if tag and not tag["likewise_is_new"]]
        return {"documents": [shown[row] for row in stay], "duplicates": duplicates}
