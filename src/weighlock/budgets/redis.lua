-- One step on holds and counters: all of it happens, or nothing, for a script runs alone.
-- KEYS[1] is the prefix of every key, in braces, so that all stand in one slot. ARGV[1] is the step as JSON.
-- Amounts are written as whole numbers in text: JSON here would round what has more than 14 digits.

local P = KEYS[1]
local step = cjson.decode(ARGV[1])
local now = step.now

if now == cjson.null or now == nil then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function text(number) return string.format('%.0f', number) end

local function texts(amounts, times)
  local told = {}
  for metric, amount in pairs(amounts or {}) do
    local value = tonumber(amount) * (times or 1)
    if value ~= 0 then told[metric] = text(value) end
  end
  return told
end

local function sum(one, other, times)
  local found = {}
  for metric, amount in pairs(one or {}) do found[metric] = tonumber(amount) end
  for metric, amount in pairs(other or {}) do
    found[metric] = (found[metric] or 0) + tonumber(amount) * (times or 1)
  end
  return texts(found)
end

local function is_empty(amounts) return next(amounts or {}) == nil end

local function hold_of(id)
  local kept = redis.call('HGET', P .. 'holds', id)
  return kept and cjson.decode(kept) or nil
end

local function write(id, kind, held, spent, counters, note)
  local row = {seq = text(redis.call('INCR', P .. 'seq')), at = text(now), id = id, kind = kind,
               held = texts(held), spent = texts(spent), counters = counters, note = note}
  redis.call('RPUSH', P .. 'journal', cjson.encode(row))
end

local function add(counters, spent, held)
  for _, key in ipairs(counters) do
    for metric, amount in pairs(spent or {}) do redis.call('HINCRBY', P .. 'c:' .. key, 's:' .. metric, amount) end
    for metric, amount in pairs(held or {}) do redis.call('HINCRBY', P .. 'c:' .. key, 'h:' .. metric, amount) end
    redis.call('HSET', P .. 'touched', key, text(now))
  end
end

local function keep(id, kept)
  redis.call('HSET', P .. 'holds', id, cjson.encode(kept))
  if kept.state == 'held' then
    redis.call('ZADD', P .. 'due', kept.expires_at, id)
    redis.call('ZREM', P .. 'settled', id)
  else
    redis.call('ZREM', P .. 'due', id)
    redis.call('ZADD', P .. 'settled', text(now), id)
  end
end

local function book(id, kept, kind, held, spent, note)
  held, spent = texts(held), texts(spent)
  write(id, kind, held, spent, kept.counters, note)
  keep(id, kept)
  if not is_empty(held) or not is_empty(spent) or kind == 'reserve' then add(kept.counters, spent, held) end
end

local function charge_what_is_over()
  while true do
    local over = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', text(now), 'LIMIT', 0, 500)
    if #over == 0 then return end
    for _, id in ipairs(over) do
      local kept = hold_of(id)
      if kept and kept.state == 'held' then
        kept.state = 'expired'
        book(id, kept, 'expire', texts(kept.need, -1), kept.need)
      else
        redis.call('ZREM', P .. 'due', id)
      end
    end
  end
end

