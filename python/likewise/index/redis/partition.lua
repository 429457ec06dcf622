-- One partition of docs/developers/cluster.md: tables and records, and a journal of what is not final yet.
-- KEYS: the four keys that each partition has. ARGV: the prefix, the script, then its arguments. Positions are decimal, a
-- nonce has 8 bytes, its first two are its tag; a value of the chain has 16 bytes, a mark is the count of writes as 8
-- hexadecimal digits and a value. Keys of tables and chunks of records are given without the prefix. An entry ends with its
-- row (4 bytes) and the tag of its operation; these 6 bytes also name the record of that row in its chunk, `r` and a number.
-- Returns {status, mark, fold, the log's chain there, ...}: 'ok', 'lost', 'old', 'clash', 'stale' or 'moving'.
local head, ring, journal, changes, prefix, verb = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
-- Marks that are kept, more than a log can hold operations.
local RING, CHAIN, LONG = 8192, 16, '<I4c0'
-- One operation of a list: its position and its nonce. The empty field of `journal` lists the operations of the other fields.
local LISTED, LISTED_BYTES = '<I8c8', 16
-- Begins the fields of `head` for operations that were purged.
local PURGED = 'purged '

-- In a slot that is being moved, a key that does not exist is looked for on the other node. So this script never runs there.
local probe = redis.pcall('EXISTS', prefix .. 'probe')
if type(probe) == 'table' and probe.err then return {'moving'} end

local state = redis.call('HMGET', head, 'count', 'chain', 'fold', 'fold_chain')
local count, chain, fold, fold_chain = tonumber(state[1] or '0'), state[2] or string.rep('0', CHAIN), tonumber(state[3] or '0'),
  state[4] or string.rep('0', CHAIN)

local function reply(status, ...) return {status, ('%08x'):format(count) .. chain, fold, fold_chain, ...} end

local function contains(mark)
  local number, value = tonumber(mark:sub(1, 8), 16), mark:sub(9)
  if number == count then return value == chain end
  if number == 0 then return count < RING end
  if number > count or number <= count - RING then return false end
  local at = (number % RING) * CHAIN
  return redis.call('GETRANGE', ring, at, at + CHAIN - 1) == value
end

-- One more write in the history.
local function advance(what)
  if count == 0 then
    -- No key is ever empty: a slot is moved key by key, and an absent one could not be told from one that was moved.
    redis.call('HSETNX', journal, '', '')
    redis.call('HSET', changes, '', '')
  end
  count, chain = count + 1, redis.sha1hex(chain .. what):sub(1, CHAIN)
  redis.call('SETRANGE', ring, (count % RING) * CHAIN, chain)
  redis.call('HSET', head, 'count', count, 'chain', chain)
end

-- What is packed, each string after its length: of 2 bytes, or as `format` says.
local function strings(packed, format)
  local found, at = {}, 1
  while at <= #packed do
    local one
    one, at = struct.unpack(format or '<I2c0', packed, at)
    found[#found + 1] = one
  end
  return found
end

-- Takes the entries out of a packed string for which `is_out` says so.
local function sweep(key, length, is_out)
  -- A step of 0 would never end.
  if length < 6 then error('an entry of ' .. length .. ' bytes is too short') end
  local packed = redis.call('GET', key)
  if not packed then return end
  local left = {}
  for at = 1, #packed, length do
    local entry = packed:sub(at, at + length - 1)
    if not is_out(entry) then left[#left + 1] = entry end
  end
  if #left * length == #packed then return end
  if #left == 0 then redis.call('DEL', key) else redis.call('SET', key, table.concat(left)) end
end

-- Takes all that an operation added out again: entries of its tag in rows from its first on, and its records. Or only
-- returns these.
local function undo(field, is_kept)
  local tag, records = field:sub(-8, -7), {}
  local added = redis.call('HGET', journal, field)
  local first, num, lengths = struct.unpack('<I4I4I4', added)
  local names, is_done = strings(added:sub(13)), {}
  for i = 1, #names do
    local name = names[i]
    -- A name occurs once for each entry. Those of chunks follow those of strings.
    if i == lengths + 1 then is_done = {} end
    if is_done[name] then
    elseif i > lengths then
      for _, row in ipairs(redis.call('HKEYS', prefix .. name)) do
        local at = struct.unpack('<I4', row)
        if row:sub(-2) == tag and at >= first and at < first + num then
          if not is_kept then
            redis.call('HDEL', prefix .. name, row)
          elseif name:sub(1, 1) == 'r' then
            records[#records + 1] = redis.call('HGET', prefix .. name, row)
          end
        end
      end
    elseif not is_kept then
      local length = name:byte(1)
      sweep(prefix .. name:sub(2), length, function(entry)
        local row = struct.unpack('<I4', entry, length - 5)
        return entry:sub(-2) == tag and row >= first and row < first + num
      end)
    end
    is_done[name] = true
  end
  if not is_kept then return records end
  -- Records of documents that the operation removes are there until it is final.
  local packed = redis.call('HGET', changes, field)
  local parts, i = packed and strings(packed, LONG) or {}, 1
  while i <= #parts do
    if parts[i]:sub(1, 2) == 'Xr' then
      local record = redis.call('HGET', prefix .. parts[i]:sub(2), parts[i + 1])
      if record then records[#records + 1] = record end
    end
    i = i + (parts[i]:sub(1, 1) == 'S' and 3 or 2)
  end
  return records
end

-- Makes changes final. Each is 'A' or 'D' key, entry | 'S' chunk, row and tag, record | 'X' or 'Y' chunk, row and
-- tag: the record of a document that was removed, or expired.
local function settle(field)
  local packed = redis.call('HGET', changes, field)
  local parts = packed and strings(packed, LONG) or {}
  -- Each string is rewritten once. The last change of an entry says whether it is there afterward.
  local names, entries, is_added, i = {}, {}, {}, 1
  while i <= #parts do
    local kind, name = parts[i]:sub(1, 1), parts[i]:sub(2)
    if kind == 'D' or kind == 'A' then
      if not entries[name] then
        names[#names + 1] = name
        entries[name], is_added[name] = {}, {}
      end
      local of_name = entries[name]
      of_name[#of_name + 1] = parts[i + 1]
      is_added[name][parts[i + 1]] = kind == 'A'
      i = i + 2
    elseif kind == 'S' then
      redis.call('HSET', prefix .. name, parts[i + 1], parts[i + 2])
      i = i + 3
    else
      redis.call('HDEL', prefix .. name, parts[i + 1])
      i = i + 2
    end
  end
  for _, name in ipairs(names) do
    local is_there, added = is_added[name], {}
    sweep(prefix .. name, #entries[name][1], function(entry) return is_there[entry] ~= nil end)
    for _, entry in ipairs(entries[name]) do
      if is_there[entry] then added[#added + 1] = entry end
      is_there[entry] = false
    end
    if #added > 0 then redis.call('APPEND', prefix .. name, table.concat(added)) end
  end
end

local function listed() return redis.call('HGET', journal, '') or '' end

local function position_of(one) return (struct.unpack(LISTED, one)) end

local function field_of(one)
  local position, nonce = struct.unpack(LISTED, one)
  return position .. nonce
end

-- The operations of a list.
local function operations_of(packed)
  local found = {}
  for at = 1, #packed, LISTED_BYTES do found[#found + 1] = packed:sub(at, at + LISTED_BYTES - 1) end
  return found
end

-- Takes operations out of the journal and of its list.
local function drop(gone)
  local is_gone, left = {}, {}
  for _, one in ipairs(gone) do
    is_gone[one] = true
    redis.call('HDEL', journal, field_of(one))
    redis.call('HDEL', changes, field_of(one))
  end
  for _, one in ipairs(operations_of(listed())) do
    if not is_gone[one] then left[#left + 1] = one end
  end
  redis.call('HSET', journal, '', table.concat(left))
end

-- What was begun is finished also where memory is full: after a first command that takes none, the others are accepted.
local function also_when_full() redis.call('HDEL', head, 'none') end

if verb == 'read' then
  -- Mark, keys of tables (packed), unless the same transaction reads them; chunks of records and fields in them (packed, in
  -- turn, equal chunks one after the other); the empty field stands for all of its chunk. The strings of the tables are last.
  if not contains(ARGV[3]) then return reply('lost') end
  local names, chunks, found, records = strings(ARGV[4]), strings(ARGV[5]), {}, {}
  for i = 1, #names do names[i] = prefix .. names[i] end
  -- A call takes at most some thousand arguments.
  for from = 1, #names, 4000 do
    for _, packed in ipairs(redis.call('MGET', unpack(names, from, math.min(#names, from + 3999)))) do
      found[#found + 1] = packed
    end
  end
  local i = 1
  while i <= #chunks do
    local chunk, rows = chunks[i], {}
    if chunks[i + 1] == '' then
      -- All fields of this chunk.
      local all = {}
      for j, one in ipairs(redis.call('HGETALL', prefix .. chunk)) do all[j] = struct.pack('<I4', #one) .. one end
      records[#records + 1] = table.concat(all)
      i = i + 2
    end
    while chunks[i] == chunk and chunks[i + 1] ~= '' and #rows < 4000 do
      rows[#rows + 1] = chunks[i + 1]
      i = i + 2
    end
    if #rows > 0 then
      for _, record in ipairs(redis.call('HMGET', prefix .. chunk, unpack(rows))) do records[#records + 1] = record or '' end
    end
  end
  local journaled, changed = listed(), redis.call('HGETALL', changes)
  if ARGV[4] == '' then return reply('ok', journaled, changed, records) end
  return reply('ok', journaled, changed, records, found)
end

if verb == 'write' then
  -- Position, nonce, first row, number of rows; tables: keys (packed, each after its entries' length), their entries;
  -- records: chunks, rows and tags (packed), records (packed, lengths of 4 bytes); changes (so, too).
  local position, nonce, first, num = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
  if position < fold then return reply('old') end
  local field = position .. nonce
  if redis.call('HEXISTS', journal, field) == 0 then
    local others, tag, found = listed(), nonce:sub(1, 2), 0
    while true do
      found = others:find(tag, found + 1, true)
      if not found then break end
      if (found - 1) % LISTED_BYTES == 8 and others:sub(found, found + 7) ~= nonce then
        local other = field_of(others:sub(found - 8, found + 7))
        local before, of_before = struct.unpack('<I4I4', redis.call('HGET', journal, other))
        -- Two tags that are equal by chance must not meet in one row: the other is purged first.
        if before < first + num and first < before + of_before then return reply('clash', other) end
      end
    end
    -- Most of the time of a batch is spent here, so the loop makes as few strings as it can.
    local names, entries, from, at, lengths = ARGV[7], ARGV[8], 1, 1, 0
    while from <= #names do
      local low, high, length = names:byte(from, from + 2)
      local last = from + 1 + low + 256 * high
      redis.call('APPEND', prefix .. names:sub(from + 3, last), entries:sub(at, at + length - 1))
      from, at, lengths = last + 1, at + length, lengths + 1
    end
    local chunks, rows, records, i = strings(ARGV[9]), strings(ARGV[10]), strings(ARGV[11], LONG), 1
    while i <= #chunks do
      local chunk, pairs_of = chunks[i], {}
      while chunks[i] == chunk and #pairs_of < 4000 do
        pairs_of[#pairs_of + 1], pairs_of[#pairs_of + 2] = rows[i], records[i]
        i = i + 1
      end
      redis.call('HSET', prefix .. chunk, unpack(pairs_of))
    end
    local added = struct.pack('<I4I4I4', first, num, lengths) .. ARGV[7] .. ARGV[9]
    redis.call('HSET', journal, field, added, '', others .. struct.pack(LISTED, position, nonce))
    if ARGV[12] ~= '' then redis.call('HSET', changes, field, ARGV[12]) end
    advance(field)
  else
    -- WAIT covers only what this connection wrote, so there is always something.
    also_when_full()
    redis.call('HINCRBY', head, 'touched', 1)
  end
  return reply('ok')
end

if verb == 'verify' then
  local missing = {}
  for i = 3, #ARGV do
    if not contains(ARGV[i]) then missing[#missing + 1] = ARGV[i] end
  end
  return reply('ok', missing)
end

if verb == 'fold' then
  -- Mark, position, the log's chain there, then a list of the operations below that the log still has.
  -- Returns the previous fold, also when it is repeated, and what was purged: position and nonce, and ids, in turn.
  if not contains(ARGV[3]) then return reply('lost') end
  local to, value = tonumber(ARGV[4]), ARGV[5]
  local purged = {}
  local all = redis.call('HGETALL', head)
  for i = 1, #all, 2 do
    if all[i]:sub(1, #PURGED) == PURGED then
      purged[#purged + 1] = all[i]:sub(#PURGED + 1)
      purged[#purged + 1] = all[i + 1]
    end
  end
  if fold >= to then return reply('ok', tonumber(redis.call('HGET', head, 'fold_before') or '0'), purged) end
  local is_valid, below, stale = {}, {}, {}
  for _, one in ipairs(operations_of(ARGV[6])) do is_valid[one] = true end
  for _, one in ipairs(operations_of(listed())) do
    if position_of(one) < to then
      below[#below + 1] = one
      if not is_valid[one] then stale[#stale + 1] = field_of(one) end
    end
  end
  if #stale > 0 then return reply('stale', stale) end
  also_when_full()
  table.sort(below, function(a, b) return position_of(a) < position_of(b) end)
  for _, one in ipairs(below) do settle(field_of(one)) end
  drop(below)
  local before = reply('ok', fold, purged)
  redis.call('HSET', head, 'fold', to, 'fold_chain', value, 'fold_before', fold)
  advance('fold' .. to .. value)
  return before
end

if verb == 'purge' then
  -- Position, nonce, and whether to delete: its records are looked at first, so that the loss is reported before. Then the ids
  -- in its records, packed: a failover of the log may drop the report.
  local field = ARGV[3] .. ARGV[4]
  if redis.call('HEXISTS', journal, field) == 1 then
    if ARGV[5] ~= '1' then return reply('ok', undo(field, true)) end
    also_when_full()
    undo(field)
    drop({struct.pack(LISTED, tonumber(ARGV[3]), ARGV[4])})
    redis.call('HSET', head, PURGED .. field, ARGV[6])
    advance('purge' .. field)
  end
  return reply('ok', {})
end

if verb == 'forget' then
  -- Positions and nonces of what was purged, whose reports are final.
  local num = 0
  for i = 3, #ARGV do num = num + redis.call('HDEL', head, PURGED .. ARGV[i]) end
  if num > 0 then advance('forget' .. table.concat(ARGV, '', 3)) end
  return reply('ok')
end

return redis.error_reply('ERR no such script of a partition')
