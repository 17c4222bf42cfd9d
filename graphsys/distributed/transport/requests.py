"""Asking other workers while all of them work: any thread asks, one answers.

What arrives is read by the connections' threads, which only put it aside, and answered by a
thread of its own: sending an answer may wait for the other, reading never does, so two that
answer each other both go on.
"""

import itertools
import queue
import threading
from collections.abc import Callable, Mapping, Sequence

from graphsys.core.errors import ClusterError, TrainingFailedError
from graphsys.core.events import span
from graphsys.distributed.transport.exchange import (
    TIMEOUT_S,
    Payload,
    Peer,
    Receiver,
    bytes_of,
    lost_worker,
)

Answer = Callable[[Payload], Payload]
_IS_ANSWER = 1  # the last bit of a message's number; the others are the question's


class RequestChannel(Receiver):
    """The questions of one worker to all others, and theirs to it.

    Args:
        rank: Number of this worker.
        answer: Makes the answer to a question; called by one thread.
        timeout_s: How long to wait for another.
    """

    def __init__(self, rank: int, answer: Answer, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__()
        self.rank = rank
        self._answer, self._timeout_s = answer, timeout_s
        self._peers: Sequence[Peer] = ()
        self._locks: list[threading.Lock] = []
        self._asked: queue.SimpleQueue[tuple[int, int, Payload]] = queue.SimpleQueue()
        self._answers: dict[tuple[int, int], Payload] = {}
        self._numbers = itertools.count(1)

    def open(self, peers: Sequence[Peer]) -> None:
        """Ask from now on, and answer.

        Args:
            peers: The ways to all workers; its own place is not used.
        """
        self._peers = peers
        self._locks = [threading.Lock() for _ in peers]
        threading.Thread(target=self._serve, daemon=True, name="graphsys-answer").start()

    def put(self, number: int, sender: int, payload: Payload) -> None:
        """Take what another sends: a question, or an answer."""
        if not number & _IS_ANSWER:
            self._asked.put((number, sender, payload))
            return
        with self._condition:
            self._answers[number ^ _IS_ANSWER, sender] = payload
            self._condition.notify_all()

    def ask(
        self, questions: Mapping[int, Payload], meanwhile: Callable[[], None]
    ) -> tuple[dict[int, Payload], int]:
        """Ask other workers, all at once, and wait for their answers.

        Args:
            questions: By the worker that is asked.
            meanwhile: Is done before waiting.

        Returns:
            The answers by worker, and the bytes of arrays that went both ways.

        Raises:
            WorkerLostError: One of them is gone.
            ClusterError: One of them did not answer in time.
            TrainingFailedError: One of them could not answer.
        """
        # The last bit says question or answer; `next` of a counter is one step, for all
        # threads.
        number = next(self._numbers) << 1
        for worker, question in questions.items():
            self._send(worker, number, question)
        meanwhile()
        wanted = [(number, worker) for worker in questions]

        def missing() -> list[int]:
            return [key[1] for key in wanted if key not in self._answers]

        with span("fetch"), self._condition:
            self._condition.wait_for(
                lambda: not missing() or self._lost.intersection(missing()), self._timeout_s
            )
            if silent := missing():
                if lost := self._lost.intersection(silent):
                    raise lost_worker(min(lost))
                raise ClusterError(
                    f"worker {silent[0]} answered nothing for {self._timeout_s:.0f} s; "
                    "look at its machine, then run the command again"
                )
            told = {key[1]: self._answers.pop(key) for key in wanted}
        found = {}
        for worker, (failure, *answer) in told.items():
            if failure:
                raise TrainingFailedError(
                    f"worker {worker} could not answer worker {self.rank}: {failure}"
                )
            found[worker] = tuple(answer)
        return found, sum(map(bytes_of, [*questions.values(), *found.values()]))

    def _send(self, worker: int, number: int, payload: Payload) -> None:
        # Two threads' frames must not mix on one connection.
        with self._locks[worker]:
            self._peers[worker].send(number, self.rank, payload)

    def _serve(self) -> None:
        while True:
            number, sender, question = self._asked.get()
            try:
                answer = ("", *self._answer(question))
            except Exception as err:  # is the asker's to tell
                answer = (f"{type(err).__name__}: {err}",)
            try:
                self._send(sender, number | _IS_ANSWER, answer)
            except ClusterError:  # who is gone needs no answer
                continue
