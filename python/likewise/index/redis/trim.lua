-- Takes expired entries out of packed buckets and releases the memory that APPEND reserves.
-- ARGV: pairs of key and length of an entry. Returns how many entries went.
local watermark, gone = tonumber(redis.call('HGET', meta, 'watermark')), 0
for i = 1, #ARGV, 2 do
  local key, length = ARGV[i], tonumber(ARGV[i + 1])
  local packed = redis.call('GET', key) or ''
  local left = {}
  for from = 1, #packed, length do
    local entry = packed:sub(from, from + length - 1)
    if unpack_row(entry:sub(-4)) >= watermark then left[#left + 1] = entry else gone = gone + 1 end
  end
  if #left > 0 then redis.call('SET', key, table.concat(left)) else redis.call('DEL', key) end
end
return gone
