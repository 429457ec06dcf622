-- One partition of docs/developers/cluster.md: tables and records, and a journal of what is not final yet.
-- KEYS: the prefix. ARGV: the script, then its arguments. Positions and counts are decimal, a nonce has 8 bytes, its first
-- two are its tag; a value of the chain has 16 bytes, a mark is the decimal count of writes, ':' and a value.
-- Keys of tables and chunks of records are given without the prefix. An entry ends with the tag of its operation.
-- Returns {status, count, chain, fold, the log's chain there, ...}: 'ok', 'lost', 'old', 'clash' or 'stale'.
local prefix, verb = KEYS[1], ARGV[1]
local head, ring, journal, changes = prefix .. 'head', prefix .. 'marks', prefix .. 'journal', prefix .. 'changes'
local RING, CHAIN = 1024, 16

local state = redis.call('HMGET', head, 'count', 'chain', 'fold', 'fold_chain')
local count, chain, fold, fold_chain = tonumber(state[1] or '0'), state[2] or string.rep('\0', CHAIN), tonumber(state[3] or '0'),
  state[4] or string.rep('\0', CHAIN)

local function reply(status, ...) return {status, count, chain, fold, fold_chain, ...} end

local function contains(mark)
  local number, value = mark:match('^(%d+):(.*)$')
  number = tonumber(number)
  if number == count then return value == chain end
  if number == 0 then return count < RING end
  if number > count or number <= count - RING then return false end
  local at = (number % RING) * CHAIN
  return redis.call('GETRANGE', ring, at, at + CHAIN - 1) == value
end

-- One more write in the history.
local function advance(what)
  count, chain = count + 1, redis.sha1hex(chain .. what):sub(1, CHAIN)
  redis.call('SETRANGE', ring, (count % RING) * CHAIN, chain)
  redis.call('HSET', head, 'count', count, 'chain', chain)
end

local function strings(packed)
  local found, at = {}, 1
  while at <= #packed do
    local one
    one, at = struct.unpack('<I2c0', packed, at)
    found[#found + 1] = one
  end
  return found
end

-- Takes the entries out of a packed string for which `is_out` says so.
local function sweep(key, length, is_out)
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

-- Takes all that an operation added out again: entries of its tag in rows from its first on, and its records.
local function undo(field)
  local tag = field:sub(-8, -7)
  local listed = redis.call('HGET', journal, field)
  local first, num, lengths = struct.unpack('<I4I4I2', listed)
  local names = strings(listed:sub(11))
  for i = 1, #names do
    local name = names[i]
    if i > lengths then
      for _, row in ipairs(redis.call('HKEYS', prefix .. name)) do
        if row:sub(-2) == tag then redis.call('HDEL', prefix .. name, row) end
      end
    else
      local length = name:byte(1)
      sweep(prefix .. name:sub(2), length, function(entry)
        local row = struct.unpack('<I4', entry, length - 5)
        return entry:sub(-2) == tag and row >= first and row < first + num
      end)
    end
  end
  redis.call('HDEL', journal, field)
  redis.call('HDEL', changes, field)
end

-- Makes changes final. Each is 'D' length key, entry | 'S' chunk, row and tag, record | 'X' chunk, row and tag.
local function settle(field)
  local packed = redis.call('HGET', changes, field)
  local parts = packed and strings(packed) or {}
  local i = 1
  while i <= #parts do
    local kind, name = parts[i]:sub(1, 1), parts[i]:sub(2)
    if kind == 'D' then
      local entry = parts[i + 1]
      sweep(prefix .. name, #entry, function(other) return other == entry end)
      i = i + 2
    elseif kind == 'S' then
      redis.call('HSET', prefix .. name, parts[i + 1], parts[i + 2])
      i = i + 3
    else
      redis.call('HDEL', prefix .. name, parts[i + 1])
      i = i + 2
    end
  end
  redis.call('HDEL', journal, field)
  redis.call('HDEL', changes, field)
end

local function position_of(field) return tonumber(field:sub(1, -9)) end

if verb == 'read' then
  -- Mark, keys of tables (packed), chunks of records (packed).
  if not contains(ARGV[2]) then return reply('lost') end
  local names, found, records = strings(ARGV[3]), {}, {}
  for i = 1, #names do names[i] = prefix .. names[i] end
  -- A call takes at most some thousand arguments.
  for from = 1, #names, 4000 do
    for _, packed in ipairs(redis.call('MGET', unpack(names, from, math.min(#names, from + 3999)))) do
      found[#found + 1] = packed or ''
    end
  end
  for _, chunk in ipairs(strings(ARGV[4])) do records[#records + 1] = redis.call('HGETALL', prefix .. chunk) end
  return reply('ok', redis.call('HKEYS', journal), redis.call('HGETALL', changes), found, records)
end

if verb == 'write' then
  -- Position, nonce, first row, number of rows; tables: keys (packed, each after its entries' length), their entries;
  -- records: chunks, rows and tags, records (packed); changes (packed).
  local position, nonce, first, num = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
  if position < fold then return reply('old') end
  local field = position .. nonce
  if redis.call('HEXISTS', journal, field) == 0 then
    for _, other in ipairs(redis.call('HKEYS', journal)) do
      if other:sub(-8, -7) == nonce:sub(1, 2) and other:sub(-8) ~= nonce then
        local before, of_before = struct.unpack('<I4I4', redis.call('HGET', journal, other))
        -- Two tags that are equal by chance must not meet in one row: the other is purged first.
        if before < first + num and first < before + of_before then return reply('clash', other) end
      end
    end
    local names, entries, at = strings(ARGV[6]), ARGV[7], 1
    for i = 1, #names do
      local length = names[i]:byte(1)
      redis.call('APPEND', prefix .. names[i]:sub(2), entries:sub(at, at + length - 1))
      at = at + length
    end
    local chunks, rows, records = strings(ARGV[8]), strings(ARGV[9]), strings(ARGV[10])
    for i = 1, #chunks do redis.call('HSET', prefix .. chunks[i], rows[i], records[i]) end
    redis.call('HSET', journal, field, struct.pack('<I4I4I2', first, num, #names) .. ARGV[6] .. ARGV[8])
    if ARGV[11] ~= '' then redis.call('HSET', changes, field, ARGV[11]) end
    advance(field)
  else
    -- WAIT covers only what this connection wrote, so there is always something.
    redis.call('HINCRBY', head, 'touched', 1)
  end
  return reply('ok')
end

if verb == 'verify' then
  local missing = {}
  for i = 2, #ARGV do
    if not contains(ARGV[i]) then missing[#missing + 1] = ARGV[i] end
  end
  return reply('ok', missing)
end

if verb == 'fold' then
  -- Mark, position, the log's chain there, then position and nonce of each operation below that the log still has.
  if not contains(ARGV[2]) then return reply('lost') end
  local to, value = tonumber(ARGV[3]), ARGV[4]
  if fold >= to then return reply('ok') end
  local is_valid, below, stale = {}, {}, {}
  for i = 5, #ARGV do is_valid[ARGV[i]] = true end
  for _, field in ipairs(redis.call('HKEYS', journal)) do
    if position_of(field) < to then
      below[#below + 1] = field
      if not is_valid[field] then stale[#stale + 1] = field end
    end
  end
  if #stale > 0 then return reply('stale', stale) end
  table.sort(below, function(a, b) return position_of(a) < position_of(b) end)
  for _, field in ipairs(below) do settle(field) end
  local before = reply('ok')
  redis.call('HSET', head, 'fold', to, 'fold_chain', value)
  advance('fold' .. to .. value)
  return before
end

if verb == 'purge' then
  local field = ARGV[2] .. ARGV[3]
  if redis.call('HEXISTS', journal, field) == 1 then
    undo(field)
    advance('purge' .. field)
  end
  return reply('ok')
end

return redis.error_reply('ERR no such script of a partition')
