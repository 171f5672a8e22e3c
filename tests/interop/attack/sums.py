"""The checksums of the formats, so that a mutant gets past them: lookup3 of HDF5, XXH3 of networks, that of thalweg's indexes."""

M32, M64 = 2**32 - 1, 2**64 - 1


def _rotated(x: int, k: int) -> int:
    return ((x << k) | (x >> (32 - k))) & M32


def lookup3(data: bytes) -> int:
    """Bob Jenkins's hashlittle with the initial value 0."""
    a = b = c = (0xDEADBEEF + len(data)) & M32
    words = memoryview(bytes(data) + bytes(-len(data) % 12)).cast("I")
    for at in range(0, len(words), 3):
        a, b, c = (a + words[at]) & M32, (b + words[at + 1]) & M32, (c + words[at + 2]) & M32
        if at + 3 < len(words):
            for k in ((4, 6, 8), (16, 19, 4)):
                a = ((a - c) & M32) ^ _rotated(c, k[0])
                c = (c + b) & M32
                b = ((b - a) & M32) ^ _rotated(a, k[1])
                a = (a + c) & M32
                c = ((c - b) & M32) ^ _rotated(b, k[2])
                b = (b + a) & M32
    if data:
        for k in ((14, 11, 25), (16, 4, 14)):
            c = ((c ^ b) - _rotated(b, k[0])) & M32
            a = ((a ^ c) - _rotated(c, k[1])) & M32
            b = ((b ^ a) - _rotated(a, k[2])) & M32
        c = ((c ^ b) - _rotated(b, 24)) & M32
    return c


def lookup3_ends(data: bytes) -> list[int]:
    """The lengths of beginnings of `data` that are followed by their own checksum."""
    import numpy as np

    most = len(data) - 4
    if most < 8:
        return []
    lengths = np.arange(most + 1, dtype=np.uint32)
    a = b = c = lengths + np.uint32(0xDEADBEEF)
    a, b, c = a.copy(), b.copy(), c.copy()

    def rot(x, k):
        return (x << np.uint32(k)) | (x >> np.uint32(32 - k))

    raw = np.frombuffer(bytes(data) + bytes(16), np.uint8)
    for start in range(0, most + 1, 12):
        # What lies behind the end of each beginning counts as zero.
        kept = np.clip(lengths[:, None].astype(np.int64) - start - np.arange(12)[None, :], 0, 1).astype(bool)
        words = np.where(kept, raw[start : start + 12][None, :] if len(raw) >= start + 12 else 0, 0).astype(np.uint8).view("<u4")
        active = lengths > start
        a, b, c = (np.where(active, x + words[:, i], x) for i, x in enumerate((a, b, c)))
        more = lengths > start + 12
        x, y, z = a, b, c
        for k in ((4, 6, 8), (16, 19, 4)):
            x = (x - z) ^ rot(z, k[0])
            z = z + y
            y = (y - x) ^ rot(x, k[1])
            x = x + z
            z = (z - y) ^ rot(y, k[2])
            y = y + x
        a, b, c = np.where(more, x, a), np.where(more, y, b), np.where(more, z, c)
    for k in ((14, 11, 25), (16, 4, 14)):
        c = (c ^ b) - rot(b, k[0])
        a = (a ^ c) - rot(c, k[1])
        b = (b ^ a) - rot(a, k[2])
    c = (c ^ b) - rot(b, 24)
    found = np.lib.stride_tricks.sliding_window_view(np.frombuffer(bytes(data), np.uint8), 4)[: most + 1].copy().view("<u4")[:, 0]
    return [int(n) for n in np.flatnonzero(c == found) if n >= 8]


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def splitmix(data: bytes) -> int:
    """`thalweg_codec::splitmix::checksum`."""
    total = len(data)
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8], "little")
        total = (_mix((((total << 5) | (total >> 59)) & M64) ^ word) + total) & M64
    return total


P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _folded(a: int, b: int) -> int:
    product = a * b
    return (product & M64) ^ (product >> 64)


def _avalanche(x: int) -> int:
    x = ((x ^ (x >> 37)) * 0x165667919E3779F9) & M64
    return x ^ (x >> 32)


