"""Draws by hashing: the same in every version of every library, unlike numpy's methods."""

import hashlib

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import hash_integers

Integers = npt.NDArray[np.int64]


def draw_keys(name: str, size: int) -> npt.NDArray[np.uint64]:
    """Return keys for the purpose called ``name``, uint64 ``[size]``."""
    digest = hashlib.blake2b(name.encode(), digest_size=8 * size).digest()
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)


def as_fractions(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Turn random words into numbers in [0, 1)."""
    return (words >> np.uint64(11)).astype(np.float64) / 2.0**53


def as_integers(
    words: npt.NDArray[np.uint64], high: int | npt.NDArray[np.integer]
) -> Integers:
    """Turn random words into integers in ``0 .. high - 1``; high is below 2**32."""
    bound = np.asarray(high).astype(np.uint64)
    scaled: Integers = ((words >> np.uint64(32)) * bound >> np.uint64(32)).astype(np.int64)
    return scaled


def as_normals(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
    """Turn random words into numbers of mean 0 and variance 1, nearly normal.

    Each is the sum of four 16-bit integers, so that every machine gets the same.
    """
    total = np.zeros(len(words), dtype=np.int64)
    for shift in (0, 16, 32, 48):
        total += (words >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64)
    centered = (total - 2 * 0xFFFF).astype(np.float64)
    return (centered / (65536.0 * 0.5773502691896258)).astype(np.float32)


class Draws:
    """Random numbers of one purpose, each a hash of the key and its counter."""

    def __init__(self, name: str) -> None:
        self._key = draw_keys(name, 1)[0]

    def words(self, size: int, first: int = 0) -> npt.NDArray[np.uint64]:
        """Return random 64-bit words ``first`` on; word k depends on k alone."""
        counters = np.arange(first, first + size, dtype=np.uint64)
        return self.words_of(counters)

    def words_of(self, counters: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
        """Return the words of some counters, uint64 ``[n]``."""
        out = np.empty(len(counters), dtype=np.uint64)
        hash_integers(counters.astype(np.uint64) + self._key, out)
        return out

    def fractions(self, size: int, first: int = 0) -> npt.NDArray[np.float64]:
        """Return numbers in [0, 1), float64 ``[size]``."""
        return as_fractions(self.words(size, first))

    def integers(self, size: int, high: int, first: int = 0) -> Integers:
        """Return integers in ``0 .. high - 1``, int64 ``[size]``; high is below 2**32."""
        return as_integers(self.words(size, first), high)

    def permutations(self, rows: int, size: int) -> Integers:
        """Return a permutation of ``0 .. size - 1`` in each row, int64 ``[rows, size]``."""
        order = self.words(rows * size).reshape(rows, size).argsort(axis=1, kind="stable")
        return order.astype(np.int64)
