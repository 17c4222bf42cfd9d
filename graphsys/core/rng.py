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
    text = "\x1f".join([str(int(seed)), *(f"{type(key).__name__}:{key}" for key in keys)])
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    key = np.frombuffer(digest, dtype="<u8").astype(np.uint64)
    return np.random.Generator(np.random.Philox(key=key))
