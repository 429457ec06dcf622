-- Makes the index unless it is there. ARGV: field, value, ... of its description. Returns all of the description.
if redis.call('EXISTS', meta) == 0 then
  local mark = string.rep('0', MARK)
  redis.call('HSET', meta, 'rows', 0, 'epoch', 0, 'watermark', 0, 'purged', 0, 'num_kept', 0, 'num_gone', 0,
    'steps', 0, 'mark', mark, unpack(ARGV))
  redis.call('SET', prefix .. 'marks', mark)
end
return redis.call('HGETALL', meta)
