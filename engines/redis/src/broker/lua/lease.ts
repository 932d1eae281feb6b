import { topic } from './topic.ts';

/**
 * Reads the topic's copy of the operators' controls. Fields: p (pause), r (pause of retries), t and k
 * (quarantined tenants and keys), each with the time at which it ends.
 */
const controls = `
local held_back = redis.call('GET', base .. ':controls')
held_back = held_back and cjson.decode(held_back) or {}
local function is_active(ends) return ends ~= nil and ends > now end
local paused = is_active(held_back.p)
local retries_paused = is_active(held_back.r)
local quarantines = held_back.t ~= nil or held_back.k ~= nil

-- Returns why an event is in quarantine: 't:' and its tenant, or 'k:' and its key.
local function quarantine_of(id)
  if not quarantines then return end
  local stored = redis.call('HGET', base .. ':events', id)
  local key, tenant = stored:match('^[^%z]*%z([^%z]*)%z([^%z]*)%z')
  if is_active((held_back.t or {})[tenant]) then return 't:' .. tenant end
  if is_active((held_back.k or {})[key]) then return 'k:' .. key end
end

local function is_quarantined(cause)
  return is_active((held_back[cause:sub(1, 1)] or {})[cause:sub(3)])
end

-- Events whose quarantine is over can be leased again.
local function release_held()
  for _, cause in ipairs(redis.call('SMEMBERS', base .. ':causes')) do
    if not is_quarantined(cause) then
      local set = base .. ':held:' .. cause
      local held = redis.call('ZRANGE', set, 0, 9999, 'WITHSCORES')
      for i = 1, #held, 2 do
        redis.call('ZREM', set, held[i])
        place(held[i], held[i + 1], tries_of(id_of(held[i])))
      end
      if redis.call('EXISTS', set) == 0 then redis.call('SREM', base .. ':causes', cause) end
    end
  end
end
`;

/**
 * Leases due events. ARGV: owner, limit, lease ms, bytesMax ('' for none), runMax, share of retries from 0 to
 * 1 ('' for none), 1 to lease a suspect (an event whose lease expired), and a request number. A request that
 * arrives twice with the same number gets the same answer twice.
 */
