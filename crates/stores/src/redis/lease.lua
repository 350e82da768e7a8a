-- Ownership of a name. KEYS: lease, latest token. ARGV: operation, owner, token, now (empty: the server's clock), ttl.
-- Fields: o owner, t token, e end. Tokens rise over all names and over a loss of the state: they are never below the
-- server's clock in microseconds.
local function text(n) return string.format('%.0f', n) end
local op, owner, token, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5])
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = ARGV[4] == '' and math.floor(micros / 1000) or tonumber(ARGV[4])
local held = redis.call('HMGET', KEYS[1], 'o', 't', 'e')
local ends = tonumber(held[3] or '0')
local lasts = math.min(now + ttl, 9007199254740992)
local is_own = held[2] == token
if op == 'release' then
  if is_own then redis.call('DEL', KEYS[1]) end
  return {0, '', '', 0}
end
if op == 'renew' then
  if not is_own or ends <= now then return {2, '', '', 0} end
else
  if held[1] and held[1] ~= owner and ends > now then return {1, held[1], text(ends - now), 0} end
  token = text(math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, micros))
  redis.call('SET', KEYS[2], token)
end
redis.call('HSET', KEYS[1], 'o', owner, 't', token, 'e', text(lasts))
-- Kept for a while beyond its end, so that the latest owner is known.
redis.call('PEXPIRE', KEYS[1], text(math.min(ttl, 4503599627370496) + 60000))
return {0, token, text(lasts), 0}
