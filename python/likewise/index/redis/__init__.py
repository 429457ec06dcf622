"""An index on a Redis or Valkey server or cluster; `likewise.redis` has the public name."""
