"""Connections among workers: TCP from each to each, opened once for a run.

Ray tells every worker where the others listen and a key that only they know; who connects
and who listens prove that they have it before anything is taken. What arrives is read by a
thread for each worker, so that sending never waits for the other's own sending.
"""

import hmac
import os
import socket
import struct
import threading
from collections.abc import Sequence

from graphsys.core.errors import ClusterError
from graphsys.distributed.transport.exchange import (
    TIMEOUT_S,
    Payload,
    Receiver,
    lost_worker,
)
from graphsys.distributed.transport.frames import receive, receive_frame, send_frame

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
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
            connection.settimeout(_HELLO_S)
            asked = os.urandom(_NONCE)
            connection.sendall(asked)
            theirs = bytes(receive(connection, _NONCE))
            rank = bytes(receive(connection, _RANK.size))
            proof = _proof(key, b"from", asked, theirs, rank)
            if not hmac.compare_digest(receive(connection, 32), proof):
                return
            connection.sendall(_proof(key, b"to", asked, theirs))
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
