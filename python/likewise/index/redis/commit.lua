-- Adds documents that were decided on a state, if the history went through that state and it still decides them.
-- Without documents it proves only that. ARGV: identity, writer, counter, lock token; steps, mark, rows and epoch of the
-- state; least row relied on, now_s; then the columns of the documents: fingerprints, flags, distances, leaders (4 bytes), whether leaders are of this batch, text digests,
-- id hashes (8 bytes), ends of the ids (4 bytes), the ids, ends of the short sets (4 bytes), the short sets.
-- Returns {'ok', first row} | {'done', first row} | {'behind', rows} | {'epoch'|'late'|'locked'|'lost'|'replaced', 0}.
local identity, writer, counter, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local steps, mark, seen_rows, epoch = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8]
local least_row, now = tonumber(ARGV[9]), ARGV[10]
local fingerprints, flags_of, distances, leaders, in_batch = ARGV[11], ARGV[12], ARGV[13], ARGV[14], ARGV[15]
local digests, hashes, id_ends, ids, set_ends, sets = ARGV[16], ARGV[17], ARGV[18], ARGV[19], ARGV[20], ARGV[21]
local num = #flags_of

local refused = refusal(identity, writer, counter, token)
if refused then return refused end
local state = redis.call('HMGET', meta, 'rows', 'epoch', 'watermark', 'ttl_s', 'steps', 'mark', 'num_kept')
local rows, watermark, ttl = tonumber(state[1]), tonumber(state[3]), tonumber(state[4])
-- The number of documents alone proves nothing: a server that went back in time may have been filled with others.
if state[6] ~= mark and not follows(steps, mark) then return {'epoch', 0} end
if state[2] ~= epoch or least_row < watermark then return {'epoch', 0} end
if rows + num > 4294967294 then return redis.error_reply('ERR the index is full: rows are numbered with 32 bits') end

local function end_at(ends, i) return i == 0 and 0 or unpack_row(ends:sub(4 * i - 3, 4 * i)) end

-- What came since the caller looked may decide otherwise: a few pairs are compared here, more by the caller.
if rows > seen_rows then
  if (rows - seen_rows) * num > MAX_PAIRS then return {'behind', rows} end
  local mine, my_ids = {}, {}
  for j = 1, num do
    mine[j] = words_of(fingerprints:sub((j - 1) * BYTES + 1, j * BYTES))
    my_ids[ids:sub(end_at(id_ends, j - 1) + 1, end_at(id_ends, j))] = true
  end
  for row = seen_rows, rows - 1 do
    local key, at = place(row)
    local record = redis.call('GETRANGE', key, at, at + RECORD - 1)
    local theirs = words_of(record)
    for j = 1, num do
      if distance(mine[j], theirs) <= WITHIN then return {'behind', rows} end
    end
    local start = row % ROWS == 0 and 0
      or struct.unpack('<I2', redis.call('GETRANGE', key, at - RECORD + END, at - RECORD + END + 1))
    local stop = struct.unpack('<I2', record, END + 1)
    if my_ids[redis.call('GETRANGE', key, ROWS * RECORD + start, ROWS * RECORD + stop - 1)] then
      return {'behind', rows}
    end
  end
end

for j = 1, num do
  local is_here = has(flags_of:byte(j), KEPT) or in_batch:byte(j) == 1
  if not is_here and unpack_row(leaders:sub(4 * j - 3, 4 * j)) >= rows then
    return redis.error_reply('ERR a document names a row that is not there')
  end
