-- The state that a caller decides on; what is too old is forgotten first.
-- ARGV: now_s ('' for the server's clock). Returns {identity, rows, epoch, watermark, empty_row or '-1', kept documents ever less those removed}.
local state = redis.call('HMGET', meta, 'identity', 'rows', 'epoch', 'watermark', 'empty_row', 'ttl_s', 'purged', 'num_kept')
local watermark = tonumber(state[4])
local ttl = tonumber(state[6])
if ttl then
  local rows, times = tonumber(state[2]), prefix .. 'times'
  local now = tonumber(ARGV[1] ~= '' and ARGV[1] or redis.call('TIME')[1])
  local function first_row_since(second)
    return tonumber(redis.call('ZRANGEBYSCORE', times, second, '+inf', 'LIMIT', 0, 1)[1] or rows)
  end
  local since = first_row_since(now - ttl)
  if since > watermark then
    watermark = since
    -- On a full server nothing is stored, and all that only asks goes on.
    redis.pcall('HSET', meta, 'watermark', watermark)
    redis.call('ZREMRANGEBYSCORE', prefix .. 'gone', '-inf', '(' .. watermark)
  end
  -- Members may outlive their leader by one more ttl and still name it: only then its record goes.
  local purged = tonumber(state[7])
  local last = math.min(math.floor(first_row_since(now - 2 * ttl) / ROWS), purged + MAX_PURGED)
  for chunk = purged, last - 1 do
    local key = prefix .. 'd' .. chunk
    for i = 0, ROWS - 1 do
      local flags = redis.call('GETRANGE', key, i * RECORD + END + 2, i * RECORD + END + 2)
      if #flags == 1 and has(flags:byte(), SHORT) then redis.call('DEL', prefix .. 's' .. (chunk * ROWS + i)) end
    end
    redis.call('DEL', key)
  end
  if last > purged then redis.pcall('HSET', meta, 'purged', last) end
  local oldest = redis.call('ZREVRANGEBYSCORE', times, now - 2 * ttl, '-inf', 'LIMIT', 0, 1, 'WITHSCORES')[2]
  if oldest then redis.call('ZREMRANGEBYSCORE', times, '-inf', '(' .. oldest) end
end
return {state[1], state[2], state[3], tostring(watermark), state[5] or '-1', state[8]}
