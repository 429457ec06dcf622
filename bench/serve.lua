-- Requests for wrk: bodies from a file, a line each (see server.py), dealt to threads by turns; times of answers go to
-- a file. wrk -s serve.lua URL -- BODIES PATH

local bodies = {}
local next_body = 0
local path = ""
local count = 0

function setup(thread)
  thread:set("number", count)
  count = count + 1
end

function init(arguments)
  path = arguments[2]
  local i = 0
  for line in io.lines(arguments[1]) do
    if i % tonumber(arguments[3]) == number then
      bodies[#bodies + 1] = line
    end
    i = i + 1
  end
end

function request()
  next_body = next_body + 1
  if next_body > #bodies then
    wrk.thread:stop()
    next_body = #bodies
  end
  return wrk.format("POST", path, { ["Content-Type"] = "application/json" }, bodies[next_body])
end

function done(summary, latency, requests)
  local seconds = summary.duration / 1e6
  io.write(string.format(
    '{"requests": %d, "seconds": %.3f, "per_second": %.1f, "p50_ms": %.3f, "p99_ms": %.3f, "max_ms": %.3f, ' ..
    '"refused": %d, "failed": %d}\n',
    summary.requests, seconds, summary.requests / seconds, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
