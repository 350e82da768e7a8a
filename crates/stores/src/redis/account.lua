-- Applies one message about one account in one window.
-- KEYS: account, fleet. ARGV: operation, owner, run, epoch, sequence, limit, need, wanted, settled, held, expiry,
-- known, replicas, recall_ms. Amounts are absolute. Fields: c:OWNER claim, u:OWNER settled use, s:OWNER sequence of the
-- latest message; wanted: time at which a replica got less than it needed; thaw: time before which nothing is granted.
local function text(n) return string.format('%.0f', n) end
local op, owner = ARGV[1], ARGV[2]
local fleet = redis.call('HMGET', KEYS[2], 'run', 'epoch', 'frozen')
if fleet[1] ~= ARGV[3] or fleet[2] ~= ARGV[4] then return {1, 0, 0, 0, 0, 0, 0} end
local frozen = fleet[3] ~= '0'
local sequence, limit = tonumber(ARGV[5]), tonumber(ARGV[6])
local need, wanted = tonumber(ARGV[7]), tonumber(ARGV[8])
local settled, held = tonumber(ARGV[9]), tonumber(ARGV[10])
local expiry, replicas, recall_ms = tonumber(ARGV[11]), tonumber(ARGV[13]), tonumber(ARGV[14])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local fields = redis.call('HGETALL', KEYS[1])
local claim, own, latest, others, others_settled, wanted_at, thaw = 0, 0, 0, 0, 0, 0, 0
for i = 1, #fields, 2 do
  local name, value = fields[i], tonumber(fields[i + 1])
  local kind, holder = string.sub(name, 1, 2), string.sub(name, 3)
  if kind == 'c:' then
    if holder == owner then claim = value else others = others + value end
  elseif kind == 'u:' then
    if holder == owner then own = value else others_settled = others_settled + value end
  elseif kind == 's:' then
    if holder == owner then latest = value end
  elseif name == 'wanted' then wanted_at = value
  elseif name == 'thaw' then thaw = value end
end
if sequence <= latest then return {2, 0, 0, 0, latest, 0, 0} end
-- The account is lost although the fleet is not: other claims are repeated within the next reports.
if #fields == 0 and ARGV[12] == '1' then
  thaw = now + recall_ms
  redis.call('HSET', KEYS[1], 'thaw', text(thaw))
end
if now < thaw then frozen = true end

own = math.max(own, settled)
if op == 'return' then
  claim = math.max(held, own)
else
  claim = math.max(claim, held, own)
  if op == 'take' and not frozen then
    local room = limit - others
    local reserve = 0
    if now - wanted_at > 20 * recall_ms then
      reserve = math.max(0, math.floor(math.min(limit / 100, (room - wanted) / (8 * replicas))))
    end
    claim = math.max(claim, math.min(room, math.max(need, wanted + reserve)))
  end
  if op == 'take' and claim < need then
    wanted_at = now
    redis.call('HSET', KEYS[1], 'wanted', text(now))
  end
end
redis.call('HSET', KEYS[1], 'c:' .. owner, text(claim), 'u:' .. owner, text(own), 's:' .. owner, text(sequence))
if expiry >= 0 then redis.call('PEXPIRE', KEYS[1], text(expiry))
elseif expiry == -1 then redis.call('PERSIST', KEYS[1])
elseif redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], 3456000000) end
local is_wanted = now - wanted_at <= 20 * recall_ms and 1 or 0
return {0, claim, math.min(others, 9007199254740992), math.min(others_settled, 9007199254740992), own, frozen and 1 or 0, is_wanted}
