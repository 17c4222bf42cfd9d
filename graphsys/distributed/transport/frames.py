"""Messages on a connection: a line of JSON that tells the shape, then the arrays' bytes.

Nothing that arrives is executed: values are those of JSON, arrays hold numbers.
"""

import json
import socket
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.distributed.transport.exchange import Payload

_HEAD = struct.Struct("<QQ")
"""Number of the exchange, bytes of the JSON."""
_ARRAY, _MAP = "array", "map"
_NUMBERS = "biuf"
"""Kinds of dtypes that arrays may have."""
_MOST_PARTS = 512
"""Pieces of memory that are handed to the system at a time; Linux takes 1,024."""


def send_frame(connection: socket.socket, number: int, payload: Payload) -> None:
    """Send a message, of arrays straight from their memory.

    Args:
        connection: Where to.
        number: Of the exchange.
        payload: Arrays of numbers, what JSON knows, and tuples and maps of such.

    Raises:
        OSError: the connection is broken, or took nothing for the socket's timeout.
        TypeError: a value of another kind.
    """
    arrays: list[npt.NDArray[Any]] = []
    text = json.dumps(_described(payload, arrays)).encode()
    parts = [memoryview(_HEAD.pack(number, len(text)) + text)]
    parts += [_bytes_of(array) for array in arrays if array.nbytes]
    while parts:
        sent = connection.sendmsg(parts[:_MOST_PARTS])
        while parts and sent >= len(parts[0]):
            sent -= len(parts.pop(0))
        if parts:
            parts[0] = parts[0][sent:]


def receive_frame(connection: socket.socket) -> tuple[int, Payload]:
    """Wait for a message; return the number of its exchange and the payload.

    Raises:
        OSError: the connection is broken.
        ValueError: what came is no message.
    """
    number, length = _HEAD.unpack(receive(connection, _HEAD.size))
    told = json.loads(receive(connection, length))
    if not isinstance(told, list):
        raise ValueError("a message is a list")
    return number, tuple(_restored(part, connection) for part in told)


def receive(connection: socket.socket, length: int) -> bytearray:
    """Wait for so many bytes.

    Raises:
        ConnectionError: the other side closed it before.
    """
    found = bytearray(length)
    _fill(connection, memoryview(found))
    return found


def _fill(connection: socket.socket, room: memoryview) -> None:
    while len(room):
        count = connection.recv_into(room, len(room), socket.MSG_WAITALL)
        if not count:
            raise ConnectionError("closed")
        room = room[count:]


def _described(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    """Return a value as JSON; its arrays are put aside."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _NUMBERS:
            raise TypeError(f"an array of {value.dtype} cannot be sent")
        arrays.append(np.ascontiguousarray(value))
        return {_ARRAY: [value.dtype.str, value.shape]}
    if isinstance(value, tuple | list):
        return [_described(part, arrays) for part in value]
    if isinstance(value, dict):
        return {_MAP: [[name, _described(part, arrays)] for name, part in value.items()]}
    return value


def _restored(told: Any, connection: socket.socket) -> Any:
    """Return the value that was described; its arrays come next on the connection."""
    if isinstance(told, list):
        return tuple(_restored(part, connection) for part in told)
    if not isinstance(told, dict):
        return told
    if _MAP in told:
        return {name: _restored(part, connection) for name, part in told[_MAP]}
    name, shape = told[_ARRAY]
    dtype = np.dtype(name)
    if dtype.kind not in _NUMBERS:
        raise ValueError(f"an array of {dtype} is no message")
    array = np.empty(shape, dtype)
    if array.nbytes:
        _fill(connection, _bytes_of(array))
    return array


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
