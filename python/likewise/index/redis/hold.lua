-- Keeps the lock for so many milliseconds more, or gives it back, if it still is the caller's. ARGV: token, milliseconds.
if redis.call('GET', prefix .. 'lock') ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', prefix .. 'lock') else redis.call('PEXPIRE', prefix .. 'lock', ARGV[2]) end
return 1
