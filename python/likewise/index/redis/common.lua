-- What all scripts share. The names in capitals are set in front of this file (server.py); KEYS[1] is the prefix.
local prefix = KEYS[1]
local meta = prefix .. 'meta'
local NO_ROW = string.char(255, 255, 255, 255)
-- What a document is, one byte of its record.
local KEPT, STANDS, SHORT, EMPTY, GONE = 1, 2, 4, 8, 16

local function pack_row(row) return struct.pack('<I4', row) end
local function unpack_row(bytes) return (struct.unpack('<I4', bytes)) end
local function has(flags, flag) return bit.band(flags, flag) ~= 0 end

-- The key of a row's chunk, and where the row's record begins in it (from 0).
local function place(row) return prefix .. 'd' .. math.floor(row / ROWS), (row % ROWS) * RECORD end

-- When a document came, in seconds since 1970; 0 where its record is gone.
local function arrival(row)
  local key, at = place(row)
  local bytes = redis.call('GETRANGE', key, at + END + 4, at + END + 7)
  return #bytes == 4 and unpack_row(bytes) or 0
end

local function ones_of(word)
  local x = bit.tobit(word)
  x = x - bit.band(bit.rshift(x, 1), 0x55555555)
  x = bit.band(x, 0x33333333) + bit.band(bit.rshift(x, 2), 0x33333333)
  x = bit.band(x + bit.rshift(x, 4), 0x0f0f0f0f)
  return bit.band(x + bit.rshift(x, 8) + bit.rshift(x, 16) + bit.rshift(x, 24), 0xff)
end

local function words_of(fingerprint)
  local words = {}
  for i = 1, BYTES, 4 do words[#words + 1] = (struct.unpack('<I4', fingerprint, i)) end
  return words
end

local function ones(words)
  local sum = 0
  for i = 1, #words do sum = sum + ones_of(words[i]) end
  return sum
end

local function distance(a, b)
  local sum = 0
  for i = 1, #a do sum = sum + ones_of(bit.bxor(a[i], b[i])) end
  return sum
end

-- Takes one entry of fixed length out of a packed string.
local function cut_entry(key, entry)
  local packed = redis.call('GET', key)
  local from = 1
  while packed do
    local at = packed:find(entry, from, true)
    if not at then return end
    if (at - 1) % #entry == 0 then
      local rest = packed:sub(1, at - 1) .. packed:sub(at + #entry)
      if #rest == 0 then redis.call('DEL', key) else redis.call('SET', key, rest) end
      return
    end
    from = at + 1
  end
end

local function block_of(fingerprint, i)
  local at = BLOCKS[i]
  return fingerprint:sub(at + 1, at + 2), fingerprint:sub(1, at) .. fingerprint:sub(at + 3)
end

-- The tables of kept documents.
local function enter(fingerprint, row_bytes)
  if CLASSIC then
    local score = ones(words_of(fingerprint))
    for i = 1, #BLOCKS do
      redis.call('ZADD', prefix .. 'z' .. i .. block_of(fingerprint, i), score, fingerprint)
    end
    local bucket = prefix .. 'f' .. fingerprint:sub(1, 2)
    redis.call('HSET', bucket, fingerprint, (redis.call('HGET', bucket, fingerprint) or '') .. row_bytes)
    return
  end
  for i = 1, #BLOCKS do
    local block, rest = block_of(fingerprint, i)
    redis.call('APPEND', prefix .. 'b' .. i .. block, rest .. row_bytes)
  end
end

local function leave(fingerprint, row_bytes)
  if not CLASSIC then
    for i = 1, #BLOCKS do
      local block, rest = block_of(fingerprint, i)
      cut_entry(prefix .. 'b' .. i .. block, rest .. row_bytes)
    end
    return
  end
  local bucket = prefix .. 'f' .. fingerprint:sub(1, 2)
  local left = {}
  local rows = redis.call('HGET', bucket, fingerprint) or ''
  for at = 1, #rows, 4 do
    local one = rows:sub(at, at + 3)
    if one ~= row_bytes then left[#left + 1] = one end
  end
  if #left > 0 then
    redis.call('HSET', bucket, fingerprint, table.concat(left))
    return
  end
  redis.call('HDEL', bucket, fingerprint)
  for i = 1, #BLOCKS do
    redis.call('ZREM', prefix .. 'z' .. i .. block_of(fingerprint, i), fingerprint)
  end
end

-- The table of documents that stand for their class and are not kept.
local function removed_key(fingerprint) return prefix .. 'r' .. block_of(fingerprint, 1) end
local function removed_entry(fingerprint, row_bytes)
  local _, rest = block_of(fingerprint, 1)
  return rest .. row_bytes
end

-- Puts a row at the head of its leader's members; returns what was the head.
local function link(leader, row_bytes)
  local key, at = place(leader)
  local head = redis.call('GETRANGE', key, at + BYTES, at + BYTES + 3)
  redis.call('SETRANGE', key, at + BYTES, row_bytes)
  return head
end

-- What stands for the whole history of writes: each write hashes what was before it with the name of its writer and
-- the writer's counter. The last ones are kept, each where the number of writes up to it says.
local function mark_at(steps) return (tonumber(steps) % RING) * MARK end
-- Whether the history went through a mark that a caller saw. One that the ring no longer holds counts as not seen.
local function follows(steps, mark)
  local at = mark_at(steps)
  return redis.call('GETRANGE', prefix .. 'marks', at, at + MARK - 1) == mark
end
-- Takes one more write into the history; the caller stores the steps and the mark that this returns.
local function advance(steps, mark, writer, counter)
  local now, next_mark = tonumber(steps) + 1, redis.sha1hex(mark .. writer .. ':' .. counter):sub(1, MARK)
  redis.call('SETRANGE', prefix .. 'marks', mark_at(now), next_mark)
  return now, next_mark
end

-- Whether another index than the caller's, or none, is here; whether this call was done before; whether another writes.
local function refusal(identity, writer, counter, token)
  if redis.call('HGET', meta, 'identity') ~= identity then return {'replaced', 0} end
  local slot = redis.call('HGET', prefix .. 'writers', writer)
  if slot then
    local last, answer = slot:match('^(%d+):(%d+)')
    if last == counter then return {'done', tonumber(answer)} end
    -- One that arrives after a later one of the same client: nobody waits for its answer any more.
    if tonumber(last) > tonumber(counter) then return {'late', 0} end
  end
  local holder = redis.call('GET', prefix .. 'lock')
  if token ~= '' and holder ~= token then return {'lost', 0} end
  if holder and holder ~= token then return {'locked', 0} end
end

local function remember(writer, counter, answer)
  redis.call('HSET', prefix .. 'writers', writer, counter .. ':' .. answer .. ':' .. redis.call('TIME')[1])
end
