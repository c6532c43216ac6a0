"""Lua that runs inside Redis, where a step and its index must change together."""

# Times are the server's own, in microseconds, so gateways need not agree on theirs.
_WITHDRAWN = """
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local function is_withdrawn(key, age, names)
  local since = string.format('(%.0f', now() - age)
  local selectors = redis.call('ZRANGEBYSCORE', key, since, '+inf')
  if #selectors == 0 then return false end
  local answer = cjson.decode(names)
  local tags = {}
  for _, tag in ipairs(answer.tags) do tags[tag] = true end
  for _, text in ipairs(selectors) do
    local fits = true
    for field, value in pairs(cjson.decode(text)) do
      if field == 'tag' then fits = fits and tags[value]
      else fits = fits and answer[field] == value end
    end
    if fits then return true end
  end
  return false
end
"""

# KEYS: withdrawals. ARGV: age in microseconds, the answer's names
IS_WITHDRAWN = f"""{_WITHDRAWN}
return is_withdrawn(KEYS[1], tonumber(ARGV[1]), ARGV[2]) and 1 or 0
"""

# KEYS: withdrawals. ARGV: selector, how long to keep it in ms
WITHDRAW = f"""{_WITHDRAWN}
redis.call('ZADD', KEYS[1], string.format('%.0f', now()), ARGV[1])
local old = string.format('%.0f', now() - tonumber(ARGV[2]) * 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', old)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""

# KEYS: entry, registry, expiry, withdrawals, then the indexes scored by creation (created, tenant,
# tags …). ARGV: value, TTL in ms, created_at, expires_at, member, age in microseconds, names
# Every key outlives the entry it now serves, and no key is without a TTL.
PUT = (
    _WITHDRAWN
    + """
if is_withdrawn(KEYS[4], tonumber(ARGV[6]), ARGV[7]) then return 0 end
local function keep(key)
  if redis.call('PTTL', key) < tonumber(ARGV[2]) then redis.call('PEXPIRE', key, ARGV[2]) end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[5])
redis.call('SADD', KEYS[2], KEYS[3])
for i = 5, #KEYS do
  redis.call('ZADD', KEYS[i], ARGV[3], ARGV[5])
  redis.call('SADD', KEYS[2], KEYS[i])
  keep(KEYS[i])
end
keep(KEYS[2])
keep(KEYS[3])
return 1
"""
)

# KEYS: entry, then the indexes it stood in. ARGV: member
# An entry written anew since it was deleted keeps its place in the indexes.
UNLINK = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
for i = 2, #KEYS do redis.call('ZREM', KEYS[i], ARGV[1]) end
return 1
"""

# KEYS: index, registry. ARGV: key prefix, first rank, number of ranks
# Returns how many members were looked at and how many of them had no entry and were removed.
PRUNE = """
local last = ARGV[2] + ARGV[3] - 1
local members = redis.call('ZRANGE', KEYS[1], ARGV[2], last)
local dead = {}
for _, member in ipairs(members) do
  local colon = string.find(member, ':', 1, true)
  local tenant, id = string.sub(member, 1, colon - 1), string.sub(member, colon + 1)
  if redis.call('EXISTS', ARGV[1] .. ':{' .. tenant .. '}:e:' .. id) == 0 then
    dead[#dead + 1] = member
  end
end
if #dead > 0 then redis.call('ZREM', KEYS[1], unpack(dead)) end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], KEYS[1]) end
return {#members, #dead}
"""
