"""Ray's side of a worker. Imports Ray: load it only where a cluster is used."""

from collections.abc import Sequence
from typing import Any

import ray

from graphsys.distributed.transport.connections import Address, Connections
from graphsys.distributed.worker import Work, Worker

ASIDE = "aside"
"""The group of calls that a worker answers while it runs."""


class RemoteWorker(Worker):
    """A worker whose peers are other processes."""

    def __init__(self) -> None:
        super().__init__()
        self._connections = Connections(ray.util.get_node_ip_address())

    def address(self) -> Address:
        """Return where this worker listens for the others."""
        return self._connections.address

    def run_among(
        self, rank: int, addresses: Sequence[Address], key: bytes, work: Work
    ) -> dict[str, Any]:
        """Run the own part; see :meth:`Worker.run`.

        Args:
            rank: Number of this worker.
            addresses: Where all of them listen.
            key: By which they know each other.
            work: What to run.
        """
        # kept open when the work fails: others are to hear why, not that this one is lost
        self._peers = self._connections.open(rank, addresses, key, self._mailbox)
        return self.run(rank, self._peers, work)


def start_workers(num_workers: int) -> list[Any]:
    """Start workers, a processor each, on as many machines as there are.

    Nothing of theirs is started again by Ray, which would run constructors only: whoever
    watches starts new ones, which read the last checkpoint.
    """
    kind: Any = ray.remote(
        num_cpus=1,
        max_restarts=0,
        max_task_retries=0,
        concurrency_groups={ASIDE: 1},
        scheduling_strategy="SPREAD",
    )(RemoteWorker)
    return [kind.remote() for _ in range(num_workers)]
