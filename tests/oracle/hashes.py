"""Named hashes, and the sketches of two packages, from their published definitions."""

import hashlib
import re
import struct

import numpy as np

MASK = (1 << 64) - 1
MERSENNE_PRIME = (1 << 61) - 1


def multiplicative(text):
    """Return the string hash of CPython up to 3.2 (Objects/stringobject.c), in 64 bits, over UTF-16 code units."""
    units = struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le"))
    if not units:
        return 0
    x = units[0] << 7
    for unit in units:
        x = (x * 1000003 & MASK) ^ unit
    x ^= len(units)
    return MASK - 1 if x == MASK else x


def md5(text):
    return int.from_bytes(hashlib.md5(text.encode()).digest()[8:], "big")


def sha1(text):
    return int.from_bytes(hashlib.sha1(text.encode()).digest()[:8], "little")


BY_NAME = {"md5": md5, "sha1": sha1, "1000003": multiplicative}


def simhash_package(text, bits=64):
    """Return a fingerprint of the package simhash: counted windows of four word characters of the lowercased text."""
    letters = "".join(re.findall(r"[\w\u4e00-\u9fcc]+", text.lower()))
    windows = [letters[i : i + 4] for i in range(max(len(letters) - 3, 1))]
    fingerprint = 0
    for bit in range(bits):
        ones = sum(md5(window) >> bit & 1 for window in windows)
        # Exactly half is not enough.
        fingerprint |= (2 * ones > len(windows)) << bit
    return fingerprint


def fmix32(x):
    x ^= x >> 16
    x = x * 0x85EBCA6B & 0xFFFFFFFF
    x ^= x >> 13
    x = x * 0xC2B2AE35 & 0xFFFFFFFF
    return x ^ (x >> 16)


def datasketch(tokens, num_slots, seed, scheme):
    """Return a signature of the package datasketch: `affine32` of version 2, `legacy` of earlier versions."""
    random = np.random.RandomState(seed)
    hashes = [sha1(token) & 0xFFFFFFFF for token in tokens]
    if scheme == "affine32":
        factors = (random.randint(0, 1 << 31, num_slots, dtype=np.uint32).astype(object) * 2 + 1).tolist()
        terms = random.randint(0, 1 << 32, num_slots, dtype=np.uint32).tolist()
        values = [[(a * fmix32(h) + b) & 0xFFFFFFFF for h in hashes] for a, b in zip(factors, terms, strict=True)]
    else:
        pairs = [
            (
                int(random.randint(1, MERSENNE_PRIME, dtype=np.uint64)),
                int(random.randint(0, MERSENNE_PRIME, dtype=np.uint64)),
            )
            for _ in range(num_slots)
        ]
        # As the package computes it: wrapping in 64 bits, and only then modulo the prime.
        values = [[((a * h + b) & MASK) % MERSENNE_PRIME & 0xFFFFFFFF for h in hashes] for a, b in pairs]
    return [min(slot, default=0xFFFFFFFF) for slot in values]
