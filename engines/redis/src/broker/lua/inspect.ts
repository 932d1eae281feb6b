import { topic } from './topic.ts';

const queues = `
local function queues()
  local names = {':first', ':retry', ':suspects', ':behind'}
  for _, cause in ipairs(redis.call('SMEMBERS', base .. ':causes')) do names[#names + 1] = ':held:' .. cause end
  return names
end
local function size(queue) return redis.call('ZCARD', base .. queue) end
`;

/**
 * Counts events. Returns the time, then these numbers: ready, delayed, waiting for an earlier event of their
 * key, in quarantine, leased, suspect (the lease expired), parked and blocking their key. The last value is
 * the due time of the first event ('' for none).
 */
export const counts: string = `${topic}${queues}
if not ordering then return false end
expire()
local held, first_due = 0, ''
for _, queue in ipairs(queues()) do
  if queue:sub(1, 6) == ':held:' then held = held + size(queue) end
end
local ready = redis.call('LLEN', base .. ':fresh')
local oldest = redis.call('LINDEX', base .. ':fresh', 0)
if oldest then first_due = stamp_of(oldest) end
local waited = 0
for _, queue in ipairs({':first', ':retry'}) do
  waited = waited + redis.call('ZCOUNT', base .. queue, '-inf', now)
  local due = redis.call('ZRANGE', base .. queue, 0, 0, 'WITHSCORES')[2]
  if due and (first_due == '' or tonumber(due) < tonumber(first_due)) then first_due = due end
end
local delayed = size(':first') + size(':retry') - waited
local rest = {size(':behind'), held, size(':leased'), size(':suspects'), size(':blocking')}
return {whole(math.floor(now)), ready + waited, delayed, rest[1], rest[2], rest[3], rest[4], rest[5], first_due}`;

/** Counts events by the time until they are due. ARGV: the upper bounds of the ranges, in ms from now. */
export const due: string = `${topic}${queues}
if not ordering then return false end
expire()
local answers, from, fresh = {}, '-inf', redis.call('LLEN', base .. ':fresh')
for i = 1, #ARGV + 1 do
  local to = ARGV[i] and string.format('%.3f', now + tonumber(ARGV[i]))
  local count = 0
  for _, queue in ipairs(queues()) do
    count = count + redis.call('ZCOUNT', base .. queue, from, to and '(' .. to or '+inf')
  end
  -- Fresh events are due now.
  if not ARGV[i] or tonumber(ARGV[i]) > 0 then count, fresh = count + fresh, 0 end
  answers[i] = count
  from = to
end
return answers`;

/**
 * Lists events in the order of publication. ARGV: the sequence number after which the list starts, and how
 * many events to read. Returns the time, and for each event: member, state, due time, owner, body, attempts.
 */
const list = `
local leased = {}
local function read_leased()
  for _, lease in ipairs(redis.call('ZRANGE', base .. ':leased', 0, -1)) do
    local member, due, owner = read_lease(lease)
    leased[member] = {due, owner}
  end
end

local function place_of(member, names)
  if leased[member] then return 'leased', leased[member][1], leased[member][2] end
  for _, queue in ipairs(names) do
    local due = redis.call('ZSCORE', base .. queue, member)
    if due then return queue, due, '' end
  end
  if redis.call('ZSCORE', base .. ':blocking', member) then return ':blocking', '0', '' end
  return ':fresh', stamp_of(member), ''
end

local function describe(members)
  local names, found = queues(), {}
  for _, member in ipairs(members) do
    local id = id_of(member)
    local queue, due, owner = place_of(member, names)
    local tries = redis.call('HGET', base .. ':tries', id) or ''
    found[#found + 1] = {member, queue, due, owner, redis.call('HGET', base .. ':events', id), tries}
  end
  return {whole(math.floor(now)), found}
end
`;

export const published: string = `${topic}${queues}${list}
if not ordering then return false end
expire()
read_leased()
local members = {}
local found = redis.call('ZRANGEBYSCORE', base .. ':order', '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for i = 1, #found, 2 do members[#members + 1] = member_of(found[i + 1], found[i]) end
return describe(members)`;

/**
 * Like `published`, but in the order of due times. ARGV: the due time and the member after which the list
 * starts, and how many events to read.
 */
export const byDueTime: string = `${topic}${queues}${list}
if not ordering then return false end
expire()
read_leased()
local after_due, after, count = ARGV[1], ARGV[2], tonumber(ARGV[3])
local all = {}
local function add(member, due)
  if tonumber(due) > tonumber(after_due) or (tonumber(due) == tonumber(after_due) and member > after) then
    all[#all + 1] = {member, tonumber(due)}
  end
end
for _, queue in ipairs(queues()) do
  local offset, wanted = 0, #all + count
  repeat
    local found = redis.call('ZRANGEBYSCORE', base .. queue, after_due, '+inf', 'WITHSCORES', 'LIMIT', offset, count)
    for i = 1, #found, 2 do add(found[i], found[i + 1]) end
    offset = offset + count
  until #found < 2 * count or #all >= wanted
end
-- Fresh events are in the order in which they are due: search the first one after the given place.
local from, to = 0, redis.call('LLEN', base .. ':fresh')
while from < to do
  local middle = math.floor((from + to) / 2)
  local member = redis.call('LINDEX', base .. ':fresh', middle)
  local due = tonumber(stamp_of(member))
  if due > tonumber(after_due) or (due == tonumber(after_due) and member > after) then to = middle
  else from = middle + 1 end
end
for _, member in ipairs(redis.call('LRANGE', base .. ':fresh', from, from + count - 1)) do add(member, stamp_of(member)) end
for _, member in ipairs(redis.call('ZRANGE', base .. ':blocking', 0, -1)) do add(member, '0') end
for member, lease in pairs(leased) do add(member, lease[1]) end
table.sort(all, function(a, b) return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1]) end)
local members = {}
for i = 1, math.min(count, #all) do members[i] = all[i][1] end
return describe(members)`;

const memberOf = `
local function known_member(id)
  local seq = redis.call('ZSCORE', base .. ':order', id)
  return seq and member_of(seq, id)
end
`;

/**
 * Makes delayed events due now. ARGV: 1 to change nothing, then the ids. Returns 1 for each event that is
 * delayed, and 0 for each other event.
 */
export const retryNow: string = `${topic}${queues}${memberOf}
if not ordering then return false end
expire()
local answers, names = {}, queues()
for i = 2, #ARGV do
  local member = known_member(ARGV[i])
  answers[i - 1] = 0
  for _, queue in ipairs(member and names or {}) do
    local due = redis.call('ZSCORE', base .. queue, member)
    if due and tonumber(due) > now then
      answers[i - 1] = 1
      if ARGV[1] == '0' then redis.call('ZADD', base .. queue, due_in(0), member) end
    end
  end
end
if ARGV[1] == '0' then ring() end
return answers`;

/**
 * Removes parked events from their keys, so that later events of these keys can run. ARGV: 1 to change
 * nothing, then the ids. Returns 1 for each event that blocks a key, and 0 for each other event.
 */
export const unblock: string = `${topic}${memberOf}
if not ordering then return false end
local answers = {}
for i = 2, #ARGV do
  local member = known_member(ARGV[i])
  local blocks = member and redis.call('ZSCORE', base .. ':blocking', member)
  answers[i - 1] = blocks and 1 or 0
  if blocks and ARGV[1] == '0' then
    redis.call('ZREM', base .. ':blocking', member)
    forget(member)
  end
end
if ARGV[1] == '0' then ring() end
return answers`;
