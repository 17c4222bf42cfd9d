"""Ray's side of a worker. Imports Ray: load it only where a cluster is used."""

from collections.abc import Sequence
from typing import Any

import ray

from graphsys.distributed.exchange import Payload
from graphsys.distributed.worker import Work, Worker

MAIL = "mail"
"""The group of calls that a worker answers while it runs."""


class FarPeer:
    """Another worker's mailbox, which Ray carries the mail to."""

    def __init__(self, actor: Any) -> None:
        self._deliver = actor.deliver.options(concurrency_group=MAIL)

    def send(self, number: int, sender: int, payload: Payload) -> None:
        """Send and go on; whoever is dead is noticed by the one who watches all."""
        self._deliver.remote(number, sender, payload)


class FarWorker(Worker):
    """A worker whose peers are other processes."""

    def run_among(self, rank: int, actors: Sequence[Any], work: Work) -> Any:
        """Run the own part; see :meth:`Worker.run`."""
        return self.run(rank, [FarPeer(actor) for actor in actors], work)


def start_workers(num_workers: int) -> list[Any]:
    """Start workers, a processor each, on as many machines as there are.

    Nothing of theirs is started again by Ray, which would run constructors only: whoever
    watches starts new ones, which read the last checkpoint.
    """
    kind: Any = ray.remote(
        num_cpus=1, max_restarts=0, max_task_retries=0, concurrency_groups={MAIL: 1},
        scheduling_strategy="SPREAD",
    )(FarWorker)  # fmt: skip
    return [kind.remote() for _ in range(num_workers)]
