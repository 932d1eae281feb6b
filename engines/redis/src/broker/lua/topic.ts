/**
 * The common part of all scripts of a topic. `KEYS[1]` is a hash with the settings of the topic. The names of
 * all its other Redis keys start with this name.
 *
 * A new event that is due at once is in the list `:fresh`. Other unleased events are in sorted sets, by due
 * time: `:first` (never failed), `:retry`, `:suspects` (its lease expired), `:behind` (it waits for an
 * earlier event of its key) or `:held:…` (it is in quarantine). Leased events are in `:leased`, by the end of
 * the lease. Parked events that block their key are in `:blocking`.
 *
 * A sequence number is the time of the publish in 1024ths of a millisecond, and increases with every event.
 * `:order` maps ids to sequence numbers. These hashes are by id: `:events` (the event), `:tries` (its
 * attempts after the first), `:replays` (its replay) and `:keys` (its key, if the order of the key is kept).
 * `:key:<key>` has all events of a key, in order.
 */
export const topic = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local base = KEYS[1]
local ordering = redis.call('HGET', base, 'ordering')
local by_key = ordering == 'key'
local chunk = 4000

local function whole(ms) return string.format('%.0f', ms) end
-- Due times of events that need not wait are whole: the member keeps the order of those of one millisecond.
local function due_in(ms) return ms > 0 and string.format('%.3f', now + ms) or whole(math.floor(now)) end
local function member_of(seq, id) return string.format('%016d', seq) .. id end
local function id_of(member) return member:sub(17) end
local function stamp_of(member) return whole(math.floor(tonumber(member:sub(1, 16)) / 1024)) end

-- Reserves sequence numbers. Returns the one before the first.
local function reserve(name, count)
  local last = math.max(tonumber(redis.call('HGET', name, 'seq')) or 0, math.floor(now) * 1024)
  redis.call('HSET', name, 'seq', whole(last + count))
  return last
end

-- A body begins with the time of its publish and NUL. Without a time, the sequence number tells it.
local function stamped(member, body)
  if body:byte(1) == 0 then return stamp_of(member) .. body end
  return body
end

local function call_chunked(command, key, args)
  for from = 1, #args, chunk do
    redis.call(command, key, unpack(args, from, math.min(from + chunk - 1, #args)))
  end
end

local function read_chunked(command, key, args)
  local values = {}
  for from = 1, #args, chunk do
    local part = redis.call(command, key, unpack(args, from, math.min(from + chunk - 1, #args)))
    for i = 1, #part do values[from + i - 1] = part[i] end
  end
  return values
end

-- attempts, snoozes, deaths, next delay, suspect, final attempt, error, story, diagnosis
local function read_tries(stored)
  if not stored then return {0, 0, 0, '', 0, '', '', '', ''} end
  local tries = {}
  for field in (stored .. '\\n'):gmatch('(.-)\\n') do tries[#tries + 1] = field end
  for i = 1, 3 do tries[i] = tonumber(tries[i]) end
  tries[5] = tonumber(tries[5])
  return tries
end
local function tries_of(id) return read_tries(redis.call('HGET', base .. ':tries', id)) end
local function write_tries(id, tries) redis.call('HSET', base .. ':tries', id, table.concat(tries, '\\n')) end

local function enqueue(member, due, tries)
  local queue = ':first'
  if tries[5] == 1 then queue = ':suspects'
  elseif tries[1] > 0 then queue = ':retry' end
  redis.call('ZADD', base .. queue, due, member)
end

-- Puts an event that is not leased where the next lease finds it.
local function place(member, due, tries)
  local key = by_key and redis.call('HGET', base .. ':keys', id_of(member))
  if key and redis.call('ZRANGE', base .. ':key:' .. key, 0, 0)[1] ~= member then
    redis.call('ZADD', base .. ':behind', due, member)
  else enqueue(member, due, tries) end
end

-- The event no longer holds the key. The next event of the key takes its turn.
local function end_turn(key, member)
  local same_key = base .. ':key:' .. key
  redis.call('ZREM', same_key, member)
  local head = redis.call('ZRANGE', same_key, 0, 0)[1]
  local due = head and redis.call('ZSCORE', base .. ':behind', head)
  if not due then return end
  redis.call('ZREM', base .. ':behind', head)
  enqueue(head, due, tries_of(id_of(head)))
end

local function release_key(member)
  local key = by_key and redis.call('HGET', base .. ':keys', id_of(member))
  if not key then return end
  redis.call('HDEL', base .. ':keys', id_of(member))
  end_turn(key, member)
end

local function forget(member)
  local id = id_of(member)
  release_key(member)
  redis.call('HDEL', base .. ':events', id)
  redis.call('HDEL', base .. ':tries', id)
  redis.call('HDEL', base .. ':replays', id)
  redis.call('ZREM', base .. ':order', id)
end

-- A member of ':leased' is the token, NUL and the id. The token is lease:sequence:due:owner.
local function leased_id(leased) return leased:sub(leased:find('\\0', 1, true) + 1) end
local function leased_member(leased)
  local seq = leased:find(':', 1, true) + 1
  return leased:sub(seq, seq + 15) .. leased_id(leased)
end
local function read_lease(leased)
  local due, owner = leased:match('^%d+:%d+:([^:]+):([^%z]*)%z')
  return leased_member(leased), due, owner
end

-- Events whose lease has ended are suspects: they may have crashed their process.
local function expire()
  for round = 1, 10 do
    local over = redis.call('ZRANGEBYSCORE', base .. ':leased', '-inf', now, 'LIMIT', 0, 1000)
    if #over == 0 then return end
    call_chunked('ZREM', base .. ':leased', over)
    for _, leased in ipairs(over) do
      local member, due = read_lease(leased)
      local tries = tries_of(id_of(member))
      tries[3] = tries[3] + 1
      tries[5] = 1
      write_tries(id_of(member), tries)
      place(member, due, tries)
    end
  end
end

local function ring(name) redis.call('PUBLISH', (name or base) .. ':bell', '') end
`;
