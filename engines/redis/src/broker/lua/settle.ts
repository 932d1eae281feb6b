import { topic } from './topic.ts';

/**
 * Settles leased events. KEYS: the topic and its dead-letter topic. ARGV, in this order: 1 if the result of a
 * replayed event must first be written to the store; how long marks are kept, in ms (a mark records that a
 * handler has handled an event); the number of acknowledgements, and their leases; the number of marks, and
 * for each mark the position of its settlement and its Redis key; and for each other settlement: lease, kind,
 * delay ms, error, story, flag, diagnosis.
 *
 * Returns for each settlement 1 (done), 0 (lease lost), or the event (body, attempts, replay) if it must
 * first be written to the store or to another topic. Such an event stays leased for at least 30 s.
 */
export const settle: string = `${topic}
local resolves, keep_marks = ARGV[1] == '1', ARGV[2]
local ack_count = tonumber(ARGV[3])
local marks_at = 4 + ack_count
local mark_count = tonumber(ARGV[marks_at])
local others_at = marks_at + 2 * mark_count
local other_count = (#ARGV - others_at) / 7
local leases = {}
for i = 1, ack_count do leases[i] = ARGV[3 + i] end
for i = 1, other_count do leases[ack_count + i] = ARGV[others_at + 7 * i - 6] end

local ends = read_chunked('ZMSCORE', base .. ':leased', leases)
local answers, seen, has_news = {}, {}, false
for i, lease in ipairs(leases) do
  local is_held = ends[i] and tonumber(ends[i]) > now and not seen[lease]
  seen[lease] = true
  answers[i] = is_held and 1 or 0
end

-- The event stays leased until its next state is written elsewhere.
local function defer(i)
  local id = leased_id(leases[i])
  redis.call('ZADD', base .. ':leased', 'GT', whole(now + 30000), leases[i])
  local replay = redis.call('HGET', base .. ':replays', id) or ''
  local tries = redis.call('HGET', base .. ':tries', id) or ''
  answers[i] = {redis.call('HGET', base .. ':events', id), tries, replay}
end

local has_replays = redis.call('EXISTS', base .. ':replays') == 1
local has_tries = redis.call('EXISTS', base .. ':tries') == 1
local acked, ids = {}, {}
for i = 1, ack_count do
  if answers[i] == 1 then
    local id = leased_id(leases[i])
    if resolves and has_replays and redis.call('HEXISTS', base .. ':replays', id) == 1 then defer(i)
    else
      acked[#acked + 1] = leases[i]
      ids[#ids + 1] = id
    end
  end
end
call_chunked('ZREM', base .. ':leased', acked)
call_chunked('HDEL', base .. ':events', ids)
call_chunked('ZREM', base .. ':order', ids)
if has_tries then call_chunked('HDEL', base .. ':tries', ids) end
if has_replays then call_chunked('HDEL', base .. ':replays', ids) end
if by_key and #ids > 0 then
  local keys = read_chunked('HMGET', base .. ':keys', ids)
  call_chunked('HDEL', base .. ':keys', ids)
  for i, lease in ipairs(acked) do
    if keys[i] then end_turn(keys[i], leased_member(lease)) end
  end
  has_news = true
end

local function settled(tries)
  tries[3], tries[5] = 0, 0
  return tries
end

local function put_back(member, id, delay, tries)
  tries[4] = whole(delay)
  write_tries(id, settled(tries))
  place(member, due_in(delay), tries)
end

-- The parked event stays, so that later events of its key wait for it.
local function block(member, id)
  if by_key and redis.call('HEXISTS', base .. ':keys', id) == 1 then
    redis.call('ZADD', base .. ':blocking', tonumber(member:sub(1, 16)), member)
    write_tries(id, settled(tries_of(id)))
  else forget(member) end
end

local function park(member, id, tries, diagnosis, holds_key)
  local parked = KEYS[2]
  local body = stamped(member, redis.call('HGET', base .. ':events', id))
  redis.call('HSETNX', parked, 'ordering', 'none')
  if redis.call('HSETNX', parked .. ':events', id, body) == 1 then
    local seq = reserve(parked, 1) + 1
    redis.call('ZADD', parked .. ':order', seq, id)
    redis.call('ZADD', parked .. ':first', due_in(0), member_of(seq, id))
    local replay = redis.call('HGET', base .. ':replays', id)
    if replay then redis.call('HSET', parked .. ':replays', id, replay) end
    local kept = {0, 0, 0, '', 0, tries[1] + 1, '', '', diagnosis}
    redis.call('HSET', parked .. ':tries', id, table.concat(kept, '\\n'))
  end
  ring(parked)
  if holds_key then block(member, id) else forget(member) end
end

-- To the end of its own topic.
local function requeue(member, id, tries)
  local body = stamped(member, redis.call('HGET', base .. ':events', id))
  redis.call('HSET', base .. ':events', id, body)
  release_key(member)
  local seq = reserve(base, 1) + 1
  local last = member_of(seq, id)
  redis.call('ZADD', base .. ':order', seq, id)
  local key = body:match('^[^%z]*%z([^%z]*)%z')
  if by_key and key ~= '' then
    redis.call('HSET', base .. ':keys', id, key)
    redis.call('ZADD', base .. ':key:' .. key, seq, last)
  end
  tries[1], tries[2], tries[4] = 0, 0, ''
  write_tries(id, settled(tries))
  place(last, due_in(0), tries)
end

for i = 1, other_count do
  local at = others_at + 7 * (i - 1)
  local lease, kind, delay, flag = ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), ARGV[at + 6] == '1'
  if answers[ack_count + i] == 1 then
    if kind == 'defer' then defer(ack_count + i)
    else
      local member, due = read_lease(lease)
      local id = id_of(member)
      local tries = tries_of(id)
      has_news = true
      redis.call('ZREM', base .. ':leased', lease)
      if kind == 'retry' then
        tries[1], tries[7], tries[8] = tries[1] + 1, ARGV[at + 4], ARGV[at + 5]
        if flag then release_key(member) end
        put_back(member, id, delay, tries)
      elseif kind == 'snooze' then
        tries[2] = tries[2] + 1
        put_back(member, id, delay, tries)
      elseif kind == 'return' then place(member, due, tries)
      elseif kind == 'park' then park(member, id, tries, ARGV[at + 7], flag)
      elseif kind == 'block' then block(member, id)
      else requeue(member, id, tries) end
    end
  end
end

for i = 1, mark_count do
  local position, key = tonumber(ARGV[marks_at + 2 * i - 1]), ARGV[marks_at + 2 * i]
  if answers[position] == 1 then redis.call('SET', key, 1, 'PX', keep_marks, 'NX') end
end
if has_news then ring() end
return answers`;
