-- Makes the index unless it is there. ARGV: field, value, ... of its description. Returns all of the description.
if redis.call('EXISTS', meta) == 0 then
  redis.call('HSET', meta, 'rows', 0, 'epoch', 0, 'watermark', 0, 'purged', 0, 'num_kept', 0, 'num_gone', 0, unpack(ARGV))
end
return redis.call('HGETALL', meta)