local function grants()
  local found = {}
  local every = redis.call('HGETALL', P .. 'grants')
  for at = 1, #every, 2 do
    local one = cjson.decode(every[at + 1])
    if tonumber(one['until']) > now then found[#found + 1] = one end
  end
  return found
end

local function standings(caps)
  local told, given = {}, nil
  for at, cap in ipairs(caps or {}) do
    local spent, held, granted = 0, 0, 0
    for _, key in ipairs(cap.counters) do
      local both = redis.call('HMGET', P .. 'c:' .. key, 's:' .. cap.metric, 'h:' .. cap.metric)
      spent, held = spent + (tonumber(both[1]) or 0), held + (tonumber(both[2]) or 0)
    end
    given = given or grants()
    for _, one in ipairs(given) do
      if one.scope == cap.scope and one.metric == cap.metric then granted = granted + tonumber(one.amount) end
    end
    told[at] = {spent = spent, held = held, granted = granted, limit = cap.limit, metric = cap.metric}
  end
  return told
end

local function refused(told, need)
  local found = {}
  for at, one in ipairs(told) do
    local left = one.limit + one.granted - one.spent - one.held
    if tonumber((need or {})[one.metric] or 0) > math.max(0, left) then found[#found + 1] = at - 1 end
  end
  return found
end

local function outcome(done, state, told, full, growth)
  local rows = {}
  for at, one in ipairs(told or {}) do
    local more = tonumber((growth or {})[one.metric] or 0)
    rows[at] = {text(one.spent), text(one.held + more), text(one.granted)}
  end
  return cjson.encode({done = done, state = state or cjson.null, standings = rows, refused = full or {}})
end

local function later(key, keep_until)
  local known = redis.call('HGET', P .. 'until', key)
  local wanted = keep_until == cjson.null and '' or keep_until
  if wanted ~= '' and known and known ~= '' and tonumber(known) > tonumber(wanted) then wanted = known end
  if wanted == '' and known and known ~= '' then wanted = known end
  redis.call('HSET', P .. 'until', key, wanted)
end

local steps = {}

function steps.reserve()
  local kept, told = hold_of(step.id), standings(step.caps)
  if kept then return outcome(false, kept.state, told) end
  local full = refused(told, step.need)
  if #full > 0 then return outcome(false, nil, told, full) end
  local keys = {}
  for at, counter in ipairs(step.counters) do keys[at] = counter[1] end
  kept = {state = 'held', need = texts(step.need), counters = keys, expires_at = step.expires_at}
  book(step.id, kept, 'reserve', kept.need, nil, step.note)
  for _, counter in ipairs(step.counters) do later(counter[1], counter[2]) end
  return outcome(true, 'held', told, nil, kept.need)
end

function steps.adjust()
  local kept, told = hold_of(step.id), standings(step.caps)
  if not kept or kept.state ~= 'held' then return outcome(false, kept and kept.state, told) end
  local growth = sum(step.need, kept.need, -1)
  if is_empty(growth) then return outcome(false, kept.state, told) end
  local full = refused(told, growth)
  if #full > 0 then return outcome(false, kept.state, told, full) end
  kept.need = texts(step.need)
  book(step.id, kept, 'adjust', growth, nil)
  return outcome(true, kept.state, told, nil, growth)
end

function steps.extend()
  local kept = hold_of(step.id)
  if not kept or kept.state ~= 'held' or tonumber(kept.expires_at) >= tonumber(step.expires_at) then
    return outcome(false, kept and kept.state)
  end
  kept.expires_at = step.expires_at
  book(step.id, kept, 'extend')
  return outcome(true, kept.state)
end

function steps.settle()
  local kept = hold_of(step.id)
  if not kept or (kept.state ~= 'held' and kept.state ~= 'expired') then return outcome(false, kept and kept.state) end
  local was = kept.state
  kept.state = step.state
  if was == 'held' then
    book(step.id, kept, step.kind, texts(kept.need, -1), step.used, step.note)
  else
    book(step.id, kept, step.kind, nil, sum(step.used, kept.need, -1), step.note)
  end
  return outcome(true, kept.state)
end

function steps.standings() return outcome(true, nil, standings(step.caps)) end

function steps.grant()
  if redis.call('HSETNX', P .. 'grants', step.id, cjson.encode(step.grant)) == 1 then
    write(step.id, 'grant', nil, nil, {}, step.note)
  end
  return '{}'
end

function steps.grants() return cjson.encode({grants = grants()}) end

function steps.reset()
  local known = redis.call('HGET', P .. 'resets', step.id)
  if known then return cjson.encode({spent = cjson.decode(known).spent}) end
  local total = {}
  for _, key in ipairs(step.counters) do
    local every, spent = redis.call('HGETALL', P .. 'c:' .. key), {}
    for at = 1, #every, 2 do
      if string.sub(every[at], 1, 2) == 's:' then spent[string.sub(every[at], 3)] = every[at + 1] end
    end
    if #every > 0 then
      spent = texts(spent)
      total = sum(total, spent)
      add({key}, texts(spent, -1), nil)
      write(step.id, 'reset', nil, texts(spent, -1), {key}, step.note)
    end
  end
  redis.call('HSET', P .. 'resets', step.id, cjson.encode({spent = total, at = text(now)}))
  return cjson.encode({spent = total})
end

local function sums_in(name)
  local found, every = {spent = {}, held = {}}, redis.call('HGETALL', name)
  for at = 1, #every, 2 do
    local kind, metric = string.sub(every[at], 1, 2), string.sub(every[at], 3)
    if kind == 's:' and tonumber(every[at + 1]) ~= 0 then found.spent[metric] = every[at + 1] end
    if kind == 'h:' and tonumber(every[at + 1]) ~= 0 then found.held[metric] = every[at + 1] end
  end
  return found
end

function steps.all()
  local told = {counters = {}, summed = {}, journal = redis.call('LRANGE', P .. 'journal', 0, -1)}
  for _, key in ipairs(redis.call('HKEYS', P .. 'until')) do told.counters[key] = sums_in(P .. 'c:' .. key) end
  for _, key in ipairs(redis.call('HKEYS', P .. 'summed')) do
    local one = sums_in(P .. 'p:' .. key)
    one.at = redis.call('HGET', P .. 'summed', key)
    told.summed[key] = one
  end
  return cjson.encode(told)
end

function steps.rebuild()
  for key, right in pairs(step.sums) do
    redis.call('DEL', P .. 'c:' .. key)
    add({key}, right.spent, right.held)
    redis.call('HSETNX', P .. 'until', key, '')
  end
  return '{}'
end

function steps.prune()
  local before, gone = tonumber(step.before), 0
  while gone < 2000 do
    local first = redis.call('LINDEX', P .. 'journal', 0)
    local row = first and cjson.decode(first)
    if not row or tonumber(row.at) >= before then break end
    redis.call('LPOP', P .. 'journal')
    for _, key in ipairs(row.counters) do
      for metric, amount in pairs(row.spent) do redis.call('HINCRBY', P .. 'p:' .. key, 's:' .. metric, amount) end
      for metric, amount in pairs(row.held) do redis.call('HINCRBY', P .. 'p:' .. key, 'h:' .. metric, amount) end
      redis.call('HSET', P .. 'summed', key, row.at)
    end
    gone = gone + 1
  end
  if gone < 2000 then
    local every = redis.call('HGETALL', P .. 'until')
    for at = 1, #every, 2 do
      local key, keep_until = every[at], every[at + 1]
      local touched = tonumber(redis.call('HGET', P .. 'touched', key) or '0')
      local over = keep_until ~= '' and math.max(tonumber(keep_until), touched) < before
      if over and is_empty(sums_in(P .. 'c:' .. key).held) then
        redis.call('DEL', P .. 'c:' .. key, P .. 'p:' .. key)
        for _, name in ipairs({'until', 'touched', 'summed'}) do redis.call('HDEL', P .. name, key) end
      end
    end
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'settled', '-inf', '(' .. step.before, 'LIMIT', 0, 5000)) do
      redis.call('HDEL', P .. 'holds', id)
      redis.call('ZREM', P .. 'settled', id)
    end
    for _, name in ipairs({'grants', 'resets'}) do
      local each = redis.call('HGETALL', P .. name)
      for at = 1, #each, 2 do
        local one = cjson.decode(each[at + 1])
        if tonumber(one['until'] or one.at) < before then redis.call('HDEL', P .. name, each[at]) end
      end
    end
  end
  return cjson.encode({gone = gone})
end

local version = redis.call('GET', P .. 'version')
if version and version ~= step.version then return redis.error_reply('NEWERDATA ' .. version) end
if not version then redis.call('SET', P .. 'version', step.version) end
charge_what_is_over()
return steps[step.step]()
