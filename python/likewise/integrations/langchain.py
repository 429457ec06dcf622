"""Document transformer and compressor for LangChain that drop or mark near-duplicate documents."""

from collections.abc import Sequence
from typing import Any

from likewise.errors import needs

with needs("langchain", "likewise.integrations.langchain"):
    from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document

from pydantic import PrivateAttr

from likewise.integrations.chunks import ChunkRules

__all__ = ["LikewiseCompressor", "LikewiseTransformer"]


class LikewiseTransformer(BaseDocumentTransformer):
    """Drops or marks near-duplicate documents, within their batch or against an index; for use after a splitter.

    Parameters
    ----------
    **rules
        `recipe`, `index`, `add`, `action`, `collection` and `key`, see
        :class:`likewise.integrations.chunks.ChunkRules`.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> texts = ["one fine day in may we went out", "something else entirely", "One fine day in May we went out!"]
    >>> documents = [Document(text, id=str(number)) for number, text in enumerate(texts)]
    >>> [document.id for document in LikewiseTransformer(recipe="online").transform_documents(documents)]
    ['0', '1']
    """

    def __init__(self, **rules: Any) -> None:
        self._rules = ChunkRules(**rules)

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """Return the kept documents, in their order. The given documents are not changed.

        With `action` ``tag``, return all documents with ``likewise_is_new`` in their metadata; near-duplicates also
        have ``likewise_kept_id``, ``likewise_measure`` and ``likewise_similarity``.
        """
        return _transformed(self._rules, documents)


class LikewiseCompressor(BaseDocumentCompressor):
    """Drops or marks near-duplicates among retrieved documents, except the best-ranked document of each group.

    Parameters
    ----------
    **rules
        As for :class:`LikewiseTransformer`.
    """

    _rules: ChunkRules = PrivateAttr()

    def __init__(self, **rules: Any) -> None:
        super().__init__()
        self._rules = ChunkRules(**rules)

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> list[Document]:
        """Return the kept documents, in their order."""
        return _transformed(self._rules, documents)


def _transformed(rules: ChunkRules, documents: Sequence[Document]) -> list[Document]:
    tags = rules.tags([document.page_content for document in documents], [document.id for document in documents])
    stay = [(document, tag) for document, tag in zip(documents, tags, strict=True) if rules.stays(tag)]
    if rules.action == "drop":
        return [document for document, _ in stay]
    return [document.model_copy(update={"metadata": document.metadata | (tag or {})}) for document, tag in stay]
