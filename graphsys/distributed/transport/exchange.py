"""Exchanging data among workers: numbered, counted, with a limit to the waiting."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ClusterError, WorkerLostError
from graphsys.core.events import span

Payload = tuple[Any, ...]
"""What one worker sends another at a time: arrays, texts and numbers, tuples of them."""

TIMEOUT_S = 600.0
"""How long a worker waits for another: a stopped one goes on, a dead one ends the run."""


class Peer(Protocol):
    """Another worker's mailbox, near or far."""

    def send(self, number: int, sender: int, payload: Payload) -> None:
        """Hand over what a worker sends in an exchange; twice is the same as once.

        Raises:
            WorkerLostError: there is no way to the other any more.
        """


class Receiver(ABC):
    """What takes what arrives on a worker's connections."""

    def __init__(self) -> None:
        self._lost: set[int] = set()
        self._condition = threading.Condition()

    @abstractmethod
    def put(self, number: int, sender: int, payload: Payload) -> None:
        """Keep what a worker sent."""

    def lose(self, sender: int) -> None:
        """Note that a worker will send nothing more."""
        with self._condition:
            self._lost.add(sender)
            self._condition.notify_all()


class Mailbox(Receiver):
    """What has arrived for a worker, by the number of the exchange and the sender."""

    def __init__(self) -> None:
        super().__init__()
        self._arrived: dict[tuple[int, int], Payload] = {}
        self._done = 0

    def put(self, number: int, sender: int, payload: Payload) -> None:
        """Keep what a worker sent; exchanges that are over take nothing any more."""
        with self._condition:
            # What comes twice, or late, would stay for ever.
            if number > self._done:
                self._arrived[number, sender] = payload
                self._condition.notify_all()

    def take(self, number: int, senders: Sequence[int], timeout_s: float) -> list[Payload]:
        """Wait for what the senders send in an exchange, in their order.

        Raises:
            ClusterError: one of them did not send in time.
            WorkerLostError: one of them never will.
        """

        def missing() -> list[int]:
            return [k for k in senders if (number, k) not in self._arrived]

        with self._condition:
            # What arrived before a worker was lost still counts: only who is missing is
            # looked at.
            self._condition.wait_for(
                lambda: not missing() or self._lost.intersection(missing()), timeout_s
            )
            silent = missing()
            if lost := self._lost.intersection(silent):
                raise lost_worker(min(lost))
            if silent:
                raise ClusterError(
                    f"worker {silent[0]} sent nothing for {timeout_s:.0f} s; look at its "
                    "machine, then run the command again"
                )
            self._done = number
            return [self._arrived.pop((number, sender)) for sender in senders]


def lost_worker(rank: int) -> WorkerLostError:
    """Return the error that tells of a worker that cannot be reached any more."""
    return WorkerLostError(
        f"the connection to worker {rank} broke; look at its machine and the network, then "
        "run the command again"
    )


class Exchange:
    """The exchanges of one worker with all others, which call them in the same order.

    Args:
        rank: Number of this worker.
        peers: The mailboxes of all workers; its own place is not used.
        mailbox: Its own.
        timeout_s: How long to wait for another.

    Attributes:
        sent_bytes: Bytes of arrays that left this worker.
        sending_s: Time spent handing messages over.
        waited_s: Time spent waiting for others.
    """

    def __init__(
        self,
        rank: int,
        peers: Sequence[Peer],
        mailbox: Mailbox,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.rank = rank
        self.size = len(peers)
        self.others = [k for k in range(self.size) if k != rank]
        self.sent_bytes = 0
        self.sending_s = 0.0
        self.waited_s = 0.0
        self._peers = peers
        self._mailbox = mailbox
        self._timeout_s = timeout_s
        self._number = 0

    def all_to_all(self, outgoing: Sequence[Payload]) -> list[Payload]:
        """Send every other worker its payload; return theirs, in the order of others.

        Args:
            outgoing: What to send, one for each of :attr:`others`.
        """
        self._number += 1
        begin = time.perf_counter()
        # All may send at once: every worker's own thread reads, so none waits for another
        # to read.
        for peer, payload in zip(self.others, outgoing, strict=True):
            self.sent_bytes += bytes_of(payload)
            self._peers[peer].send(self._number, self.rank, payload)
        sent = time.perf_counter()
        with span("exchange"):
            arrived = self._mailbox.take(self._number, self.others, self._timeout_s)
        self.sending_s += sent - begin
        self.waited_s += time.perf_counter() - sent
        return arrived

    def gather(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the rows of all workers, in their order, to all of them."""
        arrived = self.all_to_all([(values,)] * len(self.others))
        rows = {self.rank: values}
        rows.update((k, row) for k, (row,) in zip(self.others, arrived, strict=True))
        return np.stack([rows[k] for k in range(self.size)])

    def collect(self, payload: Payload) -> list[Payload]:
        """Return every worker's payload, in their order, to all of them."""
        arrived = self.all_to_all([payload] * len(self.others))
        arrived.insert(self.rank, payload)
        return arrived


def bytes_of(payload: Any) -> int:
    """Return the bytes of a payload's arrays."""
    if isinstance(payload, np.ndarray):
        return payload.nbytes
    if isinstance(payload, tuple | list):
        return sum(bytes_of(part) for part in payload)
    return 0
