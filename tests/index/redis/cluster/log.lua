-- The log of docs/developers/cluster.md: it fixes the order of operations and keeps what was decided on each.
-- KEYS: the prefix. ARGV: the script, then its arguments. Positions and counts are decimal, a nonce has 8 bytes, a value of
-- the chain 16, a mark is the decimal count of writes, ':' and a value of the partition's chain.
-- Returns {status, reply, ...}: 'ok', 'lost', 'behind', 'full', 'gone back' or 'conflict'.
local prefix, verb = KEYS[1], ARGV[1]
local log, operations, verdicts, marks = prefix .. 'log', prefix .. 'operations', prefix .. 'verdicts', prefix .. 'marks'
local chains, confirmed, counters = prefix .. 'chains', prefix .. 'confirmed', prefix .. 'counters'
-- Values of the chain that are kept; more than positions that a log can hold.
local RING, CHAIN = 8192, 16

local state = redis.call('HMGET', log, 'low', 'mark', 'end', 'row', 'second', 'bytes')
local low, mark, last, row = tonumber(state[1]), tonumber(state[2]), tonumber(state[3]), tonumber(state[4])
if not low then return {'absent'} end

-- The value before a position, or nothing where it is not kept any more.
local function chain(position)
  if position > last or position <= last - RING or position < 0 then return false end
  local at = (position % RING) * CHAIN
  return redis.call('GETRANGE', chains, at, at + CHAIN - 1)
end

local function nonce_at(position)
  local operation = position >= low and position < last and redis.call('HGET', operations, position)
  return operation and operation:sub(1, 8)
end

-- All that a client decides on: the operations from a position on, with verdicts and marks.
local function whole(status, from, ...)
  from = math.max(from, low)
  local found = {}
  for position = from, last - 1 do
    found[#found + 1] = {position, redis.call('HGET', operations, position), redis.call('HGET', verdicts, position),
      redis.call('HGET', marks, position), chain(position)}
  end
  return {status, low, mark, last, row, chain(last), redis.call('TIME')[1], redis.call('HGETALL', confirmed), found, ...}
end

-- Whether the history went through what a caller knows of it; where the ring is too short, a caller looks for its ids.
local function contains(position, value)
  return position == '' or chain(tonumber(position)) == value
end

if verb == 'begin' then
  local from, known, value = ARGV[2], ARGV[3], ARGV[4]
  return whole(contains(known, value) and 'ok' or 'gone back', from == '' and mark or tonumber(from))
end

if verb == 'append' then
  -- The caller's last answer, its writer and counter, nonce, kind, number of rows, payload, bounds, second ('' for now).
  local known, value, writer, counter, nonce, kind = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
  local num, payload, most, most_bytes, second = tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12]
  if not contains(known, value) then return whole('gone back', mark) end
  local before = redis.call('HGET', counters, writer)
  if before then
    local of_writer, position = before:match('^(%d+):(%d+)$')
    if of_writer == counter and tonumber(position) >= low then return whole('ok', mark, tonumber(position)) end
  end
  local bytes = tonumber(state[6])
  -- A single operation is always taken, however large.
  if last - low >= most or (bytes + #payload > most_bytes and last > low) then return whole('full', mark) end
  second = math.max(tonumber(second ~= '' and second or redis.call('TIME')[1]), tonumber(state[5]))
  local position = last
  redis.call('HSET', operations, position, nonce .. struct.pack('<I4I4I4B', row, num, second, tonumber(kind)) .. payload)
  redis.call('HSET', counters, writer, counter .. ':' .. position)
  local next_chain = redis.sha1hex(chain(position) .. nonce):sub(1, CHAIN)
  last, row = last + 1, row + num
  redis.call('SETRANGE', chains, (last % RING) * CHAIN, next_chain)
  redis.call('HSET', log, 'end', last, 'row', row, 'second', second, 'bytes', bytes + #payload)
  return whole('ok', mark, position)
end

if verb == 'store' then
  local position, nonce, verdict = tonumber(ARGV[2]), ARGV[3], ARGV[4]
  if nonce_at(position) ~= nonce then return whole('lost', mark) end
  if position > mark and not redis.call('HGET', verdicts, position - 1) and position > low then return whole('behind', mark) end
  if redis.call('HSETNX', verdicts, position, verdict) == 1 then
    redis.call('HINCRBY', log, 'bytes', #verdict)
  end
  return whole('ok', mark)
end

if verb == 'written' then
  local position, nonce = tonumber(ARGV[2]), ARGV[3]
  if nonce_at(position) ~= nonce or redis.call('HEXISTS', verdicts, position) == 0 then return whole('lost', mark) end
  redis.call('HSET', marks, position, ARGV[4])
  -- WAIT covers only what this connection wrote, so there is always something.
  redis.call('HINCRBY', log, 'touched', 1)
  return whole('ok', mark)
end

if verb == 'advance' then
  -- From, to, value of the chain at `to`; then partition and mark of each partition that changes.
  local from, to, value = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
  local is_same = from == mark and to <= last and to > from and chain(to) == value
  for position = from, is_same and to - 1 or from - 1 do
    -- A failover may have dropped the marks and not the operations.
    if redis.call('HEXISTS', marks, position) == 0 then is_same = false end
  end
  if not is_same then return whole('conflict', mark) end
  mark = to
  redis.call('HSET', log, 'mark', to)
  if #ARGV > 4 then redis.call('HSET', confirmed, unpack(ARGV, 5)) end
  return whole('ok', mark)
end

if verb == 'reconfirm' then
  local partition, old, new = ARGV[2], ARGV[3], ARGV[4]
  if redis.call('HGET', confirmed, partition) ~= old then return whole('conflict', mark) end
  redis.call('HSET', confirmed, partition, new)
  return whole('ok', mark)
end

if verb == 'trim' then
  local to, value = tonumber(ARGV[2]), ARGV[3]
  if to <= low or to > mark or chain(to) ~= value then return whole('conflict', mark) end
  local bytes = tonumber(state[6])
  for position = low, to - 1 do
    bytes = bytes - #redis.call('HGET', operations, position) + 21 - #redis.call('HGET', verdicts, position)
    redis.call('HDEL', operations, position)
    redis.call('HDEL', verdicts, position)
    redis.call('HDEL', marks, position)
  end
  low = to
  redis.call('HSET', log, 'low', to, 'bytes', bytes)
  return whole('ok', mark)
end

return redis.error_reply('ERR no such script of the log')
