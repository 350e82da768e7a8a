-- Changes by an operator. KEYS: fleet, or an account for `release`. ARGV: operation, replica.
local key, op, replica = KEYS[1], ARGV[1], ARGV[2]
if op == 'thaw' then
  if redis.call('HGET', key, 'frozen') ~= '1' then return 0 end
  redis.call('HSET', key, 'frozen', '0')
  return 1
end
if op == 'forget' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local mine = redis.call('HGET', key, 'r:' .. replica)
  if mine then
    local holder, at = string.match(mine, '^(%S+) (%d+)$')
    if holder ~= '-' and now - tonumber(at) < 5000 then return 0 end
  end
  redis.call('HDEL', key, 'r:' .. replica, 'd:' .. replica)
  return 1
end
local fields, changed = redis.call('HGETALL', key), 0
local settled, start = {}, 'c:' .. replica .. '/'
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'u:' then settled[string.sub(fields[i], 3)] = fields[i + 1] end
end
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, #start) == start then
    local used = settled[string.sub(fields[i], 3)] or '0'
    if fields[i + 1] ~= used then
      redis.call('HSET', key, fields[i], used)
      changed = 1
    end
  end
end
return changed
