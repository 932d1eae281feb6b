/**
 * The common part of the scripts for operators' controls. KEYS[1]: a hash with `version`, and with the
 * controls by id. A control is the text "since until version", a line break and JSON. KEYS[2]: a sorted set
 * of the ids by their end time.
 */
const common = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local function whole(ms) return string.format('%.0f', ms) end
local function changed() return redis.call('HINCRBY', KEYS[1], 'version', 1) end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1000)) do
  redis.call('ZREM', KEYS[2], id)
  redis.call('HDEL', KEYS[1], 'control:' .. id)
  changed()
end
`;

export const version: string = `${common}
return tonumber(redis.call('HGET', KEYS[1], 'version')) or 0`;

/** Returns the current time and the whole hash. */
export const active: string = `${common}
return {whole(math.floor(now)), redis.call('HGETALL', KEYS[1])}`;

/**
 * Stores a control. ARGV: id, JSON, duration in ms ('' for ever), the largest number of controls. Returns the
 * stored text, or null if there are too many controls.
 */
export const impose: string = `${common}
local id, control, ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local field = 'control:' .. id
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[4]) and redis.call('HEXISTS', KEYS[1], field) == 0 then return false end
local since = math.floor(now)
local ends = ms and whole(since + ms) or ''
local stored = whole(since) .. ' ' .. ends .. ' ' .. changed() .. '\\n' .. control
redis.call('HSET', KEYS[1], field, stored)
redis.call('ZREM', KEYS[2], id)
if ms then redis.call('ZADD', KEYS[2], ends, id) end
return stored`;

/** Removes a control. ARGV: its id. Returns 1, or 0 if there is no such control. */
export const lift: string = `${common}
redis.call('ZREM', KEYS[2], ARGV[1])
if redis.call('HDEL', KEYS[1], 'control:' .. ARGV[1]) == 0 then return 0 end
changed()
return 1`;
