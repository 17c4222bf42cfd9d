"""Learned rows in places of mapped files: read, drawn when they were never trained, moved.

A place holds a row and the state of its optimizer, float32 ``[dim + 1]``. ``place_of[row]``
is where a row's last version lies, -1 for one that was never trained: it has its first
values, a function of a key and its number. Places lie in segments of ``2 ** bits``, each a
mapped file with an address.

A place may be written only while no snapshot holds it: ``holds[place]`` has the bit
``LIVE`` while it is a row's last version, other bits for snapshots. So the files always
hold every snapshot whole, whatever is trained.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.pointers import address, copy_bytes, load_float32, prefetch
from graphsys.kernels.cpu.rows.row_table import fraction
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Places = npt.NDArray[Any]
"""int32 or int64 ``[N]``."""
Addresses = npt.NDArray[np.uint64]
Holds = npt.NDArray[np.uint8]

LIVE = 1
_AHEAD = 8
_LINE = 64
_TWO_PI = 2.0 * math.pi


@lean_inline_jit
def _address_of(addresses: Any, bits: Any, place: Any, place_bytes: Any) -> Any:
    local = np.int64(place) & ((np.int64(1) << bits) - 1)
    return addresses[np.int64(place) >> bits] + np.uint64(local * place_bytes)


@lean_inline_jit
def _draw_row(key: Any, row: Any, scale: Any, out: Any, k: Any) -> None:
    """Write normal values, two from two draws (Box and Muller, 1958)."""
    # By the row's number: it has the same first values whenever it is met.
    own = mix64(key ^ np.uint64(row))
    for f in range(0, out.shape[1], 2):
        length = scale * math.sqrt(-2.0 * math.log(fraction(own, f)))
        angle = _TWO_PI * fraction(own, f + 1)
        out[k, f] = np.float32(length * math.cos(angle))
        if f + 1 < out.shape[1]:
            out[k, f + 1] = np.float32(length * math.sin(angle))


@lean_jit
def read_rows(
    rows: Ints,
    place_of: Places,
    addresses: Addresses,
    bits: int,
    key: np.uint64,
    scale: float,
    out: Floats,
    states: Floats,
) -> None:
    """Read rows and their optimizer's states.

    Args:
        rows: Numbers ``[n]``, all in range.
        place_of: Place of every row, or -1.
        addresses: Where the segments lie.
        bits: Logarithm of the places of a segment.
        key: Of the first values.
        scale: Their standard deviation.
        out: Receives the rows, C-contiguous ``[n, dim]``.
        states: Receives the states ``[n]``.
    """
    dim = out.shape[1]
    place_bytes = 4 * (dim + 1)
    target = np.uint64(address(out))
    for k in range(len(rows)):
        if k + _AHEAD < len(rows):
            place = place_of[rows[k + _AHEAD]]
            if place >= 0:
                source = _address_of(addresses, bits, place, place_bytes)
                for line in range(0, place_bytes, _LINE):
                    prefetch(source + np.uint64(line))
        place = place_of[rows[k]]
        if place < 0:
            _draw_row(key, rows[k], scale, out, k)
            states[k] = np.float32(0.0)
            continue
        source = _address_of(addresses, bits, place, place_bytes)
        copy_bytes(target + np.uint64(4 * dim * k), source, 4 * dim)
        states[k] = load_float32(source, dim)


@lean_jit
def touch_rows(
    rows: Ints, place_of: Places, addresses: Addresses, bits: int, place_bytes: int
) -> float:
    """Read one number of each row, so that its page is in memory; return their sum."""
    total = 0.0
    for k in range(len(rows)):
        place = np.int64(place_of[rows[k]])
        if place >= 0 and place >> bits < len(addresses):
            total += load_float32(_address_of(addresses, bits, place, place_bytes), 0)
    return total


@lean_jit
def take_places(
    rows: Ints, begin: int, place_of: Places, holds: Holds, cursor: Ints
) -> int:
    """Give each row a place that may be written: its own, or a free one.

    Args:
        rows: Numbers ``[n]``, each once.
        begin: The first of them to serve.
        place_of: Is brought up to date.
        holds: Is brought up to date ``[places]``.
        cursor: Where the search for a free place goes on, ``[1]``.

    Returns:
        The first row not served, for there is no free place; n if there is none.
    """
    for k in range(begin, len(rows)):
        old = np.int64(place_of[rows[k]])
        if old >= 0 and holds[old] == LIVE:
            continue
        place = cursor[0]
        while place < len(holds) and holds[place]:
            place += 1
        cursor[0] = place
        if place == len(holds):
            return k
        holds[place] = LIVE
        if old >= 0:
            holds[old] &= np.uint8(255 - LIVE)
        place_of[rows[k]] = place
    return len(rows)


@lean_jit
def write_rows(
    rows: Ints,
    place_of: Places,
    addresses: Addresses,
    bits: int,
    values: Floats,
    states: Floats,
) -> None:
    """Write rows ``[n, dim]`` and states ``[n]`` to their places."""
    dim = values.shape[1]
    place_bytes = 4 * (dim + 1)
    row, state = np.uint64(address(values)), np.uint64(address(states))
    for k in range(len(rows)):
        target = _address_of(addresses, bits, place_of[rows[k]], place_bytes)
        copy_bytes(target, row + np.uint64(4 * dim * k), 4 * dim)
        copy_bytes(target + np.uint64(4 * dim), state + np.uint64(4 * k), 4)


@lean_jit
def mark_places(place_of: Places, holds: Holds, bit: int) -> None:
    """Make the places of all rows, and no others, have a bit."""
    for place in range(len(holds)):
        holds[place] &= np.uint8(255 - bit)
    for row in range(len(place_of)):
        if place_of[row] >= 0:
            holds[place_of[row]] |= np.uint8(bit)


@lean_jit
def copy_marks(holds: Holds, source: int, target: int) -> None:
    """Make the places that have one bit, and no others, have another."""
    for place in range(len(holds)):
        holds[place] &= np.uint8(255 - target)
        if holds[place] & source:
            holds[place] |= np.uint8(target)
