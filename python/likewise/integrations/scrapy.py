"""An item pipeline for Scrapy that drops or marks items whose text has a near-duplicate in an index."""

import logging
from typing import Any, Self

from likewise.errors import InvalidInput, InvalidParameter, needs

with needs("scrapy", "likewise.integrations.scrapy"):
    from itemadapter import ItemAdapter
    from scrapy.exceptions import DropItem
    from scrapy.utils.asyncio import run_in_thread

from likewise.index import Verdict
from likewise.service.client.opening import open_index

__all__ = ["LikewisePipeline", "NearDuplicate"]

_LOG = logging.getLogger(__name__)


class NearDuplicate(DropItem):
    """An item that was dropped as a near-duplicate; handlers of the signal ``item_dropped`` get it as `exception`.

    Parameters
    ----------
    verdict : Verdict
        The evidence, in the attribute `verdict`.
    """

    def __init__(self, verdict: Verdict) -> None:
        bits = "" if verdict.distance is None else f", distance {verdict.distance}"
        super().__init__(
            f"{verdict.doc_id} is a near-duplicate of {verdict.kept_id} "
            f"({verdict.measure} {verdict.similarity:.3f}{bits})",
            # Scrapy's own line would contain the item with its text; the pipeline logs one without.
            log_level="NOTSET",
        )
        self.verdict = verdict


class LikewisePipeline:
    """An item pipeline that adds the text of each item to an index, and drops or marks near-duplicates.

    The index is opened and closed with the spider. Calls run in threads, so that the crawl continues meanwhile.
    Each dropped near-duplicate is logged at the level INFO, without its text.

    Parameters
    ----------
    crawler : scrapy.crawler.Crawler
        A crawler with the settings below. Its statistics count ``likewise/new``, ``duplicate``, ``known`` and
        ``no_text``.

    Raises
    ------
    InvalidParameter
        If a setting is missing or invalid.

    Notes
    -----
    The settings are:

    - ``LIKEWISE_INDEX``: directory of the index, created if it does not exist, or the URL of a service (``http://`` or
      ``https://``). Required.
    - ``LIKEWISE_FIELD``: field with the text. Default: ``text``.
    - ``LIKEWISE_ID_FIELD``: field with the id, unique for each text. Default: ``url``.
    - ``LIKEWISE_ACTION``: ``drop`` (default) drops near-duplicates; ``tag`` returns them with their mark.
    - ``LIKEWISE_TAG_FIELD``: field for the mark of each returned item. Default: ``likewise``.
    - ``LIKEWISE_NULLS``: what happens to an item without text: ``fail`` (default), ``keep`` or ``drop``.
    - ``LIKEWISE_RECIPE``: recipe of a new index, a `Recipe` or the name of a preset. Default: ``online``.
    - ``LIKEWISE_COLLECTION``, ``LIKEWISE_API_KEY``: collection and key for a service.

    The mark is a dictionary: `is_new`, `known`, and of a near-duplicate `kept_id`, `measure`, `similarity` and
    `distance`. An item is known if the index already had its id with the same text, for instance from a crawl that was
    killed. It then gets its first verdict again: a known item that is new is returned, because the earlier crawl may
    not have exported it. An id with another text is an error, and Scrapy logs it.
    """

    def __init__(self, crawler: Any) -> None:
        self._stats = crawler.stats
        settings = crawler.settings
        self._place = str(settings.get("LIKEWISE_INDEX") or "")
        self._text_field: str = settings.get("LIKEWISE_FIELD", "text")
        self._id_field: str = settings.get("LIKEWISE_ID_FIELD", "url")
        self._tag_field: str = settings.get("LIKEWISE_TAG_FIELD", "likewise")
        self._action = _choice(settings, "LIKEWISE_ACTION", ("drop", "tag"))
        self._nulls = _choice(settings, "LIKEWISE_NULLS", ("fail", "keep", "drop"))
        self._recipe = settings.get("LIKEWISE_RECIPE")
        self._service = {"key": settings.get("LIKEWISE_API_KEY"), "collection": settings.get("LIKEWISE_COLLECTION")}
        if not self._place:
            raise InvalidParameter("LIKEWISE_INDEX", "set it to the directory of an index or the URL of a service")
        self._index: Any = None

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Return the pipeline of a crawler; Scrapy calls it."""
        return cls(crawler)

    def open_spider(self) -> None:
        """Open the index."""
        self._index = open_index(self._place, self._recipe, **self._service)

    def close_spider(self) -> None:
        """Close the index."""
        if self._index is not None:
            self._index.close()

    async def process_item(self, item: Any) -> Any:
        """Return an item with its mark, or raise `NearDuplicate`."""
        fields = ItemAdapter(item)
        text = fields.get(self._text_field)
        if text is None:
            self._stats.inc_value("likewise/no_text")
            if self._nulls == "fail":
                raise InvalidInput(f"no field {self._text_field!r} in the item {_found(fields)}; set LIKEWISE_FIELD")
            if self._nulls == "drop":
                raise DropItem(f"no text in the field {self._text_field!r}")
            return item
        doc_id = fields.get(self._id_field)
        if doc_id is None:
            raise InvalidInput(f"no field {self._id_field!r} in the item {_found(fields)}; set LIKEWISE_ID_FIELD")
        verdict = await run_in_thread(self._index.check_and_add, str(doc_id), text)
        self._stats.inc_value("likewise/new" if verdict.is_new else "likewise/duplicate")
        if not verdict.added:
            self._stats.inc_value("likewise/known")
        if not verdict.is_new and self._action == "drop":
            dropped = NearDuplicate(verdict)
            _LOG.info("Dropped: %s", dropped)
            raise dropped
        mark = {"is_new": verdict.is_new, "known": not verdict.added}
        if not verdict.is_new:
            mark |= {name: getattr(verdict, name) for name in ("kept_id", "measure", "similarity", "distance")}
        try:
            fields[self._tag_field] = mark
        except KeyError as error:
            kind = type(item).__name__
            raise InvalidInput(f"{kind} has no field {self._tag_field!r}; add it, or set LIKEWISE_TAG_FIELD") from error
        return item


def _found(fields: ItemAdapter) -> str:
    return f"(found: {', '.join(name for name, value in fields.items() if value is not None)})"


def _choice(settings: Any, name: str, allowed: tuple[str, ...]) -> str:
    value: str = settings.get(name, allowed[0])
    if value not in allowed:
        raise InvalidParameter(name, f"must be one of {', '.join(allowed)}, not {value!r}")
    return value
