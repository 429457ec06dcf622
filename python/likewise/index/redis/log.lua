-- The log of docs/developers/cluster.md: it fixes the order of operations and keeps what was decided on each.
-- KEYS: all keys of the log, below. ARGV: the script, which the index's identity may follow after a space, four arguments on what the caller knows (`whole`), the script's own.
-- Positions and counts are decimal. A nonce and a writer have 8 bytes, a value of the chain 16, a mark 24.
-- An operation is stored as nonce, number of documents, second, kind, writer, payload; a verdict after its first row and the
-- number of rows that it adds. `row` is the first row after all stored verdicts, `reserved` the documents without a verdict.
-- Returns {status, reply, ...}: 'ok', 'lost', 'behind', 'full', 'gone back', 'aged', 'conflict', 'exhausted', 'answered',
-- 'forgotten', 'absent' or 'moving'.
local verb, identity = ARGV[1]:match('^(%l+) ?(.*)$')
local log, operations, verdicts, marks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local chains, confirmed, counters, losses, answers = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
-- Values of the chain that are kept, more than positions that a log can hold; and losses.
local RING, CHAIN, LOSSES, LOSSES_BYTES, MARK, HEAD = 8192, 16, 1024, 16 * 1048576, 24, 25
-- Writers whose last operations are kept after they were trimmed, and bytes of the answers to removals that are kept with them.
local WRITERS, ANSWER_BYTES, REMOVE = 1024, 4096, 1

-- In a slot that is being moved, a key that does not exist is looked for on the other node. So this script never runs there.
local probe = redis.pcall('EXISTS', KEYS[1] .. '-probe')
if type(probe) == 'table' and probe.err then return {'moving'} end

if verb == 'create' then
  -- Partitions, then fields that describe the index.
  if redis.call('EXISTS', log) == 1 then return {'there'} end
  redis.call('HSET', log, 'low', 0, 'mark', 0, 'end', 0, 'row', 0, 'reserved', 0, 'swept', 0, 'second', 0, 'bytes', 0,
    'forgotten', 0, 'version', string.rep('0', CHAIN),
    unpack(ARGV, 3))
  -- No key is ever empty: a slot is moved key by key, and an absent one could not be told from one that was moved.
  for _, key in ipairs({operations, verdicts, marks, counters, answers}) do redis.call('HSET', key, '', '') end
  redis.call('DEL', chains, confirmed, losses)
  redis.call('SETRANGE', chains, 0, string.rep('0', CHAIN))
  redis.call('SET', confirmed, string.rep('0', MARK * tonumber(ARGV[2])))
  redis.call('RPUSH', losses, '')
  return {'ok'}
end

local state = redis.call('HMGET', log, 'low', 'mark', 'end', 'row', 'second', 'bytes', 'version', 'reserved', 'identity')
local low, mark, last, row = tonumber(state[1]), tonumber(state[2]), tonumber(state[3]), tonumber(state[4])
local version, bytes, reserved = state[7], tonumber(state[6]), tonumber(state[8])
if not low or (identity ~= '' and identity ~= state[9]) then return {'absent'} end

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

