"""Connections among workers: TCP from each to each, opened once for a run.

Ray tells every worker where the others listen and a key that only they know; who connects
and who listens prove that they have it before anything is taken. What arrives is read by a
thread for each worker, so that sending never waits for the other's own sending. A message
is a frame: JSON and the bytes of arrays, so that nothing is unpickled.
"""

import hmac
import json
import os
import socket
import struct
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ClusterError
from graphsys.distributed.transport.exchange import (
    TIMEOUT_S,
    Payload,
    Receiver,
    lost_worker,
)

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
        # The system may take a part only: what is left goes on in the next round, uncopied.
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
        # No objects: those would be pickled, and unpickling runs what the sender wants.
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


Address = tuple[str, int]

_HELLO_S = 10.0
"""How long a stranger may take to say who it is."""
_NONCE = 32
_RANK = struct.Struct("<I")


class Connections:
    """The end of one worker: it listens for the others, and sends to them.

    Args:
        host: Address of this machine by which the others reach it.

    Attributes:
        address: Where it listens.
    """

    def __init__(self, host: str) -> None:
        self._listener = socket.create_server((host, 0), backlog=128)
        self.address: Address = (host, self._listener.getsockname()[1])

    def open(
        self, rank: int, addresses: Sequence[Address], key: bytes, mailbox: Receiver
    ) -> "list[Connection]":
        """Take what others send from now on; connect to all, this worker itself too.

        Args:
            rank: Number of this worker.
            addresses: Of all workers.
            key: What all workers of this run know.
            mailbox: Receives what arrives.

        Returns:
            A connection to each.

        Raises:
            WorkerLostError: another cannot be reached.
        """
        threading.Thread(
            target=self._accept, args=(key, mailbox), daemon=True, name="graphsys-accept"
        ).start()
        return [
            Connection(other, _connect(rank, other, where, key))
            for other, where in enumerate(addresses)
        ]

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()

    def _accept(self, key: bytes, mailbox: Receiver) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(
                target=_take,
                args=(connection, key, mailbox),
                daemon=True,
                name="graphsys-receive",
            ).start()


class Connection:
    """The way to another worker's mailbox.

    Args:
        rank: Of the other.
        connected: Where to write.
    """

    def __init__(self, rank: int, connected: socket.socket) -> None:
        self._rank = rank
        self._socket = connected

    def send(self, number: int, sender: int, payload: Payload) -> None:
        """Send and go on when the system has it.

        Raises:
            WorkerLostError: the connection broke.
            ClusterError: the other took nothing for a long time.
        """
        try:
            send_frame(self._socket, number, payload)
        except TimeoutError as err:
            raise ClusterError(
                f"worker {self._rank} took nothing for {TIMEOUT_S:.0f} s; look at its "
                "machine, then run the command again"
            ) from err
        except OSError as err:
            raise lost_worker(self._rank) from err

    def close(self) -> None:
        """End it."""
        self._socket.close()


def _connect(rank: int, other: int, where: Address, key: bytes) -> socket.socket:
    """Connect to another worker, prove the key and have it proved."""
    try:
        made = socket.create_connection(where, TIMEOUT_S)
        # Small messages must not wait for others to fill a packet.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Both sides choose a number, so that no proof of an earlier connection fits; "from"
        # and "to" keep one side's proof from serving as the other's.
        asked, own = bytes(receive(made, _NONCE)), os.urandom(_NONCE)
        number = _RANK.pack(rank)
        made.sendall(own + number + _proof(key, b"from", asked, own, number))
        if not hmac.compare_digest(receive(made, 32), _proof(key, b"to", asked, own)):
            raise ConnectionError("another listens there")
        return made
    except OSError as err:
        raise lost_worker(other) from err


def _take(connection: socket.socket, key: bytes, mailbox: Receiver) -> None:
    """Have whoever connected prove the key; then put what it sends into the mailbox."""
    sender = None
    try:
        with connection:
            # A stranger who says nothing must not hold a thread for ever.
            connection.settimeout(_HELLO_S)
            asked = os.urandom(_NONCE)
            connection.sendall(asked)
            theirs = bytes(receive(connection, _NONCE))
            rank = bytes(receive(connection, _RANK.size))
            proof = _proof(key, b"from", asked, theirs, rank)
            if not hmac.compare_digest(receive(connection, 32), proof):
                return
            connection.sendall(_proof(key, b"to", asked, theirs))
            # A worker may compute for long between two messages.
            connection.settimeout(None)
            (sender,) = _RANK.unpack(rank)
            while True:
                number, payload = receive_frame(connection)
                mailbox.put(number, sender, payload)
    except (OSError, ValueError, LookupError, TypeError):  # closed, or no worker of ours
        if sender is not None:
            mailbox.lose(sender)


def _proof(key: bytes, *words: bytes) -> bytes:
    return hmac.digest(key, b"".join(words), "sha256")
