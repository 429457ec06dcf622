"""SimHash fingerprints and MinHash signatures, feature by feature."""

from tests.oracle.features import MASK, expansion, mix

GOLDEN = 0x9E3779B97F4A7C15
# The bits of a byte, each in its own 64 bits, so that eight sums are one.
_SPREAD = [sum((byte >> i & 1) << (64 * i) for i in range(8)) for byte in range(256)]


def simhash(weights, bits):
    """Return the fingerprint as one integer of `bits` bits, bit 0 lowest: set if features with the bit weigh more."""
    fingerprint, half = 0, sum(weights.values()) / 2
    for word in range((bits + 63) // 64):
        with_bit = [0] * 8
        for f, v in weights.items():
            value = f if word == 0 else mix(f + word * GOLDEN)
            for at, byte in enumerate(value.to_bytes(8, "little")):
                with_bit[at] += v * _SPREAD[byte]
        for i in range(min(64, bits - 64 * word)):
            if with_bit[i // 8] >> (64 * (i % 8)) & MASK > half:
                fingerprint |= 1 << (64 * word + i)
    return fingerprint


def simhash_words(weights, bits):
    fingerprint = simhash(weights, bits)
    return [fingerprint >> (64 * word) & MASK for word in range((bits + 63) // 64)]


def round_key(number, seed):
    return mix(((number + 1) * GOLDEN & MASK) ^ seed)


def minhash(weights, num_slots, slot_bits, scheme="bucket", seed=0):
    """Return the slots as integers of `slot_bits` bits."""
    members = expansion(weights)
    cut = (1 << slot_bits) - 1
    if not members:
        return [cut] * num_slots
    make = {"bucket": _bucket, "classical": _classical}[scheme]
    return [value & cut for value in make(members, num_slots, seed)]


def _bucket(members, num_slots, seed):
    slots = [None] * num_slots
    for number in range(2 * num_slots):
        key = round_key(number, seed)
        least = {}
        for f in members:
            x = mix(f ^ key)
            slot = (x >> 32) * num_slots >> 32 if number < num_slots else number - num_slots
            value = x & 0xFFFFFFFF
            if slot not in least or value < least[slot]:
                least[slot] = value
        for slot, value in least.items():
            if slots[slot] is None:
                slots[slot] = value
        if None not in slots:
            break
    return slots


def _classical(members, num_slots, seed):
    return [min(mix(f ^ round_key(j, seed)) for f in members) for j in range(num_slots)]


def slot_bytes(slots, slot_bits):
    """Return a signature as stored: consecutive little-endian slots."""
    return b"".join(value.to_bytes(slot_bits // 8, "little") for value in slots)
