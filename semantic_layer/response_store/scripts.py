"""Lua that runs inside Redis, where a step and its index must change together."""

# KEYS: entry, registry, expiry, then the indexes scored by creation (created, tenant, tags …)
# ARGV: value, TTL in ms, created_at, expires_at, member
# Every key outlives the entry it now serves, and no key is without a TTL.
PUT = """
local function keep(key)
  if redis.call('PTTL', key) < tonumber(ARGV[2]) then redis.call('PEXPIRE', key, ARGV[2]) end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[5])
redis.call('SADD', KEYS[2], KEYS[3])
for i = 4, #KEYS do
  redis.call('ZADD', KEYS[i], ARGV[3], ARGV[5])
  redis.call('SADD', KEYS[2], KEYS[i])
  keep(KEYS[i])
end
keep(KEYS[2])
keep(KEYS[3])
"""

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