def _avalanche64(x: int) -> int:
    x = ((x ^ (x >> 33)) * P64[1]) & M64
    x = ((x ^ (x >> 29)) * P64[2]) & M64
    return x ^ (x >> 32)


def _sixteen(data: bytes, at: int, secret: int, seed: int) -> int:
    low, high = (_word(SECRET, secret) + seed) & M64, (_word(SECRET, secret + 8) - seed) & M64
    return _folded(_word(data, at) ^ low, _word(data, at + 8) ^ high)


def xxh3(data: bytes, seed: int = 0) -> int:
    """XXH3 of 64 bits."""
    size = len(data)
    if size == 0:
        return _avalanche64(seed ^ _word(SECRET, 56) ^ _word(SECRET, 64))
    if size <= 3:
        word = data[-1] | size << 8 | data[0] << 16 | data[size >> 1] << 24
        return _avalanche64(word ^ ((_word(SECRET, 0, 4) ^ _word(SECRET, 4, 4)) + seed) & M64)
    if size <= 8:
        seed ^= int.from_bytes((seed & M32).to_bytes(4, "little"), "big") << 32
        secret = ((_word(SECRET, 8) ^ _word(SECRET, 16)) - seed) & M64
        keyed = (_word(data, size - 4, 4) + (_word(data, 0, 4) << 32)) ^ secret
        rot = lambda k: ((keyed << k) | (keyed >> (64 - k))) & M64  # noqa: E731
        x = ((keyed ^ rot(49) ^ rot(24)) * 0x9FB21C651E98DF25) & M64
        x = ((x ^ ((x >> 35) + size)) * 0x9FB21C651E98DF25) & M64
        return x ^ (x >> 28)
    if size <= 16:
        low = _word(data, 0) ^ ((_word(SECRET, 24) ^ _word(SECRET, 32)) + seed) & M64
        high = _word(data, size - 8) ^ ((_word(SECRET, 40) ^ _word(SECRET, 48)) - seed) & M64
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _folded(low, high)) & M64)
    if size <= 128:
        total = size * P64[0]
        for i in range((size - 1) // 32, -1, -1):
            total += _sixteen(data, 16 * i, 32 * i, seed) + _sixteen(data, size - 16 * (i + 1), 32 * i + 16, seed)
        return _avalanche(total & M64)
    if size <= 240:
        total = size * P64[0] + sum(_sixteen(data, 16 * i, 16 * i, seed) for i in range(8))
        total = _avalanche(total & M64) + sum(_sixteen(data, 16 * i, 16 * (i - 8) + 3, seed) for i in range(8, size // 16))
        return _avalanche((total + _sixteen(data, size - 16, 136 - 17, seed)) & M64)
    pairs = zip(range(0, 192, 16), range(8, 192, 16), strict=True)
    secret = b"".join(((_word(SECRET, a) + seed) & M64).to_bytes(8, "little") + ((_word(SECRET, b) - seed) & M64).to_bytes(8, "little") for a, b in pairs)
    return _xxh3_long(data, secret)


def _xxh3_long(data: bytes, key: bytes) -> int:
    sums = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]

    def add(at: int, secret: int) -> None:
        for i in range(8):
            word = _word(data, at + 8 * i)
            keyed = word ^ _word(key, secret + 8 * i)
            sums[i ^ 1] = (sums[i ^ 1] + word) & M64
            sums[i] = (sums[i] + (keyed & M32) * (keyed >> 32)) & M64

    blocks, stripes = divmod((len(data) - 1) // 64, 16)
    for block in range(blocks):
        for stripe in range(16):
            add(1024 * block + 64 * stripe, 8 * stripe)
        for i in range(8):
            sums[i] = ((sums[i] ^ (sums[i] >> 47) ^ _word(key, 128 + 8 * i)) * P32[0]) & M64
    for stripe in range(stripes):
        add(1024 * blocks + 64 * stripe, 8 * stripe)
    add(len(data) - 64, 192 - 64 - 7)
    total = len(data) * P64[0]
    for i in range(4):
        total += _folded(sums[2 * i] ^ _word(key, 11 + 16 * i), sums[2 * i + 1] ^ _word(key, 19 + 16 * i))
    return _avalanche(total & M64)
