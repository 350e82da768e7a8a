-- Applies a sign of life of a replica.
-- KEYS: fleet. ARGV: operation, replica, owner, run, fresh epoch, lifetime_ms, replicas, declared epoch, known replicas.
-- Fields: run: identity of the server process in which the epoch began; epoch; frozen; r:REPLICA: owner and time of its
-- latest sign of life; d:REPLICA: epoch in which it has declared its claims.
local key, op, replica, owner = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local run, fresh, lifetime, wanted = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Another process may have lost the latest writes, so what it says of claims is not believed.
if redis.call('HGET', key, 'run') ~= run then
  redis.call('HSET', key, 'run', run, 'epoch', fresh, 'frozen', '1')
end
local epoch = redis.call('HGET', key, 'epoch')
if redis.call('HGET', key, 'd:' .. replica) ~= epoch then
  for i = 9, #ARGV do redis.call('HSETNX', key, 'r:' .. ARGV[i], '- ' .. string.format('%.0f', now)) end
end
local mine = redis.call('HGET', key, 'r:' .. replica)
if mine then
  local holder, at = string.match(mine, '^(%S+) (%d+)$')
  if holder ~= '-' and holder ~= owner and now - tonumber(at) < lifetime then return {1, epoch, 1, 0, now, {}} end
end
if op == 'leave' then
  redis.call('HDEL', key, 'r:' .. replica, 'd:' .. replica)
else
  redis.call('HSET', key, 'r:' .. replica, owner .. ' ' .. string.format('%.0f', now))
end
if op == 'declare' and ARGV[8] == epoch then redis.call('HSET', key, 'd:' .. replica, epoch) end

local fields, names, declared, missing = redis.call('HGETALL', key), {}, {}, 0
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'd:' then declared[string.sub(fields[i], 3)] = fields[i + 1] end
end
local present = 0
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'r:' then
    local name = string.sub(fields[i], 3)
    names[#names + 1] = name
    if declared[name] == epoch then present = present + 1 else missing = missing + 1 end
  end
end
local frozen = redis.call('HGET', key, 'frozen')
if frozen == '1' and missing == 0 and present >= wanted then
  frozen = '0'
  redis.call('HSET', key, 'frozen', '0')
end
return {0, epoch, frozen == '0' and 0 or 1, declared[replica] == epoch and 1 or 0, now, names}
