"""An index on a Redis or Valkey server: the public name of `likewise.index.redis`."""

from likewise.index.redis import RedisIndex

__all__ = ["RedisIndex"]
