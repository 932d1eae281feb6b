import { topic } from './topic.ts';

/**
 * Stores events. ARGV per event: id, body, and '' or JSON with the fields d (delay in ms) or a (due time,
 * epoch ms), r (replay), t (attempts), f (later events of its key need not wait for it), b (it is parked and
 * blocks its key). Returns the positions of the duplicates, or null if there is no such topic.
 */
export const publish: string = `${topic}
if not ordering then return false end
local count = #ARGV / 3
if count == 0 then return {} end
local last, due_now = reserve(base, count), due_in(0)
local ids = {}
for i = 1, count do ids[i] = ARGV[3 * i - 2] end
local known = read_chunked('ZMSCORE', base .. ':order', ids)
local stored, order, keys, fresh, firsts, behind, duplicates = {}, {}, {}, {}, {}, {}, {}
local function key_end(body) return (body:find('\\0', 2, true)) end
local function add(list, a, b)
  list[#list + 1] = a
  list[#list + 1] = b
end

-- Puts a new event behind the others of its key. Returns true if there are any.
local function join_key(key, seq, id)
  local same_key = base .. ':key:' .. key
  add(keys, id, key)
  redis.call('ZADD', same_key, seq, member_of(seq, id))
  return redis.call('ZCARD', same_key) > 1
end

-- The new event takes the place of a parked one that blocks its key. Returns false if there is none.
local function replace_blocking(id, seq, body)
  if seq == true or redis.call('ZREM', base .. ':blocking', member_of(seq, id)) == 0 then return false end
  local key = redis.call('HGET', base .. ':keys', id)
  redis.call('HSET', base .. ':events', id, due_now .. '\\0' .. key .. body:sub(key_end(body)))
  redis.call('HDEL', base .. ':tries', id)
  redis.call('HDEL', base .. ':replays', id)
  return true
end

local in_batch = {}
for i = 1, count do
  local id, body, extra = ids[i], ARGV[3 * i - 1], ARGV[3 * i]
  extra = extra ~= '' and cjson.decode(extra) or nil
  local due = due_now
  if extra and extra.d then due = due_in(extra.d) end
  if extra and extra.a then due = string.format('%.3f', extra.a) end
  local earlier = known[i] or in_batch[id]
  in_batch[id] = true
  if extra and extra.r then redis.call('HSET', base .. ':replays', id, extra.r) end
  if earlier and not replace_blocking(id, earlier, body) then duplicates[#duplicates + 1] = i
  else
    local seq = earlier or last + i
    local member = member_of(seq, id)
    if extra and extra.t then redis.call('HSET', base .. ':tries', id, extra.t) end
    if extra and extra.r then redis.call('HSET', base .. ':replays', id, extra.r) end
    if earlier then place(member, due, read_tries(extra and extra.t))
    else
      add(stored, id, body)
      add(order, seq, id)
      local key = by_key and not (extra and extra.f) and body:sub(2, key_end(body) - 1) or ''
      local is_behind = key ~= '' and join_key(key, seq, id)
      if key ~= '' and extra and extra.b then redis.call('ZADD', base .. ':blocking', seq, member)
      elseif is_behind then add(behind, due, member)
      elseif extra and extra.t then enqueue(member, due, read_tries(extra.t))
      elseif extra then add(firsts, due, member)
      else fresh[#fresh + 1] = member end
    end
  end
end
call_chunked('HSET', base .. ':events', stored)
call_chunked('ZADD', base .. ':order', order)
call_chunked('HSET', base .. ':keys', keys)
call_chunked('ZADD', base .. ':behind', behind)
call_chunked('ZADD', base .. ':first', firsts)
call_chunked('RPUSH', base .. ':fresh', fresh)
ring()
return duplicates`;

/**
 * Declares a topic. ARGV: the wanted ordering ('' to keep the stored one). Returns the stored ordering, and 1
 * if the change is refused: the topic has stored events, or it keeps the order of keys, which the change
 * would give up.
 */
export const declare: string = `${topic}
local wanted = ARGV[1]
if wanted == '' then wanted = ordering or 'none' end
if ordering and wanted ~= ordering and (by_key or redis.call('ZCARD', base .. ':order') > 0) then
  return {ordering, 1}
end
if wanted ~= ordering then redis.call('HSET', base, 'ordering', wanted) end
return {wanted, 0}`;
