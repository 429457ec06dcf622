-- Takes one document out; its members were decided anew by the caller, who holds the lock.
-- ARGV: identity, writer, counter, lock token, mark of the state decided on, row, moved rows (4 bytes each), their new leaders (4 bytes), their
-- distances (1 byte), promoted rows (4 bytes), hash of the id (8 bytes). Returns {'ok'|'done'|'late'|'lost'|'replaced', 0}.
local identity, writer, counter, token, mark, row = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local moved, leaders, distances, promoted, hash = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local refused = refusal(identity, writer, counter, token)
if refused then return refused end
-- Nobody else writes under the lock; another mark is that of a server that went back in time.
local state = redis.call('HMGET', meta, 'steps', 'mark')
if state[2] ~= mark then return {'lost', 0} end
remember(writer, counter, 0)
local now_steps, now_mark = advance(state[1], mark, writer, counter)
redis.call('HSET', meta, 'steps', now_steps, 'mark', now_mark)

local function read(of)
  local key, at = place(of)
  local record = redis.call('GETRANGE', key, at, at + RECORD - 1)
  return key, at, record:sub(1, BYTES), record:byte(END + 3)
end
local function write_flags(key, at, flags, away)
  redis.call('SETRANGE', key, at + END + 2, string.char(flags, away))
end

local key, at, fingerprint, flags = read(row)
local row_bytes = pack_row(row)
local distance_byte = redis.call('GETRANGE', key, at + END + 3, at + END + 3):byte()
if has(flags, KEPT) then
  if has(flags, EMPTY) then redis.call('HDEL', meta, 'empty_row') else leave(fingerprint, row_bytes) end
  redis.call('HINCRBY', meta, 'num_kept', -1)
elseif has(flags, STANDS) then
  cut_entry(removed_key(fingerprint), removed_entry(fingerprint, row_bytes))
end
write_flags(key, at, bit.bor(flags, GONE), distance_byte)
cut_entry(prefix .. 'i' .. hash:sub(1, 2), hash:sub(3, 4) .. row_bytes)
if has(flags, SHORT) then redis.call('DEL', prefix .. 's' .. row) end

for from = 1, #promoted, 4 do
  local member_bytes = promoted:sub(from, from + 3)
  local member = unpack_row(member_bytes)
  local key, at, fingerprint, flags = read(member)
  if has(flags, STANDS) and not has(flags, EMPTY) then
    cut_entry(removed_key(fingerprint), removed_entry(fingerprint, member_bytes))
  end
  write_flags(key, at, bit.bor(flags, KEPT, STANDS), 0)
  redis.call('SETRANGE', key, at + BYTES, NO_ROW .. NO_ROW)
  if has(flags, EMPTY) then
    redis.call('HSET', meta, 'empty_row', member)
  else
    enter(fingerprint, member_bytes)
  end
  redis.call('HINCRBY', meta, 'num_kept', 1)
end
-- After the promoted ones: these may be leaders of moved ones.
for i = 1, #moved / 4 do
  local member_bytes = moved:sub(4 * i - 3, 4 * i)
  local leader_bytes = leaders:sub(4 * i - 3, 4 * i)
  local key, at, _, flags = read(unpack_row(member_bytes))
  redis.call('SETRANGE', key, at + BYTES, leader_bytes .. link(unpack_row(leader_bytes), member_bytes))
  write_flags(key, at, flags, distances:byte(i))
end
redis.call('HINCRBY', meta, 'epoch', 1)
redis.call('HINCRBY', meta, 'num_gone', 1)
if redis.call('HEXISTS', meta, 'ttl_s') == 1 then redis.call('ZADD', prefix .. 'gone', row, row) end
return {'ok', 0}
