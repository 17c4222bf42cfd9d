"""Bitmaps: sets of nodes as 64-bit words, node ``v`` at bit ``v % 64`` of word ``v // 64``.

On little-endian machines the words are an Arrow validity bitmap.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from graphsys.kernels.cpu.atomics import atomic_or
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Words = npt.NDArray[np.uint64]


@intrinsic
def lowest_bit(typing_context, word):  # type: ignore[no-untyped-def]
    """Return the place of the lowest set bit of a word that is not 0, int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def num_bits(typing_context, word):  # type: ignore[no-untyped-def]
    """Return how many bits of a word are set, int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@lean_inline_jit
def has_bit(words: Any, node: Any) -> bool:
    """Tell whether a node is in the set."""
    number = np.uint64(node)
    word = words[number >> np.uint64(6)]
    is_set: bool = (word >> (number & np.uint64(63))) & np.uint64(1) != 0
    return is_set


@lean_inline_jit
def set_bit(words: Any, node: Any) -> None:
    """Put a node into the set; not atomic."""
    number = np.uint64(node)
    words[number >> np.uint64(6)] |= np.uint64(1) << (number & np.uint64(63))


@lean_inline_jit
def clear_bit(words: Any, node: Any) -> None:
    """Take a node out of the set; not atomic."""
    number = np.uint64(node)
    words[number >> np.uint64(6)] &= ~(np.uint64(1) << (number & np.uint64(63)))


@lean_inline_jit
def set_bit_atomic(words: Any, node: Any) -> bool:
    """Put a node into the set, among many threads; tell whether it was not in it."""
    number = np.uint64(node)
    place, bit = number >> np.uint64(6), np.uint64(1) << (number & np.uint64(63))
    if words[place] & bit != 0:
        return False
    was_out: bool = atomic_or(words, np.int64(place), bit) & bit == 0
    return was_out


@lean_jit
def fill_bits(words: Words, numbers: npt.NDArray[Any], begin: int, end: int) -> None:
    """Put ``numbers[begin:end]`` into the set."""
    for k in range(begin, end):
        set_bit(words, numbers[k])


@lean_jit
def list_bits(words: Words, out: npt.NDArray[Any]) -> int:
    """Write the set's members, ascending, and return how many there are."""
    place = 0
    for k in range(len(words)):
        word = words[k]
        while word != 0:
            out[place] = 64 * k + lowest_bit(word)
            place += 1
            word &= word - np.uint64(1)
    return place


def num_words(num_nodes: int) -> int:
    """Return how many 64-bit words hold a bit for every node."""
    return (num_nodes + 63) // 64


def empty_bits(num_nodes: int) -> Words:
    """Return an empty set of nodes, uint64 ``[ceil(N / 64)]``."""
    return np.zeros(num_words(num_nodes), dtype=np.uint64)


def as_mask(words: Words, num_nodes: int) -> npt.NDArray[np.bool_]:
    """Return a set as a mask, bool ``[N]``."""
    bits = np.unpackbits(words.view(np.uint8), count=num_nodes, bitorder="little")
    return bits.view(np.bool_)


def from_mask(mask: npt.NDArray[np.bool_]) -> Words:
    """Return a mask ``[N]`` as a set; the inverse of :func:`as_mask`."""
    words = empty_bits(len(mask))
    packed = np.packbits(mask, bitorder="little")
    words.view(np.uint8)[: len(packed)] = packed
    return words
