/** Lua scripts, which Redis executes atomically. `now` is the time of Redis in epoch ms, with a fraction. */

const now = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
`;

/**
 * Claims idempotency keys. KEYS per claim: the key and the sorted set of its scope. Keys without `liveMax` are in a
 * second set (`:uncounted`). ARGV per claim: fingerprint, token, lease ms, keep ms, `liveMax` ('' for none), and 1 to
 * take over an expired lease. Fields of the hash: f(ingerprint), t(oken), a(ttempt), l(ease end), d(one), r(ecord),
 * c(ounted).
 */
export const begin: string = `${now}
local answers = {}
for i = 1, #KEYS / 2 do
  local key, scope = KEYS[2 * i - 1], KEYS[2 * i]
  local at = 6 * (i - 1)
  local fingerprint, token, leaseMs, keepMs = ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local liveMax, takesOver = tonumber(ARGV[at + 5]), ARGV[at + 6] == '1'
  local entry = redis.call('HMGET', key, 'f', 't', 'a', 'l', 'd', 'r')
  local known = entry[1]
  local held = known and not entry[5] and tonumber(entry[4]) > now
  if known and known ~= fingerprint then answers[i] = {'mismatch'}
  elseif known and entry[5] == '1' then answers[i] = {'done', entry[6]}
  elseif known and entry[5] then answers[i] = {'tombstone'}
  elseif held and entry[2] == token then answers[i] = {'acquired', tonumber(entry[3])}
  elseif held then answers[i] = {'running', math.max(1, math.ceil(tonumber(entry[4]) - now))}
  elseif known and not takesOver then answers[i] = {'unknown'}
  else
    local full = false
    if liveMax and not known then
      redis.call('ZREMRANGEBYSCORE', scope, '-inf', now)
      full = redis.call('ZCARD', scope) >= liveMax
    end
    if full then answers[i] = {'full'}
    else
      local attempt = (tonumber(entry[3]) or 0) + 1
      local lives = math.ceil(math.max(keepMs, leaseMs))
      redis.call('HSET', key, 'f', fingerprint, 't', token, 'a', attempt, 'l', string.format('%.3f', now + leaseMs))
      redis.call('PEXPIRE', key, lives)
      if liveMax then redis.call('HSET', key, 'c', '1')
      else
        scope = scope .. ':uncounted'
        redis.call('ZREMRANGEBYSCORE', scope, '-inf', now)
      end
      redis.call('ZADD', scope, now + lives, key)
      if redis.call('PTTL', scope) < lives then redis.call('PEXPIRE', scope, lives) end
      answers[i] = {'acquired', attempt}
    end
  end
end
return answers`;

const held = `
local function held(key, token)
  local entry = redis.call('HMGET', key, 't', 'l', 'd', 'c')
  return entry[1] == token and not entry[3] and tonumber(entry[2]) > now, entry
end
`;

/**
 * Completes keys. KEYS per item: the key and the sorted set of its scope. ARGV per item: token, keep ms, '1' (or '2'
 * without a record), and the record. A repeated completion succeeds again.
 */
export const complete: string = `${now}${held}
local answers = {}
for i = 1, #KEYS / 2 do
  local key, scope = KEYS[2 * i - 1], KEYS[2 * i]
  local at = 4 * (i - 1)
  local token, keepMs, done, record = ARGV[at + 1], math.ceil(tonumber(ARGV[at + 2])), ARGV[at + 3], ARGV[at + 4]
  local isHeld, entry = held(key, token)
  if isHeld then
    redis.call('HSET', key, 'd', done, 'r', record)
    redis.call('PEXPIRE', key, keepMs)
    if not entry[4] then scope = scope .. ':uncounted' end
    redis.call('ZADD', scope, now + keepMs, key)
    if redis.call('PTTL', scope) < keepMs then redis.call('PEXPIRE', scope, keepMs) end
    answers[i] = 1
  else answers[i] = entry[1] == token and entry[3] and 1 or 0 end
end
return answers`;

/**
 * Deletes keys whose work was not done. KEYS per item: the key and the sorted set of its scope. ARGV per item: the
 * token.
 */
export const release: string = `${now}${held}
local answers = {}
for i = 1, #KEYS / 2 do
  local key, scope = KEYS[2 * i - 1], KEYS[2 * i]
  local isHeld, entry = held(key, ARGV[i])
  if isHeld then
    redis.call('DEL', key)
    redis.call('ZREM', entry[4] and scope or scope .. ':uncounted', key)
  end
  answers[i] = isHeld and 1 or 0
