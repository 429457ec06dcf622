"""Transformation for LlamaIndex that drops or marks near-duplicate nodes."""

from collections.abc import Sequence
from typing import Any

from likewise.errors import needs

with needs("llama-index", "likewise.integrations.llama_index"):
    from llama_index.core.schema import BaseNode, MetadataMode, TransformComponent

from pydantic import PrivateAttr

from likewise.integrations.chunks import TAGS, ChunkRules

__all__ = ["LikewiseTransform"]


class LikewiseTransform(TransformComponent):
    """Drops or marks near-duplicate nodes, within their batch or against an index; for an ``IngestionPipeline``.

    Parameters
    ----------
    **rules
        `recipe`, `index`, `add`, `action`, `collection` and `key`, see
        :class:`likewise.integrations.chunks.ChunkRules`.

    Notes
    -----
    The text of a node is compared without its metadata. Marks are excluded from embeddings and from the input of
    language models. With an index in a directory, the pipeline must run in one process (``num_workers=1``).
    """

    _rules: ChunkRules = PrivateAttr()

    def __init__(self, **rules: Any) -> None:
        super().__init__()
        self._rules = ChunkRules(**rules)

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Return the kept nodes, in their order.

        With `action` ``tag``, return all nodes with ``likewise_is_new`` in their metadata; near-duplicates also have
        ``likewise_kept_id``, ``likewise_measure`` and ``likewise_similarity``.
        """
        rules = self._rules
        texts = [node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]
        tags = rules.tags(texts, [node.node_id for node in nodes])
        stay = [(node, tag) for node, tag in zip(nodes, tags, strict=True) if rules.stays(tag)]
        return [node if rules.action == "drop" else _tagged(node, tag) for node, tag in stay]


def _tagged(node: BaseNode, tags: dict[str, Any] | None) -> BaseNode:
    hidden = {
        name: [*getattr(node, name), *(tag for tag in TAGS if tag not in getattr(node, name))]
        for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
    }
    return node.model_copy(update={"metadata": node.metadata | (tags or {}), **hidden})
