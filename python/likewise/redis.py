"""An index on a Redis or Valkey server or cluster, shared by many clients; needs ``pip install "likewise[redis]"``.

Examples
--------
>>> from likewise.redis import RedisIndex  # doctest: +SKIP
>>> with RedisIndex("redis://localhost:6379/0") as seen:  # doctest: +SKIP
...     verdict = seen.check_and_add("doc-1", "the text of a page")
"""

from likewise.index.redis.index import RedisIndex

__all__ = ["RedisIndex"]