export const lease: string = `${topic}${controls}
if not ordering then return false end
local owner, limit, lease_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local bytes_max, run_max, share = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local wants_suspect, request = ARGV[7] == '1', ARGV[8]
local version = tonumber(redis.call('HGET', base, 'controls')) or 0

expire()
release_held()

local function hold(cause, due, member)
  redis.call('ZADD', base .. ':held:' .. cause, due, member)
  redis.call('SADD', base .. ':causes', cause)
end

-- Returns at most count events of the list of fresh events. Those in quarantine leave the list.
local function fresh_candidates(count)
  local list, looked = {}, 0
  while #list < count and looked < 5000 do
    local found = redis.call('LRANGE', base .. ':fresh', #list, count - 1)
    if #found == 0 then break end
    looked = looked + #found
    for _, member in ipairs(found) do
      local cause = quarantine_of(id_of(member))
      if cause then
        redis.call('LREM', base .. ':fresh', 1, member)
        hold(cause, stamp_of(member), member)
      else list[#list + 1] = {':fresh', member, stamp_of(member)} end
    end
  end
  return list
end

-- Returns at most count events of a queue. Those in quarantine leave the queue.
local function candidates(queue, max, count)
  local list, looked = {}, 0
  while #list < count and looked < 5000 do
    local found = redis.call('ZRANGEBYSCORE', base .. queue, '-inf', max, 'WITHSCORES', 'LIMIT', #list, count - #list)
    if #found == 0 then break end
    looked = looked + #found / 2
    for i = 1, #found, 2 do
      local cause = quarantine_of(id_of(found[i]))
      if cause then
        redis.call('ZREM', base .. queue, found[i])
        hold(cause, found[i + 1], found[i])
      else list[#list + 1] = {queue, found[i], found[i + 1]} end
    end
  end
  return list
end

local function is_before(a, b)
  local x, y = tonumber(a[3]), tonumber(b[3])
  return x < y or (x == y and a[2] < b[2])
end

-- Merges the first events of two lists by the time at which they are due.
local function merge(one, one_count, other, other_count)
  local merged, i, j = {}, 1, 1
  while #merged < limit and (i <= one_count or j <= other_count) do
    if j > other_count or (i <= one_count and is_before(one[i], other[j])) then
      merged[#merged + 1] = one[i]
      i = i + 1
    else
      merged[#merged + 1] = other[j]
      j = j + 1
    end
  end
  return merged
end

-- The heads that are leased, in the order in which they are due.
local function heads()
  if wants_suspect then
    return retries_paused and {} or candidates(':suspects', '+inf', math.min(1, limit))
  end
  local firsts, waited = fresh_candidates(limit), candidates(':first', now, limit)
  if #waited > 0 then firsts = merge(firsts, #firsts, waited, #waited) end
  local retries = retries_paused and {} or candidates(':retry', now, limit)
  if #retries == 0 then return firsts end
  local first_count, retry_count = #firsts, #retries
  if share and limit > 1 and first_count + retry_count > limit then
    local own = math.min(limit - 1, math.max(1, math.floor(limit * share)))
    retry_count = math.min(retry_count, math.max(own, limit - first_count))
    first_count = math.min(first_count, limit - retry_count)
  end
  return merge(firsts, first_count, retries, retry_count)
end

-- Adds the events of its key that can be handled right after a head.
local function add_run(list, head)
  local key = redis.call('HGET', base .. ':keys', id_of(head[2]))
  if not key then return end
  local followers = redis.call('ZRANGE', base .. ':key:' .. key, 1, math.min(run_max, limit) - 1)
  for _, member in ipairs(followers) do
    if #list >= limit then return end
    local due = redis.call('ZSCORE', base .. ':behind', member)
    if not due or tonumber(due) > now or quarantine_of(id_of(member)) then return end
    local tries = tries_of(id_of(member))
    if tries[5] == 1 or (retries_paused and tries[1] > 0) then return end
    list[#list + 1] = {':behind', member, due}
  end
end

local function chosen()
  if paused or limit < 1 then return {} end
  local found = heads()
  if not by_key or run_max < 2 or wants_suspect then return found end
  local list = {}
  for _, head in ipairs(found) do
    if #list >= limit then break end
    list[#list + 1] = head
    add_run(list, head)
  end
  return list
end

local function ids_of(list)
  local ids = {}
  for i = 1, #list do ids[i] = id_of(list[i][2]) end
  return ids
end

-- How many of the first bodies have at most bytesMax bytes of payload; at least 1.
local function count_within(bodies)
  local bytes = 0
  for i, body in ipairs(bodies) do
    local _, head = body:find('^[^%z]*%z[^%z]*%z[^%z]*%z[^%z]*%z')
    bytes = bytes + #body - head
    if i > 1 and bytes > bytes_max then return i - 1 end
  end
  return #bodies
end

local function is_too_much(bodies)
  local bytes = 0
  for i = 1, #bodies do bytes = bytes + #bodies[i] end
  return bytes > bytes_max
end

local suspects = retries_paused and 0 or redis.call('ZCARD', base .. ':suspects')

local function next_due()
  if paused then return '' end
  if redis.call('EXISTS', base .. ':fresh') == 1 then return '0' end
  local soonest
  for _, queue in ipairs({':first', not retries_paused and ':retry' or nil}) do
    local due = tonumber(redis.call('ZRANGE', base .. queue, 0, 0, 'WITHSCORES')[2])
    if due and (not soonest or due < soonest) then soonest = due end
  end
  return soonest and string.format('%.3f', math.max(0, soonest - now)) or ''
end

local function answer(number, list, bodies)
  local ids, members, dues = ids_of(list), {}, {}
  for i = 1, #list do members[i], dues[i] = list[i][2], list[i][3] end
  local tries = redis.call('EXISTS', base .. ':tries') == 1 and read_chunked('HMGET', base .. ':tries', ids) or {}
  local replays = redis.call('EXISTS', base .. ':replays') == 1 and read_chunked('HMGET', base .. ':replays', ids) or {}
  return {whole(math.floor(now)), suspects, next_due(), version, number, members, dues, bodies, tries, replays}
end

-- The answer to this request was lost on its way: what it leased is still leased.
local last = redis.call('HMGET', base .. ':last:' .. owner, 'request', 'number', 'ends')
if last[1] == request then
  local list, prefix = {}, last[2] .. ':'
  for _, leased in ipairs(redis.call('ZRANGEBYSCORE', base .. ':leased', last[3], last[3])) do
    if leased:sub(1, #prefix) == prefix then
      local member, due = read_lease(leased)
      list[#list + 1] = {':leased', member, due}
    end
  end
  return answer(tonumber(last[2]), list, read_chunked('HMGET', base .. ':events', ids_of(list)))
end

local list = chosen()
if #list == 0 then return answer(0, list, {}) end
local bodies = read_chunked('HMGET', base .. ':events', ids_of(list))
if bytes_max and is_too_much(bodies) then
  for i = #list, count_within(bodies) + 1, -1 do list[i], bodies[i] = nil, nil end
end
-- Removing comes first: Redis refuses other writes when its memory is full, but not in the middle of a script.
local by_queue = {}
for _, item in ipairs(list) do
  by_queue[item[1]] = by_queue[item[1]] or {}
  table.insert(by_queue[item[1]], item[2])
end
for queue, members in pairs(by_queue) do
  -- What is leased of the list is always its beginning.
  if queue == ':fresh' then redis.call('LTRIM', base .. queue, #members, -1)
  else call_chunked('ZREM', base .. queue, members) end
end
local number = redis.call('HINCRBY', base, 'leases', 1)
local ends, leases = whole(math.ceil(now + lease_ms)), {}
for i, item in ipairs(list) do
  local member = item[2]
  leases[2 * i - 1] = ends
  leases[2 * i] = number .. ':' .. member:sub(1, 16) .. ':' .. item[3] .. ':' .. owner .. '\\0' .. id_of(member)
end
call_chunked('ZADD', base .. ':leased', leases)
redis.call('HSET', base .. ':last:' .. owner, 'request', request, 'number', number, 'ends', ends)
redis.call('PEXPIRE', base .. ':last:' .. owner, 60000)
return answer(number, list, bodies)`;

