-- The rows that a leader removed and that are not gone, newest first, 4 bytes each. ARGV: row, watermark.
local found = {}
local watermark = tonumber(ARGV[2])
local key, at = place(tonumber(ARGV[1]))
local next_bytes = redis.call('GETRANGE', key, at + BYTES, at + BYTES + 3)
while next_bytes ~= '' and next_bytes ~= NO_ROW do
  local row = unpack_row(next_bytes)
  key, at = place(row)
  local record = redis.call('GETRANGE', key, at, at + RECORD - 1)
  if row >= watermark and not has(record:byte(END + 3), GONE) then found[#found + 1] = next_bytes end
  next_bytes = record:sub(BYTES + 5, BYTES + 8)
end
return table.concat(found)