end
return answers`;

/**
 * Extends leases on keys. KEYS per item: the key and the sorted set of its scope. ARGV: the lease ms, then one token
 * per item.
 */
export const extend: string = `${now}${held}
local leaseMs = tonumber(ARGV[1])
local answers = {}
for i = 1, #KEYS / 2 do
  local key, scope = KEYS[2 * i - 1], KEYS[2 * i]
  local isHeld, entry = held(key, ARGV[i + 1])
  if isHeld then
    redis.call('HSET', key, 'l', string.format('%.3f', now + leaseMs))
    if redis.call('PTTL', key) < leaseMs then
      redis.call('PEXPIRE', key, math.ceil(leaseMs))
      if not entry[4] then scope = scope .. ':uncounted' end
      redis.call('ZADD', scope, now + leaseMs, key)
      if redis.call('PTTL', scope) < leaseMs then redis.call('PEXPIRE', scope, math.ceil(leaseMs)) end
    end
  end
  answers[i] = isHeld and 1 or 0
end
return answers`;

/**
 * Deletes keys of a scope that have no active lease. KEYS: the sorted set of the scope. ARGV: the start position and
 * the number of keys to check. Returns how many keys it deleted, how many it kept, and the size of the set.
 */
export const purge: string = `${now}
local from, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local forgotten, kept = 0, 0
for _, key in ipairs(redis.call('ZRANGE', KEYS[1], from, from + count - 1)) do
  local entry = redis.call('HMGET', key, 'l', 'd')
  if entry[1] and not entry[2] and tonumber(entry[1]) > now then kept = kept + 1
  else
    forgotten = forgotten + redis.call('DEL', key)
    redis.call('ZREM', KEYS[1], key)
  end
end
return {forgotten, kept, redis.call('ZCARD', KEYS[1])}`;

/**
 * Records that events were handled, and returns 1 for each new record. KEYS: the records. ARGV: how long they are kept,
 * in ms.
 */
export const mark: string = `
local answers = {}
for i = 1, #KEYS do
  answers[i] = redis.call('SET', KEYS[i], '1', 'NX', 'PX', ARGV[1]) and 1 or 0
end
return answers`;

/**
 * Takes tokens from GCRA rate limits. KEYS: the keys of all requests. ARGV per request: the number of limits, then rate
 * per ms, burst and cost of each limit. Fractions are returned as texts, because Redis truncates numbers.
 */
export const take: string = `${now}
local answers = {}
local at, keyAt = 1, 1
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  local waitMs, tats = 0, {}
  for i = 0, count - 1 do
    local rate, burst, cost = tonumber(ARGV[at + 3 * i + 1]), tonumber(ARGV[at + 3 * i + 2]), tonumber(ARGV[at + 3 * i + 3])
    local tat = math.max(tonumber(redis.call('GET', KEYS[keyAt + i]) or 0), now)
    tats[i] = tat
    if cost > burst then waitMs = math.huge
    else
      local wait = tat - now - (burst - cost) / rate
      if wait * rate >= 0.001 and wait > waitMs then waitMs = wait end
    end
  end
  local answer = { waitMs == math.huge and 'never' or string.format('%.6f', waitMs) }
  for i = 0, count - 1 do
    local rate, burst, cost = tonumber(ARGV[at + 3 * i + 1]), tonumber(ARGV[at + 3 * i + 2]), tonumber(ARGV[at + 3 * i + 3])
    local tat = tats[i]
    if waitMs == 0 and cost > 0 then
      -- Read again: a request may name the same key twice.
      tat = math.max(tonumber(redis.call('GET', KEYS[keyAt + i]) or 0), now) + cost / rate
      redis.call('SET', KEYS[keyAt + i], string.format('%.6f', tat), 'PX', math.max(1, math.ceil(tat - now)))
    end
    answer[i + 2] = string.format('%.6f', tat - now)
  end
  answers[#answers + 1] = answer
  at = at + 3 * count + 1
  keyAt = keyAt + count
end
return answers`;