/**
 * Extends leases. ARGV: the new duration in ms from now, then the leases. Returns 1 for each extended lease,
 * and 0 for each lost lease.
 */
export const extend: string = `${topic}
local ends = whole(math.ceil(now + tonumber(ARGV[1])))
local leases = {}
for i = 2, #ARGV do leases[i - 1] = ARGV[i] end
local known = read_chunked('ZMSCORE', base .. ':leased', leases)
local kept, answers = {}, {}
for i = 1, #leases do
  local is_kept = known[i] and tonumber(known[i]) > now
  answers[i] = is_kept and 1 or 0
  if is_kept then
    kept[#kept + 1] = ends
    kept[#kept + 1] = leases[i]
  end
end
call_chunked('ZADD', base .. ':leased', kept)
return answers`;

/**
 * Stores the topic's copy of its controls. ARGV: the version of the controls, and JSON ('' for none). If the
 * topic already has this version or a newer one, nothing changes.
 */
export const copyControls: string = `${topic}
if not ordering or (tonumber(redis.call('HGET', base, 'controls')) or 0) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', base, 'controls', ARGV[1])
if ARGV[2] == '' then redis.call('DEL', base .. ':controls')
else redis.call('SET', base .. ':controls', ARGV[2]) end
ring()
return 1`;
