"""XXH3-64 with a seed, written from the public specification of the hash."""

MASK = (1 << 64) - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MX1, MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def _read32(data, at):
    return int.from_bytes(data[at : at + 4], "little")


def _read64(data, at):
    return int.from_bytes(data[at : at + 8], "little")


def _swap32(x):
    return int.from_bytes(x.to_bytes(4, "little"), "big")


def _swap64(x):
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def _rotate_left(x, by):
    return ((x << by) | (x >> (64 - by))) & MASK


def _fold128(a, b):
    product = a * b
    return (product & MASK) ^ (product >> 64)


def _avalanche64(h):
    h ^= h >> 33
    h = h * P64_2 & MASK
    h ^= h >> 29
    h = h * P64_3 & MASK
    return h ^ (h >> 32)


def _avalanche3(h):
    h ^= h >> 37
    h = h * MX1 & MASK
    return h ^ (h >> 32)


def _mix16(data, at, secret_at, seed):
    low = _read64(data, at) ^ ((_read64(SECRET, secret_at) + seed) & MASK)
    high = _read64(data, at + 8) ^ ((_read64(SECRET, secret_at + 8) - seed) & MASK)
    return _fold128(low, high)


def _up_to_3(data, seed):
    n = len(data)
    combined = (data[0] << 16) | (data[n >> 1] << 24) | data[n - 1] | (n << 8)
    flip = ((_read32(SECRET, 0) ^ _read32(SECRET, 4)) + seed) & MASK
    return _avalanche64(combined ^ flip)


def _up_to_8(data, seed):
    n = len(data)
    seed ^= _swap32(seed & 0xFFFFFFFF) << 32
    flip = ((_read64(SECRET, 8) ^ _read64(SECRET, 16)) - seed) & MASK
    h = (_read32(data, n - 4) + (_read32(data, 0) << 32)) ^ flip
    h ^= _rotate_left(h, 49) ^ _rotate_left(h, 24)
    h = h * MX2 & MASK
    h ^= (h >> 35) + n
    h = h * MX2 & MASK
    return h ^ (h >> 28)


def _up_to_16(data, seed):
    n = len(data)
    low = _read64(data, 0) ^ (((_read64(SECRET, 24) ^ _read64(SECRET, 32)) + seed) & MASK)
    high = _read64(data, n - 8) ^ (((_read64(SECRET, 40) ^ _read64(SECRET, 48)) - seed) & MASK)
    return _avalanche3((n + _swap64(low) + high + _fold128(low, high)) & MASK)


def _up_to_128(data, seed):
    n = len(data)
    total = n * P64_1
    for i in range((n - 1) // 32, -1, -1):
        total += _mix16(data, 16 * i, 32 * i, seed)
        total += _mix16(data, n - 16 * (i + 1), 32 * i + 16, seed)
    return _avalanche3(total & MASK)


def _up_to_240(data, seed):
    n = len(data)
    total = n * P64_1
    for i in range(8):
        total += _mix16(data, 16 * i, 16 * i, seed)
    total = _avalanche3(total & MASK)
    for i in range(8, n // 16):
        total += _mix16(data, 16 * i, 16 * (i - 8) + 3, seed)
    total += _mix16(data, n - 16, 136 - 17, seed)
    return _avalanche3(total & MASK)


def _accumulate(lanes, data, at, secret, secret_at):
    for i in range(8):
        value = _read64(data, at + 8 * i)
        key = value ^ _read64(secret, secret_at + 8 * i)
        lanes[i ^ 1] = (lanes[i ^ 1] + value) & MASK
        lanes[i] = (lanes[i] + (key & 0xFFFFFFFF) * (key >> 32)) & MASK


def _long(data, seed):
    secret = b"".join(
        ((_read64(SECRET, 16 * i) + seed) & MASK).to_bytes(8, "little")
        + ((_read64(SECRET, 16 * i + 8) - seed) & MASK).to_bytes(8, "little")
        for i in range(12)
    )
    n = len(data)
    lanes = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    num_blocks = (n - 1) // 1024
    for block in range(num_blocks):
        for stripe in range(16):
            _accumulate(lanes, data, 1024 * block + 64 * stripe, secret, 8 * stripe)
        for i in range(8):
            x = lanes[i]
            x ^= x >> 47
            x ^= _read64(secret, 128 + 8 * i)
            lanes[i] = x * P32_1 & MASK
    for stripe in range((n - 1 - 1024 * num_blocks) // 64):
        _accumulate(lanes, data, 1024 * num_blocks + 64 * stripe, secret, 8 * stripe)
    _accumulate(lanes, data, n - 64, secret, 192 - 64 - 7)
    total = n * P64_1
    for i in range(4):
        total += _fold128(
            lanes[2 * i] ^ _read64(secret, 11 + 16 * i),
            lanes[2 * i + 1] ^ _read64(secret, 11 + 16 * i + 8),
        )
    return _avalanche3(total & MASK)


def xxh3(data, seed=0):
    """Return the XXH3-64 hash of `data` (bytes) with a 64-bit seed."""
    n = len(data)
    if n == 0:
        return _avalanche64(seed ^ _read64(SECRET, 56) ^ _read64(SECRET, 64))
    if n <= 3:
        return _up_to_3(data, seed)
    if n <= 8:
        return _up_to_8(data, seed)
    if n <= 16:
        return _up_to_16(data, seed)
    if n <= 128:
        return _up_to_128(data, seed)
    if n <= 240:
        return _up_to_240(data, seed)
    return _long(data, seed)
