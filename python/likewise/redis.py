"""An index on a Redis or Valkey server or cluster: the public name of `likewise.index.redis`."""

from likewise.index.redis import RedisIndex

__all__ = ["RedisIndex"]
