-- The state that a caller decides on; what is too old is forgotten first.
-- ARGV: now_s ('' for the server's clock), writer, steps and mark that the caller saw before ('' for none).
-- Returns {identity, rows, epoch, watermark, empty_row or '-1', kept documents ever less those removed, steps, mark,
-- what is remembered of the writer or '', whether the history went through the given mark}.
local state = redis.call('HMGET', meta, 'identity', 'rows', 'epoch', 'watermark', 'empty_row', 'ttl_s', 'purged',
  'num_kept', 'steps', 'mark')
local watermark = tonumber(state[4])
local ttl = tonumber(state[6])
if ttl then
  local rows = tonumber(state[2])
  local now = tonumber(ARGV[1] ~= '' and ARGV[1] or redis.call('TIME')[1])
  -- The first row from `low` on that came at that second or later, by bisection: arrivals never fall.
  local since = watermark
  if since < rows and arrival(since) < now - ttl then
    local low, high = since, rows
    while high - low > 1 do
      local middle = math.floor((low + high) / 2)
      if arrival(middle) < now - ttl then low = middle else high = middle end
    end
    since = high
  end
  -- On a full server, or a replica, nothing is stored, and all that only asks goes on.
  local stored = since > watermark and redis.pcall('HSET', meta, 'watermark', since)
  watermark = since
  local is_writable = type(stored) ~= 'table'
  if stored and is_writable then redis.call('ZREMRANGEBYSCORE', prefix .. 'gone', '-inf', '(' .. watermark) end
  -- Members may outlive their leader by one more ttl and still name it: only then its record goes.
  local purged = tonumber(state[7])
  local last = purged
  while last < purged + MAX_PURGED and (last + 1) * ROWS <= rows and arrival((last + 1) * ROWS - 1) < now - 2 * ttl do
    last = last + 1
  end
  if last > purged and is_writable then
    is_writable = type(redis.pcall('HSET', meta, 'purged', last)) ~= 'table'
  end
  for chunk = purged, is_writable and last - 1 or -1 do
    local key = prefix .. 'd' .. chunk
    for i = 0, ROWS - 1 do
      local flags = redis.call('GETRANGE', key, i * RECORD + END + 2, i * RECORD + END + 2)
      if #flags == 1 and has(flags:byte(), SHORT) then redis.call('DEL', prefix .. 's' .. (chunk * ROWS + i)) end
    end
    redis.call('DEL', key)
  end
end
return {state[1], state[2], state[3], tostring(watermark), state[5] or '-1', state[8], state[9], state[10],
  redis.call('HGET', prefix .. 'writers', ARGV[2]) or '', ARGV[3] ~= '' and follows(ARGV[3], ARGV[4]) and 1 or 0}
