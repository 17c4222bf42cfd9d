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


class Draws:
    """Random numbers of one purpose, each a hash of the key and its counter."""

    def __init__(self, name: str) -> None:
        self._key = draw_keys(name, 1)[0]

    def words(self, size: int) -> npt.NDArray[np.uint64]:
        """Return ``size`` random 64-bit words; word k depends on k alone."""
        out = np.empty(size, dtype=np.uint64)
        counters = np.arange(size, dtype=np.uint64) + self._key
        hash_integers(counters, out)
        return out

    def fractions(self, size: int) -> npt.NDArray[np.float64]:
        """Return numbers in [0, 1), float64 ``[size]``."""
        return (self.words(size) >> np.uint64(11)).astype(np.float64) / 2.0**53

    def integers(self, size: int, high: int) -> Integers:
        """Return integers in ``0 .. high - 1``, int64 ``[size]``."""
        return (
            (self.words(size) >> np.uint64(32)) * np.uint64(high) >> np.uint64(32)
        ).astype(np.int64)

    def permutations(self, rows: int, size: int) -> Integers:
        """Return a permutation of ``0 .. size - 1`` in each row, int64 ``[rows, size]``."""
        order = self.words(rows * size).reshape(rows, size).argsort(axis=1, kind="stable")
        return order.astype(np.int64)
