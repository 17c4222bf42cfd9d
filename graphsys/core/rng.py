"""Random numbers keyed by what they are for, never by who draws them.

A draw depends on the seed and on the keys (epoch, bucket, batch ...), so neither the
number of threads nor the order of work changes it.
"""

import hashlib

import numpy as np


def generator(seed: int, *keys: int | str) -> np.random.Generator:
    """Return the generator of one purpose.

    Args:
        seed: The user's seed.
        *keys: What the numbers are for, for example ``"shuffle", epoch, src_part``.

    Returns:
        A Philox generator (counter-based: Salmon et al., "Parallel random numbers: as
        easy as 1, 2, 3", SC 2011) whose 128-bit key is a hash of seed and keys.
    """
    key = np.frombuffer(_digest(seed, keys, 16), dtype="<u8").astype(np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def draw_key(seed: int, *keys: int | str) -> np.uint64:
    """Return the key of one purpose for kernels, which draw by hashing it with counters.

    Args:
        seed: The user's seed.
        *keys: What the numbers are for, for example ``"sample", epoch, batch, hop``.
    """
    return np.uint64(int.from_bytes(_digest(seed, keys, 8), "little"))


def _digest(seed: int, keys: tuple[int | str, ...], size: int) -> bytes:
    text = "\x1f".join([str(int(seed)), *(f"{type(key).__name__}:{key}" for key in keys)])
    return hashlib.blake2b(text.encode(), digest_size=size).digest()