-- All that a client decides on, from the first position that it asks for: it has the operations before the second one, and
-- the verdicts before the third, and the confirmed marks of a version. After the first position, separated by commas, come
-- those before it whose verdict or marks it has not yet. They are returned first, without their operations.
local function whole(status, ...)
  local first, pending = ARGV[2]:match('^(%d+)(.*)$')
  local from, known, decided = math.max(tonumber(first), low), tonumber(ARGV[3]), tonumber(ARGV[4])
  local found = {}
  from = math.min(from, last)
  for position in pending:gmatch('%d+') do
    position = tonumber(position)
    if position >= low and position < from then
      local verdict = redis.call('HGET', verdicts, position)
      if verdict and position < decided then verdict = '' end
      found[#found + 1] = ''
      found[#found + 1] = verdict
      found[#found + 1] = redis.call('HGET', marks, position)
    end
  end
  for position = from, last - 1 do
    local operation, verdict = redis.call('HGET', operations, position), redis.call('HGET', verdicts, position)
    if position < known then operation = operation:sub(1, HEAD) end
    if verdict and position < decided then verdict = '' end
    found[#found + 1] = operation
    found[#found + 1] = verdict
    found[#found + 1] = redis.call('HGET', marks, position)
  end
  -- A clock that is set back, or that of a slower replica, must not bring expired documents back.
  local second = math.max(tonumber(redis.call('TIME')[1]), tonumber(redis.call('HGET', log, 'second')))
  return {status, low, mark, last, row, chain(last), ('%d'):format(second), bytes, version,
    version ~= ARGV[5] and redis.call('GET', confirmed) or '', from, chain(from), found, ...}
end

-- Counter and position of the last operation of a writer, or nothing where it is not kept.
local function last_of(writer)
  local counter, position = (redis.call('HGET', counters, writer) or ''):match('^(%d+):(%d+)$')
  return counter, tonumber(position)
end

-- The reply to a writer whose last operation is not in the log any more: with the answer to a removal, which is empty where it
-- is not kept.
local function answered(writer, position)
  return whole('answered', position, chain(position + 1) or '', redis.call('HGET', answers, writer))
end

-- Whether the history went through what a caller knows of it.
local function contains(position, value)
  if position == '' then return 'ok' end
  position = tonumber(position)
  if position <= last - RING then return 'aged' end
  return chain(position) == value and 'ok' or 'gone back'
end

-- The version of the confirmed marks: never one that they had before, also after a failover.
local function confirm(what)
  version = redis.sha1hex(version .. what):sub(1, CHAIN)
  redis.call('HSET', log, 'version', version)
end

-- What was begun is finished also where memory is full: after a first command that takes none, the others are accepted.
local function also_when_full() redis.call('HDEL', log, 'none') end

if verb == 'begin' then return whole(contains(ARGV[6], ARGV[7])) end

if verb == 'answered' then
  local counter, position = last_of(ARGV[6])
  if counter == ARGV[7] and position < low then return answered(ARGV[6], position) end
  return whole('lost')
end

if verb == 'losses' then return {'ok', redis.call('LRANGE', losses, 0, -1)} end

if verb == 'touch' then
  -- WAIT covers only what its own connection wrote. Returns the replicas that last confirmed the log, and its end then, which
  -- further arguments replace.
  also_when_full()
  redis.call('HINCRBY', log, 'touched', 1)
  if ARGV[6] then redis.call('HSET', log, 'replicas', ARGV[6], 'replicated', ARGV[7]) end
  local of_replicas = redis.call('HMGET', log, 'replicas', 'replicated')
  return whole('ok', tonumber(of_replicas[1] or '0'), tonumber(of_replicas[2] or '0'))
end

if verb == 'append' then
  -- The caller's last answer, its writer and counter, nonce, kind, number of rows, payload, bounds, the last second of its
  -- documents (0 where they have none), and an end of the log, with its chain value, before this counter was first sent.
  local known, value, writer, counter, nonce, kind = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
  local num, payload, most, most_bytes, second = tonumber(ARGV[12]), ARGV[13], tonumber(ARGV[14]), tonumber(ARGV[15]), tonumber(ARGV[16])
  local since, since_chain = tonumber(ARGV[17]), ARGV[18]
  local status = contains(known, value)
  if status == 'gone back' then return whole(status) end
  local before, at = last_of(writer)
  if before == counter then
    if at >= low then return whole('ok', at, nonce_at(at)) end
    return answered(writer, at)
  elseif before then
    -- A request that was repeated, and comes after a later one of its writer.
    if tonumber(counter) < tonumber(before) then return whole('lost') end
  else
    -- A repeated request of a writer that is not kept any more must not be appended again.
    local forgotten = tonumber(redis.call('HGET', log, 'forgotten') or '0')
    if forgotten > 0 and (since < forgotten or chain(since) ~= since_chain) then return whole('forgotten') end
  end
  -- A row has 4 bytes in each entry.
  if row + reserved + num > 4294967295 then return whole('exhausted') end
  -- A single operation is always taken, however large.
  if last - low >= most or (bytes + #payload > most_bytes and last > low) then return whole('full') end
  local now, position = redis.call('TIME'), last
  second = math.max(second, tonumber(now[1]), tonumber(state[5]))
  -- A request that is repeated after a failover gets another nonce, since effects that it had before may be in partitions. The
  -- operations of a move share the first two bytes.
  local digest = redis.sha1hex(chain(position) .. nonce .. now[1] .. '.' .. now[2])
  nonce = nonce:sub(1, 2) .. digest:sub(1, 12):gsub('..', function(byte) return string.char(tonumber(byte, 16)) end)
  redis.call('HSET', operations, position, nonce .. struct.pack('<I4I4B', num, second, tonumber(kind)) .. writer .. payload)
  redis.call('HSET', counters, writer, counter .. ':' .. position)
  if before then redis.call('HDEL', answers, writer) end
  local next_chain = redis.sha1hex(chain(position) .. nonce):sub(1, CHAIN)
  last = last + 1
  redis.call('SETRANGE', chains, (last % RING) * CHAIN, next_chain)
  redis.call('HSET', log, 'end', last, 'reserved', reserved + num, 'second', second,
    'bytes', bytes + #payload)
  return whole('ok', position, nonce)
end

if verb == 'store' then
  local position, nonce, first, verdict, num = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[10])
  if nonce_at(position) ~= nonce then return whole('lost') end
  if position > mark and position > low and redis.call('HEXISTS', verdicts, position - 1) == 0 then return whole('behind') end
  if redis.call('HEXISTS', verdicts, position) == 0 then
    -- It was decided after the earlier ones, so it begins at the first free row.
    if first ~= row then return whole('behind') end
    also_when_full()
    local of_operation = struct.unpack('<I4', redis.call('HGET', operations, position):sub(9, 12))
    redis.call('HSET', verdicts, position, struct.pack('<I4I4', row, num) .. verdict)
    row = row + num
    redis.call('HSET', log, 'row', row, 'reserved', reserved - of_operation, 'bytes', bytes + #verdict)
    -- Documents added, those of them that are new, and documents removed; and the row below which expired ones were deleted.
    for i, name in ipairs({'added', 'new', 'gone'}) do redis.call('HINCRBY', log, name, ARGV[9 + i]) end
    -- Several clients may sweep the same rows.
    if tonumber(ARGV[13]) > tonumber(redis.call('HGET', log, 'swept')) then redis.call('HSET', log, 'swept', ARGV[13]) end
  end
  return whole('ok')
end

if verb == 'written' then
  local position, nonce = tonumber(ARGV[6]), ARGV[7]
  if nonce_at(position) ~= nonce or redis.call('HEXISTS', verdicts, position) == 0 then return whole('lost') end
  also_when_full()
  local before = redis.call('HGET', marks, position)
  redis.call('HSET', marks, position, ARGV[8])
  redis.call('HSET', log, 'bytes', bytes + #ARGV[8] - (before and #before or 0))
  redis.call('HINCRBY', log, 'touched', 1)
  return whole('ok')
end

if verb == 'advance' then
  -- From, to, value of the chain at `to`; then partition and mark of each partition that changes.
  local from, to, value = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
  local is_same = from == mark and to <= last and to > from and chain(to) == value
  for position = from, is_same and to - 1 or from - 1 do
    -- A failover may have dropped the marks and not the operations.
    if redis.call('HEXISTS', marks, position) == 0 then is_same = false end
  end
  if not is_same then return whole('conflict') end
  also_when_full()
  mark = to
  redis.call('HSET', log, 'mark', to)
  for i = 9, #ARGV, 2 do redis.call('SETRANGE', confirmed, tonumber(ARGV[i]) * MARK, ARGV[i + 1]) end
  if #ARGV > 8 then confirm('advance' .. to .. value .. table.concat(ARGV, '', 9)) end
  return whole('ok')
end

if verb == 'reconfirm' then
  -- Partition, the low mark up to which it was repaired, its old and new marks. A mark may be the same for a higher low mark.
  local at, low_mark, old, new = tonumber(ARGV[6]) * MARK, tonumber(ARGV[7]), ARGV[8], ARGV[9]
  if low_mark ~= mark or redis.call('GETRANGE', confirmed, at, at + MARK - 1) ~= old then return whole('conflict') end
  also_when_full()
  redis.call('SETRANGE', confirmed, at, new)
  confirm('reconfirm' .. ARGV[6] .. old .. new)
  return whole('ok')
end

if verb == 'trim' then
  local to, value = tonumber(ARGV[6]), ARGV[7]
  if to <= low or to > mark or chain(to) ~= value then return whole('conflict') end
  also_when_full()
  for position = low, to - 1 do
    local operation = redis.call('HGET', operations, position)
    local writer = operation:sub(18, HEAD)
    bytes = bytes - #operation + HEAD - #redis.call('HGET', verdicts, position) + 8 - #redis.call('HGET', marks, position)
    local counter = redis.call('HGET', counters, writer)
    if counter and counter:match(':(%d+)$') == tostring(position) then
      local verdict = redis.call('HGET', verdicts, position)
      local is_kept = operation:byte(17) == REMOVE and #verdict <= ANSWER_BYTES
      redis.call('HSET', answers, writer, is_kept and verdict or '')
    end
    redis.call('HDEL', operations, position)
    redis.call('HDEL', verdicts, position)
    redis.call('HDEL', marks, position)
  end
  low = to
  redis.call('HSET', log, 'low', to, 'bytes', bytes)
  -- One field of the hash is always there.
  local num = redis.call('HLEN', answers) - 1 - WRITERS
  if num > 0 then
    local writers, at = {}, {}
    for _, writer in ipairs(redis.call('HKEYS', answers)) do
      if writer ~= '' then
        writers[#writers + 1] = writer
        local _, position = last_of(writer)
        at[writer] = position
      end
    end
    table.sort(writers, function(a, b) return at[a] < at[b] end)
    local forgotten = math.max(tonumber(redis.call('HGET', log, 'forgotten') or '0'), at[writers[num]] + 1)
    redis.call('HSET', log, 'forgotten', forgotten)
    for i = 1, num do
      redis.call('HDEL', answers, writers[i])
      redis.call('HDEL', counters, writers[i])
    end
  end
  return whole('ok')
end

if verb == 'report' then
  -- Losses, each packed by the caller: position and nonce in 16 bytes, then ids, each after its length of 4 bytes. They are stored
  -- with the end of the log after the nonce. Each operation occurs once, with the ids of all reports of it.
  also_when_full()
  local all, at = redis.call('LRANGE', losses, 0, -1), {}
  for i, one in ipairs(all) do at[one:sub(1, 16)] = i end
  local function ids_of(packed, from)
    local found, id = {}, nil
    while from <= #packed do
      id, from = struct.unpack('<I4c0', packed, from)
      found[#found + 1] = id
    end
    return found
  end
  for i = 6, #ARGV do
    local one = ARGV[i]
    local place = at[one:sub(1, 16)]
    if place then
      local is_there, added = {}, {}
      for _, id in ipairs(ids_of(all[place], 25)) do is_there[id] = true end
      for _, id in ipairs(ids_of(one, 17)) do
        if not is_there[id] then added[#added + 1] = struct.pack('<I4', #id) .. id end
      end
      if #added > 0 then
        all[place] = all[place] .. table.concat(added)
        redis.call('LSET', losses, place - 1, all[place])
      end
    else
      one = one:sub(1, 16) .. struct.pack('<I8', last) .. one:sub(17)
      all[#all + 1] = one
      at[one:sub(1, 16)] = #all
      redis.call('RPUSH', losses, one)
    end
  end
  -- The newest are kept.
  local kept, bytes = 0, 0
  while kept < math.min(#all, LOSSES) do
    bytes = bytes + #all[#all - kept]
    if kept > 0 and bytes > LOSSES_BYTES then break end
    kept = kept + 1
  end
  redis.call('LTRIM', losses, -kept, -1)
  return whole('ok')
end

return redis.error_reply('ERR no such script of the log')