end
remember(writer, counter, rows)
if num == 0 then return {'ok', rows} end
local records, heads, num_kept = {}, {}, 0
local second = math.max(tonumber(now ~= '' and now or redis.call('TIME')[1]), rows > 0 and arrival(rows - 1) or 0)
local second_bytes = pack_row(second)
for j = 1, num do
  local flags = flags_of:byte(j)
  local row_bytes = pack_row(rows + j - 1)
  local fingerprint = fingerprints:sub((j - 1) * BYTES + 1, j * BYTES)
  local leader, previous = NO_ROW, NO_ROW
  if has(flags, KEPT) then
    if has(flags, EMPTY) then
      redis.call('HSET', meta, 'empty_row', rows + j - 1)
    else
      enter(fingerprint, row_bytes)
    end
    num_kept = num_kept + 1
  else
    leader = leaders:sub(4 * j - 3, 4 * j)
    if in_batch:byte(j) == 1 then
      local i = unpack_row(leader) + 1
      leader = pack_row(rows + i - 1)
      previous = heads[i] or NO_ROW
      heads[i] = row_bytes
    else
      previous = link(unpack_row(leader), row_bytes)
    end
    if has(flags, STANDS) then redis.call('APPEND', removed_key(fingerprint), removed_entry(fingerprint, row_bytes)) end
  end
  local hash = hashes:sub(8 * j - 7, 8 * j)
  redis.call('APPEND', prefix .. 'i' .. hash:sub(1, 2), hash:sub(3, 4) .. row_bytes)
  if has(flags, SHORT) then
    redis.call('SET', prefix .. 's' .. (rows + j - 1), sets:sub(end_at(set_ends, j - 1) + 1, end_at(set_ends, j)))
  end
  records[j] = {fingerprint, leader, previous, digests:sub(4 * j - 3, 4 * j), '',
    string.char(flags, distances:byte(j)), second_bytes}
end

local j = 1
while j <= num do
  local first = rows + j - 1
  local key, at = place(first)
  local used = 0
  if first % ROWS ~= 0 then
    used = struct.unpack('<I2', redis.call('GETRANGE', key, at - RECORD + END, at - RECORD + END + 1))
  end
  local last = math.min(num, j + ROWS - 1 - first % ROWS)
  local parts = {}
  local before = end_at(id_ends, j - 1)
  for i = j, last do
    local record = records[i]
    if heads[i] then record[2] = heads[i] end
    record[5] = struct.pack('<I2', used + end_at(id_ends, i) - before)
    parts[#parts + 1] = table.concat(record)
  end
  local new_ids = ids:sub(before + 1, end_at(id_ends, last))
  local packed = table.concat(parts)
  if first % ROWS == 0 then
    redis.call('SET', key, packed .. string.rep('\0', ROWS * RECORD - #packed) .. new_ids)
  else
    redis.call('SETRANGE', key, at, packed)
    redis.call('APPEND', key, new_ids)
    -- A full chunk releases the memory that APPEND reserves.
    if (rows + last) % ROWS == 0 then redis.call('SET', key, redis.call('GET', key)) end
  end
  j = last + 1
end
local now_steps, now_mark = advance(state[5], state[6], writer, counter)
redis.call('HSET', meta, 'rows', rows + num, 'num_kept', tonumber(state[7]) + num_kept, 'steps', now_steps, 'mark', now_mark)

if ttl then
  -- Buckets forget what expired when they are added to, one of sixteen times.
  local function forget(key, length)
    local packed = redis.call('GET', key) or ''
    local left = {}
    for from = 1, #packed, length do
      local entry = packed:sub(from, from + length - 1)
      if unpack_row(entry:sub(-4)) >= watermark then left[#left + 1] = entry end
    end
    if #left * length < #packed then
      if #left == 0 then redis.call('DEL', key) else redis.call('SET', key, table.concat(left)) end
    end
  end
  for i = 1, num do
    if watermark > 0 and (rows + i) % 16 == 0 then
      local fingerprint = fingerprints:sub((i - 1) * BYTES + 1, i * BYTES)
      forget(prefix .. 'i' .. hashes:sub(8 * i - 7, 8 * i - 6), 6)
      forget(removed_key(fingerprint), BYTES + 2)
      for b = 1, CLASSIC and 0 or #BLOCKS do
        forget(prefix .. 'b' .. b .. block_of(fingerprint, b), BYTES + 2)
      end
    end
  end
end
return {'ok', rows}
