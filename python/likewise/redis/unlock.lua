-- Gives the lock back if it is still the caller's. ARGV: token.
if redis.call('GET', prefix .. 'lock') == ARGV[1] then redis.call('DEL', prefix .. 'lock') end
return 'ok'
