-- The load: one signal per request. Usage:
-- wrk -s wrk.lua URL -- <v7 or v4> <key> <seed> <placeholder> <body>
-- wrk makes one Lua state per thread. Everything but the id is put together once: the server shares
-- the machine with this script.

local ffi = require("ffi")
ffi.cdef [[
  struct timespec { long tv_sec; long tv_nsec; };
  int clock_gettime(int clock, struct timespec *time);
]]
local CLOCK_REALTIME = 0

local threads_started = 0

function setup(thread)
  thread:set("thread_number", threads_started)
  threads_started = threads_started + 1
end

local head, tail, next_id

-- UUID v7: the milliseconds since 1970, then random bits.
local function v7_ids(seed)
  local random, format, floor = math.random, string.format, math.floor
  local time = ffi.new("struct timespec")
  math.randomseed(seed * 64 + thread_number)
  return function()
    ffi.C.clock_gettime(CLOCK_REALTIME, time)
    local ms = tonumber(time.tv_sec) * 1000 + floor(tonumber(time.tv_nsec) / 1e6)
    return format("%08x-%04x-7%03x-%04x-%012x", floor(ms / 0x10000), ms % 0x10000,
      random(0, 0xfff), random(0x8000, 0xbfff), random(0, 0xffffffffffff))
  end
end

-- UUID v4, the worst case for an index: every id is on another page.
local function v4_ids(seed)
  local random, format = math.random, string.format
  math.randomseed(seed * 64 + thread_number)
  return function()
    return format("%08x-%04x-4%03x-%04x-%012x", random(0, 0xffffffff), random(0, 0xffff),
      random(0, 0xfff), random(0x8000, 0xbfff), random(0, 0xffffffffffff))
  end
end

function init(args)
  local kind, key, seed, placeholder, body = args[1], args[2], tonumber(args[3]), args[4], args[5]
  next_id = (kind == "v4" and v4_ids or v7_ids)(seed)
  wrk.headers["Authorization"] = "Bearer " .. key
  wrk.headers["Content-Type"] = "application/json"
  local request = wrk.format("POST", nil, nil, body)
  local first = request:find(placeholder, 1, true)
  head = request:sub(1, first - 1)
  tail = request:sub(first + #placeholder)
end

function request()
  return head .. next_id() .. tail
end

-- One line of JSON, the last one of wrk's output. wrk gives microseconds.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"duration_us":%d,"latency_us_p50":%d,"latency_us_p99":%d,'
      .. '"latency_us_max":%d,"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    latency.max, errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
